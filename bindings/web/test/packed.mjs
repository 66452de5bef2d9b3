// The npm package as it is installed: node test/packed.mjs [CHROMIUM]
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";
import { serve } from "./tools.mjs";

const [executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const folder = resolve(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "alphamf-"));
try {
  const npm = (...words) => execFileSync("npm", words, { cwd: scratch, encoding: "utf8" });
  const [{ filename }] = JSON.parse(npm("pack", "--json", folder));
  writeFileSync(join(scratch, "package.json"), '{ "private": true }');
  npm("install", "--offline", "--no-audit", "--no-fund", join(scratch, filename));
  const installed = join(scratch, "node_modules/alphamf");
  for (const name of ["LICENSE-MIT", "LICENSE-APACHE", "ATTRIBUTION.md", "THIRD-PARTY.txt"]) {
    assert.ok(existsSync(join(installed, "licences", name)), name);
  }

  // Node has no fetch of files: the module is given.
  writeFileSync(join(scratch, "check.mjs"), `
    import { readFileSync } from "node:fs";
    import { gunzipSync } from "node:zlib";
    import { denoise, initialize } from "alphamf";
    const file = (name) => new URL(import.meta.resolve(name));
    readFileSync(file("alphamf/worklet.js"));
    readFileSync(file("alphamf/worker.js"));
    await initialize(gunzipSync(readFileSync(file("alphamf/native/alphamf_web_bg.wasm.gz"))));
    console.log((await denoise(new Float32Array(16000), 16000, { quality: "fast" })).length);
  `);
  assert.equal(execFileSync(process.execPath, ["check.mjs"], { cwd: scratch, encoding: "utf8" }).trim(), "16000");

  // The worker, and the files that the package finds by itself, from a server.
  writeFileSync(join(scratch, "index.html"), "<!doctype html>");
  const { server, address } = await serve(scratch);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    const tab = await browser.newPage();
    await tab.goto(address);
    const found = await tab.evaluate(async () => {
      const worker = new Worker("/node_modules/alphamf/worker.js", { type: "module" });
      const ask = (message) => new Promise((answer, fail) => {
        let progress = 0;
        worker.onerror = ({ message }) => fail(new Error(message));
        worker.onmessage = ({ data }) => (data.progress === undefined ? answer({ ...data, progress }) : (progress = data.progress));
        worker.postMessage(message);
      });
      const channels = [Float32Array.from({ length: 16000 }, (_, n) => 0.1 * Math.sin(0.02 * n))];
      const { id, result, progress } = await ask({ id: "first", channels, sampleRate: 16000, options: { quality: "fast" } });
      const more = { gainStd: true, speechTrack: true, noise: channels };
      const asked = (await ask({ channels, sampleRate: 16000, options: { iterations: 2, no_neural: true }, ...more })).result;
      const refused = await ask({ id: 2, channels, sampleRate: 16000, options: { mix: 2 } });
      const unknown = await ask({ channels, sampleRate: 16000, gainstd: true });
      const { createLiveNode } = await import("/node_modules/alphamf/index.js");
      const node = await createLiveNode(new OfflineAudioContext(1, 16000, 16000));
      return {
        result: [id, result.speech[0].length, result.stats.samples, progress > 0 && progress <= 1, result.gainStd, result.speechTrack],
        asked: [asked.gainStd.values[0].length > 0, asked.speechTrack[0].probability.length],
        refused: [refused.id, refused.kind, refused.error, unknown.kind],
        latency: node.latency,
      };
    });
    assert.deepEqual(found, {
      result: ["first", 16000, 16000, true, undefined, undefined],
      asked: [true, 100],
      refused: [2, "setting", "`mix` is 2: expected 0 to 1", "setting"],
      latency: 256,
    });
  } finally {
    await browser.close();
    server.close();
  }
  console.log(`${filename}: ${(readFileSync(join(scratch, filename)).length / 1e6).toFixed(1)} MB`);
} finally {
  rmSync(scratch, { recursive: true });
}
