//! The speech track of a stream.

use crate::boundary::write_all;
use crate::stream::alphamf_stream;
use alphamf::denoiser::{SpeechSegment, SpeechTrack};
use std::collections::VecDeque;

/// Section with speech.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct alphamf_segment {
    /// Start, seconds from the start of the recording.
    pub start_seconds: f64,
    /// End, seconds.
    pub end_seconds: f64,
    /// Level of the speech in it, dBFS.
    pub level_dbfs: f64,
    /// Ratio of speech to noise in it, dB, at most 100.
    pub snr_db: f64,
}

impl From<SpeechSegment> for alphamf_segment {
    fn from(segment: SpeechSegment) -> Self {
        let SpeechSegment { start_seconds, end_seconds, level_dbfs, snr_db } = segment;
        Self { start_seconds, end_seconds, level_dbfs, snr_db }
    }
}

/// Probabilities and sections that have not been pulled yet.
#[derive(Default)]
pub(crate) struct Track {
    probability: VecDeque<f32>,
    segments: VecDeque<alphamf_segment>,
}

impl Track {
    pub(crate) fn add(&mut self, found: SpeechTrack) {
        self.probability.extend(found.probability);
        self.segments.extend(found.segments.into_iter().map(alphamf_segment::from));
    }
}

/// Moves the first values of a queue of a track to memory with room for `count` of them. Returns their number; 0 for NULL.
///
/// # Safety
/// `stream` is null or of `alphamf_create`; `place` is null, or points to room for `count` values.
unsafe fn pull<T>(
    stream: *mut alphamf_stream,
    track: u32,
    queue: impl FnOnce(&mut Track) -> &mut VecDeque<T>,
    place: *mut T,
    count: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let found = unsafe { stream.as_mut() }.and_then(|stream| stream.tracks.get_mut(track as usize));
    let Some(queue) = found.map(queue).filter(|_| !place.is_null()) else { return 0 };
    let count = count.min(queue.len());
    // SAFETY: there is room for `count` values.
    unsafe { write_all(queue.drain(..count), place) };
    count
}

/// Writes the next completed probabilities of speech, 0 to 1, at most `slots`: one for every 10 ms from the start of the
/// recording. Returns the number written: 0 if the setting "speech_track" is not "true". `track` is 0, or with the setting
/// ("channels", "separate") the number of a channel.
///
/// # Safety
/// `stream` is NULL or of `alphamf_create`; `probability` is NULL or points to room for `slots` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_pull_probability(
    stream: *mut alphamf_stream,
    track: u32,
    probability: *mut f32,
    slots: usize,
) -> usize {
    // SAFETY: as the caller promises.
    unsafe { pull(stream, track, |track| &mut track.probability, probability, slots) }
}

/// Writes the next sections with speech that have ended, at most `count`, in order. Returns the number written; `track` as for
/// alphamf_pull_probability.
///
/// # Safety
/// `stream` is NULL or of `alphamf_create`; `segments` is NULL or points to room for `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_pull_segments(
    stream: *mut alphamf_stream,
    track: u32,
    segments: *mut alphamf_segment,
    count: usize,
) -> usize {
    // SAFETY: as the caller promises.
    unsafe { pull(stream, track, |track| &mut track.segments, segments, count) }
}
