#!/usr/bin/env python3
"""A checkpoint from what export.py wrote, to learn on from it: restore.py IN.safetensors CHECKPOINT [--live]"""

import argparse
import json

import numpy as np
import torch
from safetensors.numpy import load_file, safe_open

from network import PLACES, ends_of
from train import Run


class Reader:
    """Takes parameters in the order in which export.py writes them."""

    def __init__(self, tensors):
        self.left = {name: torch.from_numpy(values.astype(np.float32)) for name, values in tensors.items()}

    def take(self, name, *shape):
        taken, self.left[name] = self.left[name].tensor_split([int(np.prod(shape))])
        return taken.reshape(shape)

    def convolution(self, layer):
        """Fills its weights (outputs, inputs, frames, places) and biases."""
        outputs, inputs, frames, places = layer.weight.shape
        w = self.take("weights", frames, places, inputs, outputs) * self.take("scales", outputs)
        layer.weight.data, layer.bias.data = w.permute(3, 2, 0, 1).contiguous(), self.take("biases", outputs)

    def matrix(self, weights, biases):
        """Fills weights (outputs x inputs) and biases."""
        outputs, inputs = weights.shape
        weights.data = (self.take("weights", inputs, outputs) * self.take("scales", outputs)).T.contiguous()
        biases.data = self.take("biases", outputs)


def fill(net, path):
    """Fills a network with what a file has."""
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
    assert all(len(values) == 0 for values in reader.left.values())


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("model")
    a.add_argument("checkpoint")
    a.add_argument("--live", action="store_true", help="it is causal")
    a = a.parse_args()
    torch.manual_seed(0)
    run = Run(rate=1e-3, live=a.live)
    fill(run.net, a.model)
    run.average = {name: value.clone() for name, value in run.net.state_dict().items()}
    with safe_open(a.model, "np") as f:
        run.seen = 3600 * json.loads(f.metadata()["header"])["hours"]
    run.save(a.checkpoint, 0.0)


if __name__ == "__main__":
    main()
