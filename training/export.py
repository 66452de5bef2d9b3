#!/usr/bin/env python3
"""Write what was learned as the program reads it: export.py CHECKPOINT OUT.safetensors [--reference OUT.csv]"""

import argparse
import json
import struct

import numpy as np
import torch

from network import BANDS, BINS, HALF, HALF_BANDS, PLACES, RATE, WINDOW, Listener, features, interpolation


def convolution(layer, norm=None):
    """Weights as (frames x places of taps, inputs, outputs), then biases; batch normalisation folded in."""
    w = layer.weight.detach().double()
    w = w[..., None] if w.dim() == 3 else w
    b = layer.bias.detach().double() if layer.bias is not None else torch.zeros(len(w), dtype=torch.double)
    if norm is not None:
        scale = norm.weight.detach().double() / torch.sqrt(norm.running_var.double() + norm.eps)
        w = w * scale[:, None, None, None]
        b = (b - norm.running_mean.double()) * scale + norm.bias.detach().double()
    return w, b


def flat(w, b):
    return np.concatenate([w.permute(2, 3, 1, 0).reshape(-1).numpy(), b.numpy()])


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("checkpoint")
    a.add_argument("out")
    a.add_argument("--reference")
    a = a.parse_args()
    c = torch.load(a.checkpoint, weights_only=False, map_location="cpu")
    net = Listener()
    net.load_state_dict(c["average"])
    net.eval()
    n = net.n

    def places_last(w):
        return (
            w.reshape(w.shape[0], n, PLACES, 1, 1).transpose(1, 2).reshape(w.shape[0], n * PLACES, 1, 1)
        )  # inputs: place, then channel

    parts = [flat(*convolution(net.first)), net.place.detach()[0, :, 0].T.reshape(-1).numpy()]
    parts += [flat(*convolution(l.convolution, l.norm)) for l in net.local]
    parts += [flat(*convolution(net.narrow))]
    w, b = convolution(net.gather.convolution, net.gather.norm)
    parts += [flat(places_last(w), b)]
    parts += [flat(*convolution(l.convolution, l.norm)) for l in net.wide]
    w, b = convolution(net.spread)
    w = w.reshape(n, PLACES, -1, 1, 1).transpose(0, 1).reshape(n * PLACES, -1, 1, 1)
    b = b.reshape(n, PLACES).T.reshape(-1)
    parts += [flat(w, b)]
    parts += (
        [flat(*convolution(net.widen))]
        + [flat(*convolution(l.convolution, l.norm)) for l in net.after]
        + [flat(*convolution(net.last))]
    )
    values = np.concatenate(parts).astype(np.float16)
    assert np.isfinite(values).all()
    header = dict(
        window_seconds=WINDOW / RATE,
        channels=net.first.out_channels,
        narrow=n,
        width=net.spread.in_channels,
        local=[l.convolution.dilation[0] for l in net.local],
        wide=[l.convolution.dilation[0] for l in net.wide],
        after=[l.convolution.dilation[0] for l in net.after],
        hours=round(c["seen"] / 3600, 2),
    )
    meta = {
        "__metadata__": dict(format="alphamf-listener", header=json.dumps(header), version="1"),
        "parameters": dict(dtype="F16", shape=[len(values)], data_offsets=[0, 2 * len(values)]),
    }
    text = json.dumps(meta, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(a.out, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + values.tobytes())
    print(header, len(values))
    if a.reference:
        # A spectrum that can be written down, at two bandwidths; values of a few bins as the test reads them.
        t, b = np.mgrid[0:48, 0:BINS]
        power = np.exp(4 * np.sin(0.05 * t * (1 + b % 7)) - b / 100 + 2 * np.cos(0.4 * b)).astype(np.float32)
        with open(a.reference, "w") as f:
            f.write("bins,frame,bin,log_odds\n")
            for bins, bands in ((BINS, BANDS), (HALF, HALF_BANDS)):
                with torch.no_grad():
                    odds = net(torch.from_numpy(features(power[:, :bins], bands))[None])[0].numpy() @ interpolation()
                f.writelines(
                    f"{bins},{i},{j},{odds[i, j]:.4f}\n"
                    for i in (0, 1, 17, 30, 47)
                    for j in (3, 40, 100, 250, 256, 400, 511)
                    if j < bins
                )


if __name__ == "__main__":
    main()
