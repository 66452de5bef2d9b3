// The time axis that waveform and spectrograms share: zoom, playhead, selection, keyboard.
import { Pictures } from "./pictures.js";
import { clock, frequencyTicks, heightOf, peakText, timeTicks } from "./scale.js";

const MIN_SECONDS = 0.05; // in view
const SEEK_SECONDS = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10 };

const at = (id) => document.getElementById(id);

/** Dispatches `select` when the loop changes. */
export class Timeline extends EventTarget {
  #player;
  #pictures;
  #recording;
  #view = { start: 0, end: 1 }; // frames
  #kept = 0;
  #drag; // { from, moved }, frames
  selection; // { start, end }, frames

  constructor(player) {
    super();
    this.#player = player;
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    this.#pictures = new Pictures(
      { wave: at("wave"), before: at("before"), after: at("after") },
      () => ({ before: colour("--wave-before"), after: colour("--wave-after") }),
      (peak) => (at("peak").textContent = peakText(peak)),
    );
    this.#listen();
    const frame = () => {
      if (this.#recording && this.#player.playing) this.#follow();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    player.addEventListener("change", () => this.#place());
    new ResizeObserver(() => this.#resize()).observe(at("lanes"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#pictures.recolour());
  }

  show(recording) {
    this.#recording = recording;
    this.#view = { start: 0, end: recording.frames };
    this.select(undefined);
    this.#fit();
    this.#redraw();
  }

  /** The section in view. */
  get visible() {
    return { start: Math.round(this.#view.start), end: Math.round(this.#view.end) };
  }

  /** Draws everything again: the result was discarded. */
  again() {
    this.#redraw();
  }

  /** Draws what has been denoised since. */
  update() {
    this.#pictures.update();
    this.#markSpeech();
  }

  /** Fraction of the removed signal that is mixed into the result. */
  set kept(kept) {
    if (this.#kept === kept) return;
    this.#kept = kept;
    if (this.#recording) this.#redraw();
  }

  /** Zooms by `factor` around the playhead, or around a position of 0 to 1; and moves by a fraction of the view. */
  zoom(factor, around, move = 0) {
    if (!this.#recording) return;
    const { frames, sampleRate } = this.#recording;
    const { start, end } = this.#view;
    const head = (this.#player.frame - start) / (end - start);
    const centre = around ?? (head >= 0 && head <= 1 ? head : 0.5);
    const length = Math.min(frames, Math.max(MIN_SECONDS * sampleRate, (end - start) * factor));
    const wanted = start + centre * (end - start - length) + move * length;
    const first = Math.min(Math.max(0, wanted), frames - length);
    this.#view = { start: first, end: first + length };
    this.#redraw();
  }

  select(selection) {
    this.selection = selection;
    this.#player.loop = selection;
    this.#place();
    this.dispatchEvent(new Event("select"));
  }

  /** Resizes the canvases to the pixels of the screen. */
  #fit() {
    const ratio = Math.min(2, devicePixelRatio);
    for (const id of ["wave", "before", "after"]) {
      const canvas = at(id);
      const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    }
  }

  #resize() {
    if (!this.#recording || at("before").clientWidth === 0) return;
    this.#fit();
    this.#redraw();
  }

  #redraw() {
    if (at("before").width === 0) return;
    this.#pictures.show(this.#recording, this.#view, this.#kept);
    this.#axes();
    this.#markSpeech();
    this.#place();
  }

  /** Marks the sections with speech below the waveform. */
  #markSpeech() {
    const { sampleRate, segments } = this.#recording;
    const { start, end } = this.#view;
    const percent = (seconds) => Math.min(100, Math.max(0, (100 * (seconds * sampleRate - start)) / (end - start)));
    const marks = segments.flatMap(({ start_seconds, end_seconds }) => {
      const [left, right] = [percent(start_seconds), percent(end_seconds)];
      if (left === right) return [];
      const mark = document.createElement("span");
      Object.assign(mark.style, { left: `${left}%`, width: `${right - left}%` });
      return [mark];
    });
    at("speech-marks").replaceChildren(...marks);
  }

  #axes() {
    const { sampleRate } = this.#recording;
    const [start, end] = [this.#view.start / sampleRate, this.#view.end / sampleRate];
    const label = (text, style) => {
      const mark = document.createElement("span");
      mark.textContent = text;
      Object.assign(mark.style, style);
      return mark;
    };
    const count = Math.max(2, Math.floor(at("lanes").clientWidth / 90));
    const { step, ticks } = timeTicks(start, end, count);
    const inside = ticks.filter((tick) => tick <= end - 0.04 * (end - start));
    at("times").replaceChildren(...inside.map((tick) => label(clock(tick, step), { left: `${(100 * (tick - start)) / (end - start)}%` })));
    for (const id of ["before-axis", "after-axis"]) {
      const marks = frequencyTicks(sampleRate, at("before").clientHeight).map((hertz) =>
        label(`${hertz / 1000} kHz`, { bottom: `${100 * heightOf(hertz, sampleRate)}%` }));
      at(id).replaceChildren(...marks);
    }
    at("view").textContent = `${clock(start, step)} to ${clock(end, step)}`;
  }

  /** Keeps the playhead in view. */
  #follow() {
    const { start, end } = this.#view;
    const frame = this.#player.frame;
    const length = end - start;
    if (length < this.#recording.frames && (frame >= end || frame < start)) {
      const first = Math.min(Math.max(0, frame - 0.1 * length), this.#recording.frames - length);
      this.#view = { start: first, end: first + length };
      this.#redraw();
    }
    this.#place();
  }

  /** Places playhead and selection. */
  #place() {
    if (!this.#recording) return;
    const { start, end } = this.#view;
    const { sampleRate, seconds } = this.#recording;
    const percent = (frame) => (100 * (frame - start)) / (end - start);
    const head = percent(this.#player.frame);
    at("playhead").hidden = head < 0 || head > 100;
    at("playhead").style.left = `${head}%`;
    const selection = this.selection;
    at("selection").hidden = !selection || selection.end <= start || selection.start >= end;
    if (selection) {
      const [left, right] = [Math.max(0, percent(selection.start)), Math.min(100, percent(selection.end))];
      Object.assign(at("selection").style, { left: `${left}%`, width: `${right - left}%` });
    }
    const now = this.#player.frame / sampleRate;
    const text = `${clock(now, 0.1)} of ${clock(seconds)}`;
    const slider = at("timeline");
    if (at("time").textContent === text) return;
    at("time").textContent = text;
    slider.setAttribute("aria-valuemax", seconds.toFixed(1));
    slider.setAttribute("aria-valuenow", now.toFixed(1));
    slider.setAttribute("aria-valuetext", text);
  }

  #frameOf(event) {
    const box = at("timeline").getBoundingClientRect();
    const place = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return Math.round(this.#view.start + place * (this.#view.end - this.#view.start));
  }

  #listen() {
    const timeline = at("timeline");
    timeline.addEventListener("pointerdown", (event) => {
      if (!this.#recording || event.button !== 0) return;
      timeline.setPointerCapture(event.pointerId);
      this.#drag = { from: this.#frameOf(event), x: event.clientX, moved: false };
    });
    timeline.addEventListener("pointermove", (event) => {
      if (!this.#drag) return;
      this.#drag.moved ||= Math.abs(event.clientX - this.#drag.x) > 5;
      if (!this.#drag.moved) return;
      const to = this.#frameOf(event);
      this.select({ start: Math.min(this.#drag.from, to), end: Math.max(this.#drag.from, to) + 1 });
    });
    timeline.addEventListener("pointerup", (event) => {
      if (!this.#drag) return;
      const { from, moved } = this.#drag;
      this.#drag = undefined;
      const frame = moved ? this.selection.start : this.#frameOf(event);
      if (!moved && this.selection && !(from >= this.selection.start && from < this.selection.end)) this.select(undefined);
      this.#player.seek(frame);
    });
    timeline.addEventListener("pointercancel", () => (this.#drag = undefined));
    timeline.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !sideways) return; // the page scrolls
      event.preventDefault();
      const box = timeline.getBoundingClientRect();
      if (sideways) this.zoom(1, 0.5, event.deltaX / box.width);
      else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
    }, { passive: false });
    timeline.addEventListener("keydown", (event) => {
      if (!this.#recording || event.ctrlKey || event.metaKey || event.altKey) return;
      const { frames, sampleRate } = this.#recording;
      const seek = SEEK_SECONDS[event.key];
      if (seek !== undefined) this.#player.seek(this.#player.frame + seek * sampleRate);
      else if (event.key === "Home") this.#player.seek(0);
      else if (event.key === "End") this.#player.seek(frames);
      else return;
      event.preventDefault();
    });
  }
}
