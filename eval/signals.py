"""Helpers of several scripts, on signals of one channel."""

import numpy as np


def high_pass(x, rate, hertz):
    """Without what is below so many Hz."""
    spectrum = np.fft.rfft(x)
    spectrum[np.fft.rfftfreq(len(x), 1 / rate) < hertz] = 0
    return np.fft.irfft(spectrum, len(x))


def active_power(x, rate):
    """Mean power of the 20 ms frames within 30 dB of the loudest."""
    size = rate // 50
    power = (x[: len(x) // size * size].reshape(-1, size) ** 2).mean(1)
    return power[power > 1e-3 * power.max()].mean()
