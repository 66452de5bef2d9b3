//! The short-time Fourier transform.
//!
//! [`Stft`] transforms one channel to a [`Spectrogram`] and back; [`Analyser`] and [`Synthesiser`] do so in blocks.

mod low_delay;
mod stft;

pub(crate) use low_delay::{LowDelayChannel, LowDelayStft};
use num_complex::Complex;
pub use stft::{
    Analyser, DEFAULT_WINDOW_SECONDS, FrameGrid, Spectrogram, Stft, Synthesiser, WINDOW_RANGE_SECONDS,
};
pub(crate) use stft::{hann, window_samples};

/// Computes the power of a bin, in double precision, as it may exceed the range of `f32`.
pub(crate) fn bin_power(value: &Complex<f32>) -> f64 {
    f64::from(value.re).powi(2) + f64::from(value.im).powi(2)
}
