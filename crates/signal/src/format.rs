//! Sample formats.

/// The storage format of samples in a file.
///
/// Integer formats of `n` bits map [-1, 1) onto their whole range: the value of code `k` is
/// `k / 2^(n-1)`, so that -1 is the lowest code and +1 lies one step above the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleFormat {
    /// 8-bit integer, stored with an offset of 128.
    Int8,
    /// 16-bit integer.
    Int16,
    /// 24-bit integer, three bytes a sample.
    Int24,
    /// 32-bit integer. Samples are held as `f32`, so only the upper 24 bits survive.
    Int32,
    /// 32-bit IEEE floating point; values beyond ±1 are kept.
    Float32,
    /// 64-bit IEEE floating point. Samples are held as `f32`, so only single precision survives.
    Float64,
}

impl SampleFormat {
    /// Number of bits per sample in a file.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            Self::Int8 => 8,
            Self::Int16 => 16,
            Self::Int24 => 24,
            Self::Int32 | Self::Float32 => 32,
            Self::Float64 => 64,
        }
    }

    /// Whether samples are stored as integers.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::Float32 | Self::Float64)
    }
}

impl std::fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-bit {}", self.bits(), if self.is_integer() { "integer" } else { "float" })
    }
}
