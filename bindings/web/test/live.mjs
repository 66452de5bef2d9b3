// Live denoising, in the page and in the package.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { playedLevel, status, tapOutput } from "./tools.mjs";

/** Plays the microphone in the page, with and without denoising. */
export async function checkLivePage(tab) {
  await tapOutput(tab);
  await tab.focus("#listen");
  await tab.keyboard.press("Enter");
  await status(tab, "On, at ", "live-status");
  assert.equal(await tab.getAttribute("#listen", "aria-pressed"), "true");
  await tab.waitForTimeout(1500);
  const on = await playedLevel(tab);
  assert.match(await tab.textContent("#noise-text"), /^−\d+ dBFS$/);
  const loads = [];
  for (let n = 0; n < 20; n++) {
    await tab.waitForTimeout(100);
    loads.push(Number.parseInt(await tab.textContent("#load-text"), 10));
  }
  const load = loads.sort((a, b) => a - b)[loads.length / 2];
  console.log(`live: ${await tab.textContent("#live-status")} Level ${on.toFixed(4)}, load ${load.toFixed(0)} %, delay ${await tab.textContent("#delay")}`);
  assert.ok(on > 1e-3 && load < 50);
  await tab.click("#learn");
  assert.match(await tab.textContent("#live-status"), /^Learning the noise/);
  await status(tab, "On, at ", "live-status");
  await tab.focus("#denoising");
  await tab.keyboard.press("Space");
  const off = await playedLevel(tab);
  console.log(`level ${off.toFixed(4)} without denoising`);
  assert.ok(off > 0 && off !== on);
  await tab.click("#listen");
  await status(tab, "Off.", "live-status");
  assert.equal(await tab.getAttribute("#listen", "aria-pressed"), "false");
  assert.ok(await tab.isHidden("#meters"));
}

/** The node in offline contexts: samples, rates, channels, messages, errors. */
export async function checkLiveNode(tab, noisy, program) {
  const bytes = readFileSync(noisy);
  const demo = Array.from(new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + bytes.length)));
  const [late, voice, events] = await tab.evaluate(async (demo) => {
    const { createLiveNode } = await import("./index.js");
    const context = new OfflineAudioContext(1, demo.length + 16000, 16000);
    const buffer = new AudioBuffer({ length: demo.length, sampleRate: 16000 });
    buffer.copyToChannel(Float32Array.from(demo, (x) => x / 32768), 0);
    const source = new AudioBufferSourceNode(context, { buffer });
    const node = await createLiveNode(context);
    const voice = [];
    node.addEventListener("voice", ({ detail }) => voice.push(detail));
    source.connect(node).connect(context.destination);
    source.start();
    const done = (await context.startRendering()).getChannelData(0);
    // Messages of the audio thread arrive later.
    await new Promise((resolve) => setTimeout(resolve, 200));
    node.close();
    return [node.latency, Array.from(done.subarray(node.latency, node.latency + demo.length)), voice];
  }, demo);
  assert.equal(late, 256);
  // Starts and ends take turns, in time.
  assert.ok(events.length > 0 && events.every(({ speaking }, n) => speaking === (n % 2 === 0)), JSON.stringify(events));
  assert.ok(events.every(({ time }, n) => n === 0 || time > events[n - 1].time), JSON.stringify(events));
  assert.ok(voice.some((x) => Math.abs(x) > 0.01));
  if (program) {
    const scratch = mkdtempSync(join(tmpdir(), "alphamf-"));
    const output = join(scratch, "live.wav");
    execFileSync(program, ["-q", "--live", "--no-dither", noisy, output]);
    const told = readFileSync(output);
    const expected = new Int16Array(told.buffer.slice(told.byteOffset + 44, told.byteOffset + told.length));
    rmSync(scratch, { recursive: true });
    const error = expected.reduce((sum, x, n) => sum + (x - 32768 * voice[n]) ** 2, 0);
    const likeness = 10 * Math.log10(expected.reduce((sum, x) => sum + x * x, 0) / error);
    console.log(`live: ${likeness.toFixed(1)} dB from the program's output`);
    assert.ok(likeness > 40);
  }

  for (const [rate, channels] of [[44100, 1], [48000, 1], [48000, 2], [96000, 1], [192000, 1]]) {
    const found = await tab.evaluate(async ([rate, channels]) => {
      const { createLiveNode } = await import("./index.js");
      const seconds = 4;
      const context = new OfflineAudioContext(channels, seconds * rate, rate);
      const buffer = new AudioBuffer({ length: seconds * rate, numberOfChannels: channels, sampleRate: rate });
      for (let c = 0; c < channels; c++) {
        const samples = buffer.getChannelData(c);
        for (let n = 0; n < samples.length; n++) samples[n] = 0.2 * (Math.random() - 0.5);
      }
      const source = new AudioBufferSourceNode(context, { buffer });
      const node = await createLiveNode(context, { channels, floor_db: -30 });
      const loads = [];
      node.addEventListener("meters", ({ detail }) => loads.push(detail.load));
      source.connect(node).connect(context.destination);
      source.start();
      const began = performance.now();
      const done = await context.startRendering();
      const took = (performance.now() - began) / 1000;
      const power = (samples) => samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
      const late = Array.from({ length: channels }, (_, c) => power(done.getChannelData(c).subarray(2 * rate)));
      const cut = late.map((after, c) => 10 * Math.log10(power(buffer.getChannelData(c).subarray(2 * rate)) / after));
      node.close();
      return { seconds: node.latency / rate, took: took / seconds, cut, loads: loads.length, meters: node.meters };
    }, [rate, channels]);
    const { took, cut, meters } = found;
    console.log(`${rate} Hz, ${channels} of them: ${(100 * took).toFixed(0)} % of real time, noise down by ${cut.map((x) => x.toFixed(0))} dB`);
    assert.ok(Math.abs(found.seconds - 0.016) < 0.0005 && found.loads >= 20, JSON.stringify(found));
    // The time is printed, not tested: the machine may be busy.
    assert.ok(cut.every((decibels) => decibels > 10), JSON.stringify(found));
    assert.ok(meters.noise_dbfs < -15 && meters.gain_db < -5, JSON.stringify(meters));
  }

  await checkStarts(tab);

  const told = await tab.evaluate(async () => {
    const { createLiveNode } = await import("./index.js");
    const context = new OfflineAudioContext(1, 48000, 48000);
    const words = (options) => createLiveNode(context, options).then(() => "", (error) => error.message);
    const node = await createLiveNode(context, { mix: 0.5 });
    node.set({ bypass: true });
    node.learnNoise(0.5);
    node.reset();
    const controls = node.controls;
    node.close();
    const compressed = (await fetch("./native/alphamf_web_bg.wasm.gz")).body.pipeThrough(new DecompressionStream("gzip"));
    const source = await new Response(compressed).arrayBuffer();
    return [controls, await words({ source, worklet: new URL("./native/worklet.js", location) }), await words({ latency: 100 }), await words({ colour: 1 }), await words({ mix: "half" }), await words({ gain_exponent: 3 })];
  });
  assert.deepEqual(told[0], { gain_exponent: 1, floor_db: -45, mix: 0.5, bypass: true, voice_threshold: 0.5, voice_hang_over_seconds: 0.3 });
  assert.equal(told[1], "");
  for (const [index, part] of ["latency is 100; expected 4 to 64", "colour", "mix", "gain_exponent"].entries()) {
    assert.ok(told[index + 2].includes(part), told[index + 2]);
  }
}

/** One compilation and one denoiser serve all nodes of a context, and a failed download of the audio thread's code is retried. */
async function checkStarts(tab) {
  const found = await tab.evaluate(async () => {
    const { createLiveNode } = await import("./index.js");
    const context = new OfflineAudioContext(1, 48000, 48000);
    // Counts what the audio thread makes.
    const counter = `
      const made = { modules: 0, denoisers: 0 };
      const { Instance, Module } = WebAssembly;
      WebAssembly.Module = class extends Module {
        constructor(bytes) {
          super(bytes);
          made.modules++;
        }
      };
      WebAssembly.Instance = class {
        constructor(module, imports) {
          const { exports } = new Instance(module, imports);
          const counted = (...given) => (made.denoisers++, exports.nativedenoiser_new(...given));
          return { __proto__: Instance.prototype, exports: { ...exports, nativedenoiser_new: counted } };
        }
      };
      registerProcessor("counter", class extends AudioWorkletProcessor {
        constructor() {
          super();
          this.port.postMessage(made);
        }
        process() {
          return false;
        }
      });`;
    await context.audioWorklet.addModule(URL.createObjectURL(new Blob([counter], { type: "text/javascript" })));
    const nodes = [];
    for (const options of [{}, { mix: 0.5 }, { latency: 8 }, { no_neural: true }]) nodes.push(await createLiveNode(context, options));
    const made = await new Promise((resolve) => {
      new AudioWorkletNode(context, "counter").port.onmessage = ({ data }) => resolve(data);
    });
    for (const node of nodes) node.close();

    const failing = new OfflineAudioContext(1, 48000, 48000);
    const worklet = failing.audioWorklet;
    worklet.addModule = async () => {
      throw new Error("offline");
    };
    const tried = () => createLiveNode(failing).then((node) => (node.close(), "started"), (error) => error.message);
    const tries = [await tried()];
    delete worklet.addModule;
    tries.push(await tried());
    return { made, tries };
  });
  assert.deepEqual(found, { made: { modules: 1, denoisers: 2 }, tries: ["offline", "started"] });
}
