//! Learning a dictionary from clean speech.

use super::separation::TILE_FRAMES;
use crate::model::{Factor, Impulses, MarginalTable, Mixture, SMALLEST_POWER, Workspace};
use crate::random::Streams;
use rand::RngExt;
use rayon::prelude::*;
use std::sync::Arc;

/// Groups of tiles whose sums are formed independently, whatever the number of threads.
const GROUPS: usize = 16;
/// The dispersion of the noise that is assumed beside clean speech of mean power one.
const BACKGROUND: f32 = 1e-7;

/// How to learn.
#[derive(Debug, Clone)]
pub struct TrainingSettings {
    /// Number of spectra.
    pub rank: usize,
    /// Characteristic exponent, in (0, 2].
    pub alpha: f64,
    /// Sweeps over the data.
    pub iterations: usize,
    /// Seed of the start.
    pub seed: u64,
}

struct Group {
    powers: Vec<Vec<f32>>,
    activations: Vec<Vec<f32>>,
    raise: Vec<f32>,
    lower: Vec<f32>,
}

/// Learns spectra (bins x rank, each of mean one) from powers `|X|^2` (bins x frames, mean near one).
pub fn learn(
    bins: usize,
    power: Vec<f32>,
    settings: &TrainingSettings,
    mut progress: impl FnMut(usize),
) -> Vec<f32> {
    let rank = settings.rank;
    let frames = power.len() / bins;
    let mut stream = Streams::new(settings.seed).stream(0);
    let exponent = (settings.alpha / 2.0) as f32;
    let mut spectra = Vec::with_capacity(bins * rank);
    for _ in 0..rank {
        let picks: [usize; 3] = std::array::from_fn(|_| stream.random_range(0..frames));
        for bin in 0..bins {
            let level: f32 = picks.iter().map(|t| power[t * bins + bin].max(1e-9).powf(exponent)).sum();
            spectra.push(level * stream.random_range(0.5..1.5));
        }
    }
    normalise(&mut spectra, bins);
    let mut mixture = Mixture {
        bins,
        speech: Factor { alpha: settings.alpha, spectra },
        noise: Factor { alpha: 2.0, spectra: vec![BACKGROUND; bins] },
    };
    let table = Arc::new(MarginalTable::new(settings.alpha, 2.0));
    let impulses = Impulses::Integrated(table);
    let columns = rank + 1;
    let tiles: Vec<_> = power
        .chunks(TILE_FRAMES * bins)
        .map(|power| {
            let mut activations = vec![0.0; power.len() / bins * columns];
            for (column, power) in activations.chunks_exact_mut(columns).zip(power.chunks_exact(bins)) {
                let level = power.iter().map(|x| x.powf(exponent)).sum::<f32>() / bins as f32;
                column.fill((level / rank as f32).max(1e-6));
                column[rank] = 1.0;
            }
            (power.iter().map(|x| x.max(SMALLEST_POWER as f32)).collect::<Vec<f32>>(), activations)
        })
        .collect();
    drop(power);
    let size = tiles.len().div_ceil(GROUPS).max(1);
    let mut groups: Vec<Group> = Vec::new();
    for (i, (power, activations)) in tiles.into_iter().enumerate() {
        if i % size == 0 {
            let zeros = vec![0.0; bins * rank];
            groups.push(Group { powers: vec![], activations: vec![], raise: zeros.clone(), lower: zeros });
        }
        if let Some(group) = groups.last_mut() {
            group.powers.push(power);
            group.activations.push(activations);
        }
    }
    for iteration in 0..settings.iterations {
        let shared = &mixture;
        groups.par_iter_mut().for_each(|group| {
            group.raise.fill(0.0);
            group.lower.fill(0.0);
            let mut workspace = Workspace::new(bins);
            let (mut raise, mut lower) = (Vec::new(), Vec::new());
            for (power, activations) in group.powers.iter().zip(&mut group.activations) {
                raise.resize(activations.len(), 0.0);
                lower.resize(activations.len(), 0.0);
                workspace.disperse(shared, activations);
                workspace.evaluate(shared, &impulses, power);
                workspace.add_speech_slopes(shared, activations, &mut group.raise, &mut group.lower);
                workspace.activation_slopes(shared, &mut raise, &mut lower);
                for (i, h) in activations.iter_mut().enumerate() {
                    if i % columns != rank {
                        *h = (*h * (raise[i] / lower[i].max(1e-20)).sqrt()).clamp(1e-9, 1e9);
                    }
                }
            }
        });
        for i in 0..bins * rank {
            let (raise, lower) = groups.iter().fold((0.0, 0.0), |(a, b), g| (a + g.raise[i], b + g.lower[i]));
            let w = &mut mixture.speech.spectra[i];
            *w = (*w * (raise / f32::max(lower, 1e-20)).sqrt()).clamp(1e-9, 1e9);
        }
        let scales = normalise(&mut mixture.speech.spectra, bins);
        groups.par_iter_mut().for_each(|group| {
            for column in group.activations.iter_mut().flat_map(|h| h.chunks_exact_mut(columns)) {
                column.iter_mut().zip(&scales).for_each(|(h, scale)| *h *= scale);
            }
        });
        progress(iteration + 1);
    }
    mixture.speech.spectra
}

/// Divides every spectrum by its mean, and returns the means.
fn normalise(spectra: &mut [f32], bins: usize) -> Vec<f32> {
    spectra
        .chunks_exact_mut(bins)
        .map(|spectrum| {
            let mean = (spectrum.iter().sum::<f32>() / bins as f32).max(1e-20);
            spectrum.iter_mut().for_each(|x| *x = (*x / mean).max(1e-9));
            mean
        })
        .collect()
}
