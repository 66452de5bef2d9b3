// Audio thread of a recording: posts its input in pieces of 0.1 s until it is finished.
class Recorder extends AudioWorkletProcessor {
  #part = new Float32Array(Math.round(0.1 * sampleRate));
  #filled = 0;
  #finished = false;

  constructor() {
    super();
    this.port.onmessage = () => {
      this.#finished = true;
      this.port.postMessage(this.#part.slice(0, this.#filled));
      this.port.postMessage(null);
    };
  }

  process([input]) {
    if (this.#finished) return false;
    for (const sample of input[0] ?? []) {
      this.#part[this.#filled++] = sample;
      if (this.#filled === this.#part.length) {
        this.port.postMessage(this.#part);
        this.#filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("recorder", Recorder);
