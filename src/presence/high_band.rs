//! Speech-presence network above 8 kHz, whose inputs are the powers above 8 kHz and the log odds below.
//!
//! The network is small, as full-band clean speech is scarce and the low band largely determines the high band. It
//! consists of convolutions over pairs of frames, with the bands as channels.

use super::bands::Bands;
use super::file::Parameters;
use super::header::{MAX_CHANNELS, PresenceNetError, check_window, within, within_reach};
use super::network::{rectify, residual};
use super::sizes::{BANDS, FEATURES, PAIR};
use super::{BandLogOdds, spread};
use crate::kernels::convolution::{Convolution, Grid, Reach};
use crate::tensor_file::{self, Format};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

const FORMAT: Format = Format { name: "alphamf-presence-high-band", version: 2 };
/// Number of bands above 8 kHz, up to 18 kHz.
const HIGH_BANDS: usize = 20;
/// Number of bins in each high band.
const WIDTH: usize = 32;
/// Number of groups of the bands below 8 kHz.
const GROUPS: usize = 20;
/// Number of bands in each group.
const SHARED: usize = BANDS / GROUPS;
/// Input features of a frame.
const INPUTS: usize = 2 * GROUPS + FEATURES * HIGH_BANDS;

/// Parameters and training data of a high-band network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct HighBandPresenceNetHeader {
    /// Length of the analysis window in training, s.
    pub window_seconds: f64,
    /// Channels of every layer, 1 to 1024.
    pub channels: usize,
    /// Dilations of all layers except the first and the last, pairs of frames.
    pub dilations: Vec<usize>,
    /// Duration of the training mixtures, hours.
    pub hours: f64,
}

/// Estimates the log odds of speech above 8 kHz.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HighBandPresenceNet {
    first: Convolution,
    local: Vec<Convolution>,
    last: Convolution,
}

/// Returns the first bin of each high band, counted from the lowest bin above 8 kHz, and the end of the last band.
fn high_edges() -> [usize; HIGH_BANDS + 1] {
    std::array::from_fn(|band| band * WIDTH)
}

impl HighBandPresenceNet {
    /// The network embedded in this crate: `models/presence-high-band-48k.safetensors`.
    ///
    /// # Errors
    /// Only if the crate was built with a damaged file.
    pub(crate) fn built_in() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../models/presence-high-band-48k.safetensors"))
    }

    /// Reads a network from the bytes of its file, in the format of a [`PresenceNet`](super::PresenceNet) file.
    ///
    /// # Errors
    /// [`PresenceNetError`] if they are not a valid network.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, PresenceNetError> {
        let (header, tensors): (HighBandPresenceNetHeader, SafeTensors) = tensor_file::read(bytes, &FORMAT)?;
        check_window(header.window_seconds)?;
        within("channels", header.channels, MAX_CHANNELS)?;
        within_reach("dilations", &header.dilations)?;
        let mut parameters = Parameters::new(&tensors)?;
        let near = Reach { frames: (1, 1), bands: 0 };
        let first = parameters.convolution([INPUTS * PAIR, header.channels], near, 1)?;
        let local = parameters.convolutions(header.channels, near, &header.dilations)?;
        let last = parameters.convolution([header.channels, HIGH_BANDS * PAIR], Reach::NONE, 1)?;
        parameters.finish()?;
        Ok(Self { first, local, last })
    }

    /// Returns the natural log odds of speech in the bins above 8 kHz (bins x frames), from the log odds on the bands
    /// below and `|X|^2` above (bins x frames). Bins above 18 kHz, or above the last complete band, have the log odds
    /// of the last complete band. `None` without a complete band, or if the bands below do not reach 8 kHz.
    pub(crate) fn log_odds(&self, low: &BandLogOdds, power_above: &[f32]) -> Option<Vec<f32>> {
        let frames = low.odds.len() / BANDS;
        let bins = power_above.len().checked_div(frames)?;
        if low.bands.present < BANDS || bins < WIDTH {
            return None;
        }
        let above = Bands::new(power_above, bins, &high_edges(), Some(&low.bands));
        let mut odds = self.forward(&input(low, &above, frames));
        odds.truncate(HIGH_BANDS * frames);
        for odds in odds.chunks_exact_mut(HIGH_BANDS) {
            let top = odds[above.present - 1];
            odds[above.present..].fill(top);
        }
        Some(spread(&odds, &high_edges(), bins))
    }

    /// Returns the log odds, high bands x frames: two frames for each frame of `input`.
    fn forward(&self, input: &Grid) -> Vec<f32> {
        let mut near = self.first.forward(input);
        rectify(&mut near);
        residual(&self.local, &mut near);
        self.last.forward(&near).values
    }
}

/// Builds the input of the network: log odds and levels below 8 kHz, averaged over groups of bands, and the features of
/// each band above. Each row holds two successive frames; an odd last frame is repeated.
fn input(low: &BandLogOdds, above: &Bands, frames: usize) -> Grid {
    let mut grid = Grid::new(INPUTS * PAIR, 1, frames.div_ceil(PAIR));
    let levels: Vec<f32> = low.bands.relative_to_whole().collect();
    let mean = |group: &[f32]| group.iter().sum::<f32>() / SHARED as f32;
    let rows = grid.values.chunks_exact_mut(INPUTS);
    for (row, (odds, levels)) in rows.zip(low.odds.chunks_exact(BANDS).zip(levels.chunks_exact(BANDS))) {
        for (group, (odds, levels)) in odds.chunks_exact(SHARED).zip(levels.chunks_exact(SHARED)).enumerate()
        {
            row[group] = mean(odds) / 4.0;
            row[GROUPS + group] = mean(levels);
        }
    }
    above.for_each(|frame, band, features| {
        for (feature, value) in features.into_iter().enumerate() {
            grid.values[frame * INPUTS + 2 * GROUPS + feature * HIGH_BANDS + band] = value;
        }
    });
    if !frames.is_multiple_of(PAIR) {
        let last = (frames - 1) * INPUTS;
        grid.values.copy_within(last..last + INPUTS, last + INPUTS);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presence::bands::edges;
    use crate::presence::tests::{compare_with, spectrum};

    /// Bins up to 8 kHz.
    const BELOW: usize = 513;

    fn low_band(power: &[f32], odds: Vec<f32>) -> BandLogOdds {
        BandLogOdds::new(Bands::new(power, BELOW, &edges(), None), odds)
    }

    #[test]
    fn the_odds_are_those_of_the_training_framework() {
        let net = HighBandPresenceNet::built_in().unwrap();
        let mut compared = 0;
        for bins in [BELOW + HIGH_BANDS * WIDTH, BELOW + 9 * WIDTH + 5] {
            let power = spectrum(bins);
            let part = |range: std::ops::Range<usize>| -> Vec<f32> {
                power.chunks_exact(bins).flat_map(|frame| &frame[range.clone()]).copied().collect()
            };
            let odds: Vec<f32> = (0..48 * BANDS)
                .map(|at| 3.0 * (0.2 * (at / BANDS) as f32 + 0.1 * (at % BANDS) as f32).sin())
                .collect();
            let found = net.log_odds(&low_band(&part(0..BELOW), odds), &part(BELOW..bins)).unwrap();
            let above = bins - BELOW;
            // In the middle of a band, between two bins.
            compared += compare_with(include_str!("reference-upper.csv"), bins, |frame, band| {
                let at = frame * above + (band * WIDTH + WIDTH / 2).min(above - 1);
                f32::midpoint(found[at - 1], found[at])
            });
        }
        assert!(compared > 30);
    }

    #[test]
    fn a_sliver_above_has_no_odds_and_silence_has() {
        let net = HighBandPresenceNet::built_in().unwrap();
        let odds = |bins: usize, frames: usize| {
            let below = low_band(&vec![0.0; BELOW * frames], vec![0.0; BANDS * frames]);
            net.log_odds(&below, &vec![0.0; bins * frames])
        };
        assert!(odds(WIDTH - 1, 3).is_none() && odds(0, 3).is_none() && odds(10, 0).is_none());
        let found = odds(WIDTH, 3).unwrap();
        assert!(found.len() == 3 * WIDTH && found.iter().all(|odds| odds.is_finite()));
        assert_eq!(odds(1023, 1).unwrap().len(), 1023);
    }
}
