#!/usr/bin/env python3
"""Exports a checkpoint for the program: export.py CHECKPOINT OUT.safetensors [--reference OUT.csv] [--live]

Weights are quantised to integers from -127 to 127 with a scale per output, which changes SI-SDR of the network alone by at most
0.001 dB.
"""

import argparse
import json
import struct

import numpy as np
import torch

import live
from network import (
    BANDS,
    BINS,
    HALF,
    HALF_BANDS,
    RATE,
    WINDOW,
    CausalPresenceNet,
    PresenceNet,
    ends_of,
    features_of,
    interpolation,
)
from options import run
from train import checkpoint_of, fill, weights_of

# Format names and versions, by whether the network is causal.
FORMATS = {True: ("alphamf-presence-causal", "2"), False: ("alphamf-presence", "3")}


def quantised(w):
    """Integers (the same shape) and a scale per output."""
    scale = w.flatten(1).abs().amax(1).clamp(min=1e-30) / 127
    return torch.round(w / scale.reshape(-1, *[1] * (w.dim() - 1))), scale


class Writer:
    """Collects the parameters of layers in the order in which the program reads them."""

    def __init__(self):
        self.weights, self.scales, self.biases = [], [], []

    def bias(self, values):
        self.biases.append(values.detach().double().reshape(-1))

    def convolution(self, layer, norm=None):
        """Adds weights as (frames x places of taps, inputs, outputs), and biases; batch normalisation is folded in."""
        w = layer.weight.detach().double()
        # From here on, PyTorch computes with the quantised weights.
        w, scale = quantised(w)
        layer.weight.data = (w * scale.reshape(-1, *[1] * (w.dim() - 1))).float()
        w = w[..., None] if w.dim() == 3 else w
        b = layer.bias.detach().double() if layer.bias is not None else torch.zeros(len(w), dtype=torch.double)
        if norm is not None:
            factor = norm.weight.detach().double() / torch.sqrt(norm.running_var.double() + norm.eps)
            scale = scale * factor
            b = (b - norm.running_mean.double()) * factor + norm.bias.detach().double()
        self.weights.append(w.permute(2, 3, 1, 0).reshape(-1))
        self.scales.append(scale)
        self.bias(b)

    def matrix(self, w, b):
        """Adds weights (outputs x inputs) and biases; returns the quantised ones."""
        layer = torch.nn.Conv1d(w.shape[1], w.shape[0], 1)
        layer.weight.data, layer.bias.data = w.detach()[..., None], b.detach()
        self.convolution(layer)
        return layer.weight.data[..., 0], layer.bias.data

    def turn(self, turn):
        """Adds a recurrent layer; scale and shift of its normalisation are folded in."""
        norm, units = turn.norm, turn.recurrence
        for end in ends_of(units):
            w, b = getattr(units, f"weight_ih_{end}"), getattr(units, f"bias_ih_{end}")
            b.data = b.data + w.data @ norm.bias.data
            w.data = w.data * norm.weight.data
            for part in ("ih", "hh"):
                w, b = getattr(units, f"weight_{part}_{end}"), getattr(units, f"bias_{part}_{end}")
                w.data, b.data = self.matrix(w, b)
        norm.weight.data.fill_(1)
        norm.bias.data.zero_()
        turn.join.weight.data, turn.join.bias.data = self.matrix(turn.join.weight, turn.join.bias)

    def tensors(self):
        """Name, type and values of the tensors, in order of decreasing width, for alignment."""
        scales, biases = (torch.cat(values).numpy().astype(np.float32) for values in (self.scales, self.biases))
        # The scale is not finite if a weight is not.
        if not (np.isfinite(scales).all() and np.isfinite(biases).all()):
            raise SystemExit("non-finite weights: nothing is written")
        weights = torch.cat(self.weights).numpy().astype(np.int8)
        return [("scales", "F32", scales), ("biases", "F32", biases), ("weights", "I8", weights)]


def write(path, name, header, tensors, version="2"):
    """Writes a safetensors file with the header as metadata. The package would write metadata in a random order."""
    meta = {"__metadata__": dict(format=name, header=json.dumps(header), version=version)}
    at = 0
    for tensor, dtype, values in tensors:
        meta[tensor] = dict(dtype=dtype, shape=[len(values)], data_offsets=[at, at + values.nbytes])
        at += values.nbytes
    text = json.dumps(meta, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(values.tobytes() for _, _, values in tensors))


def log_odds(net, power, bands, is_live):
    """Log odds of all frames (frames x BANDS) for powers (frames x bins), as in the program."""
    if not is_live:
        return net(torch.from_numpy(features_of(power, bands))[None])[0]
    return live.in_turns(net, torch.from_numpy(live.features_of(power, bands, live.FRAME_HOP))[None])[0]


def spectrum(bins):
    """Synthetic powers (frames x bins), given by a formula that the test of the program repeats."""
    t, b = np.mgrid[0:48, 0:bins]
    return np.exp(4 * np.sin(0.05 * t * (1 + b % 7)) - b / 100 + 2 * np.cos(0.4 * b)).astype(np.float32)


def parameters(net):
    """Tensors and header of a network."""
    writer = Writer()
    writer.convolution(net.first)
    writer.bias(net.place[0, :, 0].T)
    for layer in net.near:
        writer.convolution(layer)
    for turn in net.turns:
        writer.turn(turn)
    for layer in net.after:
        writer.convolution(layer)
    writer.convolution(net.last)
    return writer.tensors(), dict(
        channels=net.first.out_channels,
        over_bands=net.turns[0].recurrence.hidden_size,
        over_frames=net.turns[1].recurrence.hidden_size,
        near=[layer.dilation[0] for layer in net.near],
        turns=len(net.turns) // 2,
        after=[layer.dilation[0] for layer in net.after],
    )


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("checkpoint")
    a.add_argument("out")
    a.add_argument("--reference", help="write reference log odds for the test of the program")
    a.add_argument("--live", action="store_true", help="the network is causal")
    a = a.parse_args()
    c = checkpoint_of(a.checkpoint)
    hours = round(c["seen"] / 3600, 2)
    net = (CausalPresenceNet if a.live else PresenceNet)(**c.get("shape", {}))
    fill(net, weights_of(c), a.checkpoint)
    net.eval()
    tensors, header = parameters(net)
    name, version = FORMATS[a.live]
    header.update(window_seconds=WINDOW / RATE, hours=hours)
    write(a.out, name, header, tensors, version)
    print(header, {name: len(values) for name, _, values in tensors})
    if a.reference:
        # Two bandwidths, some frames and bins.
        power = spectrum(BINS)
        with open(a.reference, "w") as f:
            f.write("bins,frame,bin,log_odds\n")
            for bins, bands in ((BINS, BANDS), (HALF, HALF_BANDS)):
                with torch.no_grad():
                    odds = log_odds(net, power[:, :bins], bands, a.live).numpy() @ interpolation()
                f.writelines(
                    f"{bins},{i},{j},{odds[i, j]:.4f}\n"
                    for i in (0, 1, 17, 30, 47)
                    for j in (3, 40, 100, 250, 256, 400, 511)
                    if j < bins
                )


if __name__ == "__main__":
    run(main)
