// Denoises whole recordings in a worker. Receives { channels, sampleRate, options }; posts { progress }, { result } or
// { error, kind }.
import { Denoiser } from "./index.js";

self.onmessage = async ({ data: { channels, sampleRate, options } }) => {
  try {
    const denoiser = await Denoiser.create(options);
    const onProgress = (progress) => self.postMessage({ progress });
    const result = denoiser.denoise(channels, sampleRate, { gainStd: true, onProgress });
    denoiser.free();
    self.postMessage({ result }, [...result.speech, ...result.residual, ...result.gainStd.values].map((array) => array.buffer));
  } catch (error) {
    self.postMessage({ error: String(error?.message ?? error), kind: error?.kind });
  }
};
