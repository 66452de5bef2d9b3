//! Bands of the network, and its input features on them.

use super::lost_passages::Division;
use super::sizes::{BANDS, FEATURES, GROUP, PAIR};
use crate::kernels::convolution::Grid;
use crate::kernels::vector;
use std::ops::Range;

/// Bins below this one, 1.2 kHz, are bands of their own: they resolve the harmonics of every voice.
pub(crate) const FIRST_WIDE_BIN: usize = 76;
/// Bins up to 8 kHz.
const BINS: usize = 513;
/// Minimum power, as a fraction of the mean.
pub(super) const MIN_RELATIVE_POWER: f32 = 1e-9;
/// Minimum mean power; [`MIN_RELATIVE_POWER`] times it is not subnormal.
const SILENCE: f32 = 1e-28;

/// The first bin of every band, and the number of bins; logarithmic above the single bins.
pub(super) fn edges() -> [usize; BANDS + 1] {
    std::array::from_fn(|band| {
        if band < FIRST_WIDE_BIN {
            return band;
        }
        let position = (band - FIRST_WIDE_BIN) as f64 / (BANDS - FIRST_WIDE_BIN) as f64;
        (FIRST_WIDE_BIN as f64 * libm::pow(BINS as f64 / FIRST_WIDE_BIN as f64, position)).round_ties_even()
            as usize
    })
}

/// Number of the bands with these edges that a recording of `bins` bins has.
pub(super) fn present_bands(edges: &[usize], bins: usize) -> usize {
    edges[1..].iter().take_while(|&&end| end <= bins).count()
}

/// The mean powers of a frame in the bands with these edges.
pub(super) fn band_means(frame: &[f32], edges: &[usize]) -> impl Iterator<Item = f32> {
    edges.windows(2).map(|range| {
        let inside = &frame[range[0]..range[1]];
        inside.iter().sum::<f32>() / inside.len() as f32
    })
}

/// Powers on bands; a recording may lack the highest.
pub(super) struct Bands {
    /// Number of bands of the recording.
    pub present: usize,
    /// Log mean powers, bands x frames.
    levels: Vec<f32>,
    /// Reference of the levels: mean power.
    mean: f32,
}

/// Features of a level: relative to the whole recording; relative to the band's quiet level (its 10 % quantile over time);
/// and the quiet level relative to the whole.
pub(super) type Features = [f32; FEATURES];

/// The first feature.
fn relative_to_whole(level: f32, whole: f32) -> f32 {
    (level - whole) / 4.0
}

/// The features of a level of a band with this quiet level, in a recording of this mean.
pub(super) fn features_of(level: f32, quiet: f32, whole: f32) -> Features {
    [relative_to_whole(level, whole), (level - quiet) / 4.0 - 0.5, (quiet - whole) / 4.0 + 1.0]
}

impl Bands {
    /// The bands with these edges, of powers (bins x frames); relative to the mean of `whole`, or to their own.
    pub(super) fn new(power: &[f32], bins: usize, edges: &[usize], whole: Option<&Self>) -> Self {
        let present = present_bands(edges, bins);
        let frames = power.len() / bins;
        let mut levels = Vec::with_capacity(present * frames);
        for frame in power.chunks_exact(bins) {
            levels.extend(band_means(frame, &edges[..=present]));
        }
        let own = || levels.iter().map(|&x| f64::from(x)).sum::<f64>() / levels.len().max(1) as f64;
        let mean = whole.map_or_else(|| (own() as f32).max(SILENCE), |whole| whole.mean);
        let least = mean * MIN_RELATIVE_POWER;
        levels.iter_mut().for_each(|level| *level = vector::ln(*level + least));
        Self { present, levels, mean }
    }

    /// The powers in the bands within `bins`, divided by gains of these log odds (bands x frames).
    pub(super) fn divide(&self, odds: &[f32], bins: Range<usize>) -> Division {
        let edges = edges();
        let inside: Vec<usize> = (0..self.present)
            .filter(|&band| bins.contains(&edges[band]) && edges[band + 1] <= bins.end)
            .collect();
        let frames = self.levels.chunks_exact(self.present.max(1)).zip(odds.chunks_exact(BANDS));
        let divided = frames.map(|(levels, odds)| {
            inside.iter().fold((0.0, 0.0), |(kept, removed), &band| {
                let power = f64::from(vector::exp(levels[band])) * (edges[band + 1] - edges[band]) as f64;
                let gain = 1.0 / (1.0 + f64::from(vector::exp(-odds[band])));
                (kept + gain * gain * power, removed + (1.0 - gain) * (1.0 - gain) * power)
            })
        });
        let (kept, removed) = divided.unzip();
        Division { kept, removed }
    }

    /// Calls `show` with frame, band and features of every band in every frame.
    pub(super) fn for_each(&self, mut show: impl FnMut(usize, usize, Features)) {
        let frames = self.levels.len() / self.present.max(1);
        let whole = vector::ln(self.mean);
        let mut over_time = vec![0.0; frames];
        for band in 0..self.present {
            let levels = || self.levels[band..].iter().step_by(self.present);
            over_time.iter_mut().zip(levels()).for_each(|(value, &level)| *value = level);
            let quiet = quiet_level(&mut over_time);
            for (frame, level) in levels().enumerate() {
                show(frame, band, features_of(*level, quiet, whole));
            }
        }
    }

    /// The level of every band relative to the whole, its first feature: bands x frames.
    pub(super) fn relative_to_whole(&self) -> impl Iterator<Item = f32> {
        let whole = vector::ln(self.mean);
        self.levels.iter().map(move |&level| relative_to_whole(level, whole))
    }
}

/// The quiet level of a band: the 10 % quantile over time of at least one level. Changes their order.
pub(super) fn quiet_level(over_time: &mut [f32]) -> f32 {
    *over_time.select_nth_unstable_by(over_time.len() / 10, f32::total_cmp).1
}

/// The input of the network: the features of the recording's bands in `frames` frames. Missing bands are zero; an odd last frame
/// is repeated.
pub(super) fn features(bands: &Bands, frames: usize) -> Grid {
    let mut grid = Grid::new(FEATURES * PAIR * GROUP, BANDS / GROUP, frames.div_ceil(PAIR));
    let (row, channels) = (grid.row(), grid.channels);
    bands.for_each(|frame, band, features| {
        let repeated =
            if frame + 1 == frames { frame..frames.next_multiple_of(PAIR) } else { frame..frame + 1 };
        for t in repeated {
            let place = t / PAIR * row + band / GROUP * channels;
            for (feature, value) in features.into_iter().enumerate() {
                grid.values[place + (feature * PAIR + t % PAIR) * GROUP + band % GROUP] = value;
            }
        }
    });
    grid
}

/// Linear interpolation from band centres to bins: lower band and weight of the next one, per bin.
#[derive(Debug, Clone)]
pub(super) struct Interpolation(Vec<(usize, f32)>);

impl Interpolation {
    /// From bands with these edges to `bins` bins; constant beyond the outer centres.
    pub(super) fn new(edges: &[usize], bins: usize) -> Self {
        let last = edges.len() - 2;
        let centre = |band: usize| (edges[band] + edges[band + 1] - 1) as f32 / 2.0;
        let mut below = 0;
        let weights = (0..bins).map(|bin| {
            while below + 1 < last && centre(below + 1) <= bin as f32 {
                below += 1;
            }
            let weight = (bin as f32 - centre(below)) / (centre(below + 1) - centre(below));
            (below, weight.clamp(0.0, 1.0))
        });
        Self(weights.collect())
    }

    /// Appends the values on bins to `bins`.
    pub(super) fn extend(&self, bands: &[f32], bins: &mut Vec<f32>) {
        bins.extend(
            self.0.iter().map(|&(band, weight)| bands[band] + weight * (bands[band + 1] - bands[band])),
        );
    }
}
