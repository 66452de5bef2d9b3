// Denoises recordings beside the page: { channels, sampleRate, options } in; { progress }, { result } or { error } out.
import { Denoiser } from "./index.js";

self.onmessage = async ({ data: { channels, sampleRate, options } }) => {
  try {
    const denoiser = await Denoiser.create(options);
    const onProgress = (progress) => self.postMessage({ progress });
    const result = denoiser.denoise(channels, sampleRate, { deviation: true, onProgress });
    denoiser.free();
    self.postMessage({ result }, [...result.voice, ...result.residual, ...result.deviation].map((array) => array.buffer));
  } catch (error) {
    self.postMessage({ error: String(error?.message ?? error) });
  }
};
