//! Dictionaries of speech spectra and their file format.
//!
//! A dictionary is a [safetensors](https://docs.rs/safetensors) file with one tensor, `spectra`
//! (rank x bins, row-major, f32: one spectrum after the other), and its settings as metadata.

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The version of the file format that this crate reads and writes.
pub const FORMAT_VERSION: u32 = 1;
const FORMAT_NAME: &str = "alphamf-dictionary";
const TENSOR: &str = "spectra";

/// Dispersion spectra of speech, learned from clean recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct Dictionary {
    header: Header,
    spectra: Vec<f32>,
}

/// What a dictionary was made for and from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Characteristic exponent of the speech model, in (0, 2].
    pub alpha: f64,
    /// Sample rate of the training speech, Hz. The dictionary covers 0 Hz to half of it.
    pub sample_rate: u32,
    /// Length of the analysis window, s. Its inverse is the spacing of the bins.
    pub window_seconds: f64,
    /// Number of spectra.
    pub rank: usize,
    /// Training iterations.
    pub iterations: usize,
    /// Seed of the training.
    pub seed: u64,
    /// Number of training files.
    pub files: usize,
    /// Speech that was learned from, silence dropped, s.
    pub seconds: f64,
}

/// Why some bytes are not a dictionary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DictionaryError {
    /// The bytes are not a whole safetensors file.
    #[error("not a dictionary, or a truncated one: {0}")]
    Container(String),
    /// A safetensors file of something else.
    #[error("not a speech dictionary: its metadata lacks a valid '{0}'")]
    Metadata(&'static str),
    /// Written by another version of the format.
    #[error("dictionary format version {found}; this program reads version {FORMAT_VERSION}")]
    Version {
        /// The file's version.
        found: String,
    },
    /// The tensor's shape or type disagrees with the metadata.
    #[error("the spectra have shape {found:?} ({dtype}); expected [{rank}, {bins}] (F32)")]
    Shape {
        /// Shape in the file.
        found: Vec<usize>,
        /// Element type in the file.
        dtype: String,
        /// Rank by the metadata.
        rank: usize,
        /// Bins by the metadata.
        bins: usize,
    },
    /// An entry that no dispersion can have.
    #[error("spectrum {spectrum}, bin {bin} is {value}; entries are positive and finite")]
    Entry {
        /// Index of the spectrum.
        spectrum: usize,
        /// Index of the bin.
        bin: usize,
        /// The entry.
        value: f32,
    },
}

impl Header {
    /// Number of frequency bins that the sample rate and the window give.
    #[must_use]
    pub fn bins(&self) -> usize {
        crate::audio::Stft::new(self.sample_rate, self.window_seconds).map_or(0, |stft| stft.bins())
    }

    fn validate(&self) -> Result<(), DictionaryError> {
        let usable = |value: f64, low: f64, high: f64| value.is_finite() && value > low && value <= high;
        if !usable(self.alpha, 0.0, 2.0) {
            return Err(DictionaryError::Metadata("alpha"));
        }
        if !crate::audio::SAMPLE_RATES.contains(&self.sample_rate) {
            return Err(DictionaryError::Metadata("sample_rate"));
        }
        if !usable(self.window_seconds, 1e-3, 1.0) {
            return Err(DictionaryError::Metadata("window_seconds"));
        }
        if self.rank == 0 {
            return Err(DictionaryError::Metadata("rank"));
        }
        Ok(())
    }
}

/// Puts the keys of a safetensors header in order, which its writer does not: equal dictionaries are to
/// be equal files.
fn sort_header(bytes: &mut [u8]) {
    let Some((length, rest)) = bytes.split_first_chunk_mut::<8>() else { return };
    let length = u64::from_le_bytes(*length) as usize;
    let Some(header) = rest.get_mut(..length) else { return };
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(header) else { return };
    let sorted = value.to_string();
    if sorted.len() <= length {
        // The container pads its header by spaces.
        header.fill(b' ');
        header[..sorted.len()].copy_from_slice(sorted.as_bytes());
    }
}

impl Dictionary {
    /// A dictionary of `spectra` (bins x rank, column-major).
    ///
    /// # Errors
    /// If the header has values out of range, its shape is another, or an entry is not positive and finite.
    pub fn new(header: Header, spectra: Vec<f32>) -> Result<Self, DictionaryError> {
        header.validate()?;
        let bins = header.bins();
        if spectra.len() != header.rank * bins {
            return Err(DictionaryError::Shape {
                found: vec![spectra.len() / bins, bins],
                dtype: "F32".into(),
                rank: header.rank,
                bins,
            });
        }
        if let Some(at) = spectra.iter().position(|x| !x.is_finite() || *x <= 0.0) {
            return Err(DictionaryError::Entry { spectrum: at / bins, bin: at % bins, value: spectra[at] });
        }
        Ok(Self { header, spectra })
    }

    /// The dictionary that comes with this crate: `models/speech-16k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn shipped() -> Result<Self, DictionaryError> {
        Self::from_bytes(include_bytes!("../../models/speech-16k.safetensors"))
    }

    /// What the dictionary was made for and from.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The spectra, bins x rank, column-major.
    #[must_use]
    pub fn spectra(&self) -> &[f32] {
        &self.spectra
    }

    /// Reads a dictionary from the bytes of its file.
    ///
    /// # Errors
    /// See [`DictionaryError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DictionaryError> {
        let container = |error: safetensors::SafeTensorError| DictionaryError::Container(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(container)?;
        let metadata = metadata.metadata().clone().unwrap_or_default();
        if metadata.get("format").map(String::as_str) != Some(FORMAT_NAME) {
            return Err(DictionaryError::Metadata("format"));
        }
        let version = metadata.get("version").cloned().unwrap_or_default();
        if version != FORMAT_VERSION.to_string() {
            return Err(DictionaryError::Version { found: version });
        }
        let header: Header = metadata
            .get("header")
            .and_then(|text| serde_json::from_str(text).ok())
            .ok_or(DictionaryError::Metadata("header"))?;
        header.validate()?;
        let tensors = SafeTensors::deserialize(bytes).map_err(container)?;
        let tensor = tensors.tensor(TENSOR).map_err(container)?;
        let (rank, bins) = (header.rank, header.bins());
        if tensor.dtype() != Dtype::F32 || tensor.shape() != [rank, bins] {
            let (found, dtype) = (tensor.shape().to_vec(), format!("{:?}", tensor.dtype()));
            return Err(DictionaryError::Shape { found, dtype, rank, bins });
        }
        let (entries, _) = tensor.data().as_chunks::<4>();
        Self::new(header, entries.iter().map(|entry| f32::from_le_bytes(*entry)).collect())
    }

    /// The bytes of the dictionary's file.
    ///
    /// # Errors
    /// Only if serialising fails, which a valid dictionary does not.
    pub fn to_bytes(&self) -> Result<Vec<u8>, DictionaryError> {
        let container = |error: safetensors::SafeTensorError| DictionaryError::Container(error.to_string());
        let entries: Vec<u8> = self.spectra.iter().flat_map(|x| x.to_le_bytes()).collect();
        let shape = vec![self.header.rank, self.header.bins()];
        let tensor = TensorView::new(Dtype::F32, shape, &entries).map_err(container)?;
        let header = serde_json::to_string(&self.header)
            .map_err(|error| DictionaryError::Container(error.to_string()))?;
        let metadata = HashMap::from([
            ("format".to_owned(), FORMAT_NAME.to_owned()),
            ("version".to_owned(), FORMAT_VERSION.to_string()),
            ("header".to_owned(), header),
        ]);
        let mut bytes = safetensors::serialize([(TENSOR, tensor)], Some(metadata)).map_err(container)?;
        sort_header(&mut bytes);
        Ok(bytes)
    }

    /// The spectra for a recording with `bins` frequency bins of the same spacing: rows above the
    /// recording's band are left out; rows above the dictionary's band repeat its highest row, as a
    /// start for learning them from the recording.
    #[must_use]
    pub fn rows(&self, bins: usize) -> Vec<f32> {
        self.spectra
            .chunks_exact(self.header.bins())
            .flat_map(|spectrum| {
                let last = spectrum[spectrum.len() - 1];
                spectrum.iter().copied().chain(std::iter::repeat(last)).take(bins)
            })
            .collect()
    }
}
