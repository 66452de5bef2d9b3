// The live part of the page: microphone to headphones.
import { createLiveNode } from "./index.js";
import { microphone } from "./microphone.js";

const at = (id) => document.getElementById(id);
const decibels = (level) => `${level.toFixed(0).replace("-", "−")} dBFS`;
const say = (text) => (at("live-status").textContent = text);

const sayOn = () => say(`On, at ${running.context.sampleRate} Hz.`);

let running; // { context, stream, node }

async function start() {
  const stream = await microphone();
  const context = new AudioContext({ latencyHint: "interactive" });
  running = { context, stream };
  // The device was unplugged, or permission was withdrawn.
  stream.getTracks()[0].addEventListener("ended", () => running?.stream === stream && toggle());
  await context.resume();
  const source = context.createMediaStreamSource(stream);
  // In parts, of which the page has loaded the largest.
  const node = await createLiveNode(context, { ...controls(), channels: 1, worklet: "./worklet.js" });
  running.node = node;
  node.addEventListener("meters", ({ detail }) => meter(detail));
  source.connect(node).connect(context.destination);
  at("delay").textContent = `${((1000 * node.latency) / context.sampleRate).toFixed(0)} ms`;
}

async function stop() {
  if (!running) return;
  const { context, stream, node } = running;
  running = undefined;
  for (const track of stream.getTracks()) track.stop();
  node?.close();
  await context.close();
}

async function toggle() {
  const button = at("listen");
  button.disabled = true;
  try {
    if (running) {
      await stop();
      say("Off.");
    } else {
      say("Starting …");
      await start();
      sayOn();
    }
  } catch (error) {
    await stop();
    say(`Cannot use the microphone: ${error.message}`);
  }
  const on = running !== undefined;
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? "Stop" : "Start";
  at("meters").hidden = !on;
  at("learn").disabled = !on;
  button.disabled = false;
  button.focus();
}

function controls() {
  return { bypass: !at("denoising").checked, floor_db: Number(at("live-floor").value) };
}

function control() {
  at("live-floor-text").textContent = `${at("live-floor").value.replace("-", "−")} dB`;
  running?.node?.set(controls());
}

function learn() {
  const node = running?.node;
  if (!node) return;
  node.learnNoise(1);
  say("Learning the noise for 1 s: do not speak.");
  setTimeout(() => running?.node === node && sayOn(), 1000);
}

function meter({ speech_dbfs, noise_dbfs, speech_probability, load }) {
  const show = (id, value, text) => {
    at(id).value = value;
    at(`${id}-text`).textContent = text;
  };
  show("speech", speech_dbfs, decibels(speech_dbfs));
  show("noise", noise_dbfs, decibels(noise_dbfs));
  show("presence", speech_probability, `${(100 * speech_probability).toFixed(0)} %`);
  show("load", load, `${(100 * load).toFixed(0)} %`);
}

/** Connects the controls. */
export function startLive() {
  at("listen").addEventListener("click", toggle);
  at("denoising").addEventListener("change", control);
  at("live-floor").addEventListener("input", control);
  at("learn").addEventListener("click", learn);
}
