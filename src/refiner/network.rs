//! The network: a stack of dilated convolutions with residual connections.

use crate::kernels::convolution::{Convolution, Grid};
use crate::random::SeededRng;
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

impl Network {
    /// A network of zeros from `inputs` to `outputs` channels by way of `channels`.
    pub(super) fn new(inputs: usize, channels: usize, outputs: usize) -> Self {
        let mut offset = 0;
        let mut convolution = |inputs, outputs, reach, dilation| {
            let convolution = Convolution { inputs, outputs, reach: (reach, reach), dilation, offset };
            offset += convolution.size();
            convolution
        };
        let first = convolution(inputs, channels, 1, (1, 1));
        let residual = DILATIONS.map(|dilation| convolution(channels, channels, 1, dilation)).to_vec();
        let last = convolution(channels, outputs, 0, (0, 0));
        Self { first, residual, last, parameters: vec![0.0; offset] }
    }

    /// Draws the weights, but for the last convolution's: the network starts by returning zero.
    pub(super) fn draw(&mut self, stream: &mut SeededRng) {
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

    /// A convolution and the activation function.
    fn activated(&self, convolution: &Convolution, input: &Grid) -> Grid {
        let mut grid = convolution.forward(&self.parameters, input);
        // Not `max`, which WebAssembly has no instruction for.
        grid.values.iter_mut().for_each(|x| *x = if *x > LEAK * *x { *x } else { LEAK * *x });
        grid
    }

    /// The output for a grid of inputs.
    pub(super) fn forward(&self, input: &Grid) -> Grid {
        let mut hidden = self.activated(&self.first, input);
        for convolution in &self.residual {
            let branch = self.activated(convolution, &hidden);
            add(&mut hidden, &branch);
        }
        self.last.forward(&self.parameters, &hidden)
    }

    /// The output, and the slopes of the parameters given those of the output, which `slopes_of` makes.
    pub(super) fn gradient(&self, input: &Grid, slopes_of: impl FnOnce(&Grid) -> Grid) -> Vec<f32> {
        let parameters = &self.parameters;
        let first = self.activated(&self.first, input);
        let mut top = first.clone();
        // The input of every residual convolution, and what the activation function made of its output.
        let mut layers: Vec<(&Convolution, Grid, Grid)> = Vec::new();
        for convolution in &self.residual {
            let branch = self.activated(convolution, &top);
            let mut sum = top.clone();
            add(&mut sum, &branch);
            layers.push((convolution, std::mem::replace(&mut top, sum), branch));
        }
        let mut gradient = vec![0.0; parameters.len()];
        let output_slopes = slopes_of(&self.last.forward(parameters, &top));
        let mut slopes = Grid::new(top.channels, top.bands, top.frames());
        self.last.backward(parameters, &top, &output_slopes, &mut gradient, Some(&mut slopes));
        for (convolution, hidden, activated) in layers.iter().rev() {
            let mut branch = slopes.clone();
            activate_slopes(&mut branch, activated);
            convolution.backward(parameters, hidden, &branch, &mut gradient, Some(&mut slopes));
        }
        activate_slopes(&mut slopes, &first);
        self.first.backward(parameters, input, &slopes, &mut gradient, None);
        gradient
    }
}

/// Turns slopes of what the activation function returned into those of its argument.
fn activate_slopes(slopes: &mut Grid, activated: &Grid) {
    let slope = |x: f32| if x > 0.0 { 1.0 } else { LEAK };
    slopes.values.iter_mut().zip(&activated.values).for_each(|(y, &x)| *y *= slope(x));
}

fn add(sum: &mut Grid, term: &Grid) {
    sum.values.iter_mut().zip(&term.values).for_each(|(sum, x)| *sum += x);
}
