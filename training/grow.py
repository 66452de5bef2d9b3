#!/usr/bin/env python3
"""A checkpoint for the layers of `network.py`, from one that has fewer: grow.py CHECKPOINT OUT

It computes what it computed before: layers that it lacked stand behind the others of their kind, and add nothing yet.
"""

import sys

import torch

from train import Run, weights_of


def main():
    source, target = sys.argv[1:]
    c = torch.load(source, weights_only=False)
    run = Run(rate=1e-3)
    run.begin(weights_of(c))
    run.seen = c["seen"]
    run.save(target, 0.0)


if __name__ == "__main__":
    main()
