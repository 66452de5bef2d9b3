// The microphone, live, to the headphones.
import { createLiveNode } from "./index.js";
import { microphone } from "./microphone.js";

const at = (id) => document.getElementById(id);
const say = (text) => (at("live-status").textContent = text);

let running; // { context, stream, node }

async function start() {
  const stream = await microphone();
  const context = new AudioContext({ latencyHint: "interactive" });
  running = { context, stream };
  // Unplugged, or taken back by the person whose it is.
  stream.getTracks()[0].addEventListener("ended", () => running?.stream === stream && toggle());
  await context.resume();
  const source = context.createMediaStreamSource(stream);
  const node = await createLiveNode(context, { ...controls(), channels: 1 });
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
      say(`On, at ${running.context.sampleRate} Hz.`);
    }
  } catch (error) {
    await stop();
    say(`The microphone cannot be heard: ${error.message}`);
  }
  const on = running !== undefined;
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? "Stop listening" : "Listen to the microphone";
  at("meters").hidden = !on;
  button.disabled = false;
  button.focus();
}

function controls() {
  return { bypass: !at("denoising").checked, floor_db: Number(at("floor-db").value) };
}

function control() {
  at("floor").textContent = `${at("floor-db").value.replace("-", "−")} dB`;
  running?.node?.set(controls());
}

function meter({ speech_dbfs, noise_dbfs, load }) {
  const show = (id, value, text) => {
    at(id).value = value;
    at(`${id}-text`).textContent = text;
  };
  show("speech", speech_dbfs, `${speech_dbfs.toFixed(0)} dB`);
  show("noise", noise_dbfs, `${noise_dbfs.toFixed(0)} dB`);
  show("load", load, `${(100 * load).toFixed(0)} %`);
}

/** Makes the part of the page work that is live. */
export function listen() {
  at("listen").addEventListener("click", toggle);
  at("denoising").addEventListener("change", control);
  at("floor-db").addEventListener("input", control);
}
