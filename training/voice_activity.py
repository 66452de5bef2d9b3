#!/usr/bin/env python3
"""Trains the speech probability of the live denoiser on log odds of the causal network: voice_activity.py PREPARED MODEL

Logistic regression. The inputs are the mean fraction of speech in the bands with the largest fractions, and the level of that speech
relative to its past maximum. Examples are frames of mixtures at two levels and of noise alone; speech, pauses and noise alone are weighted
2 : 1 : 1. A frame is speech if the level of the clean voice, smoothed over 50 ms, is above -40 dB relative to its maximum. Prints the
constants of src/denoiser/voice_activity.rs.
"""

import argparse

import numpy as np
import torch
from scipy.signal import lfilter

import live
from common import is_speech, logistic_regression
from mixing import Mixer
from network import BANDS, HALF, RATE, WINDOW, interpolation
from options import run, whole
from restore import read

SECONDS, BATCH = 8.0, 12
# Mean age of the samples in a smoothed frame, at its end.
AGE_SECONDS = 0.05
SOFTER_DB = (0, -15)
NOISE_DB = (-45, -12)
SETTLED_FRAMES = 25
# As in voice_activity.rs.
EDGES_HZ = (62.5, 200, 300, 400, 500, 650, 800, 1000, 1250, 1600, 2000, 2500, 3100, 3900, 5000, 6200, 8000)
HIGHEST, FRACTION_SECONDS, POWER_SECONDS = 4, 0.06, 0.03
INITIAL_LOUDEST, LOUDEST_SECONDS, MIN_LEVEL = -4.6, 5.0, -9.0


@torch.no_grad()
def log_odds(net, noisy, half):
    """Log odds (examples x frames x BANDS) and mean powers of frames FRAME_HOP apart."""
    hop = live.FRAME_HOP
    analysis, _ = live.windows(hop)
    power = live.frames(noisy, analysis, hop).abs() ** 2
    power[half, :, HALF:] = 0
    odds = live.in_turns(net, live.features(power, half, hop))
    bins = torch.where(half, HALF, power.shape[2])[:, None]
    return odds.numpy(), (power.sum(2) / bins).numpy()


def fractions(odds, half):
    """Mean speech fractions of bands (frames x bands); absent bands repeat the highest one."""
    on_bins = 1 / (1 + np.exp(-(odds @ interpolation())))
    edges = np.round(np.array(EDGES_HZ) * WINDOW / RATE).astype(int)
    bands = [on_bins[:, low:high].mean(1) for low, high in zip(edges, edges[1:]) if not half or high <= HALF]
    return np.stack(bands + bands[-1:] * (len(edges) - 1 - len(bands)), 1)


def smoothed(values, seconds):
    step = 1 - np.exp(-live.FRAME_HOP / RATE / seconds)
    return lfilter([step], [1, step - 1], values, axis=0)


def inputs(odds, power, half, change_db=0):
    """Fraction and relative level of speech (frames x 2), after a change of the recording level."""
    now = fractions(odds, half)
    fraction = smoothed(np.sort(now, 1)[:, -HIGHEST:].mean(1), FRACTION_SECONDS)
    level = np.log(smoothed(power * now.mean(1), POWER_SECONDS) * 10 ** (change_db / 10) + 1e-12)
    fall = live.FRAME_HOP / RATE / LOUDEST_SECONDS * np.arange(len(level))
    loudest = np.maximum(np.maximum.accumulate(level + fall), INITIAL_LOUDEST) - fall
    return np.stack([fraction, np.maximum(level - loudest, MIN_LEVEL)], 1)


def truth(voice, frames):
    """Whether each frame holds speech."""
    return is_speech(voice, WINDOW + live.FRAME_HOP * np.arange(frames) - int(AGE_SECONDS * RATE))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared")
    parser.add_argument("model", help="models/presence-live-16k.safetensors")
    parser.add_argument("--mixtures", type=whole, default=120)
    parser.add_argument("--noises", type=whole, default=48)
    parser.add_argument("--seed", type=int, default=4141)
    a = parser.parse_args()
    net, mixer = read(a.model, live=True)[0].eval(), Mixer(a.prepared, a.seed, SECONDS)
    mixtures, labels, noises = [], [], []
    while len(labels) < a.mixtures * len(SOFTER_DB):
        batch = mixer.batch(BATCH)
        # Peaks at half of full scale.
        noisy = batch.noisy * (0.5 / batch.noisy.abs().amax(1, keepdim=True).clamp(min=1e-6))
        for odds, power, half, voice in zip(*log_odds(net, noisy, batch.half), batch.half, batch.voice.numpy()):
            for change_db in SOFTER_DB:
                mixtures.append(inputs(odds, power, bool(half), change_db))
                labels.append(truth(voice, len(odds)))
    while len(noises) < a.noises:
        # A quarter is white noise.
        source = mixer.noises(BATCH) if len(noises) % (4 * BATCH) else mixer.white(BATCH, mixer.samples)
        level = mixer.tensor(10 ** (mixer.rng.uniform(*NOISE_DB, BATCH) / 20))[:, None]
        half = torch.zeros(BATCH, dtype=torch.bool)
        for odds, power in zip(*log_odds(net, source * level, half)):
            noises.append(inputs(odds, power, False)[SETTLED_FRAMES:])
    x, y = np.concatenate(mixtures + noises), np.concatenate(labels + [np.zeros(sum(map(len, noises)), bool)])
    alone = np.arange(len(y)) >= sum(map(len, mixtures))
    parts = (y, 0.5), (~y & ~alone, 0.25), (alone, 0.25)
    bias, fraction, level = logistic_regression(x, y, sum(share * part / part.sum() for part, share in parts))
    print(f"const BIAS: f32 = {bias:.3f};")
    print(f"const FRACTION_WEIGHT: f32 = {fraction:.3f};")
    print(f"const LEVEL_WEIGHT: f32 = {level:.3f};")


if __name__ == "__main__":
    run(main)
