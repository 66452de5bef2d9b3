//! Audio files of the alphamf speech denoiser: nearly every format in, WAV and FLAC out.
//!
//! [`read()`] and [`write()`] move a whole [`Signal`](alphamf_signal::Signal) from and to a file; [`Reader`] and
//! [`Writer`] do it block by block, in memory that does not grow with the recording, and from and to streams.
//! An output file appears under its name only when it is complete ([`output`]).
//!
//! ```no_run
//! use alphamf::{Denoiser, Dictionary, Settings};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let noisy = alphamf_files::read("interview.mp3")?;
//! let denoiser = Denoiser::new(Dictionary::built_in()?, Settings::default())?;
//! let denoised = denoiser.denoise(&noisy)?;
//! alphamf_files::write("voice.flac", &denoised.signal)?;
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod aiff;
mod caf;
mod chain;
mod compressed;
mod declared;
mod error;
mod flac;
mod folder;
mod losses;
mod matroska;
mod metadata;
mod mp4;
mod mpeg;
mod ogg;
mod opus;
pub mod output;
mod pcm;
mod raw;
mod reader;
mod sample;
mod source;
mod spec;
mod wav;
mod writer;

pub use error::{Error, ReadError, WriteError};
pub use folder::{FolderContents, UnreadableFolder};
pub use losses::Losses;
pub use metadata::Metadata;
pub use raw::{InvalidRawFormat, RawFormat};
pub use reader::{EXTENSIONS, MAX_HELD_BYTES, Reader, has_extension, read, read_with_losses};
pub use spec::{Container, Dither, OutputSpec};
pub use writer::{Writer, check_distinct, encode, write};
