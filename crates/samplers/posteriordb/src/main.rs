//! Errors of every exact sampler against the reference draws of posteriordb, beside nuts-rs.
//!
//! For every posterior and sampler: the largest error of a mean and of a standard deviation over its parameters, in
//! combined standard errors (those of the reference and of the run, by effective size), R-hat, the least effective size,
//! gradients after the warm-up, and effective draws per 1000 of these.

mod dual;
mod models;
mod peer;
mod targets;

use alphamf_samplers::diagnostics::{
    effective_size_bulk, effective_size_mean, interleaved, mean_and_variance, rank_r_hat,
};
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::{Chain, SamplerKind, SamplerOptions};
use rand::RngExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use targets::Counted;

const CHAINS: usize = 4;
const WARM_UP: usize = 1000;
const DRAWS: usize = 2000;
const SAMPLERS: &str = "nuts-rs,nuts,hmc,hmc-bfgs,qnhmc,mh-bfgs,nmc,hamcmc+test";

/// Mean and deviation of a parameter with their standard errors.
struct Reference {
    mean: f64,
    deviation: f64,
    mean_error: f64,
    deviation_error: f64,
}

/// One sampler's run: the draws of each chain as reported parameters, chains that it moves in turn, gradients after the
/// warm-up and in all, and divergences.
struct Run {
    chains: Vec<Vec<Vec<f64>>>,
    in_turn: usize,
    gradients: [u64; 2],
    divergences: usize,
}

fn start(target: &Counted, chain: usize) -> Vec<f64> {
    let mut rng = SeedTree::new(11).rng(chain as u64);
    let dimension = alphamf_samplers::Target::dimension(target);
    let mut gradient = vec![0.0; dimension];
    // As Stan starts: uniform between -2 and 2, again where the density is zero.
    loop {
        let state: Vec<f64> = (0..dimension).map(|_| rng.random_range(-2.0..2.0)).collect();
        let value = target.log_density(&state, &mut gradient);
        if value.is_finite() && gradient.iter().all(|g| g.is_finite()) {
            return state;
        }
    }
}

fn run(name: &str, density: &Arc<dyn models::Density>) -> Run {
    let target = Counted::new(density.clone());
    let mut run = Run { chains: Vec::new(), in_turn: 1, gradients: [0, 0], divergences: 0 };
    let report = |draws: &[f64]| -> Vec<Vec<f64>> {
        draws.chunks_exact(density.dimension()).map(|phi| density.report(phi)).collect()
    };
    for chain in 0..CHAINS {
        let from = start(&target, chain);
        if name == "nuts-rs" {
            let (draws, [after, all]) = peer::run(&target, &from, (WARM_UP, DRAWS), chain as u64);
            run.chains.push(report(&draws));
            run.gradients[0] += after;
            run.gradients[1] += all;
            continue;
        }
        let (kind, metropolis) = name.split_once('+').map_or((name, false), |(kind, _)| (kind, true));
        let kind: SamplerKind = kind.parse().unwrap_or_else(|error| panic!("{error}"));
        let options = SamplerOptions { metropolis, ..SamplerOptions::default() };
        let streams = SeedTree::new(5).child(chain as u64);
        let sampler = kind.build::<f64>(from.len(), 1, &options, streams).expect("default settings");
        run.in_turn = alphamf_samplers::Sampler::chains(&sampler);
        let mut chain = Chain::new(target.clone(), sampler, from).expect("a target that fits");
        target.take();
        chain.burn_in(WARM_UP);
        let before = target.take();
        let mut draws = Vec::new();
        chain.run(DRAWS, |draw| draws.extend_from_slice(draw.theta));
        let after = target.take();
        run.chains.push(report(&draws));
        run.gradients[0] += after;
        run.gradients[1] += before + after;
        run.divergences += chain.statistics().divergences;
    }
    run
}

/// A line of the table.
fn judge(posterior: &str, sampler: &str, run: &Run, references: &[Reference]) -> String {
    let (mut mean_error, mut deviation_error, mut r_hat, mut size) =
        (0.0_f64, 0.0_f64, 0.0_f64, f64::INFINITY);
    for (k, reference) in references.iter().enumerate() {
        let traces: Vec<Vec<f64>> = run
            .chains
            .iter()
            .flat_map(|chain| interleaved(&chain.iter().map(|draw| draw[k]).collect::<Vec<_>>(), run.in_turn))
            .collect();
        let (mean, variance) = mean_and_variance(&traces.concat());
        let own = (variance / effective_size_mean(&traces)).sqrt();
        let error = (mean - reference.mean).abs() / own.hypot(reference.mean_error);
        mean_error = worse(mean_error, error);
        let squares: Vec<Vec<f64>> =
            traces.iter().map(|trace| trace.iter().map(|x| (x - mean).powi(2)).collect()).collect();
        let spread = (mean_and_variance(&squares.concat()).1 / effective_size_mean(&squares)).sqrt();
        let own = 0.5 * spread / variance.sqrt();
        let error = (variance.sqrt() - reference.deviation).abs() / own.hypot(reference.deviation_error);
        deviation_error = worse(deviation_error, error);
        r_hat = worse(r_hat, rank_r_hat(&traces));
        size = size.min(effective_size_bulk(&traces));
    }
    format!(
        "| {posterior} | {sampler} | {mean_error:.1} | {deviation_error:.1} | {r_hat:.3} | {size:.0} | {} | {} | {:.1} | {} |",
        run.gradients[0],
        run.gradients[1],
        1000.0 * size / run.gradients[0] as f64,
        run.divergences
    )
}

fn worse(a: f64, b: f64) -> f64 {
    if b.is_nan() || b > a { b } else { a }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first() else {
        eprintln!("usage: posteriordb-comparison FOLDER [SAMPLERS [WORD...]]");
        std::process::exit(2);
    };
    let samplers = arguments.get(1).map_or(SAMPLERS, String::as_str);
    let words = arguments.get(2..).unwrap_or_default();
    let mut files: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder that prepare.py wrote") {
        let path = entry.expect("a file").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
            let text = std::fs::read_to_string(&path).expect("a file of text");
            files.insert(name, serde_json::from_str(&text).expect("JSON"));
        }
    }
    println!(
        "| posterior | sampler | mean | deviation | R-hat | ESS | gradients | with warm-up | ESS per 1000 | divergences |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, file) in &files {
        let density: Arc<dyn models::Density> = models::posterior(name, &file["data"]).into();
        let data = models::Data(file);
        let columns =
            ["mean", "deviation", "mean_error", "deviation_error"].map(|column| data.vector(column));
        let names: Vec<&str> =
            file["names"].as_array().expect("names").iter().filter_map(|name| name.as_str()).collect();
        let order = reported_order(name, &names);
        let references: Vec<Reference> = order
            .iter()
            .map(|&k| Reference {
                mean: columns[0][k],
                deviation: columns[1][k],
                mean_error: columns[2][k],
                deviation_error: columns[3][k],
            })
            .collect();
        for sampler in samplers.split(',') {
            let run = run(sampler, &density);
            println!("{}", judge(name, sampler, &run, &references));
        }
    }
}

/// The place in the file of every parameter that the model reports.
fn reported_order(name: &str, names: &[&str]) -> Vec<usize> {
    // The file's order is that of the model's parameters, but where transformed ones come last.
    let first = |word: &str| names.iter().position(|name| name.starts_with(word));
    match (name, first("mu"), first("theta")) {
        ("eight_schools-eight_schools_noncentered", Some(mu), Some(theta)) if theta < mu => {
            (mu..names.len()).chain(theta..mu).collect()
        }
        _ => (0..names.len()).collect(),
    }
}
