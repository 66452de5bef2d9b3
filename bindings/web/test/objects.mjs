// Objects of the package that are freed or at work: node --test test/objects.mjs, after build.sh
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { gunzipSync } from "node:zlib";
import { Denoiser, Live, Stream, createLiveNode, denoise, initialize, settings } from "../index.js";

// Node has no fetch of files.
await initialize(gunzipSync(readFileSync(new URL("../native/alphamf_web_bg.wasm.gz", import.meta.url))));
const denoiser = await Denoiser.create({ quality: "fast", no_neural: true });
const noise = Float32Array.from({ length: 160000 }, (_, n) => 0.1 * Math.sin(n * n));

/** Arguments of the methods that need some. */
const ARGUMENTS = { push: [noise], process: [noise], set: [{ mix: 1 }], learnNoise: [1], stream: [16000], live: [16000], denoise: [noise, 16000] };

/** All methods and getters, but `free`, as functions of an object. */
function membersOf(type) {
  const members = Object.entries(Object.getOwnPropertyDescriptors(type.prototype));
  return members.filter(([name]) => !["constructor", "free"].includes(name)).map(([name, { get }]) => {
    return [name, (object) => (get ? object[name] : object[name](...(ARGUMENTS[name] ?? [])))];
  });
}

for (const [name, make] of [
  ["denoiser", () => Denoiser.create({ quality: "fast", no_neural: true })],
  ["live denoiser", () => denoiser.live(16000)],
  ["stream", () => denoiser.stream(16000, 1, { gainStd: true, speechTrack: true })],
]) {
  test(`a ${name} that has been freed refuses every call but that of free`, async () => {
    const object = await make();
    const members = membersOf(object.constructor);
    assert.ok(members.length >= 3 && [Denoiser, Live, Stream].includes(object.constructor));
    object.free();
    object.free();
    for (const [member, use] of members) {
      assert.throws(() => use(object), { kind: "input", message: `the ${name} has been freed` }, member);
    }
    object.free();
  });
}

test("samples that are missing or of another kind are named", async () => {
  const stream = denoiser.stream(16000);
  const wanted = { kind: "input", message: "samples: expected a Float32Array, or an array of them" };
  for (const wrong of [undefined, null, 5, "abc", [], [0, 0], new Int16Array(9), new Float64Array(9), new ArrayBuffer(8), {}, [noise, undefined]]) {
    assert.throws(() => denoiser.denoise(wrong, 16000), wanted);
    assert.throws(() => stream.push(wrong), wanted);
    await assert.rejects(denoise(wrong, 16000, { quality: "fast", no_neural: true }), wanted);
  }
  stream.free();
  for (const wrong of [5, "abc", [], [0, 0], new Int16Array(9), [noise, undefined]]) {
    assert.throws(() => denoiser.stream(16000, 1, { noise: wrong }), { ...wanted, message: wanted.message.replace("samples", "noise") });
  }
});

test("a dictionary that is no Uint8Array is named", async () => {
  for (const model of [new ArrayBuffer(8), "x.safetensors", [1, 2], {}]) {
    const wanted = { kind: "model", message: "model: expected a Uint8Array" };
    await assert.rejects(Denoiser.create({ model }), wanted);
    await assert.rejects(createLiveNode({}, { model }), wanted);
  }
});

test("controls out of range are clamped, infinite ones too", () => {
  const live = denoiser.live(16000);
  for (const [controls, found] of [
    [{ mix: Infinity, floor_db: -Infinity }, { mix: 1, floor_db: -100 }],
    [{ mix: -Infinity, floor_db: Infinity }, { mix: 0, floor_db: 0 }],
    [{ mix: 7, gain_exponent: 1e300 }, { mix: 1, gain_exponent: 2 }],
  ]) {
    live.set(controls);
    for (const name of Object.keys(found)) assert.equal(live.controls[name], found[name], name);
  }
  assert.throws(() => live.set({ mix: NaN }), { kind: "setting", message: "mix is NaN; expected a finite number" });
  live.free();
});

test("a live node has a whole number of channels", async () => {
  for (const channels of [0, 1.5, "2", NaN, null]) {
    const text = typeof channels === "string" ? `"${channels}"` : channels;
    const refused = { kind: "input", message: `${text} channels: expected a whole number from 1 to 256` };
    await assert.rejects(createLiveNode({}, { channels }), refused);
  }
  const refused = { kind: "input", message: 'sample rate of "16000" Hz: expected a whole number from 8000 to 192000' };
  assert.throws(() => denoiser.stream("16000"), refused);
});

test("an unknown option is answered with those that there are", async () => {
  const named = { kind: "setting", message: /^option is colour; expected quality, .*, seed, no_neural, .*, impulses$/ };
  await assert.rejects(Denoiser.create({ colour: 1 }), named);
  await assert.rejects(denoise(noise, 16000, { colour: 1 }), named);
  await assert.rejects(Denoiser.create({ no_dither: true }), { kind: "setting", message: /`no_dither` has no effect on samples that are floats/ });
});

test("an option that is a function, and options that have no names, are refused", async () => {
  const kind = "setting";
  for (const [value, text] of [[() => 1, "() => 1"], [Symbol("x"), "Symbol(x)"]]) {
    const named = { kind, message: `mix is ${text}; expected a number, a string or a boolean` };
    await assert.rejects(Denoiser.create({ mix: value }), named);
    await assert.rejects(denoise(noise, 16000, { mix: value }), named);
    await assert.rejects(settings({ mix: value }), named);
    await assert.rejects(createLiveNode({}, { mix: value }), named);
    assert.throws(() => denoiser.live(16000, 1, { mix: value }), named);
    const live = denoiser.live(16000);
    assert.throws(() => live.set({ mix: value }), named);
    live.free();
  }
  // Their members, if they have any, are not those meant.
  for (const wrong of [() => ({ mix: 1 }), "fast", "", 5, true, ["fast"], new Map([["quality", "fast"]])]) {
    const text = typeof wrong === "string" ? `"${wrong}"` : String(wrong);
    const refused = { kind, message: `options are ${text}; expected an object of names and values` };
    await assert.rejects(Denoiser.create(wrong), refused);
    await assert.rejects(denoise(noise, 16000, wrong), refused);
    await assert.rejects(settings(wrong), refused);
    await assert.rejects(createLiveNode({}, wrong), refused);
    for (const use of ["stream", "live"]) assert.throws(() => denoiser[use](16000, 1, wrong), refused);
    assert.throws(() => denoiser.denoise(noise, 16000, wrong), refused);
    const live = denoiser.live(16000);
    assert.throws(() => live.set(wrong), refused);
    live.free();
  }
});

test("null, as undefined, stands for no options", async () => {
  assert.deepEqual(await settings(null), await settings());
  const plain = await Denoiser.create(null);
  assert.deepEqual(plain.denoise(noise, 16000, null).speech, plain.denoise(noise, 16000).speech);
  assert.deepEqual(await denoise(noise.subarray(0, 8000), 16000, null), await denoise(noise.subarray(0, 8000), 16000));
  assert.equal(plain.stream(16000, 1, null).latency, plain.stream(16000).latency);
  const live = plain.live(16000, 1, null);
  const { controls } = live;
  live.set(null);
  assert.deepEqual(live.controls, controls);
  // There is no context here; that is found after the options.
  await assert.rejects(createLiveNode({}, null), (error) => !/null|undefined/.test(error.message));
  for (const one of [live, plain]) one.free();
});

test("a stream refuses calls of its own progress callback, and goes on", () => {
  const [alone, watched] = [denoiser.stream(16000), denoiser.stream(16000)];
  let calls = 0;
  const onProgress = () => {
    calls++;
    for (const [member, use] of [...membersOf(Stream), ["free", (stream) => stream.free()]]) {
      assert.throws(() => use(watched), { kind: "input", message: "the stream is at work: its onProgress cannot use it" }, member);
    }
  };
  const parts = [alone.push(noise), alone.finish()];
  assert.deepEqual([watched.push(noise, onProgress), watched.finish(onProgress)], parts);
  assert.ok(calls > 1);
  assert.equal(watched.stats.samples, noise.length);
  // An error of the callback leaves the stream usable for what is there.
  const cancelled = denoiser.stream(16000);
  assert.throws(() => cancelled.push(noise, () => cancelled.latency), { kind: "input", message: /at work/ });
  assert.ok(cancelled.latency > 0);
  for (const stream of [alone, watched, cancelled]) stream.free();
});
