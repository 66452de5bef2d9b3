#!/usr/bin/env python3
"""Clipped recordings: clipping.py make MIXTURES OUT, clipping.py score OUT RESULT...

    pip install numpy scipy soundfile soxr

MIXTURES is a folder as of training/make_development.py. `make` halves the noise of 35 of its mixtures and clips them at full scale:
OUT/noisy/KIND__NN.wav, 16 bits, and the voices on their own, OUT/clean/KIND__NN.wav. Kinds are the percentages of the samples above -34 dB
of the peak that are clipped. `score` prints by kind SI-SDR (dB) of the input, and of each RESULT, a folder with what a denoiser makes of
OUT/noisy under the same names.
"""

import numpy as np
import soundfile

from signals import make_and_score, mixtures, new_folders, read_exactly, run, si_sdr

RATE, FILES = 16000, 35
NOISE_GAIN = 0.5
AUDIBLE = 0.02  # of the peak
KINDS = {"1 %": 0.01, "3 %": 0.03, "10 %": 0.1}


def make(folder, out):
    names, clean, noises = mixtures(folder, FILES, RATE)
    new_folders(out, "clean", "noisy")
    for i, (voice, noise) in enumerate(zip(clean, noises)):
        noisy = voice + NOISE_GAIN * noise
        moduli = np.abs(noisy)
        for kind, share in KINDS.items():
            level = np.quantile(moduli[moduli > AUDIBLE * moduli.max()], 1 - share)
            soundfile.write(out / f"noisy/{kind}__{i:02}.wav", np.clip(noisy / level, -1, 1), RATE, "PCM_16")
            soundfile.write(out / f"clean/{kind}__{i:02}.wav", voice / level, RATE, "FLOAT")


def ratio(clean, found):
    voice = read_exactly(clean, RATE)[:, 0]
    return si_sdr(voice, read_exactly(found, RATE, len(voice))[:, 0])


def main():
    make_and_score(__doc__, KINDS, make, ratio)


if __name__ == "__main__":
    run(main)
