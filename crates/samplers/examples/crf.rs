//! The Bayesian conditional random field of `quasi-newton-mcmc` section 6 (its Table 3): HMC against HMC-BFGS.
//!
//! `--data DIR` names the folder that holds `text/train.txt.gz` and `text/test.txt.gz` of CoNLL-2000. The paper's lines
//! of Usenet FAQs are not available; four labels and 26 features give a model of equal size. `--sentences N` sets the
//! size of the training set (40), `--runs N` the number of runs (1).

#[path = "shared/crf.rs"]
mod model;
mod shared;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use alphamf_samplers::diagnostics::effective_size_mean;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;
use model::{Crf, Position};
use shared::{Outcome, Report, check_options, number, number_option, option, read_gzip, row};

/// Number of labels: first word of a noun phrase, other words of a noun phrase, verb phrase, and other.
const LABELS: usize = 4;
/// Number of classes of parts of speech.
const KINDS: usize = 8;
/// Number of features: the classes of the previous, the present and the next word, a capital letter, and a digit.
const FEATURES: usize = 3 * KINDS + 2;
const VARIANCE: f64 = 100.0;
const BURN_IN: usize = 1000;
const DRAWS: usize = 8000;

fn label(chunk: &str) -> usize {
    match chunk {
        "B-NP" => 0,
        "I-NP" => 1,
        "B-VP" | "I-VP" => 2,
        _ => 3,
    }
}

fn kind(tag: &str) -> usize {
    match tag {
        tag if tag.starts_with("NN") => 0,
        "DT" | "PDT" | "PRP$" | "WDT" | "WP$" | "POS" => 1,
        "CD" => 2,
        tag if tag.starts_with("JJ") => 2,
        "MD" => 3,
        tag if tag.starts_with("VB") => 3,
        "PRP" | "EX" | "WP" => 4,
        "IN" | "TO" => 5,
        "RP" | "WRB" => 6,
        tag if tag.starts_with("RB") => 6,
        _ => 7,
    }
}

/// Reads the first `sentences` sentences of a file of words, tags and chunks.
fn read(path: &Path, sentences: usize) -> Result<Vec<Vec<Position>>, Box<dyn Error>> {
    let text = String::from_utf8(read_gzip(path)?)?;
    let words = |lines: &str| -> Result<Vec<Position>, Box<dyn Error>> {
        let fields: Vec<Vec<&str>> = lines.lines().map(|line| line.split(' ').collect()).collect();
        if let Some(bad) = fields.iter().find(|fields| fields.len() != 3) {
            return Err(format!("{}: {bad:?} is not a word, a tag and a chunk", path.display()).into());
        }
        let kinds: Vec<usize> = fields.iter().map(|fields| kind(fields[1])).collect();
        let position = |(t, fields): (usize, &Vec<&str>)| {
            let mut features = vec![KINDS + kinds[t]];
            features.extend(t.checked_sub(1).map(|before| kinds[before]));
            features.extend(kinds.get(t + 1).map(|kind| 2 * KINDS + kind));
            features.extend(fields[0].starts_with(char::is_uppercase).then_some(3 * KINDS));
            features.extend(fields[0].contains(|c: char| c.is_ascii_digit()).then_some(3 * KINDS + 1));
            Position { features, label: label(fields[2]) }
        };
        Ok(fields.iter().enumerate().map(position).collect())
    };
    text.split("\n\n").filter(|lines| !lines.trim().is_empty()).take(sentences).map(words).collect()
}

/// Computes the fraction of words of `test` whose most probable label under `theta` is the true one.
fn accuracy(model: &mut Crf, theta: &[f64], test: &[Vec<Position>]) -> f64 {
    let (mut right, mut all) = (0, 0);
    for sentence in test {
        let labels = model.decode(theta, sentence);
        right += labels.iter().zip(sentence).filter(|(label, position)| **label == position.label).count();
        all += sentence.len();
    }
    right as f64 / all as f64
}

fn main() -> Outcome {
    check_options(&["--data", "--sentences", "--runs"])?;
    let data = option("--data").ok_or("--data DIR: the folder that holds text/train.txt.gz")?;
    let [sentences, runs] = [number_option("--sentences", 40)?, number_option("--runs", 1)?];
    let train = read(&data.join("text").join("train.txt.gz"), sentences)?;
    let test = read(&data.join("text").join("test.txt.gz"), usize::MAX)?;
    let words: usize = train.iter().map(Vec::len).sum();
    let model = Crf::new(train, LABELS, FEATURES, VARIANCE);
    let dimension = Target::dimension(&model);
    let mut table = Vec::new();
    let methods: [(&str, Option<InitialScale>, f64, &str); 4] = [
        ("HMC", None, 0.02, "3 / 9 / 25"),
        ("HMC-BFGS", Some(InitialScale::Fixed(1.0)), 0.02, "26 / 438 / 5371"),
        ("HMC, adapted", None, 0.0, ""),
        ("HMC-BFGS, adapted", Some(InitialScale::Pairs(1e-3)), 0.0, ""),
    ];
    for (name, scale, step, paper) in methods {
        let mut totals = [0.0; 7];
        for seed in 0..runs as u64 {
            let streams = SeedTree::new(seed);
            let adapted = step == 0.0;
            let jitter = HmcSettings::default();
            let hmc = HmcSettings { step_size: if adapted { 0.02 } else { step }, leaps: 10, ..jitter };
            let mut sampler: Box<dyn Sampler<f64>> = match scale {
                None => Box::new(Hmc::new(dimension, 1, hmc, streams)?),
                Some(initial_scale) => Box::new(HmcBfgs::new(
                    dimension,
                    1,
                    HmcBfgsSettings { hmc, ensemble: 5, initial_scale },
                    streams,
                )?),
            };
            let chains = sampler.chains();
            // Each run starts from its own random state.
            let mut stream = streams.rng(1);
            let start = (0..dimension).map(|_| f64::normal(&mut stream)).collect();
            let mut chain = Chain::new(model.clone(), &mut *sampler, start)?;
            if adapted {
                chain.burn_in(BURN_IN);
            } else {
                chain.run(BURN_IN, |_| ());
            }
            let (mut series, mut mean) = (vec![vec![Vec::new(); chains]; dimension], vec![0.0; dimension]);
            let (clock, mut accepted, mut step_size) = (Instant::now(), 0.0, 0.0);
            chain.run(DRAWS, |draw| {
                accepted += draw.step.acceptance / DRAWS as f64;
                step_size = draw.step.step_size;
                for ((series, mean), &theta) in series.iter_mut().zip(&mut mean).zip(draw.theta) {
                    series[draw.index % chains].push(theta);
                    *mean += theta / DRAWS as f64;
                }
            });
            let seconds = clock.elapsed().as_secs_f64();
            let size =
                |chains: &Vec<Vec<f64>>| chains.iter().map(|chain| effective_size_mean(&[chain])).sum();
            let sizes: Vec<f64> = series.iter().map(size).collect();
            let found = [
                sizes.iter().copied().fold(f64::INFINITY, f64::min),
                sizes.iter().sum::<f64>() / dimension as f64,
                sizes.iter().copied().fold(0.0, f64::max),
                seconds,
                accepted,
                step_size,
                accuracy(chain.target(), &mean, &test),
            ];
            totals.iter_mut().zip(found).for_each(|(total, found)| *total += found / runs as f64);
        }
        let [least, mean, most, seconds, accepted, step_size, right] = totals;
        let mut cells =
            row(name, &[least, mean, most, seconds, 3600.0 * mean / seconds, accepted, step_size]);
        cells.extend([number(right), paper.to_owned()]);
        table.push(cells);
    }
    let mut report = Report::new("crf", "Bayesian conditional random field");
    report.say(&format!(
        "`quasi-newton-mcmc` section 6, Table 3. CoNLL-2000 instead of the FAQs: {sentences} sentences ({words} words), \
         {LABELS} labels, {FEATURES} features, {dimension} parameters, prior variance {VARIANCE}. Ten leaps, {DRAWS} draws \
         after {BURN_IN}, K = 5; starts drawn from a standard normal law; mean over runs: {runs}. Effective sizes per \
         parameter, summed over the chains of the ensemble. In the last two rows burn-in adapts the step to an acceptance \
         of 0.8."
    ));
    let head = [
        "sampler",
        "minimum ESS",
        "mean ESS",
        "maximum ESS",
        "seconds",
        "mean ESS per hour",
        "acceptance",
        "last step",
        "words right by the posterior mean",
        "paper: min / mean / max ESS",
    ];
    report.table(&head, &table);
    report.save()
}
