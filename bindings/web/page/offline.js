// Keeps the page for when there is no network: what is newer is taken where there is one.
const NAME = "alphamf";
const PAGE = ["./", "style.css", "page.js", "live-page.js", "microphone.js", "recorder.js", "spectrogram.js"];
const PACKAGE = ["index.js", "live.js", "text.js", "worker.js", "worklet.js", "native/alphamf_web.js"];
const MODULE = `native/${new URL(self.location).searchParams.get("module")}`;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll([...PAGE, ...PACKAGE, MODULE])));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== self.location.origin) return;
  const fresh = fetch(event.request).then(async (response) => {
    if (response.ok) (await caches.open(NAME)).put(event.request, response.clone());
    return response;
  });
  event.respondWith(fresh.catch(() => caches.match(event.request, { ignoreSearch: true })));
});
