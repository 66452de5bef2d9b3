#!/usr/bin/env python3
"""Stereo recordings of several kinds: stereo.py make MIXTURES OUT, stereo.py score OUT RESULT...

    pip install numpy scipy soundfile soxr

MIXTURES is a folder as of training/make_development.py. `make` writes OUT/noisy/*.wav: 14 s at 16 kHz of voices with noise 8 dB below.
RESULT has what a denoiser makes of them under the same names; `score` prints SI-SDR (dB), the mean over channels with a voice, by kind:

    both     two people with a microphone each talk at once, each 15 dB softer in the microphone of the other
    turns    they talk in turn
    one      a voice left, another noise right
    centre   a voice in both channels, 6 dB softer right: ordinary stereo
"""

import numpy as np
import soundfile
from scipy.signal import fftconvolve

from signals import active_power, make_and_score, mixtures, new_folders, read_exactly, root_mean_square, run, si_sdr

RATE, LENGTH, TURN = 16000, 14 * 16000, 4 * 16000
CROSSTALK, PAN, NOISE = (10 ** (db / 20) for db in (-15, -6, -8))
FILES = 12
KINDS = ("both", "turns", "one", "centre")


def elsewhere(noise, rng):
    """A noise at another microphone of the room."""
    time = np.arange(int(0.15 * RATE)) / RATE
    room = rng.normal(size=len(time)) * np.exp(-46 * time)
    return fftconvolve(noise, room / np.sqrt((room**2).sum()))[: len(noise)]


def make(folder, out):
    names, clean, noises = mixtures(folder, FILES, RATE)
    new_folders(out, "clean", "noisy")
    in_turn = np.arange(LENGTH) % (2 * TURN) < TURN

    def voice(i):
        i %= len(names)
        return np.resize(clean[i], LENGTH) / np.sqrt(active_power(clean[i], RATE, folder / "clean" / names[i]))

    def noise(i):
        i %= len(names)
        whole = np.resize(noises[i], LENGTH)
        return NOISE * whole / root_mean_square(whole, folder / "noisy" / names[i])

    for i in range(len(names)):
        # Some mixtures have the same voice.
        different = next((k for k in range(i + 5, i + 5 + len(names)) if not np.allclose(voice(k), voice(i), atol=1e-3)), None)
        if different is None:
            raise SystemExit(f"{folder}: one voice, expected others")
        one, other, silence = voice(i), voice(different), np.zeros(LENGTH)
        near = noise(i + 1)
        far = elsewhere(near, np.random.default_rng(i))
        microphones = lambda a, b: [a + CROSSTALK * b, b + CROSSTALK * a]
        parts = {
            "both": (microphones(one, other), [near, far]),
            "turns": (microphones(one * in_turn, other * ~in_turn), [near, far]),
            "one": ([one, silence], [near, noise(i + 3)]),
            "centre": ([one, PAN * one], [near, far]),
        }
        for kind, (voices, noises_of) in parts.items():
            voices, noises_of = np.transpose(voices), np.transpose(noises_of)
            scale = 0.05 / np.sqrt(((voices + noises_of) ** 2).mean())
            for name, signal in (("clean", voices), ("noisy", voices + noises_of)):
                soundfile.write(out / name / f"{kind}__{i:02}.wav", scale * signal, RATE, "FLOAT")


def ratio(clean, found):
    """Mean SI-SDR (dB) over the channels with a voice."""
    clean, found = (read_exactly(path, RATE, LENGTH, 2).T for path in (clean, found))
    return np.mean([si_sdr(voice, of) for voice, of in zip(clean, found) if voice.any()])


def main():
    make_and_score(__doc__, KINDS, make, ratio)


if __name__ == "__main__":
    run(main)
