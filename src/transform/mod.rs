//! Between samples and frames: the short-time Fourier transform.
//!
//! [`Stft`] turns one channel into a [`Spectrogram`] and back at once; [`Analyser`] and [`Synthesiser`] do it as
//! the samples come.

mod low_delay;
mod stft;

pub(crate) use low_delay::{LowDelayChannel, LowDelayStft};
pub use stft::{
    Analyser, DEFAULT_WINDOW_SECONDS, FrameGrid, InvalidWindow, Spectrogram, Stft, Synthesiser,
    WINDOW_RANGE_SECONDS,
};
