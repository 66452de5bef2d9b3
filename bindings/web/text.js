// UTF-8 conversion for audio threads, which lack it in most browsers.
globalThis.TextDecoder ??= class {
  decode(bytes = new Uint8Array()) {
    return decodeURIComponent(Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""));
  }
};
globalThis.TextEncoder ??= class {
  encode(text = "") {
    const escaped = encodeURIComponent(text).matchAll(/%(..)|(.)/g);
    return Uint8Array.from(escaped, ([, code, letter]) => (code ? Number.parseInt(code, 16) : letter.charCodeAt(0)));
  }

  encodeInto(text, bytes) {
    const encoded = this.encode(text);
    bytes.set(encoded);
    return { read: text.length, written: encoded.length };
  }
};
