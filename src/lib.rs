//! A Bayesian speech denoiser: samples in, voice out.
//!
//! The recording's spectrum is the sum of two alpha-stable matrix factorisations: speech, with a [`Dictionary`]
//! learned from clean speech, and noise, learned from the recording itself. A [`Denoiser`] samples their posterior
//! and filters the recording by its mean gain. A [`DenoiseStream`] does so block by block, in memory that does not
//! grow; a [`Session`] besides mixes the result with the recording, keeps what was taken out, and counts. A
//! [`LiveDenoiser`] is for calls: it goes sample by sample, 16 ms late. All that takes long has a twin whose name ends in
//! `_with` and takes a [`ProgressCallback`], which is told how far it is and may end it.
//!
//! ```
//! use alphamf::signal::SampleFormat;
//! use alphamf::{Denoiser, Dictionary, Settings, Signal};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hum: Vec<f32> = (0..8_000).map(|n| 0.1 * (n as f32 * 0.04).sin()).collect();
//! let noisy = Signal::new(8_000, SampleFormat::Float32, vec![hum])?;
//! let denoiser = Denoiser::new(Dictionary::built_in()?, Settings::fast())?;
//! let denoised = denoiser.denoise(&noisy)?;
//! assert_eq!(denoised.signal.len(), noisy.len());
//! # Ok(())
//! # }
//! ```
//!
//! The feature `rayon`, on by default, works on several threads; the output is the same bit for bit without.
//!
//! Audio files are read and written by `alphamf-files`, results are judged by `alphamf-eval`, and the samplers
//! ([`samplers`]) are a library of their own, `alphamf-samplers`.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod denoiser;
mod inference;
mod kernels;
pub mod learning;
pub mod model;
mod options;
mod parallel;
pub mod presence;
mod range;
pub mod repair;
pub mod stable;
mod tensor_file;
pub mod transform;
mod wiener;

/// The examples of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of the library's guide, compiled.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct LibraryGuide;

/// What the benchmarks look into; no part of the interface.
#[doc(hidden)]
pub mod internals {
    pub use crate::model::marginal::MarginalTable;
    pub use crate::model::mixture::{Factor, ImpulseVariables, Mixture};
    pub use crate::model::published::ImpulseStep;
    pub use crate::model::workspace::Workspace;
}

pub use alphamf_samplers::{self as samplers, random};
pub use alphamf_signal as signal;
pub use denoiser::{DenoiseError, DenoiseStream, Denoised, Denoiser, LiveDenoiser, Session, Settings};
pub use model::Dictionary;
pub use signal::progress::{Cancelled, ProgressCallback};
pub use signal::{ErrorKind, Signal};
