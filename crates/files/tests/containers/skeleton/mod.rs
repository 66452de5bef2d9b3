//! Generators of small files in every container, valid except for fields that are chosen to be wrong. Arbitrary bytes
//! alone rarely form a valid container. Shared by a test and a fuzz target.

mod matroska;
mod mp4;
mod ogg;
mod riff;

use arbitrary::Unstructured;

/// Lowest choice byte that makes a field wrong: 6 of 256 values do.
const WRONG: u8 = 250;

/// Source of the fields of a file. Choice bytes decide which are wrong; without choice bytes, all are correct.
pub struct Fields<'a> {
    choices: Unstructured<'a>,
}

impl<'a> Fields<'a> {
    /// Creates a source from arbitrary choice bytes.
    pub fn new(choices: &'a [u8]) -> Self {
        Self { choices: Unstructured::new(choices) }
    }

    /// Returns the next choice byte, or zero if none remains.
    fn byte(&mut self) -> u8 {
        self.choices.arbitrary().unwrap_or(0)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// Returns one of the values in `of`.
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Decides whether the next field or part is wrong.
    fn is_wrong(&mut self) -> bool {
        self.byte() >= WRONG
    }

    /// Returns `right`, or a wrong number of at most `bytes` bytes: a limit, a neighbour, or an arbitrary number.
    fn number(&mut self, right: u64, bytes: u32) -> u64 {
        if !self.is_wrong() {
            return right;
        }
        let most = u64::MAX >> (64 - 8 * bytes);
        most & match self.below(9) {
            0 => 0,
            1 => 1,
            2 => most,
            3 => most >> 1,
            4 => (most >> 1) + 1,
            5 => right.wrapping_add(1),
            6 => right.wrapping_sub(1),
            7 => right << self.below(16),
            _ => self.choices.arbitrary().unwrap_or(0),
        }
    }

    fn u8(&mut self, right: u8) -> [u8; 1] {
        [self.number(right.into(), 1) as u8]
    }

    fn be16(&mut self, right: u16) -> [u8; 2] {
        (self.number(right.into(), 2) as u16).to_be_bytes()
    }

    fn be32(&mut self, right: u32) -> [u8; 4] {
        (self.number(right.into(), 4) as u32).to_be_bytes()
    }

    fn be64(&mut self, right: u64) -> [u8; 8] {
        self.number(right, 8).to_be_bytes()
    }

    fn le16(&mut self, right: u16) -> [u8; 2] {
        (self.number(right.into(), 2) as u16).to_le_bytes()
    }

    fn le32(&mut self, right: u32) -> [u8; 4] {
        (self.number(right.into(), 4) as u32).to_le_bytes()
    }

    fn le64(&mut self, right: u64) -> [u8; 8] {
        self.number(right, 8).to_le_bytes()
    }

    /// Returns the four-letter name `right`, or a wrong name.
    fn name(&mut self, right: [u8; 4]) -> [u8; 4] {
        if self.is_wrong() { self.one(&[*b"data", *b"free", *b"moov", [0; 4], [0xff; 4]]) } else { right }
    }

    /// Returns `bytes` pseudo-random bytes as samples or packets.
    fn payload(&mut self, bytes: usize) -> Vec<u8> {
        let mut state = u32::from(self.byte()) << 8 | 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    /// Joins parts of a file. One part may be removed, repeated or swapped.
    fn arrange(&mut self, mut parts: Vec<Vec<u8>>) -> Vec<u8> {
        if parts.len() > 1 && self.is_wrong() {
            let at = self.below(parts.len());
            match self.below(3) {
                0 => drop(parts.remove(at)),
                1 => parts.push(parts[at].clone()),
                _ => parts.swap(0, at),
            }
        }
        parts.concat()
    }

    /// Returns an Opus packet of 20 ms with pseudo-random content.
    fn opus_packet(&mut self) -> Vec<u8> {
        let bytes = 8 + self.below(60);
        let mut packet = self.payload(bytes);
        packet[0] = self.u8(0x78)[0];
        packet
    }
}

/// Generates an Opus identification header (RFC 7845, section 5.1) of mono or stereo, without its name: big-endian as
/// in MP4, or little-endian.
fn opus_head(fields: &mut Fields, is_big: bool) -> Vec<u8> {
    let (skip, gain) = (fields.number(312, 2) as u16, fields.number(0, 2) as u16);
    let of16 = |number: u16| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let rate = if is_big { fields.be32(48_000) } else { fields.le32(48_000) };
    let channels = fields.one(&[1, 2]);
    [&fields.u8(u8::from(!is_big))[..], &fields.u8(channels), &of16(skip), &rate, &of16(gain), &fields.u8(0)]
        .concat()
}

/// Generators of all kinds of files.
pub const KINDS: [fn(&mut Fields) -> Vec<u8>; 9] = [
    riff::wav,
    riff::aiff,
    riff::caf,
    mp4::indexed,
    mp4::fragmented,
    ogg::opus,
    ogg::vorbis,
    matroska::sized,
    matroska::streamed,
];

/// Generates a file of a kind, sometimes truncated or followed by further bytes.
pub fn file(kind: usize, choices: &[u8]) -> Vec<u8> {
    let mut fields = Fields::new(choices);
    let mut file = KINDS[kind % KINDS.len()](&mut fields);
    if fields.is_wrong() {
        let length = file.len() * fields.below(256) / 256;
        file.truncate(length);
    }
    if fields.is_wrong() {
        let more = fields.payload(40);
        file.extend(more);
    }
    file
}
