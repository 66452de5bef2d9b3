//! The short-time Fourier transform.
//!
//! [`Stft`] transforms one channel to a [`Spectrogram`] and back; [`Analyser`] and [`Synthesiser`] do so in blocks.

mod low_delay;
mod stft;

pub(crate) use low_delay::{LowDelayChannel, LowDelayStft};
pub use stft::{
    Analyser, DEFAULT_WINDOW_SECONDS, FrameGrid, InvalidWindow, Spectrogram, Stft, Synthesiser,
    WINDOW_RANGE_SECONDS,
};
