// Keyboard shortcuts.

/** Calls the action of a key, unless the focus is on something that uses the key itself. */
export function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const focus = event.target.closest?.("input, select, button, summary, a");
    const range = focus?.type === "range";
    // Letters do nothing in buttons and sliders; the space bar works them.
    if (!action || (focus && !(focus.matches("button, summary, a") || range || focus.type === "radio" || focus.type === "checkbox"))) return;
    if (event.key === " " && focus) return;
    event.preventDefault();
    action();
  });
}
