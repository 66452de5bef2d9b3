// What the tests in the browser share.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

const TYPES = {
  ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml",
  ".png": "image/png", ".webmanifest": "application/manifest+json",
};

/** Serves a folder; `sizes` are the bytes of each path that was requested. */
export async function serve(root) {
  const sizes = new Map();
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname.replace(/\/$/, "/index.html");
    let bytes;
    try {
      bytes = readFileSync(join(root, path));
    } catch {
      response.writeHead(404).end();
      return;
    }
    sizes.set(path, bytes.length);
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(bytes);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, sizes, address: `http://127.0.0.1:${server.address().port}/` };
}

/** Samples of a 16-bit mono WAV file with a header of 44 bytes. */
export const samplesOf = (bytes) => new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + bytes.length));

/** A 16-bit WAV file of one channel. */
export function wavFile(samples, sampleRate) {
  const bytes = Buffer.alloc(44 + 2 * samples.length);
  bytes.write("RIFF", 0);
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write("WAVEfmt ", 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(sampleRate, 24);
  bytes.writeUInt32LE(2 * sampleRate, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36);
  bytes.writeUInt32LE(2 * samples.length, 40);
  samples.forEach((x, n) => bytes.writeInt16LE(x, 44 + 2 * n));
  return bytes;
}

/** Level of a signal relative to its difference from another, dB. */
export function likeness(a, b) {
  assert.equal(a.length, b.length);
  let [signal, difference] = [0, 0];
  for (let n = 0; n < a.length; n++) {
    signal += a[n] ** 2;
    difference += (a[n] - b[n]) ** 2;
  }
  return 10 * Math.log10(signal / difference);
}

/** Waits until a status line starts with a text. */
export const status = (tab, start, id = "status") =>
  tab.waitForFunction(([id, start]) => document.getElementById(id).textContent.startsWith(start), [id, start], { timeout: 180_000 });

/** Bytes of what a button downloads, and the name. */
export async function download(tab, id) {
  const [saved] = await Promise.all([tab.waitForEvent("download"), tab.click(id)]);
  return { name: saved.suggestedFilename(), bytes: readFileSync(await saved.path()) };
}

/** Keeps an analyser beside everything that is played, for `playedLevel`. */
export const tapOutput = (tab) =>
  tab.evaluate(() => {
    const { connect } = AudioNode.prototype;
    const taps = new WeakMap();
    AudioNode.prototype.connect = function (target, ...more) {
      if (target instanceof AudioDestinationNode) {
        if (!taps.has(this.context)) taps.set(this.context, new AnalyserNode(this.context, { fftSize: 32768 }));
        globalThis.tap = taps.get(this.context);
        connect.call(this, globalThis.tap);
      }
      return connect.call(this, target, ...more);
    };
  });

/** Root mean square of the last two seconds or so that were played. */
export async function playedLevel(tab, wait = 1500) {
  await tab.waitForTimeout(wait);
  return tab.evaluate(() => {
    const samples = new Float32Array(Math.min(globalThis.tap.fftSize, globalThis.tap.context.sampleRate));
    globalThis.tap.getFloatTimeDomainData(samples);
    return Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length);
  });
}
