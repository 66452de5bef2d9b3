// WAV files: reading, slice by slice so that the page stays responsive, and writing with 16 bits.

const RIFF = 0x52494646;
const WAVE = 0x57415645;
const FMT = 0x666d7420;
const DATA = 0x64617461;
const FLAC = 0x664c6143;
const EXTENSIBLE = 0xfffe;

const FRAMES = 1 << 18; // read or written at once
const MAX_CHUNKS = 1000; // before the samples

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** Sample rate of a FLAC file in Hz, which browsers do not report; undefined for other formats. */
export function flacRate(bytes) {
  const data = new DataView(bytes);
  return bytes.byteLength > 22 && data.getUint32(0) === FLAC ? data.getUint32(18) >>> 12 : undefined;
}

/** Readers of a sample at full scale 1, by format tag and bits. */
const READERS = {
  "1/8": (data, at) => (data.getUint8(at) - 128) / 128,
  "1/16": (data, at) => data.getInt16(at, true) / 32768,
  "1/24": (data, at) => (data.getUint16(at, true) + 65536 * data.getInt8(at + 2)) / 8388608,
  "1/32": (data, at) => data.getInt32(at, true) / 2147483648,
  "3/32": (data, at) => data.getFloat32(at, true),
  "3/64": (data, at) => data.getFloat64(at, true),
};

/** Format and place of the samples of a WAV file; undefined for other files and formats. */
async function parse(blob) {
  const view = async (start, length) => new DataView(await blob.slice(start, start + length).arrayBuffer());
  const riff = await view(0, 12);
  if (riff.byteLength < 12 || riff.getUint32(0) !== RIFF || riff.getUint32(8) !== WAVE) return undefined;
  let format;
  for (let at = 12, n = 0; n < MAX_CHUNKS; n++) {
    const chunk = await view(at, 48);
    if (chunk.byteLength < 8) return undefined;
    const [name, size] = [chunk.getUint32(0), chunk.getUint32(4, true)];
    if (name === FMT && chunk.byteLength >= 24) {
      const [tag, bits] = [chunk.getUint16(8, true), chunk.getUint16(22, true)];
      const read = READERS[`${tag === EXTENSIBLE && chunk.byteLength >= 34 ? chunk.getUint16(32, true) : tag}/${bits}`];
      format = { read, bytes: bits / 8, channels: chunk.getUint16(10, true), sampleRate: chunk.getUint32(12, true) };
    }
    if (name === DATA) {
      if (!format?.read || format.channels === 0) return undefined;
      // Pipes leave the size open.
      const isOpen = size === 0 || size === 0xffffffff;
      const [there, frame] = [blob.size - at - 8, format.channels * format.bytes];
      const frames = Math.floor(Math.min(isOpen ? Infinity : size, there) / frame);
      return { ...format, start: at + 8, frames, missing: isOpen ? 0 : Math.floor(size / frame) - frames };
    }
    at += 8 + size + (size % 2);
  }
  return undefined;
}

/**
 * Sample rate and samples of a WAV file, one Float32Array per channel, and how many samples are missing at its end; undefined
 * for other files and formats.
 */
export async function readWav(blob) {
  const found = await parse(blob);
  if (!found) return undefined;
  const { read, bytes, channels: count, sampleRate, start, frames, missing } = found;
  const channels = Array.from({ length: count }, () => new Float32Array(frames));
  for (let first = 0; first < frames; first += FRAMES) {
    const last = Math.min(frames, first + FRAMES);
    const data = new DataView(await blob.slice(start + count * bytes * first, start + count * bytes * last).arrayBuffer());
    for (const [channel, samples] of channels.entries()) {
      for (let n = first, at = channel * bytes; n < last; n++, at += count * bytes) samples[n] = read(data, at);
    }
    await pause();
  }
  return { sampleRate, channels, missing };
}

/** Encodes 16-bit WAV. `read(start, end)` returns one Float32Array per channel; a Blob can be stored outside of memory. */
export async function encodeWav({ channels, frames, sampleRate, read }) {
  const size = 2 * channels * frames;
  if (size > 0xffffffff - 36) throw new RangeError("longer than a WAV file can hold (4 GB)");
  const parts = [header(channels, sampleRate, size)];
  for (let start = 0; start < frames; start += FRAMES) {
    const block = read(start, Math.min(frames, start + FRAMES));
    const length = block[0].length;
    const data = new Int16Array(channels * length);
    for (const [channel, samples] of block.entries()) {
      for (let n = 0; n < length; n++) data[n * channels + channel] = Math.round(32768 * Math.min(32767 / 32768, Math.max(-1, samples[n])));
    }
    parts.push(new Blob([data]));
    await pause();
  }
  return new Blob(parts, { type: "audio/wav" });
}

function header(channels, sampleRate, size) {
  const data = new DataView(new ArrayBuffer(44));
  const text = (offset, letters) => [...letters].forEach((letter, n) => data.setUint8(offset + n, letter.charCodeAt(0)));
  text(0, "RIFF");
  data.setUint32(4, 36 + size, true);
  text(8, "WAVEfmt ");
  data.setUint32(16, 16, true);
  data.setUint16(20, 1, true);
  data.setUint16(22, channels, true);
  data.setUint32(24, sampleRate, true);
  data.setUint32(28, 2 * channels * sampleRate, true);
  data.setUint16(32, 2 * channels, true);
  data.setUint16(34, 16, true);
  text(36, "data");
  data.setUint32(40, size, true);
  return data;
}
