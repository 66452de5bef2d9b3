#!/usr/bin/env python3
"""Makes development mixtures of expressive voices, by kind of voice. They must not be used for training.

    make_expressive.py OUT --data DATA [--each 12] [--seed 1] [--seconds 5]

Voices are those of DATA/dev_expressive (manifest.csv has their emotions), and whispered, raised and shouted versions (voices.py) of
DATA/dev/speech16. Noises are those of DATA/dev/noise, with kinds in turn. The SNR, 0, 5, 10, 15 dB in turn, is measured above 75 Hz during
speech. Writes OUT/clean/KIND__NN.wav, OUT/noisy/KIND__NN.wav (the same names) and OUT/list.csv. The
same arguments give the same samples.
"""

import argparse
import csv
import os
import zlib

import numpy as np
import soundfile as sf

import voices
from common import active_power, new_folders
from options import existing_folder, positive, run, whole
from prepare import highpass, read, sound_files, trim

RATE = 16000
NOISES = ("event", "impulsive", "babble", "wind", "steady", "vehicle", "tonal")
# Emotions of the manifest that count as one kind.
KINDS = dict(
    acted=("acted", "complaint", "command"),
    cartoon=("cartoon",),
    child=("child-read",),
    lively=("lively-read", "call-out"),
    outcry=("cheer", "cry", "emotion", "laugh", "pain", "scream", "shout", "taunt", "yawn"),
)


def power_above_75_hz(x, name):
    """Mean power during speech. Not `common.spoken_power`, whose high-pass filter has no slope and would change the mixtures."""
    return active_power(highpass(x, 75, RATE), RATE, name)


def sources(data):
    """By kind: (function that makes a version, or `None`; files)."""
    folder = os.path.join(data, "dev_expressive")
    with open(os.path.join(folder, "manifest.csv")) as f:
        emotions = {row["file"]: row["emotion"] for row in csv.DictReader(f)}
    by_kind = {}
    for kind, those in KINDS.items():
        by_kind[kind] = (None, [os.path.join(folder, name) for name, emotion in sorted(emotions.items()) if emotion in those])
    plain = sound_files(os.path.join(data, "dev", "speech16"))
    high = lambda rng: (np.exp(rng.uniform(np.log(1.5), np.log(2.5))), rng.uniform(1.1, 1.3))
    by_kind["whispered"] = (lambda x, rng: voices.whispered(x, rng), plain)
    by_kind["raised"] = (lambda x, rng: voices.raised(x, *high(rng), decibels=rng.uniform(0, 4)), plain)
    by_kind["shouted"] = (
        lambda x, rng: voices.shouted(x, *high(rng), rng.uniform(3, 9), rng.choice([0.0, 0.5]), rng),
        plain,
    )
    return by_kind


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("out")
    a.add_argument("--data", type=existing_folder, required=True)
    a.add_argument("--each", type=whole, default=12, help="mixtures per kind")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--seconds", type=positive, default=5.0)
    a = a.parse_args()
    new_folders(a.out, "clean", "noisy")
    noises = {kind: [f for f in sound_files(os.path.join(a.data, "dev", "noise")) if os.path.basename(f).startswith(kind)] for kind in NOISES}
    by_kind = sources(a.data)
    missing = [kind for kind, (_, files) in by_kind.items() if not files] + [kind for kind, files in noises.items() if not files]
    if missing:
        raise SystemExit(f"{a.data}: no recordings of the kinds {', '.join(missing)}")
    n, rows = int(a.seconds * RATE), []
    for kind, (make, files) in by_kind.items():
        order = np.random.default_rng([a.seed, zlib.crc32(kind.encode())]).permutation(len(files))
        for i in range(a.each):
            rng = np.random.default_rng([a.seed, zlib.crc32(kind.encode()), i])
            voice, snr, noise = files[order[i % len(files)]], (0, 5, 10, 15)[i % 4], NOISES[i % len(NOISES)]
            x = trim(read(voice, RATE), RATE)[:n]
            if make is not None:
                x = make(x.astype(np.float32), rng)
            # Noise alone precedes and follows a short cry.
            before = int(min(n - len(x), rng.uniform(0.2, 1) * RATE))
            x = np.pad(x, (before, n - len(x) - before)).astype(np.float64)
            source = noises[noise][rng.integers(len(noises[noise]))]
            z = read(source, RATE)
            z = np.tile(z, -(-n // len(z)) + 1)
            at = int(rng.integers(0, len(z) - n + 1))
            z = z[at : at + n]
            z = z * np.sqrt(power_above_75_hz(x, voice) / max((highpass(z, 75, RATE) ** 2).mean(), 1e-20) / 10 ** (snr / 10))
            y, name = x + z, f"{kind}__{i:02d}.wav"
            scale = 0.5 / max(np.abs(y).max(), np.abs(x).max())
            for side, values in (("clean", x), ("noisy", y)):
                sf.write(os.path.join(a.out, side, name), values * scale, RATE, "PCM_24")
            rows.append((kind, name, os.path.basename(voice), os.path.basename(source), snr))
    with open(os.path.join(a.out, "list.csv"), "w", newline="") as f:
        csv.writer(f).writerows([("kind", "file", "voice", "noise", "snr_db"), *rows])
    print(len(rows), "mixtures")


if __name__ == "__main__":
    run(main)
