//! Inputs of the pool network, on bands and pairs of frames.

use super::super::BandLogOdds;
use super::super::bands::{edges, quiet_level};
use super::super::sizes::{BANDS, PAIR};
use crate::kernels::vector;

/// Number of inputs.
pub(super) const INPUTS: usize = 23;
/// Pairs of frames on each side, for means over 0.3, 1 and 3 s.
const NEAR_PAIRS: [usize; 3] = [4, 15, 47];
/// Bands on each side, for mean and standard deviation over 13 bands.
const NEAR_BANDS: usize = 6;
/// Term added to a fraction of power and to its complement, which bounds the log odds.
const MIN_FRACTION: f32 = 1e-3;

/// Log odds of speech of model and network, on the bands of the recording.
pub(super) struct Evidence<'a> {
    network: &'a BandLogOdds,
    /// Log odds of speech of the model, bands x frames.
    model: Vec<f32>,
}

impl<'a> Evidence<'a> {
    /// Computes the model's log odds on bands from its gain, bins x frames.
    pub(super) fn new(network: &'a BandLogOdds, gain: &[f32], bins: usize) -> Self {
        let edges = edges();
        let bands = network.bands.present;
        let mut own = vec![0.0; bins];
        let mut model = Vec::with_capacity(gain.len() / bins * bands);
        for frame in gain.chunks_exact(bins) {
            own.iter_mut().zip(frame).for_each(|(odds, &gain)| *odds = vector::log_odds(gain));
            model.extend(edges[..=bands].windows(2).map(|range| {
                let inside = &own[range[0]..range[1]];
                inside.iter().sum::<f32>() / inside.len() as f32
            }));
        }
        Self { network, model }
    }

    /// Number of bands.
    pub(super) fn bands(&self) -> usize {
        self.network.bands.present
    }

    /// Log levels relative to the mean of the block, bands x frames.
    fn levels(&self) -> impl Iterator<Item = f32> {
        levels(self.network)
    }

    /// Returns the inputs of every band and pair of frames, bands x pairs, given the [certainty](BandLogOdds). Log odds
    /// and natural logarithms are divided by 4. In order:
    ///
    /// - log odds of the model, of the network, and their absolute difference;
    /// - means of the model's log odds over 0.3, 1 and 3 s, and of the network's;
    /// - means of both over 13 bands, and standard deviations of model, network and level over these bands;
    /// - the level relative to the mean of the block, the level relative to the quiet level of the band (its 10 %
    ///   quantile), and the quiet level relative to the mean;
    /// - the certainty of the network;
    /// - log odds of the fractions of power that model and network keep in the pair, and in the block;
    /// - the position of the band.
    pub(super) fn inputs(&self, certainty: f32) -> Vec<[f32; INPUTS]> {
        let bands = self.bands();
        let odds = self.network.present_odds();
        let levels: Vec<f32> = self.levels().collect();
        let [model, network, level] = [&self.model, &odds, &levels].map(|values| paired(values, bands));
        let quiet = quiet_levels(&level, bands);
        let [kept_model, kept_network] = [&model, &network].map(|odds| Kept::new(odds, &level, bands));
        let over_pairs = |values: &[f32]| NEAR_PAIRS.map(|reach| near_pairs(values, bands, reach));
        let (model_long, network_long) = (over_pairs(&model), over_pairs(&network));
        let [model_wide, network_wide, level_wide] =
            [&model, &network, &level].map(|values| near_bands(values, bands));
        (0..level.len())
            .map(|i| {
                let (pair, band) = (i / bands, i % bands);
                let mut values = [0.0; INPUTS];
                let found = [model[i], network[i], (model[i] - network[i]).abs()].into_iter();
                let long = model_long.iter().chain(&network_long).map(|means| means[i]);
                let wide =
                    [model_wide[i].0, network_wide[i].0, model_wide[i].1, network_wide[i].1, level_wide[i].1];
                let levels = [level[i], level[i] - quiet[band] - 2.0, quiet[band] + 4.0];
                let rest = [
                    certainty,
                    kept_model.in_pairs[pair],
                    kept_network.in_pairs[pair],
                    kept_model.in_all,
                    kept_network.in_all,
                    band as f32 / BANDS as f32 * 8.0 - 4.0,
                ];
                let all = found.chain(long).chain(wide).chain(levels).chain(rest);
                values.iter_mut().zip(all).for_each(|(to, value)| *to = value / 4.0);
                values
            })
            .collect()
    }
}

fn levels(network: &BandLogOdds) -> impl Iterator<Item = f32> {
    network.bands.relative_to_whole().map(|level| 4.0 * level)
}

/// Writes the data for training to the trace: log odds of the model on bins (from its gain, bins x frames) and of the
/// network on bands, and levels, in hundredths.
pub(crate) fn trace_pool(network: &BandLogOdds, gain: &[f32], bins: usize) {
    if !tracing::enabled!(tracing::Level::TRACE) {
        return;
    }
    let hundredths = |x: f32| (100.0 * x).round_ties_even() as i32;
    let bands = network.bands.present;
    let model: Vec<i32> = gain.iter().map(|&gain| hundredths(vector::log_odds(gain))).collect();
    let levels: Vec<i32> = levels(network).map(hundredths).collect();
    let network: Vec<i32> = network.odds.iter().map(|&odds| hundredths(odds)).collect();
    tracing::trace!(bins, bands, ?model, ?network, ?levels, "block");
}

/// Averages values (bands x frames) over pairs of frames. An odd last frame stays unchanged.
fn paired(values: &[f32], bands: usize) -> Vec<f32> {
    let mean = |frames: &[f32], band: usize| {
        let count = frames.len() / bands;
        (0..count).map(|frame| frames[frame * bands + band]).sum::<f32>() / count as f32
    };
    let pairs = values.chunks(PAIR * bands.max(1));
    pairs.flat_map(|frames| (0..bands).map(move |band| mean(frames, band))).collect()
}

/// The 10 % quantile of each band over the pairs.
fn quiet_levels(level: &[f32], bands: usize) -> Vec<f32> {
    let quantile =
        |band: usize| quiet_level(&mut level[band..].iter().step_by(bands).copied().collect::<Vec<_>>());
    (0..bands).map(quantile).collect()
}

/// Returns means over each pair and up to `reach` pairs on both sides.
fn near_pairs(values: &[f32], bands: usize, reach: usize) -> Vec<f32> {
    let pairs = values.len() / bands.max(1);
    let mut sums = vec![0.0_f64; bands];
    let mut means = Vec::with_capacity(values.len());
    let row = |pair: usize| &values[pair * bands..(pair + 1) * bands];
    let add = |sums: &mut [f64], pair: usize, sign: f64| {
        sums.iter_mut().zip(row(pair)).for_each(|(sum, &value)| *sum += sign * f64::from(value));
    };
    (0..reach.min(pairs)).for_each(|pair| add(&mut sums, pair, 1.0));
    for pair in 0..pairs {
        if pair + reach < pairs {
            add(&mut sums, pair + reach, 1.0);
        }
        if pair > reach {
            add(&mut sums, pair - reach - 1, -1.0);
        }
        let count = (pair + reach + 1).min(pairs) - pair.saturating_sub(reach);
        means.extend(sums.iter().map(|sum| (sum / count as f64) as f32));
    }
    means
}

/// Returns mean and standard deviation over each band and up to [`NEAR_BANDS`] bands on both sides.
fn near_bands(values: &[f32], bands: usize) -> Vec<(f32, f32)> {
    let mut found = Vec::with_capacity(values.len());
    for row in values.chunks_exact(bands.max(1)) {
        found.extend((0..bands).map(|band| {
            let near = &row[band.saturating_sub(NEAR_BANDS)..(band + NEAR_BANDS + 1).min(bands)];
            let mean = near.iter().sum::<f32>() / near.len() as f32;
            let square = near.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>();
            (mean, (square / near.len() as f32).sqrt())
        }));
    }
    found
}

/// Log odds of the fraction of power that is kept.
struct Kept {
    in_pairs: Vec<f32>,
    in_all: f32,
}

impl Kept {
    /// Computes the fractions from log odds and log levels, bands x pairs.
    fn new(odds: &[f32], level: &[f32], bands: usize) -> Self {
        let edges = edges();
        let (mut kept_in_all, mut power_in_all) = (0.0, 0.0);
        let pairs = odds.chunks_exact(bands.max(1)).zip(level.chunks_exact(bands.max(1)));
        let in_pairs = pairs.map(|(odds, level)| {
            let (mut kept, mut whole) = (0.0, 0.0);
            for ((odds, level), range) in odds.iter().zip(level).zip(edges.windows(2)) {
                let power = vector::exp(*level) * (range[1] - range[0]) as f32;
                whole += f64::from(power);
                kept += f64::from(power * vector::logistic(*odds));
            }
            kept_in_all += kept;
            power_in_all += whole;
            fraction_odds(kept, whole)
        });
        let in_pairs = in_pairs.collect();
        Self { in_pairs, in_all: fraction_odds(kept_in_all, power_in_all) }
    }
}

fn fraction_odds(kept: f64, whole: f64) -> f32 {
    let fraction = (kept / whole.max(f64::MIN_POSITIVE)).min(1.0) as f32;
    vector::ln((fraction + MIN_FRACTION) / (1.0 - fraction + MIN_FRACTION))
}
