#!/usr/bin/env python3
"""The mean of two runs' weights, of which one continued the other: average.py FIRST SECOND FRACTION OUT

FRACTION is the weight of FIRST, 0 to 1. Runs that end at rest lie on either side of the same valley: the mean of their weights
does better on new recordings than both (Wortsman and others 2022, "Model soups"). Only `export.py` reads OUT.
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
    # What goes on from it begins anew.
    second.update(net=None, optimisers=[])
    torch.save(second, a.out)


if __name__ == "__main__":
    run(main)
