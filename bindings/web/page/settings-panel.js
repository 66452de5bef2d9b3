// The settings: presets and sliders, and the options that they stand for.

const at = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
const decibels = (value) => `${String(Math.round(value)).replace("-", "−")} dB`;

const PRESETS = ["gentle", "normal", "strong"];
const MIX = { listening: 100, transcription: 80 }; // %, that each use stands for

/** Dispatches `options` when the result has to be computed again, and `kept` when what was computed is mixed anew. */
export class SettingsPanel extends EventTarget {
  #floors; // of the presets, dB

  constructor() {
    super();
    this.#read();
    for (const radio of document.querySelectorAll('input[name="strength"]')) {
      radio.addEventListener("change", () => {
        if (this.#floors && radio.value !== "custom") at("floor").value = this.#floors[radio.value];
        this.#changed("options");
      });
    }
    at("floor").addEventListener("input", () => {
      at("custom").checked = true;
      this.#changed("kept");
    });
    at("mix").addEventListener("input", () => this.#changed("kept"));
    at("dereverb").addEventListener("input", () => this.#read());
    at("purpose").addEventListener("change", () => (at("mix").value = MIX[at("purpose").value]));
    for (const id of ["floor", "dereverb", "quality", "purpose", "channels", "no-neural"]) at(id).addEventListener("change", () => this.#changed("options"));
    // Its name is not "reset": in a form, that would hide the function.
    at("defaults").addEventListener("click", () => {
      at("settings").reset();
      if (this.#floors) at("floor").value = this.#floors.normal;
      this.#changed("options");
    });
    at("settings").addEventListener("submit", (event) => event.preventDefault());
  }

  /** Fills in what the presets stand for, as `settings` of the package reports it. */
  describe(settings) {
    this.#floors = Object.fromEntries(PRESETS.map((preset, n) => [preset, settings[n].gain.floor_db]));
    for (const preset of PRESETS) at(`${preset}-floor`).textContent = `up to ${Math.round(-this.#floors[preset])} dB`;
    if (chosen("strength") !== "custom") at("floor").value = this.#floors[chosen("strength")];
    this.#read();
  }

  /** Options of the presets, for `describe`. */
  static presets() {
    return PRESETS.map((strength) => ({ strength }));
  }

  /** The options, by the names of the program. The mix of the panel is applied to the result, which is computed without. */
  get options() {
    const strength = chosen("strength");
    return {
      ...(strength === "custom" ? { floor_db: Number(at("floor").value) } : { strength }),
      mix: 1,
      dereverb: Number(at("dereverb").value) / 100,
      quality: at("quality").value,
      purpose: at("purpose").value,
      channels: at("channels").value,
      no_neural: at("no-neural").checked,
    };
  }

  get mix() {
    return Number(at("mix").value) / 100;
  }

  /**
   * Fraction of the removed signal to mix in. `computed` are the options of the result at hand: a floor that is being
   * moved up is approximated by the removed signal at that level until the result is computed.
   */
  kept(computed) {
    const floor = Number(at("floor").value);
    const before = computed?.floor_db ?? this.#floors?.[computed?.strength] ?? floor;
    const preview = floor > before ? 10 ** (floor / 20) : 0;
    return 1 - this.mix * (1 - preview);
  }

  #changed(event) {
    this.#read();
    this.dispatchEvent(new Event(event));
  }

  #read() {
    at("floor-text").textContent = decibels(at("floor").value);
    at("mix-text").textContent = `${at("mix").value} %`;
    at("dereverb-text").textContent = `${at("dereverb").value} %`;
  }
}
