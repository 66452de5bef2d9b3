// The page with a real recording: keyboard, result, player, pictures, settings, several files, microphone, an hour of audio.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { download, likeness, playedLevel, samplesOf, status, tapOutput, wavFile } from "./tools.mjs";

/** The keyboard reaches everything, in the order of the page; everything has a name. */
export async function checkKeyboard(tab) {
  const stops = [];
  for (let n = 0; n < 6; n++) {
    await tab.keyboard.press("Tab");
    stops.push(await tab.evaluate(() => document.activeElement.id));
  }
  assert.deepEqual(stops, ["file", "record", "example", "listen", "denoising", "live-floor"]);
  // What is hidden is not drawn, whatever its style says.
  const drawn = await tab.evaluate(() => [...document.querySelectorAll("[hidden]")].filter((part) => part.getClientRects().length).map((part) => part.id));
  assert.deepEqual(drawn, []);
}

/** Opened from its folder, the page says what to do. */
export async function checkFolder(browser, root) {
  const tab = await browser.newPage();
  await tab.goto(pathToFileURL(join(root, "index.html")).href);
  assert.match(await tab.textContent("#status"), /python3 -m http.server/);
  await tab.close();
}

/** Drops a file and compares the result with the program's. Returns the denoised samples. */
export async function checkResult(tab, noisy, program) {
  const box = await tab.locator("main").boundingBox();
  const hand = await tab.context().newCDPSession(tab);
  const data = { items: [], files: [noisy], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await hand.send("Input.dispatchDragEvent", { type, x: box.x + 20, y: box.y + 20, data });
  await status(tab, "Done");
  console.log(await tab.textContent("#status"));
  assert.equal(await tab.textContent("#name"), "demo-noisy.wav");
  assert.match(await tab.textContent("#snr"), /^\d+\.\d dB → \d+\.\d dB$/);
  const saved = await download(tab, "#save-result");
  assert.equal(saved.name, "demo-noisy-denoised.wav");
  const [before, speech] = [samplesOf(readFileSync(noisy)), samplesOf(saved.bytes)];
  const removed = samplesOf((await download(tab, "#save-removed")).bytes);
  assert.ok(speech.every((x, n) => Math.abs(x + removed[n] - before[n]) <= 2));
  // The sections with speech, as the program finds them, in a table and under the waveform.
  const table = await download(tab, "#save-segments");
  assert.equal(table.name, "demo-noisy-speech.csv");
  const [head, ...rows] = table.bytes.toString().trim().split("\r\n");
  assert.equal(head, "channel,start_seconds,end_seconds,level_dbfs,snr_db");
  const marks = await tab.locator("#speech-marks span").evaluateAll((all) => all.map((mark) => mark.getClientRects().length));
  assert.ok(rows.length > 0 && marks.length === rows.length && marks.every((boxes) => boxes === 1), `${rows}; ${marks}`);
  if (program) {
    const scratch = mkdtempSync(join(tmpdir(), "alphamf-"));
    const output = join(scratch, "speech.wav");
    const track = join(scratch, "track.json");
    execFileSync(program, ["-q", "--no-dither", noisy, output, "--speech", track]);
    const { segments } = JSON.parse(readFileSync(track, "utf8")).channels[0];
    assert.equal(segments.length, rows.length);
    for (const [n, { start_seconds, end_seconds, level_dbfs, snr_db }] of segments.entries()) {
      const [channel, start, end, level, snr] = rows[n].split(",").map(Number);
      assert.ok(channel === 1 && Math.abs(start - start_seconds) < 0.03 && Math.abs(end - end_seconds) < 0.03, rows[n]);
      assert.ok(Math.abs(level - level_dbfs) < 0.2 && Math.abs(snr - snr_db) < 0.2, rows[n]);
    }
    const same = likeness(samplesOf(readFileSync(output)), speech);
    rmSync(scratch, { recursive: true });
    console.log(`${same.toFixed(1)} dB from the program's output`);
    assert.ok(same > 45);
  }
  return { before, speech };
}

/** Switches between original, result and difference while they play; seeks, selects and loops. */
export async function checkPlayer(tab, { before, speech }) {
  await tapOutput(tab);
  const time = async () => {
    const [, minutes, seconds] = (await tab.textContent("#time")).match(/^(\d+):(\d+\.\d) of 0:08$/);
    return 60 * minutes + Number(seconds);
  };
  const rms = (samples) => Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length) / 32768;
  await tab.evaluate(() => document.getElementById("play").scrollIntoView());
  // A loop over a pause: noise before, next to nothing after, and the noise in what was removed.
  const box = await tab.locator("#timeline").boundingBox();
  const drag = async (from, to) => {
    await tab.mouse.move(box.x + from * box.width, box.y + 60);
    await tab.mouse.down();
    await tab.mouse.move(box.x + to * box.width, box.y + 70, { steps: 5 });
    await tab.mouse.up();
  };
  await drag(0.005, 0.08);
  assert.equal(await tab.getAttribute("#loop", "aria-pressed"), "true");
  await tab.keyboard.press("Escape");
  await tab.evaluate(() => document.activeElement.blur());
  await tab.keyboard.press("Space");
  assert.equal(await tab.getAttribute("#play", "aria-label"), "Pause");
  const levels = {};
  for (const part of ["after", "before", "removed"]) {
    await tab.locator(`label[for=part-${part}]`).click();
    levels[part] = await playedLevel(tab, 2500);
    const now = await time();
    assert.ok(now <= 0.7, `${now} s is outside of the loop`);
  }
  const pause = (samples) => rms(samples.subarray(1000, 9000));
  console.log(`played: ${JSON.stringify(levels)}; in the files: ${pause(before).toFixed(4)}, ${pause(speech).toFixed(4)}`);
  assert.ok(Math.abs(20 * Math.log10(levels.before / pause(before))) < 2);
  assert.ok(Math.abs(20 * Math.log10(levels.removed / pause(before))) < 2);
  assert.ok(levels.after < levels.before / 4);
  await tab.keyboard.press("b");
  assert.ok(await tab.isChecked("#part-before"));
  await tab.keyboard.press("l");
  assert.equal(await tab.getAttribute("#loop", "aria-pressed"), "false");
  await tab.keyboard.press("b");
  assert.ok(await tab.isChecked("#part-after"));

  // A click moves the playhead; arrows move it; it stops at the end.
  await tab.mouse.click(box.x + 0.5 * box.width, box.y + 100);
  await tab.waitForTimeout(300);
  const middle = await time();
  assert.ok(middle > 3.7 && middle < 5.5, String(middle));
  // On a busy machine the end may have come by now.
  await tab.evaluate(() => {
    const play = document.getElementById("play");
    if (play.getAttribute("aria-label") === "Pause") play.click();
  });
  await tab.focus("#timeline");
  await tab.keyboard.press("Home");
  for (let n = 0; n < 3; n++) await tab.keyboard.press("ArrowRight");
  assert.equal(await time(), 3);
  assert.equal(await tab.getAttribute("#timeline", "aria-valuenow"), "3.0");
  await tab.keyboard.press("End");
  await tab.keyboard.press("ArrowLeft");
  await tab.click("#play");
  await tab.waitForFunction(() => document.getElementById("play").getAttribute("aria-label") === "Play", undefined, { timeout: 10_000 });

  // A loop that is set while it plays holds at once, though more was scheduled.
  await tab.focus("#timeline");
  await tab.keyboard.press("Home");
  for (let n = 0; n < 3; n++) await tab.keyboard.press("+");
  await tab.keyboard.press("Space");
  await tab.waitForTimeout(300);
  await tab.keyboard.press("l");
  for (let n = 0; n < 12; n++) {
    await tab.waitForTimeout(150);
    const now = await time();
    assert.ok(now <= 1, `${now} s is outside of the loop`);
  }
  for (const key of ["l", "Space", "0"]) await tab.keyboard.press(key);
}

/** Pictures are drawn, differ, and follow the zoom. */
export async function checkPictures(tab) {
  const pictures = () =>
    tab.evaluate(() => ["wave", "before", "after"].map((id) => document.getElementById(id).toDataURL()).join("\n"));
  // What they are once they no longer change, and hold what is asked for: a busy machine draws late.
  const drawn = async (holds) => {
    let last;
    for (let n = 0; n < 60; n++) {
      await tab.waitForTimeout(500);
      const now = await pictures();
      if (now === last && holds(now.split("\n"))) return now.split("\n");
      last = now;
    }
    assert.fail("the pictures do not become what they should be");
  };
  await tab.click("#zoom-all");
  const whole = await drawn((now) => new Set(now).size === 3);
  await tab.focus("#zoom-in");
  await tab.keyboard.press("Enter");
  await drawn((now) => now.every((picture, n) => picture !== whole[n]));
  await tab.keyboard.press("0");
  await drawn((now) => now.every((picture, n) => picture === whole[n]));
  return whole;
}

/** The mix acts at once; strength and floor compute the result again. */
export async function checkSettings(tab, { before, speech }, whole) {
  const found = async () => samplesOf((await download(tab, "#save-result")).bytes);
  await tab.fill("#mix", "50");
  assert.equal(await tab.textContent("#mix-text"), "50 %");
  const half = await found();
  assert.ok(half.every((x, n) => Math.abs(x - (speech[n] + before[n]) / 2) <= 2));
  await tab.waitForFunction((was) => document.getElementById("after").toDataURL() !== was, whole[2], { timeout: 30_000 });
  await tab.fill("#mix", "100");

  // What presets stand for is read from the settings.
  const floors = await tab.evaluate(() => ["gentle", "normal", "strong"].map((id) => document.getElementById(`${id}-floor`).textContent));
  const settings = await tab.evaluate(async () => {
    const { settings } = await import("./index.js");
    return Promise.all(["gentle", "normal", "strong"].map(async (strength) => (await settings({ strength })).gain.floor_db));
  });
  assert.deepEqual(floors, settings.map((floor) => `up to ${-floor} dB`));

  await tab.locator("#settings summary").click();
  await tab.selectOption("#quality", "fast");
  await tab.locator("label[for=gentle]").click();
  assert.equal(await tab.inputValue("#floor"), "-12");
  await status(tab, "Done");
  const gentle = await found();
  assert.ok(likeness(gentle, speech) < 25);
  // The floor that the preset stands for gives the same samples.
  await tab.fill("#floor", "-11");
  await tab.fill("#floor", "-12");
  await tab.dispatchEvent("#floor", "change");
  assert.ok(await tab.isChecked("#custom"));
  await tab.waitForTimeout(200);
  await status(tab, "Done");
  assert.deepEqual(await found(), gentle);

  // A use brings its mix along, which is shown and can be changed.
  await tab.selectOption("#purpose", "transcription");
  await status(tab, "Done");
  assert.equal(await tab.textContent("#mix-text"), "80 %");
  const mixed = await found();
  await tab.fill("#mix", "100");
  const full = await found();
  assert.ok(likeness(full, mixed) < 25);
  assert.ok(mixed.every((x, n) => Math.abs(x - (0.8 * full[n] + 0.2 * before[n])) <= 2));

  // All settings are reset, what they show, and the result.
  await tab.fill("#dereverb", "50");
  await tab.click("#defaults");
  await status(tab, "Done");
  assert.ok((await tab.isChecked("#normal")) && (await tab.inputValue("#quality")) === "normal");
  const texts = ["#floor-text", "#mix-text", "#dereverb-text"].map((id) => tab.textContent(id));
  assert.deepEqual(await Promise.all(texts), ["−45 dB", "100 %", "0 %"]);
  assert.deepEqual(await found(), speech);
}

/** Several files, one of which is no audio, into one archive. */
export async function checkSeveral(tab, noisy) {
  const bytes = readFileSync(noisy);
  const file = (name, buffer) => ({ name, mimeType: "audio/wav", buffer });
  const short = wavFile(Array.from(samplesOf(bytes).subarray(0, 24000)), 16000);
  await tab.setInputFiles("#file", [file("one.wav", short), file("notes.txt", Buffer.from("no audio")), file("two.wav", short)]);
  const states = () => tab.evaluate(() => [...document.querySelectorAll("#file-list li")].map((row) => [row.querySelector(".open").textContent, row.dataset.state]));
  await tab.waitForFunction(() => [...document.querySelectorAll("#file-list li")].filter((row) => row.dataset.state === "done").length === 3, undefined, { timeout: 120_000 });
  assert.deepEqual(await states(), [["demo-noisy.wav", "done"], ["one.wav", "done"], ["notes.txt", "failed"], ["two.wav", "done"]]);
  assert.match(await tab.textContent("#file-list li:nth-child(3) .state"), /^cannot decode notes.txt: /);
  const { name, bytes: archive } = await download(tab, "#zip");
  assert.equal(name, "denoised.zip");
  for (const part of ["demo-noisy", "one", "two"]) assert.ok(archive.includes(`${part}-denoised.wav`), part);
  assert.ok(archive.length > bytes.length + 2 * short.length && archive.length < bytes.length + 2 * short.length + 1000);
  // A file that cannot be read takes the place of the one that was shown: nothing of that is shown or played.
  await tab.click("#file-list li:nth-child(3) .open");
  await status(tab, "cannot decode notes.txt");
  assert.ok(await tab.isHidden("#editor"));
  await tab.evaluate(() => document.activeElement.blur());
  await tab.keyboard.press("Space");
  assert.equal(await tab.getAttribute("#play", "aria-label"), "Play");
  // Trying it again leaves the other results alone.
  await tab.click("#again");
  await tab.waitForTimeout(300);
  await status(tab, "cannot decode notes.txt");
  assert.deepEqual((await states()).map(([, state]) => state), ["done", "done", "failed", "done"]);
  // A result that was put aside is opened again.
  await tab.click("#file-list li:first-child .open");
  await tab.waitForFunction(() => document.getElementById("length").textContent.startsWith("0:07.7"));
  assert.equal((await download(tab, "#save-result")).bytes.length, bytes.length);
  // What is saved has its own name, though another file is opened before it is written.
  await tab.evaluate(async () => {
    const { Recording } = await import("./recording.js");
    const { wav } = Recording.prototype;
    Recording.prototype.wav = async function (...more) {
      Recording.prototype.wav = wav;
      await new Promise((resolve) => setTimeout(resolve, 500));
      return this.wav(...more);
    };
  });
  const [saved] = await Promise.all([
    tab.waitForEvent("download"),
    tab.click("#save-result").then(() => tab.click("#file-list li:nth-child(2) .open")),
  ]);
  assert.equal(saved.suggestedFilename(), "demo-noisy-denoised.wav");
  assert.equal(readFileSync(await saved.path()).length, bytes.length);
  for (let n = 0; n < 3; n++) await tab.click("#file-list li:nth-child(2) .remove");
  assert.ok(await tab.isHidden("#files"));
  // A file that is cut off.
  await tab.setInputFiles("#file", [file("cut.wav", short.subarray(0, 44 + 16000))]);
  await status(tab, "Done");
  assert.equal(await tab.textContent("#length"), "0:00.5, 16000 Hz, mono; cut off: 0:01.0 missing at the end");
  await tab.click("#file-list li:nth-child(2) .remove");
  // The peak is that of the recording, however small.
  for (const [peak, text] of [[0, "silent"], [16, "peak −66.2 dBFS"]]) {
    await tab.setInputFiles("#file", [file("soft.wav", wavFile(Array.from({ length: 8000 }, (_, n) => (n % 2 ? peak : -peak)), 16000))]);
    await tab.waitForFunction((text) => document.getElementById("peak").textContent === text, text);
    await status(tab, "Done");
    await tab.click("#file-list li:nth-child(2) .remove");
  }
}

/** A recording from the microphone, which repeats the demo. */
export async function checkRecording(tab) {
  await tab.click("#record");
  await status(tab, "Recording");
  await tab.waitForTimeout(2500);
  await tab.click("#record");
  await status(tab, "Done");
  assert.match(await tab.textContent("#name"), /^recording .*\.wav$/);
  await tab.locator("label[for=part-before]").click();
  const { name, bytes } = await download(tab, "#save-removed");
  assert.match(name, /^recording .*-removed.wav$/);
  assert.ok(samplesOf(bytes).length > 32000);
}

/** An hour of audio: the page stays responsive while it is read, drawn and denoised, and the work can be cancelled. */
export async function checkHour(tab, noisy) {
  const demo = samplesOf(readFileSync(noisy));
  const scratch = mkdtempSync(join(tmpdir(), "alphamf-"));
  const hour = join(scratch, "hour.wav");
  const part = wavFile(Array.from(demo), 16000).subarray(44);
  const count = Math.ceil((3600 * 16000 * 2) / part.length);
  const header = wavFile([], 16000);
  header.writeUInt32LE(36 + count * part.length, 4);
  header.writeUInt32LE(count * part.length, 40);
  writeFileSync(hour, Buffer.concat([header, ...Array.from({ length: count }, () => part)]));
  await tab.evaluate(() => {
    globalThis.longest = 0;
    let last = performance.now();
    globalThis.watching = setInterval(() => {
      const now = performance.now();
      globalThis.longest = Math.max(globalThis.longest, now - last);
      last = now;
    }, 5);
  });
  await tab.setInputFiles("#file", hour);
  await tab.waitForFunction(() => !document.getElementById("busy").hidden && /\d %/.test(document.getElementById("progress-text").textContent) && document.getElementById("length").textContent.startsWith("1:00:0"), undefined, { timeout: 120_000 });
  await tab.waitForTimeout(3000);
  const longest = await tab.evaluate(() => {
    clearInterval(globalThis.watching);
    return globalThis.longest;
  });
  console.log(`an hour: ${await tab.textContent("#progress-text")}; the page stood still for ${longest.toFixed(0)} ms at most`);
  assert.ok(longest < 500);
  // Both buttons hide themselves; the keyboard goes on with what takes their place.
  const pressed = async (id) => {
    await tab.focus(id);
    await tab.keyboard.press("Enter");
    return tab.evaluate(() => document.activeElement.id);
  };
  assert.equal(await pressed("#stop"), "again");
  await status(tab, "Cancelled");
  assert.ok(await tab.isHidden("#busy"));
  assert.equal(await pressed("#again"), "stop");
  await tab.click("#stop");
  await status(tab, "Cancelled");
  assert.ok(await tab.isVisible("#again"));
  rmSync(scratch, { recursive: true });
}
