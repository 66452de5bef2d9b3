//! Recordings: the samples themselves, audio files, and the short-time Fourier transform.
//!
//! A recording is a [`Signal`]: one vector of samples per channel, full scale being ±1, together
//! with its sample rate and the [`SampleFormat`] it was stored in. [`read()`] and [`write()`] move it
//! from and to files at once, [`Reader`] and [`Writer`] block by block; [`Stft`] turns one channel into a [`Spectrogram`] and back.

mod compressed;
mod error;
mod flac;
mod mp4;
mod pcm;
mod reader;
mod signal;
mod stft;
mod wav;
mod writer;

pub use error::{Error, InvalidSignal, ReadError, WriteError};
pub use pcm::{InvalidRawFormat, RawFormat};
pub use reader::{EXTENSIONS, Reader, has_extension, read};
pub use signal::{MOST_CHANNELS, SAMPLE_RATES, SampleFormat, Signal};
pub use stft::{
    Analyser, DEFAULT_WINDOW_SECONDS, InvalidWindow, Spectrogram, Stft, Synthesiser, WINDOW_SECONDS,
};
pub use writer::{Container, Layout, Writer, check_distinct, write};

/// The voice has nothing below this, Hz; many a clean recording has rumble there.
pub(crate) const LOWEST_VOICE_HERTZ: f64 = 65.0;
