//! Streams: recordings of any length, block by block.

use crate::alphamf_status::{self, ALPHAMF_OK};
use crate::boundary::{Failure, blocks, guarded, null, reference, text, write, write_all};
use crate::settings::{Prepared, alphamf_settings, prepare};
use crate::track::Track;
use alphamf::denoiser::{SessionOutput, SessionSettings};
use alphamf::{DenoiseError, ProgressCallback, Session};
use alphamf_signal::MAX_CHANNELS;
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_double, c_int, c_void};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Progress callback: receives the completed seconds of the recording and cancels by returning a value other than 0. It may
/// be called from any thread, but never concurrently, and must not use the same stream. An exception of C++ must not leave it:
/// the process would end.
pub type alphamf_progress = Option<unsafe extern "C" fn(seconds: c_double, user: *mut c_void) -> c_int>;

/// A recording that is being denoised.
pub struct alphamf_stream {
    session: Session,
    prepared: Prepared,
    /// Completed samples that have not been pulled yet: of the speech, then of the residual.
    done: [Vec<VecDeque<f32>>; 2],
    /// Speech tracks, one for all channels or one per channel; empty if they are not recorded.
    pub(crate) tracks: Vec<Track>,
    sample_rate: u32,
    progress: Callback,
    statistics: CString,
}

/// Progress callback with its argument.
struct Callback {
    function: alphamf_progress,
    user: *mut c_void,
}

// SAFETY: whoever sets a callback promises that it and the target of `user` may be used from any thread, one at a time.
unsafe impl Send for Callback {}

impl ProgressCallback for Callback {
    fn report(&mut self, seconds: f64) -> ControlFlow<()> {
        // SAFETY: the function has these parameters, and `user` was set with it.
        let cancelled = self.function.is_some_and(|function| unsafe { function(seconds, self.user) } != 0);
        if cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Prepared {
    fn stream(&self, sample_rate: u32, channels: u32) -> Result<alphamf_stream, Failure> {
        let channels = channels as usize;
        let settings = SessionSettings { residual: true, ..self.session.clone() };
        Ok(alphamf_stream {
            session: self.threads.run(|| self.denoiser.session(sample_rate, channels, settings))?,
            prepared: self.clone(),
            done: [vec![VecDeque::new(); channels], vec![VecDeque::new(); channels]],
            tracks: Vec::new(),
            sample_rate,
            progress: Callback { function: None, user: std::ptr::null_mut() },
            statistics: CString::default(),
        })
    }
}

impl alphamf_stream {
    fn channels(&self) -> usize {
        self.done[0].len()
    }

    /// Runs the session on its threads and keeps the completed samples.
    fn work(
        &mut self,
        work: impl FnOnce(&mut Session, &mut dyn ProgressCallback) -> Result<SessionOutput, DenoiseError> + Send,
    ) -> Result<(), Failure> {
        let Self { session, progress, prepared, tracks, .. } = self;
        let SessionOutput { speech, residual } = prepared.threads.run(|| work(session, progress))?;
        if prepared.session.speech_track {
            let found = session.take_speech_track();
            tracks.resize_with(found.len(), Track::default);
            tracks.iter_mut().zip(found).for_each(|(track, found)| track.add(found));
        }
        for (queues, samples) in self.done.iter_mut().zip([speech, residual]) {
            queues.iter_mut().zip(samples).for_each(|(queue, samples)| queue.extend(samples));
        }
        Ok(())
    }
}

/// Creates a stream for a recording of 8000 to 192000 samples per second and 1 to 256 channels, together at most
/// 64 x 48000 samples per second, with the settings or, if they are NULL, the defaults. Free it with alphamf_free. The first
/// stream of some settings takes longer: it fills tables that the others share.
///
/// # Safety
/// `settings` is NULL or of `alphamf_settings_new`; `stream` points to a pointer, which is set to NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_create(
    sample_rate: u32,
    channels: u32,
    settings: *const alphamf_settings,
    stream: *mut *mut alphamf_stream,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { write(stream, std::ptr::null_mut(), "stream")? };
        // SAFETY: as the caller promises.
        let prepared = unsafe { prepare(sample_rate, settings)? };
        let made = Box::new(prepared.stream(sample_rate, channels)?);
        // SAFETY: as the caller promises.
        unsafe { write(stream, Box::into_raw(made), "stream") }
    })
}

/// Sets the initial noise spectra from a section without speech, of the same sample rate and channels. Call it before the
/// first push.
///
/// # Safety
/// `stream` is of `alphamf_create`; `channels` points to one pointer per channel, each to `samples` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_set_noise_profile(
    stream: *mut alphamf_stream,
    channels: *const *const f32,
    samples: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let stream = unsafe { reference(stream, "stream")? };
        // SAFETY: as the caller promises.
        let block = unsafe { blocks(channels, stream.channels(), samples)? };
        let (sample_rate, channels) = (stream.sample_rate, stream.channels());
        let alphamf_stream { session, prepared, .. } = stream;
        Ok(prepared.threads.run(|| {
            let mut noise = prepared.denoiser.noise_profile(sample_rate, channels)?;
            noise.push(&block)?;
            session.set_noise_profile(&noise)
        })?)
    })
}

/// Sets the progress callback of a stream, or removes it if `progress` is NULL. A cancelled stream can only be freed.
///
/// # Safety
/// `stream` is of `alphamf_create`; `progress` may use `user` from any thread while the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_set_progress(
    stream: *mut alphamf_stream,
    progress: alphamf_progress,
    user: *mut c_void,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(stream, "stream")? }.progress = Callback { function: progress, user };
        Ok(())
    })
}

/// Maximum number of samples per channel held back after a push; 0 for NULL.
///
/// # Safety
/// `stream` is NULL or of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_latency(stream: *const alphamf_stream) -> usize {
    // SAFETY: as the caller promises.
    unsafe { stream.as_ref() }.map_or(0, |stream| stream.session.latency())
}

/// Takes the next samples of every channel. Most calls return at once; about every four seconds of the recording, one
/// processes a block. The result does not depend on the division into calls. A rejected call has no effect.
///
/// # Safety
/// `stream` is of `alphamf_create`; `channels` points to one pointer per channel, each to `samples` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_push(
    stream: *mut alphamf_stream,
    channels: *const *const f32,
    samples: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let stream = unsafe { reference(stream, "stream")? };
        // SAFETY: as the caller promises.
        let block = unsafe { blocks(channels, stream.channels(), samples)? };
        stream.work(|session, progress| session.push_with_progress(&block, progress))
    })
}

/// Ends the recording: all remaining samples can be pulled. The output is as long as the input.
///
/// # Safety
/// `stream` is of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_finish(stream: *mut alphamf_stream) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(stream, "stream")? }
            .work(|session, progress| session.finish_with_progress(progress))
    })
}

/// Number of samples per channel that can be pulled; 0 for NULL.
///
/// # Safety
/// `stream` is NULL or of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_available(stream: *const alphamf_stream) -> usize {
    // SAFETY: as the caller promises.
    let first = unsafe { stream.as_ref() }.and_then(|stream| stream.done[0].first());
    first.map_or(0, VecDeque::len)
}

/// Writes the next completed samples of every channel, at most `samples`: of the speech, and of the residual, the
/// recording minus the speech. Either may be NULL. Returns the number written per channel.
///
/// # Safety
/// `stream` is NULL or of `alphamf_create`; `speech` and `residual` are NULL or point to one pointer per channel,
/// each to room for `samples` numbers, without overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_pull(
    stream: *mut alphamf_stream,
    speech: *const *mut f32,
    residual: *const *mut f32,
    samples: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let count = samples.min(unsafe { alphamf_available(stream) });
    // SAFETY: as the caller promises.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return 0 };
    for (queues, places) in stream.done.iter_mut().zip([speech, residual]) {
        for (channel, queue) in queues.iter_mut().enumerate() {
            let taken = queue.drain(..count.min(queue.len()));
            if places.is_null() {
                continue;
            }
            // SAFETY: there is a pointer for each channel.
            let place = unsafe { *places.add(channel) };
            if place.is_null() {
                continue;
            }
            // SAFETY: there is room for `samples` numbers, and no more are taken.
            unsafe { write_all(taken, place) };
        }
    }
    count
}

/// Statistics so far, as JSON, with the fields that `denoise --stats` reports of a file's samples. Valid until the next
/// call on the stream; empty for NULL.
///
/// # Safety
/// `stream` is NULL or of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_statistics(stream: *mut alphamf_stream) -> *const c_char {
    // SAFETY: as the caller promises.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return c"".as_ptr() };
    let statistics = catch_unwind(AssertUnwindSafe(|| serde_json::to_string(&stream.session.statistics())));
    stream.statistics = text(&statistics.unwrap_or(Ok(String::new())).unwrap_or_default());
    stream.statistics.as_ptr()
}

/// Frees a stream, finished or not, or NULL.
///
/// # Safety
/// `stream` is NULL or of `alphamf_create`, and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_free(stream: *mut alphamf_stream) {
    if !stream.is_null() {
        // SAFETY: as the caller promises, and it is not null.
        drop(unsafe { Box::from_raw(stream) });
    }
}

/// Denoises a recording in memory with the settings or, if they are NULL, the defaults. Output and input may be the same
/// memory.
///
/// # Safety
/// As for `alphamf_create`, `alphamf_push` and `alphamf_pull`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_denoise(
    sample_rate: u32,
    channels: u32,
    settings: *const alphamf_settings,
    noisy: *const *const f32,
    speech: *const *mut f32,
    samples: usize,
) -> alphamf_status {
    if speech.is_null() {
        return guarded(|| Err(null("speech")));
    }
    // SAFETY: there is a pointer for each channel, up to the number that a stream can have.
    let is_null = |channel: usize| unsafe { (*speech.add(channel)).is_null() };
    let count = channels as usize;
    // Checked before the stream fills its tables, which takes time. The stream rejects more channels.
    if samples > 0 && count <= MAX_CHANNELS && (0..count).any(is_null) {
        return guarded(|| Err(null("a channel of speech")));
    }
    let mut stream = std::ptr::null_mut();
    // SAFETY: as the caller promises.
    let mut status = unsafe { alphamf_create(sample_rate, channels, settings, &mut stream) };
    if status == ALPHAMF_OK {
        // SAFETY: the stream has just been created.
        status = unsafe { alphamf_push(stream, noisy, samples) };
    }
    if status == ALPHAMF_OK {
        // SAFETY: the stream has just been created.
        status = unsafe { alphamf_finish(stream) };
    }
    if status == ALPHAMF_OK {
        // SAFETY: as the caller promises; the stream has just been created.
        unsafe { alphamf_pull(stream, speech, std::ptr::null(), samples) };
    }
    // SAFETY: the stream has just been created, or is null.
    unsafe { alphamf_free(stream) };
    status
}
