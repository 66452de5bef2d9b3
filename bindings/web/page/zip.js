// ZIP archives without compression, which audio does not need.

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** CRC-32 of a Blob, read in pieces. */
async function checksum(blob) {
  let crc = 0xffffffff;
  for (let start = 0; start < blob.size; start += 1 << 20) {
    const bytes = new Uint8Array(await blob.slice(start, start + (1 << 20)).arrayBuffer());
    for (let n = 0; n < bytes.length; n++) crc = TABLE[(crc ^ bytes[n]) & 255] ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

/** Names without duplicates: "a.wav", "a (2).wav". */
function distinct(names) {
  const taken = new Set();
  return names.map((name) => {
    let free = name;
    for (let n = 2; taken.has(free.toLowerCase()); n++) free = name.replace(/(\.[^.]*)?$/, ` (${n})$1`);
    taken.add(free.toLowerCase());
    return free;
  });
}

const record = (fields) => {
  const view = new DataView(new ArrayBuffer(fields.reduce((length, [bytes]) => length + bytes, 0)));
  let offset = 0;
  for (const [bytes, value] of fields) {
    if (bytes === 2) view.setUint16(offset, value, true);
    else view.setUint32(offset, value, true);
    offset += bytes;
  }
  return view;
};

/** An archive of `files`, each `{ name, blob }`, as a Blob. */
export async function zip(files, now = new Date()) {
  const day = ((Math.max(1980, now.getFullYear()) - 1980) << 9) | ((now.getMonth() + 1) << 5) | now.getDate();
  const time = (now.getHours() << 11) | (now.getMinutes() << 5) | (now.getSeconds() >> 1);
  const names = distinct(files.map(({ name }) => name)).map((name) => new TextEncoder().encode(name));
  const [local, central] = [[], []];
  let offset = 0;
  let directory = 0;
  for (const [index, { blob }] of files.entries()) {
    const name = names[index];
    // Version 2.0; bit 11: names are UTF-8; method 0: stored.
    const common = [[2, 20], [2, 0x800], [2, 0], [2, time], [2, day], [4, await checksum(blob)], [4, blob.size], [4, blob.size], [2, name.length], [2, 0]];
    local.push(record([[4, 0x04034b50], ...common]), name, blob);
    central.push(record([[4, 0x02014b50], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]), name);
    offset += 30 + name.length + blob.size;
    directory += 46 + name.length;
    if (offset + directory > 0xffffffff) throw new RangeError("more than a ZIP archive can hold (4 GB): download the files one by one");
  }
  if (files.length > 0xffff) throw new RangeError("more than 65535 files");
  const end = record([[4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, directory], [4, offset], [2, 0]]);
  return new Blob([...local, ...central, end], { type: "application/zip" });
}
