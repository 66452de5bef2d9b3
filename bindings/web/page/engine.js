// Denoising in a worker: chunks go in as results come out, so that a task can be cancelled and needs little memory.

const CHUNK_SECONDS = 4;
const IN_FLIGHT = 2; // chunks, so that the worker never waits

export class Cancelled extends Error {}

export class Engine {
  #worker;
  #tasks = new Map(); // by id: functions that take the worker's messages
  #id = 0;

  #post(message, transfer = []) {
    if (!this.#worker) {
      this.#worker = new Worker("./stream-worker.js", { type: "module" });
      this.#worker.onmessage = ({ data }) => this.#tasks.get(data.id)?.(data);
      this.#worker.onerror = (event) => {
        const error = event.message || "the worker does not start";
        this.#worker.terminate();
        this.#worker = undefined;
        for (const task of [...this.#tasks.values()]) task({ error });
      };
    }
    this.#worker.postMessage(message, transfer);
  }

  /** All settings that each of several options stands for. */
  settings(options) {
    const id = ++this.#id;
    return new Promise((resolve, reject) => {
      this.#tasks.set(id, ({ settings, error }) => {
        this.#tasks.delete(id);
        if (error) reject(new Error(error));
        else resolve(settings);
      });
      this.#post({ id, settings: options });
    });
  }

  /** Fills a `Recording`. `onProgress` receives the completed fraction. Rejects with `Cancelled` once `signal` is aborted. */
  denoise(recording, options, { onProgress, signal }) {
    // Another task may fill the recording already.
    if (signal.aborted) return Promise.reject(new Cancelled());
    const id = ++this.#id;
    const { sampleRate, channels, frames } = recording;
    const chunk = CHUNK_SECONDS * sampleRate;
    recording.restart();
    return new Promise((resolve, reject) => {
      let sent = 0;
      let completed = 0;
      const end = (settle, value) => {
        this.#tasks.delete(id);
        signal.removeEventListener("abort", abort);
        settle(value);
      };
      const abort = () => end(reject, new Cancelled());
      const send = () => {
        if (sent >= frames) return;
        const push = channels.map((samples) => samples.slice(sent, sent + chunk));
        sent += chunk;
        this.#post({ id, push }, push.map((samples) => samples.buffer));
        if (sent >= frames) this.#post({ id, finish: true });
      };
      signal.addEventListener("abort", abort);
      this.#tasks.set(id, ({ seconds, output, segments, stats, error }) => {
        if (error) return end(reject, new Error(error));
        if (seconds !== undefined) return onProgress((completed = Math.max(completed, Math.min(1, seconds / recording.seconds))));
        recording.append(output);
        recording.segments.push(...segments);
        if (stats) recording.stats = stats;
        completed = Math.max(completed, recording.ready / frames);
        onProgress(completed);
        if (stats) end(resolve, recording);
        else send();
      });
      this.#post({ id, start: { sampleRate, channels: channels.length, options } });
      for (let n = 0; n < IN_FLIGHT; n++) send();
    });
  }
}
