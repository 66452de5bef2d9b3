//! Dictionaries of speech spectra and their file format.
//!
//! A dictionary is a [safetensors](https://docs.rs/safetensors) file with a tensor `spectra`
//! (rank x bins, row-major, f32: one spectrum after the other), one more, `continuation` (rank x knots), if it is known how
//! they go on above, and its settings as metadata.

use crate::stable::ALPHA_RANGE;
use crate::tensor_file::{self, Format, TensorFileError};
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The version of the file format that this crate reads and writes.
pub const FORMAT_VERSION: u32 = 1;
const FORMAT: Format = Format { name: "alphamf-dictionary", version: FORMAT_VERSION };
const TENSOR: &str = "spectra";
const CONTINUATION: &str = "continuation";
/// Up to 192 kHz of the highest sample rate that is read, and as much again.
const MOST_KNOTS: usize = 1_000;
const RATIOS: RangeInclusive<f32> = 1e-9..=1e9;
/// With larger entries, dispersions could leave the range of single precision.
const LARGEST_ENTRY: f32 = 1e9;

/// Dispersion spectra of speech, learned from clean recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct Dictionary {
    header: DictionaryHeader,
    spectra: Vec<f32>,
    /// Knots x rank; empty if there is none.
    continuation: Vec<f32>,
}

/// What a dictionary was made for and from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DictionaryHeader {
    /// Characteristic exponent of the speech model, 0.2 to 2.
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
    /// What is known of how the spectra go on above the dictionary's band.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ContinuationHeader>,
}

/// What the continuation of a dictionary's spectra was made from: see [`Dictionary::continuation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContinuationHeader {
    /// Number of knots, 1 to 1,000.
    pub knots: usize,
    /// Number of files of speech of the whole band.
    pub files: usize,
    /// Speech that was learned from, s.
    pub seconds: f64,
}

/// Why some bytes are not a dictionary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DictionaryError {
    /// The bytes are not a whole safetensors file.
    #[error("not a dictionary, or a truncated one: {0}")]
    TensorFile(String),
    /// A safetensors file of something else.
    #[error("not a speech dictionary: its metadata lacks a valid '{0}'")]
    Metadata(&'static str),
    /// Written by another version of the format.
    #[error("dictionary format version {found}; this program reads version {FORMAT_VERSION}")]
    Version {
        /// The file's version.
        found: String,
    },
    /// A tensor's shape or type disagrees with the metadata.
    #[error("the tensor '{tensor}' has shape {found:?} ({dtype}); expected [{rank}, {columns}] (F32)")]
    Shape {
        /// The tensor's name.
        tensor: &'static str,
        /// Shape in the file.
        found: Vec<usize>,
        /// Element type in the file.
        dtype: String,
        /// Rank by the metadata.
        rank: usize,
        /// Bins or knots by the metadata.
        columns: usize,
    },
    /// An entry that no dispersion can have.
    #[error("spectrum {spectrum}, bin {bin} is {value}; entries are positive and {LARGEST_ENTRY:e} at most")]
    Entry {
        /// Index of the spectrum.
        spectrum: usize,
        /// Index of the bin.
        bin: usize,
        /// The entry.
        value: f32,
    },
    /// A ratio that two dispersions cannot have.
    #[error("knot {knot} of spectrum {spectrum} is {value} times the one below; ratios are 1e-9 to 1e9")]
    Ratio {
        /// Index of the spectrum.
        spectrum: usize,
        /// Index of the knot.
        knot: usize,
        /// The ratio.
        value: f32,
    },
}

impl DictionaryHeader {
    /// Number of frequency bins that the sample rate and the window give.
    #[must_use]
    pub fn bins(&self) -> usize {
        crate::transform::Stft::new(self.sample_rate, self.window_seconds).map_or(0, |stft| stft.bins())
    }

    fn validate(&self) -> Result<(), DictionaryError> {
        if !ALPHA_RANGE.contains(&self.alpha) {
            return Err(DictionaryError::Metadata("alpha"));
        }
        if !crate::signal::SAMPLE_RATE_RANGE.contains(&self.sample_rate) {
            return Err(DictionaryError::Metadata("sample_rate"));
        }
        if !crate::transform::WINDOW_RANGE_SECONDS.contains(&self.window_seconds) {
            return Err(DictionaryError::Metadata("window_seconds"));
        }
        if self.rank == 0 {
            return Err(DictionaryError::Metadata("rank"));
        }
        if !(self.seconds.is_finite() && self.seconds >= 0.0) {
            return Err(DictionaryError::Metadata("seconds"));
        }
        if let Some(ContinuationHeader { knots, seconds, .. }) = self.continuation
            && !((1..=MOST_KNOTS).contains(&knots) && seconds.is_finite() && seconds >= 0.0)
        {
            return Err(DictionaryError::Metadata("continuation"));
        }
        Ok(())
    }
}

impl From<TensorFileError> for DictionaryError {
    fn from(error: TensorFileError) -> Self {
        match error {
            TensorFileError::Bytes(error) => Self::TensorFile(error),
            TensorFileError::Metadata(key) => Self::Metadata(key),
            TensorFileError::Version { found, .. } => Self::Version { found },
        }
    }
}

impl Dictionary {
    /// A dictionary of `spectra` (bins x rank, column-major), without a continuation: see [`Dictionary::continued`].
    ///
    /// # Errors
    /// If the header has values out of range, its shape is another, or an entry is not positive or beyond 1e9.
    pub fn new(header: DictionaryHeader, spectra: Vec<f32>) -> Result<Self, DictionaryError> {
        let header = DictionaryHeader { continuation: None, ..header };
        header.validate()?;
        let bins = header.bins();
        check_size(TENSOR, &spectra, header.rank, bins)?;
        if let Some(at) = spectra.iter().position(|x| !(*x > 0.0 && *x <= LARGEST_ENTRY)) {
            return Err(DictionaryError::Entry { spectrum: at / bins, bin: at % bins, value: spectra[at] });
        }
        Ok(Self { header, spectra, continuation: Vec::new() })
    }

    /// The same with what is known of how the spectra go on above its band: the dispersion at knots 500 Hz apart, the lowest
    /// at the first bin above the band, each as a ratio to the knot below it and the lowest to the mean of the 250 Hz below
    /// it (knots x rank, column-major).
    ///
    /// # Errors
    /// If the header has values out of range, its shape is another, or a ratio is not one of 1e-9 to 1e9.
    pub fn continued(
        mut self,
        header: ContinuationHeader,
        ratios: Vec<f32>,
    ) -> Result<Self, DictionaryError> {
        let knots = header.knots;
        self.header.continuation = Some(header);
        self.header.validate()?;
        check_size(CONTINUATION, &ratios, self.header.rank, knots)?;
        if let Some(at) = ratios.iter().position(|x| !RATIOS.contains(x)) {
            let value = ratios[at];
            return Err(DictionaryError::Ratio { spectrum: at / knots, knot: at % knots, value });
        }
        self.continuation = ratios;
        Ok(self)
    }

    /// The dictionary that comes with this crate: `models/speech-16k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn built_in() -> Result<Self, DictionaryError> {
        Self::from_bytes(include_bytes!("../../models/speech-16k.safetensors"))
    }

    /// What the dictionary was made for and from.
    #[must_use]
    pub fn header(&self) -> &DictionaryHeader {
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
        let (header, tensors): (DictionaryHeader, _) = tensor_file::read(bytes, &FORMAT)?;
        header.validate()?;
        let (rank, bins, continuation) = (header.rank, header.bins(), header.continuation.clone());
        let values = |name, columns| {
            let tensor = tensors.tensor(name).map_err(TensorFileError::from)?;
            if tensor.dtype() != Dtype::F32 || tensor.shape() != [rank, columns] {
                let (found, dtype) = (tensor.shape().to_vec(), format!("{:?}", tensor.dtype()));
                return Err(DictionaryError::Shape { tensor: name, found, dtype, rank, columns });
            }
            Ok(tensor_file::floats(&tensor).collect())
        };
        let dictionary = Self::new(header, values(TENSOR, bins)?)?;
        match continuation {
            Some(header) => {
                let ratios = values(CONTINUATION, header.knots)?;
                dictionary.continued(header, ratios)
            }
            None => Ok(dictionary),
        }
    }

    /// The bytes of the dictionary's file.
    ///
    /// # Errors
    /// Only if serialising fails, which a valid dictionary does not.
    pub fn to_bytes(&self) -> Result<Vec<u8>, DictionaryError> {
        let rank = self.header.rank;
        let mut tensors = vec![(TENSOR, vec![rank, self.header.bins()], &self.spectra[..])];
        if let Some(ContinuationHeader { knots, .. }) = self.header.continuation {
            tensors.push((CONTINUATION, vec![rank, knots], &self.continuation));
        }
        Ok(tensor_file::write(&FORMAT, &self.header, &tensors)?)
    }

    /// How the spectra go on above the dictionary's band, if that is known: see [`Dictionary::continued`].
    #[must_use]
    pub fn continuation(&self) -> Option<&[f32]> {
        (!self.continuation.is_empty()).then_some(&self.continuation[..])
    }

    /// The lowest `bins` rows of the spectra (bins x rank), all of them if there are fewer.
    #[must_use]
    pub fn rows(&self, bins: usize) -> Vec<f32> {
        let all = self.header.bins();
        self.spectra.chunks_exact(all).flat_map(|spectrum| &spectrum[..bins.min(all)]).copied().collect()
    }
}

/// Whether there are `columns` values for each of `rank` spectra.
fn check_size(
    tensor: &'static str,
    values: &[f32],
    rank: usize,
    columns: usize,
) -> Result<(), DictionaryError> {
    if rank.checked_mul(columns) == Some(values.len()) {
        return Ok(());
    }
    let found = vec![values.len() / columns, columns];
    Err(DictionaryError::Shape { tensor, found, dtype: "F32".into(), rank, columns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use safetensors::tensor::TensorView;
    use std::sync::LazyLock;

    /// 3 spectra of 5 bins.
    fn header() -> DictionaryHeader {
        DictionaryHeader {
            alpha: 1.2,
            sample_rate: 8_000,
            window_seconds: 0.001,
            rank: 3,
            iterations: 7,
            seed: u64::MAX,
            files: 2,
            seconds: 12.5,
            continuation: None,
        }
    }

    fn small() -> Dictionary {
        Dictionary::new(header(), (1..=15).map(|x| 0.1 * x as f32).collect()).unwrap()
    }

    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| small().to_bytes().unwrap());

    /// A file of the right container with the given metadata and spectra.
    fn file(metadata: &[(&str, &str)], name: &str, shape: Vec<usize>, entries: &[f32]) -> Vec<u8> {
        let data: Vec<u8> = entries.iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensor = TensorView::new(Dtype::F32, shape, &data).unwrap();
        let metadata = metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        safetensors::serialize([(name, tensor)], Some(metadata)).unwrap()
    }

    #[test]
    fn writing_and_reading_returns_the_dictionary() {
        assert_eq!(Dictionary::from_bytes(&BYTES).unwrap(), small());
        let shipped = Dictionary::built_in().unwrap();
        assert_eq!(Dictionary::from_bytes(&shipped.to_bytes().unwrap()).unwrap(), shipped);
        assert_eq!(shipped.header().bins(), 513);
        // It goes on to 23 kHz and more.
        assert!(shipped.continuation().is_some_and(|ratios| ratios.len() >= 100 * 31));
    }

    #[test]
    fn a_continuation_is_kept_and_its_flaws_are_told() {
        let header = |knots| ContinuationHeader { knots, files: 3, seconds: 4.5 };
        let ratios: Vec<f32> = (1..=6).map(|x| 0.25 * x as f32).collect();
        let continued = small().continued(header(2), ratios.clone()).unwrap();
        assert_eq!(continued.continuation(), Some(&ratios[..]));
        assert_eq!(continued.spectra(), small().spectra());
        assert_eq!(Dictionary::from_bytes(&continued.to_bytes().unwrap()).unwrap(), continued);
        assert_eq!(small().continuation(), None);

        let error = |header, ratios: &[f32]| small().continued(header, ratios.to_vec()).unwrap_err();
        for knots in [0, MOST_KNOTS + 1] {
            assert!(matches!(error(header(knots), &ratios), DictionaryError::Metadata("continuation")));
        }
        let endless = ContinuationHeader { seconds: f64::INFINITY, ..header(2) };
        assert!(matches!(error(endless, &ratios), DictionaryError::Metadata("continuation")));
        assert!(matches!(
            error(header(3), &ratios),
            DictionaryError::Shape { tensor: "continuation", columns: 3, .. }
        ));
        for value in [f32::NAN, 0.0, -1.0, 1e10] {
            let mut flawed = ratios.clone();
            flawed[3] = value;
            let flawed = error(header(2), &flawed);
            assert!(matches!(flawed, DictionaryError::Ratio { spectrum: 1, knot: 1, .. }), "{flawed}");
        }
        // Metadata that speak of a continuation that is not there.
        let text = serde_json::to_string(continued.header()).unwrap();
        let metadata = [("format", FORMAT.name), ("version", "1"), ("header", text.as_str())];
        let lacking = file(&metadata, TENSOR, vec![3, 5], small().spectra());
        assert!(matches!(Dictionary::from_bytes(&lacking), Err(DictionaryError::TensorFile(_))));
    }

    #[test]
    fn rows_are_the_lowest_of_every_spectrum() {
        assert_eq!(small().rows(5), small().spectra());
        assert_eq!(small().rows(7), small().spectra());
        assert_eq!(small().rows(2), [1, 2, 6, 7, 11, 12].map(|x| 0.1 * x as f32));
    }

    #[test]
    fn every_flaw_has_its_own_error() {
        let text = serde_json::to_string(&header()).unwrap();
        let good = [("format", FORMAT.name), ("version", "1"), ("header", text.as_str())];
        let entries: Vec<f32> = vec![1.0; 15];
        let error = |bytes: &[u8]| Dictionary::from_bytes(bytes).unwrap_err();
        assert!(Dictionary::from_bytes(&file(&good, TENSOR, vec![3, 5], &entries)).is_ok());

        assert!(matches!(error(b""), DictionaryError::TensorFile(_)));
        assert!(matches!(error(b"RIFF, but no dictionary at all"), DictionaryError::TensorFile(_)));
        let other = file(&[], TENSOR, vec![3, 5], &entries);
        assert!(matches!(error(&other), DictionaryError::Metadata("format")));
        let later = file(&[good[0], ("version", "2"), good[2]], TENSOR, vec![3, 5], &entries);
        assert!(matches!(error(&later), DictionaryError::Version { found } if found == "2"));
        let headless = file(&good[..2], TENSOR, vec![3, 5], &entries);
        assert!(matches!(error(&headless), DictionaryError::Metadata("header")));
        assert!(matches!(error(&file(&good, "other", vec![3, 5], &entries)), DictionaryError::TensorFile(_)));
        for shape in [vec![5, 3], vec![15], vec![1, 3, 5]] {
            let turned = error(&file(&good, TENSOR, shape.clone(), &entries));
            assert!(
                matches!(turned, DictionaryError::Shape { found, rank: 3, columns: 5, .. } if found == shape)
            );
        }
        for value in [f32::NAN, f32::INFINITY, -0.5, 0.0, 1e20] {
            let mut flawed = entries.clone();
            flawed[7] = value;
            let flawed = error(&file(&good, TENSOR, vec![3, 5], &flawed));
            assert!(matches!(flawed, DictionaryError::Entry { spectrum: 1, bin: 2, .. }), "{flawed}");
        }
        for (header, name) in [
            (DictionaryHeader { alpha: 2.1, ..header() }, "alpha"),
            (DictionaryHeader { alpha: 0.05, ..header() }, "alpha"),
            (DictionaryHeader { alpha: f64::NAN, ..header() }, "alpha"),
            (DictionaryHeader { sample_rate: 4_000, ..header() }, "sample_rate"),
            (DictionaryHeader { window_seconds: 0.0, ..header() }, "window_seconds"),
            (DictionaryHeader { rank: 0, ..header() }, "rank"),
        ] {
            let flawed = Dictionary::new(header, entries.clone()).unwrap_err();
            assert!(matches!(flawed, DictionaryError::Metadata(found) if found == name), "{flawed}");
        }
        let huge = DictionaryHeader { rank: usize::MAX, ..header() };
        assert!(matches!(Dictionary::new(huge, entries), Err(DictionaryError::Shape { .. })));
    }

    #[test]
    fn every_truncation_is_an_error() {
        for length in 0..BYTES.len() {
            let error = Dictionary::from_bytes(&BYTES[..length]).unwrap_err();
            assert!(matches!(error, DictionaryError::TensorFile(_)), "{length} bytes: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Dictionary::from_bytes(&bytes).is_err());
        }

        #[test]
        fn a_changed_byte_is_refused_or_gives_a_valid_dictionary(at in any::<proptest::sample::Index>(), to in any::<u8>()) {
            let mut bytes = BYTES.clone();
            let at = at.index(bytes.len());
            bytes[at] = to;
            if let Ok(dictionary) = Dictionary::from_bytes(&bytes) {
                prop_assert!(dictionary.spectra().iter().all(|x| x.is_finite() && *x > 0.0));
                prop_assert_eq!(dictionary.spectra().len(), dictionary.header().rank * dictionary.header().bins());
            }
        }
    }
}
