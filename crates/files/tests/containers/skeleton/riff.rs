//! Generators of WAV, RF64, AIFF and CAF files.

use super::Fields;

fn chunk(fields: &mut Fields, name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let padding = if body.len() % 2 == 1 { &[0][..] } else { &[] };
    [&fields.name(*name)[..], &fields.le32(body.len() as u32), body, padding].concat()
}

/// Generates a RIFF or RF64 file with samples of any supported encoding, and other chunks.
pub fn wav(fields: &mut Fields) -> Vec<u8> {
    // Format tag, bits per sample, and bytes per channel of a block.
    let (tag, bits, bytes) = fields.one(&[
        (1_u16, 16_u16, 2_u16),
        (1, 8, 1),
        (1, 24, 3),
        (1, 32, 4),
        (3, 32, 4),
        (3, 64, 8),
        (6, 8, 1),
        (7, 8, 1),
        (2, 4, 256),
        (0x11, 4, 256),
        (0xfffe, 16, 2),
    ]);
    let channels = fields.one(&[1_u16, 2]);
    let rate = fields.one(&[16_000_u32, 8_000, 48_000]);
    let align = channels * bytes;
    let mut format = [
        &fields.le16(tag)[..],
        &fields.le16(channels),
        &fields.le32(rate),
        &fields.le32(rate * u32::from(align)),
        &fields.le16(align),
        &fields.le16(bits),
    ]
    .concat();
    match tag {
        2 => {
            let samples = (u32::from(align) - 7 * u32::from(channels)) * 2 / u32::from(channels) + 2;
            format.extend([fields.le16(32), fields.le16(samples as u16), fields.le16(7)].concat());
            for number in [256_i16, 0, 512, -256, 0, 0, 192, 64, 240, 0, 460, -208, 392, -232] {
                format.extend(fields.le16(number.cast_unsigned()));
            }
        }
        0x11 => {
            let samples = (u32::from(align) - 4 * u32::from(channels)) * 2 / u32::from(channels) + 1;
            format.extend([fields.le16(2), fields.le16(samples as u16)].concat());
        }
        0xfffe => {
            format.extend([fields.le16(22), fields.le16(bits)].concat());
            format.extend(fields.le32(u32::from(channels) + 1));
            format.extend([1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71]);
        }
        _ => {}
    }
    let blocks = 60 + fields.below(40);
    let samples = fields.payload(blocks * usize::from(align));
    let is_wide = fields.below(4) == 3;
    let mut parts = Vec::new();
    if is_wide {
        let sizes = [
            fields.le64(samples.len() as u64 + 200),
            fields.le64(samples.len() as u64),
            fields.le64(blocks as u64),
        ];
        let table = fields.le32(0);
        parts.push(chunk(fields, b"ds64", &[&sizes.concat()[..], &table].concat()));
    }
    parts.push(chunk(fields, b"fmt ", &format));
    for _ in 0..fields.below(4) {
        let other = match fields.below(6) {
            0 => {
                let text = chunk(fields, b"INAM", b"A title\0");
                chunk(fields, b"LIST", &[b"INFO", &text[..]].concat())
            }
            1 => {
                let body = fields.payload(602);
                chunk(fields, b"bext", &body)
            }
            2 => {
                let points = [fields.le32(1), fields.le32(1), fields.le32(10), *b"data"];
                let rest = [fields.le32(0), fields.le32(0), fields.le32(10)];
                chunk(fields, b"cue ", &[points.concat(), rest.concat()].concat())
            }
            3 => {
                let count = fields.le32(blocks as u32);
                chunk(fields, b"fact", &count)
            }
            4 => {
                let size = fields.u8(20);
                let text = [b"ID3\x04\0\0\0\0\0", &size[..], b"TIT2\0\0\0\x08\0\0\x03A title", &[0; 4]];
                chunk(fields, b"id3 ", &text.concat())
            }
            _ => chunk(fields, b"JUNK", &[0; 30]),
        };
        parts.push(other);
    }
    let mut sound = chunk(fields, b"data", &samples);
    if is_wide {
        sound[4..8].copy_from_slice(&fields.le32(u32::MAX));
    }
    parts.push(sound);
    let body = fields.arrange(parts);
    let size = if is_wide { u32::MAX } else { body.len() as u32 + 4 };
    let name = if is_wide { b"RF64" } else { b"RIFF" };
    [&name[..], &fields.le32(size), b"WAVE", &body].concat()
}

fn big_chunk(fields: &mut Fields, name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let padding = if body.len() % 2 == 1 { &[0][..] } else { &[] };
    [&fields.name(*name)[..], &fields.be32(body.len() as u32), body, padding].concat()
}

/// Generates an AIFF file of big-endian PCM, or an AIFC file of another encoding.
pub fn aiff(fields: &mut Fields) -> Vec<u8> {
    let (kind, bits) = fields.one(&[
        (*b"NONE", 16_u16),
        (*b"NONE", 8),
        (*b"NONE", 24),
        (*b"sowt", 16),
        (*b"fl32", 32),
        (*b"ulaw", 16),
        (*b"alaw", 16),
    ]);
    let channels = fields.one(&[1_u16, 2]);
    let bytes = if [*b"ulaw", *b"alaw"].contains(&kind) { 1 } else { usize::from(bits / 8) };
    let frames = 50 + fields.below(100);
    let is_open = kind != *b"NONE";
    let rate = [fields.be16(0x400c), fields.be16(0xfa00), [0; 2], [0; 2], [0; 2]].concat();
    let mut common =
        [&fields.be16(channels)[..], &fields.be32(frames as u32), &fields.be16(bits), &rate].concat();
    if is_open {
        common.extend(fields.name(kind));
        common.extend([0, 0]);
    }
    let samples = fields.payload(frames * bytes * usize::from(channels));
    let sound = [&fields.be32(0)[..], &fields.be32(0), &samples].concat();
    let mut parts = vec![big_chunk(fields, b"COMM", &common)];
    for _ in 0..fields.below(3) {
        let name = fields.one(&[*b"NAME", *b"AUTH", *b"ANNO", *b"MARK", *b"ID3 "]);
        parts.push(big_chunk(fields, &name, b"A title"));
    }
    parts.push(big_chunk(fields, b"SSND", &sound));
    let body = fields.arrange(parts);
    let form = if is_open { b"AIFC" } else { b"AIFF" };
    [&b"FORM"[..], &fields.be32(body.len() as u32 + 4), form, &body].concat()
}

fn long_chunk(fields: &mut Fields, name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&fields.name(*name)[..], &fields.be64(body.len() as u64), body].concat()
}

/// Generates an uncompressed ALAC packet: a header, then samples of one channel, 16 bits each.
pub(super) fn alac_packet(fields: &mut Fields, frames: u32) -> Vec<u8> {
    // Header of 23 bits: element (3), instance (4), zeros (12), flag `partial` (1), shift (2), flag `uncompressed` (1).
    // The number of samples follows.
    let mut bits: Vec<bool> = vec![false; 19];
    bits.extend([true, false, false, true]);
    let mut push = |number: u64, count: u32| bits.extend((0..count).rev().map(|bit| number >> bit & 1 == 1));
    push(fields.number(frames.into(), 4), 32);
    for _ in 0..frames {
        push(u64::from(fields.byte()), 16);
    }
    push(7, 3);
    let bytes = bits.chunks(8).map(|bits| {
        bits.iter().enumerate().fold(0, |byte, (place, bit)| byte | u8::from(*bit) << (7 - place))
    });
    bytes.collect()
}

/// Generates an ALAC decoder configuration: `frames` samples per packet, 16 bits, one channel.
pub(super) fn alac_cookie(fields: &mut Fields, frames: u32) -> Vec<u8> {
    [
        &fields.be32(frames)[..],
        &fields.u8(0),
        &fields.u8(16),
        &fields.u8(40),
        &fields.u8(10),
        &fields.u8(14),
        &fields.u8(1),
        &fields.be16(255),
        &fields.be32(0),
        &fields.be32(0),
        &fields.be32(16_000),
    ]
    .concat()
}

/// Generates a CAF file of PCM or mu-law samples, or of ALAC packets.
pub fn caf(fields: &mut Fields) -> Vec<u8> {
    let is_packed = fields.below(3) == 2;
    let frames = 64 + fields.below(100) as u32;
    let (format, flags, bits) = match is_packed {
        true => (*b"alac", 1, 0),
        false => {
            fields.one(&[(*b"lpcm", 0_u32, 16_u32), (*b"lpcm", 2, 16), (*b"lpcm", 0, 24), (*b"ulaw", 0, 8)])
        }
    };
    let (packet_bytes, packet_frames) = if is_packed { (0, frames) } else { (bits / 8, 1) };
    let rate = fields.be64(16_000_f64.to_bits());
    let description = [
        &rate[..],
        &fields.name(format),
        &fields.be32(flags),
        &fields.be32(packet_bytes),
        &fields.be32(packet_frames),
        &fields.be32(1),
        &fields.be32(bits),
    ];
    let mut parts = vec![long_chunk(fields, b"desc", &description.concat())];
    let layout = [fields.be32(100 << 16 | 1), fields.be32(0), fields.be32(0)];
    if fields.below(2) == 1 {
        parts.push(long_chunk(fields, b"chan", &layout.concat()));
    }
    if fields.below(2) == 1 {
        parts.push(long_chunk(fields, b"info", b"\0\0\0\x01title\0A title\0"));
    }
    let samples = if is_packed {
        let packets: Vec<Vec<u8>> = (0..3).map(|_| alac_packet(fields, frames)).collect();
        let cookie = alac_cookie(fields, frames);
        parts.push(long_chunk(fields, b"kuki", &cookie));
        let mut table = [&fields.be64(3)[..], &fields.be64(3 * u64::from(frames))].concat();
        table.extend([fields.be32(0), fields.be32(0)].concat());
        for packet in &packets {
            table.extend(
                [&[0x80 | (packet.len() >> 7) as u8][..], &fields.u8(packet.len() as u8 & 0x7f)].concat(),
            );
        }
        parts.push(long_chunk(fields, b"pakt", &table));
        packets.concat()
    } else {
        fields.payload(frames as usize * bits as usize / 8)
    };
    let edits = fields.be32(0);
    parts.push(long_chunk(fields, b"data", &[&edits[..], &samples].concat()));
    let body = fields.arrange(parts);
    [&b"caff"[..], &fields.be16(1), &fields.be16(0), &body].concat()
}
