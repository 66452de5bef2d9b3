// Waveform and spectrograms of a section of a recording, drawn in slices so that the page stays responsive.
import { Fourier } from "./fourier.js";
import { COLOURS, hertzAt, shadeOf } from "./scale.js";

const WINDOW_SECONDS = 0.03; // at least; rounded up to a power of two
const WINDOWS = 4; // per column, at most
const SLICE_MS = 10;
const COARSE = 16; // columns: the first pass draws every 16th

const [NOTHING, BEFORE, BOTH] = [0, 1, 2]; // what of a column is drawn

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** Draws into canvases whose width is the number of columns. */
export class Pictures {
  #canvases; // { wave, before, after }
  #recording;
  #view; // { start, end }, frames
  #kept = 0;
  #drawn; // NOTHING, BEFORE or BOTH for each column
  #peaks; // minimum and maximum before and after, for each column
  #images;
  #job = 0;
  #colours;
  #onPeak;

  /** `colours` returns those of the waveforms; `onPeak` receives the largest sample in view, full scale 1. */
  constructor(canvases, colours, onPeak) {
    this.#canvases = canvases;
    this.#colours = colours;
    this.#onPeak = onPeak;
  }

  /** Shows another section, or the same with another amount of the removed signal mixed in. */
  show(recording, view, kept) {
    const { wave, before, after } = this.#canvases;
    const { width, height } = before;
    const same = this.#images?.[0].width === width && this.#images[0].height === height;
    if (!same) this.#images = [before, after].map((canvas) => canvas.getContext("2d").createImageData(width, height));
    [this.#recording, this.#view, this.#kept] = [recording, { ...view }, kept];
    this.#drawn = new Uint8Array(width);
    this.#peaks = new Float32Array(4 * width).fill(NaN);
    wave.width = width;
    const black = [...COLOURS.subarray(0, 3), 255];
    for (const { data } of this.#images) for (let n = 0; n < data.length; n++) data[n] = black[n % 4];
    for (const [n, canvas] of [before, after].entries()) canvas.getContext("2d").putImageData(this.#images[n], 0, 0);
    return this.#draw();
  }

  /** Draws what has been computed since. */
  update() {
    if (this.#recording) return this.#draw();
  }

  /** Draws the waveform again, in other colours. */
  recolour() {
    if (this.#recording) this.#drawWave();
  }

  #frames(column) {
    const { start, end } = this.#view;
    const width = this.#drawn.length;
    const at = (x) => Math.round(start + (x / width) * (end - start));
    return [at(column), Math.max(at(column) + 1, at(column + 1))];
  }

  async #draw() {
    const job = ++this.#job;
    const width = this.#drawn.length;
    const { sampleRate } = this.#recording;
    const size = 2 ** Math.ceil(Math.log2(WINDOW_SECONDS * sampleRate));
    this.#prepare(size, sampleRate);
    let began = performance.now();
    for (let stride = COARSE; stride >= 1; stride /= 2) {
      for (let column = 0; column < width; column += stride) {
        const [first, last] = this.#frames(column);
        const state = last <= this.#recording.ready ? BOTH : BEFORE;
        if (this.#drawn[column] >= state) continue;
        this.#drawn[column] = state;
        this.#measure(column, first, last, state);
        this.#colour(column, stride, this.#powers(first, last, state));
        if (performance.now() - began < SLICE_MS) continue;
        this.#flush();
        await pause();
        if (job !== this.#job) return;
        began = performance.now();
      }
    }
    this.#flush();
  }

  #prepare(size, sampleRate) {
    const { height } = this.#canvases.before;
    if (this.fourier?.size === size && this.bins.length === height + 1 && this.rate === sampleRate) return;
    this.fourier = new Fourier(size);
    this.hann = Float32Array.from({ length: size }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / size));
    // The bins of each row, from the bottom.
    this.bins = Float32Array.from({ length: height + 1 }, (_, y) => (hertzAt(y / height, sampleRate) * size) / sampleRate);
    this.rate = sampleRate;
  }

  /** Minimum and maximum of a column, in the channel that reaches furthest. */
  #measure(column, first, last, state) {
    const { channels, speech } = this.#recording;
    const kept = this.#kept;
    const peaks = [0, 0, 0, 0];
    for (const [channel, before] of channels.entries()) {
      const after = state === BOTH ? speech[channel] : undefined;
      for (let n = first; n < last; n++) {
        const x = before[n] ?? 0;
        if (x < peaks[0]) peaks[0] = x;
        if (x > peaks[1]) peaks[1] = x;
        if (!after) continue;
        const y = after[n] + kept * (x - after[n]);
        if (y < peaks[2]) peaks[2] = y;
        if (y > peaks[3]) peaks[3] = y;
      }
    }
    this.#peaks.set(state === BOTH ? peaks : [peaks[0], peaks[1], NaN, NaN], 4 * column);
  }

  /** Powers of the bins before and, if denoised, after; 1 is a sine of full scale. */
  #powers(first, last, state) {
    const { channels, speech } = this.#recording;
    const { fourier, hann } = this;
    const { size } = fourier;
    const powers = Array.from({ length: state }, () => new Float32Array(size / 2 + 1));
    const count = Math.min(WINDOWS, Math.max(1, Math.round((last - first) / size)));
    const scale = 16 / (size * size * count * channels.length);
    for (let window = 0; window < count; window++) {
      const begin = Math.round(first + ((window + 0.5) / count) * (last - first) - size / 2);
      for (const [channel, before] of channels.entries()) {
        const after = state === BOTH ? speech[channel] : undefined;
        for (let n = 0; n < size; n++) {
          fourier.re[n] = hann[n] * (before[begin + n] ?? 0);
          fourier.im[n] = after ? hann[n] * (after[begin + n] ?? 0) : 0;
        }
        fourier.run();
        for (let k = 0; k <= size / 2; k++) {
          const both = fourier.powers(k, this.#kept);
          for (let picture = 0; picture < state; picture++) powers[picture][k] += scale * both[picture];
        }
      }
    }
    return powers;
  }

  /** Number of columns that are denoised. */
  get #denoised() {
    const { start, end } = this.#view;
    return ((this.#recording.ready - start) / (end - start)) * this.#drawn.length;
  }

  /** Fills a column, and those of the next `stride` that are not drawn yet. */
  #colour(column, stride, powers) {
    const { width, height } = this.#canvases.before;
    const denoised = this.#denoised;
    for (const [picture, bins] of powers.entries()) {
      const { data } = this.#images[picture];
      const last = Math.min(width, column + stride, picture === 1 ? denoised : width);
      const columns = [column];
      for (let x = column + 1; x < last; x++) if (this.#drawn[x] <= picture) columns.push(x);
      for (let y = 0; y < height; y++) {
        const level = 10 * Math.log10(this.#power(bins, this.bins[y], this.bins[y + 1]) + 1e-13);
        const shade = 3 * shadeOf(level);
        for (const x of columns) {
          const at = 4 * ((height - 1 - y) * width + x);
          data[at] = COLOURS[shade];
          data[at + 1] = COLOURS[shade + 1];
          data[at + 2] = COLOURS[shade + 2];
        }
      }
    }
  }

  /** Power between two bins: the largest of those that lie there, or between the two neighbours. */
  #power(powers, low, high) {
    const [first, last] = [Math.ceil(low), Math.floor(high)];
    if (first > last) {
      const below = Math.floor(low);
      const place = (low + high) / 2 - below;
      return powers[below] + place * (powers[Math.min(below + 1, powers.length - 1)] - powers[below]);
    }
    let most = 0;
    for (let k = first; k <= last; k++) most = Math.max(most, powers[k]);
    return most;
  }

  #flush() {
    for (const [n, canvas] of [this.#canvases.before, this.#canvases.after].entries()) canvas.getContext("2d").putImageData(this.#images[n], 0, 0);
    this.#drawWave();
  }

  #drawWave() {
    const { wave } = this.#canvases;
    const { width, height } = wave;
    const context = wave.getContext("2d");
    const colours = this.#colours();
    context.clearRect(0, 0, width, height);
    const most = this.#peaks.reduce((most, x) => (Math.abs(x) > most ? Math.abs(x) : most), 0);
    // Relative to the loudest sample in view, so that quiet recordings are visible, too; below -40 dBFS they stay small.
    const scale = Math.max(0.01, most);
    const toPixels = (x) => (height / 2) * (1 - (0.95 * x) / scale);
    for (const [first, colour, end] of [[0, colours.before, width], [2, colours.after, Math.min(width, this.#denoised)]]) {
      context.fillStyle = colour;
      let [low, high] = [NaN, NaN];
      for (let column = 0; column < end; column++) {
        // Columns that are not measured yet continue their neighbour.
        if (this.#drawn[column] !== NOTHING) [low, high] = this.#peaks.subarray(4 * column + first, 4 * column + first + 2);
        if (Number.isNaN(low)) continue;
        const top = toPixels(high);
        context.fillRect(column, top, 1, Math.max(1, toPixels(low) - top));
      }
    }
    this.#onPeak(most);
  }
}
