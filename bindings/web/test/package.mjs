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
    const words = async (work) => work().then(() => "", (error) => error.message);
    const denoiser = await Denoiser.create({ quality: "fast", no_neural: true });
    const whole = denoiser.denoise([hum, hum], 16000);
    const stream = denoiser.stream(16000);
    const parts = [stream.push(hum.subarray(0, 7000)), stream.push(hum.subarray(7000)), stream.finish()];
    const tracked = denoiser.denoise(hum, 16000, { speechTrack: true }).speechTrack;
    const sampler = await Denoiser.create({ no_neural: true, iterations: 4, em_iterations: 2 });
    const { values, ...grid } = sampler.denoise(hum, 22050, { gainStd: true }).gainStd;
    const sampled = sampler.stream(22050, 1, { gainStd: true });
    const deviations = [() => sampled.push(hum), () => sampled.finish()].map((work) => (work(), sampled.takeGainStd().values[0]));
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
      plain: (await denoise(hum, 16000, { quality: "fast" })).length,
      floor: (await settings({ floor_db: -20 })).gain.floor_db,
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
      ],
    };
  });
  assert.deepEqual(found.grid, { bins: 707, bin_hertz: 22050 / 1412, frame_seconds: 353 / 22050 });
  const frames = Math.ceil((16000 + 1412 - 353) / 353);
  assert.deepEqual(found.deviation, [true, 1, frames, true, true, true]);
  assert.deepEqual(found.track, [true, 1, 100, true]);
  assert.deepEqual([found.lengths, found.joined, found.samples, found.plain, found.floor], [[2, 2, 16000], 16000, 16000, 16000, -20]);
  for (const [index, words] of [
    "1000 Hz", "colour", "Float32Array", "enough", "floor", "floor_db is NaN", "mix is -Infinity", "4294983296 Hz", "4294967297 channels", "ended",
  ].entries()) {
    assert.ok(found.errors[index].includes(words) && found.errors[index], found.errors[index]);
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
