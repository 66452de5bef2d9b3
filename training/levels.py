#!/usr/bin/env python3
"""Trains the quantiles of the speech level: levels.py cells DENOISE CELLS MIXTURES..., levels.py learn CELLS OUT [--reference OUT.csv],
    levels.py held DENOISE MIXTURES [OPTIONS...]

MIXTURES are folders of make_levels.py or make_development.py: `noisy/KIND__NAME.wav`, clean speech as `clean/KIND__NAME.wav`, and list.csv.
`cells` runs the program DENOISE on the mixtures and stores its features of every third octave in every 100 ms, with the true level of the
speech in that cell: its mean square after an ideal filter, by one Fourier transform of the recording. `learn` fits three quantiles of the
level, prints their coverage by kind, SNR and codec in cross-validation over folds that share no voice and no noise, and writes the network
to OUT (models/speech-levels.safetensors); --reference writes some of its outputs for the tests of the program
(src/denoiser/levels/reference.csv). `held` prints the coverage of the intervals of the program (`--levels`, with OPTIONS of denoise), the
fraction of levels below them, the pinball loss of the three quantiles, and the median width.
"""

import argparse
import csv
import math
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import soundfile
import torch

from export import write
from options import existing_folder, run
from train import loaded

HIDDEN, STEPS, BATCH = 12, 1200, 4000
# As in quantiles.rs.
MEDIANS, DISTANCES = (-40.0, 10.0), (-6.0, 4.5)
# As in levels.rs: third octaves relative to that of 1 kHz.
EDGES = [1000 * 2 ** ((band - 0.5) / 3) for band in range(-9, 15)]
# Range below the loud cells in which cells are evaluated, and lower limit of speech levels, dB.
JUDGED, LOWEST = 40.0, 50.0
# Weights in the loss: more for kinds with low coverage, less for clean speech.
COUNTS = {"voice": 1.5, "clean": 0.7}
LOUD_NOISE = {"-5": 1.5, "0": 1.5}
# Factor of the widths. Coverage is 90 % with 1 in cross-validation, and with 0.9 on development mixtures.
WIDTH = 0.95
# As in levels.rs: the error that a lossy codec adds is SPREAD[0] * kilobits ** -SPREAD[1], dB.
SPREAD = (10.0, 0.6)

CELL = re.compile(r"slot=(\d+) band=(\d+) recorded=(\S+) expected=(\S+) inputs=\[(.*?)\]")


def cells_of(denoise, path):
    """Recorded level, expected speech level and network inputs, by slot and band."""
    with tempfile.TemporaryDirectory() as folder:
        command = [denoise, path, f"{folder}/out.wav", "--levels", f"{folder}/levels.csv", "--log", "trace", "--threads", "1"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for slot, band, recorded, expected, inputs in CELL.findall(run.stderr):
        values = float(recorded), float(expected), [float(x) for x in inputs.split(", ")]
        # Values are missing where no speech is expected.
        if np.isfinite([values[1], *values[2]]).all():
            found[int(slot), int(band)] = values
    return found


def levels_of(path):
    """Levels of a recording, slots x bands, dB."""
    x, rate = soundfile.read(path)
    edges = [edge for edge in EDGES if edge <= rate / 2 * 1.001]
    spectrum, hertz = np.fft.rfft(x), np.fft.rfftfreq(len(x), 1 / rate)
    slots = -(-len(x) * 10 // rate)
    at = np.minimum(np.round(np.arange(slots + 1) * rate / 10).astype(int), len(x))
    squares = np.zeros((slots, len(edges) - 1))
    for band, (low, high) in enumerate(zip(edges, edges[1:])):
        y = np.fft.irfft(np.where((hertz >= low) & (hertz < high), spectrum, 0), len(x))
        squares[:, band] = np.diff(np.concatenate([[0], np.cumsum(y**2)])[at]) / np.diff(at)
    return 10 * np.log10(squares + 1e-30)


def about(row):
    return dict(kind=row["kind"], snr=row["snr_db"], fold=int(row.get("fold") or 0), kilobits=float(row.get("kilobits") or 0))


def judged(expected, places, truth):
    """Which cells are evaluated, by their expected levels, and the speech levels of all cells."""
    voice = np.maximum([truth[place] for place in places], np.percentile(truth, 95) - LOWEST)
    return expected > np.percentile(expected, 95) - JUDGED, voice


def recording(row, found, truth):
    """Inputs of the evaluated cells, and their speech level relative to the expected one."""
    places = sorted(found)
    expected = np.array([found[place][1] for place in places])
    inputs = np.array([found[place][2] for place in places])
    chosen, voice = judged(expected, places, truth)
    return about(row) | dict(x=inputs[chosen], y=(voice - expected)[chosen])


def gather(denoise, folders):
    recordings = []
    for folder in folders:
        with open(folder / "list.csv") as table:
            for row in csv.DictReader(table):
                truth = levels_of((folder / "clean" / row["file"]).with_suffix(".wav"))
                cells = cells_of(denoise, str(folder / "noisy" / row["file"]))
                if not cells:
                    print(row["file"], "is left out: no levels", flush=True)
                    continue
                recordings.append(recording(row, cells, truth))
                print(row["file"], len(recordings[-1]["y"]), flush=True)
    return recordings


class Network(torch.nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.mean, self.deviation = inputs.mean(0), inputs.std(0) + 1e-6
        sizes = [inputs.shape[1], HIDDEN, HIDDEN, 3]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        # Initial outputs: no shift, distances of a few dB.
        self.scale, self.shift = torch.tensor([3.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 1.0])

    def forward(self, x):
        x = (x - self.mean) / self.deviation
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        median, below, above = (self.layers[-1](x) * self.scale + self.shift).unbind(-1)
        return median.clip(*MEDIANS), below.clip(*DISTANCES).exp(), above.clip(*DISTANCES).exp()


def count(recording):
    return COUNTS.get(recording["kind"], 1.0) * LOUD_NOISE.get(recording["snr"], 1.0)


def fit(recordings, steps=STEPS, seed=0):
    torch.manual_seed(seed)
    x = torch.tensor(np.concatenate([r["x"] for r in recordings]), dtype=torch.float32)
    y = torch.tensor(np.concatenate([r["y"] for r in recordings]), dtype=torch.float32)
    counts = torch.tensor(np.concatenate([np.full(len(r["y"]), count(r), np.float32) for r in recordings]))
    network = Network(x)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, steps)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        chosen = torch.randint(0, len(y), (BATCH,), generator=generator)
        median, below, above = network(x[chosen])
        fixed, loss = median.detach(), 0.0
        for quantile, level in ((median, 0.5), (fixed - below, 0.05), (fixed + above, 0.95)):
            miss = y[chosen] - quantile
            loss = loss + (counts[chosen] * torch.maximum(level * miss, (level - 1) * miss)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.shift += torch.tensor([0.0, 1.0, 1.0]) * math.log(WIDTH)
    return network


def intervals(recordings):
    """Median and distances to the quantiles of each recording, by a network trained on the other folds, without codecs."""
    networks = {}
    for r in recordings:
        if r["fold"] not in networks:
            networks[r["fold"]] = fit([other for other in recordings if other["fold"] != r["fold"] and not other["kilobits"]])
        with torch.no_grad():
            yield [q.numpy() for q in networks[r["fold"]](torch.tensor(r["x"], dtype=torch.float32))]


def outside(recording, found, spread=SPREAD):
    """Numbers of levels below the interval, above it, and in total."""
    median, below, above = found
    if recording["kilobits"]:
        coding = spread[0] * recording["kilobits"] ** -spread[1]
        below, above = np.hypot(below, coding), np.hypot(above, coding)
    y = recording["y"]
    return np.array([np.sum(y < median - below), np.sum(y > median + above), len(y)], float)


def groups(r):
    kilobits = f"{r['kind']} {r['kilobits']:g} kbit/s"
    return (r["kind"], kilobits, "codecs") if r["kilobits"] else (r["kind"], f"{r['snr'] or 'no'} dB", "all but codecs")


def report(recordings, counts):
    """Prints coverage and fraction below the interval, by kind, SNR and codec; and pinball loss and width, if given."""
    rows = {}
    for r, of in zip(recordings, counts):
        for group in groups(r):
            rows.setdefault(group, []).append(of)
    for group, those in sorted(rows.items()):
        lower, upper, number, *others = np.array(those).T
        held = number - lower - upper
        share = held.sum() / number.sum()
        error = np.sqrt(len(those) * np.sum((held - share * number) ** 2) / max(len(those) - 1, 1)) / number.sum()
        line = f"{group} ({len(those)}): {100 * share:.1f} +- {100 * error:.1f} % held, {100 * lower.sum() / number.sum():.1f} % below"
        print(line, *(f", pinball loss {others[0].mean():.2f}, {np.median(others[1]):.1f} dB wide" if others else ""), sep="", flush=True)


def written(denoise, path, options):
    """Level and both ends of the interval, as written by the program, by slot and band."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "levels.csv")
        subprocess.run([denoise, path, f"{folder}/out.wav", "--levels", table, "-q", "--threads", "1", *options], check=True)
        with open(table) as lines:
            rows = list(csv.DictReader(lines))
    found = {}
    for row in rows:
        # Values are missing where no speech is expected.
        values = [float(row[name] or "nan") for name in ("level_dbfs", "lower_dbfs", "upper_dbfs")]
        if np.isfinite(values).all():
            band = int(np.abs(np.array(EDGES) - float(row["low_hz"])).argmin())
            found[round(10 * float(row["start_seconds"])), band] = values
    return found


def held(denoise, folder, options):
    recordings, counts = [], []
    with open(folder / "list.csv") as table:
        for row in csv.DictReader(table):
            truth = levels_of((folder / "clean" / row["file"]).with_suffix(".wav"))
            found = written(denoise, folder / "noisy" / row["file"], options)
            places = sorted(found)
            if not places:
                print(row["file"], "is left out: no levels", flush=True)
                continue
            values = np.array([found[place] for place in places])
            chosen, voice = judged(values[:, 0], places, truth)
            voice, (level, lower, upper) = voice[chosen], values[chosen].T
            misses = ((of, voice - quantile) for quantile, of in ((level, 0.5), (lower, 0.05), (upper, 0.95)))
            loss = sum(np.maximum(of * miss, (of - 1) * miss).mean() for of, miss in misses)
            recordings.append(about(row))
            counts.append([np.sum(voice < lower), np.sum(voice > upper), len(voice), loss, np.median(upper - lower)])
    report(recordings, counts)


def judge(recordings):
    """Prints the coverage of intervals, and the best-fitting error of codecs."""
    found = list(intervals(recordings))
    report(recordings, [outside(r, quantiles) for r, quantiles in zip(recordings, found)])

    def miss(spread):
        sums = {}
        for r, quantiles in zip(recordings, found):
            if r["kilobits"]:
                key = r["kind"], r["kilobits"]
                sums[key] = sums.get(key, 0) + outside(r, quantiles, spread)
        return sum((1 - (lower + upper) / number - 0.9) ** 2 for lower, upper, number in sums.values())

    if any(r["kilobits"] for r in recordings):
        best = min(((factor, power / 20) for factor in range(6, 60, 2) for power in range(8, 28)), key=miss)
        print(f"codecs: {best[0]:g} dB * kilobits ** -{best[1]:g} fits best")


def export(network, recordings, out, reference):
    with torch.no_grad():
        first, second, third = ([layer.weight.double(), layer.bias.double()] for layer in network.layers)
        first[1] -= first[0] @ (network.mean / network.deviation).double()
        first[0] /= network.deviation.double()
        third = [network.scale.double()[:, None] * third[0], network.scale.double() * third[1] + network.shift.double()]
        chosen = [r["x"][len(r["x"]) // 2] for r in recordings[:: len(recordings) // 5]][:5]
        outputs = [[float(q) for q in network(torch.tensor(x, dtype=torch.float32))] for x in chosen]

    # Rows of weights by output, each followed by its bias.
    tensors = [
        (name, "F32", torch.cat([weight, bias[:, None]], 1).float().numpy().ravel())
        for name, (weight, bias) in (("first", first), ("second", second), ("third", third))
    ]
    header = dict(inputs=first[0].shape[1], hidden=HIDDEN)
    write(out, "alphamf-levels", header, tensors, version="1")
    if reference:
        names = [f"input_{k}" for k in range(header["inputs"])] + ["median", "below", "above"]
        rows = [",".join(f"{v:.6}" for v in [*map(float, x), *q]) for x, q in zip(chosen, outputs)]
        Path(reference).write_text("\n".join([",".join(names), *rows]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_cells = commands.add_parser("cells")
    of_cells.add_argument("denoise")
    of_cells.add_argument("cells")
    of_cells.add_argument("mixtures", type=existing_folder, nargs="+")
    of_learn = commands.add_parser("learn")
    of_learn.add_argument("cells")
    of_learn.add_argument("out")
    of_learn.add_argument("--reference")
    of_held = commands.add_parser("held")
    of_held.add_argument("denoise")
    of_held.add_argument("mixtures", type=existing_folder)
    of_held.add_argument("options", nargs=argparse.REMAINDER)
    a = parser.parse_args()
    if a.command == "held":
        held(a.denoise, a.mixtures, a.options)
    elif a.command == "cells":
        torch.save(gather(a.denoise, a.mixtures), a.cells)
    else:
        recordings = loaded(a.cells)
        plain = [r for r in recordings if not r["kilobits"]]
        folds = len({r["fold"] for r in plain})
        if len(plain) < 5 or folds < 2:
            raise SystemExit(f"{a.cells}: {len(plain)} mixtures without a codec in {folds} folds, expected 5 in 2 at least")
        judge(recordings)
        export(fit(plain), plain, a.out, a.reference)


if __name__ == "__main__":
    run(main)
