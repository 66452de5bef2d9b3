//! Repair in the time domain, before the transform: removal of clicks, heavy-tailed noise, outliers, offset and hum;
//! detection and restoration of clipped samples.
//!
//! A click of a few milliseconds, or one sample of heavy-tailed noise, fills every bin of its frames, which a spectral model
//! cannot represent. [`repair`] detects and removes such impulses, and leaves recordings without them unchanged.

mod autoregression;
mod clicks;
mod clipping;
mod declipping;
mod heavy_tails;
mod hum;
mod live_clicks;
mod live_hum;
mod live_offset;
mod offset;
mod outliers;
mod score;
#[cfg(test)]
mod tests;

pub use clipping::Clipping;
pub(crate) use declipping::{Declipper, MAX_RATIO as MAX_DECLIPPING_RATIO};
pub(crate) use hum::Hum;
pub(crate) use live_clicks::LiveClicks;
pub(crate) use live_hum::LiveHum;
pub(crate) use live_offset::LiveOffset;
pub(crate) use offset::Offset;
pub(crate) use outliers::{MAX_AMPLITUDE, Outliers};
use std::borrow::Cow;

/// Minimum duration of audio for the detection of impulses, s.
const MIN_SECONDS: f64 = 0.5;

/// Impulses that [`repair`] detected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Impulses {
    /// None, or too few to distinguish from plosives and other short sounds of speech.
    None,
    /// Clicks, pops or keystrokes of up to 12 ms.
    Clicks {
        /// Number of clicks.
        count: usize,
        /// Fraction of the samples that was interpolated, 0 to 1.
        fraction: f64,
    },
    /// White noise with a symmetric alpha-stable law in every sample.
    HeavyTails {
        /// Characteristic exponent, below 2.
        alpha: f64,
        /// Scale, in units of full scale.
        sigma: f64,
    },
}

/// Replaces outliers, far beyond full scale and their surroundings, as in corrupt floating-point files. Returns the samples
/// and the number of runs of outliers. Samples are in units of full scale, finite.
///
/// The magnitude of the result is at most 1e30; it is borrowed if nothing is changed.
#[must_use]
pub fn remove_outliers(samples: &[f32]) -> (Cow<'_, [f32]>, usize) {
    Outliers::default().remove(samples)
}

/// Removes impulses from one channel (`sample_rate` in Hz), if there are many of them.
///
/// The result is borrowed, hence bit-identical to the input, if none are detected.
///
/// * Clicks stand out of a 60 ms neighbourhood and last at most 12 ms. They are interpolated by an autoregressive model of
///   their surroundings. A section of about 10 s must have at least 20 certain ones, and 2.5 per second, in 60 % of the
///   half-seconds between the first and the last; after a section with clicks, 1.25 per second.
/// * White alpha-stable noise appears as isolated outliers over a stationary floor in the quiet parts of the recording. Every
///   sample is replaced by its efficient pseudo-observation, whose noise is close to normal with a variance of about
///   `2 sigma^2`, and left to the spectral model.
///
/// Samples are in units of full scale, finite. Recordings shorter than 0.5 s and sample rates below 4 kHz are returned
/// unchanged.
#[must_use]
pub fn repair(samples: &[f32], sample_rate: u32) -> (Cow<'_, [f32]>, Impulses) {
    ImpulseRepair::default().repair(samples, sample_rate)
}

/// Removal of the impulses of a channel, block by block.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImpulseRepair {
    clicks: clicks::Detector,
    /// The last samples before the next block, at most [`MIN_SECONDS`].
    before: Vec<f32>,
}

impl ImpulseRepair {
    /// Repairs the next block like [`repair`]. After a block with clicks, fewer clicks suffice. A short block is
    /// analysed together with the samples before it.
    pub(crate) fn repair<'a>(&mut self, samples: &'a [f32], sample_rate: u32) -> (Cow<'a, [f32]>, Impulses) {
        let least = (MIN_SECONDS * f64::from(sample_rate)) as usize;
        let known = std::mem::take(&mut self.before);
        let result = if samples.len() >= least {
            self.repair_whole(samples, 0, sample_rate)
        } else {
            let joined = [&known, samples].concat();
            let (repaired, found) = self.repair_whole(&joined, known.len(), sample_rate);
            match found {
                Impulses::None => (Cow::Borrowed(samples), found),
                _ => (Cow::Owned(repaired[known.len()..].to_vec()), found),
            }
        };
        self.before = if samples.len() >= least { Vec::new() } else { known };
        self.before.extend_from_slice(&samples[samples.len().saturating_sub(least)..]);
        let surplus = self.before.len().saturating_sub(least);
        self.before.drain(..surplus);
        result
    }

    /// Repairs samples, of which the first `known` were repaired before: impulses in these are not counted.
    fn repair_whole<'a>(
        &mut self,
        samples: &'a [f32],
        known: usize,
        sample_rate: u32,
    ) -> (Cow<'a, [f32]>, Impulses) {
        if sample_rate < 4_000 || (samples.len() as f64) < MIN_SECONDS * f64::from(sample_rate) {
            return (Cow::Borrowed(samples), Impulses::None);
        }
        let (noise, clicks) = crate::parallel::join(
            || heavy_tails::detect(samples, sample_rate),
            || self.clicks.detect(samples, sample_rate),
        );
        if let Some(noise) = noise
            && let Some(repaired) = heavy_tails::suppress(samples, sample_rate, &noise)
        {
            self.clicks = clicks::Detector::default();
            return (Cow::Owned(repaired), Impulses::HeavyTails { alpha: noise.alpha, sigma: noise.sigma });
        }
        let new: Vec<_> = clicks.iter().filter(|click| click.end > known).collect();
        if new.is_empty() {
            return (Cow::Borrowed(samples), Impulses::None);
        }
        let lost: usize = new.iter().map(|click| click.end - click.start.max(known)).sum();
        let fraction = lost as f64 / (samples.len() - known) as f64;
        let found = Impulses::Clicks { count: new.len(), fraction };
        (Cow::Owned(clicks::interpolate(samples, sample_rate, &clicks)), found)
    }
}

/// The quantile of some values at `probability` (0 to 1); `None` without values.
fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    let mut values = values.to_vec();
    let last = values.len().checked_sub(1)?;
    let at = ((probability * last as f64).round() as usize).min(last);
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}
