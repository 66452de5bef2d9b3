// Denoises recordings chunk by chunk. Receives { start }, { push }, { finish }, { settings }, each with the `id` of its task, and
// posts { seconds }, { output, segments, stats }, { settings } or { error } with the same `id`.
import { Denoiser, settings } from "./index.js";

const REPORT_MS = 200;

let denoiser; // of the last options
let made; // those options, as JSON
let stream; // { id, stream }
const failed = new Set(); // tasks that get no further answers

async function begin(id, { sampleRate, channels, options }) {
  stream?.stream.free();
  stream = undefined;
  const wanted = JSON.stringify(options);
  if (made !== wanted) {
    denoiser?.free();
    [denoiser, made] = [undefined, undefined];
    denoiser = await Denoiser.create(options);
    made = wanted;
  }
  stream = { id, stream: denoiser.stream(sampleRate, channels, { speechTrack: true }) };
}

/** Posts the completed seconds, a few times a second. */
function progress(id) {
  let last = performance.now();
  return (seconds) => {
    if (performance.now() - last < REPORT_MS) return;
    last = performance.now();
    self.postMessage({ id, seconds });
  };
}

async function handle({ id, start, push, finish, settings: options }) {
  if (options) return { settings: await Promise.all(options.map((options) => settings(options))) };
  if (start) return begin(id, start);
  if (stream?.id !== id) return undefined; // superseded
  const report = progress(id);
  const { speech } = push ? stream.stream.push(push, report) : stream.stream.finish(report);
  const segments = stream.stream.takeSpeechTrack().flatMap((track, n) => track.segments.map((segment) => ({ channel: n + 1, ...segment })));
  return { output: speech, segments, stats: finish ? stream.stream.stats : undefined };
}

// One message after another: `begin` waits for the module.
let queue = Promise.resolve();
self.onmessage = ({ data }) => {
  queue = queue.then(async () => {
    if (failed.has(data.id)) return;
    try {
      const answer = await handle(data);
      if (answer) self.postMessage({ id: data.id, ...answer }, (answer.output ?? []).map((samples) => samples.buffer));
    } catch (error) {
      failed.add(data.id);
      self.postMessage({ id: data.id, error: String(error?.message ?? error) });
    }
  });
};
