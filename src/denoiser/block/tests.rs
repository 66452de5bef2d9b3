//! Monte Carlo errors of whole blocks.

use super::{Request, Separator};
use crate::denoiser::{Denoiser, GainSettings, SamplingSettings, Settings};
use crate::inference::{GainMonitor, MonteCarloAccumulator};
use crate::model::{Dictionary, ModelSettings, NoiseModel};
use crate::random::SeedTree;
use crate::transform::FrameGrid;
use rand_distr::{Distribution, Exp1};
use std::ops::ControlFlow;

/// Gains from several seeds differ by as much as the standard errors.
#[test]
fn the_error_is_that_between_seeds() {
    const SEEDS: u64 = 4;
    let (bins, frames) = (257, 100);
    let grid = FrameGrid { bins, bin_hertz: 15.625, frame_seconds: 0.016 };
    let mut stream = SeedTree::new(1).rng(0);
    let power: Vec<f32> = (0..bins * frames)
        .map(|i| {
            let excess: f32 = Exp1.sample(&mut stream);
            // Bursts of something that is not the noise.
            let loud = (i / bins) % 20 < 8 && (i % bins) % 12 < 3;
            if loud { 20.0 * excess } else { excess }
        })
        .collect();
    for iterations in [20, 160] {
        let burn_in = iterations / 4;
        let sampling = SamplingSettings { iterations, burn_in, ..SamplingSettings::default() };
        let gain = GainSettings::model_only();
        let settings = Settings { sampling: Some(sampling), gain, ..Settings::default() };
        let separator = Separator::new(Dictionary::built_in().unwrap(), settings).unwrap();
        let runs: Vec<_> = (0..SEEDS)
            .map(|seed| {
                let request = Request::default();
                let seeds = SeedTree::new(seed);
                let separated = separator.separate(grid, &power, request, seeds, &mut (), None).unwrap();
                (separated.gain, separated.chain.monte_carlo)
            })
            .collect();
        let variance_at = |i: usize| {
            let mean = runs.iter().map(|(gain, _)| gain[i]).sum::<f32>() / SEEDS as f32;
            runs.iter().map(|(gain, _)| (gain[i] - mean).powi(2)).sum::<f32>() / (SEEDS - 1) as f32
        };
        let between = ((0..power.len()).map(variance_at).sum::<f32>() / power.len() as f32).sqrt();
        let mut all = MonteCarloAccumulator::default();
        runs.iter().for_each(|(_, found)| all.add(found));
        assert_eq!(all.gains, SEEDS * GainMonitor::GAINS as u64);
        let draws = (iterations - iterations / 4) as f64;
        assert!((1.0..=2.0 * draws).contains(&all.effective_draws()), "{}", all.effective_draws());
        let ratio = all.standard_error() / f64::from(between);
        // Computed as for independent draws, the error would be at most 0.3 of the truth.
        assert!((0.45..1.5).contains(&ratio), "{iterations} iterations: {ratio} of the truth");
    }
}

/// Settings may enable the network together with a model that it does not support.
#[test]
fn a_block_has_the_sweeps_of_the_network_that_is_used() {
    let mut stream = SeedTree::new(4).rng(0);
    let mut sweeps = |settings: Settings, bins: usize| {
        let grid = FrameGrid { bins, bin_hertz: 15.625, frame_seconds: 0.016 };
        let power: Vec<f32> = (0..bins * 8).map(|_| Exp1.sample(&mut stream)).collect();
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
        // A second separation reports 1 throughout.
        let (mut reports, mut last) = (0, 0.0);
        let mut count = |done: f64| {
            reports += usize::from(done > last);
            last = done;
            ControlFlow::Continue(())
        };
        let seeds = SeedTree::new(5);
        denoiser.separator.separate(grid, &power, Request::default(), seeds, &mut count, None).unwrap();
        reports
    };
    let normal = Settings { sampling: None, ..Settings::default() };
    let constant = NoiseModel::FixedSpectra { rank: 1 };
    let unfit = ModelSettings { noise: constant, ..ModelSettings::default() };
    for (settings, [with, without]) in [(normal, [8, 18]), (Settings::fast(), [2, 12])] {
        let alone = GainSettings { speech_presence: false, ..GainSettings::default() };
        assert_eq!(sweeps(settings.clone(), 257), with);
        assert_eq!(sweeps(Settings { gain: alone, ..settings.clone() }, 257), without);
        assert_eq!(sweeps(Settings { model: unfit.clone(), ..settings.clone() }, 257), without);
        // A bandwidth of 12 kHz, while the dictionary ends at 8 kHz.
        assert_eq!(sweeps(settings, 769), 12);
    }
}

/// The gain of a block of noise, in which the network finds no speech, with the learned weights of the pool and without.
#[test]
fn the_pool_is_changed_where_the_network_is_not_certain() {
    let (bins, frames) = (257, 120);
    let grid = FrameGrid { bins, bin_hertz: 15.625, frame_seconds: 0.016 };
    let mut stream = SeedTree::new(2).rng(0);
    let power: Vec<f32> = (0..bins * frames).map(|_| Exp1.sample(&mut stream)).collect();
    let [with, without] = [true, false].map(|learned_pool| {
        let gain = GainSettings { learned_pool, ..GainSettings::default() };
        let settings = Settings { gain, ..Settings::default() };
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
        let request = Request::default();
        let seeds = SeedTree::new(3);
        denoiser.separator.separate(grid, &power, request, seeds, &mut (), None).unwrap().gain
    });
    assert_ne!(with, without);
    assert!(with.iter().all(|gain| (0.0..=1.0).contains(gain)));
}
