//! Gated recurrent units (Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder") over bands or
//! over frames, whose output is added to their input.

use super::file::Parameters;
use super::header::PresenceNetError;
use crate::kernels::convolution::{FRAMES_AT_ONCE, Grid};
use crate::kernels::packed_matrix::PackedMatrix;
use crate::kernels::vector;
use crate::parallel::*;
use pulp::{Arch, Simd, WithSimd};

/// Term added to a variance before division by its square root.
const ADDED_VARIANCE: f32 = 1e-5;
/// Number of sums or units computed together by SIMD.
const LANES: usize = 16;
/// Number of units computed together if fewer than [`LANES`] remain.
const UNITS: usize = 8;

/// A recurrence in both directions, or forwards only. Its input is normalised: every cell has mean zero and variance
/// one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recurrence {
    /// Forwards, then backwards.
    directions: Vec<GatedUnits>,
    /// Biases of the output.
    biases: Vec<f32>,
}

/// One direction of a recurrence: layers from input and state to reset gates, update gates and candidates, and the
/// weights of the output.
#[derive(Debug, Clone, PartialEq)]
struct GatedUnits {
    is_backwards: bool,
    input: PackedMatrix,
    input_biases: Vec<f32>,
    state: PackedMatrix,
    state_biases: Vec<f32>,
    output: PackedMatrix,
}

/// Layout of sequences in a contiguous array of cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequences {
    count: usize,
    steps: usize,
    /// Distance between sequences, and between steps, in cells.
    strides: (usize, usize),
}

impl Sequences {
    /// Returns the layout of sequences over the bands of each frame.
    pub(super) const fn over_bands(frames: usize, bands: usize) -> Self {
        Self { count: frames, steps: bands, strides: (bands, 1) }
    }

    /// Returns the layout of sequences over the frames of each band.
    pub(super) const fn over_frames(frames: usize, bands: usize) -> Self {
        Self { count: bands, steps: frames, strides: (1, bands) }
    }

    fn cells(self) -> usize {
        self.count * self.steps
    }
}

/// Buffers of a recurrence, one direction after the other.
#[derive(Debug, Clone)]
pub(super) struct Buffers {
    normalised: Vec<f32>,
    gates: Gates,
    /// States after every step.
    passed: Vec<f32>,
}

/// Contributions of the input and of the states to reset gates, update gates and candidates.
#[derive(Debug, Clone)]
struct Gates {
    from_input: Vec<f32>,
    from_states: Vec<f32>,
}

impl Gates {
    fn new(directions: &[GatedUnits], sequences: Sequences) -> Self {
        let gates = |cells: usize| vec![0.0; directions.len() * cells * directions[0].width()];
        Self { from_input: gates(sequences.cells()), from_states: gates(sequences.count) }
    }
}

impl Recurrence {
    /// Reads the next recurrence of the file, in one or two directions.
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
        // The output layer takes the concatenated states of both directions.
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

    /// Buffers for these sequences.
    pub(super) fn buffers(&self, sequences: Sequences) -> Buffers {
        let cells = sequences.cells();
        Buffers {
            normalised: vec![0.0; cells * self.channels()],
            gates: Gates::new(&self.directions, sequences),
            passed: vec![0.0; self.directions.len() * cells * self.units()],
        }
    }

    /// Returns the states before the first step.
    pub(super) fn initial_states(&self, sequences: Sequences) -> Vec<f32> {
        vec![0.0; self.directions.len() * sequences.count * self.units()]
    }

    /// Adds the output of the recurrence over the bands of each frame to `grid`.
    pub(super) fn add_over_bands(&self, grid: &mut Grid) {
        let (bands, row) = (grid.bands, grid.row());
        let whole = Sequences::over_bands(FRAMES_AT_ONCE, bands);
        grid.values.par_chunks_mut(FRAMES_AT_ONCE * row).for_each_init(
            || (self.buffers(whole), self.initial_states(whole)),
            |(buffers, states), rows| {
                let sequences = Sequences::over_bands(rows.len() / row, bands);
                states.fill(0.0);
                self.add(rows, sequences, states, buffers);
            },
        );
    }

    /// Adds the output of the recurrence to rows of cells. `states` holds the states before the first step, and on
    /// return those after the last.
    pub(super) fn add(
        &self,
        rows: &mut [f32],
        sequences: Sequences,
        states: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let Buffers { normalised, gates, passed } = buffers;
        let (units, cells) = (self.units(), sequences.cells());
        let normalised = &mut normalised[..rows.len()];
        normalise(rows, self.channels(), normalised);
        pass(&self.directions, normalised, sequences, states, gates, passed);
        add_to_cells(rows, &self.biases);
        for (direction, passed) in self.directions.iter().zip(passed.chunks_exact(cells * units)) {
            direction.output.add_products(passed, units, rows);
        }
    }

    /// Adds the output of the recurrence over the frames of each band to `grid`.
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
}

impl GatedUnits {
    /// Packs the weights and biases of the layers of input and state, and the weights of the output.
    fn new(
        is_backwards: bool,
        [input, state]: [(Vec<f32>, Vec<f32>); 2],
        output: &[f32],
        channels: usize,
    ) -> Self {
        let pack = |(weights, biases): (Vec<f32>, Vec<f32>)| {
            let outputs = biases.len();
            let (weights, mut biases) = (in_groups(&weights, outputs / 3), in_groups(&biases, outputs / 3));
            let matrix = PackedMatrix::padded(&weights, outputs);
            biases.resize(matrix.outputs, 0.0);
            (matrix, biases)
        };
        let ((input, input_biases), (state, state_biases)) = (pack(input), pack(state));
        let output = PackedMatrix::new(output, channels);
        Self { is_backwards, input, input_biases, state, state_biases, output }
    }

    /// Number of gate values of a cell, including padding at the end.
    fn width(&self) -> usize {
        self.state.outputs
    }

    /// Returns the index of a step in its sequence.
    fn place(&self, step: usize, steps: usize) -> usize {
        if self.is_backwards { steps - 1 - step } else { step }
    }

    /// Returns the states after every step over frames.
    fn pass_frames(&self, cells: &[f32], bands: usize) -> Vec<f32> {
        let (units, channels) = (self.state.inputs, self.input.inputs);
        let mut passed = vec![0.0; cells.len() / channels * units];
        let at_once = FRAMES_AT_ONCE * bands;
        let mut states = vec![0.0; bands * units];
        let directions = std::slice::from_ref(self);
        let mut gates = Gates::new(directions, Sequences::over_frames(FRAMES_AT_ONCE, bands));
        let mut advance = |(cells, passed): (&[f32], &mut [f32])| {
            let sequences = Sequences::over_frames(cells.len() / (bands * channels), bands);
            pass(directions, cells, sequences, &mut states, &mut gates, passed);
        };
        let parts = cells.chunks(at_once * channels).zip(passed.chunks_mut(at_once * units));
        if self.is_backwards {
            parts.rev().for_each(&mut advance)
        } else {
            parts.for_each(&mut advance)
        }
        passed
    }
}

/// Reorders rows of three gates of `units` units to the order in [`advance`]: all gates of the first [`LANES`] units,
/// then those of the next.
fn in_groups(rows: &[f32], units: usize) -> Vec<f32> {
    let of_group = |first: usize| {
        (0..3).flat_map(move |gate| gate * units + first..gate * units + units.min(first + LANES))
    };
    let order: Vec<usize> = (0..units).step_by(LANES).flat_map(of_group).collect();
    rows.chunks_exact(order.len()).flat_map(|row| order.iter().map(|&from| row[from])).collect()
}

/// Advances the states of all directions through all steps, and stores the states after every step in `passed`.
fn pass(
    directions: &[GatedUnits],
    cells: &[f32],
    sequences: Sequences,
    states: &mut [f32],
    gates: &mut Gates,
    passed: &mut [f32],
) {
    let Gates { from_input, from_states } = gates;
    let Sequences { count, steps, strides } = sequences;
    let (units, width, cells_of_all) = (directions[0].state.inputs, directions[0].width(), sequences.cells());
    for (direction, from_input) in directions.iter().zip(from_input.chunks_exact_mut(cells_of_all * width)) {
        direction.input.products(cells, direction.input.inputs, &direction.input_biases, from_input);
    }
    if count == 1 {
        return Arch::new().dispatch(Pass { directions, steps, gates, states, passed });
    }
    let from_states = &mut from_states[..count * width];
    for (index, direction) in directions.iter().enumerate() {
        let states = &mut states[index * count * units..][..count * units];
        for step in 0..steps {
            let first = index * cells_of_all + direction.place(step, steps) * strides.1;
            direction.state.products(states, units, &direction.state_biases, from_states);
            vector::dispatch(
                #[inline(always)]
                || {
                    let sequences = states.chunks_exact_mut(units).zip(from_states.chunks_exact(width));
                    for (sequence, (state, from_state)) in sequences.enumerate() {
                        let cell = first + sequence * strides.0;
                        let from_input = &from_input[cell * width..][..width];
                        advance(state, from_state, from_input, &mut passed[cell * units..][..units]);
                    }
                },
            );
        }
    }
}

/// Pass over a single sequence. All steps share one SIMD dispatch, as a dispatch takes as long as a step.
struct Pass<'a> {
    directions: &'a [GatedUnits],
    steps: usize,
    gates: &'a mut Gates,
    states: &'a mut [f32],
    passed: &'a mut [f32],
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { directions, steps, gates: Gates { from_input, from_states }, states, passed } = self;
        let (units, width) = (directions[0].state.inputs, directions[0].width());
        let from_states = &mut from_states[..width];
        for step in 0..steps {
            // Directions alternate, so that a step of one is computed while the other waits for its last state.
            for (index, direction) in directions.iter().enumerate() {
                let cell = index * steps + direction.place(step, steps);
                let state = &mut states[index * units..][..units];
                direction.state.product_by(simd, state, &direction.state_biases, from_states);
                let from_input = &from_input[cell * width..][..width];
                advance(state, from_states, from_input, &mut passed[cell * units..][..units]);
            }
        }
    }
}

/// Advances `state` by one step, and copies it to `passed`. `moved` and `given` are the contributions of state and
/// input to reset gates, update gates and candidates.
#[inline(always)]
fn advance(state: &mut [f32], moved: &[f32], given: &[f32], passed: &mut [f32]) {
    // Groups have fixed sizes, so that SIMD computes all but the last units.
    let (states, rest) = state.as_chunks_mut::<LANES>();
    let (moved, moved_rest) = moved.split_at(3 * LANES * states.len());
    let (given, given_rest) = given.split_at(3 * LANES * states.len());
    let (passed, passed_rest) = passed.as_chunks_mut::<LANES>();
    let gates = moved.chunks_exact(3 * LANES).zip(given.chunks_exact(3 * LANES));
    for ((state, passed), (moved, given)) in states.iter_mut().zip(passed).zip(gates) {
        advance_units(state, LANES, 0, moved, given);
        *passed = *state;
    }
    let units = rest.len();
    let (states, last) = rest.as_chunks_mut::<UNITS>();
    let (passed, passed_last) = passed_rest.as_chunks_mut::<UNITS>();
    for (group, (state, passed)) in states.iter_mut().zip(passed).enumerate() {
        advance_units(state, units, group * UNITS, moved_rest, given_rest);
        *passed = *state;
    }
    let first = units - last.len();
    for (unit, (state, passed)) in last.iter_mut().zip(passed_last).enumerate() {
        advance_units(std::array::from_mut(state), units, first + unit, moved_rest, given_rest);
        *passed = *state;
    }
}

/// Advances the states of `N` of the units, from unit `first` on.
#[inline(always)]
fn advance_units<const N: usize>(
    state: &mut [f32; N],
    units: usize,
    first: usize,
    moved: &[f32],
    given: &[f32],
) {
    let [moved_reset, moved_update, moved_new] = gates::<N>(moved, units, first);
    let [given_reset, given_update, given_new] = gates::<N>(given, units, first);
    for unit in 0..N {
        let reset = vector::rough_logistic(given_reset[unit] + moved_reset[unit]);
        let update = vector::rough_logistic(given_update[unit] + moved_update[unit]);
        let new = vector::rough_tanh(given_new[unit] + reset * moved_new[unit]);
        state[unit] = new + update * (state[unit] - new);
    }
}

/// Returns each of the three gates of `N` of the units, from unit `first` on.
#[inline(always)]
fn gates<const N: usize>(of: &[f32], units: usize, first: usize) -> [&[f32; N]; 3] {
    let [reset, update, new] = [first, units + first, 2 * units + first];
    [gate(of, reset), gate(of, update), gate(of, new)]
}

#[inline(always)]
#[expect(clippy::expect_used, reason = "the file's reader compares the shapes with the number of units")]
fn gate<const N: usize>(of: &[f32], first: usize) -> &[f32; N] {
    of[first..].first_chunk().expect("gates of all units")
}

/// Normalises every cell to mean zero and variance one over its channels.
fn normalise(cells: &[f32], channels: usize, normalised: &mut [f32]) {
    vector::dispatch(
        #[inline(always)]
        || {
            let pairs = cells.chunks_exact(channels).zip(normalised.chunks_exact_mut(channels));
            for (cell, normalised) in pairs {
                let mean = sum(cell, |value| value) / channels as f32;
                let variance = sum(cell, |value| (value - mean) * (value - mean)) / channels as f32;
                let scale = 1.0 / (variance + ADDED_VARIANCE).sqrt();
                normalised.iter_mut().zip(cell).for_each(|(x, value)| *x = (value - mean) * scale);
            }
        },
    );
}

/// Sums a function of the values, in an order suitable for SIMD.
#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for group in groups {
        sums.iter_mut().zip(group).for_each(|(sum, &value)| *sum += of(value));
    }
    sums.iter().sum::<f32>() + rest.iter().map(|&value| of(value)).sum::<f32>()
}

/// Adds `values` to every cell.
fn add_to_cells(cells: &mut [f32], values: &[f32]) {
    for cell in cells.chunks_exact_mut(values.len()) {
        cell.iter_mut().zip(values).for_each(|(x, value)| *x += value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNELS: usize = 5;

    fn value(n: usize) -> f32 {
        ((n * n * 7 + n * 3) % 101) as f32 / 101.0 - 0.5
    }

    fn values(count: usize, first: usize) -> Vec<f32> {
        (0..count).map(|n| value(n + first)).collect()
    }

    /// Weights and biases of a layer.
    fn layer(inputs: usize, outputs: usize, first: usize) -> (Vec<f32>, Vec<f32>) {
        (values(inputs * outputs, first), values(outputs, first + 7))
    }

    fn layers(units: usize, is_backwards: bool) -> [(Vec<f32>, Vec<f32>); 2] {
        let first = 11 * usize::from(is_backwards);
        [layer(CHANNELS, 3 * units, first), layer(units, 3 * units, first + 1)]
    }

    fn recurrence(units: usize) -> Recurrence {
        let output = values(2 * units * CHANNELS, 5);
        let directions = [false, true].into_iter().zip(output.chunks_exact(units * CHANNELS));
        let directions = directions
            .map(|(is_backwards, output)| {
                GatedUnits::new(is_backwards, layers(units, is_backwards), output, CHANNELS)
            })
            .collect();
        Recurrence { directions, biases: values(CHANNELS, 2) }
    }

    /// Output of the recurrence over the cells of one sequence, by its definition.
    fn expected(units: usize, cells: &[f32]) -> Vec<f32> {
        let count = cells.len() / CHANNELS;
        let mut normalised = vec![0.0; cells.len()];
        normalise(cells, CHANNELS, &mut normalised);
        let product = |(weights, biases): &(Vec<f32>, Vec<f32>), x: &[f32]| -> Vec<f32> {
            let of_output = |(output, bias): (usize, &f32)| {
                bias + (0..x.len()).map(|k| weights[k * biases.len() + output] * x[k]).sum::<f32>()
            };
            biases.iter().enumerate().map(of_output).collect()
        };
        let logistic = |x: f32| 1.0 / (1.0 + libm::expf(-x));
        let mut states = vec![0.0; count * 2 * units];
        for (direction, is_backwards) in [false, true].into_iter().enumerate() {
            let [input, of_state] = layers(units, is_backwards);
            let mut state = vec![0.0; units];
            for step in 0..count {
                let cell = if is_backwards { count - 1 - step } else { step };
                let given = product(&input, &normalised[cell * CHANNELS..][..CHANNELS]);
                let moved = product(&of_state, &state);
                for unit in 0..units {
                    let reset = logistic(given[unit] + moved[unit]);
                    let update = logistic(given[units + unit] + moved[units + unit]);
                    let new = libm::tanhf(given[2 * units + unit] + reset * moved[2 * units + unit]);
                    state[unit] = (1.0 - update) * new + update * state[unit];
                }
                states[(2 * cell + direction) * units..][..units].copy_from_slice(&state);
            }
        }
        let output = (values(2 * units * CHANNELS, 5), values(CHANNELS, 2));
        states.chunks_exact(2 * units).flat_map(|states| product(&output, states)).collect()
    }

    #[test]
    fn any_number_of_units_and_of_sequences_is_computed_by_the_definition() {
        let steps = 6;
        for units in [1, 8, 21, 27, 48] {
            let recurrence = recurrence(units);
            for (count, over_frames) in [(1, false), (3, false), (5, true)] {
                let before = values(count * steps * CHANNELS, 3);
                let sequences = match over_frames {
                    true => Sequences::over_frames(steps, count),
                    false => Sequences::over_bands(count, steps),
                };
                let mut rows = before.clone();
                let mut states = recurrence.initial_states(sequences);
                recurrence.add(&mut rows, sequences, &mut states, &mut recurrence.buffers(sequences));
                for sequence in 0..count {
                    let cells: Vec<usize> = (0..steps)
                        .map(|step| sequence * sequences.strides.0 + step * sequences.strides.1)
                        .collect();
                    let of_cells = |rows: &[f32]| -> Vec<f32> {
                        cells.iter().flat_map(|cell| &rows[cell * CHANNELS..][..CHANNELS]).copied().collect()
                    };
                    let (before, found) = (of_cells(&before), of_cells(&rows));
                    for ((found, before), added) in found.iter().zip(&before).zip(expected(units, &before)) {
                        let error = found - before - added;
                        assert!(error.abs() < 1e-3, "{units} units, {count} sequences: {error:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn frame_by_frame_is_all_frames_at_once() {
        let (units, bands, frames) = (20, 4, 9);
        let mut recurrence = recurrence(units);
        recurrence.directions.truncate(1);
        let mut grid = Grid::new(CHANNELS, bands, frames);
        grid.values = values(grid.values.len(), 0);
        let mut rows = grid.values.clone();
        recurrence.add_over_frames(&mut grid);
        let of_frame = Sequences::over_frames(1, bands);
        let mut states = recurrence.initial_states(of_frame);
        let mut buffers = recurrence.buffers(of_frame);
        for row in rows.chunks_exact_mut(bands * CHANNELS) {
            recurrence.add(row, of_frame, &mut states, &mut buffers);
        }
        let differences = rows.iter().zip(&grid.values).map(|(a, b)| (a - b).abs());
        assert!(differences.fold(0.0, f32::max) < 1e-5);
    }
}
