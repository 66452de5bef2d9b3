#!/usr/bin/env python3
"""Voices with hum: hum.py make MIXTURES OUT, hum.py score OUT RESULT...

    pip install numpy scipy soundfile soxr

MIXTURES is a folder as of training/make_development.py. `make` writes OUT/noisy/*.wav: 14 s at 16 kHz of a voice in white noise 25 dB below,
with harmonics up to 2 kHz of a tone that drifts as the mains do, by some millihertz a second. RESULT has what a denoiser makes of them under
the same names; `score` prints SI-SDR (dB) by kind:

    mains    50 Hz, 8 dB below the voice; amplitudes fall as 1/k
    buzz     50 Hz, as strong as the voice; amplitudes fall as the root of 1/k
    lamps    100 Hz, 8 dB below the voice; amplitudes fall as 1/k
    soft     60 Hz, 20 dB below the voice; amplitudes fall as 1/k
    none     the voice in white noise alone
    passing  as mains, from 2.5 to 6.5 s
"""

import numpy as np
import soundfile

from signals import active_power, make_and_score, mixtures, new_folders, read_exactly, run, si_sdr

RATE, SECONDS = 16000, 14
LENGTH = SECONDS * RATE
FILES = 12
HIGHEST = 2000
NOISE_DB = 25
# Lowest frequency (Hz), level relative to the voice (dB), exponent of the fall.
KINDS = {"mains": (50, -8, 1), "buzz": (50, 0, 0.5), "lamps": (100, -8, 1), "soft": (60, -20, 1), "none": (50, -np.inf, 1), "passing": (50, -8, 1)}
PASSING = slice(int(2.5 * RATE), int(6.5 * RATE))


def hum(frequency, fall, rng):
    """Harmonics of unit power."""
    drift = np.interp(np.arange(LENGTH) / RATE, np.arange(SECONDS + 1), np.cumsum(rng.normal(0, 0.005, SECONDS + 1)))
    phase = 2 * np.pi * np.cumsum(frequency + drift) / RATE
    x = sum(np.sin(k * phase + rng.uniform(0, 2 * np.pi)) / k**fall for k in range(1, HIGHEST // frequency + 1))
    return x / np.sqrt((x**2).mean())


def make(folder, out):
    names, clean, _ = mixtures(folder, FILES, RATE)
    new_folders(out, "clean", "noisy")
    for i, (name, voice) in enumerate(zip(names, clean)):
        voice = np.resize(voice, LENGTH) / np.sqrt(active_power(voice, RATE, folder / "clean" / name))
        rng = np.random.default_rng(i)
        noise = 10 ** (-NOISE_DB / 20) * rng.normal(size=LENGTH)
        for kind, (frequency, level, fall) in KINDS.items():
            tones = 10 ** (level / 20) * hum(frequency, fall, rng)
            noisy = voice + noise
            present = PASSING if kind == "passing" else slice(None)
            noisy[present] += tones[present]
            scale = 0.05 / np.sqrt((noisy**2).mean())
            for part, signal in (("clean", voice), ("noisy", noisy)):
                soundfile.write(out / part / f"{kind}__{i:02}.wav", scale * signal, RATE, "FLOAT")


def ratio(clean, found):
    return si_sdr(*(read_exactly(path, RATE, LENGTH)[:, 0] for path in (clean, found)))


def main():
    make_and_score(__doc__, KINDS, make, ratio)


if __name__ == "__main__":
    run(main)
