//! Generators of Ogg files. Checksums match pages with wrong fields, too, so that readers do not discard those pages.

use super::{Fields, opus_head};

const SERIAL: u32 = 7;

/// The checksum of a page (RFC 3533, section 6).
fn checksum(page: &[u8]) -> u32 {
    page.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| {
            sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}

/// Generates a page of complete packets.
fn page(fields: &mut Fields, flags: u8, granule: u64, sequence: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut lengths = Vec::new();
    for packet in packets {
        lengths.extend(std::iter::repeat_n(255, packet.len() / 255));
        lengths.push((packet.len() % 255) as u8);
    }
    let mut page = [
        &b"OggS\0"[..],
        &fields.u8(flags),
        &fields.le64(granule),
        &fields.le32(SERIAL),
        &fields.le32(sequence),
        &[0; 4],
        &fields.u8(lengths.len() as u8),
        &lengths,
        &packets.concat(),
    ]
    .concat();
    let sum = checksum(&page);
    page[22..26].copy_from_slice(&fields.le32(sum));
    page
}

fn comments(fields: &mut Fields, name: &[u8]) -> Vec<u8> {
    let (vendor, count, length) = (fields.le32(4), fields.le32(1), fields.le32(13));
    [name, &vendor, b"none", &count, &length, b"TITLE=A title"].concat()
}

/// Generates the pages of `headers`, and then pages of packets with `samples` samples each.
fn stream(fields: &mut Fields, headers: Vec<Vec<Vec<u8>>>, packets: &[Vec<u8>], samples: u64) -> Vec<u8> {
    let mut pages = Vec::new();
    let mut sequence = 0;
    for (number, header) in headers.iter().enumerate() {
        pages.push(page(fields, if number == 0 { 2 } else { 0 }, 0, sequence, header));
        sequence += 1;
    }
    let mut granule = 0;
    let count = packets.chunks(4).len();
    for (number, packets) in packets.chunks(4).enumerate() {
        granule += samples * packets.len() as u64;
        let flags = if number + 1 == count { 4 } else { 0 };
        pages.push(page(fields, flags, granule, sequence, packets));
        sequence += 1;
    }
    fields.arrange(pages)
}

/// Generates an Ogg Opus file.
pub fn opus(fields: &mut Fields) -> Vec<u8> {
    let mut head = b"OpusHead".to_vec();
    head.extend(opus_head(fields, false));
    let tags = comments(fields, b"OpusTags");
    let packets: Vec<Vec<u8>> = (0..8 + fields.below(12)).map(|_| fields.opus_packet()).collect();
    stream(fields, vec![vec![head], vec![tags]], &packets, 960)
}

/// Bit writer of Vorbis, which fills each byte from its lowest bit.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn push(&mut self, number: u64, count: u32) {
        self.0.extend((0..count).map(|bit| number >> bit & 1 == 1));
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |byte, (place, bit)| byte | u8::from(*bit) << place)
        };
        self.0.chunks(8).map(byte).collect()
    }
}

/// Generates a minimal setup header (Vorbis I, section 4.2.4): a codebook of two entries, a floor without partitions,
/// an empty residue, a mapping and a mode.
fn setup(fields: &mut Fields) -> Vec<u8> {
    let mut bits = Bits::default();
    let mut push = |number: u64, count: u32| bits.push(number, count);
    push(fields.number(0, 1), 8);
    push(0x56_4342, 24);
    push(fields.number(1, 2), 16); // dimensions
    push(fields.number(2, 2), 24); // entries
    push(0, 2); // neither ordered nor sparse
    push(fields.number(0, 1), 5);
    push(fields.number(0, 1), 5);
    push(fields.number(0, 1), 4); // no lookup
    push(0, 6); // one time-domain transform, a placeholder
    push(0, 16);
    push(fields.number(0, 1), 6); // one floor
    push(fields.number(1, 1), 16);
    push(fields.number(0, 1), 5); // partitions
    push(fields.number(0, 1), 2); // multiplier
    push(fields.number(4, 1), 4); // range
    push(fields.number(0, 1), 6); // one residue
    push(fields.number(0, 1), 16);
    push(fields.number(0, 2), 24); // begin
    push(fields.number(0, 2), 24); // end
    push(fields.number(0, 2), 24); // partition
    push(fields.number(0, 1), 6); // classifications
    push(fields.number(0, 1), 8); // class book
    push(0, 4); // cascade: 3 bits and a flag
    push(fields.number(0, 1), 6); // one mapping
    push(0, 16);
    push(0, 2); // submaps, coupling
    push(fields.number(0, 1), 2);
    push(0, 8);
    push(fields.number(0, 1), 8); // floor
    push(fields.number(0, 1), 8); // residue
    push(fields.number(0, 1), 6); // one mode
    push(0, 1 + 16 + 16);
    push(fields.number(0, 1), 8);
    push(1, 1);
    [b"\x05vorbis", &bits.bytes()[..]].concat()
}

/// Generates an Ogg Vorbis file of one channel.
pub fn vorbis(fields: &mut Fields) -> Vec<u8> {
    let head = [
        &b"\x01vorbis"[..],
        &fields.le32(0),
        &fields.u8(1),
        &fields.le32(16_000),
        &[0; 12],
        &fields.u8(0x88), // blocks of 256 samples
        &fields.u8(1),
    ]
    .concat();
    let mut tags = comments(fields, b"\x03vorbis");
    tags.push(1);
    let setup = setup(fields);
    let count = 12 + fields.below(12);
    let packet = |fields: &mut Fields| {
        let mut packet = fields.payload(6);
        packet[0] = fields.u8(0)[0];
        packet
    };
    let packets: Vec<Vec<u8>> = (0..count).map(|_| packet(fields)).collect();
    stream(fields, vec![vec![head], vec![tags, setup]], &packets, 128)
}
