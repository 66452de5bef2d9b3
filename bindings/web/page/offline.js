// Keeps the page for when there is no network: what is newer is taken where there is one.
const NAME = "alphamf";
const FILES = ["./", "style.css", "page.js", "spectrogram.js", "worker.js", "index.js", "native/alphamf_web.js", "native/alphamf_web_bg.wasm"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(FILES)));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== self.location.origin) return;
  const fresh = fetch(event.request).then(async (response) => {
    if (response.ok) (await caches.open(NAME)).put(event.request, response.clone());
    return response;
  });
  event.respondWith(fresh.catch(() => caches.match(event.request, { ignoreSearch: true })));
});
