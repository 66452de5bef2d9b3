//! Networks of whole recordings and causal networks: convolutions around alternating gated recurrent units over bands
//! and over frames (Luo, Chen and Yoshioka 2020, "Dual-path RNN: efficient long sequence modeling for time-domain
//! single-channel speech separation").

use super::file::Parameters;
use super::header::{PresenceNetError, PresenceNetHeader};
use super::recurrence::Recurrence;
use super::sizes::{FEATURES, GROUP, PAIR, PLACES};
use crate::kernels::convolution::{Convolution, Grid, Reach};
use crate::tensor_file::{self, Format};

/// Slope of the activation function below zero: a leaky rectifier.
const LEAK: f32 = 0.1;

/// Variant of the network.
pub(super) struct Kind {
    format: Format,
    /// Frames of a place.
    frames: usize,
    /// Whether the output for a frame depends on later frames.
    has_future: bool,
}

impl Kind {
    /// Networks of whole recordings.
    pub(super) const WHOLE: Self =
        Self { format: Format { name: "alphamf-presence", version: 3 }, frames: PAIR, has_future: true };
    /// Causal network.
    pub(super) const CAUSAL: Self =
        Self { format: Format { name: "alphamf-presence-causal", version: 2 }, frames: 1, has_future: false };
}

/// The layers of a network.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Network {
    pub first: Convolution,
    /// Biases per place, places x channels, added to the output of the first layer.
    pub places: Vec<f32>,
    pub near: Vec<Convolution>,
    /// Dual-path blocks: a recurrence over bands, then one over frames.
    pub turns: Vec<[Recurrence; 2]>,
    pub after: Vec<Convolution>,
    pub last: Convolution,
}

impl Network {
    /// Reads header and network from the bytes of a file.
    pub(super) fn read(bytes: &[u8], kind: &Kind) -> Result<(PresenceNetHeader, Self), PresenceNetError> {
        let (header, tensors): (PresenceNetHeader, _) = tensor_file::read(bytes, &kind.format)?;
        header.validate()?;
        let mut parameters = Parameters::new(&tensors)?;
        let network = Self::new(&header, kind, &mut parameters)?;
        parameters.finish()?;
        Ok((header, network))
    }

    fn new(
        header: &PresenceNetHeader,
        kind: &Kind,
        parameters: &mut Parameters,
    ) -> Result<Self, PresenceNetError> {
        let &PresenceNetHeader { channels, over_bands, over_frames, turns, .. } = header;
        let future = usize::from(kind.has_future);
        let reach = Reach { frames: (1, future), bands: 1 };
        // The fields are evaluated in this order, which is the order of the layers in the file.
        Ok(Self {
            first: parameters.convolution([FEATURES * kind.frames * GROUP, channels], reach, 1)?,
            places: parameters.biases(PLACES * channels)?,
            near: parameters.convolutions(channels, reach, &header.near)?,
            turns: (0..turns)
                .map(|_| {
                    Ok([
                        Recurrence::new(parameters, channels, over_bands, 2)?,
                        Recurrence::new(parameters, channels, over_frames, 1 + future)?,
                    ])
                })
                .collect::<Result<_, PresenceNetError>>()?,
            after: parameters.convolutions(channels, reach, &header.after)?,
            last: parameters.convolution([channels, kind.frames * GROUP], Reach::NONE, 1)?,
        })
    }

    /// Returns the log odds of a whole recording, bands x frames: two frames for each frame of `input`.
    pub(super) fn forward(&self, input: &Grid) -> Vec<f32> {
        let mut grid = self.first.forward(input);
        rectify_with(&mut grid, &self.places);
        residual(&self.near, &mut grid);
        for [over_bands, over_frames] in &self.turns {
            over_bands.add_over_bands(&mut grid);
            over_frames.add_over_frames(&mut grid);
        }
        residual(&self.after, &mut grid);
        odds_of(&self.last.forward(&grid))
    }
}

/// Rearranges the output of the last layer, with a pair of frames in each row, into log odds of bands x frames.
fn odds_of(output: &Grid) -> Vec<f32> {
    let mut odds = Vec::with_capacity(output.values.len());
    for row in output.values.chunks_exact(output.row()) {
        for frame in 0..PAIR {
            let places = row.chunks_exact(PAIR * GROUP);
            odds.extend(places.flat_map(|place| &place[frame * GROUP..(frame + 1) * GROUP]));
        }
    }
    odds
}

/// Adds the biases of the places to every frame, and applies the activation function.
fn rectify_with(grid: &mut Grid, biases: &[f32]) {
    let row = grid.row();
    for row in grid.values.chunks_exact_mut(row) {
        row.iter_mut().zip(biases).for_each(|(value, bias)| *value = activation(*value + bias));
    }
}

/// `x <- x + activation(layer(x))` for every layer.
pub(super) fn residual(layers: &[Convolution], grid: &mut Grid) {
    for layer in layers {
        let branch = layer.forward(grid);
        grid.values.iter_mut().zip(&branch.values).for_each(|(sum, x)| *sum += activation(*x));
    }
}

pub(super) fn rectify(grid: &mut Grid) {
    grid.values.iter_mut().for_each(|value| *value = activation(*value));
}

#[inline(always)]
pub(super) fn activation(x: f32) -> f32 {
    x.max(LEAK * x)
}
