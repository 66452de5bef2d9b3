#!/usr/bin/env python3
"""A softer voice in turn with a louder one: turns.py make MIXTURES OUT [--noise DB]; turns.py score OUT RESULT...

    pip install numpy scipy soundfile soxr

MIXTURES is a folder as of training/make_development.py. `make` writes OUT/noisy/*.wav: 12 s at 16 kHz of two voices that take turns of
3 s, the second one 0, 6, 12 or 18 dB softer, in a noise 20 dB (--noise) below the louder one. RESULT has what a denoiser makes of them
under the same names; `score` prints the SNR (dB) in the turns of each voice, and the level of the softer one (dB) relative to what it was.
"""

import argparse
from pathlib import Path

import numpy as np
import soundfile

from signals import active_power, existing_folder, finite, mixtures, new_folders, read_exactly, recordings, root_mean_square, run

RATE, TURN, TURNS = 16000, 3 * 16000, 4
SOFTER_DB = (0, 6, 12, 18)
PAIRS = 12
APART = 3  # voices of a pair in the list of mixtures


def turns(voice, second, path):
    """Two turns of a voice, the first or the second ones."""
    if len(voice) < 2 * TURN:
        raise SystemExit(f"{path}: expected {2 * TURN // RATE} s or more")
    track = np.zeros(TURNS * TURN)
    for k in range(2):
        track[(2 * k + second) * TURN :][:TURN] = voice[k * TURN : (k + 1) * TURN]
    return track / np.sqrt(active_power(voice, RATE, path))


def make(folder, out, below):
    names, clean, noises = mixtures(folder, PAIRS, RATE)
    if len(names) <= APART:
        raise SystemExit(f"{folder}: {len(names)} mixtures, expected {APART + 1} or more")
    turns_of = lambda i, second: turns(clean[i], second, folder / "clean" / names[i])
    new_folders(out, "louder", "softer", "noisy")
    for i in range(len(names)):
        of = (i + 1) % len(names)
        noise = np.resize(noises[of], TURNS * TURN)
        noise *= 10 ** (-below / 20) / root_mean_square(noise, folder / "noisy" / names[of])
        loud = turns_of(i, 0)
        for softer in SOFTER_DB:
            soft = 10 ** (-softer / 20) * turns_of((i + APART) % len(names), 1)
            scale = 0.05 / np.sqrt(((loud + soft + noise) ** 2).mean())
            for name, signal in (("louder", loud), ("softer", soft), ("noisy", loud + soft + noise)):
                soundfile.write(out / name / f"{softer:02}dB__{i:02}.wav", scale * signal, RATE, "FLOAT")


def score(out, results):
    second = (np.arange(TURNS * TURN) // TURN) % 2 == 1
    for result in [out / "noisy", *results]:
        for softer in SOFTER_DB:
            rows = []
            for name in recordings(out, f"{softer:02}dB__*.wav"):
                read = lambda folder: read_exactly(folder / name, RATE, TURNS * TURN)[:, 0]
                loud, soft, estimate = read(out / "louder"), read(out / "softer"), read(result)
                ratio = lambda x, part: 10 * np.log10((x[part] ** 2).sum() / ((x - estimate)[part] ** 2).sum())
                kept = 20 * np.log10(abs(estimate[second] @ soft[second]) / (soft[second] @ soft[second]))
                rows.append([ratio(loud, ~second), ratio(soft, second), kept])
            loud, soft, kept = np.mean(rows, 0)
            print(f"{result}: {softer} dB softer: louder {loud:.1f} dB, softer {soft:.1f} dB, its level {kept:.1f} dB, at least {np.min(rows, 0)[2]:.1f} dB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("mixtures", type=existing_folder)
    making.add_argument("out", type=Path)
    making.add_argument("--noise", type=finite, default=20, metavar="DB", help="noise this far below the louder voice (20)")
    scoring = commands.add_parser("score")
    scoring.add_argument("out", type=existing_folder)
    scoring.add_argument("results", type=existing_folder, nargs="+")
    a = parser.parse_args()
    if a.command == "make":
        make(a.mixtures, a.out, a.noise)
    else:
        score(a.out, a.results)


if __name__ == "__main__":
    run(main)
