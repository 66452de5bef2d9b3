//! Samples as bytes: integers, floats and G.711 codes.

use alphamf_signal::SampleFormat;

/// Encoding of one sample in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) kind: Kind,
    pub(super) big_endian: bool,
}

/// Type of the number that encodes a sample, without its byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned8,
    Signed8,
    Signed16,
    Signed24,
    Signed32,
    /// 24 bits in the lower three bytes of four, which some recorders write.
    Signed24In32,
    Float32,
    Float64,
    ALaw,
    MuLaw,
}

impl Encoding {
    /// Number of bytes of a sample.
    pub(super) fn bytes(self) -> usize {
        match self.kind {
            Kind::Unsigned8 | Kind::Signed8 | Kind::ALaw | Kind::MuLaw => 1,
            Kind::Signed16 => 2,
            Kind::Signed24 => 3,
            Kind::Signed32 | Kind::Signed24In32 | Kind::Float32 => 4,
            Kind::Float64 => 8,
        }
    }

    /// Sample format that preserves these samples.
    pub(super) fn format(self) -> SampleFormat {
        match self.kind {
            Kind::Unsigned8 | Kind::Signed8 => SampleFormat::Int8,
            Kind::Signed16 | Kind::ALaw | Kind::MuLaw => SampleFormat::Int16,
            Kind::Signed24 | Kind::Signed24In32 => SampleFormat::Int24,
            Kind::Signed32 => SampleFormat::Int32,
            Kind::Float32 => SampleFormat::Float32,
            Kind::Float64 => SampleFormat::Float64,
        }
    }

    /// The value of a sample; `bytes` holds [`Encoding::bytes`] of them.
    pub(super) fn value(self, bytes: &[u8]) -> f32 {
        // Little-endian, in the lower bytes.
        let mut word = [0; 8];
        let word_bytes = &mut word[..bytes.len()];
        word_bytes.copy_from_slice(bytes);
        if self.big_endian {
            word_bytes.reverse();
        }
        let word = u64::from_le_bytes(word);
        // In the upper bits, so that a cast to i32 finds the sign.
        let upper = |bits: u32| ((word << (32 - bits)) as u32).cast_signed();
        let integer = match self.kind {
            Kind::Float32 => return f32::from_bits(word as u32),
            Kind::Float64 => return f64::from_bits(word) as f32,
            Kind::Unsigned8 => upper(8) ^ i32::MIN,
            Kind::Signed8 => upper(8),
            Kind::Signed16 => upper(16),
            Kind::Signed24 | Kind::Signed24In32 => upper(24),
            Kind::Signed32 => upper(32),
            Kind::ALaw => i32::from(a_law(word as u8)) << 16,
            Kind::MuLaw => i32::from(mu_law(word as u8)) << 16,
        };
        (f64::from(integer) / 2_f64.powi(31)) as f32
    }
}

/// The 16-bit value of an A-law code (ITU-T G.711, table 1).
fn a_law(code: u8) -> i16 {
    let code = code ^ 0x55;
    let mantissa = i16::from(code & 0x0f) << 4;
    let magnitude = match (code >> 4) & 0x07 {
        0 => mantissa + 0x008,
        segment => (mantissa + 0x108) << (segment - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}

/// The 16-bit value of a mu-law code (ITU-T G.711, table 2).
fn mu_law(code: u8) -> i16 {
    let code = !code;
    let mantissa = i16::from(code & 0x0f) << 3;
    let magnitude = ((mantissa + 0x84) << ((code >> 4) & 0x07)) - 0x84;
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: Kind, bytes: &[u8]) -> f32 {
        let little = Encoding { kind, big_endian: false };
        assert_eq!(bytes.len(), little.bytes());
        let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
        let big = Encoding { kind, big_endian: true };
        assert_eq!(little.value(bytes).to_bits(), big.value(&reversed).to_bits());
        little.value(bytes)
    }

    #[test]
    fn samples_have_the_value_of_their_code() {
        for (kind, bytes, expected) in [
            (Kind::Unsigned8, &[0][..], -1.0),
            (Kind::Unsigned8, &[128], 0.0),
            (Kind::Unsigned8, &[255], 127.0 / 128.0),
            (Kind::Signed8, &[0x80], -1.0),
            (Kind::Signed8, &[1], 1.0 / 128.0),
            (Kind::Signed16, &[0, 0x80], -1.0),
            (Kind::Signed16, &[0xff, 0x7f], 32_767.0 / 32_768.0),
            (Kind::Signed24, &[0xff, 0xff, 0xff], -1.0 / 8_388_608.0),
            (Kind::Signed24, &[0, 0, 0x40], 0.5),
            (Kind::Signed24In32, &[0, 0, 0xc0, 0], -0.5),
            (Kind::Signed32, &[0, 0, 0, 0xc0], -0.5),
            (Kind::Float32, &1.5_f32.to_le_bytes(), 1.5),
            (Kind::Float64, &(-2.5_f64).to_le_bytes(), -2.5),
            // The extremes and the smallest steps of G.711.
            (Kind::ALaw, &[0xaa], 32_256.0 / 32_768.0),
            (Kind::ALaw, &[0x2a], -32_256.0 / 32_768.0),
            (Kind::ALaw, &[0xd5], 8.0 / 32_768.0),
            (Kind::ALaw, &[0x55], -8.0 / 32_768.0),
            (Kind::MuLaw, &[0x80], 32_124.0 / 32_768.0),
            (Kind::MuLaw, &[0x00], -32_124.0 / 32_768.0),
            (Kind::MuLaw, &[0xff], 0.0),
            (Kind::MuLaw, &[0xfe], 8.0 / 32_768.0),
        ] {
            assert_eq!(value(kind, bytes), expected, "{kind:?} {bytes:?}");
        }
    }
}
