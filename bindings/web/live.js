// Causal denoising as a Web Audio node; index.d.ts is its documentation.
export class LiveNode extends AudioWorkletNode {
  #latency;
  #controls;
  #ranges; // lowest and highest controls
  #meters;
  #speaking = false;

  /** @param {object} start what the audio thread starts with: bytes, channels, latency, controls, options, model */
  constructor(context, start) {
    super(context, "alphamf-live", {
      numberOfInputs: 1,
      numberOfOutputs: 1,
      outputChannelCount: [start.channels],
      channelCount: start.channels,
      channelCountMode: "explicit",
      processorOptions: start,
    });
  }

  /** Resolves once the audio thread runs; rejects with its error. */
  started() {
    return new Promise((resolve, reject) => {
      this.onprocessorerror = () => reject(new Error("audio thread failed"));
      this.port.onmessage = ({ data: { started, meters, voice, error } }) => {
        if (error) reject(Object.assign(new Error(error.message), { kind: error.kind }));
        if (started) {
          this.#latency = started.latency;
          this.#controls = JSON.parse(started.controls);
          this.#ranges = JSON.parse(started.ranges);
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
    const present = this.#controls;
    const [least, most] = this.#ranges;
    const given = Object.entries(controls ?? {}).filter(([, value]) => value !== undefined);
    const inRange = given.map(([name, value]) => {
      if (!Object.hasOwn(present, name)) throw invalid(`control is ${name}; expected ${Object.keys(present).join(", ")}`);
      if (typeof value !== typeof present[name] || Number.isNaN(value)) {
        const text = typeof value === "string" ? JSON.stringify(value) : String(value);
        throw invalid(`${name} is ${text}; expected ${typeof present[name] === "number" ? "a number" : "true or false"}`);
      }
      return [name, typeof value === "number" ? Math.min(Math.max(value, least[name]), most[name]) : value];
    });
    Object.assign(present, Object.fromEntries(inRange));
    this.port.postMessage({ controls: present });
  }

  learnNoise(seconds) {
    if (!(seconds >= 0)) throw invalid(`seconds is ${seconds}; expected 0 or more`);
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

const invalid = (message) => Object.assign(new TypeError(message), { kind: "setting" });

const ready = new WeakMap(); // contexts with the processor registered, or being registered

/** Registers the processor, once; a failure is retried at the next call. */
function register(context, worklet) {
  if (!ready.has(context)) {
    const added = context.audioWorklet.addModule(worklet ?? new URL("./native/worklet.js", import.meta.url));
    ready.set(context, added.catch((error) => (ready.delete(context), Promise.reject(error))));
  }
  return ready.get(context);
}

/** Implements `createLiveNode` of index.js. */
export async function createLive(context, start, worklet) {
  await register(context, worklet);
  return new LiveNode(context, start).started();
}
