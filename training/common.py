"""Helpers of several scripts: reading, levels of speech, logistic regression."""

import numpy as np
import soundfile
import soxr
from scipy.optimize import minimize

RATE = 16_000  # Hz, of `is_speech`
SPEECH_DB, SMOOTHED_SECONDS = -40, 0.05


def read_mono(path, rate, quality="HQ"):
    """The mean of all channels (float64) at a sample rate."""
    samples, own = soundfile.read(path, dtype="float64", always_2d=True)
    samples = samples.mean(1)
    return soxr.resample(samples, own, rate, quality=quality) if own != rate else samples


def active_power(x, rate):
    """Mean power of the 20 ms frames within 30 dB of the loudest, of one signal."""
    m = rate // 50
    p = (x[: len(x) // m * m].reshape(-1, m) ** 2).mean(1)
    return p[p > 1e-3 * p.max()].mean()


def is_speech(voice, at):
    """Whether the level of a voice at 16 kHz, smoothed over 50 ms around each of these samples, is above -40 dB of its maximum."""
    reach = int(SMOOTHED_SECONDS * RATE) // 2
    total = np.concatenate([[0], np.cumsum(np.square(voice, dtype=np.float64))])
    level = total[np.clip(at + reach, 0, len(voice))] - total[np.clip(at - reach, 0, len(voice))]
    return level > level.max() * 10 ** (SPEECH_DB / 10)


def logistic_regression(x, y, weights):
    """Bias and weights, by maximum likelihood; `weights` of the examples."""

    def loss(parameters):
        z = x @ parameters[1:] + parameters[0]
        slope = weights * (1 / (1 + np.exp(-z)) - y)
        return (weights * (np.logaddexp(0, z) - y * z)).sum(), np.concatenate([[slope.sum()], slope @ x])

    return minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
