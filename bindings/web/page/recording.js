// A recording and what has been computed of it.
import { encodeWav, flacRate, readWav } from "./wav.js";

export class Recording {
  /** @param {Float32Array[]} channels samples before denoising, of which `missing` are not there, at the end */
  constructor(name, sampleRate, channels, missing = 0) {
    this.name = name;
    this.missingSeconds = missing / sampleRate;
    this.sampleRate = sampleRate;
    this.channels = channels;
    this.frames = channels[0].length;
    this.restart();
  }

  get seconds() {
    return this.frames / this.sampleRate;
  }

  get finished() {
    return this.ready === this.frames;
  }

  /** Forgets the result. */
  restart() {
    /** Samples after denoising, of which the first `ready` frames are valid. */
    this.speech = undefined;
    this.ready = 0;
    /** Sections with speech: { channel, start_seconds, end_seconds, level_dbfs, snr_db }. */
    this.segments = [];
    this.stats = undefined;
  }

  /** Appends completed samples. */
  append(speech) {
    this.speech ??= this.channels.map(() => new Float32Array(this.frames));
    for (const [channel, samples] of speech.entries()) this.speech[channel].set(samples, this.ready);
    this.ready += speech[0].length;
  }

  /**
   * The result, or the recording where `part` is "before", or the difference where it is "removed", as 16-bit WAV. A
   * restart while it is written does not change it.
   */
  wav(part, mix = 1) {
    const kept = 1 - mix;
    const { speech } = this;
    const read = (start, end) =>
      this.channels.map((samples, channel) => {
        const before = samples.subarray(start, end);
        if (part === "before") return before;
        const after = speech[channel].subarray(start, end);
        if (part === "removed") return before.map((x, n) => mix * (x - after[n]));
        return kept === 0 ? after : after.map((x, n) => x + kept * (before[n] - x));
      });
    return encodeWav({ channels: this.channels.length, frames: this.frames, sampleRate: this.sampleRate, read });
  }
}

/** A table of the sections with speech. */
export function segmentTable(segments) {
  const rows = segments.map(({ channel, start_seconds, end_seconds, level_dbfs, snr_db }) =>
    [channel, start_seconds.toFixed(2), end_seconds.toFixed(2), level_dbfs.toFixed(1), snr_db.toFixed(1)].join(","));
  return ["channel,start_seconds,end_seconds,level_dbfs,snr_db", ...rows, ""].join("\r\n");
}

/** Samples of other formats than WAV: those that the browser plays, at 48 kHz where it does not report the rate. */
async function decodeOther(file) {
  const bytes = await file.arrayBuffer();
  const context = new OfflineAudioContext(1, 1, flacRate(bytes) ?? 48000);
  const buffer = await context.decodeAudioData(bytes);
  const channels = Array.from({ length: buffer.numberOfChannels }, (_, channel) => buffer.getChannelData(channel));
  return { sampleRate: buffer.sampleRate, channels };
}

/** Decodes an audio or video file. */
export async function decode(file) {
  let found;
  try {
    found = (await readWav(file)) ?? (await decodeOther(file));
  } catch (error) {
    throw new Error(`cannot decode ${file.name}: expected audio that this browser plays (${error.message})`);
  }
  if (found.channels[0].length === 0) throw new Error(`${file.name} contains no samples`);
  return new Recording(file.name, found.sampleRate, found.channels, found.missing);
}

/** The name of a result: voice.mp3 becomes voice-denoised.wav. */
export const resultName = (name, part = "denoised", ending = "wav") => `${name.replace(/\.[^.]*$/, "")}-${part}.${ending}`;
