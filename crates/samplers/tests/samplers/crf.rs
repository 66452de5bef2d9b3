//! The conditional random field against exact enumeration of all labellings.

#[path = "../../examples/shared/crf.rs"]
#[allow(dead_code)] // The example takes the rest.
mod model;

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;
use model::{Crf, Position};

const LABELS: usize = 3;
const FEATURES: usize = 4;
const VARIANCE: f64 = 2.0;
const DIMENSION: usize = (FEATURES + LABELS) * LABELS;

fn sequences() -> Vec<Vec<Position>> {
    let position = |features: &[usize], label| Position { features: features.to_vec(), label };
    vec![
        vec![position(&[0, 2], 1), position(&[1], 1), position(&[], 0), position(&[0, 3], 2)],
        vec![position(&[3], 2)],
        vec![position(&[1, 2, 3], 0), position(&[0], 2), position(&[2], 1)],
    ]
}

fn parameters(seed: u64) -> Vec<f64> {
    let mut stream = SeedTree::new(seed).rng(0);
    (0..DIMENSION).map(|_| 1.5 * f64::normal(&mut stream)).collect()
}

/// All labellings of so many positions.
fn labellings(positions: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..LABELS.pow(positions as u32))
        .map(move |code| (0..positions).map(|t| code / LABELS.pow(t as u32) % LABELS).collect())
}

/// The log probability of the labels and the prior, with every labelling summed.
fn enumerated_potential(model: &Crf, theta: &[f64]) -> f64 {
    let prior = theta.iter().map(|x| x * x).sum::<f64>() / (2.0 * VARIANCE);
    let likelihood = |sequence: &Vec<Position>| {
        let truth: Vec<usize> = sequence.iter().map(|position| position.label).collect();
        let sum: f64 =
            labellings(sequence.len()).map(|labels| model.score(theta, sequence, &labels).exp()).sum();
        sum.ln() - model.score(theta, sequence, &truth)
    };
    prior + sequences().iter().map(likelihood).sum::<f64>()
}

#[test]
fn normalisers_and_potentials_are_those_of_the_enumeration() {
    let mut model = Crf::new(sequences(), LABELS, FEATURES, VARIANCE);
    for seed in 0..5 {
        let theta = parameters(seed);
        for sequence in sequences() {
            let sum: f64 =
                labellings(sequence.len()).map(|labels| model.score(&theta, &sequence, &labels).exp()).sum();
            let found = model.log_normaliser(&theta, &sequence);
            assert!((found - sum.ln()).abs() < 1e-12, "{found} of {}", sum.ln());
        }
        let mut potential = [0.0];
        model.potential(&theta, &mut potential);
        assert!((potential[0] - enumerated_potential(&model, &theta)).abs() < 1e-11);
    }
    // A score by hand: two positions, their features and one transition.
    let theta: Vec<f64> = (0..DIMENSION).map(|k| k as f64).collect();
    let first = &sequences()[0][..2];
    // Features 0 and 2 with label 1, feature 1 with label 2, and from label 1 to label 2.
    let by_hand = (1 + 7) + (3 + 2) + (FEATURES * LABELS + LABELS + 2);
    assert_eq!(model.score(&theta, first, &[1, 2]), by_hand as f64);
}

#[test]
fn gradients_are_differences_of_the_enumerated_potential() {
    let mut model = Crf::new(sequences(), LABELS, FEATURES, VARIANCE);
    for seed in 5..10 {
        let mut theta = parameters(seed);
        let (mut gradient, mut again, mut potential) = ([0.0; DIMENSION], [0.0; DIMENSION], [0.0]);
        model.gradient(&theta, Minibatch::full(3), &mut gradient);
        model.evaluate(&theta, &mut potential, &mut again);
        assert_eq!(gradient, again);
        assert!((potential[0] - enumerated_potential(&model, &theta)).abs() < 1e-11);
        // Terms one by one, each for all three, average to all of them.
        let mut mean = [0.0; DIMENSION];
        for term in 0..3 {
            model.gradient(&theta, Minibatch::subsample(&[term], 3), &mut again);
            mean.iter_mut().zip(again).for_each(|(mean, one)| *mean += one / 3.0);
        }
        for k in 0..DIMENSION {
            let width = 1e-5;
            let at = theta[k];
            let difference: f64 = [1.0, -1.0]
                .map(|sign| {
                    theta[k] = at + sign * width;
                    sign * enumerated_potential(&model, &theta) / (2.0 * width)
                })
                .iter()
                .sum();
            theta[k] = at;
            assert!((gradient[k] - difference).abs() < 1e-8, "{k}: {} of {difference}", gradient[k]);
            assert!((mean[k] - gradient[k]).abs() < 1e-12);
        }
    }
}

/// Marginals that decide are those of the enumeration, also where one labelling has nearly all.
#[test]
fn decoding_takes_the_most_probable_label_of_every_position() {
    let mut model = Crf::new(sequences(), LABELS, FEATURES, VARIANCE);
    for (seed, scale) in [(10, 1.0), (11, 1.0), (12, 0.5), (13, 20.0)] {
        let theta: Vec<f64> = parameters(seed).iter().map(|x| scale * x).collect();
        for sequence in sequences() {
            let scores: Vec<(Vec<usize>, f64)> = labellings(sequence.len())
                .map(|labels| (labels.clone(), model.score(&theta, &sequence, &labels)))
                .collect();
            let highest = scores.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
            let marginal = |t: usize, label: usize| -> f64 {
                let chosen = scores.iter().filter(|(labels, _)| labels[t] == label);
                chosen.map(|(_, score)| (score - highest).exp()).sum()
            };
            let best = |t: usize| {
                (0..LABELS).max_by(|&a, &b| marginal(t, a).total_cmp(&marginal(t, b))).unwrap_or_default()
            };
            let expected: Vec<usize> = (0..sequence.len()).map(best).collect();
            assert_eq!(model.decode(&theta, &sequence), expected);
        }
    }
}
