//! A listener live: it hears one frame after the other, and nothing of what is to come.

use super::PresenceNet;
use super::bands::{BANDS, Interpolation, edges};
use super::network::{FEATURES, GROUP, Network, PAIR, PLACES, activation};
use crate::kernels::convolution::Convolution;
use crate::kernels::vector;

/// Distance of the frames that the network has learned with, s.
const FRAME_SECONDS: f64 = 0.016;
/// Frames closer than this are not listened to one by one.
const LEAST_SECONDS: f64 = 0.008;
/// Memory of the mean power, and of the quiet of a band, s.
const MEAN_SECONDS: f64 = 3.0;
const QUIET_SECONDS: f64 = 8.0;
/// The share of the frames that are quieter than the quiet of their band.
const QUIET: f32 = 0.1;
/// Powers below this share of the mean count as this.
const LEAST: f32 = 1e-9;

/// Outputs that a layer computes together: of several places, or of one.
const LANES: usize = 16;
const TOGETHER: usize = 4;
const LANES_ALONE: usize = 64;

/// A convolution over the present row and one of the past.
#[derive(Debug, Clone)]
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Rows back to the past one; 0 for none.
    distance: usize,
    /// Inputs that a place sees of a row.
    seen: usize,
    lanes: usize,
    /// For every `lanes` outputs (the last filled up with zeros), what they take of each input: the past row's first.
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Layer {
    /// The layer of a network that computes for so many places. Its taps into the future are left out.
    fn new(layer: &Convolution, parameters: &[f32], places: usize) -> Self {
        let side = 2 * layer.reach.1 + 1;
        let seen = side * layer.inputs;
        let rows = 1 + layer.reach.0;
        let outputs = layer.outputs;
        let patch = (2 * layer.reach.0 + 1) * seen;
        let (weights, biases) = parameters[layer.offset..][..layer.size()].split_at(outputs * patch);
        let lanes = if places == 1 { LANES_ALONE } else { LANES };
        let blocks = outputs.div_ceil(lanes);
        let mut blocked = Vec::with_capacity(blocks * rows * seen * lanes);
        for block in 0..blocks {
            for input in 0..rows * seen {
                for lane in 0..lanes {
                    let output = block * lanes + lane;
                    blocked.push(if output < outputs { weights[input * outputs + output] } else { 0.0 });
                }
            }
        }
        let mut biases = biases.to_vec();
        biases.resize(blocks * lanes, 0.0);
        let distance = if layer.reach.0 > 0 { layer.dilation.0 } else { 0 };
        Self { inputs: layer.inputs, outputs, distance, seen, lanes, weights: blocked, biases }
    }

    /// Writes the outputs of all places side by side. A place sees `seen` inputs of `now` and of `past`, the next place those
    /// from `inputs` further on.
    #[inline(always)]
    fn forward(&self, past: &[f32], now: &[f32], out: &mut [f32]) {
        if self.lanes == LANES {
            self.forward_together(past, now, out);
        } else {
            self.forward_alone(past, now, out);
        }
    }

    /// The rows that are seen, each with its share of the weights of a block.
    #[inline(always)]
    fn rows<'a, const L: usize>(
        &self,
        past: &'a [f32],
        now: &'a [f32],
        weights: &'a [[f32; L]],
    ) -> [(&'a [f32], &'a [[f32; L]]); 2] {
        // Without a past there are no weights for it, and any row will do.
        let (past, count) = if self.distance > 0 { (past, self.seen) } else { (now, 0) };
        let (of_past, of_now) = weights.split_at(count);
        [(past, of_past), (now, of_now)]
    }

    #[inline(always)]
    fn forward_together(&self, past: &[f32], now: &[f32], out: &mut [f32]) {
        let (weights, biases) = (self.weights.as_chunks::<LANES>().0, self.biases.as_chunks::<LANES>().0);
        let per_block = weights.len() / biases.len();
        for (block, (weights, biases)) in weights.chunks_exact(per_block).zip(biases).enumerate() {
            let written = (self.outputs - block * LANES).min(LANES);
            for (group, out) in out.chunks_exact_mut(TOGETHER * self.outputs).enumerate() {
                let mut sums = [*biases; TOGETHER];
                for (row, weights) in self.rows(past, now, weights) {
                    let first = TOGETHER * group * self.inputs;
                    let seen = |place: usize| &row[first + place * self.inputs..][..weights.len()];
                    add_together(&mut sums, weights, [seen(0), seen(1), seen(2), seen(3)]);
                }
                for (out, sums) in out.chunks_exact_mut(self.outputs).zip(&sums) {
                    out[block * LANES..][..written].copy_from_slice(&sums[..written]);
                }
            }
        }
    }

    #[inline(always)]
    fn forward_alone(&self, past: &[f32], now: &[f32], out: &mut [f32]) {
        let weights = self.weights.as_chunks::<LANES_ALONE>().0;
        let biases = self.biases.as_chunks::<LANES_ALONE>().0;
        let per_block = weights.len() / biases.len();
        let blocks = weights.chunks_exact(per_block).zip(biases);
        for (out, (weights, biases)) in out.chunks_mut(LANES_ALONE).zip(blocks) {
            let mut sums = *biases;
            for (row, weights) in self.rows(past, now, weights) {
                for (w, x) in weights.iter().zip(row) {
                    add(&mut sums, w, *x);
                }
            }
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

/// Adds to the sums of four places their inputs, weighted.
#[inline(always)]
fn add_together(
    sums: &mut [[f32; LANES]; TOGETHER],
    weights: &[[f32; LANES]],
    [xa, xb, xc, xd]: [&[f32]; TOGETHER],
) {
    // Sums by names of their own, and one loop over all lanes: otherwise the compiler keeps them in memory.
    let [mut a, mut b, mut c, mut d] = *sums;
    let count = weights.len();
    let (xa, xb, xc, xd) = (&xa[..count], &xb[..count], &xc[..count], &xd[..count]);
    for k in 0..count {
        let (w, xa, xb, xc, xd) = (&weights[k], xa[k], xb[k], xc[k], xd[k]);
        for lane in 0..LANES {
            a[lane] += w[lane] * xa;
            b[lane] += w[lane] * xb;
            c[lane] += w[lane] * xc;
            d[lane] += w[lane] * xd;
        }
    }
    *sums = [a, b, c, d];
}

#[inline(always)]
fn add<const L: usize>(sums: &mut [f32; L], weights: &[f32; L], x: f32) {
    for lane in 0..L {
        sums[lane] += weights[lane] * x;
    }
}

/// The last rows that a layer was given.
#[derive(Debug, Clone)]
struct History {
    rows: Vec<f32>,
    row: usize,
    at: usize,
}

impl History {
    fn new(layer: &Layer, row: usize) -> Self {
        Self { rows: vec![0.0; layer.distance * row], row, at: 0 }
    }

    /// The row that is as far back as the layer looks.
    #[inline(always)]
    fn past(&self) -> &[f32] {
        &self.rows[self.at..self.at + self.row]
    }

    /// Puts the present row in its place.
    #[inline(always)]
    fn keep(&mut self, now: &[f32]) {
        self.rows[self.at..self.at + self.row].copy_from_slice(now);
        self.at += self.row;
        if self.at == self.rows.len() {
            self.at = 0;
        }
    }

    fn reset(&mut self) {
        self.rows.fill(0.0);
        self.at = 0;
    }
}

/// The network without a future.
#[derive(Debug, Clone)]
struct CausalNetwork {
    first: Layer,
    /// Biases of every place, places x channels.
    places: Vec<f32>,
    local: Vec<Layer>,
    narrow: Layer,
    gather: Layer,
    wide: Vec<Layer>,
    spread: Layer,
    widen: Layer,
    after: Vec<Layer>,
    last: Layer,
}

/// What the network remembers of the pairs of frames before.
#[derive(Debug, Clone)]
struct Memory {
    first: History,
    local: Vec<History>,
    wide: Vec<History>,
    after: Vec<History>,
}

/// Rows that the network works in. Those of places have one more on either side, of zeros.
#[derive(Debug, Clone)]
struct Rows {
    input: Vec<f32>,
    near: Vec<f32>,
    branch: Vec<f32>,
    narrow: Vec<f32>,
    trunk: Vec<f32>,
    trunk_branch: Vec<f32>,
    spread: Vec<f32>,
    output: Vec<f32>,
}

impl CausalNetwork {
    fn new(network: &Network) -> Self {
        let parameters = &network.parameters;
        let layer = |layer: &Convolution, places: usize| Layer::new(layer, parameters, places);
        let layers = |layers: &[Convolution], places: usize| -> Vec<Layer> {
            layers.iter().map(|own| layer(own, places)).collect()
        };
        let first = layer(&network.first, PLACES);
        Self {
            places: parameters[network.places..][..PLACES * first.outputs].to_vec(),
            local: layers(&network.local, PLACES),
            narrow: layer(&network.narrow, PLACES),
            gather: layer(&network.gather, 1),
            wide: layers(&network.wide, 1),
            spread: layer(&network.spread, 1),
            widen: layer(&network.widen, PLACES),
            after: layers(&network.after, PLACES),
            last: layer(&network.last, PLACES),
            first,
        }
    }

    fn memory(&self) -> Memory {
        let places = |layer: &Layer| History::new(layer, (PLACES + 2) * layer.inputs);
        Memory {
            first: places(&self.first),
            local: self.local.iter().map(places).collect(),
            wide: self.wide.iter().map(|layer| History::new(layer, layer.inputs)).collect(),
            after: self.after.iter().map(places).collect(),
        }
    }

    fn rows(&self) -> Rows {
        let row = |values: usize| vec![0.0; values];
        Rows {
            input: row((PLACES + 2) * self.first.inputs),
            near: row((PLACES + 2) * self.first.outputs),
            branch: row(PLACES * self.first.outputs),
            narrow: row(PLACES * self.narrow.outputs),
            trunk: row(self.gather.outputs),
            trunk_branch: row(self.gather.outputs),
            spread: row(self.spread.outputs),
            output: row(PLACES * self.last.outputs),
        }
    }

    /// The odds on all places, from what `rows.input` has of a pair of frames, into `rows.output`.
    fn forward(&self, memory: &mut Memory, rows: &mut Rows) {
        vector::dispatch(
            #[inline(always)]
            || {
                let Rows { input, near, branch, narrow, trunk, trunk_branch, spread, output } = rows;
                let channels = self.first.outputs;
                let inside = channels..(PLACES + 1) * channels;
                self.first.forward(memory.first.past(), input, branch);
                memory.first.keep(input);
                let biased = branch.iter().zip(&self.places).map(|(x, bias)| activation(x + bias));
                near[inside.clone()].iter_mut().zip(biased).for_each(|(near, x)| *near = x);
                residual(&self.local, &mut memory.local, near, inside.clone(), branch);
                self.narrow.forward(&[], &near[channels..], narrow);
                self.gather.forward(&[], narrow, trunk);
                trunk.iter_mut().for_each(|x| *x = activation(*x));
                let whole = 0..trunk.len();
                residual(&self.wide, &mut memory.wide, trunk, whole, trunk_branch);
                self.spread.forward(&[], trunk, spread);
                self.widen.forward(&[], spread, branch);
                near[inside.clone()].iter_mut().zip(&*branch).for_each(|(near, x)| *near += x);
                residual(&self.after, &mut memory.after, near, inside, branch);
                self.last.forward(&[], &near[channels..], output);
            },
        );
    }
}

/// `x <- x + activation(layer(x))` for every layer, x being what is inside of the row.
#[inline(always)]
fn residual(
    layers: &[Layer],
    memories: &mut [History],
    row: &mut [f32],
    inside: std::ops::Range<usize>,
    branch: &mut [f32],
) {
    for (layer, memory) in layers.iter().zip(memories) {
        layer.forward(memory.past(), row, branch);
        memory.keep(row);
        row[inside.clone()].iter_mut().zip(&*branch).for_each(|(sum, x)| *sum += activation(*x));
    }
}

impl Memory {
    fn reset(&mut self) {
        let Self { first, local, wide, after } = self;
        [first].into_iter().chain(local).chain(wide).chain(after).for_each(History::reset);
    }
}

/// How often a band had which level: a histogram that forgets.
#[derive(Debug, Clone)]
struct Quiet {
    /// Of all bands, [`Quiet::CELLS`] each.
    counts: Vec<f32>,
    total: f32,
    keep: f32,
}

impl Quiet {
    /// Natural logarithms of power that are told apart: from this on, by so much each.
    const LOWEST: f32 = -32.0;
    const CELL: f32 = 0.4;
    const CELLS: usize = 96;

    fn new(frame_seconds: f64) -> Self {
        let keep = libm::exp(-frame_seconds / QUIET_SECONDS) as f32;
        Self { counts: vec![0.0; BANDS * Self::CELLS], total: 0.0, keep }
    }

    /// Counts the level of a frame in every band, and writes the band's quantile.
    fn update(&mut self, level: &[f32], quiet: &mut [f32]) {
        /// Counts below this are none: they would become subnormal numbers, which are slow.
        const NONE: f32 = 1e-20;
        let keep = self.keep;
        vector::dispatch(
            #[inline(always)]
            || {
                for count in &mut self.counts {
                    let kept = *count * keep;
                    *count = if kept < NONE { 0.0 } else { kept };
                }
            },
        );
        self.total = self.total * self.keep + 1.0;
        let goal = QUIET * self.total;
        let bands = self.counts.chunks_exact_mut(Self::CELLS).zip(level.iter().zip(quiet));
        for (counts, (level, quiet)) in bands {
            let cell = ((level - Self::LOWEST) / Self::CELL).clamp(0.0, Self::CELLS as f32 - 1.0);
            counts[cell as usize] += 1.0;
            let mut below = 0.0;
            *quiet = Self::LOWEST + Self::CELL * Self::CELLS as f32;
            for (cell, count) in counts.iter().enumerate() {
                if below + count >= goal {
                    *quiet = Self::LOWEST + Self::CELL * (cell as f32 + (goal - below) / count);
                    break;
                }
                below += count;
            }
        }
    }

    fn reset(&mut self) {
        self.counts.fill(0.0);
        self.total = 0.0;
    }
}

/// A [`PresenceNet`] that hears frame after frame.
///
/// Its network takes pairs of frames 16 ms apart. So that every frame is the last of a pair, as many of them take turns as
/// there are frames in 32 ms.
#[derive(Debug, Clone)]
pub(crate) struct CausalPresenceNet {
    network: CausalNetwork,
    rows: Rows,
    /// One for every turn.
    memories: Vec<Memory>,
    interpolation: Interpolation,
    edges: [usize; BANDS + 1],
    /// Bands that the recording has.
    present: usize,
    /// Frames from one that is listened to to the next.
    stride: usize,
    quiet_levels: Quiet,
    /// Sum of the mean powers that were heard, and of their weights; each is forgotten by `keep`.
    mean_sum: f64,
    mean_weight: f64,
    keep: f64,
    level: Vec<f32>,
    quiet: Vec<f32>,
    /// What the network sees of the last frames, features x bands each: those of the first half of a pair.
    waiting: Vec<f32>,
    /// Frames so far, and those that were listened to.
    frames: usize,
    heard: usize,
    odds: Vec<f32>,
    log_odds: Vec<f32>,
}

/// Features of all bands of a frame.
const ROW: usize = FEATURES * BANDS;

impl CausalPresenceNet {
    /// For frames of `bins` bins 15.625 Hz apart, `frame_seconds` apart, by a listener that hears the past alone.
    pub(crate) fn new(listener: &PresenceNet, bins: usize, frame_seconds: f64) -> Self {
        let stride = ((LEAST_SECONDS / frame_seconds).round() as usize).max(1);
        let heard_seconds = stride as f64 * frame_seconds;
        let spacing = ((FRAME_SECONDS / heard_seconds).round() as usize).max(1);
        let network = CausalNetwork::new(&listener.network);
        let edges = edges();
        Self {
            rows: network.rows(),
            memories: vec![network.memory(); PAIR * spacing],
            network,
            interpolation: Interpolation::new(&edges, bins),
            present: edges[1..].iter().take_while(|&&end| end <= bins).count(),
            edges,
            stride,
            quiet_levels: Quiet::new(heard_seconds),
            mean_sum: 0.0,
            mean_weight: 0.0,
            keep: libm::exp(-heard_seconds / MEAN_SECONDS),
            level: vec![0.0; BANDS],
            quiet: vec![0.0; BANDS],
            waiting: vec![0.0; spacing * ROW],
            frames: 0,
            heard: 0,
            odds: vec![0.0; BANDS],
            log_odds: vec![0.0; bins],
        }
    }

    /// Takes the powers `|X|^2` of the next frame, of which some is not zero, and returns the logarithm of the odds of speech
    /// in every bin.
    pub(crate) fn band_log_odds(&mut self, power: &[f32]) -> &[f32] {
        let is_heard = self.frames.is_multiple_of(self.stride);
        self.frames = (self.frames + 1) % self.stride;
        if is_heard {
            self.see(power);
            let turn = self.heard % self.memories.len();
            let oldest = self.heard % (self.memories.len() / PAIR) * ROW;
            self.pair(oldest);
            self.network.forward(&mut self.memories[turn], &mut self.rows);
            self.odds.clear();
            let places = self.rows.output.chunks_exact(PAIR * GROUP);
            self.odds.extend(places.flat_map(|place| &place[GROUP..]));
            self.log_odds.clear();
            self.interpolation.extend(&self.odds, &mut self.log_odds);
            // Whole rounds are forgotten, so that the count does not overflow; the first one tells that nothing waits.
            self.heard += 1;
            if self.heard == 2 * self.memories.len() {
                self.heard = self.memories.len();
            }
        }
        &self.log_odds
    }

    /// Finds the level and the quiet of every band.
    fn see(&mut self, power: &[f32]) {
        let mut total = 0.0;
        for (level, range) in self.level.iter_mut().zip(self.edges[..=self.present].windows(2)) {
            let inside = &power[range[0]..range[1]];
            *level = inside.iter().sum::<f32>() / inside.len() as f32;
            total += f64::from(*level);
        }
        self.mean_sum = self.keep * self.mean_sum + total / self.present as f64;
        self.mean_weight = self.keep * self.mean_weight + 1.0;
        let least = self.mean() * LEAST;
        let present = &mut self.level[..self.present];
        present.iter_mut().for_each(|level| *level = vector::ln(*level + least));
        self.quiet_levels.update(present, &mut self.quiet);
    }

    /// Mean power of what was heard.
    fn mean(&self) -> f32 {
        (self.mean_sum / self.mean_weight) as f32
    }

    /// Lays out the input of the network: the frame that has waited from `oldest` on and the present one, which then waits
    /// there.
    fn pair(&mut self, oldest: usize) {
        let whole = vector::ln(self.mean());
        let is_first = self.heard < self.memories.len() / PAIR;
        let inputs = FEATURES * PAIR * GROUP;
        for band in 0..self.present {
            let (level, quiet) = (self.level[band], self.quiet[band]);
            let now = [(level - whole) / 4.0, (level - quiet) / 4.0 - 0.5, (quiet - whole) / 4.0 + 1.0];
            let place = (band / GROUP + 1) * inputs + band % GROUP;
            for (feature, now) in now.into_iter().enumerate() {
                let waiting = &mut self.waiting[oldest + feature * BANDS + band];
                let before = if is_first { now } else { *waiting };
                *waiting = now;
                for (frame, value) in [before, now].into_iter().enumerate() {
                    self.rows.input[place + (feature * PAIR + frame) * GROUP] = value;
                }
            }
        }
    }

    /// Forgets all that was heard.
    pub(crate) fn reset(&mut self) {
        self.memories.iter_mut().for_each(Memory::reset);
        self.quiet_levels.reset();
        (self.mean_sum, self.mean_weight, self.frames, self.heard) = (0.0, 0.0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compare_with, spectrum};
    use super::*;
    use crate::kernels::convolution::Grid;
    use crate::random::SeedTree;
    use rand::RngExt;

    #[test]
    fn pair_after_pair_it_is_the_network_without_a_future() {
        let network = PresenceNet::built_in_causal().unwrap().network;
        let mut input = Grid::new(network.first.inputs, PLACES, 40);
        let mut random = SeedTree::new(1).rng(0);
        input.values.iter_mut().for_each(|x| *x = random.random_range(-1.0..1.0));
        let expected = network.forward(&input);
        let causal = CausalNetwork::new(&network);
        let (mut memory, mut rows) = (causal.memory(), causal.rows());
        for again in 0..2 {
            let mut found = Vec::new();
            for row in input.values.chunks_exact(input.row()) {
                rows.input[input.channels..][..row.len()].copy_from_slice(row);
                causal.forward(&mut memory, &mut rows);
                for frame in 0..PAIR {
                    let places = rows.output.chunks_exact(PAIR * GROUP);
                    found
                        .extend(places.flat_map(|place| &place[frame * GROUP..(frame + 1) * GROUP]).copied());
                }
            }
            assert_eq!(found.len(), expected.len());
            let error = found.iter().zip(&expected).map(|(a, b): (&f32, &f32)| (a - b).abs());
            let error = error.fold(0.0, f32::max);
            assert!(error < 1e-3, "{error}, round {again}");
            memory.reset();
        }
    }

    #[test]
    fn the_odds_are_those_of_the_framework_that_learned_them() {
        let listener = PresenceNet::built_in_causal().unwrap();
        let mut compared = 0;
        for bins in [513, 257] {
            let mut live = CausalPresenceNet::new(&listener, bins, 0.008);
            let odds: Vec<Vec<f32>> =
                spectrum(bins).chunks_exact(bins).map(|power| live.band_log_odds(power).to_vec()).collect();
            compared += compare_with(include_str!("reference-live.csv"), bins, |frame, bin| odds[frame][bin]);
        }
        assert!(compared > 50);
    }

    #[test]
    fn the_quiet_is_the_quantile_of_the_levels() {
        let mut quiet_levels = Quiet::new(0.008);
        let (mut random, mut quiet) = (SeedTree::new(2).rng(0), [0.0]);
        for _ in 0..2_000 {
            quiet_levels.update(&[random.random_range(-20.0..0.0)], &mut quiet);
        }
        assert!((quiet[0] + 18.0).abs() < 0.6, "{}", quiet[0]);
        // It forgets, but slowly.
        (0..500).for_each(|_| quiet_levels.update(&[-2.0], &mut quiet));
        assert!(quiet[0] < -12.0, "{}", quiet[0]);
        (0..3_000).for_each(|_| quiet_levels.update(&[-2.0], &mut quiet));
        assert!((quiet[0] + 2.0).abs() < 0.5, "{}", quiet[0]);
    }
}
