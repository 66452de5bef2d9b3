// Scales of the pictures: frequency, time, level, colour.

/** A level relative to full scale, 1, in words. */
export const peakText = (peak) => (peak > 0 ? `peak ${(20 * Math.log10(peak)).toFixed(1).replace("-", "−")} dBFS` : "silent");

/** A number of things, whose plural ends in s. */
export const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

const mel = (hertz) => 2595 * Math.log10(1 + hertz / 700);

/** Frequency in Hz at a height of 0 (bottom) to 1 (top), on the mel scale up to half the sample rate. */
export const hertzAt = (height, sampleRate) => 700 * (10 ** ((height * mel(sampleRate / 2)) / 2595) - 1);

/** Inverse of `hertzAt`. */
export const heightOf = (hertz, sampleRate) => mel(hertz) / mel(sampleRate / 2);

/** Frequencies to label, Hz, far enough apart for a picture of `height` pixels. */
export function frequencyTicks(sampleRate, height) {
  const ticks = [];
  for (const hertz of [32000, 16000, 8000, 4000, 2000, 1000, 500]) {
    const above = ticks.length ? heightOf(ticks.at(-1), sampleRate) : 1;
    if ((above - heightOf(hertz, sampleRate)) * height >= 14) ticks.push(hertz);
  }
  return ticks;
}

/** Range of the colours, dBFS. */
const LEVELS = [-100, -20];

// From black by violet and orange to pale yellow.
const STOPS = [[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21], [250, 193, 39], [252, 255, 164]];

/** Red, green, blue of 256 levels. */
export const COLOURS = Uint8Array.from({ length: 768 }, (_, n) => {
  const place = (Math.floor(n / 3) / 255) * (STOPS.length - 1);
  const below = Math.min(STOPS.length - 2, Math.floor(place));
  const [from, to] = [STOPS[below][n % 3], STOPS[below + 1][n % 3]];
  return from + (place - below) * (to - from);
});

/** Index into `COLOURS` of a level in dBFS. */
export const shadeOf = (level) => Math.max(0, Math.min(255, Math.round((255 * (level - LEVELS[0])) / (LEVELS[1] - LEVELS[0]))));

const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

/** Times to label between `start` and `end` (s), at most `count`, and the step between them. */
export function timeTicks(start, end, count) {
  const step = STEPS.find((step) => (end - start) / step <= count) ?? 7200;
  const ticks = [];
  for (let n = Math.ceil(start / step - 1e-9); n * step <= end; n++) ticks.push(n * step);
  return { step, ticks };
}

/** A time in s as m:ss, or h:mm:ss, with as many decimals as the step between times needs. */
export function clock(seconds, step = 1) {
  const decimals = step >= 1 ? 0 : step >= 0.1 ? 1 : 2;
  const total = Math.max(0, Number(seconds.toFixed(decimals)));
  const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
  const rest = (total % 60).toFixed(decimals).padStart(decimals ? 3 + decimals : 2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
