// Parts of the page that need no browser: node --test test/parts.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "node:test";
import { crc32 } from "node:zlib";
import { Cancelled, Engine } from "../page/engine.js";
import { Fourier } from "../page/fourier.js";
import { Pictures } from "../page/pictures.js";
import { Recording } from "../page/recording.js";
import { clock, counted, heightOf, hertzAt, peakText, shadeOf, timeTicks } from "../page/scale.js";
import { encodeWav, flacRate, readWav } from "../page/wav.js";
import { zip } from "../page/zip.js";

const folder = resolve(import.meta.dirname, "..");

/** Files of an archive, read from its directory. */
function unzip(bytes) {
  const end = bytes.lastIndexOf(Buffer.from("PK\x05\x06", "latin1"));
  let at = bytes.readUInt32LE(end + 16);
  return Array.from({ length: bytes.readUInt16LE(end + 10) }, () => {
    assert.equal(bytes.readUInt32LE(at), 0x02014b50);
    const [crc, size] = [bytes.readUInt32LE(at + 16), bytes.readUInt32LE(at + 24)];
    const [length, local] = [bytes.readUInt16LE(at + 28), bytes.readUInt32LE(at + 42)];
    const name = bytes.toString("utf8", at + 46, at + 46 + length);
    at += 46 + length;
    assert.equal(bytes.readUInt32LE(local), 0x04034b50);
    assert.equal(bytes.toString("utf8", local + 30, local + 30 + length), name);
    const data = bytes.subarray(local + 30 + length, local + 30 + length + size);
    assert.equal(crc32(data), crc);
    return { name, data };
  });
}

test("an archive holds every file, under names of its own", async () => {
  const big = Buffer.alloc(3_000_000, "voice");
  const files = [["a.wav", big], ["A.wav", Buffer.from("2")], ["a.wav", Buffer.from("3")], ["Straße 日.wav", Buffer.alloc(0)]];
  const blob = await zip(files.map(([name, data]) => ({ name, blob: new Blob([data]) })), new Date(2026, 0, 2, 3, 4, 6));
  const found = unzip(Buffer.from(await blob.arrayBuffer()));
  assert.deepEqual(found.map(({ name }) => name), ["a.wav", "A (2).wav", "a (3).wav", "Straße 日.wav"]);
  assert.deepEqual(found.map(({ data }) => data.length), [3_000_000, 1, 1, 0]);
  assert.ok(found[0].data.equals(big));
});

test("WAV files are read back to half a step, clipped at full scale", async () => {
  const left = Float32Array.from({ length: 600_001 }, (_, n) => Math.sin(0.01 * n));
  const right = left.map((x) => 2 * x);
  const blob = await encodeWav({ channels: 2, frames: left.length, sampleRate: 44100, read: (start, end) => [left.subarray(start, end), right.subarray(start, end)] });
  const bytes = await blob.arrayBuffer();
  assert.equal(bytes.byteLength, 44 + 4 * left.length);
  const { sampleRate, channels: [found, clipped] } = await readWav(blob);
  assert.equal(sampleRate, 44100);
  assert.ok(found.every((x, n) => Math.abs(x - left[n]) <= 1 / 32768));
  assert.ok(clipped.every((x, n) => Math.abs(x - Math.max(-1, Math.min(1, right[n]))) <= 1.01 / 32768));
});

test("WAV files of other formats are read, whatever stands before the samples", async () => {
  const word = (text) => Buffer.from(text, "latin1");
  const number = (bytes, value) => {
    const buffer = Buffer.alloc(bytes);
    buffer.writeUIntLE(value, 0, bytes);
    return buffer;
  };
  const file = (tag, bits, samples, size = samples.length) => {
    const extensible = tag === 0xfffe ? [number(2, 22), number(2, bits), number(4, 4), number(2, 1), Buffer.alloc(14)] : [];
    const format = [number(2, tag), number(2, 1), number(4, 22050), number(4, 0), number(2, 0), number(2, bits), ...extensible];
    const length = format.reduce((sum, part) => sum + part.length, 0);
    const odd = [word("LIST"), number(4, 3), word("abc"), Buffer.alloc(1)];
    return new Blob([word("RIFF"), number(4, 0), word("WAVE"), ...odd, word("fmt "), number(4, length), ...format, word("data"), number(4, size), samples]);
  };
  const read = async (...parts) => Array.from((await readWav(file(...parts))).channels[0]);
  assert.deepEqual(await read(1, 8, Buffer.from([0, 128, 192])), [-1, 0, 0.5]);
  assert.deepEqual(await read(1, 16, Buffer.from([0, 0x80, 0, 0x40]), 0xffffffff), [-1, 0.5]);
  assert.deepEqual(await read(1, 24, Buffer.from([0, 0, 0x80, 0, 0, 0x40, 9]), 0), [-1, 0.5]);
  assert.deepEqual(await read(1, 32, Buffer.from([0, 0, 0, 0x80, 0, 0, 0, 0x20])), [-1, 0.25]);
  assert.deepEqual(await read(3, 32, Buffer.from(Float32Array.of(0.25, -2).buffer)), [0.25, -2]);
  assert.deepEqual(await read(3, 64, Buffer.from(Float64Array.of(0.25, -2).buffer)), [0.25, -2]);
  assert.deepEqual(await read(0xfffe, 24, Buffer.from([0, 0, 0xc0])), [-0.5]);
  assert.equal((await readWav(file(1, 16, Buffer.alloc(2)))).sampleRate, 22050);
  // A file that is cut off is read up to there, and what is missing is counted; pipes leave the size open.
  const missing = async (size) => (await readWav(file(1, 16, Buffer.alloc(4), size))).missing;
  assert.deepEqual([await missing(4), await missing(10), await missing(0), await missing(0xffffffff)], [0, 3, 0, 0]);
  // What is none of these is left to the browser.
  for (const other of [file(2, 4, Buffer.alloc(8)), new Blob([word("RIFF\0\0\0\0WAVEjunk")]), new Blob([])]) assert.equal(await readWav(other), undefined);
});

test("the sample rate of FLAC is read", () => {
  const flac = Buffer.concat([Buffer.from("fLaC"), Buffer.alloc(14), Buffer.from([0x0a, 0xc4, 0x40, 0xf0]), Buffer.alloc(20)]);
  assert.equal(flacRate(new Uint8Array(flac).buffer), 44100);
  assert.equal(flacRate(new ArrayBuffer(3)), undefined);
  assert.equal(flacRate(new ArrayBuffer(64)), undefined);
});

test("two spectra come from one transform", () => {
  const size = 64;
  const fourier = new Fourier(size);
  const [x, y] = [3, 9].map((k, n) => Float32Array.from({ length: size }, (_, t) => (n + 1) * Math.cos((2 * Math.PI * k * t) / size)));
  const at = (k, kept) => {
    fourier.re.set(x);
    fourier.im.set(y);
    fourier.run();
    return fourier.powers(k, kept).map((power) => Math.round(power));
  };
  assert.deepEqual(at(3, 0), [32 ** 2, 0]);
  assert.deepEqual(at(9, 0), [0, 64 ** 2]);
  assert.deepEqual(at(9, 0.5), [0, 32 ** 2]);
  assert.deepEqual(at(3, 0.5), [32 ** 2, 16 ** 2]);
});

test("a task that was cancelled before it starts leaves its recording as it is", async () => {
  const recording = new Recording("a.wav", 16000, [new Float32Array(8000)]);
  recording.append([new Float32Array(5000)]);
  const cancelled = new Engine().denoise(recording, {}, { signal: AbortSignal.abort(), onProgress() {} });
  await assert.rejects(cancelled, Cancelled);
  assert.equal(recording.ready, 5000);
});

test("a restart while a recording is written does not change what is written", async () => {
  const before = new Float32Array(600_000).fill(0.5); // in several pieces
  const recording = new Recording("a.wav", 16000, [before]);
  recording.append([before.map((x) => x / 2)]);
  const writing = recording.wav("after");
  recording.restart();
  const [found] = (await readWav(await writing)).channels;
  assert.ok(found.length === before.length && found.every((x) => x === 0.25));
});

test("the peak of silence is none", () => {
  assert.deepEqual([1, 0.5, 0.0005, 0].map(peakText), ["peak 0.0 dBFS", "peak −6.0 dBFS", "peak −66.0 dBFS", "silent"]);
});

/** Pictures of 64 columns. `onColumn` receives those of the waveform, and whether they are of the result. */
function picturesOf(onColumn, onPeak) {
  const context = {
    createImageData: (width, height) => ({ width, height, data: new Uint8ClampedArray(4 * width * height) }),
    putImageData() {},
    clearRect() {},
    fillRect(column) {
      onColumn(column, this.fillStyle === "after");
    },
  };
  const canvas = () => ({ width: 64, height: 16, getContext: () => context });
  return new Pictures({ wave: canvas(), before: canvas(), after: canvas() }, () => ({ before: "before", after: "after" }), onPeak);
}

test("the peak of a long recording is that of its loudest sample", async () => {
  const samples = new Float32Array(64 * 20_001).fill(0.1);
  samples[777_777] = -0.9;
  let peak;
  const recording = new Recording("a.wav", 16000, [samples]);
  await picturesOf(() => {}, (found) => (peak = found)).show(recording, { start: 0, end: samples.length }, 0);
  assert.equal(peak, Math.fround(0.9));
});

test("while pictures are drawn, the waveform of the result ends where that does", async (t) => {
  let time = 0;
  t.mock.method(performance, "now", () => (time += 100)); // shown after every column
  const drawn = new Set();
  const pictures = picturesOf((column, isResult) => isResult && drawn.add(column), () => {});
  const recording = new Recording("a.wav", 16000, [new Float32Array(6400).fill(0.5)]);
  recording.append([new Float32Array(3200).fill(0.25)]);
  await pictures.show(recording, { start: 0, end: 6400 }, 0);
  assert.deepEqual([...drawn].sort((a, b) => a - b), Array.from({ length: 32 }, (_, n) => n));
});

test("scales", () => {
  assert.deepEqual([clock(0), clock(65.5, 0.1), clock(59.99), clock(3725), clock(0.25, 0.01)], ["0:00", "1:05.5", "1:00", "1:02:05", "0:00.25"]);
  assert.deepEqual(timeTicks(0.5, 10, 5), { step: 2, ticks: [2, 4, 6, 8, 10] });
  assert.ok(Math.abs(hertzAt(heightOf(1000, 16000), 16000) - 1000) < 1e-6);
  assert.deepEqual([shadeOf(-200), shadeOf(-100), shadeOf(-60), shadeOf(0)], [0, 0, 128, 255]);
});

test("offline, the page has every file that it loads", () => {
  const kept = readFileSync(join(folder, "page/offline.js"), "utf8");
  const page = readdirSync(join(folder, "page")).filter((name) => name !== "offline.js");
  for (const name of page) assert.ok(kept.includes(name === "index.html" ? '"./"' : `"${name}"`), name);
});

/** Name and documentation of every option. */
function options() {
  const source = readFileSync(join(folder, "../../src/options.rs"), "utf8");
  const body = source.split("pub struct Options {")[1].split("\n}\n")[0];
  const found = new Map();
  let lines = [];
  for (const line of body.split("\n")) {
    if (line.startsWith("    ///")) lines.push(line.slice(7).trim());
    const name = line.match(/^ {4}pub (\w+):/)?.[1];
    if (!name) continue;
    found.set(name, lines.filter(Boolean).join(" ").replace(/--([a-z][a-z-]*)/g, (_, option) => option.replaceAll("-", "_")));
    lines = [];
  }
  return found;
}

test("labels of the page are taken from the library", () => {
  const expected = options();
  const page = readFileSync(join(folder, "page/index.html"), "utf8");
  const parts = [...page.matchAll(/data-option="(\w+)" title="([^"]*)"/g)];
  assert.ok(parts.length >= 6 && parts.length === page.match(/data-option=/g).length);
  for (const [, name, title] of parts) assert.equal(title, expected.get(name).split(/\. (?=[A-Z])/)[0].replace(/\.$/, "") + ".", name);
});

test("the uses of the page stand for the mix of the library", () => {
  const library = readFileSync(join(folder, "../../src/options.rs"), "utf8");
  const [, body] = library.match(/fn mix\(self\) -> f32 \{(.*?)\n    \}/s);
  const expected = [...body.matchAll(/Self::(\w+) => ([\d.]+)/g)].map(([, use, mix]) => `${use.toLowerCase()}: ${100 * mix}`);
  const panel = readFileSync(join(folder, "page/settings-panel.js"), "utf8");
  assert.deepEqual(panel.match(/const MIX = \{ (.*?) \}/)[1].split(", "), expected);
});

test("the interface has the types that the README uses", () => {
  const readme = readFileSync(join(folder, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);
  assert.ok(blocks.length >= 2);
  const names = `
    declare const samples: Float32Array, channels: Float32Array[], sampleRate: number, chunk: Float32Array;
    declare const audioContext: AudioContext, microphone: AudioNode;
    declare function show(...values: (number | boolean)[]): void;
    declare const either: import("alphamf").Samples;
    export const same: import("alphamf").Samples = await denoise(either, sampleRate, { noise: either, onProgress: (done: number) => show(done) });
    node.addEventListener("processorerror", () => show(0));
    // @ts-expect-error: there is no such option
    denoiser.stream(sampleRate, 1, { gainstd: true });
  `;
  const scratch = mkdtempSync(join(folder, ".types-"));
  try {
    const file = join(scratch, "readme.mts");
    writeFileSync(file, blocks.join("\n") + names);
    const options = ["--noEmit", "--strict", "--target", "esnext", "--module", "nodenext", "--lib", "esnext,dom"];
    execFileSync(join(folder, "node_modules/.bin/tsc"), [...options, file], { encoding: "utf8", cwd: folder });
  } catch (error) {
    assert.fail(error.stdout || error.message);
  } finally {
    rmSync(scratch, { recursive: true });
  }
});

test("rates and channels have the ranges of the library", () => {
  const library = readFileSync(join(folder, "../../crates/signal/src/signal.rs"), "utf8").replaceAll("_000", "000");
  const [, least, most] = library.match(/const SAMPLE_RATE_RANGE: .* = (\d+)\.\.=(\d+);/);
  const [, channels] = library.match(/const MAX_CHANNELS: usize = (\d+);/);
  const index = readFileSync(join(folder, "index.js"), "utf8");
  const found = [...index.matchAll(/within\(.*, (\d+), (\d+)\)/g)].map(([, least, most]) => `${least} to ${most}`);
  assert.deepEqual([...new Set(found)].sort(), [`1 to ${channels}`, `${least} to ${most}`].sort());
});

test("one thing is not several", () => {
  assert.deepEqual([0, 1, 2].map((count) => counted(count, "click")), ["0 clicks", "1 click", "2 clicks"]);
});
