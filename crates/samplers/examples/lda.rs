//! Online latent Dirichlet allocation, `complete-recipe` section 4.2 (its Figure 3): SGLD, SGHMC, SGRLD and SGRHMC on a
//! stream of documents, each used once.
//!
//! `--corpus NAME` is `simulated` (from given topics; the default), `brown` or `movies`. For the latter two,
//! `--data DIR` names the folder that holds `text/brown_chunks.txt.gz` and `text/movie_reviews.txt.gz`. Smaller values
//! of `--topics N` (50), `--runs N` (3) and `--tuning N`, the number of documents for the choice of step sizes (all; at
//! least 500), shorten a run. The paper streams Wikipedia.

#[path = "shared/lda.rs"]
mod model;
mod shared;

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

use alphamf_samplers::random::{SeedTree, SeededRng};
use alphamf_samplers::*;
use model::{Document, Lda, Shape};
use rand::RngExt;
use rand_distr::{Distribution, Gamma};
use shared::{
    Outcome, Report, check_options, dirichlet, draw, number, number_from, number_option, option, plot,
    read_gzip,
};

/// Documents per step.
const BATCH: usize = 20;
/// Documents between two evaluations of the perplexity.
const LOOK: usize = 500;
/// Number of held-out documents for the choice of step sizes, and number of those for the reported perplexity.
const HELD_OUT: usize = 150;
/// Concentration of both Dirichlet distributions; the paper does not give its values.
const PRIOR: f64 = 0.1;
const SWEEPS: [usize; 2] = [15, 10];

/// Documents in random order, and the size of the vocabulary.
struct Corpus {
    name: &'static str,
    topics: usize,
    documents: Vec<Document>,
    words: usize,
    /// The true topics of simulated documents, as a state.
    truth: Option<Vec<f64>>,
}

/// Reads the documents of a file, one per line, without words that occur in fewer than 20 or more than a tenth of them.
fn read(name: &'static str, topics: usize, path: &Path) -> Result<Corpus, Box<dyn Error>> {
    let text = String::from_utf8(read_gzip(path)?)?;
    let mut found: HashMap<&str, usize> = HashMap::new();
    for line in text.lines() {
        let once: HashSet<&str> = line.split(' ').collect();
        once.into_iter().for_each(|word| *found.entry(word).or_default() += 1);
    }
    let most = text.lines().count() / 10;
    let mut vocabulary: Vec<&str> =
        found.iter().filter(|(_, n)| (20..=most).contains(*n)).map(|(w, _)| *w).collect();
    vocabulary.sort_unstable();
    let numbers: HashMap<&str, usize> = vocabulary.iter().enumerate().map(|(k, word)| (*word, k)).collect();
    let document = |line: &str| line.split(' ').filter_map(|word| numbers.get(word).copied()).collect();
    let mut documents: Vec<Document> = text.lines().map(document).collect();
    documents.retain(|document| document.len() >= 2);
    shuffle(&mut documents, &mut SeedTree::new(1).rng(0));
    Ok(Corpus { name, topics, documents, words: vocabulary.len(), truth: None })
}

fn shuffle<X>(items: &mut [X], stream: &mut SeededRng) {
    (1..items.len()).rev().for_each(|last| items.swap(last, stream.random_range(0..=last)));
}

/// Simulates documents of 80 words from ten topics over 400 words.
fn simulate() -> Corpus {
    const TOPICS: usize = 10;
    const WORDS: usize = 400;
    let mut stream = SeedTree::new(2).rng(0);
    let topics: Vec<Vec<f64>> = (0..TOPICS).map(|_| dirichlet(&[PRIOR; WORDS], &mut stream)).collect();
    let mut document = || -> Document {
        let shares = dirichlet(&[PRIOR; TOPICS], &mut stream);
        (0..80)
            .map(|_| {
                let topic = draw(&shares, &mut stream);
                draw(&topics[topic], &mut stream)
            })
            .collect()
    };
    let documents = (0..4000).map(|_| document()).collect();
    let truth = (0..WORDS).flat_map(|word| topics.iter().map(move |topic| topic[word])).collect();
    Corpus { name: "simulated", topics: TOPICS, documents, words: WORDS, truth: Some(truth) }
}

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Sgld,
    Sghmc,
    Sgrld,
    Sgrhmc,
}

impl Method {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Sgld, "SGLD", "0.778"),
        (Self::Sghmc, "SGHMC", "0.815"),
        (Self::Sgrld, "SGRLD", "0.730"),
        (Self::Sgrhmc, "SGRHMC", "0.806"),
    ];

    /// Candidate step sizes.
    fn steps(self) -> [f64; 4] {
        match self {
            Self::Sgld => [1e-5, 1e-4, 1e-3, 1e-2],
            Self::Sghmc => [2e-3, 6e-3, 2e-2, 6e-2],
            Self::Sgrld => [1e-3, 4e-3, 1.6e-2, 6.4e-2],
            Self::Sgrhmc => [3e-3, 1e-2, 3e-2, 1e-1],
        }
    }

    /// Builds the sampler. All but SGRHMC mirror negative states themselves.
    fn build(
        self,
        dimension: usize,
        step: f64,
        streams: SeedTree,
    ) -> Result<Box<dyn Sampler<f64>>, SamplerError> {
        let step_size = StepSize::Constant(step);
        let gradient = GradientSettings { step_size, mirror: true, ..GradientSettings::default() };
        Ok(match self {
            Self::Sgld => Box::new(Sgld::new(dimension, 1, gradient, streams)?),
            Self::Sghmc => {
                let settings = SghmcSettings { gradient, friction: 5.0 };
                Box::new(Sghmc::new(dimension, 1, settings, streams)?)
            }
            Self::Sgrld => Box::new(Sgrld::new(dimension, 1, gradient, streams)?),
            Self::Sgrhmc => {
                Box::new(Sgrhmc::new(dimension, 1, GradientSettings { mirror: false, ..gradient }, streams)?)
            }
        })
    }
}

/// Result of a run: perplexities by number of documents, and seconds per 100 documents.
struct Run {
    perplexities: Vec<(f64, f64)>,
    seconds: f64,
}

impl Run {
    fn last(&self) -> f64 {
        self.perplexities.last().map_or(f64::NAN, |(_, perplexity)| *perplexity)
    }
}

/// Computes the perplexity of every second word of `documents`, given the other words of its document and the topics of
/// `theta`.
fn perplexity(shape: Shape, documents: &[Document], theta: &[f64]) -> f64 {
    let mut model = Lda::new(shape, 1, SeedTree::new(9));
    let probabilities: Vec<f64> =
        documents.iter().flat_map(|document| model.predict(theta, document)).collect();
    let log: f64 = probabilities.iter().map(|probability| probability.ln()).sum();
    (-log / probabilities.len() as f64).exp()
}

fn run(
    corpus: &Corpus,
    (method, step): (Method, f64),
    (judged, most): (&[Document], usize),
    seed: u64,
) -> Result<Run, Box<dyn Error>> {
    let streams = SeedTree::new(seed);
    let stream_of_documents = &corpus.documents[2 * HELD_OUT..];
    let shape = shape(corpus);
    let dimension = shape.topics * shape.words;
    // Starts near the mean of the prior, with small differences between topics.
    let law = Gamma::new(100.0, PRIOR / 100.0)?;
    let mut noise = streams.rng(1);
    let start: Vec<f64> = (0..dimension).map(|_| law.sample(&mut noise)).collect();
    let model = Lda::new(shape, stream_of_documents.len(), streams.child(2));
    let sampler = method.build(dimension, step, streams.child(3))?;
    let mut chain = Chain::new(Mirrored::new(model), sampler, start)?;
    let (mut perplexities, mut seconds, mut seen) = (Vec::new(), 0.0, 0);
    for documents in stream_of_documents.chunks_exact(BATCH).take(most.div_ceil(BATCH)) {
        chain.target().inner().feed(documents);
        let clock = Instant::now();
        chain.run(1, |_| ());
        seconds += clock.elapsed().as_secs_f64();
        seen += BATCH;
        if seen.is_multiple_of(LOOK) {
            let folded: Vec<f64> = chain.state().iter().map(|theta| theta.abs()).collect();
            perplexities.push((seen as f64, perplexity(shape, judged, &folded)));
        }
    }
    Ok(Run { perplexities, seconds: 100.0 * seconds / seen as f64 })
}

fn shape(corpus: &Corpus) -> Shape {
    Shape { topics: corpus.topics, words: corpus.words, prior: PRIOR, alpha: PRIOR, sweeps: SWEEPS }
}

fn main() -> Outcome {
    check_options(&["--corpus", "--data", "--topics", "--runs", "--tuning"])?;
    let topics = number_option("--topics", 50)?;
    let runs = number_option("--runs", 3)?;
    // With fewer documents, there is no perplexity by which to choose a step size.
    let tried = number_from("--tuning", usize::MAX, LOOK)?;
    let corpus = option("--corpus").unwrap_or_else(|| "simulated".into());
    let text =
        || option("--data").map(|data| data.join("text")).ok_or("--data must name the folder of `text`");
    let corpus = match corpus.to_str() {
        Some("simulated") => simulate(),
        Some("brown") => read("brown", topics, &text()?.join("brown_chunks.txt.gz"))?,
        Some("movies") => read("movies", topics, &text()?.join("movie_reviews.txt.gz"))?,
        _ => return Err(format!("--corpus {}: expected simulated, brown or movies", corpus.display()).into()),
    };
    let (tuning, judged) = corpus.documents[..2 * HELD_OUT].split_at(HELD_OUT);
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for (method, name, paper) in Method::ALL {
        let (mut best, mut scores) = ((f64::INFINITY, method.steps()[0]), Vec::new());
        for step in method.steps() {
            let found = run(&corpus, (method, step), (tuning, tried), 0)?.last();
            scores.push(format!("{}: {found:.0}", number(step)));
            if found < best.0 {
                best = (found, step);
            }
        }
        let runs: Vec<Run> = (1..=runs as u64)
            .map(|seed| run(&corpus, (method, best.1), (judged, usize::MAX), seed))
            .collect::<Result<_, _>>()?;
        let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let last = mean(&Run::last);
        let spread = runs.iter().map(|run| (run.last() - last).abs()).fold(0.0, f64::max);
        let looks = runs[0].perplexities.len();
        let curve: Vec<(f64, f64)> = (0..looks)
            .map(|look| (runs[0].perplexities[look].0, mean(&|run: &Run| run.perplexities[look].1)))
            .collect();
        let early = curve.iter().find(|(seen, _)| *seen >= 1000.0).map_or(f64::NAN, |point| point.1);
        let seconds = mean(&|run: &Run| run.seconds);
        let mut cells: Vec<String> = vec![name.to_owned(), scores.join(", ")];
        cells.extend([early, last].map(|perplexity| format!("{perplexity:.0}")));
        cells.extend([format!("{spread:.0}"), format!("{seconds:.3}"), paper.to_owned()]);
        table.push(cells);
        curves.push((name.to_owned(), curve));
    }
    let lengths: usize = corpus.documents.iter().map(Vec::len).sum();
    let page = format!("lda_{}", corpus.name);
    let mut report =
        Report::new("lda", &format!("Online latent Dirichlet allocation: {}", corpus.name)).on(&page);
    let stream_of_documents = corpus.documents.len() - 2 * HELD_OUT;
    report.say(&format!(
        "`complete-recipe` section 4.2, Figure 3. {} documents of {:.0} words on average, {} words to choose from, {} topics. In \
         random order, each seen once, {BATCH} a step; Gamma({PRIOR}, 1) and Dirichlet({PRIOR}) priors; {} + {} Gibbs sweeps a \
         document. Each sampler's step is the best of four after {} documents, on {HELD_OUT} others; perplexities are of every \
         second word of {HELD_OUT} others again, given the rest of their document, looked at every {LOOK} documents; mean of \
         {runs} runs, and the largest distance from it.",
        corpus.documents.len(),
        lengths as f64 / corpus.documents.len() as f64,
        corpus.words,
        corpus.topics,
        SWEEPS[0],
        SWEEPS[1],
        tried.min(stream_of_documents)
    ));
    let flat = perplexity(shape(&corpus), judged, &vec![1.0; corpus.topics * corpus.words]);
    report.say(&format!("Perplexity of topics that give all words the same: {flat:.0}."));
    if let Some(truth) = &corpus.truth {
        let found = perplexity(shape(&corpus), judged, truth);
        report.say(&format!("Perplexity under the topics that made the documents: {found:.1}."));
    }
    let head = [
        "sampler",
        "perplexity of the steps tried",
        "perplexity after 1000 documents",
        "at the end",
        "+-",
        "seconds per 100 documents",
        "paper: seconds",
    ];
    report.table(&head, &table);
    plot(&page, &format!("Online LDA, {}", corpus.name), ["documents", "perplexity"], &curves)?;
    report.save()
}
