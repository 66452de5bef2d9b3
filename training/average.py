#!/usr/bin/env python3
"""Averages the weights of a run and of its continuation: average.py FIRST SECOND FRACTION OUT

FRACTION is the weight of FIRST, 0 to 1. The average often generalises better than either (Wortsman and others 2022, "Model soups").
OUT is for `export.py`; to train from it, export and restore it.
"""

import argparse

import torch

from options import fraction, run
from train import checkpoint_of, weights_of


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("first", "second"):
        parser.add_argument(name, metavar=name.upper())
    parser.add_argument("fraction", metavar="FRACTION", type=fraction)
    parser.add_argument("out", metavar="OUT")
    a = parser.parse_args()
    first, second = (checkpoint_of(path) for path in (a.first, a.second))
    before, after = weights_of(first), weights_of(second)
    sizes = lambda weights: {name: value.shape for name, value in weights.items()}
    if sizes(before) != sizes(after):
        raise SystemExit(f"{a.second}: other sizes than {a.first}")
    for name, value in second["average"].items():
        if value.dtype.is_floating_point:
            value.copy_(after[name].lerp(before[name], a.fraction))
    # The optimiser state does not fit the averaged weights.
    second.update(net=None, optimisers=[])
    torch.save(second, a.out)


if __name__ == "__main__":
    run(main)
