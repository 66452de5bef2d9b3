//! The parameters of the causal network and their file: convolutions over the past and neighbouring bands, around a trunk over
//! the whole spectrum.

use crate::kernels::convolution::Convolution;
use crate::presence::file::{self, Taps};
use crate::presence::header::{MAX_CHANNELS, PresenceNetError, within, within_reach};
use crate::presence::layout::Layout;
use crate::presence::sizes::{FEATURES, GROUP, PAIR, PLACES};
use crate::tensor_file::{self, Format};
use serde::Deserialize;

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

/// All layers, with their parameters end to end in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
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

impl Weights {
    /// Those embedded in this crate: `models/presence-live-16k.safetensors`.
    pub(super) fn built_in() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../../models/presence-live-16k.safetensors"))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PresenceNetError> {
        let (header, tensors): (Header, _) = tensor_file::read(bytes, &FORMAT)?;
        for (name, size) in
            [("channels", header.channels), ("narrow", header.narrow), ("width", header.width)]
        {
            within(name, size, MAX_CHANNELS)?;
        }
        for (name, dilations) in [("local", &header.local), ("wide", &header.wide), ("after", &header.after)]
        {
            within_reach(name, dilations)?;
        }
        let mut weights = Self::new(&header);
        let layers: Vec<Convolution> = weights.convolutions().cloned().collect();
        let places = weights.places..weights.places + PLACES * header.channels;
        weights.parameters = file::parameters(&tensors, &layers, places, Taps::Past)?;
        Ok(weights)
    }

    /// The layers, without parameters.
    fn new(header: &Header) -> Self {
        let &Header { channels, narrow, width, .. } = header;
        let mut layout = Layout::new();
        // Fields are evaluated in this order, which is that of the file.
        Self {
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
        }
    }

    /// All layers, in the order of the file.
    fn convolutions(&self) -> impl Iterator<Item = &Convolution> {
        let Self { first, local, narrow, gather, wide, spread, widen, after, last, .. } = self;
        let before = [first].into_iter().chain(local).chain([narrow, gather]);
        before.chain(wide).chain([spread, widen]).chain(after).chain([last])
    }
}
