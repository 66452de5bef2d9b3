//! The short-time Fourier transform and its inverse, in blocks of any length.

#[cfg(test)]
mod tests;

use crate::range::{SettingsError, within};
use alphamf_fourier::{ComplexToReal, RealToComplex};
use num_complex::Complex;
use std::f64::consts::PI;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Default window length, s: bins 15.625 Hz apart.
pub const DEFAULT_WINDOW_SECONDS: f64 = 0.064;

/// Range of the window length, s.
pub const WINDOW_RANGE_SECONDS: RangeInclusive<f64> = 0.001..=1.0;

/// The grid of frames and bins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameGrid {
    /// Bins of a frame, from 0 Hz to half the sample rate.
    pub bins: usize,
    /// Distance between bins, Hz.
    pub bin_hertz: f64,
    /// Distance between frames, s.
    pub frame_seconds: f64,
}

/// The short-time Fourier transform and its inverse, with Hann windows and 75% overlap.
///
/// Frame `t` holds the samples from `(t + 1) hop - window` up to `(t + 1) hop`; samples before the first and after the
/// last are zero. Every frame that overlaps the signal exists, so all samples are covered by an equal number of
/// windows.
///
/// The periodic Hann window is applied in both directions and the overlapping frames are divided by the sum of its
/// squares: the least-squares inverse of a modified spectrogram (Griffin and Lim, "Signal estimation from modified
/// short-time Fourier transform", 1984, equation 6), and the exact inverse of an unmodified one.
///
/// ```
/// use alphamf::transform::{DEFAULT_WINDOW_SECONDS, Stft};
/// let stft = Stft::new(16_000, DEFAULT_WINDOW_SECONDS)?;
/// let samples: Vec<f32> = (0..5_000).map(|n| (n as f32 * 0.1).sin()).collect();
/// let spectrogram = stft.analyse(&samples);
/// assert_eq!((spectrogram.bins(), stft.bin_spacing()), (513, 15.625));
/// let again = stft.synthesise(&spectrogram, samples.len());
/// assert!(samples.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-6));
/// # Ok::<(), alphamf::denoiser::SettingsError>(())
/// ```
#[derive(Clone)]
pub struct Stft {
    sample_rate: u32,
    hop: usize,
    analysis_window: Arc<[f32]>,
    /// The window divided by the sum of squared windows and by the scale of the inverse FFT.
    synthesis_window: Arc<[f32]>,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
}

/// Length of a window in samples: the nearest even number.
pub(crate) fn window_samples(sample_rate: u32, window_seconds: f64) -> Result<usize, SettingsError> {
    within("window_seconds", window_seconds, WINDOW_RANGE_SECONDS)?;
    Ok(2 * ((f64::from(sample_rate) * window_seconds / 2.0).round() as usize).max(2))
}

/// A periodic Hann window of `window` samples.
pub(crate) fn hann(window: usize) -> impl Iterator<Item = f64> {
    (0..window).map(move |n| 0.5 - 0.5 * libm::cos(2.0 * PI * n as f64 / window as f64))
}

impl Stft {
    /// Creates a transform for a sample rate in Hz and a window length in s.
    ///
    /// The window is rounded to the nearest even number of samples, so that there is a bin at half the sample rate. At
    /// rates at which the window is not a whole number of samples (11 025 Hz and its multiples), the bin spacing
    /// therefore differs by up to 0.06%.
    ///
    /// # Errors
    /// [`SettingsError`] if `window_seconds` is outside [`WINDOW_RANGE_SECONDS`].
    pub fn new(sample_rate: u32, window_seconds: f64) -> Result<Self, SettingsError> {
        let window = window_samples(sample_rate, window_seconds)?;
        let hop = window / 4;
        let hann: Vec<f64> = hann(window).collect();
        // All samples are covered equally, so the sum of squared windows is periodic with the hop.
        let mut sum_of_squares = vec![0.0; hop];
        for (n, w) in hann.iter().enumerate() {
            sum_of_squares[n % hop] += w * w;
        }
        Ok(Self {
            sample_rate,
            hop,
            analysis_window: hann.iter().map(|&w| w as f32).collect(),
            synthesis_window: hann
                .iter()
                .enumerate()
                .map(|(n, w)| (w / (sum_of_squares[n % hop] * window as f64)) as f32)
                .collect(),
            forward: alphamf_fourier::forward(window),
            inverse: alphamf_fourier::inverse(window),
        })
    }

    /// Sample rate in Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Window length in samples.
    #[must_use]
    pub fn window(&self) -> usize {
        self.analysis_window.len()
    }

    /// Power per bin of white noise with variance 1: the sum of the squared Hann window.
    pub(crate) fn white_power(&self) -> f64 {
        0.375 * self.window() as f64
    }

    /// Samples from one frame to the next: a quarter of the window, rounded down.
    #[must_use]
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// Number of frequency bins, from 0 Hz to half the sample rate.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.window() / 2 + 1
    }

    /// Distance between bins in Hz: bin `k` is centred on `k` times this.
    #[must_use]
    pub fn bin_spacing(&self) -> f64 {
        f64::from(self.sample_rate) / self.window() as f64
    }

    /// The grid of frames and bins.
    #[must_use]
    pub fn grid(&self) -> FrameGrid {
        FrameGrid {
            bins: self.bins(),
            bin_hertz: self.bin_spacing(),
            frame_seconds: self.hop as f64 / f64::from(self.sample_rate),
        }
    }

    /// Time of the centre of the first frame relative to the first sample, s; negative.
    pub(crate) fn first_seconds(&self) -> f64 {
        let rate = f64::from(self.sample_rate);
        self.hop as f64 / rate - self.window() as f64 / rate / 2.0
    }

    /// Number of frames of a signal of `samples` samples; 0 if it is empty.
    #[must_use]
    pub fn frames(&self, samples: usize) -> usize {
        match samples {
            0 => 0,
            _ => (samples - 1 + self.lead()) / self.hop + 1,
        }
    }

    /// Computes the spectrogram of one channel.
    #[must_use]
    pub fn analyse(&self, samples: &[f32]) -> Spectrogram {
        let mut spectrogram = Spectrogram::new(self.bins(), 0);
        let mut analyser = self.analyser();
        analyser.push(samples, &mut spectrogram);
        analyser.finish(&mut spectrogram);
        spectrogram
    }

    /// Creates an analyser of one channel, in blocks of any length.
    #[must_use]
    pub fn analyser(&self) -> Analyser {
        Analyser {
            stft: self.clone(),
            waiting: vec![0.0; self.lead()],
            is_empty: true,
            windowed: self.forward.make_input_vec(),
            spectrum: self.forward.make_output_vec(),
            scratch: self.forward.make_scratch_vec(),
        }
    }

    /// Synthesises the signal of `samples` samples whose spectrogram is closest to `spectrogram`.
    ///
    /// The imaginary parts at 0 Hz and half the sample rate count as zero. Frames missing at the
    /// end count as silence; frames beyond the end are ignored.
    ///
    /// # Panics
    /// If the spectrogram does not have the bins of this transform.
    #[must_use]
    pub fn synthesise(&self, spectrogram: &Spectrogram, samples: usize) -> Vec<f32> {
        let mut signal = Vec::with_capacity(samples);
        let mut synthesiser = self.synthesiser();
        synthesiser.push(spectrogram, &mut signal);
        synthesiser.finish(samples as u64, &mut signal);
        signal.resize(samples, 0.0);
        signal
    }

    /// Creates a synthesiser of one channel, in blocks of any number of frames.
    #[must_use]
    pub fn synthesiser(&self) -> Synthesiser {
        Synthesiser {
            stft: self.clone(),
            overlap: vec![0.0; self.lead()],
            skip: self.lead(),
            samples: 0,
            spectrum: self.inverse.make_input_vec(),
            output: self.inverse.make_output_vec(),
            scratch: self.inverse.make_scratch_vec(),
        }
    }

    /// Number of zeros before the first sample.
    fn lead(&self) -> usize {
        self.window() - self.hop
    }
}

impl fmt::Debug for Stft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stft")
            .field("sample_rate", &self.sample_rate)
            .field("window", &self.window())
            .field("hop", &self.hop)
            .finish_non_exhaustive()
    }
}

/// Transforms one channel to frames, block by block.
///
/// The frames are bit-identical to those of [`Stft::analyse`], for any division of the samples into blocks. Frame `t`
/// is complete with sample `(t + 1) hop - 1`.
#[derive(Clone)]
pub struct Analyser {
    stft: Stft,
    /// Samples that later frames overlap, including the zeros before the first.
    waiting: Vec<f32>,
    /// Whether no sample was pushed yet.
    is_empty: bool,
    windowed: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl fmt::Debug for Analyser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analyser").field("stft", &self.stft).finish_non_exhaustive()
    }
}

impl Analyser {
    /// Takes the next samples and appends the frames that they complete.
    ///
    /// # Panics
    /// If `frames` does not have the bins of the transform.
    pub fn push(&mut self, samples: &[f32], frames: &mut Spectrogram) {
        assert_eq!(frames.bins(), self.stft.bins(), "bins of the spectrogram and of the transform");
        self.is_empty &= samples.is_empty();
        self.waiting.extend(samples);
        let (window, hop) = (self.stft.window(), self.stft.hop);
        let mut start = 0;
        while start + window <= self.waiting.len() {
            let samples = &self.waiting[start..start + window];
            for ((y, x), w) in self.windowed.iter_mut().zip(samples).zip(&*self.stft.analysis_window) {
                *y = x * w;
            }
            let transformed = self.stft.forward.process_with_scratch(
                &mut self.windowed,
                &mut self.spectrum,
                &mut self.scratch,
            );
            debug_assert!(transformed.is_ok(), "all lengths come from the plan");
            frames.values.extend(&self.spectrum);
            start += hop;
        }
        self.waiting.drain(..start);
    }

    /// Appends the frames that overlap the last samples.
    pub fn finish(mut self, frames: &mut Spectrogram) {
        if !self.is_empty {
            // A frame starts at every hop of the waiting samples.
            let missing = self.waiting.len().div_ceil(self.stft.hop);
            let end = (missing - 1) * self.stft.hop + self.stft.window();
            let silence = vec![0.0; end - self.waiting.len()];
            self.push(&silence, frames);
        }
    }
}

/// Transforms frames to samples, block by block.
///
/// The samples are bit-identical to those of [`Stft::synthesise`], for any division of the frames into blocks. All
/// samples before `(t + 1) hop - (window - hop)` are complete with frame `t`.
pub struct Synthesiser {
    stft: Stft,
    /// Contribution of the frames so far to later samples.
    overlap: Vec<f32>,
    /// Remaining samples before the first of the signal.
    skip: usize,
    samples: u64,
    spectrum: Vec<Complex<f32>>,
    output: Vec<f32>,
    scratch: Vec<Complex<f32>>,
}

impl fmt::Debug for Synthesiser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Synthesiser").field("stft", &self.stft).finish_non_exhaustive()
    }
}

impl Synthesiser {
    /// Takes the next frames and appends the samples that they complete.
    ///
    /// # Panics
    /// If the frames do not have the bins of the transform.
    pub fn push(&mut self, frames: &Spectrogram, samples: &mut Vec<f32>) {
        assert_eq!(frames.bins(), self.stft.bins(), "bins of the spectrogram and of the transform");
        let (window, hop) = (self.stft.window(), self.stft.hop);
        for t in 0..frames.frames() {
            self.spectrum.copy_from_slice(frames.frame(t));
            self.spectrum[0].im = 0.0;
            self.spectrum[window / 2].im = 0.0;
            let transformed = self.stft.inverse.process_with_scratch(
                &mut self.spectrum,
                &mut self.output,
                &mut self.scratch,
            );
            debug_assert!(transformed.is_ok(), "all lengths come from the plan");
            self.overlap.resize(window, 0.0);
            for ((y, x), w) in self.overlap.iter_mut().zip(&self.output).zip(&*self.stft.synthesis_window) {
                *y += x * w;
            }
            let skip = self.skip.min(hop);
            self.skip -= skip;
            self.samples += (hop - skip) as u64;
            samples.extend(&self.overlap[skip..hop]);
            self.overlap.drain(..hop);
        }
    }

    /// Ends the signal after `length` samples: appends the missing ones, or removes the surplus of the last frame from the end
    /// of `samples`.
    pub fn finish(self, length: u64, samples: &mut Vec<f32>) {
        if self.samples > length {
            let surplus = usize::try_from(self.samples - length).unwrap_or(usize::MAX);
            samples.truncate(samples.len().saturating_sub(surplus));
        } else {
            let rest = self.overlap.iter().skip(self.skip);
            samples.extend(rest.take((length - self.samples) as usize));
        }
    }
}

/// A complex spectrogram, `bins x frames`, the bins of a frame contiguous.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrogram {
    bins: usize,
    values: Vec<Complex<f32>>,
}

impl Spectrogram {
    /// A silent spectrogram of `bins x frames`.
    ///
    /// # Panics
    /// If there are no bins, or more values than memory can hold.
    #[must_use]
    pub fn new(bins: usize, frames: usize) -> Self {
        Self::from_values(bins, vec![Complex::default(); bins.saturating_mul(frames)])
    }

    /// A spectrogram from its values, frame after frame.
    ///
    /// # Panics
    /// If there are no bins, or `values` is not a whole number of frames.
    #[must_use]
    pub fn from_values(bins: usize, values: Vec<Complex<f32>>) -> Self {
        assert!(bins > 0 && values.len().is_multiple_of(bins), "a whole number of frames");
        Self { bins, values }
    }

    /// Removes and returns the first `frames` frames.
    ///
    /// # Panics
    /// If there are fewer frames.
    #[must_use]
    pub fn split_front(&mut self, frames: usize) -> Self {
        let rest = self.values.split_off(frames * self.bins);
        Self { bins: self.bins, values: std::mem::replace(&mut self.values, rest) }
    }

    /// Multiplies every value by its gain (bins x frames).
    pub(crate) fn apply_gain(&mut self, gain: &[f32]) {
        self.values.iter_mut().zip(gain).for_each(|(value, gain)| *value *= gain);
    }

    /// Appends the frames of another spectrogram with an equal number of bins.
    pub(crate) fn append(&mut self, frames: &Self) {
        self.values.extend_from_slice(&frames.values);
    }

    /// Number of frequency bins.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.values.len() / self.bins
    }

    /// The bins of frame `t`.
    ///
    /// # Panics
    /// If there are no more than `t` frames.
    #[must_use]
    pub fn frame(&self, t: usize) -> &[Complex<f32>] {
        &self.values[t * self.bins..(t + 1) * self.bins]
    }

    /// All values, frame after frame.
    #[must_use]
    pub fn as_slice(&self) -> &[Complex<f32>] {
        &self.values
    }

    /// All values, frame after frame, mutable.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [Complex<f32>] {
        &mut self.values
    }
}
