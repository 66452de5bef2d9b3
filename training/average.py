#!/usr/bin/env python3
"""The mean of two runs' weights, of which one continued the other: average.py FIRST SECOND FRACTION OUT

FRACTION is the weight of FIRST, 0 to 1. Runs that end at rest lie on either side of the same valley: the mean of their weights
does better on new recordings than both (Wortsman and others 2022, "Model soups"). Only `export.py` reads OUT.
"""

import argparse

import torch

from train import checkpoint_of, weights_of

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("first", "second"):
        parser.add_argument(name, metavar=name.upper())
    parser.add_argument("fraction", metavar="FRACTION", type=float)
    parser.add_argument("out", metavar="OUT")
    a = parser.parse_args()
    first, second = (checkpoint_of(path) for path in (a.first, a.second))
    before = weights_of(first)
    for name, value in second["average"].items():
        if value.dtype.is_floating_point:
            value.lerp_(before[name], a.fraction)
    # What goes on from it begins anew.
    second.update(net=None, optimisers=[])
    torch.save(second, a.out)
