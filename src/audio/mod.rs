//! Recordings: the samples themselves, audio files, and the short-time Fourier transform.
//!
//! A recording is a [`Signal`]: one vector of samples per channel, full scale being ±1, together
//! with its sample rate and the [`SampleFormat`] it was stored in. [`read`] and [`write`] move it
//! from and to files; [`Stft`] turns one channel into a [`Spectrogram`] and back.

mod error;
mod signal;
mod stft;
mod wav;

pub use error::{Error, InvalidSignal, ReadError, WriteError};
pub use signal::{SAMPLE_RATES, SampleFormat, Signal};
pub use stft::{DEFAULT_WINDOW_SECONDS, InvalidWindow, Spectrogram, Stft, WINDOW_SECONDS};
pub use wav::{check_distinct, read, write};
