//! Edit lists, declared lengths, times of fragments and limits of MP4 files, which the demuxer of symphonia lacks.
//!
//! The edit list holds the number of samples that an encoder put before the first. Without it, AAC recordings are late by
//! the delay of their encoder, 1024 samples or more. For every packet, the demuxer goes through the tables of all tracks: the
//! others are hidden from it, and a table that would keep it busy for minutes is left to other programs.

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
    /// Samples at a sample rate in Hz: up to a unit more, as the duration is rounded.
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

/// What the boxes of a file declare of its audio track: the first that is enabled, as players take it, or the first.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Index {
    /// Its identity.
    pub(super) track: Option<u32>,
    /// If it has a readable edit list.
    pub(super) start: Option<EditStart>,
    /// If its edit list declares one, and no fragments follow.
    pub(super) length: Option<EditLength>,
    /// When it ends, s, if that is declared.
    pub(super) seconds: Option<f64>,
    /// If the file ends within a box: where its size stands, and the size of what is there of it.
    pub(super) cut: Option<(u64, [u8; 8])>,
    /// Audio tracks besides this one.
    pub(super) other_tracks: usize,
    /// The starts of boxes of other tracks as those of free space.
    hidden: BTreeMap<u64, [u8; 8]>,
    /// Missing fragments, in units of the track: where they are if nothing is missing before them, and how long.
    pub(super) gaps: Vec<(u64, u64)>,
}

impl Index {
    /// # Errors
    /// If the file holds more boxes or announces more packets than it can or needs, or if its audio would be read as something
    /// else, or too slowly.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> Result<Self, ReadError> {
        Walk::over(file)?.index()
    }

    /// Bytes of the file to be replaced for the demuxer, by where they stand.
    pub(super) fn patches(&mut self) -> BTreeMap<u64, [u8; 8]> {
        let mut patches = std::mem::take(&mut self.hidden);
        patches.extend(self.cut);
        patches
    }
}
