//! Real-time denoising.

use crate::alphamf_status;
use crate::boundary::{check_samples, guarded, null, reference};
use crate::settings::{alphamf_settings, prepare};
use alphamf::LiveDenoiser;
use alphamf::denoiser::{LiveControls, LiveSettings};

/// Causal low-latency denoiser for calls and streams.
pub struct alphamf_live(LiveDenoiser);

/// Creates a real-time denoiser with a delay of `latency` milliseconds, 4 to 32. Of the settings, which may be NULL for the
/// defaults, it uses the dictionary, no_neural, floor_db, mix, alpha_speech and alpha_noise. Free it with
/// alphamf_live_free.
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
        let place = unsafe { reference(live, "live")? };
        *place = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let prepared = unsafe { prepare(sample_rate, settings)? };
        let floor_db = prepared.denoiser.settings().gain.floor_db as f32;
        let controls = LiveControls { floor_db, mix: prepared.session.mix, ..LiveControls::default() };
        let settings = LiveSettings { latency_seconds: latency / 1000.0, controls };
        let live = prepared.denoiser.live(sample_rate, channels as usize, settings)?;
        *place = Box::into_raw(Box::new(alphamf_live(live)));
        Ok(())
    })
}

/// Processes `samples` samples per channel, interleaved, from `input` to `output`. It never allocates or blocks, so an
/// audio callback may call it. The result does not depend on the size of the blocks.
///
/// # Safety
/// `live` is of `alphamf_live_create`; `input` points to samples x channels numbers, `output` to room for as many,
/// without overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_process(
    live: *mut alphamf_live,
    input: *const f32,
    output: *mut f32,
    samples: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = unsafe { reference(live, "live")? };
        if input.is_null() || output.is_null() {
            return Err(null("input or output"));
        }
        let count = samples.saturating_mul(live.0.channels());
        check_samples(count)?;
        // SAFETY: as the caller promises, and neither is null.
        let (input, output) = unsafe {
            (std::slice::from_raw_parts(input, count), std::slice::from_raw_parts_mut(output, count))
        };
        live.0.process(input, output);
        Ok(())
    })
}

/// Sets the controls, with smooth transitions: exponent of the gain (0 to 2, initially 1), minimum gain (-100 to 0 dB),
/// fraction of the denoised signal in the output (0 to 1), and whether the input passes unchanged. Values out of range are
/// clamped. Call it between calls of alphamf_live_process, not during one.
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
        unsafe { reference(live, "live")? }.0.set_controls(LiveControls {
            gain_exponent,
            floor_db,
            mix,
            bypass,
        });
        Ok(())
    })
}

/// Delay in samples; 0 for NULL.
///
/// # Safety
/// `live` is NULL or of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_latency(live: *const alphamf_live) -> usize {
    // SAFETY: as the caller promises.
    unsafe { live.as_ref() }.map_or(0, |live| live.0.latency())
}

/// Clears all state but the controls.
///
/// # Safety
/// `live` is of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_reset(live: *mut alphamf_live) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(live, "live")? }.0.reset();
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
