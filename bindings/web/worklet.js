// The audio thread's side of live.js. Bundlers copy files of audio threads as they are: build.sh writes native/worklet.js, this
// file with the two that it imports. The page loads it in parts.
import "./text.js";
import { NativeDenoiser, NativeLive, initSync } from "./native/alphamf_web.js";

const METERS_SECONDS = 0.1;
// Most audio threads have a millisecond clock only; its rounding averages out over many blocks.
const now = globalThis.performance ? () => performance.now() : () => Date.now();

let native; // exports of the module, compiled once for all nodes of the context
const denoisers = new Map(); // by options, for the built-in dictionary: their tables take a fraction of a second

/** A real-time denoiser. */
function liveOf({ channels, latency, controls, options, model }) {
  const live = (denoiser) => denoiser.live(sampleRate, channels, latency, controls);
  if (model) {
    const denoiser = new NativeDenoiser(options, model);
    try {
      return live(denoiser);
    } finally {
      denoiser.free();
    }
  }
  if (!denoisers.has(options)) denoisers.set(options, new NativeDenoiser(options));
  return live(denoisers.get(options));
}

class LiveProcessor extends AudioWorkletProcessor {
  #live;
  #memory;
  #channels;
  #capacity; // samples per channel
  #views = {}; // of the module's sample buffers
  #untilMeters = 0;
  #busy = 0; // ms since the last meters
  #speaking = false;

  constructor({ processorOptions }) {
    super();
    // The page would not receive the message of an exception.
    try {
      this.#start(processorOptions);
    } catch (error) {
      this.port.postMessage({ error: { message: String(error?.message ?? error), kind: error?.kind } });
    }
  }

  #start({ bytes, ...options }) {
    native ??= initSync({ module: new WebAssembly.Module(bytes) });
    this.#memory = native.memory;
    this.#live = liveOf(options);
    this.#channels = options.channels;
    this.#capacity = NativeLive.capacity();
    this.port.onmessage = ({ data }) => this.#receive(data);
    const started = { latency: this.#live.latency(), controls: this.#live.controls(), ranges: NativeLive.controlRanges() };
    this.port.postMessage({ started });
  }

  #receive({ controls, learn, reset, close }) {
    if (!this.#live) return;
    if (controls) {
      this.#live.setControls(controls.gain_exponent, controls.floor_db, controls.mix, controls.bypass);
      this.#live.setVoiceControls(controls.voice_threshold, controls.voice_hang_over_seconds);
    }
    if (learn !== undefined) this.#live.learnNoise(learn);
    if (reset) this.#live.reset();
    if (close) {
      this.#live.free();
      this.#live = undefined;
    }
  }

  /** Views of the input and output buffers. */
  #buffers() {
    const { buffer } = this.#memory;
    // Growing the memory, for another node, detaches the buffer.
    if (this.#views.buffer !== buffer) {
      const view = (pointer) => new Float32Array(buffer, pointer, this.#capacity * this.#channels);
      this.#views = { buffer, samples: view(this.#live.input()), done: view(this.#live.output()) };
    }
    return this.#views;
  }

  process([input], [output]) {
    if (!this.#live) return false;
    const began = now();
    const [width, length] = [this.#channels, output[0].length];
    const { samples, done } = this.#buffers();
    for (let start = 0; start < length; start += this.#capacity) {
      const count = Math.min(this.#capacity, length - start);
      for (let c = 0; c < width; c++) {
        const channel = input[c];
        for (let n = 0; n < count; n++) samples[n * width + c] = channel ? channel[start + n] : 0;
      }
      this.#live.process(count);
      for (let c = 0; c < width; c++) {
        for (let n = 0; n < count; n++) output[c][start + n] = done[n * width + c];
      }
    }
    this.#busy += now() - began;
    if (this.#live.speaking() !== this.#speaking) {
      this.#speaking = !this.#speaking;
      this.port.postMessage({ voice: { speaking: this.#speaking, time: currentTime } });
    }
    this.#untilMeters += length;
    if (this.#untilMeters >= METERS_SECONDS * sampleRate) this.#meter();
    return true;
  }

  #meter() {
    const load = (this.#busy / 1000) * (sampleRate / this.#untilMeters);
    const live = this.#live;
    const meters = {
      noise_dbfs: live.noiseDbfs(),
      speech_dbfs: live.speechDbfs(),
      gain_db: live.gainDb(),
      speech_probability: live.speechProbability(),
      load,
    };
    this.port.postMessage({ meters });
    this.#untilMeters = this.#busy = 0;
  }
}

registerProcessor("alphamf-live", LiveProcessor);
