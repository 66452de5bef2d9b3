// The npm package: alphamf in WebAssembly. index.d.ts is its documentation.
import load, { NativeDenoiser, settingsOf } from "./native/alphamf_web.js";

// A module with one function that needs 128-bit SIMD: `() -> v128`, i8x16.popcnt(i8x16.splat(0)).
const SIMD_PROBE = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

/** Address of the module for this browser: SIMD and gzip where it supports both. */
export function moduleAddress() {
  return globalThis.DecompressionStream && WebAssembly.validate(Uint8Array.from(SIMD_PROBE))
    ? new URL("./native/alphamf_web_bg.wasm.gz", import.meta.url)
    : new URL("./native/alphamf_web_plain_bg.wasm", import.meta.url);
}

async function fetchModule() {
  const response = await fetch(moduleAddress());
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
  const bytes = await response.arrayBuffer();
  // A server may declare the encoding of .gz files: then the browser has decompressed it already.
  const [first, second] = new Uint8Array(bytes, 0, 2);
  if (first !== 0x1f || second !== 0x8b) return bytes;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

let bytes;

/** Bytes of the module, loaded once; a failed download is retried at the next call. */
function moduleBytes() {
  bytes ??= fetchModule().catch((error) => ((bytes = undefined), Promise.reject(error)));
  return bytes;
}

let loaded;

/** Loads the module, once. */
export function initialize(source) {
  loaded ??= load({ module_or_path: source ?? fetchModule() }).catch((error) => ((loaded = undefined), Promise.reject(error)));
  return loaded;
}

/** Creates a causal denoiser as a Web Audio node. */
export async function createLiveNode(context, options) {
  const { source, worklet, model, channels = 1, latency, ...given } = named(options);
  countOf(channels);
  checkModel(model);
  const { purpose, strength, no_neural, alpha_speech, alpha_noise, ...controls } = given;
  const fixed = jsonOf({ purpose, strength, no_neural, alpha_speech, alpha_noise });
  const start = { model, channels, latency, options: fixed, controls: jsonOf(controls) };
  // Imported on demand: workers have no AudioWorkletNode.
  const { createLive } = await import("./live.js");
  return createLive(context, { ...start, bytes: source ?? (await moduleBytes()) }, worklet);
}

/** An error with the member `kind` of the module's own errors. */
const failure = (kind, error) => Object.assign(error, { kind });

function channelsOf(samples, name = "samples") {
  const channels = samples instanceof Float32Array ? [samples] : Array.from(samples ?? []);
  if (channels.length === 0 || !channels.every((channel) => channel instanceof Float32Array)) {
    throw failure("input", new TypeError(`${name}: expected a Float32Array, or an array of them`));
  }
  try {
    // Throws for an array without memory. Thrown in the module, which does not unwind, it would lock a stream for good.
    for (const channel of channels) channel.keys();
  } catch {
    throw failure("input", new TypeError(`${name}: the array is detached, as after a transfer to another thread`));
  }
  return channels;
}

// Integers are passed to the module modulo 2^32.
function within(name, value, least, most) {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw failure("input", new RangeError(`${name}: expected a whole number from ${least} to ${most}`));
  }
  return value;
}

/** Refuses a dictionary that the module would read as an empty one. */
function checkModel(model) {
  if (model != null && !(model instanceof Uint8Array)) throw failure("model", new TypeError("model: expected a Uint8Array"));
}

/** Refuses names that a function does not take. */
function noneOf(unknown) {
  const [name] = Object.keys(unknown);
  if (name !== undefined) throw failure("setting", new TypeError(`unknown option ${name}: those of the denoiser belong to Denoiser.create`));
}

/** A value in a message: a string of digits is no number. */
const shown = (value) => (typeof value === "string" ? JSON.stringify(value) : String(value));
const countOf = (channels) => within(`${shown(channels)} channels`, channels, 1, 256);
const rateOf = (sampleRate) => within(`sample rate of ${shown(sampleRate)} Hz`, sampleRate, 8000, 192000);

/** Options by name, null for none. A function and a Map would count as none, a string as its letters. */
function named(options) {
  if (options != null && (typeof options !== "object" || Symbol.iterator in options)) {
    throw failure("setting", new TypeError(`options are ${shown(options)}; expected an object of names and values`));
  }
  return options ?? {};
}

/** Options as JSON, which has no NaN, no Infinity and no functions, and a BigInt as a number. */
function jsonOf(options) {
  const members = Object.entries(named(options)).filter(([, value]) => value !== undefined);
  const texts = members.map(([name, value]) => {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw failure("setting", new RangeError(`${name} is ${value}; expected a finite number`));
    }
    if (typeof value === "bigint") return `${JSON.stringify(name)}:${value}`;
    const text = JSON.stringify(value);
    if (text === undefined) {
      throw failure("setting", new TypeError(`${name} is ${String(value)}; expected a number, a string or a boolean`));
    }
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${texts}}`;
}

/** Runs work with a callback, which cancels it by throwing, and throws that error. */
function withProgress(onProgress, work) {
  if (!onProgress) return work();
  let thrown;
  const progress = (done) => {
    try {
      onProgress(done);
    } catch (error) {
      thrown ??= { error };
      throw error;
    }
  };
  try {
    return work(progress);
  } catch (error) {
    throw thrown ? thrown.error : error;
  }
}

/** An object in the module, until it is freed. The module itself does not name what is freed or at work. */
class Handle {
  #name;
  #native;
  #busy = false;

  constructor(name, native) {
    this.#name = name;
    this.#native = native;
  }

  get native() {
    if (!this.#native) throw failure("input", new Error(`the ${this.#name} has been freed`));
    if (this.#busy) throw failure("input", new Error(`the ${this.#name} is at work: its onProgress cannot use it`));
    return this.#native;
  }

  /** Runs work that calls back; the callback cannot use the object. */
  during(work) {
    const { native } = this;
    this.#busy = true;
    try {
      return work(native);
    } finally {
      this.#busy = false;
    }
  }

  free() {
    if (!this.#native) return;
    this.native.free();
    this.#native = undefined;
  }
}

/** All settings that options stand for. */
export async function settings(options) {
  await initialize();
  return JSON.parse(settingsOf(jsonOf(options)));
}

export class Denoiser {
  #handle;

  constructor(native) {
    this.#handle = new Handle("denoiser", native);
  }

  static async create(given) {
    const { model, ...options } = named(given);
    checkModel(model);
    await initialize();
    return new Denoiser(new NativeDenoiser(jsonOf(options), model));
  }

  stream(sampleRate, channels = 1, options) {
    const { gainStd = false, speechTrack = false, noise, ...unknown } = named(options);
    noneOf(unknown);
    const session = this.#handle.native.session(rateOf(sampleRate), countOf(channels), gainStd, speechTrack);
    if (noise) session.setNoiseProfile(this.#handle.native, channelsOf(noise, "noise"), sampleRate);
    return new Stream(session, channels);
  }

  denoise(samples, sampleRate, options) {
    const { onProgress, ...more } = named(options);
    const channels = channelsOf(samples);
    const { gainStd, speechTrack } = more;
    const stream = this.stream(sampleRate, channels.length, more);
    try {
      const seconds = channels[0].length / sampleRate;
      const progress = onProgress && ((done) => onProgress(seconds > done ? done / seconds : 1));
      const parts = [stream.push(channels, progress), stream.finish(progress)];
      const joined = (name) => channels.map((_, index) => concat(parts.map((part) => part[name][index])));
      return {
        speech: joined("speech"),
        residual: joined("residual"),
        stats: stream.stats,
        gainStd: gainStd ? stream.takeGainStd() : undefined,
        speechTrack: speechTrack ? stream.takeSpeechTrack() : undefined,
      };
    } finally {
      stream.free();
    }
  }

  live(sampleRate, channels = 1, options) {
    const { latency, ...controls } = named(options);
    return new Live(this.#handle.native.live(rateOf(sampleRate), countOf(channels), latency, jsonOf(controls)));
  }

  free() {
    this.#handle.free();
  }
}

export class Live {
  #handle;

  constructor(native) {
    this.#handle = new Handle("live denoiser", native);
  }

  process(samples) {
    const channels = channelsOf(samples);
    const done = this.#handle.native.processArrays(channels);
    return samples instanceof Float32Array ? done[0] : done;
  }

  set(controls) {
    // Values out of range are clamped; JSON has no infinite ones.
    const { MAX_VALUE } = Number;
    const finite = Object.entries(named(controls)).map(([name, value]) => {
      return [name, value === Infinity ? MAX_VALUE : value === -Infinity ? -MAX_VALUE : value];
    });
    this.#handle.native.set(jsonOf(Object.fromEntries(finite)));
  }

  get controls() {
    return JSON.parse(this.#handle.native.controls());
  }

  get meters() {
    const live = this.#handle.native;
    return {
      noise_dbfs: live.noiseDbfs(),
      speech_dbfs: live.speechDbfs(),
      gain_db: live.gainDb(),
      speech_probability: live.speechProbability(),
    };
  }

  get speaking() {
    return this.#handle.native.speaking();
  }

  get latency() {
    return this.#handle.native.latency();
  }

  events() {
    const numbers = this.#handle.native.takeEvents();
    return Array.from({ length: numbers.length / 2 }, (_, n) => ({ speaking: numbers[2 * n] === 1, sample: numbers[2 * n + 1] }));
  }

  learnNoise(seconds) {
    if (!(seconds >= 0)) throw failure("setting", new RangeError(`seconds is ${seconds}; expected 0 or more`));
    this.#handle.native.learnNoise(seconds);
  }

  reset() {
    this.#handle.native.reset();
  }

  free() {
    this.#handle.free();
  }
}

export class Stream {
  #handle;
  #channels;

  constructor(session, channels) {
    this.#handle = new Handle("stream", session);
    this.#channels = channels;
  }

  /** Output of work of the session. */
  #output(onProgress, work) {
    const arrays = this.#handle.during((session) => withProgress(onProgress, (progress) => work(session, progress)));
    return { speech: arrays.slice(0, this.#channels), residual: arrays.slice(this.#channels) };
  }

  push(samples, onProgress) {
    const channels = channelsOf(samples);
    return this.#output(onProgress, (session, progress) => session.push(channels, progress));
  }

  finish(onProgress) {
    return this.#output(onProgress, (session, progress) => session.finish(progress));
  }

  takeGainStd() {
    const session = this.#handle.native;
    return {
      values: session.takeGainStd(),
      bins: session.bins(),
      bin_hertz: session.binHertz(),
      frame_seconds: session.frameSeconds(),
    };
  }

  takeSpeechTrack() {
    const parts = this.#handle.native.takeSpeechTrack();
    const tracks = [];
    for (let n = 0; n < parts.length; n += 2) tracks.push({ probability: parts[n], segments: segmentsOf(parts[n + 1]) });
    return tracks;
  }

  get stats() {
    return JSON.parse(this.#handle.native.statistics());
  }

  get latency() {
    return this.#handle.native.latency();
  }

  free() {
    this.#handle.free();
  }
}

function segmentsOf(numbers) {
  const segments = [];
  for (let n = 0; n < numbers.length; n += 4) {
    const [start_seconds, end_seconds, level_dbfs, snr_db] = numbers.subarray(n, n + 4);
    segments.push({ start_seconds, end_seconds, level_dbfs, snr_db });
  }
  return segments;
}

function concat(parts) {
  const all = new Float32Array(parts.reduce((length, part) => length + part.length, 0));
  let start = 0;
  for (const part of parts) {
    all.set(part, start);
    start += part.length;
  }
  return all;
}

export async function denoise(samples, sampleRate, given) {
  const { noise, onProgress, ...options } = named(given);
  const denoiser = await Denoiser.create(options);
  try {
    const { speech } = denoiser.denoise(samples, sampleRate, { noise, onProgress });
    return samples instanceof Float32Array ? speech[0] : speech;
  } finally {
    denoiser.free();
  }
}
