//! A network that hears where the voice is above 8 kHz: from the powers there and from what is heard below.
//!
//! Little clean speech of the whole band can be had, of few voices. What is above follows from what is below to a good
//! part, so a small network is enough: convolutions over pairs of frames, in which all bands are channels.

use super::bands::{BANDS, Bands};
use super::file::{PresenceNetError, WIDEST, is_window, parameters, within, within_reach};
use super::network::{FEATURES, Layout, PAIR, rectify, residual};
use super::{BandLogOdds, spread};
use crate::kernels::convolution::{Convolution, Grid};
use crate::tensor_file::{self, Format};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

const FORMAT: Format = Format { name: "alphamf-upper-listener", version: 2 };
/// Its bands, and the bins of each: up to 18 kHz.
const UPPER: usize = 20;
const WIDTH: usize = 32;
/// Groups of the bands below, and bands of each.
const GROUPS: usize = 20;
const SHARED: usize = BANDS / GROUPS;
/// Values that describe a frame.
const INPUTS: usize = 2 * GROUPS + FEATURES * UPPER;

/// What a listener above 8 kHz was made for and from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HighBandPresenceNetHeader {
    /// Length of the analysis window that it was learned with, s.
    pub window_seconds: f64,
    /// Channels of every layer, 1 to 1024.
    pub channels: usize,
    /// Distances of the taps of its layers but the first and the last, pairs of frames.
    pub dilations: Vec<usize>,
    /// Mixtures that it was learned from, hours.
    pub hours: f64,
}

/// Tells the odds of speech above 8 kHz.
#[derive(Debug, Clone, PartialEq)]
pub struct HighBandPresenceNet {
    header: HighBandPresenceNetHeader,
    first: Convolution,
    local: Vec<Convolution>,
    last: Convolution,
    parameters: Vec<f32>,
}

/// First bins of the bands above, counted from the lowest bin there, and the number of bins.
fn upper_edges() -> [usize; UPPER + 1] {
    std::array::from_fn(|band| band * WIDTH)
}

impl HighBandPresenceNet {
    /// The one that comes with this crate: `models/listener-upper-48k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn built_in() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../models/listener-upper-48k.safetensors"))
    }

    /// Reads one from the bytes of its file, which is one as that of a [`PresenceNet`](super::PresenceNet).
    ///
    /// # Errors
    /// See [`PresenceNetError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PresenceNetError> {
        let (header, tensors): (HighBandPresenceNetHeader, SafeTensors) = tensor_file::read(bytes, &FORMAT)?;
        is_window(header.window_seconds)?;
        within("channels", header.channels, WIDEST)?;
        within_reach("dilations", &header.dilations)?;
        let mut layout = Layout::new();
        let first = layout.convolution([INPUTS * PAIR, header.channels], (1, 0), 1);
        let local = layout.convolutions(header.channels, (1, 0), &header.dilations);
        let last = layout.convolution([header.channels, UPPER * PAIR], (0, 0), 1);
        let layers: Vec<Convolution> = [&first].into_iter().chain(&local).chain([&last]).cloned().collect();
        let parameters = parameters(&tensors, &layers, 0..0, false)?;
        Ok(Self { header, first, local, last, parameters })
    }

    /// What it was made for and from.
    #[must_use]
    pub fn header(&self) -> &HighBandPresenceNetHeader {
        &self.header
    }

    /// The natural logarithm of the odds of speech in the bins above 8 kHz (bins x frames), given what was heard below and
    /// `|X|^2` above, of as many bins as there are. Bins above 18 kHz, or above the last whole band, have the odds of that
    /// band. Nothing, if there is no whole band or the bins below are not all of those up to 8 kHz.
    pub(crate) fn log_odds(&self, heard: &BandLogOdds, power_above: &[f32]) -> Option<Vec<f32>> {
        let frames = heard.odds.len() / BANDS;
        let bins = power_above.len().checked_div(frames)?;
        if heard.bands.present < BANDS || bins < WIDTH {
            return None;
        }
        let above = Bands::new(power_above, bins, &upper_edges(), Some(&heard.bands));
        let mut odds = self.forward(&input(heard, &above, frames));
        odds.truncate(UPPER * frames);
        for odds in odds.chunks_exact_mut(UPPER) {
            let top = odds[above.present - 1];
            odds[above.present..].fill(top);
        }
        Some(spread(&odds, &upper_edges(), bins))
    }

    /// The log odds, UPPER x frames, two frames for each of the input.
    fn forward(&self, input: &Grid) -> Vec<f32> {
        let mut near = self.first.forward(&self.parameters, input);
        rectify(&mut near);
        residual(&self.parameters, &self.local, &mut near);
        self.last.forward(&self.parameters, &near).values
    }
}

/// The input of the network: the odds and the levels below in groups of bands, and the features of every band above; two
/// frames side by side. An odd last frame is repeated.
fn input(heard: &BandLogOdds, above: &Bands, frames: usize) -> Grid {
    let mut grid = Grid::new(INPUTS * PAIR, 1, frames.div_ceil(PAIR));
    let levels: Vec<f32> = heard.bands.against_whole().collect();
    let mean = |group: &[f32]| group.iter().sum::<f32>() / SHARED as f32;
    let rows = grid.values.chunks_exact_mut(INPUTS);
    for (row, (odds, levels)) in rows.zip(heard.odds.chunks_exact(BANDS).zip(levels.chunks_exact(BANDS))) {
        for (group, (odds, levels)) in odds.chunks_exact(SHARED).zip(levels.chunks_exact(SHARED)).enumerate()
        {
            row[group] = mean(odds) / 4.0;
            row[GROUPS + group] = mean(levels);
        }
    }
    above.for_each(|frame, band, features| {
        for (feature, value) in features.into_iter().enumerate() {
            grid.values[frame * INPUTS + 2 * GROUPS + feature * UPPER + band] = value;
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

    fn heard(power: &[f32], odds: Vec<f32>) -> BandLogOdds {
        BandLogOdds { bands: Bands::new(power, BELOW, &edges(), None), odds }
    }

    #[test]
    fn the_odds_are_those_of_the_framework_that_learned_them() {
        let listener = HighBandPresenceNet::built_in().unwrap();
        let mut compared = 0;
        for bins in [BELOW + UPPER * WIDTH, BELOW + 9 * WIDTH + 5] {
            let power = spectrum(bins);
            let part = |range: std::ops::Range<usize>| -> Vec<f32> {
                power.chunks_exact(bins).flat_map(|frame| &frame[range.clone()]).copied().collect()
            };
            let odds: Vec<f32> = (0..48 * BANDS)
                .map(|at| 3.0 * (0.2 * (at / BANDS) as f32 + 0.1 * (at % BANDS) as f32).sin())
                .collect();
            let found = listener.log_odds(&heard(&part(0..BELOW), odds), &part(BELOW..bins)).unwrap();
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
    fn a_sliver_above_is_not_heard_and_silence_is() {
        let listener = HighBandPresenceNet::built_in().unwrap();
        let odds = |bins: usize, frames: usize| {
            let below = heard(&vec![0.0; BELOW * frames], vec![0.0; BANDS * frames]);
            listener.log_odds(&below, &vec![0.0; bins * frames])
        };
        assert!(odds(WIDTH - 1, 3).is_none() && odds(0, 3).is_none() && odds(10, 0).is_none());
        let found = odds(WIDTH, 3).unwrap();
        assert!(found.len() == 3 * WIDTH && found.iter().all(|odds| odds.is_finite()));
        assert_eq!(odds(1023, 1).unwrap().len(), 1023);
    }
}
