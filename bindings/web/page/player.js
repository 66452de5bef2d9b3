// Plays a recording before and after denoising in step, so that one can switch between them while it plays.

const CHUNK_SECONDS = 0.5;
const AHEAD_SECONDS = 2.5; // background pages run their timers once a second
const FADE_SECONDS = 0.01;

/** Dispatches `change` when it starts, stops, seeks or switches. */
export class Player extends EventTarget {
  #recording;
  #context; // of the recording's sample rate
  #gains; // of the recording before and after denoising
  #queued = []; // { node, when, from, frames } that were scheduled
  #next; // frame to schedule next, and when
  #timer;
  #frame = 0; // where it stands while it does not play
  #part = "after";
  #kept = 0;
  loop; // { start, end }, frames, or undefined

  load(recording) {
    this.#halt();
    this.#context?.close();
    this.#context = undefined;
    this.#recording = recording;
    this.#frame = 0;
    this.loop = undefined;
    this.#changed();
  }

  get playing() {
    return this.#timer !== undefined;
  }

  get part() {
    return this.#part;
  }

  /** The signal that is played: "before", "after" or "removed". */
  set part(part) {
    this.#part = part;
    this.#mix();
    // What was scheduled may be older than the result.
    if (this.playing && !this.#recording.finished) this.seek(this.frame);
    this.#changed();
  }

  /** Fraction of the removed signal that is mixed back into the result, 0 to 1. */
  set kept(kept) {
    this.#kept = kept;
    this.#mix();
  }

  /** The frame that is played now. */
  get frame() {
    if (!this.playing) return this.#frame;
    const { currentTime, outputLatency = 0 } = this.#context;
    const now = currentTime - outputLatency;
    while (this.#queued.length > 1 && this.#queued[1].when <= now) this.#queued.shift();
    const [first] = this.#queued;
    if (!first) return this.#frame;
    const past = Math.round((now - first.when) * this.#recording.sampleRate);
    return first.from + Math.max(0, Math.min(first.frames, past));
  }

  /** Frames that can be played: what is denoised, or everything of the recording itself. */
  get #end() {
    return this.#part === "before" ? this.#recording.frames : this.#recording.ready;
  }

  async play() {
    if (!this.#recording || this.playing || this.#end === 0) return;
    if (this.#frame >= this.#end) this.#frame = 0;
    if (this.loop && (this.#frame < this.loop.start || this.#frame >= this.loop.end)) this.#frame = this.loop.start;
    this.#context ??= this.#open();
    const context = this.#context;
    this.#timer = setInterval(() => this.#schedule(), 100);
    this.#changed();
    await context.resume();
    if (context !== this.#context || !this.playing) return;
    this.#next = { frame: this.#frame, when: context.currentTime + 0.03 };
    this.#schedule();
  }

  pause() {
    if (!this.playing) return;
    this.#halt();
    this.#changed();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  seek(frame) {
    if (!this.#recording) return;
    const resume = this.playing;
    this.#halt();
    this.#frame = Math.max(0, Math.min(Math.round(frame), this.#recording.frames));
    if (resume) this.play();
    this.#changed();
  }

  #open() {
    let context;
    try {
      context = new AudioContext({ sampleRate: this.#recording.sampleRate });
    } catch {
      context = new AudioContext(); // a rate that the device does not take: chunks are resampled
    }
    this.#gains = ["before", "after"].map(() => {
      const gain = new GainNode(context, { gain: 0 });
      gain.connect(context.destination);
      return gain;
    });
    this.#mix(context, true);
    return context;
  }

  #mix(context = this.#context, at_once = false) {
    if (!context) return;
    const kept = this.#kept;
    const levels = { before: [1, 0], after: [kept, 1 - kept], removed: [1 - kept, kept - 1] }[this.#part];
    for (const [n, { gain }] of this.#gains.entries()) {
      if (at_once) gain.value = levels[n];
      else gain.setTargetAtTime(levels[n], context.currentTime, FADE_SECONDS / 3);
    }
  }

  #schedule() {
    if (!this.#next) return;
    const { channels, sampleRate } = this.#recording;
    const context = this.#context;
    // A page that was suspended resumes now.
    if (this.#next.when < context.currentTime) this.#next.when = context.currentTime + 0.03;
    while (this.#next.when < context.currentTime + AHEAD_SECONDS) {
      if (this.loop && this.#next.frame >= this.loop.end) this.#next.frame = this.loop.start;
      const from = this.#next.frame;
      const limit = Math.min(this.#end, this.loop?.end ?? Infinity, from + Math.round(CHUNK_SECONDS * sampleRate));
      const frames = limit - from;
      if (frames <= 0) break;
      for (const [n, source] of [channels, this.#recording.speech].entries()) {
        if (!source) continue;
        const buffer = new AudioBuffer({ length: frames, numberOfChannels: channels.length, sampleRate });
        for (const [channel, samples] of source.entries()) buffer.copyToChannel(samples.subarray(from, limit), channel);
        const node = new AudioBufferSourceNode(context, { buffer });
        node.connect(this.#gains[n]);
        node.start(this.#next.when);
        this.#queued.push({ node, when: this.#next.when, from, frames });
      }
      this.#next = { frame: limit, when: this.#next.when + frames / sampleRate };
    }
    if (this.frame >= this.#end && !this.loop) this.pause();
  }

  #halt() {
    if (!this.playing) return;
    this.#frame = this.frame;
    clearInterval(this.#timer);
    this.#timer = this.#next = undefined;
    for (const { node } of this.#queued) node.stop();
    this.#queued = [];
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
