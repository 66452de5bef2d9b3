//! Edit lists, declared lengths, times of fragments and limits of MP4 files, which the demuxer of symphonia lacks.
//!
//! The edit list holds the number of samples that an encoder put before the first. Without it, AAC recordings are late
//! by the delay of their encoder, 1024 samples or more. For every packet, the demuxer searches the tables of all
//! tracks. Therefore the other tracks are hidden from it, and a table that would take minutes is rejected.

mod tables;
#[cfg(test)]
mod tests;
mod walk;

use super::error::ReadError;
use std::collections::BTreeMap;
use std::io::{Read, Seek};
use walk::Walk;

/// The start of the audio track by its edit list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditStart {
    /// Time before the first sample, in units of the time scale.
    media_time: u64,
    /// Units a second.
    time_scale: u32,
}

impl EditStart {
    /// Samples at a sample rate in Hz.
    pub(super) fn samples(self, sample_rate: u32) -> u64 {
        let samples =
            u128::from(self.media_time) * u128::from(sample_rate) / u128::from(self.time_scale.max(1));
        u64::try_from(samples).unwrap_or(u64::MAX)
    }
}

/// The length of the audio track by its edit list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditLength {
    duration: u64,
    /// Units a second.
    time_scale: u32,
}

impl EditLength {
    /// Samples at a sample rate in Hz, up to one unit too many, as the duration is rounded.
    pub(super) fn samples(self, sample_rate: u32) -> u64 {
        let units = u128::from(self.duration) + 1;
        let samples = (units * u128::from(sample_rate)).div_ceil(u128::from(self.time_scale.max(1)));
        u64::try_from(samples).unwrap_or(u64::MAX)
    }
}

/// Whether the first bytes of a file are those of MP4.
pub(super) fn is_mp4(start: &[u8]) -> bool {
    start.get(4..8) == Some(b"ftyp")
}

/// Declarations of a file about its audio track: the first enabled one, which players choose, or else the first.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Index {
    /// Identifier of the track.
    pub(super) track: Option<u32>,
    /// Start of the track, if it has a readable edit list.
    pub(super) start: Option<EditStart>,
    /// Length of the track, if its edit list declares one and no fragments follow.
    pub(super) length: Option<EditLength>,
    /// End of the track, s, if it is declared.
    pub(super) seconds: Option<f64>,
    /// Patch of a truncated last box: position and bytes of its corrected size.
    pub(super) cut: Option<(u64, [u8; 8])>,
    /// Audio tracks besides this one.
    pub(super) other_tracks: usize,
    /// Patches that turn the boxes of other tracks into free space: header bytes by position.
    hidden: BTreeMap<u64, [u8; 8]>,
    /// Missing fragments: position in the demuxer's time, which omits them, and duration, in units of the track.
    pub(super) gaps: Vec<(u64, u64)>,
}

impl Index {
    /// Reads the declarations of a file.
    ///
    /// # Errors
    /// If the file has too many boxes, declares too many packets for its size, or would be read wrongly or too slowly.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> Result<Self, ReadError> {
        Walk::over(file)?.index()
    }

    /// Bytes to replace in the file before demuxing, by position.
    pub(super) fn patches(&mut self) -> BTreeMap<u64, [u8; 8]> {
        let mut patches = std::mem::take(&mut self.hidden);
        patches.extend(self.cut);
        patches
    }
}
