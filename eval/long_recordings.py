#!/usr/bin/env python3
"""Sentences in long recordings, and each on its own: long_recordings.py make MIXTURES OUT, long_recordings.py score OUT LONG ALONE

    pip install numpy scipy soundfile soxr

MIXTURES is a folder as of training/make_development.py. `make` joins its voices to three recordings of each kind of noise, OUT/long/*.wav,
and writes every sentence of these on its own, OUT/alone/*.wav. LONG and ALONE have what a denoiser makes of both under the same names;
`score` prints by kind the mean SI-SDR (dB) of the sentences in noise, in long recordings and alone, and the difference with its standard
error over sentences:

    constant    one noise, 5 dB below the voice
    few         another noise every four sentences
    every       another noise in every sentence
    drift       one noise whose level swings by 10 dB either way, and from its lows below 1 kHz to its highs, in a minute
    jumps       one noise whose level jumps by 20 dB every 9 s
"""

import argparse
from pathlib import Path

import numpy as np
import soundfile

from signals import active_power, band, existing_folder, mean_and_error, mixtures, new_folders, read_channels, read_exactly, root_mean_square, run, si_sdr, whole

FILES, RECORDINGS = 69, 3
NOISE_DB = -5
COLOUR_HZ = 1000
KINDS = {"constant": FILES, "few": 4, "every": 1, "drift": FILES, "jumps": FILES}  # sentences in one noise


def changed(kind, noise, rate):
    """A noise that changes its level by its kind, relative to 5 dB below the voice."""
    seconds = np.arange(len(noise)) / rate
    if kind == "drift":
        swing = np.sin(2 * np.pi * seconds / 60)
        low, high = band(noise, rate, 0, COLOUR_HZ), band(noise, rate, COLOUR_HZ)
        return 10 ** (swing / 2) * ((1 - swing) * low + (1 + swing) * high)
    return noise * 10 ** ((seconds // 9 % 2 - 0.5) * (kind == "jumps"))


def make(folder, out, rate):
    names, voices, noises = mixtures(folder, FILES, rate)
    if len(names) < RECORDINGS:
        raise SystemExit(f"{folder}: {len(names)} mixtures, expected {RECORDINGS} or more")
    voices = [voice / np.sqrt(active_power(voice, rate, name)) for voice, name in zip(voices, names)]
    noises = [10 ** (NOISE_DB / 20) * noise / root_mean_square(noise, name) for noise, name in zip(noises, names)]
    new_folders(out, "clean", "long", "alone")
    for number in range(RECORDINGS):
        chosen = list(range(number, len(names), RECORDINGS))
        clean = [voices[i] for i in chosen]
        for kind, sentences in KINDS.items():
            joined = [noises[chosen[k - k % sentences]] for k in range(len(chosen))]
            noisy = np.concatenate(clean) + changed(kind, np.concatenate(joined), rate)
            scale = 0.5 / np.abs(noisy).max()
            soundfile.write(out / "long" / f"{kind}__{number}.wav", scale * noisy, rate, "FLOAT")
            at = 0
            for k, voice in enumerate(clean):
                for side, signal in (("clean", voice), ("alone", noisy[at : at + len(voice)])):
                    soundfile.write(out / side / f"{kind}__{number}-{k:02}.wav", scale * signal, rate, "FLOAT")
                at += len(voice)


def score(out, in_long, alone):
    for kind in KINDS:
        rows = []
        for number in range(RECORDINGS):
            paths = sorted((out / "clean").glob(f"{kind}__{number}-*.wav"))
            if not paths:
                raise SystemExit(f"{out}: no recordings of `make`")
            rate = read_channels(paths[0])[1]
            voices = [read_exactly(path, rate)[:, 0] for path in paths]
            ends = np.cumsum([len(voice) for voice in voices])
            joined = np.split(read_exactly(in_long / f"{kind}__{number}.wav", rate, ends[-1])[:, 0], ends[:-1])
            for path, voice, found in zip(paths, voices, joined):
                noisy, own = (read_exactly(folder / path.name, rate, len(voice))[:, 0] for folder in (out / "alone", alone))
                rows.append([si_sdr(voice, x) for x in (noisy, found, own)])
        noisy, joined, single = np.array(rows).T
        difference = mean_and_error(joined - single, "+.2f")
        print(f"{kind}: noisy {noisy.mean():.2f}, long {joined.mean():.2f}, alone {single.mean():.2f} dB, {difference}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("mixtures", type=existing_folder)
    making.add_argument("out", type=Path)
    making.add_argument("--rate", type=whole, default=16000, help="that of the mixtures, Hz")
    scoring = commands.add_parser("score")
    for name in ("out", "long", "alone"):
        scoring.add_argument(name, type=existing_folder)
    a = parser.parse_args()
    if a.command == "make":
        make(a.mixtures, a.out, a.rate)
    else:
        score(a.out, a.long, a.alone)


if __name__ == "__main__":
    run(main)
