// Fourier transform of two real signals at once, for pictures.

/** Transforms of a power-of-two size. The arrays `re` and `im` hold the two signals, then the transform of re + i im. */
export class Fourier {
  constructor(size) {
    this.size = size;
    this.re = new Float32Array(size);
    this.im = new Float32Array(size);
    this.cos = Float32Array.from({ length: size / 2 }, (_, k) => Math.cos((2 * Math.PI * k) / size));
    this.sin = Float32Array.from({ length: size / 2 }, (_, k) => -Math.sin((2 * Math.PI * k) / size));
    this.reversed = new Uint32Array(size);
    for (let n = 1; n < size; n++) this.reversed[n] = (this.reversed[n >> 1] >> 1) | (n & 1 ? size >> 1 : 0);
  }

  run() {
    const { re, im, cos, sin, reversed, size } = this;
    for (let n = 0; n < size; n++) {
      const m = reversed[n];
      if (n >= m) continue;
      const [a, b] = [re[n], im[n]];
      re[n] = re[m];
      im[n] = im[m];
      re[m] = a;
      im[m] = b;
    }
    for (let half = 1; half < size; half *= 2) {
      const stride = size / (2 * half);
      for (let start = 0; start < size; start += 2 * half) {
        for (let k = 0; k < half; k++) {
          const [a, b, t] = [start + k, start + k + half, k * stride];
          const x = re[b] * cos[t] - im[b] * sin[t];
          const y = re[b] * sin[t] + im[b] * cos[t];
          re[b] = re[a] - x;
          im[b] = im[a] - y;
          re[a] += x;
          im[a] += y;
        }
      }
    }
  }

  /** Powers of bin `k` of x and of (1 - kept) y + kept x, where x and y were in `re` and `im`. */
  powers(k, kept) {
    const { re, im, size } = this;
    const m = (size - k) % size;
    const [xr, xi] = [(re[k] + re[m]) / 2, (im[k] - im[m]) / 2];
    const [yr, yi] = [(im[k] + im[m]) / 2, (re[m] - re[k]) / 2];
    const [zr, zi] = [yr + kept * (xr - yr), yi + kept * (xi - yi)];
    return [xr * xr + xi * xi, zr * zr + zi * zi];
  }
}
