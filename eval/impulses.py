#!/usr/bin/env python3
"""Clicks and heavy-tailed noise: mean SDR before and after denoising, with and without the speech-presence network.

    pip install numpy scipy soundfile soxr fast_bss_eval
    python eval/impulses.py denoise NOIZEUS OUT

NOIZEUS is the corpus as eval/README.md has it: sp21 to sp30, in babble at 5 dB, alone and with ten bursts of noise of 1 to 5 ms a second,
whose peaks are three times that of the speech; and in white symmetric alpha-stable noise, scaled so that it would lie 5 dB below the speech
at alpha = 2.
"""

import argparse
import subprocess
from pathlib import Path

import numpy as np
import soundfile

from score import sdr
from signals import existing_folder, read_channels, run

ALPHAS = (1.2, 1.5, 1.8)


def bursts(speech, rate, random):
    """Ten bursts a second."""
    x = np.zeros_like(speech)
    for start in random.integers(0, len(x), 10 * len(x) // rate):
        burst = random.standard_normal(random.integers(rate // 1000, rate // 200 + 1))[: len(x) - start]
        x[start : start + len(burst)] = 3 * np.abs(speech).max() * burst / np.abs(burst).max()
    return x


def stable(alpha, samples, random):
    """Symmetric alpha-stable draws of unit scale (Chambers, Mallows and Stuck 1976)."""
    angle, w = random.uniform(-np.pi / 2, np.pi / 2, samples), random.exponential(size=samples)
    return np.sin(alpha * angle) / np.cos(angle) ** (1 / alpha) * (np.cos((1 - alpha) * angle) / w) ** ((1 - alpha) / alpha)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("denoise", type=Path)
    parser.add_argument("noizeus", type=existing_folder)
    parser.add_argument("out", type=Path)
    a = parser.parse_args()
    truth = {}
    for number in range(21, 31):
        random = np.random.default_rng(number)
        speech, rate = read_channels(a.noizeus / f"clean/sp{number}.wav")
        speech = speech[:, 0]
        babble = read_channels(a.noizeus / f"noisy/babble_5dB/sp{number}_babble_sn5.wav")[0][:, 0]
        scale = np.sqrt((speech**2).mean() / 10**0.5 / 2)
        noisy = {"babble": babble, "babble and clicks": babble + bursts(speech, rate, random)}
        noisy |= {f"alpha-stable, alpha = {alpha}": speech + scale * stable(alpha, len(speech), random) for alpha in ALPHAS}
        truth[f"sp{number}.wav"] = speech
        for kind, x in noisy.items():
            (a.out / kind).mkdir(parents=True, exist_ok=True)
            soundfile.write(a.out / kind / f"sp{number}.wav", x, rate, "FLOAT")

    def mean(folder):
        return np.mean([sdr(speech, soundfile.read(folder / name)[0]) for name, speech in truth.items()])

    print("| noise | before | after | without the network |\n|---|---|---|---|")
    for kind in noisy:
        means = [mean(a.out / kind)]
        for options in ([], ["--no-neural"]):
            result = a.out / "".join(["result", *options]) / kind
            subprocess.run([a.denoise, "-q", "--force", a.out / kind, "-o", result, *options], check=True)
            means.append(mean(result))
        print(f"| {kind} | " + " | ".join(f"{x:.2f}" for x in means) + " |", flush=True)


if __name__ == "__main__":
    run(main)
