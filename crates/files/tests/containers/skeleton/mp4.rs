//! Generators of MP4 files: with one index, or fragmented.

use super::riff::{alac_cookie, alac_packet};
use super::{Fields, opus_head};

fn boxed(fields: &mut Fields, name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = body.len() as u32 + 8;
    if fields.is_wrong() {
        // A box with a 64-bit size.
        let long = fields.be64(u64::from(size) + 8);
        return [&1_u32.to_be_bytes()[..], name, &long, body].concat();
    }
    [&fields.be32(size)[..], &fields.name(*name), body].concat()
}

/// Packets of equal duration, and the sample entry of their codec.
struct Sound {
    entry: Vec<u8>,
    packets: Vec<Vec<u8>>,
    /// Duration of a packet, samples at `rate`.
    duration: u32,
    rate: u32,
}

fn sound(fields: &mut Fields) -> Sound {
    let count = 4 + fields.below(12);
    let kind = fields.below(3);
    let (name, rate, duration) = match kind {
        0 => (*b"sowt", 16_000_u32, 1_u32),
        1 => (*b"alac", 16_000, 256),
        _ => (*b"Opus", 48_000, 960),
    };
    let mut entry = vec![0; 6];
    entry.extend([fields.be16(1), fields.be16(0), [0; 2], [0; 2], [0; 2]].concat());
    entry.extend([fields.be16(1), fields.be16(16), [0; 2], [0; 2]].concat());
    entry.extend(fields.be32(rate << 16));
    let packets: Vec<Vec<u8>> = match kind {
        0 => (0..16 * count).map(|_| fields.payload(2)).collect(),
        1 => {
            let cookie = alac_cookie(fields, duration);
            let version = fields.be32(0);
            let inner = boxed(fields, b"alac", &[&version[..], &cookie].concat());
            entry.extend(inner);
            (0..count).map(|_| alac_packet(fields, duration)).collect()
        }
        _ => {
            let head = opus_head(fields, true);
            let inner = boxed(fields, b"dOps", &head);
            entry.extend(inner);
            (0..count).map(|_| fields.opus_packet()).collect()
        }
    };
    Sound { entry: boxed(fields, &name, &entry), packets, duration, rate }
}

/// Generates a table box: a version, the number of entries, and the entries.
fn table(fields: &mut Fields, name: &[u8; 4], entries: &[Vec<u32>]) -> Vec<u8> {
    let mut body = [fields.be32(0), fields.be32(entries.len() as u32)].concat();
    for number in entries.iter().flatten() {
        body.extend(fields.be32(*number));
    }
    boxed(fields, name, &body)
}

fn numbers(fields: &mut Fields, numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| fields.be32(number)).collect()
}

fn track(fields: &mut Fields, sound: &Sound, tables: Vec<Vec<u8>>) -> Vec<u8> {
    let length = sound.duration * sound.packets.len() as u32;
    let mut header = numbers(fields, &[7, 0, 0, 1, 0, length]);
    header.resize(84, 0);
    let header = boxed(fields, b"tkhd", &header);
    let list = numbers(fields, &[0, 1, length, 0, 1 << 16]);
    let list = boxed(fields, b"elst", &list);
    let edits = boxed(fields, b"edts", &list);
    let media = numbers(fields, &[0, 0, 0, sound.rate, length, 0x55c4_0000]);
    let media = boxed(fields, b"mdhd", &media);
    let handler = [&[0; 8][..], &fields.name(*b"soun"), &[0; 13]].concat();
    let handler = boxed(fields, b"hdlr", &handler);
    let description = [&fields.be32(0)[..], &fields.be32(1), &sound.entry].concat();
    let mut parts = vec![boxed(fields, b"stsd", &description)];
    parts.extend(tables);
    let parts = fields.arrange(parts);
    let tables = boxed(fields, b"stbl", &parts);
    let sound_header = boxed(fields, b"smhd", &[0; 8]);
    let parts = fields.arrange(vec![sound_header, tables]);
    let information = boxed(fields, b"minf", &parts);
    let parts = fields.arrange(vec![media, handler, information]);
    let media = boxed(fields, b"mdia", &parts);
    let parts = fields.arrange(vec![header, edits, media]);
    boxed(fields, b"trak", &parts)
}

fn start(fields: &mut Fields) -> Vec<u8> {
    boxed(fields, b"ftyp", b"M4A \0\0\x02\0isomiso2")
}

fn movie_header(fields: &mut Fields, length: u32) -> Vec<u8> {
    let mut header = numbers(fields, &[0, 0, 0, 1_000, length, 1 << 16, 1 << 24]);
    header.resize(100, 0);
    boxed(fields, b"mvhd", &header)
}

fn tags(fields: &mut Fields) -> Vec<u8> {
    let text = [&fields.be32(1)[..], &[0; 4], b"A title"].concat();
    let text = boxed(fields, b"data", &text);
    let title = boxed(fields, b"\xa9nam", &text);
    let list = boxed(fields, b"ilst", &title);
    let handler = boxed(fields, b"hdlr", b"\0\0\0\0\0\0\0\0mdirappl\0\0\0\0\0\0\0\0\0");
    let meta = [&fields.be32(0)[..], &handler, &list].concat();
    let meta = boxed(fields, b"meta", &meta);
    boxed(fields, b"udta", &meta)
}

/// Generates a file with one index, before or after the samples.
pub fn indexed(fields: &mut Fields) -> Vec<u8> {
    let sound = sound(fields);
    let count = sound.packets.len() as u32;
    let samples = sound.packets.concat();
    let start = start(fields);
    let is_first = fields.below(2) == 1;
    let build = |fields: &mut Fields, offset: u32| {
        let mut sizes = numbers(fields, &[0, 0, count]);
        sound.packets.iter().for_each(|packet| sizes.extend(fields.be32(packet.len() as u32)));
        let tables = vec![
            table(fields, b"stts", &[vec![count, sound.duration]]),
            table(fields, b"stsc", &[vec![1, count, 1]]),
            boxed(fields, b"stsz", &sizes),
            table(fields, b"stco", &[vec![offset]]),
        ];
        let header = movie_header(fields, 1_000);
        let track = track(fields, &sound, tables);
        let tags = tags(fields);
        let parts = fields.arrange(vec![header, track, tags]);
        boxed(fields, b"moov", &parts)
    };
    // The offset of the samples depends on the length of the index, which does not depend on the offset.
    let before = start.len() as u32 + 8;
    let offset = if is_first { before + build(&mut Fields::new(&[]), 0).len() as u32 } else { before };
    let index = build(fields, offset);
    let samples = boxed(fields, b"mdat", &samples);
    let parts = if is_first { vec![start, index, samples] } else { vec![start, samples, index] };
    fields.arrange(parts)
}

/// Generates a fragmented file.
pub fn fragmented(fields: &mut Fields) -> Vec<u8> {
    let sound = sound(fields);
    let empty = |fields: &mut Fields, name: &[u8; 4]| table(fields, name, &[]);
    let mut tables = vec![empty(fields, b"stts"), empty(fields, b"stsc"), empty(fields, b"stco")];
    let sizes = numbers(fields, &[0, 0, 0]);
    tables.push(boxed(fields, b"stsz", &sizes));
    let header = movie_header(fields, 0);
    let track = track(fields, &sound, tables);
    let defaults = numbers(fields, &[0, 1, 1, 0, 0, 0]);
    let defaults = boxed(fields, b"trex", &defaults);
    let all = numbers(fields, &[0, 1_000]);
    let all = boxed(fields, b"mehd", &all);
    let extends = boxed(fields, b"mvex", &[all, defaults].concat());
    let parts = fields.arrange(vec![header, track, extends]);
    let start = start(fields);
    let mut parts = vec![start, boxed(fields, b"moov", &parts)];
    let mut time = 0;
    for (number, packets) in sound.packets.chunks(5).enumerate() {
        let sequence = numbers(fields, &[0, number as u32 + 1]);
        let sequence = boxed(fields, b"mfhd", &sequence);
        // Offsets count from the start of the fragment (`default-base-is-moof`).
        let of_track = numbers(fields, &[0x02_0000, 1]);
        let of_track = boxed(fields, b"tfhd", &of_track);
        let decoded = numbers(fields, &[0, time]);
        let decoded = boxed(fields, b"tfdt", &decoded);
        // Bytes of `moof`, `mfhd`, `traf`, `tfhd`, `tfdt` and `trun`: box headers of 8 bytes, and bodies.
        let run_bytes = 8 + 12 + 8 * packets.len();
        let fragment_bytes = 8 + 16 + 8 + 16 + 16 + run_bytes;
        let mut run = numbers(fields, &[0x301, packets.len() as u32, fragment_bytes as u32 + 8]);
        for packet in packets {
            run.extend(numbers(fields, &[sound.duration, packet.len() as u32]));
        }
        let run = boxed(fields, b"trun", &run);
        let parts_of_track = fields.arrange(vec![of_track, decoded, run]);
        let fragment = boxed(fields, b"traf", &parts_of_track);
        let fragment = fields.arrange(vec![sequence, fragment]);
        parts.push(boxed(fields, b"moof", &fragment));
        parts.push(boxed(fields, b"mdat", &packets.concat()));
        time += sound.duration * packets.len() as u32;
    }
    fields.arrange(parts)
}
