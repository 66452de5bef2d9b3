//! A convolution over the present row and one past row.

use crate::kernels::convolution::Convolution;

/// Outputs that are computed together, for layers of several places.
const LANES: usize = 16;
/// Places that are computed together.
const TOGETHER: usize = 4;
/// Outputs that are computed together, for layers of one place.
const LANES_ALONE: usize = 64;

/// A convolution over the present row and one past row.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub inputs: usize,
    pub outputs: usize,
    /// Rows back to the past one; 0 for none.
    distance: usize,
    /// Inputs of a place from a row.
    seen: usize,
    lanes: usize,
    /// Per block of `lanes` outputs (the last padded with zeros), the weights of each input, those of the past row first.
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Layer {
    /// The layer without its taps into the future, for `places` places.
    pub(super) fn new(layer: &Convolution, parameters: &[f32], places: usize) -> Self {
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

    /// Writes the outputs of all places side by side. A place takes `seen` inputs of `now` and of `past`, the next place those
    /// `inputs` further on.
    #[inline(always)]
    pub(super) fn forward(&self, past: &[f32], now: &[f32], out: &mut [f32]) {
        if self.lanes == LANES {
            self.forward_together(past, now, out);
        } else {
            self.forward_alone(past, now, out);
        }
    }

    /// The input rows, each with its part of the weights of a block.
    #[inline(always)]
    fn rows<'a, const L: usize>(
        &self,
        past: &'a [f32],
        now: &'a [f32],
        weights: &'a [[f32; L]],
    ) -> [(&'a [f32], &'a [[f32; L]]); 2] {
        // Layers without past row have no weights for it; any row will do.
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

/// Adds the weighted inputs of four places to their sums.
#[inline(always)]
fn add_together(
    sums: &mut [[f32; LANES]; TOGETHER],
    weights: &[[f32; LANES]],
    [xa, xb, xc, xd]: [&[f32]; TOGETHER],
) {
    // Named sums and one loop over all lanes: otherwise the compiler keeps them in memory.
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

/// The last input rows of a layer.
#[derive(Debug, Clone)]
pub(super) struct History {
    rows: Vec<f32>,
    row: usize,
    at: usize,
}

impl History {
    pub(super) fn new(layer: &Layer, row: usize) -> Self {
        Self { rows: vec![0.0; layer.distance * row], row, at: 0 }
    }

    /// The past row of the layer.
    #[inline(always)]
    pub(super) fn past(&self) -> &[f32] {
        &self.rows[self.at..self.at + self.row]
    }

    /// Replaces the past row by the present one.
    #[inline(always)]
    pub(super) fn keep(&mut self, now: &[f32]) {
        self.rows[self.at..self.at + self.row].copy_from_slice(now);
        self.at += self.row;
        if self.at == self.rows.len() {
            self.at = 0;
        }
    }

    pub(super) fn reset(&mut self) {
        self.rows.fill(0.0);
        self.at = 0;
    }
}
