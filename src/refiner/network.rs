//! The network: a stack of dilated convolutions with residual connections.

use super::convolution::{Convolution, Grid};
use crate::random::Stream;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Distances of the taps (frames, bands) of the convolutions between the first and the last.
const DILATIONS: [(usize, usize); 7] = [(1, 1), (2, 1), (4, 2), (8, 1), (16, 4), (1, 1), (2, 2)];
/// The slope of the activation function below zero: a leaky rectifier.
const LEAK: f32 = 0.1;

/// `h <- activation(first(x))`, `h <- h + activation(layer(h))` for every layer, `last(h)`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Network {
    first: Convolution,
    residual: Vec<Convolution>,
    last: Convolution,
    pub parameters: Vec<f32>,
}

/// What a forward pass leaves for the backward one.
struct Trace {
    /// What the activation function returned, for the first convolution and the residual ones.
    activated: Vec<Grid>,
    /// The input of every residual convolution and of the last.
    hidden: Vec<Grid>,
}

impl Network {
    /// A network of zeros from `inputs` to `outputs` channels by way of `channels`.
    pub(super) fn new(inputs: usize, channels: usize, outputs: usize) -> Self {
        let mut offset = 0;
        let mut convolution = |inputs, outputs, reach, dilation| {
            let convolution = Convolution { inputs, outputs, reach, dilation, offset };
            offset += convolution.size();
            convolution
        };
        let first = convolution(inputs, channels, 1, (1, 1));
        let residual = DILATIONS.map(|dilation| convolution(channels, channels, 1, dilation)).to_vec();
        let last = convolution(channels, outputs, 0, (0, 0));
        Self { first, residual, last, parameters: vec![0.0; offset] }
    }

    /// Draws the weights, but for the last convolution's: the network starts by returning zero.
    pub(super) fn draw(&mut self, stream: &mut Stream) {
        for (convolution, gain) in std::iter::once((&self.first, 1.0))
            .chain(self.residual.iter().map(|convolution| (convolution, 0.3)))
        {
            let weights = convolution.size() - convolution.outputs;
            let fan_in = weights / convolution.outputs;
            let scale = gain / (fan_in as f32).sqrt();
            for weight in &mut self.parameters[convolution.offset..convolution.offset + weights] {
                *weight = scale * stream.sample::<f32, _>(StandardNormal);
            }
        }
    }

    /// The output for a grid of inputs.
    pub(super) fn forward(&self, input: &Grid) -> Grid {
        let mut hidden = self.first.forward(&self.parameters, input);
        activate(&mut hidden);
        for convolution in &self.residual {
            let mut branch = convolution.forward(&self.parameters, &hidden);
            activate(&mut branch);
            add(&mut hidden, &branch);
        }
        self.last.forward(&self.parameters, &hidden)
    }

    /// The output, and the slopes of the parameters given those of the output, which `slopes_of` makes.
    pub(super) fn gradient(&self, input: &Grid, slopes_of: impl FnOnce(&Grid) -> Grid) -> Vec<f32> {
        let parameters = &self.parameters;
        let mut first = self.first.forward(parameters, input);
        activate(&mut first);
        let mut trace = Trace { hidden: vec![first.clone()], activated: vec![first] };
        for (convolution, k) in self.residual.iter().zip(0..) {
            let mut branch = convolution.forward(parameters, &trace.hidden[k]);
            activate(&mut branch);
            let mut hidden = trace.hidden[k].clone();
            add(&mut hidden, &branch);
            trace.activated.push(branch);
            trace.hidden.push(hidden);
        }
        let mut gradient = vec![0.0; parameters.len()];
        let Trace { activated, hidden } = trace;
        let (top, below) = (&hidden[self.residual.len()], &hidden[..self.residual.len()]);
        let output_slopes = slopes_of(&self.last.forward(parameters, top));
        let mut slopes = Grid::new(top.channels, top.bands, top.frames());
        self.last.backward(parameters, top, &output_slopes, &mut gradient, Some(&mut slopes));
        let layers = self.residual.iter().zip(below).zip(&activated[1..]);
        for ((convolution, hidden), activated) in layers.rev() {
            let mut branch = slopes.clone();
            activate_slopes(&mut branch, activated);
            convolution.backward(parameters, hidden, &branch, &mut gradient, Some(&mut slopes));
        }
        activate_slopes(&mut slopes, &activated[0]);
        self.first.backward(parameters, input, &slopes, &mut gradient, None);
        gradient
    }
}

fn activate(grid: &mut Grid) {
    grid.values.iter_mut().for_each(|x| *x = x.max(LEAK * *x));
}

/// Turns slopes of what the activation function returned into those of its argument.
fn activate_slopes(slopes: &mut Grid, activated: &Grid) {
    let slope = |x: f32| if x > 0.0 { 1.0 } else { LEAK };
    slopes.values.iter_mut().zip(&activated.values).for_each(|(y, &x)| *y *= slope(x));
}

fn add(sum: &mut Grid, term: &Grid) {
    sum.values.iter_mut().zip(&term.values).for_each(|(sum, x)| *sum += x);
}
