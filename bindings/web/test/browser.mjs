// The page in a real browser: node test/browser.mjs PAGE [CHROMIUM]
//
// DENOISE is the path of the program, with whose output the page's is compared.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { checkLiveNode, checkLivePage } from "./live.mjs";

const [page = "../../target/page", executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const root = resolve(page);
const noisy = resolve(import.meta.dirname, "../../../audio/demo-noisy.wav");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

const sizes = new Map(); // of what was asked for, bytes
const server = createServer((request, response) => {
  const path = new URL(request.url, "http://localhost").pathname.replace(/\/$/, "/index.html");
  try {
    const bytes = readFileSync(join(root, path));
    sizes.set(path, bytes.length);
    response.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${server.address().port}/`;

/** The samples of a WAV file of 16 bits and one channel, whose header has 44 bytes. */
const samples = (bytes) => new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + bytes.length));

/** How far a result is from another, dB. */
function likeness(a, b) {
  assert.equal(a.length, b.length);
  let [signal, difference] = [0, 0];
  for (let n = 0; n < a.length; n++) {
    signal += a[n] ** 2;
    difference += (a[n] - b[n]) ** 2;
  }
  return 10 * Math.log10(signal / difference);
}

const browser = await chromium.launch({
  executablePath,
  args: [
    "--no-sandbox",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    `--use-file-for-fake-audio-capture=${noisy}`,
  ],
});
const scratch = mkdtempSync(join(tmpdir(), "alphamf-"));
try {
  const context = await browser.newContext({ colorScheme: "dark", permissions: ["microphone"] });
  const tab = await context.newPage();
  const complaints = [];
  tab.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  tab.on("pageerror", (error) => complaints.push(error.message));
  const status = (words) => tab.waitForFunction((words) => document.getElementById("status").textContent.includes(words), words, { timeout: 120_000 });
  const fetched = async (id, property) => {
    const numbers = await tab.evaluate(async ([id, property]) => {
      const bytes = await (await fetch(document.getElementById(id)[property])).arrayBuffer();
      return Array.from(new Uint8Array(bytes));
    }, [id, property]);
    return samples(Buffer.from(numbers));
  };

  await tab.goto(address);
  // With the keyboard: the first stop is the choice of a file.
  await tab.keyboard.press("Tab");
  assert.equal(await tab.evaluate(() => document.activeElement.id), "file");
  assert.equal(await tab.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "light dark");
  const letters = () => tab.evaluate(() => getComputedStyle(document.body).color);
  const light = await letters();
  await tab.emulateMedia({ colorScheme: "light" });
  assert.notEqual(await letters(), light);
  // Everything that can be worked has a name for who does not see it, and the keyboard comes to it.
  const nameless = await tab.evaluate(() =>
    [...document.querySelectorAll("button, input, select, meter, progress, canvas, audio, a")]
      .filter((part) => !(part.ariaLabel || part.getAttribute("aria-labelledby") || part.labels?.length || part.textContent.trim()))
      .map((part) => part.outerHTML));
  assert.deepEqual(nameless, []);
  const stops = [];
  for (let n = 0; n < 9; n++) {
    stops.push(await tab.evaluate(() => document.activeElement.id));
    await tab.keyboard.press("Tab");
  }
  assert.deepEqual(stops.slice(0, 8), ["file", "record", "strength", "quality", "mix", "listen", "denoising", "floor-db"]);

  // A file is dropped, as a hand does it.
  const box = await tab.locator("#drop").boundingBox();
  const hand = await context.newCDPSession(tab);
  const data = { items: [], files: [noisy], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) {
    await hand.send("Input.dispatchDragEvent", { type, x: box.x + 20, y: box.y + 20, data });
  }
  await status("Done");
  assert.equal(await tab.textContent("#name"), "demo-noisy.wav");
  console.log(await tab.textContent("#status"));
  const voice = await fetched("download", "href");
  const before = samples(readFileSync(noisy));
  assert.equal(await tab.getAttribute("#download", "download"), "demo-noisy-voice.wav");
  const residual = await fetched("residual-audio", "src");
  const sum = voice.map((x, n) => x + residual[n]);
  assert.ok(sum.every((x, n) => Math.abs(x - before[n]) <= 2));
  if (process.env.DENOISE) {
    const output = join(scratch, "voice.wav");
    execFileSync(process.env.DENOISE, ["-q", "--no-dither", noisy, output]);
    const same = likeness(samples(readFileSync(output)), voice);
    console.log(`${same.toFixed(1)} dB from the program's output`);
    assert.ok(same > 45);
  }

  // Zoomed together; pictures are not black; the overlay changes one.
  const pictures = () => tab.evaluate(() => ["before", "after"].map((id) => document.getElementById(id).toDataURL()));
  const whole = await pictures();
  assert.notEqual(whole[0], whole[1]);
  await tab.focus("#in");
  await tab.keyboard.press("Enter");
  const closer = await pictures();
  assert.ok(closer[0] !== whole[0] && closer[1] !== whole[1]);
  await tab.check("#overlay");
  const overlaid = await pictures();
  assert.ok(overlaid[0] === closer[0] && overlaid[1] !== closer[1]);

  // Half of the recording is mixed in.
  await tab.focus("#mix");
  await tab.fill("#mix", "50");
  await tab.dispatchEvent("#mix", "change");
  const half = await fetched("download", "href");
  assert.ok(half.every((x, n) => Math.abs(x - (voice[n] + before[n]) / 2) <= 2));

  // Another strength is another result.
  await tab.selectOption("#quality", "fast");
  await tab.selectOption("#strength", "gentle");
  await status("Done");
  console.log(await tab.textContent("#status"));
  assert.ok(likeness(await fetched("download", "href"), half) < 40);

  // A recording is made of what the microphone hears, which is the demo over and over.
  await tab.click("#record");
  await status("Recording");
  await tab.waitForTimeout(2500);
  await tab.click("#record");
  await status("Done");
  assert.match(await tab.getAttribute("#download", "download"), /^recording .*-voice.wav$/);
  const heard = await fetched("before-audio", "src");
  const loudest = heard.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  console.log(`recorded ${heard.length} samples from the microphone, up to ${loudest}`);
  assert.ok(heard.length > 32000 && loudest > 1000);
  assert.equal((await fetched("download", "href")).length, heard.length);

  await checkLivePage(tab);

  // All of the page, for recordings and live, is under 3 MB.
  await tab.evaluate(() => navigator.serviceWorker.ready);
  const loaded = [...sizes.values()].reduce((sum, size) => sum + size);
  console.log(`${sizes.size} files were loaded, ${(loaded / 1e6).toFixed(2)} MB`);
  assert.ok(sizes.has("/native/alphamf_web_bg.wasm.gz") && loaded < 3e6, JSON.stringify([...sizes]));

  // What is no recording is refused in words.
  await tab.setInputFiles("#file", { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no sound") });
  await status("cannot be read");
  assert.deepEqual(complaints, []);

  // The package itself, and what it refuses.
  const found = await tab.evaluate(async () => {
    const { Denoiser, denoise } = await import("./index.js");
    const hum = Float32Array.from({ length: 16000 }, (_, n) => 0.1 * Math.sin(0.02 * n));
    const words = async (work) => work().then(() => "", (error) => error.message);
    const denoiser = await Denoiser.create({ quality: "fast", no_neural: true });
    const whole = denoiser.denoise([hum, hum], 16000);
    const stream = denoiser.stream(16000);
    const parts = [stream.push(hum.subarray(0, 7000)), stream.push(hum.subarray(7000)), stream.finish()];
    const single = denoiser.denoise(hum, 16000, { noise: hum }).voice[0];
    return {
      lengths: [whole.voice.length, whole.residual.length, single.length],
      joined: parts.flatMap((part) => Array.from(part.voice[0])).length,
      samples: stream.stats.samples,
      plain: (await denoise(hum, 16000, { quality: "fast" })).length,
      errors: [
        await words(() => denoise(hum, 1000)),
        await words(() => denoise(hum, 16000, { colour: 1 })),
        await words(() => denoise([1, 2], 16000)),
        await words(async () => denoiser.denoise(hum, 16000, { onProgress() { throw new Error("enough"); } })),
      ],
    };
  });
  assert.deepEqual([found.lengths, found.joined, found.samples, found.plain], [[2, 2, 16000], 16000, 16000, 16000]);
  for (const [index, words] of ["1000 Hz", "colour", "Float32Array", "interrupted"].entries()) {
    assert.ok(found.errors[index].includes(words), found.errors[index]);
  }

  await checkLiveNode(tab, noisy, process.env.DENOISE);
  assert.deepEqual(complaints, []);

  // A server that has the browser unpack it, and one that has lost it for a moment.
  const apart = await browser.newContext({ serviceWorkers: "block" });
  const other = await apart.newPage();
  let answers = 0;
  await other.route("**/*.wasm.gz", (route) => {
    if (answers++ === 0) return route.fulfill({ status: 503 });
    return route.fulfill({ body: gunzipSync(readFileSync(join(root, "native/alphamf_web_bg.wasm.gz"))) });
  });
  await other.goto(`${address}style.css`);
  const tries = await other.evaluate(async () => {
    const { denoise } = await import("./index.js");
    const tried = () => denoise(new Float32Array(16000), 16000, { quality: "fast" }).then((voice) => voice.length, (error) => error.message);
    return [await tried(), await tried()];
  });
  assert.ok(tries[0].includes("503") && tries[1] === 16000, JSON.stringify(tries));
  await apart.close();

  // A browser without vectors loads the plain module, as it is.
  const old = await context.newPage();
  old.on("pageerror", (error) => complaints.push(error.message));
  await old.addInitScript(() => (WebAssembly.validate = () => false));
  const modules = [];
  old.on("request", (request) => request.url().includes(".wasm") && modules.push(request.url().split("/").at(-1)));
  await old.goto(address);
  const plain = await old.evaluate(async (demo) => {
    const { denoise } = await import("./index.js");
    return Array.from(await denoise(Float32Array.from(demo, (x) => x / 32768), 16000));
  }, Array.from(before));
  assert.deepEqual([modules, complaints], [["alphamf_web_plain_bg.wasm"], []]);
  const alike = likeness(voice, plain.map((x) => 32768 * x));
  console.log(`${alike.toFixed(1)} dB from it without vectors`);
  assert.ok(alike > 40);
  await old.close();

  // Without a network, once it was seen.
  await tab.evaluate(() => navigator.serviceWorker.ready);
  server.close();
  server.closeAllConnections();
  await tab.reload();
  await tab.selectOption("#quality", "fast");
  await tab.setInputFiles("#file", noisy);
  await status("Done");
  console.log("the page does what it should, without a network, too");
} finally {
  await browser.close();
  server.close();
  rmSync(scratch, { recursive: true });
}
