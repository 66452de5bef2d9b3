//! The causal network frame by frame: convolutions over the past and neighbouring bands, around a trunk over the whole spectrum.

use crate::kernels::convolution::{Convolution, Reach};
use crate::kernels::vector;
use crate::presence::file::Parameters;
use crate::presence::header::{MAX_CHANNELS, PresenceNetError, within, within_reach};
use crate::presence::network::activation;
use crate::presence::sizes::{FEATURES, GROUP, PAIR, PLACES};
use crate::tensor_file::{self, Format};
use serde::Deserialize;
use std::ops::Range;

const FORMAT: Format = Format { name: "alphamf-presence-causal", version: 1 };

/// Sizes of the network.
#[derive(Debug, Deserialize)]
struct Header {
    /// Channels of a place.
    channels: usize,
    /// Channels of a place on the way to and from the trunk.
    narrow: usize,
    /// Channels of the trunk.
    width: usize,
    /// Dilations of the layers before the trunk, pairs of frames.
    local: Vec<usize>,
    /// Dilations of the trunk's layers, pairs of frames.
    wide: Vec<usize>,
    /// Dilations of the layers after the trunk, pairs of frames.
    after: Vec<usize>,
}

/// The layers.
#[derive(Debug, Clone)]
pub(super) struct CausalNetwork {
    first: Convolution,
    /// Biases of every place, places x channels.
    places: Vec<f32>,
    local: Vec<Convolution>,
    narrow: Convolution,
    gather: Convolution,
    wide: Vec<Convolution>,
    spread: Convolution,
    widen: Convolution,
    after: Vec<Convolution>,
    last: Convolution,
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
    /// The network embedded in this crate: `models/presence-live-16k.safetensors`.
    pub(super) fn built_in() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../../models/presence-live-16k.safetensors"))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PresenceNetError> {
        let (header, tensors): (Header, _) = tensor_file::read(bytes, &FORMAT)?;
        let Header { channels, narrow, width, .. } = header;
        for (name, size) in [("channels", channels), ("narrow", narrow), ("width", width)] {
            within(name, size, MAX_CHANNELS)?;
        }
        for (name, dilations) in [("local", &header.local), ("wide", &header.wide), ("after", &header.after)]
        {
            within_reach(name, dilations)?;
        }
        let mut parameters = Parameters::new(&tensors)?;
        let near = Reach { frames: (1, 0), bands: 1 };
        let past = Reach { frames: (1, 0), bands: 0 };
        // Fields are evaluated in this order, which is that of the file.
        let network = Self {
            first: parameters.convolution([FEATURES * PAIR * GROUP, channels], near, 1)?,
            places: parameters.biases(PLACES * channels)?,
            local: parameters.convolutions(channels, near, &header.local)?,
            narrow: parameters.convolution([channels, narrow], Reach::NONE, 1)?,
            gather: parameters.convolution([narrow * PLACES, width], Reach::NONE, 1)?,
            wide: parameters.convolutions(width, past, &header.wide)?,
            spread: parameters.convolution([width, narrow * PLACES], Reach::NONE, 1)?,
            widen: parameters.convolution([narrow, channels], Reach::NONE, 1)?,
            after: parameters.convolutions(channels, near, &header.after)?,
            last: parameters.convolution([channels, PAIR * GROUP], Reach::NONE, 1)?,
        };
        parameters.finish()?;
        Ok(network)
    }

    pub(super) fn memory(&self) -> Memory {
        let near = |layer: &Convolution| History::new(layer, PLACES + 2);
        Memory {
            first: near(&self.first),
            local: self.local.iter().map(near).collect(),
            wide: self.wide.iter().map(|layer| History::new(layer, 1)).collect(),
            after: self.after.iter().map(near).collect(),
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
        let Rows { input, near, branch, narrow, trunk, trunk_branch, spread, output } = rows;
        let channels = self.first.outputs;
        let inside = channels..(PLACES + 1) * channels;
        self.first.next_frame(memory.first.past(), input, branch);
        memory.first.keep(input);
        let biased = branch.iter().zip(&self.places).map(|(x, bias)| activation(x + bias));
        near[inside.clone()].iter_mut().zip(biased).for_each(|(near, x)| *near = x);
        residual(&self.local, &mut memory.local, near, inside.clone(), branch);
        self.narrow.next_frame(&[], &near[channels..], narrow);
        self.gather.next_frame(&[], narrow, trunk);
        trunk.iter_mut().for_each(|x| *x = activation(*x));
        let whole = 0..trunk.len();
        residual(&self.wide, &mut memory.wide, trunk, whole, trunk_branch);
        self.spread.next_frame(&[], trunk, spread);
        self.widen.next_frame(&[], spread, branch);
        near[inside.clone()].iter_mut().zip(&*branch).for_each(|(near, x)| *near += x);
        residual(&self.after, &mut memory.after, near, inside, branch);
        self.last.next_frame(&[], &near[channels..], output);
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
    pub(super) fn reset(&mut self) {
        let Self { first, local, wide, after } = self;
        [first].into_iter().chain(local).chain(wide).chain(after).for_each(History::reset);
    }
}

/// The last input rows of a layer.
#[derive(Debug, Clone)]
struct History {
    rows: Vec<f32>,
    row: usize,
    at: usize,
}

impl History {
    /// For rows of so many places.
    fn new(layer: &Convolution, places: usize) -> Self {
        let row = places * layer.inputs;
        Self { rows: vec![0.0; layer.past_frames() * row], row, at: 0 }
    }

    /// The past row of the layer.
    fn past(&self) -> &[f32] {
        &self.rows[self.at..self.at + self.row]
    }

    /// Replaces the past row by the present one.
    fn keep(&mut self, now: &[f32]) {
        self.rows[self.at..self.at + self.row].copy_from_slice(now);
        self.at += self.row;
        if self.at == self.rows.len() {
            self.at = 0;
        }
    }

    fn reset(&mut self) {
        self.rows.fill(0.0);
        self.at = 0;
    }
}
