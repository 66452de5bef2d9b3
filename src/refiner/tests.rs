//! The refiner's gradients by differences, what it learns and leaves, and files that are none.

use super::learning::{COMPRESSED, Change, Example, Learning};
use super::network::Network;
use super::*;
use crate::kernels::convolution::{Convolution, Grid};
use crate::random::{SeedTree, SeededRng};
use crate::samplers::distributed::Local;
use rand::RngExt;
use rand_distr::StandardNormal;

fn header(channels: usize) -> RefinerHeader {
    RefinerHeader { window_seconds: 0.064, channels, seconds: 1.5, passes: 2, files: 3, seed: 4 }
}

fn normal(count: usize, seed: u64) -> Vec<f32> {
    let mut stream = SeedTree::new(seed).rng(0);
    (0..count).map(|_| stream.sample(StandardNormal)).collect()
}

/// A voice in bursts and white noise of random levels, and a gain that is wrong in a way that can be learned: it takes
/// each bin for itself.
fn example(seed: u64) -> Example {
    const BINS: usize = 33;
    let mut stream = SeedTree::new(seed).rng(0);
    let posterior = Posterior {
        bins: BINS,
        bin_hertz: 15.625,
        alpha: [0.8, 1.9],
        gain: Vec::new(),
        power: Vec::new(),
        dispersion: [Vec::new(), Vec::new()],
    };
    let mut example = Example { posterior, clean: Vec::new(), correlation: Vec::new() };
    for t in 0..60 {
        for bin in 0..BINS {
            let speech = if t / 10 % 2 == 0 && bin / 8 % 2 == 0 { 4.0 } else { 0.01_f32 };
            let draw = |power: f32, stream: &mut SeededRng| -> [f32; 2] {
                [0, 1].map(|_| (power / 2.0).sqrt() * stream.sample::<f32, _>(StandardNormal))
            };
            let (clean, noise) = (draw(speech, &mut stream), draw(1.0, &mut stream));
            let noisy = [clean[0] + noise[0], clean[1] + noise[1]];
            let power = noisy[0] * noisy[0] + noisy[1] * noisy[1];
            example.posterior.gain.push((power / (power + 2.0)).clamp(0.05, 0.9));
            example.posterior.power.push(power);
            example.posterior.dispersion[0].push(1.0);
            example.posterior.dispersion[1].push(1.0);
            example.clean.push(clean[0] * clean[0] + clean[1] * clean[1]);
            example.correlation.push(noisy[0] * clean[0] + noisy[1] * clean[1]);
        }
    }
    example
}

fn learned(examples: &[Example], passes: usize, threads: usize) -> (Refiner, Vec<Change>) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut learning = Learning::new(header(8), passes * examples.len(), SeedTree::new(1));
        let frames: Vec<usize> = examples.iter().map(Example::frames).collect();
        let mut pass = |_| learning.pass(examples, &frames, &mut Local::alone(), &mut ()).unwrap();
        let changes = (0..passes).map(&mut pass).collect();
        (learning.into_refiner(), changes)
    })
}

#[test]
fn a_convolution_is_the_sum_over_its_taps() {
    let (bands, frames) = (6, 5);
    let convolution = Convolution { inputs: 3, outputs: 2, reach: (1, 1), dilation: (2, 3), offset: 5 };
    let parameters = normal(5 + convolution.size(), 1);
    let input = Grid { channels: 3, bands, values: normal(3 * bands * frames, 2) };
    let output = convolution.forward(&parameters, &input);
    let (weights, biases) = parameters[5..].split_at(2 * 27);
    for t in 0..frames as isize {
        for f in 0..bands as isize {
            for o in 0..2 {
                let mut expected = biases[o];
                for (tap, (i, j)) in (-1..=1).flat_map(|i| (-1..=1).map(move |j| (i, j))).enumerate() {
                    let (t, f) = (t + 2 * i, f + 3 * j);
                    if (0..frames as isize).contains(&t) && (0..bands as isize).contains(&f) {
                        for c in 0..3 {
                            let value = input.values[(t as usize * bands + f as usize) * 3 + c];
                            expected += weights[(tap * 3 + c) * 2 + o] * value;
                        }
                    }
                }
                let found = output.values[(t as usize * bands + f as usize) * 2 + o];
                assert!((found - expected).abs() < 1e-4, "{t} {f} {o}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn the_gradient_is_that_of_finite_differences() {
    let mut network = Network::new(5, 4, 3);
    let count = network.parameters.len();
    network.parameters = normal(count, 1).iter().map(|x| 0.2 * x).collect();
    let input = Grid { channels: 5, bands: 7, values: normal(5 * 7 * 20, 2) };
    let weights = normal(3 * 7 * 20, 3);
    // Half the weighted sum of squares: its slopes depend on the output.
    let loss = |output: &Grid| -> f64 {
        let terms = output.values.iter().zip(&weights);
        terms.map(|(&y, &w)| 0.5 * f64::from(w) * f64::from(y) * f64::from(y)).sum()
    };
    let gradient = network.gradient(&input, |output| {
        let values = output.values.iter().zip(&weights).map(|(y, w)| y * w).collect();
        Grid { values, ..output.clone() }
    });
    for seed in 10..20 {
        let direction = normal(count, seed);
        let along = |step: f32| {
            let mut moved = network.clone();
            moved.parameters.iter_mut().zip(&direction).for_each(|(p, d)| *p += step * d);
            loss(&moved.forward(&input))
        };
        let step = 1e-4;
        let difference = (along(step) - along(-step)) / (2.0 * f64::from(step));
        let slope: f64 = gradient.iter().zip(&direction).map(|(&g, &d)| f64::from(g) * f64::from(d)).sum();
        let size = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        assert!((slope - difference).abs() < 0.01 * size, "{slope}, by differences {difference}, of {size}");
    }
}

#[test]
fn the_slopes_of_the_errors_are_those_of_finite_differences() {
    let example = example(1);
    let crop = example.crop(20);
    let odds: Vec<f32> = normal(10 * example.posterior.bins, 2);
    let (_, slopes) = crop.errors(&odds, true);
    let direction = normal(odds.len(), 3);
    let along = |step: f32| -> f64 {
        let moved: Vec<f32> = odds.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
        let [squared, compressed] = crop.errors(&moved, false).0.map(f64::ln);
        squared + COMPRESSED * compressed
    };
    let step = 1e-3;
    let difference = (along(step) - along(-step)) / (2.0 * f64::from(step));
    let slope: f64 = slopes.iter().zip(&direction).map(|(&g, &d)| f64::from(g) * f64::from(d)).sum();
    let size = slopes.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
    assert!((slope - difference).abs() < 0.003 * size, "{slope}, by differences {difference}, of {size}");
}

#[test]
fn a_refiner_that_has_not_learned_changes_nothing() {
    let example = example(1);
    let refiner = Refiner::empty(header(8));
    let refined = refiner.refine(&example.posterior);
    assert!(refined.iter().zip(&example.posterior.gain).all(|(a, b)| (a - b).abs() < 1e-5));
}

#[test]
fn it_learns_to_look_around() {
    let examples: Vec<Example> = (0..16).map(example).collect();
    let (refiner, changes) = learned(&examples, 40, 2);
    assert!(changes[0].squared_db.abs() < 0.5, "{:?}", changes[0]);
    // The best gain for every frame is 4 / 5 or 0.01 / 1.01, which is 1.4 dB better.
    let last = changes[changes.len() - 1];
    assert!(last.squared_db < -1.0 && last.compressed_db < -1.0, "{last:?}");
    let unseen = example(100);
    let error = |gain: &[f32]| -> f32 {
        let bins = unseen.clean.iter().zip(&unseen.correlation).zip(&unseen.posterior.power).zip(gain);
        bins.map(|(((clean, correlation), power), gain)| {
            clean - 2.0 * gain * correlation + gain * gain * power
        })
        .sum()
    };
    let ratio = error(&refiner.refine(&unseen.posterior)) / error(&unseen.posterior.gain);
    assert!(ratio < 0.85, "{ratio}");
}

#[test]
fn what_is_learned_does_not_depend_on_the_threads() {
    let examples: Vec<Example> = (0..9).map(example).collect();
    let one = learned(&examples, 2, 1).0.to_bytes().unwrap();
    assert_eq!(one, learned(&examples, 2, 3).0.to_bytes().unwrap());
}

#[test]
fn gains_stay_between_zero_and_one_whatever_the_posterior() {
    let bins = 6;
    let extremes = [0.0, f32::MIN_POSITIVE, 1e-12, 1.0, 1e12, f32::MAX];
    let gain = [0.0, 1e-9, 0.5, 1.0, 1.0, 0.0];
    let posterior = Posterior {
        bins,
        bin_hertz: 15.625,
        alpha: [0.2, 2.0],
        gain,
        power: extremes,
        dispersion: [extremes, [1e-12; 6]],
    };
    let refined = Refiner::shipped().unwrap().refine(&posterior);
    assert!(refined.iter().all(|gain| (0.0..=1.0).contains(gain)), "{refined:?}");
}

#[test]
fn writing_and_reading_returns_the_refiner() {
    let shipped = Refiner::shipped().unwrap();
    assert_eq!(Refiner::from_bytes(&shipped.to_bytes().unwrap()).unwrap(), shipped);
    assert!(shipped.network.parameters.iter().any(|x| *x != 0.0));
}

#[test]
fn every_flaw_has_its_own_error() {
    let bytes = Refiner::empty(header(2)).to_bytes().unwrap();
    let error = |bytes: &[u8]| Refiner::from_bytes(bytes).unwrap_err();
    for length in 0..bytes.len() {
        let error = error(&bytes[..length]);
        assert!(
            matches!(error, RefinerError::TensorFile(TensorFileError::Bytes(_))),
            "{length} bytes: {error}"
        );
    }
    let dictionary = crate::model::Dictionary::shipped().unwrap().to_bytes().unwrap();
    assert!(matches!(error(&dictionary), RefinerError::TensorFile(TensorFileError::Metadata("format"))));
    let mut broken = Refiner::empty(header(2));
    for value in [f32::NAN, 1e30] {
        broken.network.parameters[7] = value;
        assert!(matches!(error(&broken.to_bytes().unwrap()), RefinerError::Parameter { index: 7, .. }));
    }
    broken.header.window_seconds = -1.0;
    let refused = error(&broken.to_bytes().unwrap());
    assert!(
        matches!(refused, RefinerError::TensorFile(TensorFileError::Metadata("window_seconds"))),
        "{refused}"
    );
    broken.header.window_seconds = 0.064;
    broken.network.parameters = vec![0.0; 3];
    assert!(matches!(error(&broken.to_bytes().unwrap()), RefinerError::Size { found: 3, channels: 2, .. }));
    for window_seconds in [-1.0, 0.0, 1e300] {
        let mut broken = Refiner::empty(header(2));
        broken.header.window_seconds = window_seconds;
        let refused = error(&broken.to_bytes().unwrap());
        let expected = RefinerError::TensorFile(TensorFileError::Metadata("window_seconds"));
        assert_eq!(refused.to_string(), expected.to_string());
    }
    broken.header.channels = 0;
    let refused = error(&broken.to_bytes().unwrap());
    assert!(matches!(refused, RefinerError::TensorFile(TensorFileError::Metadata("channels"))), "{refused}");
}
