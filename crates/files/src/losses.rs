//! Counts of missing and damaged parts of a recording.

use alphamf_signal::counted;
use std::ops::AddAssign;

/// Missing and damaged parts of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Losses {
    /// Packets, or runs of them, that could not be decoded.
    pub damaged_packets: u64,
    /// Samples per channel that were replaced with silence to keep the following samples in time.
    pub silent_samples: u64,
    /// Samples per channel that the header declares beyond the end.
    pub missing_samples: u64,
    /// Infinite or NaN samples that became zero, all channels together.
    pub not_finite: u64,
    /// Whether the file ends within a packet or before the end that its header declares.
    pub ends_early: bool,
    /// Whether more data follow the samples that the header of a WAV file declares, as an interrupted recorder leaves
    /// them. [`Reader::salvage`](crate::Reader::salvage) reads them.
    pub data_follow: bool,
    /// Whether the samples of a complete FLAC file do not match its MD5 signature.
    pub checksum_mismatch: bool,
    /// Whether another recording follows, of another sample rate, which is not read.
    pub other_recording: bool,
}

impl Losses {
    /// Whether anything is missing or damaged.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.damaged_packets += other.damaged_packets;
        self.silent_samples += other.silent_samples;
        self.missing_samples += other.missing_samples;
        self.not_finite += other.not_finite;
        self.ends_early |= other.ends_early;
        self.data_follow |= other.data_follow;
        self.checksum_mismatch |= other.checksum_mismatch;
        self.other_recording |= other.other_recording;
    }
}

impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = [
            (self.damaged_packets, "damaged or missing packet", ""),
            (self.silent_samples, "sample", " replaced with silence"),
            (self.missing_samples, "sample", " missing at the end"),
            (self.not_finite, "non-finite sample", ", now zero"),
        ];
        let mut parts: Vec<String> = counts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, what, rest)| counted(*count, what) + rest)
            .collect();
        let facts = [
            (self.ends_early, "the file ends early"),
            (self.data_follow, "more data follow the declared end"),
            (self.checksum_mismatch, "the samples do not match their MD5 signature"),
            (self.other_recording, "another recording of another sample rate follows"),
        ];
        parts.extend(facts.iter().filter(|(is_so, _)| *is_so).map(|(_, what)| (*what).to_owned()));
        f.write_str(&parts.join(", "))
    }
}
