//! The minimum gain of an array.

use crate::decibels::amplitude;
use crate::transform::{Spectrogram, bin_power};

/// The frames of the microphones, stored until the second pass has denoised the corresponding frames.
///
/// The linear filter before the second pass removes noise, too. The minimum gain limits both together: bins of the
/// output below the minimum gain are replaced by those of the microphones at that gain.
pub(super) struct ArrayFloor {
    frames: Vec<Spectrogram>,
    /// Minimum gain.
    floor: f32,
}

/// Bins that are held at the minimum gain.
pub(super) struct Held {
    /// Indices in the matrix of bins x frames.
    places: Vec<usize>,
    /// The frames of every microphone, at the minimum gain.
    frames: Vec<Spectrogram>,
}

impl ArrayFloor {
    pub(super) fn new(bins: usize, channels: usize, floor_db: f64) -> Self {
        Self { frames: vec![Spectrogram::new(bins, 0); channels], floor: amplitude(floor_db) }
    }

    pub(super) fn push(&mut self, spectra: &[Spectrogram]) {
        self.frames.iter_mut().zip(spectra).for_each(|(waiting, frames)| waiting.append(frames));
    }

    /// Removes the frames that correspond to `spectra`, of every channel. Raises the gain `applied` (bins x frames) in
    /// bins whose power in all channels together would be below the minimum.
    pub(super) fn hold(&mut self, applied: &mut [f32], spectra: &[Spectrogram]) -> Held {
        let count = spectra.first().map_or(0, Spectrogram::frames);
        let mut frames: Vec<Spectrogram> =
            self.frames.iter_mut().map(|waiting| waiting.split_front(count)).collect();
        frames.iter_mut().flat_map(Spectrogram::as_mut_slice).for_each(|value| *value *= self.floor);
        let power =
            |of: &[Spectrogram], i: usize| of.iter().map(|all| bin_power(&all.as_slice()[i])).sum::<f64>();
        let mut places = Vec::new();
        for (i, applied) in applied.iter_mut().enumerate() {
            let (least, found) = (power(&frames, i), power(spectra, i));
            if found * f64::from(*applied).powi(2) < least {
                *applied = (least / found).sqrt().min(f32::MAX.into()) as f32;
                places.push(i);
            }
        }
        Held { places, frames }
    }
}

impl Held {
    /// Copies the held bins to the spectra of every channel.
    pub(super) fn replace(&self, spectra: &mut [Spectrogram]) {
        for (channel, frames) in spectra.iter_mut().zip(&self.frames) {
            for &i in &self.places {
                channel.as_mut_slice()[i] = frames.as_slice()[i];
            }
        }
    }
}
