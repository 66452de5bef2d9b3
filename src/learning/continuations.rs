//! Training of a dictionary's continuation above its band, from full-band speech.

use super::dictionaries::TrainingError;
use crate::inference::bands::{occupied_bins, rows};
use crate::inference::high_band::{HighBand, HighBandSpectra};
use crate::inference::state::{Separation, Start, UpdateMask};
use crate::model::{
    ContinuationHeader, Dictionary, MIN_POWER, MarginalTable, ModelSettings, NoiseModel, knot_spacing,
};
use crate::random::SeedTree;
use crate::range::within;
use crate::signal::Signal;
use crate::signal::progress::{self, ProgressCallback};
use crate::transform::{FrameGrid, Stft};
use std::fmt;
use std::sync::Arc;

/// Maximum frequency of a continuation, Hz.
const MAX_HERTZ: f64 = 24_000.0;
/// Exponent of the multiplicative updates.
const EXPONENT: f32 = 0.5;
/// Number of sweeps that estimate the activations of a recording.
const ACTIVATION_SWEEPS: usize = 8;

/// Full-band speech, to train the continuation of a dictionary above its band.
///
/// Activations are estimated in the dictionary's band; only the smooth continuation of each spectrum is trained, common
/// to all voices. Little full-band speech is therefore enough.
pub struct FullBandCorpus {
    dictionary: Dictionary,
    iterations: usize,
    table: Arc<MarginalTable>,
    /// Maximum number of bins of a recording above the dictionary's band.
    bins: usize,
    recordings: Vec<HighBand>,
    files: usize,
    seconds: f64,
}

impl fmt::Debug for FullBandCorpus {
    /// The number of files and their duration, without the recordings.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FullBandCorpus")
            .field("iterations", &self.iterations)
            .field("files", &self.files)
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

impl FullBandCorpus {
    /// An empty corpus for a dictionary's continuation, trained in 1 to 100,000 iterations.
    ///
    /// # Errors
    /// [`TrainingError::Settings`] if `iterations` is out of range.
    pub fn new(dictionary: Dictionary, iterations: usize) -> Result<Self, TrainingError> {
        within("iterations", iterations, 1..=100_000)?;
        let alpha = dictionary.header().alpha;
        let table = Arc::new(MarginalTable::new(alpha, ModelSettings::default().alpha_noise));
        Ok(Self { dictionary, iterations, table, bins: 0, recordings: Vec::new(), files: 0, seconds: 0.0 })
    }

    /// Adds all channels of a recording, up to its highest occupied frequency. It may have steady noise.
    ///
    /// # Errors
    /// [`TrainingError::NothingAbove`] if it has no content above the dictionary's band.
    pub fn add(&mut self, speech: &Signal) -> Result<(), TrainingError> {
        let header = self.dictionary.header();
        let stft = Stft::new(speech.sample_rate(), header.window_seconds)?;
        let FrameGrid { bins: all, frame_seconds, .. } = stft.grid();
        // Windows are rounded to samples, but knots must be equally spaced at every rate.
        let bin_hertz = 1.0 / header.window_seconds;
        let spacing = knot_spacing(bin_hertz);
        let (known, model) = (header.bins(), ModelSettings::default());
        let mut has_high_band = false;
        for samples in speech.channels() {
            let spectrogram = stft.analyse(samples);
            let frames = spectrogram.as_slice().chunks_exact(all);
            let power: Vec<f32> =
                frames.flat_map(|frame| frame.iter().map(num_complex::Complex::norm_sqr)).collect();
            // A sum in single precision would lose terms of long recordings.
            let sum: f64 = power.iter().copied().map(f64::from).sum();
            let mean = (sum / power.len() as f64).max(MIN_POWER) as f32;
            let power: Vec<f32> = power.iter().map(|power| power / mean).collect();
            let end = occupied_bins(&power, all, bin_hertz).min((MAX_HERTZ / bin_hertz) as usize);
            // A knot with only part of its bins would fit the recording's band-limiting filter.
            let bins = end.saturating_sub(known) / spacing * spacing;
            if bins == 0 {
                continue;
            }
            has_high_band = true;
            self.bins = self.bins.max(bins);
            let start = Start {
                bins: known,
                speech_spectra: self.dictionary.spectra(),
                alpha_speech: header.alpha,
                alpha_noise: model.alpha_noise,
                noise: NoiseModel::FixedSpectra { rank: 1 },
                frame_seconds,
                bin_hertz,
                speech_prior: model.speech_prior,
                noise_prior: model.noise_prior,
                previous: None,
                noise_profile: None,
                gain_std: false,
            };
            let below = rows(&power, all, 0..known);
            let mut separation = Separation::new(&start, &below, &self.table, SeedTree::new(0));
            for _ in 0..ACTIVATION_SWEEPS {
                separation.em_step(EXPONENT, UpdateMask { noise: true, response: false });
            }
            let start = Start { bins, ..start };
            let above = rows(&power, all, known..known + bins);
            let seeds = SeedTree::new(0);
            self.recordings.push(HighBand::new(&start, &above, &separation, None, None, &self.table, seeds));
            self.seconds += speech.duration();
        }
        if !has_high_band {
            return Err(TrainingError::NothingAbove { hertz: header.sample_rate / 2 });
        }
        self.files += 1;
        Ok(())
    }

    /// Duration of the speech so far, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Trains the continuation by expectation maximisation, and returns the dictionary with it.
    ///
    /// # Errors
    /// [`TrainingError::TooLittleSpeech`] without speech.
    pub fn train(self) -> Result<Dictionary, TrainingError> {
        self.train_with_progress(&mut ())
    }

    /// Like [`train`](Self::train); `progress` receives the completed fraction, 0 to 1.
    ///
    /// # Errors
    /// As [`train`](Self::train), and [`TrainingError::Cancelled`] if `progress` cancels it.
    pub fn train_with_progress(
        self,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Dictionary, TrainingError> {
        let Self { dictionary, iterations, bins, mut recordings, files, seconds, .. } = self;
        let header = dictionary.header();
        if recordings.is_empty() {
            return Err(TrainingError::TooLittleSpeech { frames: 0, rank: header.rank });
        }
        let bin_hertz = 1.0 / header.window_seconds;
        let mut spectra = HighBandSpectra::new(bins, bin_hertz, dictionary.spectra(), header.bins(), None);
        for iteration in 0..iterations {
            let mut sums = [vec![0.0; spectra.knots.len()], vec![0.0; spectra.knots.len()]];
            for recording in &mut recordings {
                recording.set_spectra(&spectra);
                let (numerator, denominator) = recording.update_terms(EXPONENT, true);
                for (sums, terms) in sums.iter_mut().zip([numerator, denominator]) {
                    spectra.add(&terms, sums);
                }
            }
            spectra.update(&sums[0], &sums[1], EXPONENT);
            progress::report(progress, (iteration + 1) as f64 / iterations as f64)?;
        }
        let header = ContinuationHeader { knots: spectra.continuation.knots(), files, seconds };
        Ok(dictionary.with_continuation(header, spectra.ratios())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DictionaryHeader;
    use crate::signal::SampleFormat;
    use rand_distr::{Distribution, StandardNormal};

    const WINDOW: f64 = 0.032;

    /// Two spectra up to 4 kHz: one with its power below 2 kHz, one above.
    fn halves() -> Dictionary {
        let spectrum = |low: f32, high: f32| (0..129).map(move |bin| if bin < 64 { low } else { high });
        let header = DictionaryHeader {
            alpha: 1.2,
            sample_rate: 8_000,
            window_seconds: WINDOW,
            rank: 2,
            iterations: 1,
            seed: 0,
            files: 1,
            seconds: 1.0,
            continuation: None,
        };
        Dictionary::new(header, spectrum(1.0, 0.01).chain(spectrum(0.01, 1.0)).collect()).unwrap()
    }

    /// White noise at 16 kHz whose loud band alternates every half second: below 2 kHz, then from 2 kHz to `end` Hz.
    fn turns(end: f64) -> Signal {
        const RATE: u32 = 16_000;
        let stft = Stft::new(RATE, WINDOW).unwrap();
        let mut stream = SeedTree::new(1).rng(0);
        let noise: Vec<f32> = (0..12 * RATE).map(|_| StandardNormal.sample(&mut stream)).collect();
        let mut spectrogram = stft.analyse(&noise);
        let hop = stft.hop();
        for (frame, bins) in spectrogram.as_mut_slice().chunks_exact_mut(stft.bins()).enumerate() {
            let low = (frame * hop / 8_000).is_multiple_of(2);
            for (bin, value) in bins.iter_mut().enumerate() {
                let hertz = bin as f64 / WINDOW;
                let speaks = if low { hertz < 2_000.0 } else { (2_000.0..end).contains(&hertz) };
                *value *= if speaks { 0.1 } else { 1e-3 };
            }
        }
        let samples = stft.synthesise(&spectrogram, noise.len());
        Signal::new(RATE, SampleFormat::Float32, vec![samples]).unwrap()
    }

    #[test]
    fn the_continuation_of_each_spectrum_is_trained() {
        let mut corpus = FullBandCorpus::new(halves(), 30).unwrap();
        corpus.add(&turns(6_000.0)).unwrap();
        let dictionary = corpus.train_with_progress(&mut ()).unwrap();
        assert_eq!(dictionary.spectra(), halves().spectra());
        let ratios = dictionary.continuation().unwrap();
        let count = ratios.len() / 2;
        // The dispersions at 4, 4.5, 5 ... kHz.
        let knots = |spectrum: usize, edge: f32| -> Vec<f32> {
            let ratios = ratios[spectrum * count..][..count].iter();
            ratios
                .scan(edge, |below, ratio| {
                    *below *= ratio;
                    Some(*below)
                })
                .collect()
        };
        let (low, high) = (knots(0, 0.01), knots(1, 1.0));
        assert!(high[..3].iter().all(|x| (0.5..2.0).contains(x)), "{high:?}");
        assert!(high[6] < 0.05 * high[0], "{high:?}");
        assert!(low.iter().all(|&x| x < 0.05), "{low:?}");
        // Up to 8 kHz.
        assert_eq!(count, 9);
    }

    #[test]
    fn speech_without_a_high_band_is_refused() {
        let narrow = Signal::new(8_000, SampleFormat::Float32, vec![vec![0.1; 8_000]]).unwrap();
        let mut corpus = FullBandCorpus::new(halves(), 1).unwrap();
        assert!(matches!(corpus.add(&narrow), Err(TrainingError::NothingAbove { hertz: 4_000 })));
        assert!(matches!(corpus.train_with_progress(&mut ()), Err(TrainingError::TooLittleSpeech { .. })));
    }
}
