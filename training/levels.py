#!/usr/bin/env python3
"""How sure the level of the voice is, learned from mixtures: levels.py cells DENOISE CELLS MIXTURES..., levels.py learn CELLS OUT [--reference OUT.csv]

MIXTURES are folders with `noisy/KIND__NAME.wav` and the voices alone as `clean/KIND__NAME.wav`. `cells` runs the program DENOISE on both
and keeps what it sees of every third octave in every 100 ms, and the level of the voice there. `learn` fits three quantiles of
the level to that, says how many levels they hold by kind of noise on recordings that are left out by turns, and
writes the network as OUT (models/speech-levels.safetensors); --reference writes some of its results for the tests of the program
(src/denoiser/levels/reference.csv).
"""

import argparse
import math
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

from export import write

HIDDEN, STEPS, BATCH = 12, 2500, 8000
# As in quantiles.rs.
MEDIANS, DISTANCES = (-40.0, 10.0), (-6.0, 4.5)
# Levels this far below the loud cells are not judged, and those of the voice count as no lower than that, dB.
JUDGED, LOWEST = 40.0, 50.0
# Two voices are told apart the worst: such mixtures count double. Voices alone are many, and easy; and the listener is seldom left out.
COUNTS = {"voice": 2.0, "clean": 0.3, "no-listener": 0.1}
# What is learned is too sure by so much of recordings that are left out.
WIDER = 1.01

CELL = re.compile(r"slot=(\d+) band=(\d+) recorded=(\S+) expected=(\S+) inputs=\[(.*?)\]")


def cells_of(denoise, path, *options):
    """By slot and band: the level of what was recorded, that expected of the voice, and the network's inputs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [denoise, path, f"{folder}/out.wav", "--levels", f"{folder}/levels.csv", "--log", "trace", *options]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for slot, band, recorded, expected, inputs in CELL.findall(run.stderr):
        values = [float(x) for x in inputs.split(", ")]
        found[int(slot), int(band)] = (float(recorded), float(expected), values)
    return found


def recording(kind, noisy, truth):
    """Inputs of all cells that are judged, and the level of the voice above the expected one."""
    places = sorted(noisy)
    expected = np.array([noisy[place][1] for place in places])
    inputs = np.array([noisy[place][2] for place in places])
    voice = np.array([truth[place][0] if place in truth else -math.inf for place in places])
    loud = np.percentile([recorded for recorded, _, _ in truth.values()], 95)
    judged = expected > np.percentile(expected, 95) - JUDGED
    return kind, inputs[judged], (np.maximum(voice, loud - LOWEST) - expected)[judged]


def gather(denoise, folders):
    recordings = []
    for path in sorted(path for folder in folders for path in Path(folder).glob("noisy/*.wav")):
        truth = cells_of(denoise, str(path.parent.parent / "clean" / path.name))
        recordings.append(recording(path.name.split("__")[0], cells_of(denoise, str(path)), truth))
        recordings.append(recording("clean", truth, truth))
        recordings.append(recording("no-listener", cells_of(denoise, str(path), "--no-neural"), truth))
        print(path.name, len(recordings[-3][1]), flush=True)
    return recordings


class Network(torch.nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.mean, self.deviation = inputs.mean(0), inputs.std(0) + 1e-6
        sizes = [inputs.shape[1], HIDDEN, HIDDEN, 3]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        # Where outputs begin: no shift, and distances of a few dB.
        self.scale, self.shift = torch.tensor([3.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 1.0])

    def forward(self, x):
        x = (x - self.mean) / self.deviation
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        median, below, above = (self.layers[-1](x) * self.scale + self.shift).unbind(-1)
        return median.clip(*MEDIANS), below.clip(*DISTANCES).exp(), above.clip(*DISTANCES).exp()


def fit(recordings, seed=0):
    torch.manual_seed(seed)
    x = torch.tensor(np.concatenate([x for _, x, _ in recordings]), dtype=torch.float32)
    y = torch.tensor(np.concatenate([y for _, _, y in recordings]), dtype=torch.float32)
    counts = torch.tensor(np.concatenate([np.full(len(y), COUNTS.get(kind, 1.0)) for kind, _, y in recordings]))
    network = Network(x)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, STEPS)
    for _ in range(STEPS):
        chosen = torch.randint(0, len(y), (BATCH,))
        median, below, above = network(x[chosen])
        fixed, loss = median.detach(), 0.0
        for quantile, level in ((median, 0.5), (fixed - below, 0.05), (fixed + above, 0.95)):
            miss = y[chosen] - quantile
            loss = loss + (counts[chosen] * torch.maximum(level * miss, (level - 1) * miss)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.shift += torch.tensor([0.0, 1.0, 1.0]) * math.log(WIDER)
    return network


def judge(recordings):
    """The share of levels held and that below the interval, by kind, each recording by a network that has not seen it."""
    fold = np.random.default_rng(0).permutation(len(recordings)) % 3
    rows = {}
    for part in range(3):
        network = fit([r for r, f in zip(recordings, fold) if f != part])
        for kind, x, y in (r for r, f in zip(recordings, fold) if f == part):
            with torch.no_grad():
                median, below, above = (q.numpy() for q in network(torch.tensor(x, dtype=torch.float32)))
            held = np.sum((y >= median - below) & (y <= median + above))
            rows.setdefault(kind, []).append((held, np.sum(y < median - below), len(y)))
    rows["all"] = [row for kind, those in rows.items() if kind not in ("clean", "no-listener") for row in those]
    for kind, those in sorted(rows.items()):
        held, lower, count = np.array(those, float).T
        share = held.sum() / count.sum()
        error = np.sqrt(len(those) * np.sum((held - share * count) ** 2) / (len(those) - 1)) / count.sum()
        print(f"{kind}: {100 * share:.1f} +- {100 * error:.1f} % held, {100 * lower.sum() / count.sum():.1f} % below", flush=True)


def export(network, recordings, out, reference):
    with torch.no_grad():
        first, second, third = ([layer.weight.double(), layer.bias.double()] for layer in network.layers)
        first[1] -= first[0] @ (network.mean / network.deviation).double()
        first[0] /= network.deviation.double()
        third = [network.scale.double()[:, None] * third[0], network.scale.double() * third[1] + network.shift.double()]
        chosen = [x[len(x) // 2] for kind, x, _ in recordings[:: len(recordings) // 5]]
        said = [[float(q) for q in network(torch.tensor(x, dtype=torch.float32))] for x in chosen]

    # Of each output the weights of the inputs, and then its bias.
    tensors = [
        (name, "F32", torch.cat([weight, bias[:, None]], 1).float().numpy().ravel())
        for name, (weight, bias) in (("first", first), ("second", second), ("third", third))
    ]
    header = dict(inputs=first[0].shape[1], hidden=HIDDEN)
    write(out, "alphamf-levels", header, tensors, version="1")
    if reference:
        names = [f"input_{k}" for k in range(header["inputs"])] + ["median", "below", "above"]
        rows = [",".join(f"{v:.6}" for v in [*map(float, x), *q]) for x, q in zip(chosen, said)]
        Path(reference).write_text("\n".join([",".join(names), *rows]) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_cells = commands.add_parser("cells")
    of_cells.add_argument("denoise")
    of_cells.add_argument("cells")
    of_cells.add_argument("mixtures", nargs="+")
    of_learn = commands.add_parser("learn")
    of_learn.add_argument("cells")
    of_learn.add_argument("out")
    of_learn.add_argument("--reference")
    a = parser.parse_args()
    if a.command == "cells":
        torch.save(gather(a.denoise, a.mixtures), a.cells)
    else:
        recordings = torch.load(a.cells, weights_only=False)
        judge(recordings)
        export(fit(recordings), recordings, a.out, a.reference)
