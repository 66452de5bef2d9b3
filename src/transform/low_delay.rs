//! Low-delay transform: long windows for analysis, short windows at their end for synthesis.

use super::stft::window_samples;
use crate::range::{SettingsError, within};
use alphamf_fourier::{ComplexToReal, RealToComplex};
use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::Arc;

/// The short-time Fourier transform of a low-overlap pair of windows, one frame at a time and without allocation.
///
/// Frames have the length and bins of those of [`Stft`](super::Stft), but the output is synthesised only from the last
/// `delay` samples of each. The analysis window falls as a cosine over the last half of the delay and rises as a sine
/// before. The synthesis window makes the product with the end of the analysis window a Hann window as long as the
/// delay, so unmodified frames reconstruct the signal. A delay of up to half a window is two hops; a longer one is
/// three or four, as hops longer than a quarter of a window are too coarse for speech (Mauler and Martin, "A low delay,
/// variable resolution, perfect reconstruction spectral analysis-synthesis system for speech enhancement", 2007; Wood
/// and others 2019, arXiv 1904.03130; Wang and others 2022, arXiv 2204.09911).
#[derive(Clone)]
pub(crate) struct LowDelayStft {
    sample_rate: u32,
    hop: usize,
    /// Hops of delay: 2 to 4.
    overlap: usize,
    analysis_window: Arc<[f32]>,
    /// Window of the last `overlap` hops, divided by the scale of the inverse FFT.
    synthesis_window: Arc<[f32]>,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
}

impl LowDelayStft {
    /// Creates a transform for a sample rate in Hz, a window length in s, and a delay in s of at most the window
    /// length.
    ///
    /// # Errors
    /// [`SettingsError`] if the window is outside [`WINDOW_RANGE_SECONDS`](super::WINDOW_RANGE_SECONDS), or the delay
    /// is longer than the window or shorter than two samples.
    pub(crate) fn new(
        sample_rate: u32,
        window_seconds: f64,
        delay_seconds: f64,
    ) -> Result<Self, SettingsError> {
        let rate = f64::from(sample_rate);
        let window = window_samples(sample_rate, window_seconds)?;
        within("latency_seconds", delay_seconds, 2.0 / rate..=window_seconds)?;
        let quarters = 4.0 * delay_seconds / window_seconds;
        // Rounding must not turn three quarters into four.
        let overlap = ((quarters - 1e-9).ceil() as usize).clamp(2, 4);
        let hop = ((rate * delay_seconds / overlap as f64).round() as usize).min(window / overlap);
        let delay = overlap * hop;
        let fall = delay / 2;
        let rise = window - fall;
        let quarter = |n: usize, length: usize| FRAC_PI_2 * (n as f64 + 0.5) / length as f64;
        let analysis: Vec<f64> = (0..window)
            .map(|n| if n < rise { libm::sin(quarter(n, rise)) } else { libm::cos(quarter(n - rise, fall)) })
            .collect();
        // The sum of the overlapping Hann windows.
        let sum = overlap as f64 / 2.0;
        let synthesis = analysis[window - delay..].iter().enumerate().map(|(n, analysis)| {
            let sine = libm::sin(PI * (n as f64 + 0.5) / delay as f64);
            (sine * sine / (sum * analysis * window as f64)) as f32
        });
        Ok(Self {
            sample_rate,
            hop,
            overlap,
            synthesis_window: synthesis.collect(),
            analysis_window: analysis.iter().map(|&w| w as f32).collect(),
            forward: alphamf_fourier::forward(window),
            inverse: alphamf_fourier::inverse(window),
        })
    }

    /// Window length in samples, as of [`Stft`](super::Stft).
    pub(crate) fn window(&self) -> usize {
        self.analysis_window.len()
    }

    /// Samples from one frame to the next.
    pub(crate) fn hop(&self) -> usize {
        self.hop
    }

    /// Delay of the output, samples.
    pub(crate) fn delay(&self) -> usize {
        self.overlap * self.hop
    }

    /// Number of frequency bins, from 0 Hz to half the sample rate.
    pub(crate) fn bins(&self) -> usize {
        self.window() / 2 + 1
    }

    /// Distance between frames, s.
    pub(crate) fn frame_seconds(&self) -> f64 {
        self.hop as f64 / f64::from(self.sample_rate)
    }

    /// Power per bin of white noise with variance 1: the sum of the squared analysis window.
    pub(crate) fn white_power(&self) -> f32 {
        self.analysis_window.iter().map(|w| w * w).sum()
    }

    /// Creates the state of one channel, before its first sample.
    pub(crate) fn channel(&self) -> LowDelayChannel {
        LowDelayChannel {
            stft: self.clone(),
            recent: vec![0.0; self.window()],
            begun: vec![0.0; self.delay() - self.hop],
            time: self.forward.make_input_vec(),
            spectrum: self.forward.make_output_vec(),
            forward_scratch: self.forward.make_scratch_vec(),
            inverse_scratch: self.inverse.make_scratch_vec(),
        }
    }
}

/// State of one channel in a [`LowDelayStft`]: call [`analyse`](Self::analyse), then [`synthesise`](Self::synthesise),
/// for each hop.
#[derive(Clone)]
pub(crate) struct LowDelayChannel {
    stft: LowDelayStft,
    /// The last window of samples.
    recent: Vec<f32>,
    /// Contribution of the frames so far to the next hops.
    begun: Vec<f32>,
    time: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    forward_scratch: Vec<Complex<f32>>,
    inverse_scratch: Vec<Complex<f32>>,
}

impl LowDelayChannel {
    /// Takes the next hop of samples (padded with zeros or truncated) and returns the bins of the completed frame.
    pub(crate) fn analyse(&mut self, hop: &[f32]) -> &[Complex<f32>] {
        let kept = self.stft.window() - self.stft.hop;
        self.recent.copy_within(self.stft.hop.., 0);
        let (taken, rest) = self.recent[kept..].split_at_mut(hop.len().min(self.stft.hop));
        taken.copy_from_slice(&hop[..taken.len()]);
        rest.fill(0.0);
        for ((y, x), w) in self.time.iter_mut().zip(&self.recent).zip(&*self.stft.analysis_window) {
            *y = x * w;
        }
        let transformed = self.stft.forward.process_with_scratch(
            &mut self.time,
            &mut self.spectrum,
            &mut self.forward_scratch,
        );
        debug_assert!(transformed.is_ok(), "all lengths come from the plan");
        &self.spectrum
    }

    /// Applies a gain to each bin of the last frame and writes the completed hop of samples, the oldest of the delay.
    pub(crate) fn synthesise(&mut self, gain: &[f32], hop: &mut [f32]) {
        self.spectrum.iter_mut().zip(gain).for_each(|(bin, gain)| *bin *= gain);
        // The inverse requires real values at 0 Hz and half the sample rate.
        self.spectrum[0].im = 0.0;
        let last = self.spectrum.len() - 1;
        self.spectrum[last].im = 0.0;
        let transformed = self.stft.inverse.process_with_scratch(
            &mut self.spectrum,
            &mut self.time,
            &mut self.inverse_scratch,
        );
        debug_assert!(transformed.is_ok(), "all lengths come from the plan");
        let length = self.stft.hop;
        let end = &mut self.time[self.stft.window() - self.stft.delay()..];
        end.iter_mut().zip(&*self.stft.synthesis_window).for_each(|(x, w)| *x *= w);
        let (complete, begun) = end.split_at(length);
        let before = self.begun.iter().zip(complete);
        hop.iter_mut().zip(before).for_each(|(y, (before, x))| *y = before + x);
        self.begun.copy_within(length.., 0);
        let earlier = self.begun.len() - length;
        let (continued, last) = begun.split_at(earlier);
        self.begun[..earlier].iter_mut().zip(continued).for_each(|(y, x)| *y += x);
        self.begun[earlier..].copy_from_slice(last);
    }

    /// Subtracts `level` from the last `samples` samples.
    pub(crate) fn lower(&mut self, samples: usize, level: f32) {
        let kept = self.recent.len().saturating_sub(samples);
        self.recent[kept..].iter_mut().for_each(|x| *x -= level);
    }

    /// Returns to the initial state.
    pub(crate) fn reset(&mut self) {
        self.recent.fill(0.0);
        self.begun.fill(0.0);
        self.spectrum.fill(Complex::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedTree;
    use crate::transform::{DEFAULT_WINDOW_SECONDS, Stft};
    use rand::RngExt;

    #[test]
    fn unmodified_frames_reconstruct_the_signal_after_the_delay() {
        for rate in [8_000, 11_025, 16_000, 44_100, 48_000, 192_000] {
            for (delay, hops) in
                [(0.004, 2), (0.008, 2), (0.016, 2), (0.032, 2), (0.04, 3), (0.048, 3), (0.064, 4)]
            {
                let stft = LowDelayStft::new(rate, DEFAULT_WINDOW_SECONDS, delay).unwrap();
                assert_eq!(stft.delay(), hops * stft.hop());
                let most = if delay < DEFAULT_WINDOW_SECONDS { 0.5 } else { 1.0 };
                assert!((stft.hop() as f64 - f64::from(rate) * delay / hops as f64).abs() <= most);
                // Each call writes the input delayed by the delay minus one hop.
                let late = stft.delay() - stft.hop();
                let mut random = SeedTree::new(1).rng(0);
                let signal: Vec<f32> = (0..40 * stft.hop()).map(|_| random.random_range(-1.0..1.0)).collect();
                let (mut channel, ones) = (stft.channel(), vec![1.0; stft.bins()]);
                let mut again = vec![0.0; signal.len()];
                for (hop, out) in signal.chunks_exact(stft.hop()).zip(again.chunks_exact_mut(stft.hop())) {
                    assert_eq!(channel.analyse(hop).len(), stft.bins());
                    channel.synthesise(&ones, out);
                }
                let error = signal.iter().zip(&again[late..]).map(|(a, b)| (a - b).abs());
                let error = error.fold(0.0, f32::max);
                assert!(error < 2e-6, "{rate} Hz, {delay} s: {error}");
                assert!(again[..late].iter().all(|x| x.abs() < 2e-6));
            }
        }
    }

    #[test]
    fn bins_are_those_of_the_long_transform_and_white_noise_has_its_power() {
        for rate in [8_000, 11_025, 44_100] {
            let long = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap();
            let stft = LowDelayStft::new(rate, DEFAULT_WINDOW_SECONDS, 0.016).unwrap();
            assert_eq!((stft.bins(), stft.window()), (long.bins(), long.window()));
            let (mut random, mut channel) = (SeedTree::new(2).rng(0), stft.channel());
            let (mut power, mut count) = (0.0, 0);
            for t in 0..600 {
                let hop: Vec<f32> = (0..stft.hop()).map(|_| random.random_range(-1.0..1.0)).collect();
                let frame = channel.analyse(&hop);
                if t >= 20 {
                    power += frame[3..stft.bins() - 3].iter().map(|x| x.norm_sqr()).sum::<f32>();
                    count += stft.bins() - 6;
                }
            }
            let ratio = power / count as f32 / (stft.white_power() / 3.0);
            assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
        }
    }

    #[test]
    fn windows_and_delays_out_of_range_are_refused() {
        for (window, delay) in
            [(0.0, 0.016), (f64::NAN, 0.016), (0.064, 0.0), (0.064, 0.065), (0.064, f64::NAN)]
        {
            assert!(LowDelayStft::new(16_000, window, delay).is_err(), "{window} {delay}");
        }
    }
}
