// Several files: each is denoised in turn, and all results go into one archive.
import { decode, resultName } from "./recording.js";
import { readWav } from "./wav.js";
import { zip } from "./zip.js";

const at = (id) => document.getElementById(id);

/** Dispatches `change` when an entry changes. */
export class Queue extends EventTarget {
  entries = []; // { name, load, state, text, result }

  /** Adds entries for files, and returns them. */
  add(files) {
    const added = files.map((file) => ({ name: file.name, load: () => decode(file), state: "waiting", text: "Waiting" }));
    this.entries.push(...added);
    this.#changed();
    return added;
  }

  /** Adds an entry for a recording that exists only here. */
  addRecording(recording) {
    const { name, sampleRate, channels } = recording;
    const copy = () => Promise.resolve(new recording.constructor(name, sampleRate, channels));
    const entry = { name, load: copy, state: "waiting", text: "Waiting" };
    this.entries.push(entry);
    this.#changed();
    return entry;
  }

  remove(entry) {
    this.entries = this.entries.filter((other) => other !== entry);
    this.#changed();
  }

  set(entry, changes) {
    Object.assign(entry, changes);
    this.#changed();
  }

  /** All results are out of date. */
  restart() {
    for (const entry of this.entries) {
      if (entry.state === "done" || entry.state === "busy") Object.assign(entry, { state: "waiting", text: "Waiting", result: undefined });
    }
    this.#changed();
  }

  get done() {
    return this.entries.filter(({ state }) => state === "done");
  }

  /** The recording of a finished entry, with its result. */
  async open(entry) {
    const recording = await entry.load();
    recording.append((await readWav(entry.result)).channels);
    [recording.stats, recording.segments] = [entry.stats, entry.segments];
    return recording;
  }

  /** All results in an archive, mixed with what was removed. */
  async archive(mix, onProgress) {
    const files = [];
    for (const [index, entry] of this.done.entries()) {
      onProgress(index, this.done.length);
      const blob = mix === 1 ? entry.result : await (await this.open(entry)).wav("after", mix);
      files.push({ name: resultName(entry.name), blob });
    }
    return zip(files);
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** Shows the list; `onOpen` and `onRemove` receive the entry of a button. */
export function showQueue(queue, current, { onOpen, onRemove }) {
  at("files").hidden = queue.entries.length < 2;
  at("zip").disabled = queue.done.length === 0;
  at("file-count").textContent = `${queue.done.length} of ${queue.entries.length} done`;
  const list = at("file-list");
  // Rows are kept, so that the focus stays where it is.
  const rows = new Map([...list.children].map((row) => [row.entry, row]));
  for (const entry of queue.entries) {
    const row = rows.get(entry) ?? makeRow(entry, onOpen, onRemove);
    rows.delete(entry);
    if (!row.isConnected) list.append(row);
    row.querySelector(".state").textContent = entry.text;
    row.dataset.state = entry.state;
    row.querySelector(".open").setAttribute("aria-current", String(entry === current));
  }
  for (const row of rows.values()) row.remove();
}

function makeRow(entry, onOpen, onRemove) {
  const row = document.createElement("li");
  row.entry = entry;
  const button = (type, text, label, action) => {
    const part = document.createElement("button");
    Object.assign(part, { type: "button", className: type, textContent: text, onclick: () => action(entry) });
    if (label) part.setAttribute("aria-label", label);
    return part;
  };
  const state = document.createElement("span");
  state.className = "state";
  row.append(button("open", entry.name, undefined, onOpen), state, button("remove quiet", "×", `Remove ${entry.name}`, onRemove));
  return row;
}
