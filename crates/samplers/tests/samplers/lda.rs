//! Latent Dirichlet allocation against exact enumeration of all topics of all words.

#[path = "../../examples/shared/lda.rs"]
#[allow(dead_code)] // The example takes the rest.
mod model;

use crate::proof::{self, Problem, Quantity, constant};
use alphamf_samplers::diagnostics::mean_and_variance;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;
use model::{Document, Lda, Shape};
use rand::RngExt;
use rand_distr::{Distribution, Gamma};

const SHAPE: Shape = Shape { topics: 2, words: 3, prior: 3.0, alpha: 0.4, sweeps: [10, 10] };

fn documents() -> Vec<Document> {
    vec![vec![0, 0, 2], vec![1, 1, 0], vec![0, 0, 0], vec![2, 1, 1]]
}

fn model(shape: Shape) -> Lda {
    let mut model = Lda::new(shape, documents().len(), SeedTree::new(5));
    model.feed(&documents());
    model
}

/// The topics of words under every one of their configurations.
fn configurations(words: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1usize << words).map(move |code| (0..words).map(|place| code >> place & 1).collect())
}

/// How many words each of the two topics has.
fn tally(topics: &[usize]) -> [f64; 2] {
    let second = topics.iter().sum::<usize>();
    [(topics.len() - second) as f64, second as f64]
}

/// `log p(z)` of the topics of a document, its shares integrated out, up to a constant.
fn log_shares(topics: &[usize]) -> f64 {
    tally(topics).iter().map(|count| libm::lgamma(SHAPE.alpha + count)).sum()
}

/// Minus the log density of `theta` given the documents, topics summed out.
fn enumerated_potential(theta: &[f64]) -> f64 {
    let sums = [0, 1].map(|k| theta.iter().skip(k).step_by(2).sum::<f64>());
    let prior: f64 = theta.iter().map(|theta| theta + (1.0 - SHAPE.prior) * theta.ln()).sum();
    let likelihood = |document: &Document| {
        let weight = |topics: Vec<usize>| {
            let words = document.iter().zip(&topics).map(|(word, &k)| theta[2 * word + k] / sums[k]);
            log_shares(&topics).exp() * words.product::<f64>()
        };
        -configurations(document.len()).map(weight).sum::<f64>().ln()
    };
    prior + documents().iter().map(likelihood).sum::<f64>()
}

/// Averaged over Gibbs draws, the gradient is that of the marginal density; of minibatches too.
#[test]
fn gradients_average_to_those_of_the_enumeration() {
    const RUNS: usize = 30;
    let theta = [2.0, 0.7, 1.1, 3.0, 0.4, 1.6];
    let mut model = model(Shape { sweeps: [20, 2_000], ..SHAPE });
    let mut found = vec![vec![Vec::new(); 6]; 2];
    let mut gradient = [0.0; 6];
    for _ in 0..RUNS {
        model.gradient(&theta, Minibatch::full(4), &mut gradient);
        found[0].iter_mut().zip(gradient).for_each(|(found, value)| found.push(value));
        let mut mean = [0.0; 6];
        for term in 0..4 {
            model.gradient(&theta, Minibatch::subsample(&[term], 4), &mut gradient);
            mean.iter_mut().zip(gradient).for_each(|(mean, one)| *mean += one / 4.0);
        }
        found[1].iter_mut().zip(mean).for_each(|(found, value)| found.push(value));
    }
    for k in 0..6 {
        let width = 1e-5;
        let side = |sign: f64| {
            let mut shifted = theta;
            shifted[k] += sign * width;
            sign * enumerated_potential(&shifted) / (2.0 * width)
        };
        let exact = side(1.0) + side(-1.0);
        for found in &found {
            let (mean, variance) = mean_and_variance(&found[k]);
            let error = (variance / RUNS as f64).sqrt();
            println!("{k}: {mean:.5} +- {error:.5} of {exact:.5}");
            assert!(error < 8e-3 && (mean - exact).abs() < 4.0 * error, "{k}: {mean} +- {error} of {exact}");
        }
    }
}

/// Every second word has the probability that the others give it, their topics summed out.
#[test]
fn predictions_are_those_of_the_enumeration() {
    let theta = [2.0, 0.7, 1.1, 3.0, 0.4, 1.6];
    let (document, seen) = ([0, 2, 0, 1, 1, 0], [0, 0, 1]);
    let words = topics(&theta);
    let mut exact = [0.0; 3];
    let mut norm = 0.0;
    for topics in configurations(seen.len()) {
        let given = seen.iter().zip(&topics).map(|(word, topic)| words[*topic][*word]);
        let weight = log_shares(&topics).exp() * given.product::<f64>();
        norm += weight;
        let counts = tally(&topics);
        for (exact, word) in exact.iter_mut().zip([2, 1, 0]) {
            let of = |k: usize| (SHAPE.alpha + counts[k]) / (3.0 + 2.0 * SHAPE.alpha) * words[k][word];
            *exact += weight * (of(0) + of(1));
        }
    }
    let found = model(Shape { sweeps: [20, 40_000], ..SHAPE }).predict(&theta, &document);
    assert_eq!(found.len(), 3);
    for (found, exact) in found.iter().zip(exact) {
        assert!((found - exact / norm).abs() < 3e-3, "{found} of {}", exact / norm);
    }
}

/// The probabilities that each of the topics gives the words; the state may be signed.
fn topics(theta: &[f64]) -> [[f64; 3]; 2] {
    [0, 1].map(|k| {
        let column = [0, 1, 2].map(|word| theta[2 * word + k].abs());
        column.map(|theta| theta / column.iter().sum::<f64>())
    })
}

/// Two words, and the product of their probabilities summed over topics: what does not change with the topics' order.
type Product = ([usize; 2], fn(&[f64]) -> f64);

const PRODUCTS: [Product; 4] = [
    ([0, 0], |theta| topics(theta).iter().map(|words| words[0] * words[0]).sum()),
    ([1, 1], |theta| topics(theta).iter().map(|words| words[1] * words[1]).sum()),
    ([0, 1], |theta| topics(theta).iter().map(|words| words[0] * words[1]).sum()),
    ([0, 2], |theta| topics(theta).iter().map(|words| words[0] * words[2]).sum()),
];

/// Given the documents, the probabilities are a mixture of Dirichlet laws, one for each configuration of the topics of
/// all words; the sums of `theta`, of which the documents say nothing, keep their prior.
fn posterior() -> Problem {
    let (documents, places) = (documents(), documents().concat());
    let (mut weights, mut concentrations) = (Vec::new(), Vec::new());
    for configuration in configurations(places.len()) {
        let mut entries = [SHAPE.prior; 6];
        places.iter().zip(&configuration).for_each(|(word, topic)| entries[2 * word + topic] += 1.0);
        let mut log: f64 = entries.iter().map(|entry| libm::lgamma(*entry)).sum();
        log -= tally(&configuration)
            .iter()
            .map(|count| libm::lgamma(SHAPE.words as f64 * SHAPE.prior + count))
            .sum::<f64>();
        let mut rest = &configuration[..];
        for document in &documents {
            let (mine, others) = rest.split_at(document.len());
            log += log_shares(mine);
            rest = others;
        }
        weights.push(log.exp());
        concentrations.push(entries);
    }
    let norm: f64 = weights.iter().sum();
    let of_law = |entries: &[f64; 6], [i, j]: [usize; 2]| -> f64 {
        let of_topic = |k: usize| {
            let sum = entries[k] + entries[2 + k] + entries[4 + k];
            let (a, b) = (entries[2 * i + k], entries[2 * j + k]);
            a * (b + f64::from(i == j)) / (sum * (sum + 1.0))
        };
        of_topic(0) + of_topic(1)
    };
    // Exact draws, for the deviations, and to check the sums.
    let mut stream = SeedTree::new(8).rng(0);
    let draws: Vec<[f64; 6]> = (0..20_000)
        .map(|_| {
            let mut level = norm * stream.random::<f64>();
            let chosen = weights.iter().position(|weight| {
                level -= weight;
                level < 0.0
            });
            let entries = concentrations[chosen.unwrap_or_default()];
            entries.map(|entry| Gamma::new(entry, 1.0).unwrap().sample(&mut stream))
        })
        .collect();
    let mut quantities: Vec<Quantity> = PRODUCTS
        .iter()
        .map(|&(words, value)| {
            let values: Vec<f64> = draws.iter().map(|draw| value(draw)).collect();
            let (drawn, variance) = mean_and_variance(&values);
            let laws = weights.iter().zip(&concentrations);
            let mean: f64 = laws.map(|(weight, entries)| weight / norm * of_law(entries, words)).sum();
            let error = (variance / values.len() as f64).sqrt();
            assert!((drawn - mean).abs() < 4.0 * error, "{words:?}: {mean} enumerated, {drawn} drawn");
            Quantity { name: "product", value, mean, deviation: variance.sqrt() }
        })
        .collect();
    let mean = 6.0 * SHAPE.prior;
    let value = |theta: &[f64]| theta.iter().map(|theta| theta.abs()).sum();
    quantities.push(Quantity { name: "sum", value, mean, deviation: mean.sqrt() });
    Problem {
        name: "topics",
        target: || Box::new(Mirrored::new(model(SHAPE))),
        start: vec![2.0; 6],
        quantities,
    }
}

/// The four samplers of the experiment find the law of the enumeration, with gradients that only Gibbs draws make.
#[test]
fn topics_have_the_law_of_the_enumeration() {
    type Build = fn(SeedTree) -> Box<dyn Sampler<f64>>;
    let problem = posterior();
    // Next to zero the slope of the prior would fling a sampler without a metric far away.
    const TAME: GradientSettings = GradientSettings {
        step_size: StepSize::Constant(0.02),
        minibatch: None,
        mirror: false,
        drift_limit: 0.5,
        temperature: 1.0,
    };
    let sghmc: Build = |streams| {
        let gradient = GradientSettings { step_size: StepSize::Constant(0.1), ..TAME };
        let settings = SghmcSettings { gradient, ..SghmcSettings::default() };
        Box::new(Sghmc::new(6, 1, settings, streams).unwrap())
    };
    let samplers: [(&str, Build, f64); 4] = [
        ("SGLD", |streams| Box::new(Sgld::new(6, 1, TAME, streams).unwrap()), 0.06),
        ("SGHMC", sghmc, 0.06),
        ("SGRLD", |streams| Box::new(Sgrld::new(6, 1, constant(0.02), streams).unwrap()), 0.03),
        ("SGRHMC", |streams| Box::new(Sgrhmc::new(6, 1, constant(0.02), streams).unwrap()), 0.04),
    ];
    for (name, sampler, tolerance) in samplers {
        let estimates = proof::estimate(&problem, sampler, false, (1_000, 40_000));
        let (errors, precision) = proof::worst(&problem, &estimates, tolerance);
        let away = problem.quantities.iter().zip(&estimates);
        let away: Vec<f64> =
            away.map(|(quantity, found)| (found.mean - quantity.mean) / quantity.deviation).collect();
        println!("{name}: {errors:.1} standard errors, {away:.3?} deviations, precision {precision:.3}");
        assert!(errors < 5.0 && precision < 0.05, "{name}: {errors} {precision} {away:?}");
    }
}
