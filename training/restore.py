#!/usr/bin/env python3
"""A checkpoint from what export.py wrote, to learn on from it: restore.py PREPARED IN.safetensors CHECKPOINT [--live]

The batch normalisation that was folded into the convolutions of the causal network is set up anew: its statistics come from
mixtures.
"""

import argparse
import json

import numpy as np
import torch
from safetensors.numpy import load_file, safe_open

import live
from mixing import Mixer
from losses import LIVE_HOPS
from network import PLACES
from train import Run

MIXTURES = 32
# The root mean square of weights whose scale the normalisation makes free: what steps of the usual size suit.
SCALE = 0.04


class Reader:
    """Takes parameters in the order in which export.py writes them."""

    def __init__(self, tensors):
        self.left = {name: torch.from_numpy(values.astype(np.float32)) for name, values in tensors.items()}

    def take(self, name, *shape):
        taken, self.left[name] = self.left[name].tensor_split([int(np.prod(shape))])
        return taken.reshape(shape)

    def convolution(self, layer):
        """Its weights (outputs, inputs, frames, places), and its biases."""
        outputs, inputs, *taps = layer.weight.shape
        frames, places = (*taps, 1)[:2]
        w = self.take("weights", frames, places, inputs, outputs) * self.take("scales", outputs)
        return w.permute(3, 2, 0, 1), self.take("biases", outputs)

    def matrix(self, weights, biases):
        """Fills weights (outputs x inputs) and biases."""
        outputs, inputs = weights.shape
        weights.data = (self.take("weights", inputs, outputs) * self.take("scales", outputs)).T.contiguous()
        biases.data = self.take("biases", outputs)


def fill(layer, w, b):
    layer.weight.data = w.reshape(layer.weight.shape).clone()
    layer.bias.data = b.clone()


def normalised(layer, w, b):
    """The layer's normalisation does nothing yet; its bias is kept until its statistics are known."""
    scale = SCALE / w.square().mean((1, 2, 3), keepdim=True).sqrt().clamp(min=1e-6)
    layer.convolution.weight.data = (w * scale).reshape(layer.convolution.weight.shape).clone()
    scale = scale.flatten()

    def observe(_, inputs):
        y = inputs[0].transpose(0, 1).flatten(1)
        norm = layer.norm
        mean, variance = y.mean(1), y.var(1)
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        # So that what leaves it is y / scale + b.
        norm.weight.data = (variance + norm.eps).sqrt() / scale
        norm.bias.data = b + mean / scale

    return layer.norm.register_forward_pre_hook(observe)


def whole(net, reader):
    """Fills the network of whole recordings."""
    fill(net.first, *reader.convolution(net.first))
    net.place.data = reader.take("biases", PLACES, net.first.out_channels).T[None, :, None].clone()
    for layer in net.near:
        fill(layer, *reader.convolution(layer))
    for turn in net.turns:
        units = turn.recurrence
        for end in ("l0", "l0_reverse"):
            for part in ("ih", "hh"):
                reader.matrix(getattr(units, f"weight_{part}_{end}"), getattr(units, f"bias_{part}_{end}"))
        reader.matrix(turn.join.weight, turn.join.bias)
    for layer in net.after:
        fill(layer, *reader.convolution(layer))
    fill(net.last, *reader.convolution(net.last))


def read_causal(net, reader, read_layer):
    """Fills the causal network; `read_layer` gets each normalised layer with its weights and biases. What it gives, of all of them."""
    n, found = net.n, []
    read = lambda layers: found.extend(read_layer(layer, *reader.convolution(layer.convolution)) for layer in layers)
    fill(net.first, *reader.convolution(net.first))
    net.place.data = reader.take("biases", PLACES, net.first.out_channels).T[None, :, None].clone()
    read(net.local)
    fill(net.narrow, *reader.convolution(net.narrow))
    w, b = reader.convolution(net.gather.convolution)
    w = w.reshape(len(w), PLACES, n, 1, 1).transpose(1, 2).reshape(len(w), n * PLACES, 1, 1)
    found.append(read_layer(net.gather, w, b))
    read(net.wide)
    w, b = reader.convolution(net.spread)
    fill(net.spread, w.reshape(PLACES, n, -1).transpose(0, 1), b.reshape(PLACES, n).T.flatten())
    fill(net.widen, *reader.convolution(net.widen))
    read(net.after)
    fill(net.last, *reader.convolution(net.last))
    return found


def causal(net, reader, prepared):
    """Fills the causal network; its normalisations get their statistics from mixtures."""
    hooks = read_causal(net, reader, normalised)
    batch = Mixer(prepared, 0).batch(MIXTURES)
    # In the middle of the range of levels of `live_losses`.
    power = live.frames(batch.noisy, live.windows(LIVE_HOPS[1])[0]).abs() ** 2 * 10**-2.5
    seen = live.features(power[:, : power.shape[1] // 2 * 2], batch.half)
    net.eval()
    with torch.no_grad():
        net(seen)
    for hook in hooks:
        hook.remove()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("prepared")
    a.add_argument("model")
    a.add_argument("checkpoint")
    a.add_argument("--live", action="store_true", help="it is causal")
    a = a.parse_args()
    torch.manual_seed(0)
    run, reader = Run(rate=1e-3, live=a.live), Reader(load_file(a.model))
    if a.live:
        causal(run.net, reader, a.prepared)
    else:
        whole(run.net, reader)
    assert all(len(values) == 0 for values in reader.left.values())
    run.average = {name: value.clone() for name, value in run.net.state_dict().items()}
    with safe_open(a.model, "np") as f:
        run.seen = 3600 * json.loads(f.metadata()["header"])["hours"]
    run.save(a.checkpoint, 0.0)


if __name__ == "__main__":
    main()
