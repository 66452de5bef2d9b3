// Figures of a result, from its statistics.
import { counted } from "./scale.js";

const at = (id) => document.getElementById(id);
const show = (value, unit) => (value === null || value === undefined ? "–" : `${value.toFixed(1).replace("-", "−")} ${unit}`);

/** Shows statistics; levels after denoising hold for a mix of 1 only. */
export function showFigures(stats, mix) {
  const after = (value) => (mix === 1 ? value : undefined);
  at("snr").textContent = `${show(stats.snr_before_db, "dB")} → ${show(after(stats.snr_after_db), "dB")}`;
  at("noise-level").textContent = `${show(stats.noise_before_dbfs, "dBFS")} → ${show(after(stats.noise_after_dbfs), "dBFS")}`;
  const times = stats.reverberation_seconds.filter((time) => time !== null);
  const mean = times.length ? times.reduce((sum, time) => sum + time, 0) / times.length : undefined;
  at("rt60").textContent = mean === undefined ? "–" : `${mean.toFixed(2)} s`;
  at("repaired").textContent = `${counted(stats.clicks, "click")} removed, ${counted(stats.clipped_input_samples, "sample")} clipped`;
}
