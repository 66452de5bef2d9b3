//! The network frame by frame, without future.

use super::layer::{History, Layer};
use super::weights::Weights;
use crate::kernels::convolution::Convolution;
use crate::kernels::vector;
use crate::presence::network::activation;
use crate::presence::sizes::PLACES;

/// A network without its taps into the future.
#[derive(Debug, Clone)]
pub(super) struct CausalNetwork {
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

/// Past rows of all layers.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    first: History,
    local: Vec<History>,
    wide: Vec<History>,
    after: Vec<History>,
}

/// Buffers of the network. Rows of places have a place of zeros on either side.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub input: Vec<f32>,
    near: Vec<f32>,
    branch: Vec<f32>,
    narrow: Vec<f32>,
    trunk: Vec<f32>,
    trunk_branch: Vec<f32>,
    spread: Vec<f32>,
    pub output: Vec<f32>,
}

impl CausalNetwork {
    pub(super) fn new(weights: &Weights) -> Self {
        let parameters = &weights.parameters;
        let layer = |layer: &Convolution, places: usize| Layer::new(layer, parameters, places);
        let layers = |layers: &[Convolution], places: usize| -> Vec<Layer> {
            layers.iter().map(|own| layer(own, places)).collect()
        };
        let first = layer(&weights.first, PLACES);
        Self {
            places: parameters[weights.places..][..PLACES * first.outputs].to_vec(),
            local: layers(&weights.local, PLACES),
            narrow: layer(&weights.narrow, PLACES),
            gather: layer(&weights.gather, 1),
            wide: layers(&weights.wide, 1),
            spread: layer(&weights.spread, 1),
            widen: layer(&weights.widen, PLACES),
            after: layers(&weights.after, PLACES),
            last: layer(&weights.last, PLACES),
            first,
        }
    }

    pub(super) fn memory(&self) -> Memory {
        let places = |layer: &Layer| History::new(layer, (PLACES + 2) * layer.inputs);
        Memory {
            first: places(&self.first),
            local: self.local.iter().map(places).collect(),
            wide: self.wide.iter().map(|layer| History::new(layer, layer.inputs)).collect(),
            after: self.after.iter().map(places).collect(),
        }
    }

    pub(super) fn rows(&self) -> Rows {
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

    /// Computes `rows.output`, the log odds on all places, from the pair of frames in `rows.input`.
    pub(super) fn forward(&self, memory: &mut Memory, rows: &mut Rows) {
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

/// `x <- x + activation(layer(x))` for every layer, on the part `inside` of the row.
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
    pub(super) fn reset(&mut self) {
        let Self { first, local, wide, after } = self;
        [first].into_iter().chain(local).chain(wide).chain(after).for_each(History::reset);
    }
}
