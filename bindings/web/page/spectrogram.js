// Spectrograms of a stretch of samples, as many frames as there are columns.

const LEVELS = 80; // dB from black to white

/** In place, of a power of two of complex numbers. */
function transform(re, im) {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [re[j], re[i]];
      [im[i], im[j]] = [im[j], im[i]];
    }
  }
  for (let size = 2; size <= n; size *= 2) {
    const angle = (-2 * Math.PI) / size;
    for (let k = 0; k < size / 2; k++) {
      const [c, s] = [Math.cos(angle * k), Math.sin(angle * k)];
      for (let a = k; a < n; a += size) {
        const b = a + size / 2;
        const [x, y] = [re[b] * c - im[b] * s, re[b] * s + im[b] * c];
        re[b] = re[a] - x;
        im[b] = im[a] - y;
        re[a] += x;
        im[a] += y;
      }
    }
  }
}

/** From black by violet and orange to white, 0 to 1. */
function colour(x) {
  const wave = (centre) => 255 * Math.min(1, Math.max(0, 1.4 * x - centre));
  return [wave(0.1) , wave(0.45), x < 0.5 ? 255 * x * 0.9 : 255 * Math.max(0.45 - (x - 0.5), (x - 0.75) * 4)];
}

/**
 * Draws `samples` from `start` to `end` (s). `deviation`, if given, is laid over it in red: standard deviations of the
 * gain, `bins` a frame, `frameSeconds` apart.
 */
export function draw(canvas, samples, sampleRate, start, end, deviation) {
  const [width, height] = [canvas.width, canvas.height];
  const size = 2 ** Math.ceil(Math.log2(0.04 * sampleRate));
  const hann = Float64Array.from({ length: size }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / size));
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const [re, im] = [new Float64Array(size), new Float64Array(size)];
  for (let x = 0; x < width; x++) {
    const seconds = start + ((x + 0.5) / width) * (end - start);
    const first = Math.round(seconds * sampleRate - size / 2);
    for (let n = 0; n < size; n++) re[n] = hann[n] * (samples[first + n] ?? 0);
    im.fill(0);
    transform(re, im);
    const frame = deviation && Math.floor(seconds / deviation.frameSeconds + 1);
    for (let y = 0; y < height; y++) {
      const share = 1 - (y + 0.5) / height;
      const bin = Math.floor(share * (size / 2));
      const level = 10 * Math.log10((4 * (re[bin] ** 2 + im[bin] ** 2)) / (size / 2) ** 2 + 1e-12);
      let [red, green, blue] = colour(Math.min(1, Math.max(0, 1 + level / LEVELS)));
      if (deviation) {
        const at = frame * deviation.bins + Math.floor(share * deviation.bins);
        const unsure = Math.min(1, (deviation.values[at] ?? 0) / 0.1);
        red += (255 - red) * unsure;
        green *= 1 - unsure;
        blue *= 1 - unsure;
      }
      image.data.set([red, green, blue, 255], 4 * (y * width + x));
    }
  }
  context.putImageData(image, 0, 0);
}
