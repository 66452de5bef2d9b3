// Service worker: the page works offline once it was loaded. Newer files are used where there is a network. The example is kept
// once it was used.
const NAME = "alphamf-3";
const PAGE = [
  "./", "style.css", "app.js", "engine.js", "figures.js", "fourier.js", "icon.svg", "icon-192.png", "icon-512.png", "keys.js",
  "live-page.js", "manifest.webmanifest", "microphone.js", "pictures.js", "player.js", "queue.js", "recorder.js", "recording.js",
  "scale.js", "settings-panel.js", "stream-worker.js", "timeline.js", "wav.js", "zip.js",
];
const PACKAGE = ["index.js", "live.js", "text.js", "worklet.js", "native/alphamf_web.js"];
const MODULE = `native/${new URL(self.location).searchParams.get("module")}`;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll([...PAGE, ...PACKAGE, MODULE])));
});

self.addEventListener("activate", (event) => {
  const outdated = async () => Promise.all((await caches.keys()).filter((name) => name !== NAME).map((name) => caches.delete(name)));
  event.waitUntil(outdated());
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== self.location.origin) return;
  const fresh = fetch(event.request).then(async (response) => {
    if (response.ok) (await caches.open(NAME)).put(event.request, response.clone());
    return response;
  });
  event.respondWith(fresh.catch(() => caches.match(event.request, { ignoreSearch: true })));
});
