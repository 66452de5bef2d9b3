// Causal denoising as a Web Audio node; index.d.ts is its documentation.
const DEFAULTS = {
  gain_exponent: 1,
  floor_db: -45,
  mix: 1,
  bypass: false,
  voice_threshold: 0.5,
  voice_hang_over_seconds: 0.3,
};

function checked(controls) {
  const given = Object.entries(controls).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    if (!(name in DEFAULTS)) throw new TypeError(`unknown control ${name}: expected ${Object.keys(DEFAULTS).join(", ")}`);
    if (typeof value !== typeof DEFAULTS[name] || Number.isNaN(value)) {
      throw new TypeError(`${name}: expected a ${typeof DEFAULTS[name]}`);
    }
  }
  return Object.fromEntries(given);
}

export class LiveNode extends AudioWorkletNode {
  #latency;
  #controls;
  #meters;
  #speaking = false;

  /** @param {object} start what the audio thread starts with: bytes, channels, latency, controls, options, model */
  constructor(context, start, controls) {
    super(context, "alphamf-live", {
      numberOfInputs: 1,
      numberOfOutputs: 1,
      outputChannelCount: [start.channels],
      channelCount: start.channels,
      channelCountMode: "explicit",
      processorOptions: start,
    });
    this.#controls = controls;
  }

  /** Resolves once the audio thread runs; rejects with its error. */
  started() {
    return new Promise((resolve, reject) => {
      this.onprocessorerror = () => reject(new Error("audio thread failed"));
      this.port.onmessage = ({ data: { latency, meters, voice, error } }) => {
        if (error !== undefined) reject(new Error(error));
        if (latency !== undefined) {
          this.#latency = latency;
          resolve(this);
        }
        if (meters) {
          this.#meters = meters;
          this.dispatchEvent(new CustomEvent("meters", { detail: meters }));
        }
        if (voice) {
          this.#speaking = voice.speaking;
          this.dispatchEvent(new CustomEvent("voice", { detail: voice }));
        }
      };
    });
  }

  get latency() {
    return this.#latency;
  }

  get controls() {
    return { ...this.#controls };
  }

  get meters() {
    return this.#meters;
  }

  get speaking() {
    return this.#speaking;
  }

  set(controls) {
    Object.assign(this.#controls, checked(controls));
    this.port.postMessage({ controls: this.#controls });
  }

  learnNoise(seconds) {
    this.port.postMessage({ learn: Number(seconds) });
  }

  reset() {
    this.port.postMessage({ reset: true });
  }

  close() {
    this.disconnect();
    this.port.postMessage({ close: true });
  }
}

const ready = new WeakMap(); // contexts with the processor registered, or being registered

/** Registers the processor, once; a failure is retried at the next call. */
function register(context) {
  if (!ready.has(context)) {
    const added = context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url));
    ready.set(context, added.catch((error) => (ready.delete(context), Promise.reject(error))));
  }
  return ready.get(context);
}

/** Implements `createLiveNode` of index.js, which passes the bytes of the module. */
export async function createLive(context, bytes, { channels = 1, latency = 16, model, no_neural = false, ...given } = {}) {
  const controls = { ...DEFAULTS, ...checked(given) };
  await register(context);
  const start = {
    bytes,
    channels,
    latency,
    controls: JSON.stringify(controls),
    options: JSON.stringify({ no_neural }),
    model,
  };
  return new LiveNode(context, start, controls).started();
}
