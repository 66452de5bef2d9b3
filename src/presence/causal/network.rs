//! Frame-by-frame evaluation of the causal network.

use crate::kernels::convolution::Convolution;
use crate::kernels::vector;
use crate::presence::header::PresenceNetError;
use crate::presence::network::{Kind, Network, activation};
use crate::presence::recurrence::{Buffers, Sequences};
use crate::presence::sizes::{FEATURES, GROUP, PLACES};
use std::ops::Range;

/// Number of inputs of a place.
pub(super) const INPUTS: usize = FEATURES * GROUP;

/// Layouts of a frame in the two recurrences of a dual-path block: one sequence over all places, and one step of a
/// sequence per place.
const SEQUENCES: [Sequences; 2] = [Sequences::over_bands(1, PLACES), Sequences::over_frames(1, PLACES)];

/// Causal speech-presence network, without its state.
#[derive(Debug, Clone)]
pub(crate) struct CausalNetwork(Network);

/// State of the network between the frames of a sequence.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    first: History,
    near: Vec<History>,
    /// States of the recurrence over frames, per dual-path block.
    states: Vec<Vec<f32>>,
    after: Vec<History>,
}

/// Buffers of the network. The rows `input` and `near` have a place of zeros on either side.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub input: Vec<f32>,
    near: Vec<f32>,
    branch: Vec<f32>,
    /// States of the recurrence over bands.
    states: Vec<f32>,
    /// Buffers of the recurrence over bands, and over frames.
    buffers: [Buffers; 2],
    pub output: Vec<f32>,
}

impl CausalNetwork {
    /// The network embedded in this crate: `models/presence-live-16k.safetensors`.
    ///
    /// # Errors
    /// Only if the crate was built with a damaged file.
    pub(crate) fn built_in() -> Result<Self, PresenceNetError> {
        let bytes = include_bytes!("../../../models/presence-live-16k.safetensors");
        Ok(Self(Network::read(bytes, &Kind::CAUSAL)?.1))
    }

    pub(super) fn memory(&self) -> Memory {
        let Network { first, near, turns, after, .. } = &self.0;
        let histories = |layers: &[Convolution]| layers.iter().map(History::new).collect();
        Memory {
            first: History::new(first),
            near: histories(near),
            states: turns.iter().map(|[_, over_frames]| over_frames.initial_states(SEQUENCES[1])).collect(),
            after: histories(after),
        }
    }

    pub(super) fn rows(&self) -> Rows {
        let Network { first, turns, last, .. } = &self.0;
        let row = |values: usize| vec![0.0; values];
        Rows {
            input: row((PLACES + 2) * INPUTS),
            near: row((PLACES + 2) * first.outputs),
            branch: row(PLACES * first.outputs),
            // All dual-path blocks have the same size.
            states: turns[0][0].initial_states(SEQUENCES[0]),
            buffers: [0, 1].map(|index| turns[0][index].buffers(SEQUENCES[index])),
            output: row(PLACES * last.outputs),
        }
    }

    /// Computes `rows.output`, the log odds on all places, from the frame in `rows.input`.
    pub(super) fn forward(&self, memory: &mut Memory, rows: &mut Rows) {
        let Network { first, places, near: before, turns, after, last } = &self.0;
        let Rows { input, near, branch, states: of_bands, buffers, output } = rows;
        let inside = first.outputs..(PLACES + 1) * first.outputs;
        first.next_frame(memory.first.past(), input, branch);
        memory.first.keep(input);
        let biased = branch.iter().zip(places).map(|(x, bias)| activation(x + bias));
        near[inside.clone()].iter_mut().zip(biased).for_each(|(near, x)| *near = x);
        residual(before, &mut memory.near, near, inside.clone(), branch);
        for ([over_bands, over_frames], of_frames) in turns.iter().zip(&mut memory.states) {
            let row = &mut near[inside.clone()];
            of_bands.fill(0.0);
            over_bands.add(row, SEQUENCES[0], of_bands, &mut buffers[0]);
            over_frames.add(row, SEQUENCES[1], of_frames, &mut buffers[1]);
        }
        residual(after, &mut memory.after, near, inside.clone(), branch);
        last.next_frame(&[], &near[inside], output);
    }
}

/// `x <- x + activation(layer(x))` for every layer, on the part `inside` of the row.
fn residual(
    layers: &[Convolution],
    histories: &mut [History],
    row: &mut [f32],
    inside: Range<usize>,
    branch: &mut [f32],
) {
    for (layer, history) in layers.iter().zip(histories) {
        layer.next_frame(history.past(), row, branch);
        history.keep(row);
        vector::dispatch(
            #[inline(always)]
            || row[inside.clone()].iter_mut().zip(&*branch).for_each(|(sum, x)| *sum += activation(*x)),
        );
    }
}

impl Memory {
    /// Copies the state of another memory of the same network, without an allocation.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.first.copy_from(&other.first);
        let pairs = |own: &mut Vec<History>, others: &[History]| {
            own.iter_mut().zip(others).for_each(|(own, other)| own.copy_from(other));
        };
        pairs(&mut self.near, &other.near);
        pairs(&mut self.after, &other.after);
        self.states.iter_mut().zip(&other.states).for_each(|(own, other)| own.copy_from_slice(other));
    }

    pub(super) fn reset(&mut self) {
        let Self { first, near, states, after } = self;
        [first].into_iter().chain(near).chain(after).for_each(History::reset);
        states.iter_mut().for_each(|states| states.fill(0.0));
    }
}

/// Ring buffer of the last input rows of a layer.
#[derive(Debug, Clone)]
struct History {
    rows: Vec<f32>,
    row: usize,
    at: usize,
}

impl History {
    fn new(layer: &Convolution) -> Self {
        let row = (PLACES + 2) * layer.inputs;
        Self { rows: vec![0.0; layer.past_frames() * row], row, at: 0 }
    }

    /// Returns the oldest row, the input of the layer's past tap.
    fn past(&self) -> &[f32] {
        &self.rows[self.at..self.at + self.row]
    }

    /// Replaces the oldest row by the present one.
    fn keep(&mut self, now: &[f32]) {
        self.rows[self.at..self.at + self.row].copy_from_slice(now);
        self.at += self.row;
        if self.at == self.rows.len() {
            self.at = 0;
        }
    }

    fn copy_from(&mut self, other: &Self) {
        self.rows.copy_from_slice(&other.rows);
        self.at = other.at;
    }

    fn reset(&mut self) {
        self.rows.fill(0.0);
        self.at = 0;
    }
}
