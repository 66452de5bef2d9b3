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

from signals import active_power

RATE, TURN, TURNS = 16000, 3 * 16000, 4
SOFTER_DB = (0, 6, 12, 18)
PAIRS = 12
APART = 3  # voices of a pair in the list of mixtures


def turns(voice, second):
    """Two turns of a voice, the first or the second ones."""
    track = np.zeros(TURNS * TURN)
    for k in range(2):
        track[(2 * k + second) * TURN :][:TURN] = voice[k * TURN : (k + 1) * TURN]
    return track / np.sqrt(active_power(voice, RATE))


def make(mixtures, out, below):
    noisy = [p for p in sorted((mixtures / "noisy").glob("*.wav")) if not p.name.startswith(("voice__", "room__"))]
    chosen = noisy[:: max(1, len(noisy) // PAIRS)][:PAIRS]
    clean = [soundfile.read(mixtures / "clean" / p.name)[0] for p in chosen]
    for i in range(len(chosen)):
        other = (i + 1) % len(chosen)
        noise = np.resize(soundfile.read(chosen[other])[0] - clean[other], TURNS * TURN)
        noise *= 10 ** (-below / 20) / np.sqrt((noise**2).mean())
        loud = turns(clean[i], 0)
        for softer in SOFTER_DB:
            soft = 10 ** (-softer / 20) * turns(clean[(i + APART) % len(chosen)], 1)
            scale = 0.05 / np.sqrt(((loud + soft + noise) ** 2).mean())
            for name, signal in (("louder", loud), ("softer", soft), ("noisy", loud + soft + noise)):
                (out / name).mkdir(parents=True, exist_ok=True)
                soundfile.write(out / name / f"{softer:02}dB__{i:02}.wav", scale * signal, RATE, "FLOAT")


def score(out, results):
    second = (np.arange(TURNS * TURN) // TURN) % 2 == 1
    for result in [out / "noisy", *results]:
        for softer in SOFTER_DB:
            rows = []
            for path in sorted((out / "noisy").glob(f"{softer:02}dB__*.wav")):
                read = lambda folder: soundfile.read(folder / path.name)[0]
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
    making.add_argument("mixtures", type=Path)
    making.add_argument("out", type=Path)
    making.add_argument("--noise", type=float, default=20, metavar="DB", help="noise this far below the louder voice (20)")
    scoring = commands.add_parser("score")
    scoring.add_argument("out", type=Path)
    scoring.add_argument("results", type=Path, nargs="+")
    a = parser.parse_args()
    if a.command == "make":
        make(a.mixtures, a.out, a.noise)
    else:
        score(a.out, a.results)


if __name__ == "__main__":
    main()
