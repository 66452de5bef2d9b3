//! The annotation model against exact enumeration of all classes.

#[path = "../../examples/shared/annotation.rs"]
#[allow(dead_code)] // The example takes the rest.
mod model;

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;
use model::{Annotation, Label};

fn small() -> (Annotation, Vec<Label>) {
    let label = |labeller, item, class| Label { labeller, item, class };
    let labels = vec![
        label(0, 0, 0),
        label(1, 0, 1),
        label(0, 1, 1),
        label(1, 2, 2),
        label(0, 2, 2),
        label(1, 3, 1),
        label(0, 3, 0),
    ];
    (Annotation::new([2, 4, 3], &labels, 6.0, 0.5), labels)
}

/// The probability of every configuration of the classes: Dirichlet laws integrate in closed form.
fn enumerate(model: &Annotation, labels: &[Label]) -> Vec<f64> {
    let classes = model.classes;
    let log_beta = |parts: &[f64]| {
        parts.iter().map(|part| libm::lgamma(*part)).sum::<f64>() - libm::lgamma(parts.iter().sum())
    };
    let all = classes.pow(model.items as u32);
    let log_weight = |configuration: usize| {
        let class_of = |item: usize| configuration / classes.pow(item as u32) % classes;
        let mut shares = vec![1.0 / classes as f64; classes];
        (0..model.items).for_each(|item| shares[class_of(item)] += 1.0);
        let mut sum = log_beta(&shares);
        for labeller in 0..model.labellers {
            for truth in 0..classes {
                let mut row: Vec<f64> = (0..classes).map(|class| model.prior(truth, class)).collect();
                let mine = labels.iter().filter(|label| label.labeller == labeller);
                mine.filter(|label| class_of(label.item) == truth).for_each(|label| row[label.class] += 1.0);
                sum += log_beta(&row);
            }
        }
        sum
    };
    let weights: Vec<f64> = (0..all).map(|configuration| log_weight(configuration).exp()).collect();
    let norm: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / norm).collect()
}

#[test]
fn classes_have_the_probabilities_of_the_enumeration() {
    let (model, labels) = small();
    let exact = enumerate(&model, &labels);
    const RUNS: usize = 24;
    const DRAWS: usize = 5_000;
    let first = model.first_item();
    let mut runs = vec![vec![0.0; exact.len()]; RUNS];
    for (seed, counts) in runs.iter_mut().enumerate() {
        let sampler =
            Newtonian::new(Target::<f64>::dimension(&model), 1, SeedTree::new(seed as u64)).unwrap();
        // Every conditional is a Dirichlet law or a table: half of the runs without local proposals.
        let sampler = sampler.with_local_fraction(if seed.is_multiple_of(2) { 0.0 } else { 0.125 }).unwrap();
        let mut chain = Chain::new(model.clone(), sampler, model.start()).unwrap();
        chain.burn_in(200);
        chain.run(DRAWS, |draw| {
            let place = |sum: usize, class: &f64| sum * model.classes + *class as usize;
            counts[draw.theta[first..].iter().rev().fold(0, place)] += 1.0 / DRAWS as f64;
        });
        if seed.is_multiple_of(2) {
            assert!(chain.statistics().acceptance() > 0.999, "{}", chain.statistics().acceptance());
        }
    }
    let mut worst = 0.0_f64;
    for (configuration, &probability) in
        exact.iter().enumerate().filter(|(_, probability)| **probability > 0.005)
    {
        let found: Vec<f64> = runs.iter().map(|run| run[configuration]).collect();
        let (mean, variance) = diagnostics::mean_and_variance(&found);
        let error = (variance / RUNS as f64).sqrt().max(1e-4);
        worst = worst.max((mean - probability).abs() / error);
        assert!(error < 0.006, "{configuration}: {mean} +- {error} of {probability}");
        assert!(
            (mean - probability).abs() < 4.5 * error,
            "{configuration}: {mean} +- {error} of {probability}"
        );
    }
    println!("worst of the configurations: {worst:.1} standard errors");
}
