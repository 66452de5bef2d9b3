//! Real-time denoising.

use crate::alphamf_status;
use crate::boundary::{check_samples, guarded, null, reference, setting, write};
use crate::settings::{alphamf_settings, prepare};
use alphamf::denoiser::{LiveControls, LiveMeters, LiveSettings};
use alphamf::{DenoiseError, LiveDenoiser};
use std::ffi::c_void;

/// Voice callback: receives whether speech starts, or else has ended, and the position in the output, in samples since the
/// start or the last reset. It is called by alphamf_live_process, on its thread, and must not use the same denoiser.
/// An exception of C++ must not leave it: the process would end.
pub type alphamf_voice = Option<unsafe extern "C" fn(speaking: bool, sample: u64, user: *mut c_void)>;

/// Causal low-latency denoiser for calls and streams. It must be used by one thread at a time: call the other functions on
/// it between calls of alphamf_live_process, not during one.
pub struct alphamf_live {
    live: LiveDenoiser,
    /// Copy of a part of the input, which may share its memory with the output.
    input: Box<[f32]>,
    on_voice: alphamf_voice,
    /// Argument of `on_voice`.
    user: *mut c_void,
}

/// Maximum number of samples per channel that are copied at once.
const PART: usize = 256;

/// Creates a real-time denoiser with a delay of `latency` milliseconds, 4 to 64. Of the settings, which may be NULL for the
/// defaults, it uses the dictionary, no_neural, strength, floor_db, purpose, mix, alpha_speech and
/// alpha_noise. Free it with alphamf_live_free.
///
/// # Safety
/// `settings` is NULL or of `alphamf_settings_new`; `live` points to a pointer, which is set to NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_create(
    sample_rate: u32,
    channels: u32,
    settings: *const alphamf_settings,
    latency: f64,
    live: *mut *mut alphamf_live,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { write(live, std::ptr::null_mut(), "live")? };
        // SAFETY: as the caller promises.
        let prepared = unsafe { prepare(sample_rate, settings)? };
        let controls = prepared.denoiser.live_controls(prepared.session.mix);
        let settings = LiveSettings::with_latency_ms(latency, controls).map_err(DenoiseError::from)?;
        let denoiser = || prepared.denoiser.live(sample_rate, channels as usize, settings);
        let made = prepared.threads.run(denoiser)?;
        let input = vec![0.0; PART * made.channels()].into_boxed_slice();
        let made = Box::new(alphamf_live { live: made, input, on_voice: None, user: std::ptr::null_mut() });
        // SAFETY: as the caller promises.
        unsafe { write(live, Box::into_raw(made), "live") }
    })
}

/// Processes `samples` samples per channel, interleaved, from `input` to `output`. It never allocates or blocks, so an
/// audio callback may call it; only a failure allocates, for the message. The result does not depend on the size of the
/// blocks. Samples that are not finite count as 0. Output and input may be the same memory.
///
/// # Safety
/// `live` is of `alphamf_live_create`; `input` points to samples x channels numbers, `output` to room for as many: the
/// same memory, or without overlap. With 0 samples, either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_process(
    live: *mut alphamf_live,
    input: *const f32,
    output: *mut f32,
    samples: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let alphamf_live { live, input: part, on_voice, user } = unsafe { reference(live, "live")? };
        if samples == 0 {
            return Ok(());
        }
        if input.is_null() || output.is_null() {
            return Err(null("input or output"));
        }
        let count = samples.saturating_mul(live.channels());
        check_samples(count)?;
        let most = part.len();
        for start in (0..count).step_by(most) {
            let part = &mut part[..most.min(count - start)];
            // SAFETY: as the caller promises, and neither is null. This slice ends before the next one begins, as both
            // may be the same memory.
            part.copy_from_slice(unsafe { std::slice::from_raw_parts(input.add(start), part.len()) });
            // SAFETY: as before.
            let output = unsafe { std::slice::from_raw_parts_mut(output.add(start), part.len()) };
            live.process_with_events(part, output, |event| {
                if let Some(on_voice) = on_voice {
                    // SAFETY: the function has these parameters, and `user` was set with it.
                    unsafe { on_voice(event.speaking, event.sample, *user) };
                }
            });
        }
        Ok(())
    })
}

/// Sets the controls, with smooth transitions: exponent of the gain (0 to 2, initially 1), minimum gain (-100 to 0 dB),
/// fraction of the denoised signal in the output (0 to 1), and whether the input passes unchanged. Values out of range are
/// clamped, and NAN keeps the present value. Call it between calls of alphamf_live_process, not during one.
///
/// # Safety
/// `live` is of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_set(
    live: *mut alphamf_live,
    gain_exponent: f32,
    floor_db: f32,
    mix: f32,
    bypass: bool,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = &mut unsafe { reference(live, "live")? }.live;
        let present = live.controls();
        live.set_controls(LiveControls {
            gain_exponent: or(gain_exponent, present.gain_exponent),
            floor_db: or(floor_db, present.floor_db),
            mix: or(mix, present.mix),
            bypass,
            ..present
        });
        Ok(())
    })
}

/// Returns `value`, or `present` if `value` is NaN.
fn or(value: f32, present: f32) -> f32 {
    if value.is_nan() { present } else { value }
}

/// Writes the controls that alphamf_live_create or alphamf_live_set has set last. Each place may be NULL. Call it between
/// calls of alphamf_live_process, not during one.
///
/// # Safety
/// `live` is of `alphamf_live_create`; the other pointers are NULL or point to room for one value each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_controls(
    live: *const alphamf_live,
    gain_exponent: *mut f32,
    floor_db: *mut f32,
    mix: *mut f32,
    bypass: *mut bool,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = unsafe { live.as_ref() }.ok_or_else(|| null("live"))?;
        let controls = live.live.controls();
        let numbers =
            [(gain_exponent, controls.gain_exponent), (floor_db, controls.floor_db), (mix, controls.mix)];
        for (place, value) in numbers {
            if !place.is_null() {
                // SAFETY: as the caller promises, and it is not null.
                unsafe { place.write(value) };
            }
        }
        if !bypass.is_null() {
            // SAFETY: as before.
            unsafe { bypass.write(controls.bypass) };
        }
        Ok(())
    })
}

/// Sets when there is speech: from a probability of speech on (0 to 1, initially 0.5), until it has been lower for
/// `hang_over_ms` milliseconds (0 to 10000, initially 300). Values out of range are clamped, and NAN keeps the present value.
/// The sound does not depend on it. Call it between calls of alphamf_live_process, not during one.
///
/// # Safety
/// `live` is of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_set_voice(
    live: *mut alphamf_live,
    threshold: f32,
    hang_over_ms: f32,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = &mut unsafe { reference(live, "live")? }.live;
        let present = live.controls();
        live.set_controls(LiveControls {
            voice_threshold: or(threshold, present.voice_threshold),
            voice_hang_over_seconds: or(hang_over_ms / 1000.0, present.voice_hang_over_seconds),
            ..present
        });
        Ok(())
    })
}

/// Sets the voice callback, or removes it if `on_voice` is NULL. Call it between calls of alphamf_live_process, not during
/// one.
///
/// # Safety
/// `live` is of `alphamf_live_create`; `on_voice` may use `user` while it processes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_on_voice(
    live: *mut alphamf_live,
    on_voice: alphamf_voice,
    user: *mut c_void,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = unsafe { reference(live, "live")? };
        (live.on_voice, live.user) = (on_voice, user);
        Ok(())
    })
}

/// Estimates the noise from the next `seconds` of input, which must hold no speech: without end if they are INFINITY, no
/// longer if they are 0; less, and NAN, are refused. The denoised signal is attenuated to the minimum gain meanwhile. Call it
/// between calls of alphamf_live_process, not during one.
///
/// # Safety
/// `live` is of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_learn_noise(live: *mut alphamf_live, seconds: f64) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = &mut unsafe { reference(live, "live")? }.live;
        if seconds.is_nan() || seconds < 0.0 {
            return Err(setting(format!("seconds is {seconds}; expected 0 or more")));
        }
        live.learn_noise(seconds);
        Ok(())
    })
}

/// Levels measured by a real-time denoiser, smoothed over 0.1 s, and the probability of speech.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct alphamf_meters {
    /// Level of the estimated noise, dBFS, at least -120.
    pub noise_dbfs: f32,
    /// Level of the denoised signal, dBFS, at least -120.
    pub speech_dbfs: f32,
    /// Level of the denoised signal relative to the input, before they are mixed, dB.
    pub gain_db: f32,
    /// Probability of speech in the last frame, 0 to 1.
    pub speech_probability: f32,
}

impl From<LiveMeters> for alphamf_meters {
    fn from(meters: LiveMeters) -> Self {
        let LiveMeters { noise_dbfs, speech_dbfs, gain_db, speech_probability } = meters;
        Self { noise_dbfs, speech_dbfs, gain_db, speech_probability }
    }
}

/// Writes the meters of the samples that were processed last to `meters`. Call it between calls of alphamf_live_process, not
/// during one; it never allocates or blocks, but for the message of a failure.
///
/// # Safety
/// `live` is of `alphamf_live_create`; `meters` points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_meters(
    live: *const alphamf_live,
    meters: *mut alphamf_meters,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = unsafe { live.as_ref() }.ok_or_else(|| null("live"))?;
        // SAFETY: as the caller promises.
        unsafe { write(meters, live.live.meters().into(), "meters") }
    })
}

/// Probability of speech in the samples that were processed last, 0 to 1; 0 for NULL. Call it between calls of
/// alphamf_live_process, not during one.
///
/// # Safety
/// `live` is NULL or of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_speech_probability(live: *const alphamf_live) -> f32 {
    // SAFETY: as the caller promises.
    unsafe { live.as_ref() }.map_or(0.0, |live| live.live.voice_activity().probability)
}

/// Whether there is speech, by threshold and hang-over; false for NULL. Call it between calls of alphamf_live_process, not
/// during one.
///
/// # Safety
/// `live` is NULL or of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_speaking(live: *const alphamf_live) -> bool {
    // SAFETY: as the caller promises.
    unsafe { live.as_ref() }.is_some_and(|live| live.live.voice_activity().speaking)
}

/// Delay in samples; 0 for NULL. Call it between calls of alphamf_live_process, not during one.
///
/// # Safety
/// `live` is NULL or of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_latency(live: *const alphamf_live) -> usize {
    // SAFETY: as the caller promises.
    unsafe { live.as_ref() }.map_or(0, |live| live.live.latency())
}

/// Clears all state but the controls. Call it between calls of alphamf_live_process, not during one.
///
/// # Safety
/// `live` is of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_reset(live: *mut alphamf_live) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(live, "live")? }.live.reset();
        Ok(())
    })
}

/// Frees a real-time denoiser, or NULL.
///
/// # Safety
/// `live` is NULL or of `alphamf_live_create`, and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_free(live: *mut alphamf_live) {
    if !live.is_null() {
        // SAFETY: as the caller promises, and it is not null.
        drop(unsafe { Box::from_raw(live) });
    }
}
