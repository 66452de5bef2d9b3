#!/usr/bin/env python3
"""Makes a checkpoint from an exported network, to continue training: restore.py IN.safetensors CHECKPOINT [--live]

More units (--over-places, --over-frames) or turns (--turns) give a larger network with the same outputs.
"""

import argparse
import json

import numpy as np
import torch
from safetensors.numpy import load_file, safe_open

from export import FORMATS
from network import PLACES, CausalPresenceNet, PresenceNet, ends_of
from options import run
from train import Run

# Sizes that can be increased.
GROWING = ("over_places", "over_frames", "turns")


class Reader:
    """Reads parameters in the order of export.py."""

    def __init__(self, tensors):
        self.left = {name: torch.from_numpy(values.astype(np.float32)) for name, values in tensors.items()}

    def take(self, name, *shape):
        taken, self.left[name] = self.left[name].tensor_split([int(np.prod(shape))])
        return taken.reshape(shape)

    def convolution(self, layer):
        """Sets the weights (outputs, inputs, frames, places) and biases of a layer."""
        outputs, inputs, frames, places = layer.weight.shape
        w = self.take("weights", frames, places, inputs, outputs) * self.take("scales", outputs)
        layer.weight.data, layer.bias.data = w.permute(3, 2, 0, 1).contiguous(), self.take("biases", outputs)

    def matrix(self, weights, biases):
        """Sets weights (outputs x inputs) and biases."""
        outputs, inputs = weights.shape
        weights.data = (self.take("weights", inputs, outputs) * self.take("scales", outputs)).T.contiguous()
        biases.data = self.take("biases", outputs)


def fill(net, path):
    """Sets the parameters of a network to those of a file."""
    reader = Reader(load_file(path))
    reader.convolution(net.first)
    net.place.data = reader.take("biases", PLACES, net.first.out_channels).T[None, :, None].clone()
    for layer in net.near:
        reader.convolution(layer)
    for turn in net.turns:
        units = turn.recurrence
        for end in ends_of(units):
            for part in ("ih", "hh"):
                reader.matrix(getattr(units, f"weight_{part}_{end}"), getattr(units, f"bias_{part}_{end}"))
        reader.matrix(turn.join.weight, turn.join.bias)
    for layer in net.after:
        reader.convolution(layer)
    reader.convolution(net.last)
    if any(len(values) for values in reader.left.values()):
        raise SystemExit(f"{path}: more weights than its header has")


@torch.no_grad()
def grow(small, large):
    """Sets the weights of a network with more units and turns such that its outputs are those of the small one: new units have no effect on
    other ones, and new turns add zero."""
    around = {name: value for name, value in small.state_dict().items() if not name.startswith("turns.")}
    large.load_state_dict(around, strict=False)
    for turn in large.turns:
        turn.join.weight.zero_()
        turn.join.bias.zero_()
    for old, new in zip(small.turns, large.turns):
        new.norm.load_state_dict(old.norm.state_dict())
        before, after = old.recurrence.hidden_size, new.recurrence.hidden_size
        # Rows of the small network; gates are `after` units apart.
        rows = torch.cat([torch.arange(before) + gate * after for gate in range(3)])
        new.join.bias.copy_(old.join.bias)
        for direction, end in enumerate(ends_of(new.recurrence)):
            of = lambda turn, name: getattr(turn.recurrence, f"{name}_{end}")
            for name in ("weight_ih", "bias_ih", "bias_hh"):
                of(new, name)[rows] = of(old, name)
            of(new, "weight_hh")[rows] = 0
            of(new, "weight_hh")[rows, :before] = of(old, "weight_hh")
            outputs = slice(direction * before, (direction + 1) * before)
            new.join.weight[:, direction * after : direction * after + before] = old.join.weight[:, outputs]


def sizes_of(header):
    """The arguments of the network that has this header."""
    alike = {name: header[name] for name in ("channels", "over_frames", "near", "turns", "after")}
    return {**alike, "over_places": header["over_bands"]}


def read(path, live):
    """The network and the header of a file."""
    with safe_open(path, "np") as f:
        metadata = f.metadata() or {}
    name, (causal, whole) = metadata.get("format"), (FORMATS[kind][0] for kind in (True, False))
    if name not in (causal, whole):
        raise SystemExit(f"{path}: no speech-presence network, but {name}")
    if live != (name == causal):
        raise SystemExit(f"{path}: " + ("not the causal network, which --live needs" if live else "the causal network, which needs --live"))
    header = json.loads(metadata["header"])
    net = (CausalPresenceNet if live else PresenceNet)(**sizes_of(header))
    fill(net, path)
    return net, header


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("model")
    a.add_argument("checkpoint")
    a.add_argument("--live", action="store_true", help="the network is causal")
    for name in GROWING:
        a.add_argument("--" + name.replace("_", "-"), type=int, help="as in the file, or larger")
    a = a.parse_args()
    torch.manual_seed(0)
    small, header = read(a.model, a.live)
    sizes = sizes_of(header)
    asked = {name: value for name, value in vars(a).items() if name in GROWING and value is not None}
    if any(value < sizes[name] for name, value in asked.items()):
        raise SystemExit(f"{a.model} has {sizes}: expected as many or more")
    state = Run(rate=1e-3, live=a.live, shape={**sizes, **asked})
    grow(small, state.net)
    state.average = {name: value.clone() for name, value in state.net.state_dict().items()}
    state.seen = 3600 * header["hours"]
    state.save(a.checkpoint, 0.0)


if __name__ == "__main__":
    run(main)
