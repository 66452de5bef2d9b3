//! Simulation-based calibration of the whole posterior (Talts, Betancourt, Simpson, Vehtari and Gelman 2018, "Validating
//! Bayesian inference algorithms with simulation-based calibration"). Unknowns are drawn from their priors, and powers
//! from the unknowns. The sweeps of the denoiser then draw from the posterior of each simulated recording. If inference
//! is correct, the rank of the true value of any quantity among its draws is uniform.
//!
//! Correlated draws spread the ranks too widely, as draws with too little variance do. Each test therefore thins the
//! draws as far as its sampler needs. The figures of 1000 recordings are in `eval/results/calibration.md`.

use super::*;
use crate::inference::tests::{ALPHA, start};
use crate::model::NoiseModel;
use crate::model::{Factor, Mixture, Prior, SampledVariables};
use crate::stable::PositiveStable;
use rand_distr::{Distribution, Exp1, Gamma};
use std::sync::Arc;

const BINS: usize = 6;
const FRAMES: usize = 8;
/// Bins x rank.
const DICTIONARY: [f32; 2 * BINS] = [1.0, 0.8, 0.5, 0.2, 0.1, 0.05, 0.1, 0.3, 0.6, 0.9, 0.7, 0.3];
/// Shape and rate of the gamma prior of activations and noise spectra.
const SHAPE: f64 = 2.0;
const RATE: f64 = 2.0;
/// Number of posterior draws of a recording, and of histogram cells of their ranks.
const DRAWS: usize = 31;
const CELLS: usize = 8;
/// Names of the ranked quantities.
const NAMES: [&str; 7] = [
    "speech level",
    "noise level",
    "noise tilt",
    "one activation",
    "mean gain",
    "impulses of speech",
    "impulses of noise",
];

/// Settings of the sampling.
#[derive(Clone, Copy)]
struct Run {
    sampler: SamplerKind,
    impulses: ImpulseMode,
    /// `None` for the default of the denoiser.
    step_size: Option<f64>,
    noise_rank: usize,
    /// Sweeps from one draw to the next of a chain.
    thinning: usize,
}

/// Unknowns of a recording.
struct Unknowns {
    /// Rank x frames.
    activations: Vec<f32>,
    /// Bins x noise rank.
    spectra: Vec<f32>,
}

impl Unknowns {
    fn draw(noise_rank: usize, streams: SeedTree) -> Self {
        let law = Gamma::new(SHAPE, 1.0 / RATE).unwrap();
        let mut stream = streams.rng(0);
        let mut draw =
            |count: usize| -> Vec<f32> { (0..count).map(|_| law.sample(&mut stream) as f32).collect() };
        Self { activations: draw((2 + noise_rank) * FRAMES), spectra: draw(BINS * noise_rank) }
    }

    fn mixture(&self) -> Mixture<f32> {
        Mixture {
            bins: BINS,
            speech: Factor { alpha: ALPHA.0, spectra: DICTIONARY.to_vec() },
            noise: Factor { alpha: ALPHA.1, spectra: self.spectra.clone() },
        }
    }
}

/// The dispersions of speech and of noise, bins x frames, by direct summation.
fn dispersions(mixture: &Mixture<f32>, activations: &[f32]) -> [Vec<f64>; 2] {
    let (rank, split) = (mixture.rank(), mixture.speech_rank());
    let product = |spectra: &[f32], rows: std::ops::Range<usize>| -> Vec<f64> {
        let at = |column: &[f32], bin: usize| {
            rows.clone().enumerate().map(|(k, row)| f64::from(spectra[k * BINS + bin] * column[row])).sum()
        };
        activations
            .chunks_exact(rank)
            .flat_map(|column| (0..BINS).map(|bin| at(column, bin)).collect::<Vec<f64>>())
            .collect()
    };
    [product(&mixture.speech.spectra, 0..split), product(&mixture.noise.spectra, split..rank)]
}

/// The quantities of [`NAMES`]; those of impulses only if impulses are sampled.
fn quantities(
    mixture: &Mixture<f32>,
    activations: &[f32],
    power: &[f32],
    table: &MarginalTable,
    impulses: Option<&SampledVariables<f32>>,
) -> Vec<f64> {
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / power.len() as f64;
    let [speech, noise] = dispersions(mixture, activations);
    let tilt = noise.chunks_exact(BINS).map(|frame| (frame[0] / frame[BINS - 1]).ln()).sum::<f64>();
    let gain = |i: usize| {
        let ratio = |lambda: f64, alpha: f64| (f64::from(power[i]).ln() - 2.0 / alpha * lambda.ln()) as f32;
        f64::from(table.expectations(ratio(speech[i], ALPHA.0), ratio(noise[i], ALPHA.1)).gain)
    };
    let mut found = vec![
        mean(&mut speech.iter().map(|x| x.ln())),
        mean(&mut noise.iter().map(|x| x.ln())),
        tilt,
        f64::from(activations[3 * mixture.rank()]),
        mean(&mut (0..power.len()).map(gain)),
    ];
    if let Some(SampledVariables { speech, noise }) = impulses {
        found.extend([speech, noise].map(|values| mean(&mut values.iter().map(|&x| f64::from(x).ln()))));
    }
    found
}

/// The ranks of the true quantities among the draws of one simulated recording, for inference by `table`.
fn ranks(run: &Run, table: &Arc<MarginalTable>, exact: &MarginalTable, streams: SeedTree) -> Vec<usize> {
    let truth = Unknowns::draw(run.noise_rank, streams.child(0));
    let mixture = truth.mixture();
    let mut stream = streams.rng(1);
    let [speech, noise] = dispersions(&mixture, &truth.activations);
    let mut impulses = |alpha: f64| -> Vec<f32> {
        let law = PositiveStable::new(alpha / 2.0).unwrap();
        (0..speech.len()).map(|_| Distribution::<f64>::sample(&law, &mut stream) as f32).collect()
    };
    let drawn = SampledVariables { speech: impulses(ALPHA.0), noise: impulses(ALPHA.1) };
    let power: Vec<f32> = (0..speech.len())
        .map(|i| {
            let variance = f64::from(drawn.speech[i]) * speech[i].powf(2.0 / ALPHA.0)
                + f64::from(drawn.noise[i]) * noise[i].powf(2.0 / ALPHA.1);
            let square: f64 = Exp1.sample(&mut stream);
            (variance * square) as f32
        })
        .collect();
    let prior = Prior::Gamma { shape: SHAPE, rate: RATE };
    let start = start(BINS, &DICTIONARY, NoiseModel::FixedSpectra { rank: run.noise_rank }, prior);
    let mut separation = Separation::new(&start, &power, table, streams.child(2));
    // Chains start from the prior, as far from the truth as any draw.
    let first = Unknowns::draw(run.noise_rank, streams.child(3));
    separation.tiles[0].activations.copy_from_slice(&first.activations);
    separation.mixture.noise.spectra.copy_from_slice(&first.spectra);
    let settings = SamplingSettings {
        sampler: run.sampler,
        impulses: run.impulses,
        step_size: run.step_size,
        ..SamplingSettings::default()
    };
    let mut gibbs = Gibbs::new(&separation, &settings, streams.child(4)).unwrap();
    let between = run.thinning * gibbs.noise.sampler.chains();
    gibbs.adapt(true);
    (0..10 * between).for_each(|_| gibbs.sweep(&mut separation));
    gibbs.adapt(false);
    let is_drawn = run.impulses == ImpulseMode::Sampled;
    let true_values = quantities(&mixture, &truth.activations, &power, exact, is_drawn.then_some(&drawn));
    let mut ranks = vec![0; true_values.len()];
    for _ in 0..DRAWS {
        let mut chain = 0;
        for _ in 0..between {
            chain = gibbs.noise.sampler.next_chain();
            gibbs.sweep(&mut separation);
        }
        let impulses = gibbs.tiles[0].sampled.as_ref().map(|sampled| sampled.values(chain));
        let activations = &separation.tiles[0].activations;
        let drawn = quantities(&separation.mixture, activations, &power, exact, impulses);
        for (rank, (drawn, truth)) in ranks.iter_mut().zip(drawn.iter().zip(&true_values)) {
            *rank += usize::from(drawn < truth);
        }
    }
    ranks
}

/// Statistics of the ranks of one quantity.
struct Calibration {
    name: &'static str,
    /// The chi-square of their counts, with one degree of freedom less than [`CELLS`].
    chi_square: f64,
    /// Distance of their mean from the middle, in standard deviations of uniform ranks: about the bias in posterior
    /// standard deviations.
    bias: f64,
    /// Ratio of their standard deviation to that of uniform ranks: above one if draws have too little variance.
    spread: f64,
}

/// Calibrates on `recordings` recordings; inference uses `table_alphas` as exponents.
fn calibrate(run: Run, recordings: usize, table_alphas: (f64, f64)) -> Vec<Calibration> {
    let exact = MarginalTable::new(ALPHA.0, ALPHA.1);
    let table = Arc::new(MarginalTable::new(table_alphas.0, table_alphas.1));
    let streams = SeedTree::new(20);
    let ranks: Vec<Vec<usize>> = (0..recordings as u64)
        .into_par_iter()
        .map(|k| ranks(&run, &table, &exact, streams.child(k)))
        .collect();
    let of_quantity = |(index, name): (usize, &'static str)| {
        let values: Vec<usize> = ranks.iter().map(|ranks| ranks[index]).collect();
        let mut counts = [0.0; CELLS];
        values.iter().for_each(|rank| counts[rank * CELLS / (DRAWS + 1)] += 1.0);
        let expected = recordings as f64 / CELLS as f64;
        let deviation = (((DRAWS + 1).pow(2) - 1) as f64 / 12.0).sqrt();
        let off = |&rank: &usize| (rank as f64 - DRAWS as f64 / 2.0) / deviation;
        let bias = values.iter().map(off).sum::<f64>() / recordings as f64;
        let square = values.iter().map(|rank| (off(rank) - bias).powi(2)).sum::<f64>() / recordings as f64;
        Calibration {
            name,
            chi_square: counts.iter().map(|count| (count - expected).powi(2) / expected).sum(),
            bias,
            spread: square.sqrt(),
        }
    };
    NAMES.into_iter().enumerate().take(ranks[0].len()).map(of_quantity).collect()
}

/// The 99.99 % quantile of the chi-square distribution with 7 degrees of freedom, for a dozen tested values.
const MAX_CHI_SQUARE: f64 = 29.9;

const HMC: Run = Run {
    sampler: SamplerKind::Hmc,
    impulses: ImpulseMode::Integrated,
    step_size: None,
    noise_rank: 1,
    thinning: 6,
};
const HAMCMC: Run = Run { sampler: SamplerKind::Hamcmc, thinning: 32, ..HMC };

/// Hamiltonian Monte Carlo is exact: its ranks are uniform, but not if inference assumes another stable law.
#[test]
fn ranks_of_exact_draws_are_uniform() {
    let right = calibrate(HMC, 240, ALPHA);
    for Calibration { name, chi_square, bias, spread } in &right {
        assert!(*chi_square < MAX_CHI_SQUARE, "{name}: {chi_square:.1}, {bias:.2}, {spread:.2}");
    }
    let wrong = calibrate(HMC, 240, (ALPHA.0, 1.4));
    let most = wrong.iter().map(|found| found.chi_square).fold(0.0, f64::max);
    assert!(most > MAX_CHI_SQUARE, "{most}");
}

/// HAMCMC at the step size of the denoiser rejects nothing, and its bias is too small to be detected.
#[test]
fn ranks_of_hamcmc_are_uniform() {
    for Calibration { name, chi_square, bias, spread } in calibrate(HAMCMC, 240, ALPHA) {
        assert!(chi_square < MAX_CHI_SQUARE, "{name}: {chi_square:.1}, {bias:.2}, {spread:.2}");
    }
}

/// Calibrates on many recordings and prints the figures, which are in `eval/results/calibration.md`.
fn many_recordings(name: &str, run: Run) -> Vec<Calibration> {
    let found = calibrate(run, 1000, ALPHA);
    println!("{name}");
    for Calibration { name, chi_square, bias, spread } in &found {
        println!("  {name:20} chi-square {chi_square:6.1} bias {bias:6.3} spread {spread:5.3}");
    }
    found
}

#[test]
#[ignore = "takes minutes"]
fn many_recordings_by_exact_samplers() {
    let runs = [
        ("HMC", HMC),
        ("HMC, two noise spectra", Run { noise_rank: 2, ..HMC }),
        ("HMC, impulses drawn", Run { impulses: ImpulseMode::Sampled, thinning: 20, ..HMC }),
    ];
    for (sampler, run) in runs {
        for Calibration { name, chi_square, .. } in many_recordings(sampler, run) {
            assert!(chi_square < MAX_CHI_SQUARE, "{sampler}, {name}: {chi_square:.1}");
        }
    }
}

/// These samplers have a step-size bias or correlated draws, so their ranks need not be uniform.
#[test]
#[ignore = "takes minutes"]
fn many_recordings_by_other_samplers() {
    let sgld = Run { sampler: SamplerKind::Sgld, thinning: 60, ..HMC };
    let runs = [
        ("HAMCMC 0.05", HAMCMC),
        ("HAMCMC 0.05, draws a quarter as far apart", Run { thinning: 8, ..HAMCMC }),
        ("HAMCMC 0.0125, draws a quarter as far apart", Run { step_size: Some(0.0125), ..HAMCMC }),
        ("HAMCMC 0.05, two noise spectra", Run { noise_rank: 2, ..HAMCMC }),
        ("SGLD 0.005", sgld),
        ("SGLD 0.02", Run { step_size: Some(0.02), thinning: 30, ..sgld }),
    ];
    for (sampler, run) in runs {
        many_recordings(sampler, run);
    }
}

/// Each of the interleaved chains is a complete state, its impulse variables included.
#[test]
fn a_sweep_moves_the_impulses_of_its_own_chain() {
    let table = Arc::new(MarginalTable::new(ALPHA.0, ALPHA.1));
    let prior = Prior::Gamma { shape: SHAPE, rate: RATE };
    let start = start(BINS, &DICTIONARY, NoiseModel::FixedSpectra { rank: 1 }, prior);
    let power = vec![1.0; BINS * FRAMES];
    let mut separation = Separation::new(&start, &power, &table, SeedTree::new(1));
    let settings = SamplingSettings { impulses: ImpulseMode::Sampled, ..SamplingSettings::default() };
    let mut gibbs = Gibbs::new(&separation, &settings, SeedTree::new(2)).unwrap();
    let chains = gibbs.noise.sampler.chains();
    let values = |gibbs: &Gibbs| -> Vec<Vec<f32>> {
        let sampled = gibbs.tiles[0].sampled.as_ref().unwrap();
        (0..chains).map(|chain| sampled.values(chain).speech.clone()).collect()
    };
    for sweep in 0..2 * chains {
        let before = values(&gibbs);
        gibbs.sweep(&mut separation);
        let moved: Vec<bool> = before.iter().zip(&values(&gibbs)).map(|(a, b)| a != b).collect();
        assert!((0..chains).all(|chain| moved[chain] == (chain == sweep % chains)), "{sweep}: {moved:?}");
    }
}
