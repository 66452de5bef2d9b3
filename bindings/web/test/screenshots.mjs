// Pictures of what people see first, into a folder, and what can be checked of them by a program:
//
//     DENOISE=target/debug/denoise node test/screenshots.mjs FOLDER [CHROMIUM] [LIVE]
//
// The plot, the page of plots, the report, the terminal and the page of docs/listen; test/browser.mjs makes those of the page. LIVE is a file
// with what `denoise live` wrote to a terminal, if there is one. Nothing overlaps, nothing is cut off, axes have units.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { tooWide, violations } from "./looks.mjs";

const [folder = "../../target/screenshots", executablePath = "/usr/bin/chromium", live] = process.argv.slice(2);
const program = resolve(process.env.DENOISE ?? "../../target/debug/denoise");
const root = resolve(import.meta.dirname, "../../..");
const audio = (name) => join(root, "audio", name);
const scratch = mkdtempSync(join(tmpdir(), "screenshots-"));
const SIZES = [[1280, 900], [390, 844]];
mkdirSync(folder, { recursive: true });
const denoise = (...options) => execFileSync(program, [...options, "-q"], { stdio: ["ignore", "ignore", "inherit"] });

/** A document at two widths, in light and dark. */
async function shoot(browser, name, address, prepare = () => {}) {
  for (const [width, height] of SIZES) {
    const tab = await browser.newPage({ viewport: { width, height } });
    tab.setDefaultTimeout(120_000);
    const errors = [];
    tab.on("pageerror", (error) => errors.push(error.message));
    await tab.goto(address);
    await prepare(tab);
    for (const colorScheme of ["light", "dark"]) {
      await tab.emulateMedia({ colorScheme });
      await tab.waitForTimeout(200);
      await tab.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      assert.deepEqual(await violations(tab), [], `${name}, ${width}, ${colorScheme}`);
    }
    // On a phone, tables scroll in their section.
    assert.deepEqual(await tooWide(tab, width < 600 ? "table" : "audio"), [], `${name}, ${width}`);
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}, ${width}`);
    assert.deepEqual(await overlaps(tab), [], `${name}, ${width}`);
    assert.deepEqual(errors, []);
    await tab.close();
  }
}

/** Pairs of words in pictures that overlap, and words that reach beyond their picture. */
const overlaps = (tab) =>
  tab.evaluate(() => [...document.querySelectorAll("svg")].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    const words = [...svg.querySelectorAll("text")]
      .map((text) => ({ text: text.textContent.trim(), box: text.getBoundingClientRect() }))
      .filter(({ text, box }) => text && box.width > 0);
    const cut = words.filter(({ box }) =>
      box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
    // Boxes of words are higher than their letters.
    const meet = (a, b) =>
      Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
      Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.4 * Math.min(a.height, b.height);
    const pairs = words.flatMap((a, n) => words.slice(n + 1).filter((b) => meet(a.box, b.box)).map((b) => `${a.text} | ${b.text}`));
    return [...cut.map(({ text }) => `cut: ${text}`), ...pairs];
  }));

/** `--plot`: as the program draws it, and in a page. */
async function shootPlot(browser) {
  const [svg, png] = ["plot.svg", "plot.png"].map((name) => join(scratch, name));
  for (const picture of [svg, png]) denoise(audio("demo-noisy.wav"), join(scratch, "voice.wav"), "--force", "--plot", picture);
  copyFileSync(png, join(folder, "plot.png"));
  const drawn = readFileSync(svg, "utf8");
  for (const unit of ["kHz", "dBFS", "time in m:ss", "dB"]) assert.ok(drawn.includes(unit), unit);
  const tab = await browser.newPage({ viewport: { width: 1280, height: 1300 } });
  await tab.setContent(`<body style="margin:0">${drawn.slice(drawn.indexOf("<svg"))}</body>`);
  await tab.screenshot({ path: join(folder, "plot-svg.png"), fullPage: true });
  assert.deepEqual(await overlaps(tab), []);
  await tab.close();
}

/** The report of `denoise eval` on one recording by two systems. */
async function shootReport(browser) {
  for (const side of ["clean", "noisy"]) {
    mkdirSync(join(scratch, side));
    for (const number of [1, 2]) copyFileSync(audio(`demo-${side}.wav`), join(scratch, side, `demo ${number}.wav`));
  }
  const report = join(scratch, "report.html");
  const corpus = ["--clean", join(scratch, "clean"), "--noisy", join(scratch, "noisy")];
  denoise("eval", ...corpus, "--quality", "fast", "--report", report);
  await shoot(browser, "report", pathToFileURL(report).href, async (tab) => {
    for (const details of await tab.locator("summary").all()) await details.click();
  });
}

/** The page of the plots of a folder: names are found whatever their case. */
async function shootPlots(browser) {
  const recordings = join(scratch, "plotted");
  mkdirSync(recordings);
  for (const name of ["walk & talk.wav", "lecture.wav"]) copyFileSync(audio("demo-noisy.wav"), join(recordings, name));
  denoise(recordings, "-o", join(scratch, "voices"), "--quality", "fast", "--plot", join(scratch, "plots"));
  await shoot(browser, "plots", pathToFileURL(join(scratch, "plots", "index.html")).href, async (tab) => {
    await tab.fill("#filter", "WALK &");
    assert.equal(await tab.textContent("#count"), "1 of 2");
    assert.deepEqual(await tab.locator("li:visible b").allTextContents(), ["walk & talk"]);
    await tab.fill("#filter", "");
  });
}

/** The page of docs/listen: its players switch while they play. */
async function shootListen(browser) {
  const address = pathToFileURL(join(root, "docs/listen/index.html")).href;
  await shoot(browser, "listen", address, async (tab) => {
    // Seven seconds: on a busy machine they may be over at any time.
    const buttons = tab.locator(".example").first().locator(".controls button");
    await buttons.first().click();
    await tab.waitForFunction(() => Number(document.querySelector(".example input[type=range]").value) > 0.02);
    const second = buttons.filter({ hasText: "2 alphamf" });
    await second.click();
    assert.equal(await second.getAttribute("aria-pressed"), "true");
    assert.equal(await tab.locator(".example figure.current").first().getAttribute("data-version"), "alphamf");
    await tab.waitForFunction(() => document.querySelector(".example .controls button").textContent === "Play");
  });
}

/** What a program writes to a terminal of 80 columns, piece by piece. */
function onTerminal(line) {
  const command = `stty cols 80 rows 24; ${line}`;
  const script = spawn("script", ["-qefc", command, "/dev/null"], { env: { ...process.env, TERM: "xterm-256color" }, stdio: ["ignore", "pipe", "inherit"] });
  const pieces = [];
  script.stdout.setEncoding("utf8"); // whole characters
  script.stdout.on("data", (piece) => pieces.push(piece));
  return new Promise((done, failed) => script.on("close", (code) => (code === 0 ? done(pieces) : failed(new Error(pieces.join(""))))));
}

/** A picture of a terminal after some output. */
async function shootTerminal(browser, name, output) {
  const require = createRequire(import.meta.url);
  const tab = await browser.newPage({ viewport: { width: 800, height: 480 } });
  await tab.setContent("<body style='margin:8px;background:#1a1d21'><div id=terminal></div></body>");
  await tab.addStyleTag({ path: require.resolve("@xterm/xterm/css/xterm.css") });
  await tab.addScriptTag({ path: require.resolve("@xterm/xterm/lib/xterm.js") });
  const lines = await tab.evaluate(async (output) => {
    const theme = { background: "#1a1d21", foreground: "#edeef0" };
    const terminal = new globalThis.Terminal({ cols: 80, rows: 24, fontSize: 15, theme });
    terminal.open(document.getElementById("terminal"));
    await new Promise((written) => terminal.write(output, written));
    const buffer = terminal.buffer.active;
    return Array.from({ length: buffer.length }, (_, n) => buffer.getLine(n)).filter((line) => line)
      .map((line) => line.translateToString(true));
  }, output);
  await tab.waitForTimeout(300);
  await tab.screenshot({ path: join(folder, `${name}.png`) });
  await tab.close();
  return lines;
}

async function shootTerminals(browser) {
  const recordings = join(scratch, "in");
  mkdirSync(recordings);
  for (const name of ["interview.wav", "lecture in the large hall, with rain.wav", "walk.wav"]) copyFileSync(audio("demo-noisy.wav"), join(recordings, name));
  const pieces = await onTerminal(`'${program}' '${recordings}' -o '${join(scratch, "out")}' --threads 2`);
  // Two may end at once.
  const during = pieces.findIndex((piece) => /[12] of 3 files/.test(piece));
  assert.ok(during > 0, pieces.join(""));
  const lines = await shootTerminal(browser, "terminal-folder", pieces.slice(0, during + 1).join(""));
  assert.ok(lines.some((text) => /^[12] of 3 files .* % .* real time .* left$/.test(text)), JSON.stringify(lines));
  // A bar that is too long would shift those after it.
  const bars = lines.filter((text) => text.endsWith(" left"));
  assert.ok(bars.every((text) => /^([12] of 3|interview|lecture|walk)/.test(text)), JSON.stringify(lines));
  await shootTerminal(browser, "terminal-done", pieces.join(""));
  if (live && existsSync(live)) {
    const meters = await shootTerminal(browser, "terminal-live", readFileSync(live, "utf8"));
    assert.ok(meters.some((text) => /^speech .* noise .* delay +\d+ ms$/.test(text)), JSON.stringify(meters));
  }
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--autoplay-policy=no-user-gesture-required"] });
try {
  await shootPlot(browser);
  await shootReport(browser);
  await shootPlots(browser);
  await shootListen(browser);
  await shootTerminals(browser);
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true });
}
