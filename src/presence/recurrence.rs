//! Gated recurrent units (Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder") over bands or over
//! frames, added to their input.

use super::file::Parameters;
use super::header::PresenceNetError;
use crate::kernels::convolution::{FRAMES_AT_ONCE, Grid, fill};
use crate::kernels::packed_matrix::PackedMatrix;
use crate::kernels::vector;
use crate::parallel::*;

/// Added to a variance before its root is divided by.
const LEAST_VARIANCE: f32 = 1e-5;
/// Sums that are computed together.
const LANES: usize = 16;
/// Units that are computed together.
const UNITS: usize = 8;

/// A recurrence in both directions, or onwards alone. Its input is normalised: every cell has mean zero and variance one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recurrence {
    /// Onwards, then backwards.
    directions: Vec<GatedUnits>,
    /// Of the output.
    biases: Vec<f32>,
}

/// One direction: reset gates, update gates and candidates, from the input and from the state; and the weights of the output.
#[derive(Debug, Clone, PartialEq)]
struct GatedUnits {
    is_backwards: bool,
    input: PackedMatrix,
    input_biases: Vec<f32>,
    state: PackedMatrix,
    state_biases: Vec<f32>,
    output: PackedMatrix,
}

/// Sequences whose cells lie end to end.
#[derive(Debug, Clone, Copy)]
struct Sequences {
    count: usize,
    steps: usize,
    /// Cells from one sequence to the next, and from one step to the next.
    strides: (usize, usize),
}

impl Sequences {
    /// Those of each frame, over its bands.
    fn over_bands(frames: usize, bands: usize) -> Self {
        Self { count: frames, steps: bands, strides: (bands, 1) }
    }

    /// Those of each band, over frames.
    fn over_frames(frames: usize, bands: usize) -> Self {
        Self { count: bands, steps: frames, strides: (1, bands) }
    }
}

/// Buffers for rows of frames.
#[derive(Debug, Clone)]
pub(super) struct Buffers {
    normalised: Vec<f32>,
    /// Initial states of the sequences over bands, which then advance.
    states: Vec<f32>,
    gates: Gates,
    /// States after every step.
    passed: Vec<f32>,
}

/// Reset gates, update gates and candidates of some cells: what comes from the input, and from the states.
#[derive(Debug, Clone)]
struct Gates {
    from_input: Vec<f32>,
    from_states: Vec<f32>,
}

impl Gates {
    fn new(units: usize, cells: usize) -> Self {
        Self { from_input: vec![0.0; 3 * units * cells], from_states: vec![0.0; 3 * units * cells] }
    }
}

impl Recurrence {
    /// The next recurrence of the file, in one or two directions.
    ///
    /// # Errors
    /// A tensor has too few values.
    pub(super) fn new(
        parameters: &mut Parameters,
        channels: usize,
        units: usize,
        directions: usize,
    ) -> Result<Self, PresenceNetError> {
        let layers = (0..directions)
            .map(|_| Ok([parameters.layer(channels, 3 * units)?, parameters.layer(units, 3 * units)?]))
            .collect::<Result<Vec<_>, PresenceNetError>>()?;
        let (output, biases) = parameters.layer(directions * units, channels)?;
        // The states of both directions lie side by side.
        let directions = layers
            .into_iter()
            .zip(output.chunks_exact(units * channels))
            .enumerate()
            .map(|(index, (layers, output))| GatedUnits::new(index == 1, layers, output, channels))
            .collect();
        Ok(Self { directions, biases })
    }

    fn channels(&self) -> usize {
        self.biases.len()
    }

    fn units(&self) -> usize {
        self.directions[0].state.inputs
    }

    /// Buffers for rows of `frames` frames.
    pub(super) fn buffers(&self, frames: usize, bands: usize) -> Buffers {
        let cells = frames * bands;
        Buffers {
            normalised: vec![0.0; cells * self.channels()],
            states: vec![0.0; frames * self.units()],
            gates: Gates::new(self.units(), cells),
            passed: vec![0.0; cells * self.units()],
        }
    }

    /// Adds the output over the bands of each frame.
    pub(super) fn add_over_bands(&self, grid: &mut Grid) {
        let (bands, row) = (grid.bands, grid.row());
        grid.values.par_chunks_mut(FRAMES_AT_ONCE * row).for_each_init(
            || self.buffers(FRAMES_AT_ONCE, bands),
            |buffers, rows| self.add_over_bands_of(rows, bands, buffers),
        );
    }

    /// Adds the output over the bands of each of some rows of frames.
    pub(super) fn add_over_bands_of(&self, rows: &mut [f32], bands: usize, buffers: &mut Buffers) {
        let Buffers { normalised, states, gates, passed } = buffers;
        let cells = rows.len() / self.channels();
        let (normalised, passed) = (&mut normalised[..rows.len()], &mut passed[..cells * self.units()]);
        let sequences = Sequences::over_bands(cells / bands, bands);
        let states = &mut states[..sequences.count * self.units()];
        normalise(rows, self.channels(), normalised);
        add_to_cells(rows, &self.biases);
        for units in &self.directions {
            states.fill(0.0);
            units.pass(normalised, sequences, states, gates, passed);
            units.output.add_products(passed, self.units(), rows);
        }
    }

    /// Adds the output over the frames of each band.
    pub(super) fn add_over_frames(&self, grid: &mut Grid) {
        let (bands, at_once, units) = (grid.bands, FRAMES_AT_ONCE * grid.row(), self.units());
        let mut normalised = vec![0.0; grid.values.len()];
        let rows = grid.values.par_chunks(at_once).zip(normalised.par_chunks_mut(at_once));
        rows.for_each(|(rows, normalised)| normalise(rows, self.channels(), normalised));
        let passed: Vec<Vec<f32>> =
            self.directions.par_iter().map(|units| units.pass_frames(&normalised, bands)).collect();
        grid.values.par_chunks_mut(at_once).enumerate().for_each(|(index, rows)| {
            add_to_cells(rows, &self.biases);
            let first = index * FRAMES_AT_ONCE * bands * units;
            for (direction, passed) in self.directions.iter().zip(&passed) {
                direction.output.add_products(&passed[first..], units, rows);
            }
        });
    }

    /// States of the recurrence over frames before the first frame.
    pub(super) fn initial_states(&self, bands: usize) -> Vec<f32> {
        vec![0.0; bands * self.units()]
    }

    /// Adds the output of the recurrence onwards over frames to the row of the next frame; `states` are those after the frame
    /// before.
    pub(super) fn add_next_frame(&self, row: &mut [f32], states: &mut [f32], buffers: &mut Buffers) {
        let Buffers { normalised, gates, passed, .. } = buffers;
        normalise(row, self.channels(), normalised);
        add_to_cells(row, &self.biases);
        let sequences = Sequences::over_frames(1, row.len() / self.channels());
        for units in &self.directions {
            units.pass(normalised, sequences, states, gates, passed);
            units.output.add_products(states, self.units(), row);
        }
    }
}

impl GatedUnits {
    /// From weights and biases of the layers of input and state, and weights of the output.
    fn new(
        is_backwards: bool,
        [input, state]: [(Vec<f32>, Vec<f32>); 2],
        output: &[f32],
        channels: usize,
    ) -> Self {
        let pack = |(weights, biases): &(Vec<f32>, Vec<f32>)| PackedMatrix::new(weights, biases.len());
        Self {
            is_backwards,
            input: pack(&input),
            input_biases: input.1,
            state: pack(&state),
            state_biases: state.1,
            output: PackedMatrix::new(output, channels),
        }
    }

    /// The states after every step over frames.
    fn pass_frames(&self, cells: &[f32], bands: usize) -> Vec<f32> {
        let (units, channels) = (self.state.inputs, self.input.inputs);
        let mut passed = vec![0.0; cells.len() / channels * units];
        let mut states = vec![0.0; bands * units];
        let mut gates = Gates::new(units, FRAMES_AT_ONCE * bands);
        let at_once = FRAMES_AT_ONCE * bands;
        let mut advance = |(cells, passed): (&[f32], &mut [f32])| {
            let frames = cells.len() / (bands * channels);
            let sequences = Sequences::over_frames(frames, bands);
            self.pass(cells, sequences, &mut states, &mut gates, passed);
        };
        let parts = cells.chunks(at_once * channels).zip(passed.chunks_mut(at_once * units));
        if self.is_backwards {
            parts.rev().for_each(&mut advance)
        } else {
            parts.for_each(&mut advance)
        }
        passed
    }

    /// Advances the states through all steps, and keeps those after every step.
    fn pass(
        &self,
        cells: &[f32],
        sequences: Sequences,
        states: &mut [f32],
        gates: &mut Gates,
        passed: &mut [f32],
    ) {
        let Sequences { count, steps, strides } = sequences;
        let (units, width) = (self.state.inputs, self.state.outputs);
        let from_input = &mut gates.from_input[..count * steps * width];
        let from_states = &mut gates.from_states[..count * width];
        fill(from_input, &self.input_biases);
        self.input.add_products(cells, self.input.inputs, from_input);
        for step in 0..steps {
            let step = if self.is_backwards { steps - 1 - step } else { step };
            fill(from_states, &self.state_biases);
            self.state.add_products(states, units, from_states);
            vector::dispatch(
                #[inline(always)]
                || {
                    let sequences = states.chunks_exact_mut(units).zip(from_states.chunks_exact(width));
                    for (index, (state, from_state)) in sequences.enumerate() {
                        let cell = index * strides.0 + step * strides.1;
                        advance(state, from_state, &from_input[cell * width..][..width]);
                        passed[cell * units..][..units].copy_from_slice(state);
                    }
                },
            );
        }
    }
}

/// The next state, by what comes from the state and from the input: reset gates, update gates, candidates.
#[inline(always)]
fn advance(state: &mut [f32], moved: &[f32], given: &[f32]) {
    let units = state.len();
    // Groups of a fixed size, so that all but the last units are computed by SIMD.
    let (groups, rest) = state.as_chunks_mut::<UNITS>();
    for (group, state) in groups.iter_mut().enumerate() {
        advance_units(state, units, group * UNITS, moved, given);
    }
    let first = units - rest.len();
    for (unit, state) in rest.iter_mut().enumerate() {
        advance_units(std::array::from_mut(state), units, first + unit, moved, given);
    }
}

/// The next state of `N` of the units, from `first` on.
#[inline(always)]
fn advance_units<const N: usize>(
    state: &mut [f32; N],
    units: usize,
    first: usize,
    moved: &[f32],
    given: &[f32],
) {
    let gate = |of: &[f32], gate: usize| -> [f32; N] {
        std::array::from_fn(|unit| of[gate * units + first..][..N][unit])
    };
    let [moved_reset, moved_update, moved_new] = [0, 1, 2].map(|index| gate(moved, index));
    let [given_reset, given_update, given_new] = [0, 1, 2].map(|index| gate(given, index));
    for unit in 0..N {
        let reset = vector::rough_logistic(given_reset[unit] + moved_reset[unit]);
        let update = vector::rough_logistic(given_update[unit] + moved_update[unit]);
        let new = vector::rough_tanh(given_new[unit] + reset * moved_new[unit]);
        state[unit] = new + update * (state[unit] - new);
    }
}

/// Every cell with mean zero and variance one over its channels.
fn normalise(cells: &[f32], channels: usize, normalised: &mut [f32]) {
    vector::dispatch(
        #[inline(always)]
        || {
            let pairs = cells.chunks_exact(channels).zip(normalised.chunks_exact_mut(channels));
            for (cell, normalised) in pairs {
                let mean = sum(cell, |value| value) / channels as f32;
                let variance = sum(cell, |value| (value - mean) * (value - mean)) / channels as f32;
                let scale = 1.0 / (variance + LEAST_VARIANCE).sqrt();
                normalised.iter_mut().zip(cell).for_each(|(x, value)| *x = (value - mean) * scale);
            }
        },
    );
}

/// The sum of a function of the values, in an order that has room for SIMD.
#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for group in groups {
        sums.iter_mut().zip(group).for_each(|(sum, &value)| *sum += of(value));
    }
    sums.iter().sum::<f32>() + rest.iter().map(|&value| of(value)).sum::<f32>()
}

/// Adds the same values to every cell.
fn add_to_cells(cells: &mut [f32], values: &[f32]) {
    for cell in cells.chunks_exact_mut(values.len()) {
        cell.iter_mut().zip(values).for_each(|(x, value)| *x += value);
    }
}
