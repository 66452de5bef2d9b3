//! Groups of frames, their statistics, and initial spectra.

use super::dictionaries::TrainingSettings;
use crate::inference::em::multiply;
use crate::inference::state::TILE_FRAMES;
use crate::kernels::vector;
use crate::model::{ImpulseVariables, MarginalTable, Mixture, Prior, Workspace};
use crate::random::SeededRng;
use crate::samplers::distributed::{Communicator, pack, unpack};
use rand::RngExt;
use std::ops::Range;

/// Number of groups; tiles of a group share one copy of the statistics.
const GROUPS: usize = 16;
/// Maximum tiles of a group. Beyond `GROUPS` full groups (18.6 hours at the default hop) there are more groups.
const MAX_GROUP_TILES: usize = 1 << 13;

/// Tiles that share one copy of the statistics.
pub(super) struct Group {
    /// Powers (bins x frames) and activations (rank + 1 x frames) of each tile.
    pub tiles: Vec<(Vec<f32>, Vec<f32>)>,
    numerator: Vec<f32>,
    denominator: Vec<f32>,
}

/// Number of frames per group; depends only on the total number of frames, `frames`.
pub(super) fn group_frames(frames: usize) -> usize {
    TILE_FRAMES * frames.div_ceil(TILE_FRAMES).div_ceil(GROUPS).clamp(1, MAX_GROUP_TILES)
}

/// The section of `size` statistics that process `rank` of `processes` sums.
fn section(rank: usize, size: usize, processes: usize) -> Range<usize> {
    rank * size / processes..(rank + 1) * size / processes
}

/// Sums the statistics of all groups of all processes, group by group: `size` numerators and `size` denominators of the
/// spectra. Each process sums one section for all processes.
pub(super) fn sum_in_order(
    groups: &[Group],
    size: usize,
    processes: &mut dyn Communicator,
) -> (Vec<f32>, Vec<f32>) {
    let count = processes.ranks();
    let outgoing = |to: usize| {
        let parts = groups.iter().flat_map(|group| [&group.numerator, &group.denominator]);
        (to, parts.flat_map(|part| pack(&part[section(to, size, count)])).collect())
    };
    let all: Vec<usize> = (0..count).collect();
    let own = section(processes.rank(), size, count);
    let mut sums = (vec![0.0_f32; own.len()], vec![0.0_f32; own.len()]);
    for message in processes.exchange(all.iter().map(|&to| outgoing(to)).collect(), &all) {
        for group in unpack::<f32>(&message).chunks_exact((2 * own.len()).max(1)) {
            let (numerator, denominator) = group.split_at(own.len());
            sums.0.iter_mut().zip(numerator).for_each(|(sum, x)| *sum += x);
            sums.1.iter_mut().zip(denominator).for_each(|(sum, x)| *sum += x);
        }
    }
    sums.0.append(&mut sums.1);
    let mut whole = (Vec::with_capacity(size), Vec::with_capacity(size));
    for message in processes.all_gather(&pack(&sums.0)) {
        let sums: Vec<f32> = unpack(&message);
        let (numerator, denominator) = sums.split_at(sums.len() / 2);
        whole.0.extend_from_slice(numerator);
        whole.1.extend_from_slice(denominator);
    }
    whole
}

impl Group {
    /// Updates the activations of all tiles, and sums the update terms of the spectra.
    pub(super) fn sweep(&mut self, mixture: &Mixture<f32>, table: &MarginalTable, prior: Prior) {
        let (columns, split) = (mixture.rank(), mixture.speech_rank());
        self.numerator.fill(0.0);
        self.denominator.fill(0.0);
        let mut workspace = Workspace::default();
        let (mut numerator, mut denominator) = (Vec::new(), Vec::new());
        for (power, activations) in &mut self.tiles {
            numerator.resize(activations.len(), 0.0);
            denominator.resize(activations.len(), 0.0);
            let mut dispersed = workspace.disperse(mixture, activations);
            let terms = dispersed.evaluate(ImpulseVariables::Integrated(table), power).update_terms();
            terms.add_speech(&mut self.numerator, &mut self.denominator);
            terms.activations(&mut numerator, &mut denominator);
            let updates = numerator.chunks_exact(columns).zip(denominator.chunks_exact_mut(columns));
            for (column, (numerator, denominator)) in activations.chunks_exact_mut(columns).zip(updates) {
                prior.add_gradient(&column[..split], &mut denominator[..split]);
                multiply(&mut column[..split], numerator, denominator, 0.5);
            }
        }
    }
}

/// Divides powers (bins x frames), whole groups of a corpus of `frames` frames, into groups of tiles. All activations
/// of a frame start equal.
pub(super) fn groups(bins: usize, power: &[f32], frames: usize, rank: usize, alpha: f64) -> Vec<Group> {
    let half_alpha = (alpha / 2.0) as f32;
    power
        .chunks(bins * group_frames(frames))
        .map(|power| Group {
            tiles: power
                .chunks(TILE_FRAMES * bins)
                .map(|power| {
                    let mut activations = vec![1.0; power.len() / bins * (rank + 1)];
                    for (column, power) in
                        activations.chunks_exact_mut(rank + 1).zip(power.chunks_exact(bins))
                    {
                        let level =
                            power.iter().map(|&x| vector::powf(x, half_alpha)).sum::<f32>() / bins as f32;
                        column[..rank].fill(level / rank as f32);
                    }
                    (power.to_vec(), activations)
                })
                .collect(),
            numerator: vec![0.0; bins * rank],
            denominator: vec![0.0; bins * rank],
        })
        .collect()
}

/// Initial spectra: each the mean of three random frames, with jitter. This process has the powers of the frames
/// `held`, out of `frames`.
pub(super) fn first_spectra(
    bins: usize,
    power: &[f32],
    held: &Range<usize>,
    frames: usize,
    settings: &TrainingSettings,
    rng: &mut SeededRng,
    processes: &mut dyn Communicator,
) -> Vec<f32> {
    let draw = |_| -> ([usize; 3], Vec<f32>) {
        let picks = std::array::from_fn(|_| rng.random_range(0..frames));
        (picks, (0..bins).map(|_| rng.random_range(0.5..1.5)).collect())
    };
    let draws: Vec<_> = (0..settings.rank).map(draw).collect();
    let mut picks: Vec<usize> = draws.iter().flat_map(|(picks, _)| *picks).collect();
    picks.sort_unstable();
    picks.dedup();
    let own = picks.iter().filter(|pick| held.contains(pick));
    let own: Vec<u8> = own.flat_map(|pick| pack(&power[(pick - held.start) * bins..][..bins])).collect();
    // Processes hold frames in order, so the concatenated messages are in the order of the picks.
    let picked: Vec<f32> =
        processes.all_gather(&own).iter().flat_map(|message| unpack::<f32>(message)).collect();
    let half_alpha = (settings.alpha / 2.0) as f32;
    let mut spectra = Vec::with_capacity(bins * settings.rank);
    for (frames, jitters) in &draws {
        let columns = frames.map(|frame| picks.partition_point(|&pick| pick < frame) * bins);
        for (bin, jitter) in jitters.iter().enumerate() {
            let level = |&column: &usize| vector::powf(picked[column + bin].max(1e-9), half_alpha);
            spectra.push(columns.iter().map(level).sum::<f32>() * jitter);
        }
    }
    normalise(&mut spectra, bins);
    spectra
}

/// Divides each spectrum by its mean, and returns the means.
pub(super) fn normalise(spectra: &mut [f32], bins: usize) -> Vec<f32> {
    spectra
        .chunks_exact_mut(bins)
        .map(|spectrum| {
            let mean = (spectrum.iter().sum::<f32>() / bins as f32).max(1e-20);
            spectrum.iter_mut().for_each(|x| *x = (*x / mean).max(1e-9));
            mean
        })
        .collect()
}
