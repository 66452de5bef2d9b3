//! Latent Dirichlet allocation by expanded means (`complete-recipe` section 4.2; Patterson and Teh 2013).
//!
//! Topic `k` gives word `w` the probability `theta_wk / sum_v theta_vk`, with `theta_wk ~ Gamma(shape, 1)`; a document's
//! topic probabilities are `Dirichlet(alpha)` and integrated out. The state is `topics x words`.

use alphamf_samplers::random::{SeedTree, SeededRng};
use alphamf_samplers::{Metric, Minibatch, Target};
use rand::RngExt;

/// A document: the indices of its words, in order.
pub type Document = Vec<usize>;

/// Constants of a model.
#[derive(Clone, Copy)]
pub struct Shape {
    pub topics: usize,
    pub words: usize,
    /// Shape of the Gamma prior of `theta`.
    pub prior: f64,
    /// Concentration of the Dirichlet prior of topic probabilities.
    pub alpha: f64,
    /// Gibbs sweeps over the topics of a document: burn-in sweeps, and averaged sweeps.
    pub sweeps: [usize; 2],
}

/// The posterior of the topics of a corpus, given a minibatch of its documents. Gradients are noisy: the expected topics of
/// the words of a document are averages over its Gibbs sweeps.
#[derive(Clone)]
pub struct Lda {
    shape: Shape,
    /// Number of documents of the corpus.
    corpus: usize,
    documents: Vec<Document>,
    stream: SeededRng,
    /// Counts of words by topic in the documents of the last gradient, scaled to the corpus (`topics x words`), and their
    /// sums over words.
    counts: Vec<f64>,
    totals: Vec<f64>,
    /// `sum_w theta_wk`.
    sums: Vec<f64>,
    gibbs: Gibbs,
}

/// Gibbs sampler of the topics of the words of one document.
#[derive(Clone, Default)]
struct Gibbs {
    of_word: Vec<usize>,
    of_document: Vec<f64>,
    /// Cumulative probabilities of topics.
    cumulated: Vec<f64>,
}

impl Gibbs {
    /// Draws topics given `theta`. After each averaged sweep, `keep` receives the topics of the words and the number of
    /// words of each topic.
    fn run(
        &mut self,
        (theta, sums): (&[f64], &[f64]),
        document: &[usize],
        shape: &Shape,
        stream: &mut SeededRng,
        mut keep: impl FnMut(&[usize], &[f64]),
    ) {
        let Shape { topics, alpha, sweeps, .. } = *shape;
        self.of_document.clear();
        self.of_document.resize(topics, 0.0);
        self.of_word.clear();
        self.cumulated.resize(topics, 0.0);
        // Sweep 0 initialises the topic of every word, given the topics of the preceding words.
        for sweep in 0..=sweeps[0] + sweeps[1] {
            for (place, &word) in document.iter().enumerate() {
                if sweep > 0 {
                    self.of_document[self.of_word[place]] -= 1.0;
                }
                let mut sum = 0.0;
                let column = theta[word * topics..].iter().zip(sums).zip(&self.of_document);
                for (to, ((theta, total), count)) in self.cumulated.iter_mut().zip(column) {
                    sum += theta / total * (alpha + count);
                    *to = sum;
                }
                let level = sum * stream.random::<f64>();
                let topic = self.cumulated.partition_point(|&upto| upto <= level).min(topics - 1);
                self.of_document[topic] += 1.0;
                if sweep > 0 {
                    self.of_word[place] = topic;
                } else {
                    self.of_word.push(topic);
                }
            }
            if sweep > sweeps[0] {
                keep(&self.of_word, &self.of_document);
            }
        }
    }
}

impl Lda {
    /// Creates a model of a corpus of `corpus` documents, with an empty minibatch.
    pub fn new(shape: Shape, corpus: usize, streams: SeedTree) -> Self {
        let size = shape.topics * shape.words;
        Self {
            shape,
            corpus,
            documents: Vec::new(),
            stream: streams.rng(0),
            counts: vec![0.0; size],
            totals: vec![0.0; shape.topics],
            sums: vec![0.0; shape.topics],
            gibbs: Gibbs::default(),
        }
    }

    /// Sets the minibatch.
    pub fn feed(&mut self, documents: &[Document]) {
        self.documents.clear();
        self.documents.extend_from_slice(documents);
    }

    fn sum(&mut self, theta: &[f64]) {
        self.sums.fill(0.0);
        for column in theta.chunks_exact(self.shape.topics) {
            self.sums.iter_mut().zip(column).for_each(|(sum, theta)| *sum += theta);
        }
    }

    /// Returns the probability of every second word of a document under `theta`. The other words determine the topic
    /// probabilities.
    pub fn predict(&mut self, theta: &[f64], document: &[usize]) -> Vec<f64> {
        self.sum(theta);
        let Self { shape, stream, sums, gibbs, .. } = self;
        let seen: Vec<usize> = document.iter().copied().step_by(2).collect();
        let mut shares = vec![0.0; shape.topics];
        gibbs.run((theta, sums), &seen, shape, stream, |_, counts| {
            let norm = shape.sweeps[1] as f64 * (seen.len() as f64 + shape.alpha * shape.topics as f64);
            shares.iter_mut().zip(counts).for_each(|(share, count)| *share += (shape.alpha + count) / norm);
        });
        let probability = |word: &usize| -> f64 {
            let column = theta[word * shape.topics..].iter().zip(sums.iter()).zip(&shares);
            column.map(|((theta, sum), share)| theta / sum * share).sum()
        };
        document.iter().skip(1).step_by(2).map(probability).collect()
    }
}

impl Target<f64> for Lda {
    fn dimension(&self) -> usize {
        self.counts.len()
    }

    fn terms(&self) -> usize {
        self.documents.len()
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        self.sum(theta);
        let Self { shape, corpus, documents, stream, counts, totals, sums, gibbs } = self;
        counts.fill(0.0);
        let weight = *corpus as f64 / (batch.iter().count() * shape.sweeps[1]) as f64;
        for index in batch.iter() {
            let document = &documents[index];
            gibbs.run((theta, sums), document, shape, stream, |of_word, _| {
                for (word, topic) in document.iter().zip(of_word) {
                    counts[word * shape.topics + topic] += weight;
                }
            });
        }
        totals.fill(0.0);
        for column in counts.chunks_exact(shape.topics) {
            totals.iter_mut().zip(column).for_each(|(total, count)| *total += count);
        }
        let columns = theta.chunks_exact(shape.topics).zip(counts.chunks_exact(shape.topics));
        for (gradient, (theta, counts)) in gradient.chunks_exact_mut(shape.topics).zip(columns) {
            for k in 0..shape.topics {
                gradient[k] = 1.0 + (1.0 - shape.prior - counts[k]) / theta[k] + totals[k] / sums[k];
            }
        }
    }

    /// Computes the potential given the topic counts of the last gradient.
    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        self.sum(theta);
        let words = theta.iter().zip(&self.counts);
        let of_word: f64 =
            words.map(|(theta, count)| theta + (1.0 - self.shape.prior - count) * theta.ln()).sum();
        let of_topic: f64 = self.totals.iter().zip(&self.sums).map(|(total, sum)| total * sum.ln()).sum();
        potential[0] = of_word + of_topic;
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(self)
    }
}

/// `G = diag(1 / theta)`.
impl Metric<f64> for Lda {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        metric.iter_mut().zip(theta).for_each(|(metric, theta)| *metric = 1.0 / theta);
    }

    fn divergence(&mut self, theta: &[f64], inverse: bool, divergence: &mut [f64]) -> bool {
        for (divergence, theta) in divergence.iter_mut().zip(theta) {
            *divergence = if inverse { 1.0 } else { 0.5 / theta.sqrt() };
        }
        true
    }
}
