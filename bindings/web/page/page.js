import { moduleAddress } from "./index.js";
import { listen } from "./live-page.js";
import { microphone, record } from "./microphone.js";
import { draw } from "./spectrogram.js";

const at = (id) => document.getElementById(id);
const audio = { before: at("before-audio"), after: at("after-audio"), residual: at("residual-audio") };

let recording; // { name, sampleRate, channels }
let denoised; // what the worker made of it
let worker;
const view = { start: 0, end: 1 };

const say = (text) => (at("status").textContent = text);

/** The sample rate that a file was recorded with, if it is WAV or FLAC: a browser does not tell. */
function rateOf(bytes) {
  const data = new DataView(bytes);
  const tag = (offset) => (offset + 4 <= bytes.byteLength ? data.getUint32(offset) : 0);
  if (tag(0) === 0x52494646 && tag(8) === 0x57415645) {
    for (let offset = 12; offset + 16 <= bytes.byteLength; ) {
      if (tag(offset) === 0x666d7420) return data.getUint32(offset + 12, true);
      offset += 8 + data.getUint32(offset + 4, true) + (data.getUint32(offset + 4, true) % 2);
    }
  }
  if (tag(0) === 0x664c6143 && bytes.byteLength > 22) return data.getUint32(18) >>> 12;
  return 48000;
}

/** Makes room for another recording. */
function clear(name) {
  stop();
  denoised = undefined;
  at("results").hidden = true;
  at("name").textContent = name;
}

async function open(file) {
  clear(file.name);
  say("Reading …");
  try {
    const bytes = await file.arrayBuffer();
    const sampleRate = rateOf(bytes);
    const context = new OfflineAudioContext(1, 1, sampleRate);
    const buffer = await context.decodeAudioData(bytes);
    const channels = Array.from({ length: buffer.numberOfChannels }, (_, index) => buffer.getChannelData(index).slice());
    recording = { name: file.name, sampleRate, channels };
  } catch (error) {
    recording = undefined;
    say(`${file.name} cannot be read: ${error.message}`);
    return;
  }
  denoise();
}

let taping; // what is being recorded

async function toggleRecording() {
  const button = at("record");
  // What is asked for twice while the browser asks for the microphone.
  button.disabled = true;
  try {
    if (taping) {
      const ended = taping;
      taping = undefined;
      const { channels, sampleRate } = await ended.finish();
      if (channels[0].length === 0) throw new Error("nothing was heard");
      const time = new Date().toLocaleTimeString("sv").replaceAll(":", "-");
      recording = { name: `recording ${time}.wav`, sampleRate, channels };
      at("name").textContent = recording.name;
      denoise();
    } else {
      taping = await record(await microphone(), (seconds) => (at("name").textContent = `${seconds.toFixed(0)} s`));
      recording = undefined;
      clear("");
      say("Recording …");
    }
  } catch (error) {
    say(`The microphone cannot be recorded: ${error.message}`);
  }
  button.setAttribute("aria-pressed", String(taping !== undefined));
  button.textContent = taping ? "Stop recording" : "Record one";
  button.disabled = false;
  button.focus();
}

function stop() {
  worker?.terminate();
  worker = undefined;
  at("progress").hidden = at("stop").hidden = true;
}

function denoise() {
  if (!recording) return;
  stop();
  const began = performance.now();
  worker = new Worker("./worker.js", { type: "module" });
  at("progress").hidden = at("stop").hidden = false;
  at("progress").value = 0;
  say("Denoising …");
  worker.onmessage = ({ data: { progress, result, error } }) => {
    if (progress !== undefined) {
      at("progress").value = progress;
      return;
    }
    stop();
    if (error) {
      say(`It cannot be denoised: ${error}`);
      return;
    }
    denoised = { ...result, seconds: (performance.now() - began) / 1000 };
    show();
  };
  worker.onerror = (event) => {
    stop();
    say(`It cannot be denoised: ${event.message || "the worker does not start"}`);
  };
  const options = { strength: at("strength").value, quality: at("quality").value };
  worker.postMessage({ channels: recording.channels, sampleRate: recording.sampleRate, options });
}

/** A WAV file of 16 bits. */
function wav(channels, sampleRate) {
  const [count, length] = [channels.length, channels[0].length];
  const data = new DataView(new ArrayBuffer(44 + 2 * count * length));
  const text = (offset, letters) => [...letters].forEach((c, i) => data.setUint8(offset + i, c.charCodeAt(0)));
  text(0, "RIFF");
  data.setUint32(4, 36 + 2 * count * length, true);
  text(8, "WAVEfmt ");
  data.setUint32(16, 16, true);
  data.setUint16(20, 1, true);
  data.setUint16(22, count, true);
  data.setUint32(24, sampleRate, true);
  data.setUint32(28, 2 * count * sampleRate, true);
  data.setUint16(32, 2 * count, true);
  data.setUint16(34, 16, true);
  text(36, "data");
  data.setUint32(40, 2 * count * length, true);
  for (let n = 0, offset = 44; n < length; n++) {
    for (let c = 0; c < count; c++, offset += 2) {
      const code = Math.round(channels[c][n] * 32768);
      data.setInt16(offset, Math.max(-32768, Math.min(32767, code)), true);
    }
  }
  return new Blob([data], { type: "audio/wav" });
}

function play(element, channels) {
  URL.revokeObjectURL(element.src);
  element.src = URL.createObjectURL(wav(channels, recording.sampleRate));
}

/** The voice and what was taken out, as mixed. */
function mixed() {
  const share = at("mix").value / 100;
  const blend = (a, b) => a.map((x, n) => share * x + (1 - share) * b[n]);
  const voice = denoised.voice.map((samples, c) => blend(samples, recording.channels[c]));
  return { voice, residual: denoised.residual.map((samples) => samples.map((x) => share * x)) };
}

function show() {
  const { sampleRate, channels } = recording;
  const seconds = channels[0].length / sampleRate;
  const { snr_before_db: before, snr_after_db: after } = denoised.stats;
  Object.assign(view, { start: 0, end: seconds });
  at("results").hidden = false;
  play(audio.before, channels);
  const decibels = (x) => (x == null ? "unknown" : `${x.toFixed(1)} dB`);
  at("found").textContent = `Speech over noise, as estimated: ${decibels(before)} before, ${decibels(after)} after.`;
  const speed = seconds / denoised.seconds;
  say(`Done: ${seconds.toFixed(1)} s in ${denoised.seconds.toFixed(1)} s, ${speed.toFixed(1)} times real time.`);
  mix();
}

function mix() {
  at("share").textContent = `${at("mix").value} %`;
  if (!denoised) return;
  const { voice, residual } = mixed();
  play(audio.after, voice);
  play(audio.residual, residual);
  at("download").href = audio.after.src;
  at("download").download = recording.name.replace(/(\.[^.]*)?$/, "-voice.wav");
  denoised.shown = voice[0];
  redraw();
}

function redraw() {
  if (!denoised) return;
  const { sampleRate, channels } = recording;
  const bins = Math.floor(Math.round(0.064 * sampleRate) / 2) + 1;
  const hop = Math.floor(Math.round(0.064 * sampleRate) / 4);
  const values = denoised.deviation[0];
  const overlay = at("overlay").checked && values?.length ? { values, bins, frameSeconds: hop / sampleRate } : undefined;
  draw(at("before"), channels[0], sampleRate, view.start, view.end);
  draw(at("after"), denoised.shown, sampleRate, view.start, view.end, overlay);
  at("span").textContent = `${view.start.toFixed(1)} to ${view.end.toFixed(1)} s`;
}

/** Zooms by a factor around a share of the view, and moves it by a share. */
function look(factor, around = 0.5, move = 0) {
  if (!denoised) return;
  const whole = recording.channels[0].length / recording.sampleRate;
  const length = Math.min(whole, Math.max(0.1, (view.end - view.start) * factor));
  const centre = view.start + around * (view.end - view.start);
  const start = centre - around * length + move * length;
  view.start = Math.min(Math.max(0, start), whole - length);
  view.end = view.start + length;
  redraw();
}

at("file").addEventListener("change", ({ target }) => target.files[0] && open(target.files[0]));
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
}
at("record").addEventListener("click", toggleRecording);
at("strength").addEventListener("change", denoise);
at("quality").addEventListener("change", denoise);
at("mix").addEventListener("input", () => (at("share").textContent = `${at("mix").value} %`));
at("mix").addEventListener("change", mix);
at("overlay").addEventListener("change", redraw);
at("stop").addEventListener("click", () => {
  stop();
  say("Stopped.");
});
at("in").addEventListener("click", () => look(0.5));
at("out").addEventListener("click", () => look(2));
at("left").addEventListener("click", () => look(1, 0.5, -0.5));
at("right").addEventListener("click", () => look(1, 0.5, 0.5));
for (const canvas of [at("before"), at("after")]) {
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    look(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / canvas.clientWidth);
  });
}

listen();

// Once it was seen, it needs no network. Only one of the two modules is kept.
const native = moduleAddress().pathname.split("/").at(-1);
navigator.serviceWorker?.register(`./offline.js?module=${native}`).catch(() => {});
