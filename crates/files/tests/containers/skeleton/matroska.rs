//! Generators of Matroska files, with elements of known size, or of unknown size as in a stream.

use super::{Fields, opus_head};

/// Generates an element whose size field has `size_bytes` bytes.
fn sized_element(fields: &mut Fields, kind: u32, body: &[u8], size_bytes: u32) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    let skip = kind.iter().take_while(|byte| **byte == 0).count();
    let size = fields.number(body.len() as u64 | 1 << (7 * size_bytes), size_bytes);
    [&kind[skip..], &size.to_be_bytes()[8 - size_bytes as usize..], body].concat()
}

fn element(fields: &mut Fields, kind: u32, body: &[u8]) -> Vec<u8> {
    let bytes = if body.len() < 100 { 1 } else { 4 };
    sized_element(fields, kind, body, bytes)
}

fn unsigned(fields: &mut Fields, kind: u32, number: u64) -> Vec<u8> {
    let bytes = if number < 256 { 1 } else { 8 };
    let number = fields.number(number, bytes).to_be_bytes();
    element(fields, kind, &number[8 - bytes as usize..])
}

fn float(fields: &mut Fields, kind: u32, number: f64) -> Vec<u8> {
    let number = fields.be64(number.to_bits());
    element(fields, kind, &number)
}

fn header(fields: &mut Fields) -> Vec<u8> {
    let kind = element(fields, 0x4282, b"matroska");
    let version = unsigned(fields, 0x4287, 4);
    element(fields, 0x1a45_dfa3, &[version, kind].concat())
}

fn information(fields: &mut Fields) -> Vec<u8> {
    let scale = unsigned(fields, 0x2a_d7b1, 1_000_000);
    let title = element(fields, 0x7ba9, b"A title");
    let duration = float(fields, 0x4489, 240.0);
    let (muxer, writer) = (element(fields, 0x4d80, b"none"), element(fields, 0x5741, b"none"));
    let parts = fields.arrange(vec![scale, title, duration, muxer, writer]);
    element(fields, 0x1549_a966, &parts)
}

/// Generates the track list: one track of 16-bit samples, or of Opus.
fn tracks(fields: &mut Fields, is_opus: bool) -> Vec<u8> {
    let mut parts = vec![unsigned(fields, 0xd7, 1), unsigned(fields, 0x73c5, 1), unsigned(fields, 0x83, 2)];
    let codec: &[u8] = if is_opus { b"A_OPUS" } else { b"A_PCM/INT/LIT" };
    parts.push(element(fields, 0x86, codec));
    if is_opus {
        let head = [b"OpusHead", &opus_head(fields, false)[..]].concat();
        parts.push(element(fields, 0x63a2, &head));
        parts.push(unsigned(fields, 0x56aa, 6_500_000));
    } else if fields.below(2) == 1 {
        parts.push(unsigned(fields, 0x23_e383, 20_000_000));
    }
    let rate = float(fields, 0xb5, if is_opus { 48_000.0 } else { 16_000.0 });
    let (channels, bits) = (unsigned(fields, 0x9f, 1), unsigned(fields, 0x6264, 16));
    parts.push(element(fields, 0xe1, &[rate, channels, bits].concat()));
    let parts = fields.arrange(parts);
    let entry = element(fields, 0xae, &parts);
    element(fields, 0x1654_ae6b, &entry)
}

fn tags(fields: &mut Fields) -> Vec<u8> {
    let of = unsigned(fields, 0x63c5, 1);
    let targets = element(fields, 0x63c0, &of);
    let (name, text) = (element(fields, 0x45a3, b"DURATION"), element(fields, 0x4487, b"00:00:00.240"));
    let simple = element(fields, 0x67c8, &[name, text].concat());
    let tag = element(fields, 0x7373, &[targets, simple].concat());
    element(fields, 0x1254_c367, &tag)
}

fn block(fields: &mut Fields, time: u16, is_opus: bool) -> Vec<u8> {
    let packet = if is_opus { fields.opus_packet() } else { fields.payload(640) };
    let start = [&fields.u8(0x81)[..], &fields.be16(time)].concat();
    // One packet, or two packets of equal size (fixed-size lacing).
    let lacing = if fields.below(4) == 3 { 0x04 } else { 0 };
    let body = if lacing == 0 {
        [&start[..], &fields.u8(0x80), &packet].concat()
    } else {
        [&start[..], &fields.u8(0x80 | lacing), &fields.u8(1), &packet, &packet].concat()
    };
    if fields.below(4) == 3 {
        let (inner, duration) = (element(fields, 0xa1, &body), unsigned(fields, 0x9b, 20));
        element(fields, 0xa0, &[inner, duration].concat())
    } else {
        element(fields, 0xa3, &body)
    }
}

fn clusters(fields: &mut Fields, is_opus: bool, is_streamed: bool) -> Vec<Vec<u8>> {
    let mut clusters = Vec::new();
    for number in 0..3 {
        let mut parts = vec![unsigned(fields, 0xe7, 80 * number)];
        for place in 0..4 {
            parts.push(block(fields, 20 * place, is_opus));
        }
        let parts = fields.arrange(parts);
        let mut cluster = sized_element(fields, 0x1f43_b675, &parts, 8);
        if is_streamed {
            cluster[4..12].copy_from_slice(&[1, 255, 255, 255, 255, 255, 255, 255]);
        }
        clusters.push(cluster);
    }
    clusters
}

fn file(fields: &mut Fields, is_streamed: bool) -> Vec<u8> {
    let is_opus = fields.below(2) == 1;
    let header = header(fields);
    let mut parts = vec![information(fields), tracks(fields, is_opus), tags(fields)];
    parts.extend(clusters(fields, is_opus, is_streamed));
    let parts = fields.arrange(parts);
    let mut segment = sized_element(fields, 0x1853_8067, &parts, 8);
    if is_streamed {
        segment[4..12].copy_from_slice(&[1, 255, 255, 255, 255, 255, 255, 255]);
    }
    [header, segment].concat()
}

/// Generates a file in which all elements have known sizes.
pub fn sized(fields: &mut Fields) -> Vec<u8> {
    file(fields, false)
}

/// Generates a file as a live stream writes it: segment and clusters have unknown sizes.
pub fn streamed(fields: &mut Fields) -> Vec<u8> {
    file(fields, true)
}
