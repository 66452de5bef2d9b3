// The page: files in, results shown, played and saved.
import { moduleAddress } from "./index.js";
import { Cancelled, Engine } from "./engine.js";
import { showFigures } from "./figures.js";
import { startLive } from "./live-page.js";
import { microphone, record } from "./microphone.js";
import { Player } from "./player.js";
import { Queue, showQueue } from "./queue.js";
import { Recording, resultName, segmentTable } from "./recording.js";
import { SettingsPanel } from "./settings-panel.js";
import { listenToKeys } from "./keys.js";
import { Timeline } from "./timeline.js";
import { clock, counted } from "./scale.js";

const at = (id) => document.getElementById(id);
const say = (text) => (at("status").textContent = text);

const engine = new Engine();
const player = new Player();
const timeline = new Timeline(player);
const settings = new SettingsPanel();
const queue = new Queue();

let current; // the entry that is shown
let recording; // its recording, once it is decoded
let task; // { entry, recording, options, abort } that is being computed
let computed; // options of the result that is shown

/** Shows an entry. */
async function open(entry) {
  player.pause();
  [current, recording] = [entry, undefined];
  refresh();
  say("");
  if (task?.entry === entry && task.recording) return show(entry, task.recording);
  if (!task) say(`Reading ${entry.name} …`);
  try {
    show(entry, await (entry.state === "done" ? queue.open(entry) : entry.load()));
  } catch (error) {
    queue.set(entry, { state: "failed", text: error.message });
    if (entry === current) {
      say(error.message);
      at("editor").hidden = true; // it shows another recording
    }
  }
  pump();
}

function show(entry, loaded) {
  if (entry !== current) return;
  recording = loaded;
  at("editor").hidden = false;
  at("name").textContent = entry.name;
  const channels = ["", "mono", "stereo"][loaded.channels.length] ?? `${loaded.channels.length} channels`;
  const missing = loaded.missingSeconds ? `; cut off: ${clock(loaded.missingSeconds, 0.1)} missing at the end` : "";
  at("length").textContent = `${clock(loaded.seconds, 0.1)}, ${loaded.sampleRate} Hz, ${channels}${missing}`;
  player.load(loaded);
  timeline.show(loaded);
  say("");
  if (entry.state === "done") [computed, at("status").textContent] = [entry.options, "Done."];
  remix();
  refresh();
}

/** Starts the next task, if none runs: the entry that is shown comes first. */
async function pump() {
  if (task) return;
  const entry = current?.state === "waiting" && recording ? current : queue.entries.find((entry) => entry.state === "waiting" && entry !== current);
  if (!entry) return;
  const abort = new AbortController();
  const mine = (task = { entry, options: settings.options, abort });
  const began = performance.now();
  try {
    [at("progress").value, at("progress-text").textContent] = [0, `Denoising ${entry === current ? "" : entry.name}`];
    queue.set(entry, { state: "busy", text: "Reading" });
    mine.recording = entry === current ? recording : await entry.load();
    if (abort.signal.aborted) throw new Cancelled();
    // It was opened meanwhile.
    if (entry === current && recording && recording !== mine.recording) mine.recording = recording;
    else if (entry === current && !recording) show(entry, mine.recording);
    if (entry === current) computed = mine.options;
    await engine.denoise(mine.recording, mine.options, { signal: abort.signal, onProgress: (fraction) => progress(mine, fraction, began) });
    const result = await mine.recording.wav("after");
    if (abort.signal.aborted) throw new Cancelled();
    if (entry === current) timeline.update();
    const seconds = (performance.now() - began) / 1000;
    const speed = mine.recording.seconds / seconds;
    queue.set(entry, { state: "done", text: "Done", result, stats: mine.recording.stats, segments: mine.recording.segments, options: mine.options, seconds });
    if (entry === current) say(`Done in ${seconds.toFixed(1)} s, ${speed.toFixed(1)} times real time.`);
  } catch (error) {
    if (!(error instanceof Cancelled)) {
      queue.set(entry, { state: "failed", text: error.message });
      if (entry === current) say(`Cannot denoise ${entry.name}: ${error.message}`);
    }
  }
  if (task === mine) task = undefined;
  refresh();
  pump();
}

function progress({ entry, recording: working }, fraction, began) {
  const left = ((performance.now() - began) / 1000) * (1 / Math.max(fraction, 1e-9) - 1);
  const text = `${Math.floor(100 * fraction)} %${fraction > 0.01 && fraction < 1 ? `, ${clock(left)} left` : ""}`;
  queue.set(entry, { text });
  at("progress").value = fraction;
  at("progress-text").textContent = `${entry === current ? "Denoising" : `Denoising ${entry.name}`}: ${text}`;
  if (working === recording) timeline.update();
}

/** Computes everything again, with other settings. */
function recompute() {
  if (!current) return;
  task?.abort.abort();
  task = undefined;
  queue.restart();
  again();
}

/** Computes the entry that is shown, and those that were cancelled; other results stay. */
function again() {
  const place = player.frame;
  const playing = player.playing;
  for (const entry of queue.entries) {
    if (entry.state === "stopped" || (entry === current && entry.state === "failed")) queue.set(entry, { state: "waiting", text: "Waiting" });
  }
  if (recording) {
    player.pause();
    const { selection } = timeline;
    const part = player.part;
    recording.restart();
    timeline.again();
    player.seek(place);
    if (selection) timeline.select(selection);
    if (playing && part === "before") player.play();
    say("");
    pump();
  } else open(current);
}

/** Ends the computation. */
function stop() {
  task?.abort.abort();
  task = undefined;
  for (const entry of queue.entries) {
    if (entry.state === "busy" || entry.state === "waiting") queue.set(entry, { state: "stopped", text: "Cancelled" });
  }
  say("Cancelled.");
  refresh();
}

function remix() {
  const kept = settings.kept(computed);
  player.kept = timeline.kept = kept;
}

/** Shows what may be done now. */
function refresh() {
  showQueue(queue, current, { onOpen: open, onRemove: remove });
  at("busy").hidden = !task;
  at("empty").hidden = queue.entries.length > 0;
  at("again").hidden = !["stopped", "failed"].includes(current?.state);
  at("figures").hidden = !recording?.stats;
  if (recording?.stats) showFigures(recording.stats, settings.mix);
  controls();
}

function controls() {
  for (const id of ["save-result", "save-removed", "save-segments"]) at(id).disabled = !recording?.finished;
  at("part-after").disabled = at("part-removed").disabled = !recording?.ready;
  at("play").disabled = !recording || (player.part !== "before" && !recording.ready);
}

function remove(entry) {
  if (task?.entry === entry) {
    task.abort.abort();
    task = undefined;
  }
  const index = queue.entries.indexOf(entry);
  queue.remove(entry);
  at("file-list").querySelectorAll(".open")[Math.min(index, queue.entries.length - 1)]?.focus();
  if (entry === current) {
    if (queue.entries.length) return open(queue.entries[Math.min(index, queue.entries.length - 1)]);
    [current, recording] = [undefined, undefined];
    at("editor").hidden = true;
  }
  refresh();
  pump();
}

function add(files) {
  const [first] = queue.add([...files]);
  if (first) open(first);
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function saving(button, work) {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    say(`Cannot save: ${error.message}`);
  }
  button.disabled = false;
  refresh(); // another recording may be shown by now
}

/** Saves a part of the recording that is shown now, whatever is shown when it is written. */
const savePart = (id, part, name) =>
  at(id).addEventListener("click", () => saving(at(id), async () => {
    const { name: source } = recording;
    save(await recording.wav(part, settings.mix), resultName(source, name));
  }));

let taping; // what is being recorded

async function toggleRecording() {
  const button = at("record");
  button.disabled = true; // while the browser asks for the microphone
  try {
    if (taping) {
      const ended = taping;
      taping = undefined;
      const { channels, sampleRate } = await ended.finish();
      if (channels[0].length === 0) throw new Error("no samples arrived");
      const time = new Date().toLocaleTimeString("sv").replaceAll(":", "-");
      say("");
      open(queue.addRecording(new Recording(`recording ${time}.wav`, sampleRate, channels)));
    } else {
      taping = await record(await microphone(), (seconds) => (at("record-time").textContent = clock(seconds)));
      player.pause();
      say("Recording …");
    }
  } catch (error) {
    say(`Cannot record: ${error.message}`);
  }
  at("record-time").textContent = taping ? "0:00" : "";
  button.setAttribute("aria-pressed", String(taping !== undefined));
  at("record-label").textContent = taping ? "Stop recording" : "Record";
  button.disabled = false;
  button.focus();
}

function choosePart(part) {
  if (at(`part-${part}`).disabled) return;
  at(`part-${part}`).checked = true;
  player.part = part;
  controls();
}

at("file").addEventListener("change", ({ target }) => {
  add(target.files);
  target.value = ""; // the same file may be chosen again
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.toggle("over", name === "dragover");
    if (name === "drop") add(event.dataTransfer.files);
  });
}
at("record").addEventListener("click", toggleRecording);
at("example").addEventListener("click", () => saving(at("example"), async () => {
  const response = await fetch("./example.wav");
  if (!response.ok) throw new Error(`example.wav: ${response.status}`);
  add([new File([await response.blob()], "example.wav", { type: "audio/wav" })]);
}));
// Each button hides itself: the focus goes to what takes its place.
at("stop").addEventListener("click", () => {
  stop();
  at("again").focus();
});
at("again").addEventListener("click", () => {
  again();
  at("stop").focus();
});
at("play").addEventListener("click", () => player.toggle());
at("loop").addEventListener("click", () => toggleLoop());
for (const part of ["before", "after", "removed"]) at(`part-${part}`).addEventListener("change", () => choosePart(part));
at("zoom-in").addEventListener("click", () => timeline.zoom(0.5));
at("zoom-out").addEventListener("click", () => timeline.zoom(2));
at("zoom-all").addEventListener("click", () => timeline.zoom(Infinity));
at("earlier").addEventListener("click", () => timeline.zoom(1, 0.5, -0.5));
at("later").addEventListener("click", () => timeline.zoom(1, 0.5, 0.5));
savePart("save-result", "after");
savePart("save-removed", "removed", "removed");
at("save-segments").addEventListener("click", () =>
  save(new Blob([segmentTable(recording.segments)], { type: "text/csv" }), resultName(recording.name, "speech", "csv")));
at("zip").addEventListener("click", () => saving(at("zip"), async () => {
  const archive = await queue.archive(settings.mix, (done, all) => say(`Packing ${done + 1} of ${all} …`));
  save(archive, "denoised.zip");
  say(`${counted(queue.done.length, "file")} saved.`);
}));

function toggleLoop() {
  if (!recording) return;
  timeline.select(timeline.selection ? undefined : timeline.visible);
  // What was scheduled ahead would go beyond the loop, or back into it.
  if (player.playing) player.seek(player.frame);
}

player.addEventListener("change", () => {
  at("play").setAttribute("aria-pressed", String(player.playing));
  at("play").setAttribute("aria-label", player.playing ? "Pause" : "Play");
});
timeline.addEventListener("select", () => {
  const { selection } = timeline;
  at("loop").setAttribute("aria-pressed", String(Boolean(selection)));
  const { sampleRate } = recording ?? {};
  at("loop-text").textContent = selection && recording ? `${clock(selection.start / sampleRate, 0.1)} to ${clock(selection.end / sampleRate, 0.1)}` : "";
});
queue.addEventListener("change", refresh);
settings.addEventListener("options", () => {
  recompute();
  remix();
});
let remixing; // pictures are drawn again once a slider rests
settings.addEventListener("kept", () => {
  player.kept = settings.kept(computed);
  clearTimeout(remixing);
  remixing = setTimeout(remix, 60);
  if (recording?.stats) showFigures(recording.stats, settings.mix);
});

listenToKeys({
  " ": () => recording && player.toggle(),
  b: () => choosePart(player.part === "before" ? "after" : "before"),
  r: () => choosePart("removed"),
  l: toggleLoop,
  "+": () => timeline.zoom(0.5),
  "-": () => timeline.zoom(2),
  0: () => timeline.zoom(Infinity),
});
startLive();
refresh();
engine.settings(SettingsPanel.presets()).then((found) => settings.describe(found), (error) => say(`Cannot load the denoiser: ${error.message}`));

// Installed, the page works offline. It keeps the one module that this browser runs.
const native = moduleAddress().pathname.split("/").at(-1);
navigator.serviceWorker?.register(`./offline.js?module=${native}`).catch(() => {});
