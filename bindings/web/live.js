// Sound as it comes, through a node of Web Audio; index.d.ts says what everything means.
const DEFAULTS = { strength: 1, floor_db: -45, mix: 1, bypass: false };

function checked(controls) {
  const given = Object.entries(controls).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    if (!(name in DEFAULTS)) throw new TypeError(`${name} is no control: expected ${Object.keys(DEFAULTS).join(", ")}`);
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

  /** @param {object} inside what the thread of audio is to start with */
  constructor(context, inside, controls) {
    super(context, "alphamf-live", {
      numberOfInputs: 1,
      numberOfOutputs: 1,
      outputChannelCount: [inside.channels],
      channelCount: inside.channels,
      channelCountMode: "explicit",
      processorOptions: inside,
    });
    this.#controls = controls;
  }

  /** Until the thread of audio has started, or has told why it cannot. */
  started() {
    return new Promise((resolve, reject) => {
      this.onprocessorerror = () => reject(new Error("the thread of audio has failed"));
      this.port.onmessage = ({ data: { latency, meters, error } }) => {
        if (error !== undefined) reject(new Error(error));
        if (latency !== undefined) {
          this.#latency = latency;
          resolve(this);
        }
        if (meters) {
          this.#meters = meters;
          this.dispatchEvent(new CustomEvent("meters", { detail: meters }));
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

const ready = new WeakMap(); // contexts whose thread of audio knows the processor

/** See `createLiveNode` in index.js, which knows which module this browser runs. */
export async function createLive(context, bytes, { channels = 1, latency = 16, model, no_neural = false, ...given } = {}) {
  const controls = { ...DEFAULTS, ...checked(given) };
  if (!ready.has(context)) ready.set(context, context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url)));
  await ready.get(context);
  const inside = {
    bytes: await bytes,
    channels,
    latency,
    controls: JSON.stringify(controls),
    options: JSON.stringify({ no_neural }),
    model,
  };
  return new LiveNode(context, inside, controls).started();
}
