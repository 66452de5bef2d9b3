// The page in a real browser: node test/browser.mjs PAGE [CHROMIUM]
//
// DENOISE is the path of the program, whose output the page's is compared with. Screenshots go to ../screenshots of PAGE.
import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";
import { checkLiveNode, checkLivePage } from "./live.mjs";
import { checkLooks } from "./looks.mjs";
import { checkLive, checkLoading, checkPackage, checkPlainModule } from "./package.mjs";
import { checkFolder, checkHour, checkKeyboard, checkPictures, checkPlayer, checkRecording, checkResult, checkSettings, checkSeveral } from "./page.mjs";
import { serve, status } from "./tools.mjs";

// Bytes that the page loads, each file once, as they are served: the module is compressed, all else is not.
const MAX_BYTES = 2.6e6;

const [page = "../../target/page", executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const root = resolve(page);
const noisy = resolve(import.meta.dirname, "../../../audio/demo-noisy.wav");
const { server, sizes, address } = await serve(root);
const browser = await chromium.launch({
  executablePath,
  args: [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    `--use-file-for-fake-audio-capture=${noisy}`,
  ],
});
try {
  const context = await browser.newContext({ permissions: ["microphone"] });
  const tab = await context.newPage();
  const errors = [];
  tab.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  tab.on("pageerror", (error) => errors.push(error.message));
  await checkFolder(browser, root);
  await tab.goto(address);
  assert.equal(await tab.textContent("#status"), "");
  await checkKeyboard(tab);
  const result = await checkResult(tab, noisy, process.env.DENOISE);
  await checkPlayer(tab, result);
  const pictures = await checkPictures(tab);
  await checkSettings(tab, result, pictures);
  await checkSeveral(tab, noisy);
  await checkRecording(tab);
  await checkHour(tab, noisy);
  await checkLivePage(tab);
  const loaded = [...sizes.values()].reduce((sum, size) => sum + size);
  console.log(`${sizes.size} files were loaded, ${(loaded / 1e6).toFixed(2)} MB`);
  assert.ok(sizes.has("/native/alphamf_web_bg.wasm.gz") && loaded <= MAX_BYTES, JSON.stringify([...sizes]));

  // It can be installed.
  const manifest = await (await context.newCDPSession(tab)).send("Page.getAppManifest");
  assert.deepEqual([manifest.errors, new URL(manifest.url).pathname], [[], "/manifest.webmanifest"]);
  await tab.evaluate(() => navigator.serviceWorker.ready);

  await checkPackage(tab);
  await checkLive(tab);
  await checkLiveNode(tab, noisy, process.env.DENOISE);
  assert.deepEqual(errors, []);
  await checkLoading(browser, address, root);
  await checkPlainModule(context, address, result);
  await checkLooks(browser, address, noisy, join(root, "../screenshots"));

  // Offline, once it was loaded.
  server.close();
  server.closeAllConnections();
  await tab.reload();
  await tab.setInputFiles("#file", noisy);
  await status(tab, "Done");
  console.log("the page works offline");
} finally {
  await browser.close();
  server.close();
}
