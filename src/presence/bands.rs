//! Bands of the network, and its input features on them.

use super::lost_passages::Division;
use super::sizes::{BANDS, FEATURES, GROUP, PAIR};
use crate::kernels::convolution::Grid;
use crate::kernels::vector;
use std::ops::Range;

/// First bin of the wide bands, at 1.2 kHz. Every bin below is a band, to resolve the harmonics of every voice.
pub(crate) const FIRST_WIDE_BIN: usize = 76;
/// Bins up to 8 kHz.
const BINS: usize = 513;
/// Minimum power, as a fraction of the mean.
pub(super) const MIN_RELATIVE_POWER: f32 = 1e-9;
/// Minimum mean power. Its product with [`MIN_RELATIVE_POWER`] is not subnormal.
const SILENCE: f32 = 1e-28;

/// Returns the first bin of every band, and the end of the last band; logarithmic from [`FIRST_WIDE_BIN`] on.
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

/// Returns the number of bands with these edges that lie completely within `bins` bins.
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

/// Log powers on bands. A recording may lack the highest bands.
pub(super) struct Bands {
    /// Number of bands of the recording.
    pub present: usize,
    /// Log mean powers, bands x frames.
    levels: Vec<f32>,
    /// Mean power, the reference of the features.
    mean: f32,
}

/// Features of a level: the level relative to the mean of the recording, the level relative to the band's quiet level
/// (its 10 % quantile over time), and the quiet level relative to the mean.
pub(super) type Features = [f32; FEATURES];

/// Computes the first feature.
fn relative_to_whole(level: f32, whole: f32) -> f32 {
    (level - whole) / 4.0
}

/// Computes the features of a level, from the band's quiet level and the mean `whole` of the recording, all log powers.
pub(super) fn features_of(level: f32, quiet: f32, whole: f32) -> Features {
    [relative_to_whole(level, whole), (level - quiet) / 4.0 - 0.5, (quiet - whole) / 4.0 + 1.0]
}

impl Bands {
    /// Computes log powers in the bands with these edges from powers (bins x frames). The reference is the mean of
    /// `whole`, or their own mean without it.
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

    /// Splits the power in the bands within `bins` into kept and removed power, by gains of these log odds (bands x
    /// frames).
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

    /// Returns the first feature of every level, relative to the mean of the recording: bands x frames.
    pub(super) fn relative_to_whole(&self) -> impl Iterator<Item = f32> {
        let whole = vector::ln(self.mean);
        self.levels.iter().map(move |&level| relative_to_whole(level, whole))
    }
}

/// Returns the quiet level of a band, the 10 % quantile over time of at least one level. Reorders the levels.
pub(super) fn quiet_level(over_time: &mut [f32]) -> f32 {
    *over_time.select_nth_unstable_by(over_time.len() / 10, f32::total_cmp).1
}

/// Builds the input of the network: the features of the recording's bands in `frames` frames. Missing bands are zero;
/// an odd last frame is repeated.
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

/// Linear interpolation from band centres to bins: lower band and weight of the next band, per bin.
#[derive(Debug, Clone)]
pub(super) struct Interpolation(Vec<(usize, f32)>);

impl Interpolation {
    /// Creates an interpolation from bands with these edges to `bins` bins; constant beyond the outer centres.
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

    /// Appends the values of `bands`, interpolated to bins, to `bins`.
    pub(super) fn extend(&self, bands: &[f32], bins: &mut Vec<f32>) {
        bins.extend(
            self.0.iter().map(|&(band, weight)| bands[band] + weight * (bands[band + 1] - bands[band])),
        );
    }
}
