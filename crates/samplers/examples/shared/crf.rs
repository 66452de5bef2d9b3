//! A linear-chain conditional random field with a Gaussian prior.
//!
//! `p(y | x)` is proportional to `exp(sum_t [sum_f w(f, y_t) + v(y_t-1, y_t)])`, `f` over the features that are present
//! at position `t`. The parameters are `w` (`labels x features`, a feature's labels next to each other) and then `v`
//! (`labels x labels`, the label before first).

use alphamf_samplers::{Minibatch, Target};

/// One position of a sequence: the features that are present, and its label.
#[derive(Clone)]
pub struct Position {
    pub features: Vec<usize>,
    pub label: usize,
}

/// The posterior of the parameters, given labelled sequences; a sequence is a data term.
#[derive(Clone)]
pub struct Crf {
    sequences: Vec<Vec<Position>>,
    labels: usize,
    features: usize,
    precision: f64,
    lattice: Lattice,
}

/// Results of the forward and backward passes over one sequence, `labels x positions` each.
#[derive(Clone, Default)]
struct Lattice {
    /// Exponentials of the sums of `w`, minus the largest sum of their position.
    local: Vec<f64>,
    forward: Vec<f64>,
    backward: Vec<f64>,
    /// Divisors of the forward variables of each position.
    scales: Vec<f64>,
    /// Exponentials of `v`.
    transitions: Vec<f64>,
}

impl Crf {
    pub fn new(sequences: Vec<Vec<Position>>, labels: usize, features: usize, variance: f64) -> Self {
        Self { sequences, labels, features, precision: 1.0 / variance, lattice: Lattice::default() }
    }

    fn transition(&self, before: usize, label: usize) -> usize {
        (self.features + before) * self.labels + label
    }

    /// The unnormalised log probability of `labels` at the positions of a sequence.
    pub fn score(&self, theta: &[f64], sequence: &[Position], labels: &[usize]) -> f64 {
        let of = |position: &Position, label: usize| -> f64 {
            position.features.iter().map(|feature| theta[feature * self.labels + label]).sum()
        };
        let local: f64 = sequence.iter().zip(labels).map(|(position, &label)| of(position, label)).sum();
        local + labels.windows(2).map(|pair| theta[self.transition(pair[0], pair[1])]).sum::<f64>()
    }

    /// The log normaliser of a sequence, by the forward pass. Every position's variables are scaled to a sum of one.
    pub fn log_normaliser(&mut self, theta: &[f64], sequence: &[Position]) -> f64 {
        let labels = self.labels;
        let Lattice { local, forward, scales, transitions, .. } = &mut self.lattice;
        transitions.clear();
        transitions.extend(theta[self.features * labels..].iter().map(|v| v.exp()));
        local.clear();
        forward.clear();
        scales.clear();
        let mut log = 0.0;
        for (t, position) in sequence.iter().enumerate() {
            let place = t * labels;
            local.resize(place + labels, 0.0);
            let sums = &mut local[place..];
            for feature in &position.features {
                sums.iter_mut().zip(&theta[feature * labels..]).for_each(|(sum, w)| *sum += w);
            }
            let largest = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            sums.iter_mut().for_each(|sum| *sum = (*sum - largest).exp());
            for label in 0..labels {
                let reached: f64 = match t {
                    0 => 1.0,
                    _ => (0..labels)
                        .map(|before| forward[place - labels + before] * transitions[before * labels + label])
                        .sum(),
                };
                forward.push(reached * local[place + label]);
            }
            let scale: f64 = forward[place..].iter().sum();
            forward[place..].iter_mut().for_each(|value| *value /= scale);
            scales.push(scale);
            log += scale.ln() + largest;
        }
        log
    }

    /// Runs the backward pass, after the forward pass of [`Self::log_normaliser`].
    fn backward(&mut self, positions: usize) {
        let labels = self.labels;
        let Lattice { local, backward, scales, transitions, .. } = &mut self.lattice;
        backward.clear();
        backward.resize(positions * labels, 1.0);
        for t in (1..positions).rev() {
            let next = t * labels;
            for before in 0..labels {
                let left: f64 = (0..labels)
                    .map(|label| {
                        transitions[before * labels + label] * local[next + label] * backward[next + label]
                    })
                    .sum();
                backward[next - labels + before] = left / scales[t];
            }
        }
    }

    /// Returns the label of the largest marginal probability at every position.
    pub fn decode(&mut self, theta: &[f64], sequence: &[Position]) -> Vec<usize> {
        self.log_normaliser(theta, sequence);
        self.backward(sequence.len());
        let (labels, lattice) = (self.labels, &self.lattice);
        let probability = |place: usize| lattice.forward[place] * lattice.backward[place];
        let best = |t: usize| {
            (0..labels).max_by(|&a, &b| probability(t * labels + a).total_cmp(&probability(t * labels + b)))
        };
        (0..sequence.len()).map(|t| best(t).unwrap_or_default()).collect()
    }

    /// Adds `weight` times minus the log likelihood of sequence `index`, and its gradient.
    fn add(&mut self, theta: &[f64], index: usize, weight: f64, gradient: Option<&mut [f64]>) -> f64 {
        let sequence = std::mem::take(&mut self.sequences[index]);
        let truth: Vec<usize> = sequence.iter().map(|position| position.label).collect();
        let value = self.log_normaliser(theta, &sequence) - self.score(theta, &sequence, &truth);
        if let Some(gradient) = gradient {
            self.backward(sequence.len());
            let (labels, first) = (self.labels, self.features * self.labels);
            let Lattice { local, forward, backward, scales, transitions } = &self.lattice;
            for (t, position) in sequence.iter().enumerate() {
                let place = t * labels;
                for label in 0..labels {
                    let expected = forward[place + label] * backward[place + label];
                    let excess = weight * (expected - f64::from(position.label == label));
                    for feature in &position.features {
                        gradient[feature * labels + label] += excess;
                    }
                    if t > 0 {
                        let rest = local[place + label] * backward[place + label] / scales[t];
                        for before in 0..labels {
                            let entry = before * labels + label;
                            gradient[first + entry] +=
                                weight * forward[place - labels + before] * transitions[entry] * rest;
                        }
                    }
                }
                if t > 0 {
                    gradient[first + truth[t - 1] * labels + truth[t]] -= weight;
                }
            }
        }
        self.sequences[index] = sequence;
        weight * value
    }
}

impl Target<f64> for Crf {
    fn dimension(&self) -> usize {
        (self.features + self.labels) * self.labels
    }

    fn terms(&self) -> usize {
        self.sequences.len()
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.iter_mut().zip(theta).for_each(|(gradient, theta)| *gradient = self.precision * theta);
        for index in batch.iter() {
            self.add(theta, index, batch.scale(), Some(gradient));
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = 0.5 * self.precision * theta.iter().map(|x| x * x).sum::<f64>();
        potential[0] += (0..self.terms()).map(|index| self.add(theta, index, 1.0, None)).sum::<f64>();
    }

    fn evaluate(&mut self, theta: &[f64], potential: &mut [f64], gradient: &mut [f64]) {
        gradient.iter_mut().zip(theta).for_each(|(gradient, theta)| *gradient = self.precision * theta);
        potential[0] = 0.5 * self.precision * theta.iter().map(|x| x * x).sum::<f64>();
        for index in 0..self.terms() {
            potential[0] += self.add(theta, index, 1.0, Some(gradient));
        }
    }
}
