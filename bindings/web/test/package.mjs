// The package itself: results, errors, and how it loads its module.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { likeness } from "./tools.mjs";

export async function checkPackage(tab) {
  const found = await tab.evaluate(async () => {
    const { Denoiser, denoise, settings } = await import("./index.js");
    const hum = Float32Array.from({ length: 16000 }, (_, n) => 0.1 * Math.sin(0.02 * n));
    const words = async (work) => work().then(() => "", (error) => `${error.kind}: ${error.message}`);
    const detached = new Float32Array(8000);
    structuredClone(detached, { transfer: [detached.buffer] });
    const denoiser = await Denoiser.create({ quality: "fast", no_neural: true });
    const whole = denoiser.denoise([hum, hum], 16000);
    const stream = denoiser.stream(16000);
    const parts = [stream.push(hum.subarray(0, 7000))];
    // A stream goes on after an array that it refuses.
    const refused = [await words(async () => stream.push(detached)), await words(async () => stream.push([hum, hum.subarray(1)]))];
    parts.push(stream.push(hum.subarray(7000)), stream.finish());
    const tracked = denoiser.denoise(hum, 16000, { speechTrack: true }).speechTrack;
    const sampler = await Denoiser.create({ no_neural: true, iterations: 4, em_iterations: 2 });
    const { values, ...grid } = sampler.denoise(hum, 22050, { gainStd: true }).gainStd;
    const sampled = sampler.stream(22050, 1, { gainStd: true });
    const deviations = [() => sampled.push(hum), () => sampled.finish()].map((work) => (work(), sampled.takeGainStd().values[0]));
    const fractions = [];
    const told = await denoise(hum, 16000, { quality: "fast", no_neural: true, noise: hum, onProgress: (done) => fractions.push(done) });
    const empty = denoiser.denoise(new Float32Array(0), 16000, { onProgress: (done) => fractions.push(done) }).speech[0].length;
    const single = denoiser.denoise(hum, 16000, { noise: hum }).speech[0];
    return {
      lengths: [whole.speech.length, whole.residual.length, single.length],
      joined: parts.flatMap((part) => Array.from(part.speech[0])).length,
      samples: stream.stats.samples,
      grid,
      deviation: [
        whole.gainStd === undefined,
        values.length,
        values[0].length / grid.bins,
        Math.max(...values[0]) > 0,
        deviations.flatMap((part) => Array.from(part)).every((x, n) => x === values[0][n]),
        deviations[0].length + deviations[1].length === values[0].length,
      ],
      track: [whole.speechTrack === undefined, tracked.length, tracked[0].probability.length, Array.isArray(tracked[0].segments)],
      told: [fractions.length > 0 && fractions.every((done) => done >= 0 && done <= 1), told.every((x, n) => x === single[n]), empty],
      refused,
      plain: (await denoise(hum, 16000, { quality: "fast" })).length,
      floor: (await settings({ floor_db: -20 })).gain.floor_db,
      seed: (await settings({ seed: 7n })).seed,
      errors: [
        await words(() => denoise(hum, 1000)),
        await words(() => denoise(hum, 16000, { colour: 1 })),
        await words(() => denoise([1, 2], 16000)),
        await words(async () => denoiser.denoise(hum, 16000, { onProgress() { throw new Error("enough"); } })),
        await words(() => settings({ floor_db: 3 })),
        await words(() => denoise(hum, 16000, { floor_db: NaN })),
        await words(() => settings({ mix: -Infinity })),
        await words(() => denoise(hum, 16000 + 2 ** 32)),
        await words(async () => denoiser.stream(16000, 1 + 2 ** 32)),
        await words(async () => stream.finish(() => {})),
        await words(() => Denoiser.create({ model: new Uint8Array(9) })),
        await words(async () => denoiser.stream(16000, 1, { gainstd: true })),
        await words(async () => denoiser.denoise(hum, 16000, { strength: "gentle" })),
        await words(async () => denoiser.denoise(hum, 16000, { noise: detached })),
        await words(() => settings({ no_dither: true })),
        await words(() => settings({ seed: 2n ** 64n })),
        await words(() => settings({ strength: "gentle", mix: "0.8" })),
      ],
    };
  });
  assert.deepEqual(found.grid, { bins: 707, bin_hertz: 22050 / 1412, frame_seconds: 353 / 22050 });
  const frames = Math.ceil((16000 + 1412 - 353) / 353);
  assert.deepEqual(found.deviation, [true, 1, frames, true, true, true]);
  assert.deepEqual(found.track, [true, 1, 100, true]);
  assert.deepEqual([found.lengths, found.joined, found.samples, found.plain, found.floor, found.seed], [[2, 2, 16000], 16000, 16000, 16000, -20, 7]);
  assert.deepEqual(found.told, [true, true, 0]);
  assert.ok(found.refused[0].startsWith("input: ") && found.refused[0].includes("detached"), found.refused[0]);
  assert.ok(found.refused[1].startsWith("input: "), found.refused[1]);
  for (const [index, [kind, words]] of [
    ["input", "1000 Hz"], ["setting", "colour"], ["input", "Float32Array"], ["undefined", "enough"], ["setting", "floor"],
    ["setting", "floor_db is NaN"], ["setting", "mix is -Infinity"], ["input", "4294983296 Hz"], ["input", "4294967297 channels"],
    ["input", "ended"], ["model", ""], ["setting", "gainstd"], ["setting", "strength"], ["input", "detached"], ["setting", "no_dither"],
    ["setting", "`seed` is 1.844"], ["setting", '`mix` is "0.8": expected a number'],
  ].entries()) {
    const error = found.errors[index];
    assert.ok(error.startsWith(`${kind}: `) && error.includes(words), error);
  }
}

/** A denoiser for real-time audio without Web Audio, whose output is that of the node. */
export async function checkLive(tab) {
  const { controls, equal, passed, errors, meters, events } = await tab.evaluate(async () => {
    const { Denoiser, createLiveNode } = await import("./index.js");
    const kindOf = (work) => {
      try {
        return work();
      } catch (error) {
        return `${error.kind}: ${error.message}`;
      }
    };
    const noise = Float32Array.from({ length: 48000 }, () => 0.2 * (Math.random() - 0.5));
    const denoiser = await Denoiser.create({ strength: "gentle", purpose: "transcription" });
    const live = denoiser.live(16000, 1, { latency: 8 });
    const parts = [];
    for (let n = 0; n < noise.length; n += 1500) parts.push(live.process(noise.subarray(n, n + 1500)));
    const context = new OfflineAudioContext(1, noise.length, 16000);
    const buffer = new AudioBuffer({ length: noise.length, sampleRate: 16000 });
    buffer.copyToChannel(noise, 0);
    const source = new AudioBufferSourceNode(context, { buffer });
    const node = await createLiveNode(context, { latency: 8, strength: "gentle", purpose: "transcription" });
    source.connect(node).connect(context.destination);
    source.start();
    const rendered = (await context.startRendering()).getChannelData(0);
    const controls = [live.controls, node.controls];
    for (const one of [live, node]) {
      one.set({ mix: 5, voice_threshold: -1, bypass: true });
      controls.push(one.controls);
    }
    const stereo = denoiser.live(48000, 2, { bypass: true, floor_db: -30 });
    const left = noise.subarray(0, 4000);
    const right = left.map((x) => -x);
    const passed = stereo.process([left, right]).map((samples, c) => {
      return samples.every((x, n) => x === (n < stereo.latency ? 0 : [left, right][c][n - stereo.latency]));
    });
    passed.push(stereo.latency, stereo.controls.floor_db);
    const errors = [
      kindOf(() => stereo.process(left)),
      kindOf(() => stereo.process([left, right.subarray(1)])),
      kindOf(() => stereo.set({ colour: 1 })),
      kindOf(() => stereo.set({ mix: "half" })),
      kindOf(() => stereo.set({ mix: NaN })),
      kindOf(() => denoiser.live(16000, 1, { latency: 100 })),
      kindOf(() => denoiser.live(16000, 1, { mix: 2 })),
      kindOf(() => denoiser.live(1000)),
      kindOf(() => node.set({ toString: 1 })),
      kindOf(() => node.set({ mix: NaN })),
      kindOf(() => live.learnNoise(-1)),
      kindOf(() => node.learnNoise(NaN)),
    ];
    // Speech starts, as every probability has reached the threshold of zero.
    live.events();
    live.process(noise.subarray(0, 8000));
    const events = [live.events(), live.events()];
    const { meters } = live;
    live.learnNoise(1);
    live.reset();
    live.process(noise.subarray(0, 8000));
    live.reset();
    events.push(live.events());
    for (const one of [live, stereo, denoiser]) one.free();
    node.close();
    return { controls, equal: parts.flatMap((part) => Array.from(part)).every((x, n) => x === rendered[n]), passed, errors, meters, events };
  });
  const initial = { gain_exponent: 1, floor_db: -12, mix: 0.8, bypass: false, voice_threshold: 0.5, voice_hang_over_seconds: 0.3 };
  const present = { ...initial, mix: 1, bypass: true, voice_threshold: 0 };
  const round = (all) => ({ ...all, mix: Math.fround(all.mix), voice_hang_over_seconds: Math.fround(all.voice_hang_over_seconds) });
  assert.deepEqual(controls.map(round), [initial, initial, present, present].map(round));
  assert.ok(equal);
  assert.deepEqual(passed, [true, true, 768, -30]);
  const [[{ speaking, sample }, ...others], ...none] = events;
  assert.ok(speaking && Number.isInteger(sample) && sample >= 48000 && sample < 56000, String(sample));
  assert.deepEqual([others, none], [[], [[], []]]);
  assert.ok(meters.noise_dbfs < -15 && meters.gain_db < -5 && meters.speech_probability < 0.5, JSON.stringify(meters));
  for (const [index, [kind, words]] of [
    ["input", "1 channel;"], ["input", "lengths"], ["setting", "colour"], ["setting", "mix"], ["setting", "mix"],
    ["setting", "latency is 100; expected 4 to 64"], ["setting", "mix"], ["input", "1000 Hz"], ["setting", "toString"], ["setting", "mix"],
    ["setting", "seconds is -1"], ["setting", "seconds is NaN"],
  ].entries()) {
    assert.ok(errors[index].startsWith(`${kind}: `) && errors[index].includes(words), errors[index]);
  }
}

/** A server that fails once, and then declares the encoding of the module, which the browser decompresses. */
export async function checkLoading(browser, address, root) {
  const context = await browser.newContext({ serviceWorkers: "block" });
  const tab = await context.newPage();
  let answers = 0;
  await tab.route("**/*.wasm.gz", (route) => {
    if (answers++ === 0) return route.fulfill({ status: 503 });
    return route.fulfill({ body: gunzipSync(readFileSync(join(root, "native/alphamf_web_bg.wasm.gz"))) });
  });
  await tab.goto(`${address}style.css`);
  const tries = await tab.evaluate(async () => {
    const { denoise } = await import("./index.js");
    const tried = () => denoise(new Float32Array(16000), 16000, { quality: "fast" }).then((speech) => speech.length, (error) => error.message);
    return [await tried(), await tried()];
  });
  assert.ok(tries[0].includes("503") && tries[1] === 16000, JSON.stringify(tries));
  await context.close();
}

/** A browser without SIMD loads the plain module, which gives the same result. */
export async function checkPlainModule(context, address, { before, speech }) {
  const tab = await context.newPage();
  const errors = [];
  tab.on("pageerror", (error) => errors.push(error.message));
  await tab.addInitScript(() => (WebAssembly.validate = () => false));
  await tab.goto(`${address}style.css`);
  const modules = [];
  tab.on("request", (request) => request.url().includes(".wasm") && modules.push(request.url().split("/").at(-1)));
  const plain = await tab.evaluate(async (demo) => {
    const { denoise } = await import("./index.js");
    return Array.from(await denoise(Float32Array.from(demo, (x) => x / 32768), 16000));
  }, Array.from(before));
  assert.deepEqual([modules, errors], [["alphamf_web_plain_bg.wasm"], []]);
  const alike = likeness(speech, plain.map((x) => 32768 * x));
  console.log(`${alike.toFixed(1)} dB from the result without SIMD`);
  assert.ok(alike > 40);
  await tab.close();
}
