#!/usr/bin/env python3
"""Trains the weights of the speech track: speech_track.py PROGRAM DATA

    pip install numpy scipy soundfile soxr

PROGRAM is a built `denoise`. DATA holds speech_train/, librispeech251/, noise_train/ and dev/voices16.txt, whose voices are left out.
Logistic regression. The inputs, which the program logs, are the mean fraction of speech in the bands with the largest fractions, and the
level of that speech relative to its maximum. Examples are frames of mixtures with pauses, at two levels, and of noise alone; speech, pauses
and noise alone are weighted 2 : 1 : 1. A frame is speech if the level of the clean voice, smoothed over 50 ms, is above -40 dB relative to
its maximum. Prints the constants of src/denoiser/speech_track.rs.
"""

import argparse
import os
import re
import subprocess
import tempfile

import numpy as np
import soundfile

from common import RATE, cut, is_speech, kept_clips, logistic_regression, read_mono
from options import run, whole

SECONDS = 10.0
SNR_DB = (-5, 20)
PAUSE_SECONDS = (0.2, 2.0)
SOFTER_DB = (0, -15)
NOISE_DB = (-45, -12)
# As in speech_track.rs.
HOP_SECONDS = 0.016
FRACTION_REACH, POWER_REACH, LOOK_AHEAD = 2, 1, 125
LOUDEST_SECONDS, MIN_LEVEL, MIN_LOUDEST = 5.0, -9.0, 1e-7


def read(path):
    return read_mono(path, RATE, "HQ")


def voices(data):
    kept = set(map(os.path.basename, kept_clips(data)))
    folders = [os.path.join(data, name) for name in ("librispeech251", "speech_train")]
    files = [sorted(os.path.join(folder, name) for name in os.listdir(folder)) for folder in folders]
    return [[file for file in part if file.endswith((".flac", ".opus")) and os.path.basename(file) not in kept] for part in files]


def voice(files, length, rng):
    """Clips of random voices of one folder, with pauses."""
    part = files[rng.integers(len(files))]
    parts = [np.zeros(int(rng.uniform(*PAUSE_SECONDS) * RATE))]
    while sum(map(len, parts)) < length:
        clip = read(part[rng.integers(len(part))])[: int(rng.uniform(1, 6) * RATE)]
        parts += [clip * 0.05 / max(np.sqrt(np.mean(clip**2)), 1e-6), np.zeros(int(rng.uniform(*PAUSE_SECONDS) * RATE))]
    return np.concatenate(parts)[:length]


def truth(clean, frames):
    """Whether each frame is speech around its centre."""
    return is_speech(clean, (HOP_SECONDS * RATE * (np.arange(frames) - 1)).astype(int))


def logged(program, samples):
    """Fraction and power of speech per frame, as logged by the program."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.wav")
        soundfile.write(path, samples, RATE, "FLOAT")
        command = [program, path, os.path.join(folder, "out.wav"), "--speech", os.path.join(folder, "track.json")]
        found = subprocess.run([*command, "--threads", "1", "--log", "trace"], stderr=subprocess.PIPE, text=True, check=True).stderr
    rows = re.findall(r"speech_track: frame fraction=(\S+) speech=(\S+)", found)
    return np.array(rows, dtype=float).T


def smoothed(values, reach):
    window = np.concatenate([np.arange(1, reach + 2), np.arange(reach, 0, -1)]).astype(float)
    return np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")


def inputs(fraction, power, change_db=0):
    """Smoothed fraction and relative level (frames x 2), after a change of the recording level."""
    level = np.log(np.maximum(smoothed(power * 10 ** (change_db / 10), POWER_REACH), 1e-300))
    fall = HOP_SECONDS / LOUDEST_SECONDS * np.arange(len(level))
    loudest = np.maximum(np.maximum.accumulate(level + fall) - fall, np.log(MIN_LOUDEST))
    ahead = loudest[np.minimum(np.arange(len(level)) + LOOK_AHEAD - 1, len(level) - 1)]
    return np.stack([smoothed(fraction, FRACTION_REACH), np.clip(level - ahead, MIN_LEVEL, 0)], 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data")
    parser.add_argument("--mixtures", type=whole, default=80)
    parser.add_argument("--noises", type=whole, default=32)
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--save", help="write the logged values (NPZ)")
    a = parser.parse_args()
    rng, length = np.random.default_rng(a.seed), int(SECONDS * RATE)
    folder = os.path.join(a.data, "noise_train")
    noises = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith((".opus", ".flac")))
    files, mixtures, alone = voices(a.data), [], []
    for _ in range(a.mixtures):
        clean, noise = voice(files, length, rng), cut(read(noises[rng.integers(len(noises))]), length, rng)
        level = np.sqrt(np.mean(clean[np.abs(clean) > 0] ** 2) / max(np.mean(noise**2), 1e-12))
        noisy = clean + noise * level * 10 ** (-rng.uniform(*SNR_DB) / 20)
        scale = 0.5 / np.abs(noisy).max()
        frames = logged(a.program, scale * noisy)
        mixtures.append((frames, truth(clean, frames.shape[1])))
    for number in range(a.noises):
        # A quarter is white noise.
        noise = cut(read(noises[rng.integers(len(noises))]), length, rng) if number % 4 else rng.standard_normal(length)
        noise *= 10 ** (rng.uniform(*NOISE_DB) / 20) / max(np.sqrt(np.mean(noise**2)), 1e-9)
        alone.append(logged(a.program, noise))
    if a.save:
        np.savez(a.save, mixtures=np.array(mixtures, dtype=object), alone=np.array(alone, dtype=object))
    x = np.concatenate([inputs(*frames, change) for frames, _ in mixtures for change in SOFTER_DB])
    y = np.concatenate([found for _, found in mixtures for _ in SOFTER_DB])
    quiet = np.concatenate([inputs(*frames) for frames in alone])
    weights = np.where(y, 2 / y.sum(), 1 / (~y).sum())
    bias, fraction, level = logistic_regression(
        np.concatenate([x, quiet]),
        np.concatenate([y, np.zeros(len(quiet))]),
        np.concatenate([weights, np.full(len(quiet), 1 / len(quiet))]) * 1e4,
    )
    print(f"BIAS {bias:.3f} FRACTION_WEIGHT {fraction:.3f} LEVEL_WEIGHT {level:.3f}")


if __name__ == "__main__":
    run(main)
