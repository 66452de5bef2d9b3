//! Small files of every container, valid but for the fields that are chosen to be wrong: what an arbitrary string of bytes
//! hardly ever becomes. Shared by a test and by a fuzz target.

mod matroska;
mod mp4;
mod ogg;
mod riff;

use arbitrary::Unstructured;

/// One in so many fields of a file is wrong, on average, as long as there are choices.
const WRONG: u8 = 250;

/// Fields of a file, each right or wrong by choice. Without choices, all are right.
pub struct Fields<'a> {
    choices: Unstructured<'a>,
}

impl<'a> Fields<'a> {
    /// `choices` are any bytes.
    pub fn new(choices: &'a [u8]) -> Self {
        Self { choices: Unstructured::new(choices) }
    }

    /// A byte of choice, zero if there are no more.
    fn byte(&mut self) -> u8 {
        self.choices.arbitrary().unwrap_or(0)
    }

    /// A number below another.
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// One of some.
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Whether something is as it should not be.
    fn is_wrong(&mut self) -> bool {
        self.byte() >= WRONG
    }

    /// A number of so many bytes: this, or one that parsers do not expect.
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

    /// A name of four letters.
    fn name(&mut self, right: [u8; 4]) -> [u8; 4] {
        if self.is_wrong() { self.one(&[*b"data", *b"free", *b"moov", [0; 4], [0xff; 4]]) } else { right }
    }

    /// So many bytes of samples or packets.
    fn payload(&mut self, bytes: usize) -> Vec<u8> {
        let mut state = u32::from(self.byte()) << 8 | 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    /// Parts of a file, of which some may be missing, twice there or in another place.
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

    /// A packet of Opus, of 20 ms, and damage.
    fn opus_packet(&mut self) -> Vec<u8> {
        let bytes = 8 + self.below(60);
        let mut packet = self.payload(bytes);
        packet[0] = self.u8(0x78)[0];
        packet
    }
}

/// The head of Opus (RFC 7845, section 5.1), big-endian as in MP4, or little-endian, and with the numbers of a stream of
/// mono or stereo.
fn opus_head(fields: &mut Fields, is_big: bool) -> Vec<u8> {
    let (skip, gain) = (fields.number(312, 2) as u16, fields.number(0, 2) as u16);
    let of16 = |number: u16| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let rate = if is_big { fields.be32(48_000) } else { fields.le32(48_000) };
    let channels = fields.one(&[1, 2]);
    [&fields.u8(u8::from(!is_big))[..], &fields.u8(channels), &of16(skip), &rate, &of16(gain), &fields.u8(0)]
        .concat()
}

/// The kinds of files.
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

/// A file of a kind, cut off at times.
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
