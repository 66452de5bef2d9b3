// Denoises whole recordings in a worker. Receives { id, channels, sampleRate, options, gainStd, speechTrack, noise }: options of
// `Denoiser.create`, and those of `Denoiser.denoise`. Posts { progress }, { result } or { error, kind }, each with the `id`.
import { Denoiser } from "./index.js";

self.onmessage = async ({ data: { id, channels, sampleRate, options, ...more } }) => {
  let denoiser;
  try {
    denoiser = await Denoiser.create(options);
    const onProgress = (progress) => self.postMessage({ id, progress });
    const result = denoiser.denoise(channels, sampleRate, { ...more, onProgress });
    const { speech, residual, gainStd, speechTrack = [] } = result;
    const arrays = [...speech, ...residual, ...(gainStd?.values ?? []), ...speechTrack.map((track) => track.probability)];
    self.postMessage({ id, result }, arrays.map((array) => array.buffer));
  } catch (error) {
    self.postMessage({ id, error: String(error?.message ?? error), kind: error?.kind });
  } finally {
    denoiser?.free();
  }
};
