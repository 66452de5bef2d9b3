#!/usr/bin/env python3
"""Makes development mixtures by kind of noise. Their voices, noises and rooms must not be used for training.

    make_development.py OUT --data DATA [--rate 16000|8000|48000] [--each 10] [--seed 1] [--seconds 6]

Voices are those of DATA/dev/speech16 and of the list DATA/dev/voices16.txt, or of DATA/dev/speech48 for rates above 16 kHz; noises are those
of DATA/dev/noise, rooms those of DATA/dev/rir. Kinds: event, impulsive, babble, wind, steady, vehicle, tonal; `voice`, a competing talker;
`room`, speech and noise in one room, where the reference is reverberant. The SNR, 0, 5, 10, 15 dB in turn (competing talkers at least 5),
is measured above 75 Hz during speech. Writes OUT/clean/KIND__NN.wav, OUT/noisy/KIND__NN.wav (the same names) and OUT/list.csv. The same
arguments give the same samples.
"""

import argparse
import csv
import os
import zlib

import numpy as np
import soundfile as sf
from scipy.signal import fftconvolve

from common import band, kept_clips, new_folders, part, read_mono, spoken_power
from options import existing_folder, positive, run, whole
from prepare import sound_files

KINDS = ("event", "impulsive", "babble", "wind", "steady", "vehicle", "tonal")
ROOM_KINDS = ("babble", "steady", "event", "vehicle")


def speaker(path):
    """The speaker in the name of a clip."""
    name = os.path.basename(path)
    return name.split("__")[0] if "__" in name else name.split("-")[0].split("_")[0]


def noises_by_kind(folder, rate, seed):
    """Noises of each kind in random order; for rates above 16 kHz, those with a sample rate above 32 kHz."""
    files = [f for f in sound_files(folder) if rate <= 16000 or sf.info(f).samplerate > 32000]
    kind_of = lambda path: os.path.basename(path).split("__")[0].split("-")[0]
    by_kind = {}
    for kind in KINDS:
        those = [f for f in files if kind_of(f) == kind]
        order = np.random.default_rng([seed, zlib.crc32(kind.encode())]).permutation(len(those))
        by_kind[kind] = [those[i] for i in order]
    return by_kind


def mixture(kind, number, voices, noises, rooms, rate, seconds, seed):
    """Clean speech, mixture and row of the list."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), number])
    n, voice, snr = int(seconds * rate), voices[rng.integers(len(voices))], (0, 5, 10, 15)[number % 4]
    x = read_mono(voice, rate)
    own = [f for f in voices if speaker(f) == speaker(voice)]
    while len(x) < n:
        x = np.concatenate([x, np.zeros(rate // 3), read_mono(own[rng.integers(len(own))], rate)])
    x = x[:n]
    if kind == "voice":
        source, snr = rng.choice([f for f in voices if f not in own]), max(snr, 5)
    elif kind == "room":
        source = rng.choice([f for noise in ROOM_KINDS for f in noises[noise]])
    else:
        source = noises[kind][number % len(noises[kind])]
    z = part(read_mono(source, rate), n, rng)
    if kind == "room":
        room = read_mono(rooms[rng.integers(len(rooms))], rate)
        direct = int(np.abs(room).argmax())
        room /= np.sqrt((room[direct:] ** 2).sum())
        x, z = fftconvolve(x, room)[direct : direct + n], fftconvolve(z, room)[:n]
    z *= np.sqrt(spoken_power(x, rate, voice) / max((band(z, rate, 75) ** 2).mean(), 1e-20) / 10 ** (snr / 10))
    y = x + z
    scale = 0.5 / max(np.abs(y).max(), np.abs(x).max())
    return x * scale, y * scale, (kind, f"{kind}__{number:02d}.wav", os.path.basename(voice), os.path.basename(source), snr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--data", type=existing_folder, required=True)
    parser.add_argument("--rate", type=whole, default=16000, help="Hz")
    parser.add_argument("--each", type=whole, default=10, help="mixtures per kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=positive, default=6.0)
    a = parser.parse_args()
    new_folders(a.out, "clean", "noisy")
    dev = os.path.join(a.data, "dev")
    voices = sound_files(os.path.join(dev, "speech48" if a.rate > 16000 else "speech16"))
    if a.rate <= 16000:
        voices += [os.path.join(a.data, f) for f in kept_clips(a.data)]
    noises = noises_by_kind(os.path.join(dev, "noise"), a.rate, a.seed)
    rooms = sound_files(os.path.join(dev, "rir"))
    if not (voices and rooms and any(noises.values())):
        raise SystemExit(f"{dev}: no voices, noises or rooms")
    found = {**noises, "voice": len(set(map(speaker, voices))) > 1, "room": any(noises[kind] for kind in ROOM_KINDS)}
    kinds = [kind for kind in (*KINDS, "voice", "room") if found[kind]]
    rows = []
    for kind in kinds:
        for number in range(a.each):
            x, y, row = mixture(kind, number, voices, noises, rooms, a.rate, a.seconds, a.seed)
            for side, values in (("clean", x), ("noisy", y)):
                sf.write(os.path.join(a.out, side, row[1]), values, a.rate, "PCM_24")
            rows.append(row)
    with open(os.path.join(a.out, "list.csv"), "w", newline="") as f:
        csv.writer(f).writerows([("kind", "file", "voice", "noise", "snr_db"), *rows])
    print(len(rows), "mixtures")


if __name__ == "__main__":
    run(main)
