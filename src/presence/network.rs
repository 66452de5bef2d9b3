//! The network of whole recordings: convolutions around gated recurrent units over bands and over frames, in turns (Luo, Chen
//! and Yoshioka 2020, "Dual-path RNN: efficient long sequence modeling for time-domain single-channel speech separation").

use super::file::{self, Taps};
use super::header::{PresenceNetError, PresenceNetHeader};
use super::layout::Layout;
use super::sizes::{FEATURES, GROUP, PAIR, PLACES};
use crate::kernels::convolution::{Convolution, Grid};
use crate::kernels::products::{Columns, product};
use crate::kernels::vector;
use crate::parallel::join;
use crate::tensor_file::{self, Format};

const FORMAT: Format = Format { name: "alphamf-presence", version: 3 };
/// Slope of the activation function below zero: a leaky rectifier.
const LEAK: f32 = 0.1;
/// Added to a variance before its root is divided by.
const LEAST_VARIANCE: f32 = 1e-5;

/// All layers, with their parameters end to end in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Network {
    first: Convolution,
    /// Offset of the biases of the places among the parameters, places x channels.
    places: usize,
    near: Vec<Convolution>,
    turns: Vec<[Recurrence; 2]>,
    after: Vec<Convolution>,
    last: Convolution,
    parameters: Vec<f32>,
}

/// A recurrence in both directions, over bands or over frames, added to its input.
#[derive(Debug, Clone, PartialEq)]
struct Recurrence {
    directions: [GatedUnits; 2],
    join: Convolution,
}

/// Gated recurrent units (Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder"): reset gates, update
/// gates and candidates, from the input and from the state.
#[derive(Debug, Clone, PartialEq)]
struct GatedUnits {
    input: Convolution,
    state: Convolution,
}

/// The sequences in a grid: of all bands of each frame, or of all frames of each band.
#[derive(Debug, Clone, Copy)]
struct Sequences {
    count: usize,
    steps: usize,
    /// Cells from one sequence to the next, and from one step to the next.
    strides: (usize, usize),
}

impl Network {
    /// Reads header and network from the bytes of a file.
    pub(super) fn read(bytes: &[u8]) -> Result<(PresenceNetHeader, Self), PresenceNetError> {
        let (header, tensors): (PresenceNetHeader, _) = tensor_file::read(bytes, &FORMAT)?;
        header.validate()?;
        let mut network = Self::new(&header);
        let layers: Vec<Convolution> = network.convolutions().cloned().collect();
        let places = network.places..network.places + PLACES * header.channels;
        network.parameters = file::parameters(&tensors, &layers, places, Taps::Both)?;
        Ok((header, network))
    }

    /// A network without parameters.
    fn new(header: &PresenceNetHeader) -> Self {
        let &PresenceNetHeader { channels, over_bands, over_frames, turns, .. } = header;
        let mut layout = Layout::new();
        // Fields are evaluated in this order, which is that of the file.
        Self {
            first: layout.convolution([FEATURES * PAIR * GROUP, channels], (1, 1), 1),
            places: layout.take(PLACES * channels),
            near: layout.convolutions(channels, (1, 1), &header.near),
            turns: (0..turns)
                .map(|_| [over_bands, over_frames].map(|units| Recurrence::new(&mut layout, channels, units)))
                .collect(),
            after: layout.convolutions(channels, (1, 1), &header.after),
            last: layout.convolution([channels, PAIR * GROUP], (0, 0), 1),
            parameters: Vec::new(),
        }
    }

    /// All layers, in the order of the file.
    fn convolutions(&self) -> impl Iterator<Item = &Convolution> {
        let Self { first, near, turns, after, last, .. } = self;
        let recurrent = turns.iter().flatten().flat_map(|Recurrence { directions, join }| {
            directions.iter().flat_map(|units| [&units.input, &units.state]).chain([join])
        });
        [first].into_iter().chain(near).chain(recurrent).chain(after).chain([last])
    }

    /// The log odds, bands x frames, two frames for each of the input.
    pub(super) fn forward(&self, input: &Grid) -> Vec<f32> {
        let parameters = &self.parameters;
        let mut grid = self.first.forward(parameters, input);
        rectify_with(&mut grid, &parameters[self.places..]);
        residual(parameters, &self.near, &mut grid);
        for [over_bands, over_frames] in &self.turns {
            let (frames, bands) = (grid.frames(), grid.bands);
            over_bands.add_to(
                &mut grid,
                parameters,
                Sequences { count: frames, steps: bands, strides: (bands, 1) },
            );
            over_frames.add_to(
                &mut grid,
                parameters,
                Sequences { count: bands, steps: frames, strides: (1, bands) },
            );
        }
        residual(parameters, &self.after, &mut grid);
        odds_of(&self.last.forward(parameters, &grid))
    }
}

impl Recurrence {
    fn new(layout: &mut Layout, channels: usize, units: usize) -> Self {
        let mut layer = |inputs, outputs| layout.convolution([inputs, outputs], (0, 0), 1);
        Self {
            directions: [(); 2]
                .map(|()| GatedUnits { input: layer(channels, 3 * units), state: layer(units, 3 * units) }),
            join: layer(2 * units, channels),
        }
    }

    /// Adds what the recurrence finds in the normalised grid.
    fn add_to(&self, grid: &mut Grid, parameters: &[f32], sequences: Sequences) {
        let normalised = normalised(grid);
        let [onwards, backwards] = &self.directions;
        let states = join(
            || onwards.states(&normalised, parameters, sequences, false),
            || backwards.states(&normalised, parameters, sequences, true),
        );
        let units = onwards.state.inputs;
        let mut both = Grid::new(2 * units, grid.bands, grid.frames());
        let cells = states.0.chunks_exact(units).zip(states.1.chunks_exact(units));
        for (both, (onwards, backwards)) in both.values.chunks_exact_mut(2 * units).zip(cells) {
            both[..units].copy_from_slice(onwards);
            both[units..].copy_from_slice(backwards);
        }
        add(grid, &self.join.forward(parameters, &both));
    }
}

impl GatedUnits {
    /// The states after every step, units x cells.
    fn states(&self, grid: &Grid, parameters: &[f32], sequences: Sequences, backwards: bool) -> Vec<f32> {
        let Sequences { count, steps, strides } = sequences;
        let (units, gates) = (self.state.inputs, self.state.outputs);
        let given = self.input.forward(parameters, grid).values;
        let (weights, biases) = self.state.weights(parameters);
        let (mut states, mut moved) = (vec![0.0; units * count], vec![0.0; gates * count]);
        let mut all = vec![0.0; units * count * steps];
        for step in 0..steps {
            let step = if backwards { steps - 1 - step } else { step };
            product(weights, Columns::new(&states, units), &mut moved);
            vector::dispatch(
                #[inline(always)]
                || {
                    let sequences = states.chunks_exact_mut(units).zip(moved.chunks_exact_mut(gates));
                    for (index, (state, moved)) in sequences.enumerate() {
                        let cell = index * strides.0 + step * strides.1;
                        moved.iter_mut().zip(biases).for_each(|(moved, bias)| *moved += bias);
                        advance(state, moved, &given[cell * gates..][..gates]);
                        all[cell * units..][..units].copy_from_slice(state);
                    }
                },
            );
        }
        all
    }
}

/// The next state, by what comes from the state and from the input: reset gates, update gates, candidates.
#[inline(always)]
fn advance(state: &mut [f32], moved: &[f32], given: &[f32]) {
    let units = state.len();
    let (moved_reset, moved) = moved.split_at(units);
    let (moved_update, moved_new) = moved.split_at(units);
    let (given_reset, given) = given.split_at(units);
    let (given_update, given_new) = given.split_at(units);
    for unit in 0..units {
        let reset = vector::logistic(given_reset[unit] + moved_reset[unit]);
        let update = vector::logistic(given_update[unit] + moved_update[unit]);
        let new = vector::tanh(given_new[unit] + reset * moved_new[unit]);
        state[unit] = new + update * (state[unit] - new);
    }
}

/// Every cell with mean zero and variance one over its channels.
fn normalised(grid: &Grid) -> Grid {
    let mut normalised = grid.clone();
    let channels = grid.channels as f32;
    for cell in normalised.values.chunks_exact_mut(grid.channels) {
        let mean = cell.iter().sum::<f32>() / channels;
        cell.iter_mut().for_each(|value| *value -= mean);
        let variance = cell.iter().map(|value| value * value).sum::<f32>() / channels;
        let scale = 1.0 / (variance + LEAST_VARIANCE).sqrt();
        cell.iter_mut().for_each(|value| *value *= scale);
    }
    normalised
}

/// The log odds of both frames of every pair, bands x frames.
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

/// Adds the biases of the places to every frame, and rectifies.
fn rectify_with(grid: &mut Grid, biases: &[f32]) {
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

fn add(sum: &mut Grid, term: &Grid) {
    sum.values.iter_mut().zip(&term.values).for_each(|(sum, x)| *sum += x);
}
