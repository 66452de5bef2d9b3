//! Dictionaries of speech spectra and their file format.
//!
//! A dictionary is a [safetensors](https://docs.rs/safetensors) file with a tensor `spectra` (rank x bins, row-major, F32),
//! optionally a tensor `continuation` (rank x knots) of the spectra above the dictionary's band, and its header as metadata.

use crate::range::{SettingsError, within};
use crate::signal::{ErrorKind, SAMPLE_RATE_RANGE};
use crate::stable::ALPHA_RANGE;
use crate::tensor_file::{self, Format, TensorFileError};
use crate::transform::{WINDOW_RANGE_SECONDS, window_samples};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Version of the file format.
pub const FORMAT_VERSION: u32 = 1;
const FORMAT: Format = Format { name: "alphamf-dictionary", version: FORMAT_VERSION };
const TENSOR: &str = "spectra";
const CONTINUATION: &str = "continuation";
/// Maximum number of knots, which are 500 Hz apart: more than twice the highest sample rate.
const MAX_KNOTS: usize = 1_000;
const RATIO_RANGE: RangeInclusive<f32> = 1e-9..=1e9;
/// Maximum entry of a spectrum; larger entries could overflow single precision.
const MAX_ENTRY: f32 = 1e9;

/// Dispersion spectra of speech, trained on clean recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct Dictionary {
    header: DictionaryHeader,
    spectra: Vec<f32>,
    /// Knots x rank, column-major; empty if there is none.
    continuation: Vec<f32>,
}

/// Parameters and training data of a dictionary.
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
    /// Duration of the training speech without silence, s.
    pub seconds: f64,
    /// Header of the continuation above the dictionary's band, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ContinuationHeader>,
}

/// Parameters and training data of a dictionary's continuation: see [`Dictionary::with_continuation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContinuationHeader {
    /// Number of knots, 1 to 1,000.
    pub knots: usize,
    /// Number of full-band training files.
    pub files: usize,
    /// Duration of the training speech, s.
    pub seconds: f64,
}

/// Why a dictionary is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DictionaryError {
    /// The bytes are not a dictionary's file.
    #[error("not a speech dictionary: {0}")]
    File(#[from] TensorFileError),
    /// A value of the header is out of range.
    #[error("{0}")]
    Header(#[from] SettingsError),
    /// An entry that is not positive, or too large.
    #[error("spectrum {spectrum}, bin {bin} is {value}; expected more than 0, and {MAX_ENTRY:e} at most")]
    Entry {
        /// Index of the spectrum.
        spectrum: usize,
        /// Index of the bin.
        bin: usize,
        /// The entry.
        value: f32,
    },
    /// A ratio of neighbouring knots out of range.
    #[error("spectrum {spectrum}, ratio {knot} is {value}; expected 1e-9 to 1e9")]
    Ratio {
        /// Index of the spectrum.
        spectrum: usize,
        /// Index of the knot.
        knot: usize,
        /// The ratio.
        value: f32,
    },
}

impl DictionaryError {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Model
    }
}

impl DictionaryHeader {
    /// Number of frequency bins, from sample rate and window.
    #[must_use]
    pub fn bins(&self) -> usize {
        window_samples(self.sample_rate, self.window_seconds).map_or(0, |window| window / 2 + 1)
    }

    fn validate(&self) -> Result<(), SettingsError> {
        within("alpha", self.alpha, ALPHA_RANGE)?;
        within("sample_rate", self.sample_rate, SAMPLE_RATE_RANGE)?;
        within("window_seconds", self.window_seconds, WINDOW_RANGE_SECONDS)?;
        within("rank", self.rank, 1..=usize::MAX)?;
        within("seconds", self.seconds, 0.0..=f64::MAX)?;
        if let Some(ContinuationHeader { knots, seconds, .. }) = self.continuation {
            within("continuation.knots", knots, 1..=MAX_KNOTS)?;
            within("continuation.seconds", seconds, 0.0..=f64::MAX)?;
        }
        Ok(())
    }
}

impl Dictionary {
    /// A dictionary of `spectra` (bins x rank, column-major), without a continuation: see
    /// [`with_continuation`](Self::with_continuation).
    ///
    /// # Errors
    /// [`DictionaryError`] if a header value is out of range, the number of entries does not match, or an entry is not positive
    /// or above 1e9.
    pub fn new(header: DictionaryHeader, spectra: Vec<f32>) -> Result<Self, DictionaryError> {
        let header = DictionaryHeader { continuation: None, ..header };
        header.validate()?;
        let bins = header.bins();
        check_size(TENSOR, &spectra, header.rank, bins)?;
        if let Some(at) = spectra.iter().position(|x| !(*x > 0.0 && *x <= MAX_ENTRY)) {
            return Err(DictionaryError::Entry { spectrum: at / bins, bin: at % bins, value: spectra[at] });
        }
        Ok(Self { header, spectra, continuation: Vec::new() })
    }

    /// Adds spectra above the dictionary's band: dispersions at knots 500 Hz apart, the lowest at the first bin above
    /// the band. Each of `ratios` (knots x rank, column-major) is relative to the knot below; the lowest, to the mean
    /// of the 250 Hz below.
    ///
    /// # Errors
    /// [`DictionaryError`] if a header value is out of range, the number of ratios does not match, or a ratio is outside 1e-9 to
    /// 1e9.
    pub fn with_continuation(
        mut self,
        header: ContinuationHeader,
        ratios: Vec<f32>,
    ) -> Result<Self, DictionaryError> {
        let knots = header.knots;
        self.header.continuation = Some(header);
        self.header.validate()?;
        check_size(CONTINUATION, &ratios, self.header.rank, knots)?;
        if let Some(at) = ratios.iter().position(|x| !RATIO_RANGE.contains(x)) {
            let value = ratios[at];
            return Err(DictionaryError::Ratio { spectrum: at / knots, knot: at % knots, value });
        }
        self.continuation = ratios;
        Ok(self)
    }

    /// The dictionary embedded in this crate: `models/speech-16k.safetensors`.
    ///
    /// # Errors
    /// Only if the crate was built with a damaged file.
    pub fn built_in() -> Result<Self, DictionaryError> {
        Self::from_bytes(include_bytes!("../../models/speech-16k.safetensors"))
    }

    /// Parameters and training data.
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
    /// [`DictionaryError`] if they are not a valid dictionary.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DictionaryError> {
        let (header, tensors): (DictionaryHeader, _) = tensor_file::read(bytes, &FORMAT)?;
        header.validate()?;
        let (rank, bins, continuation) = (header.rank, header.bins(), header.continuation.clone());
        let values = |name, columns| tensor_file::values(&tensors, name, &[rank, columns]);
        let dictionary = Self::new(header, values(TENSOR, bins)?)?;
        match continuation {
            Some(header) => {
                let ratios = values(CONTINUATION, header.knots)?;
                dictionary.with_continuation(header, ratios)
            }
            None => Ok(dictionary),
        }
    }

    /// Serialises the dictionary to the bytes of its file.
    ///
    /// # Errors
    /// Only if serialising fails.
    pub fn to_bytes(&self) -> Result<Vec<u8>, DictionaryError> {
        let rank = self.header.rank;
        let mut tensors = vec![(TENSOR, vec![rank, self.header.bins()], &self.spectra[..])];
        if let Some(ContinuationHeader { knots, .. }) = self.header.continuation {
            tensors.push((CONTINUATION, vec![rank, knots], &self.continuation));
        }
        Ok(tensor_file::write(&FORMAT, &self.header, &tensors)?)
    }

    /// The ratios of the continuation above the dictionary's band (knots x rank), if there is one: see
    /// [`with_continuation`](Self::with_continuation).
    #[must_use]
    pub fn continuation(&self) -> Option<&[f32]> {
        (!self.continuation.is_empty()).then_some(&self.continuation[..])
    }

    /// The lowest `bins` rows of the spectra (bins x rank); all rows if there are fewer.
    #[must_use]
    pub fn rows(&self, bins: usize) -> Vec<f32> {
        let all = self.header.bins();
        self.spectra.chunks_exact(all).flat_map(|spectrum| &spectrum[..bins.min(all)]).copied().collect()
    }
}

/// Checks that there are `columns` values for each of `rank` spectra.
fn check_size(
    tensor: &'static str,
    values: &[f32],
    rank: usize,
    columns: usize,
) -> Result<(), TensorFileError> {
    if rank.checked_mul(columns) == Some(values.len()) {
        return Ok(());
    }
    let found = vec![values.len() / columns, columns];
    Err(TensorFileError::Shape { tensor, found, dtype: "F32".into(), expected: vec![rank, columns] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use safetensors::tensor::{Dtype, TensorView};
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
        // The continuation extends beyond 23 kHz.
        assert!(shipped.continuation().is_some_and(|ratios| ratios.len() >= 100 * 31));
    }

    #[test]
    fn a_continuation_is_kept_and_its_flaws_are_reported() {
        let header = |knots| ContinuationHeader { knots, files: 3, seconds: 4.5 };
        let ratios: Vec<f32> = (1..=6).map(|x| 0.25 * x as f32).collect();
        let continued = small().with_continuation(header(2), ratios.clone()).unwrap();
        assert_eq!(continued.continuation(), Some(&ratios[..]));
        assert_eq!(continued.spectra(), small().spectra());
        assert_eq!(Dictionary::from_bytes(&continued.to_bytes().unwrap()).unwrap(), continued);
        assert_eq!(small().continuation(), None);

        let error = |header, ratios: &[f32]| small().with_continuation(header, ratios.to_vec()).unwrap_err();
        for knots in [0, MAX_KNOTS + 1] {
            assert!(
                matches!(error(header(knots), &ratios), DictionaryError::Header(found) if found.name == "continuation.knots")
            );
        }
        let endless = ContinuationHeader { seconds: f64::INFINITY, ..header(2) };
        assert!(
            matches!(error(endless, &ratios), DictionaryError::Header(found) if found.name == "continuation.seconds")
        );
        assert!(matches!(
            error(header(3), &ratios),
            DictionaryError::File(TensorFileError::Shape { tensor: "continuation", expected, .. }) if expected == [3, 3]
        ));
        for value in [f32::NAN, 0.0, -1.0, 1e10] {
            let mut flawed = ratios.clone();
            flawed[3] = value;
            let flawed = error(header(2), &flawed);
            assert!(matches!(flawed, DictionaryError::Ratio { spectrum: 1, knot: 1, .. }), "{flawed}");
        }
        // Metadata with a continuation that the file lacks.
        let text = serde_json::to_string(continued.header()).unwrap();
        let metadata = [("format", FORMAT.name), ("version", "1"), ("header", text.as_str())];
        let lacking = file(&metadata, TENSOR, vec![3, 5], small().spectra());
        assert!(matches!(
            Dictionary::from_bytes(&lacking),
            Err(DictionaryError::File(TensorFileError::Tensor("continuation")))
        ));
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

        let file_error = |bytes: &[u8]| match error(bytes) {
            DictionaryError::File(error) => error,
            error => panic!("{error}"),
        };
        assert!(matches!(file_error(b""), TensorFileError::Bytes(_)));
        assert!(matches!(file_error(b"RIFF, but no dictionary at all"), TensorFileError::Bytes(_)));
        let other = file(&[], TENSOR, vec![3, 5], &entries);
        assert!(matches!(file_error(&other), TensorFileError::Format { found, .. } if found.is_empty()));
        let later = file(&[good[0], ("version", "2"), good[2]], TENSOR, vec![3, 5], &entries);
        assert!(matches!(file_error(&later), TensorFileError::Version { found, .. } if found == "2"));
        let headless = file(&good[..2], TENSOR, vec![3, 5], &entries);
        assert!(matches!(file_error(&headless), TensorFileError::Header(_)));
        let text = text.replace("\"files\"", "\"recordings\"");
        let nameless = file(&[good[0], good[1], ("header", &text)], TENSOR, vec![3, 5], &entries);
        assert!(matches!(file_error(&nameless), TensorFileError::Header(reason) if reason.contains("files")));
        let unnamed = file(&good, "other", vec![3, 5], &entries);
        assert!(matches!(file_error(&unnamed), TensorFileError::Tensor("spectra")));
        for shape in [vec![5, 3], vec![15], vec![1, 3, 5]] {
            let turned = file_error(&file(&good, TENSOR, shape.clone(), &entries));
            assert!(
                matches!(turned, TensorFileError::Shape { found, expected, .. } if found == shape && expected == [3, 5])
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
            assert!(matches!(&flawed, DictionaryError::Header(found) if found.name == name), "{flawed}");
        }
        let huge = DictionaryHeader { rank: usize::MAX, ..header() };
        assert!(matches!(
            Dictionary::new(huge, entries),
            Err(DictionaryError::File(TensorFileError::Shape { .. }))
        ));
    }

    #[test]
    fn every_truncation_is_an_error() {
        for length in 0..BYTES.len() {
            let error = Dictionary::from_bytes(&BYTES[..length]).unwrap_err();
            assert!(
                matches!(error, DictionaryError::File(TensorFileError::Bytes(_))),
                "{length} bytes: {error}"
            );
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
