//! The network: convolutions over time and neighbouring bands, around a trunk over the whole spectrum.

use super::header::PresenceNetHeader;
use super::sizes::{FEATURES, GROUP, PAIR, PLACES};
use crate::kernels::convolution::{Convolution, Grid};

/// Slope of the activation function below zero: a leaky rectifier.
const LEAK: f32 = 0.1;

/// All layers, with their parameters end to end in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Network {
    pub first: Convolution,
    /// Offset of the biases of the places among the parameters, places x channels.
    pub places: usize,
    pub local: Vec<Convolution>,
    pub narrow: Convolution,
    pub gather: Convolution,
    pub wide: Vec<Convolution>,
    pub spread: Convolution,
    pub widen: Convolution,
    pub after: Vec<Convolution>,
    pub last: Convolution,
    pub parameters: Vec<f32>,
}

/// Assigns offsets among the parameters.
pub(super) struct Layout(usize);

impl Layout {
    pub(super) fn new() -> Self {
        Self(0)
    }

    /// Number of assigned parameters.
    pub(super) fn size(&self) -> usize {
        self.0
    }

    pub(super) fn take(&mut self, size: usize) -> usize {
        let offset = self.0;
        self.0 += size;
        offset
    }

    pub(super) fn convolution(
        &mut self,
        [inputs, outputs]: [usize; 2],
        reach: (usize, usize),
        dilation: usize,
    ) -> Convolution {
        let mut layer = Convolution { inputs, outputs, reach, dilation: (dilation, 1), offset: 0 };
        layer.offset = self.take(layer.size());
        layer
    }

    pub(super) fn convolutions(
        &mut self,
        width: usize,
        reach: (usize, usize),
        dilations: &[usize],
    ) -> Vec<Convolution> {
        dilations.iter().map(|&dilation| self.convolution([width, width], reach, dilation)).collect()
    }
}

impl Network {
    /// A network of zeros.
    pub(super) fn new(header: &PresenceNetHeader) -> Self {
        let &PresenceNetHeader { channels, narrow, width, .. } = header;
        let mut layout = Layout::new();
        // Fields are evaluated in this order, which is that of the file.
        let mut network = Self {
            first: layout.convolution([FEATURES * PAIR * GROUP, channels], (1, 1), 1),
            places: layout.take(PLACES * channels),
            local: layout.convolutions(channels, (1, 1), &header.local),
            narrow: layout.convolution([channels, narrow], (0, 0), 1),
            gather: layout.convolution([narrow * PLACES, width], (0, 0), 1),
            wide: layout.convolutions(width, (1, 0), &header.wide),
            spread: layout.convolution([width, narrow * PLACES], (0, 0), 1),
            widen: layout.convolution([narrow, channels], (0, 0), 1),
            after: layout.convolutions(channels, (1, 1), &header.after),
            last: layout.convolution([channels, PAIR * GROUP], (0, 0), 1),
            parameters: Vec::new(),
        };
        network.parameters = vec![0.0; layout.size()];
        network
    }

    /// All layers, in the order of the file.
    pub(super) fn convolutions(&self) -> impl Iterator<Item = &Convolution> {
        let Self { first, local, narrow, gather, wide, spread, widen, after, last, .. } = self;
        let before = [first].into_iter().chain(local).chain([narrow, gather]);
        before.chain(wide).chain([spread, widen]).chain(after).chain([last])
    }

    /// The log odds, bands x frames, two frames for each of the input.
    pub(super) fn forward(&self, input: &Grid) -> Vec<f32> {
        let parameters = &self.parameters;
        let mut near = self.first.forward(parameters, input);
        rectify_with(&mut near, &parameters[self.places..]);
        residual(parameters, &self.local, &mut near);
        let narrow = self.narrow.forward(parameters, &near);
        let mut whole = self.gather.forward(parameters, &narrow.reshaped(self.gather.inputs));
        rectify(&mut whole);
        residual(parameters, &self.wide, &mut whole);
        let spread = self.spread.forward(parameters, &whole).reshaped(self.widen.inputs);
        add(&mut near, &self.widen.forward(parameters, &spread));
        residual(parameters, &self.after, &mut near);
        odds_of(&self.last.forward(parameters, &near))
    }
}

/// The log odds of both frames of every pair, bands x frames.
pub(super) fn odds_of(output: &Grid) -> Vec<f32> {
    let mut odds = Vec::with_capacity(output.values.len());
    for row in output.values.chunks_exact(output.row()) {
        for frame in 0..PAIR {
            let places = row.chunks_exact(PAIR * GROUP);
            odds.extend(places.flat_map(|place| &place[frame * GROUP..(frame + 1) * GROUP]));
        }
    }
    odds
}

/// Adds the biases of the places to every frame, and rectifies.
pub(super) fn rectify_with(grid: &mut Grid, biases: &[f32]) {
    let row = grid.row();
    for row in grid.values.chunks_exact_mut(row) {
        row.iter_mut().zip(biases).for_each(|(value, bias)| *value = activation(*value + bias));
    }
}

/// `x <- x + activation(layer(x))` for every layer.
pub(super) fn residual(parameters: &[f32], layers: &[Convolution], grid: &mut Grid) {
    for layer in layers {
        let mut branch = layer.forward(parameters, grid);
        rectify(&mut branch);
        add(grid, &branch);
    }
}

pub(super) fn rectify(grid: &mut Grid) {
    grid.values.iter_mut().for_each(|value| *value = activation(*value));
}

#[inline(always)]
pub(super) fn activation(x: f32) -> f32 {
    x.max(LEAK * x)
}

pub(super) fn add(sum: &mut Grid, term: &Grid) {
    sum.values.iter_mut().zip(&term.values).for_each(|(sum, x)| *sum += x);
}
