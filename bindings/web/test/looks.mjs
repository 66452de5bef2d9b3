// How the page looks, at two widths and in light and dark: screenshots, nothing wider than the window, nothing that axe finds.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { status } from "./tools.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Violations of accessibility rules, in words. */
export async function violations(tab) {
  await tab.evaluate(axe);
  return tab.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`));
  });
}

/** Parts that reach beyond the window, but for those in parts that scroll. */
export const tooWide = (tab, scrolling = ".offscreen, canvas, #times, #timeline") =>
  tab.evaluate((scrolling) => [...document.body.querySelectorAll("*")]
    .filter((part) => part.getBoundingClientRect().right > innerWidth + 0.5 && !part.closest(scrolling))
    .map((part) => part.outerHTML.slice(0, 100)), scrolling);

export async function checkLooks(browser, address, noisy, folder) {
  mkdirSync(folder, { recursive: true });
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    const context = await browser.newContext({ viewport: { width, height }, serviceWorkers: "block", permissions: ["microphone"] });
    const tab = await context.newPage();
    await tab.goto(address);
    const look = async (name) => {
      for (const colorScheme of ["light", "dark"]) {
        await tab.emulateMedia({ colorScheme });
        await tab.waitForTimeout(400);
        await tab.screenshot({ path: join(folder, `page-${name}-${width}-${colorScheme}.png`), fullPage: true });
        assert.deepEqual(await violations(tab), [], `${name}, ${width}, ${colorScheme}`);
      }
      assert.deepEqual(await tooWide(tab), []);
      assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    };
    await look("empty");
    const bytes = readFileSync(noisy);
    const long = "a recording with a rather long name, made on the way to the station, in rain and wind.wav";
    await tab.setInputFiles("#file", [{ name: long, mimeType: "audio/wav", buffer: bytes }, { name: "second.wav", mimeType: "audio/wav", buffer: bytes },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no audio") }]);
    await tab.waitForFunction(() => !document.getElementById("busy").hidden);
    await look("busy");
    await tab.waitForFunction(() => document.querySelectorAll('#file-list li[data-state="done"]').length === 2, undefined, { timeout: 120_000 });
    // Long reasons leave room for the names.
    await tab.waitForFunction(() => document.querySelector('#file-list li[data-state="failed"]'));
    const names = await tab.evaluate(() => [...document.querySelectorAll("#file-list li")].map((row) =>
      [row.querySelector(".open"), row.querySelector(".state")].map((part) => part.getBoundingClientRect().toJSON())));
    for (const [name, state] of names) assert.ok(name.width > 100 && name.right <= state.left, JSON.stringify([name, state]));
    await tab.focus("#timeline");
    for (let n = 0; n < 3; n++) await tab.keyboard.press("ArrowRight");
    await tab.keyboard.press("l");
    for (const details of await tab.locator("summary").all()) await details.click();
    await tab.click("#listen");
    await status(tab, "On", "live-status");
    await look("result");
    await context.close();
  }
}
