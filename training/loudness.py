"""Differentiable wide-band PESQ (ITU-T P.862.2) without time alignment."""

from functools import lru_cache

import numpy as np
import torch

from network import RATE

WINDOW, HOP = 512, 256  # of the spectra
# Number of bins of the 49 bands, each a third to two thirds of a Bark wide.
WIDTHS = [1] * 8 + [2] + [1] * 5 + [2, 1, 1] + [2] * 8 + [3] * 4 + [4, 3, 4, 5, 4, 5, 6, 6, 7, 8, 9, 9, 12, 12, 15, 16, 18, 21, 25, 20]
POWER_CALIBRATION, LOUDNESS_CALIBRATION = 6.910853e-4, 1.866055e-1
ALIGNED_POWER, ALIGNED_HERTZ = 1e7, (325, 3250)
FRAMES, STEP = 20, 10  # length and distance of the sections over which disturbances are aggregated


class Ear:
    """Constants of the auditory model, on a device."""

    def __init__(self, device):
        edges = np.concatenate([[1], 1 + np.cumsum(WIDTHS)])
        edges[-1] = min(edges[-1], WINDOW // 2 + 1)
        hertz = np.arange(WINDOW // 2 + 1) * RATE / WINDOW
        bands = np.zeros((len(WIDTHS), len(hertz)))
        for band, (first, end) in enumerate(zip(edges, edges[1:])):
            bands[band, first:end] = max(0.6, 1 / (end - first))
        bark = 0.157 + np.linspace(0.16, 0.43, len(WIDTHS))
        at, khz = np.cumsum(bark), np.maximum(0.5 * (edges[:-1] + edges[1:] - 1) * RATE / WINDOW, 20) / 1000
        # Terhardt's threshold of hearing in quiet.
        threshold = 3.64 * khz**-0.8 - 6.5 * np.exp(-0.6 * (khz - 3.3) ** 2) + 1e-3 * khz**4
        # The input filter of wide-band PESQ.
        z = np.exp(-2j * np.pi * hertz / RATE)
        response = np.abs((2.740826 - 5.4816519 * z + 2.740826 * z**2) / (1 - 1.9444777 * z + 0.94597794 * z**2)) ** 2
        tensor = lambda values: torch.as_tensor(values, dtype=torch.float32, device=device)
        self.bands, self.bark, self.threshold = tensor(bands * POWER_CALIBRATION * response), tensor(bark), tensor(10 ** (threshold / 10))
        exponent = 0.23 * np.where(at < 4, np.minimum(6 / (at + 2), 2) ** 0.15, 1.0)
        self.exponent = tensor(exponent)
        self.aligned = tensor((hertz >= ALIGNED_HERTZ[0]) & (hertz <= ALIGNED_HERTZ[1]))

    def powers(self, spectrum):
        """Band powers (examples x frames x bands) of spectra (examples x bins x frames) after level alignment."""
        power = spectrum.abs().square()
        # Parseval: the mean square of a Hann window is 3/8.
        level = 2 * (self.aligned @ power).mean(1) / (WINDOW**2 * 3 / 8)
        return (power / (level[:, None, None] + 1e-12) * ALIGNED_POWER).transpose(1, 2) @ self.bands.T

    def audible(self, powers, factor):
        """Total power of the bands above `factor` times their threshold (examples x frames)."""
        return (powers * (powers > factor * self.threshold)).sum(2)

    def loudness(self, powers):
        """Zwicker loudness per band."""
        quiet = self.threshold
        sones = (quiet / 0.5) ** self.exponent * ((0.5 + 0.5 * powers / quiet) ** self.exponent - 1)
        return LOUDNESS_CALIBRATION * sones * (powers > quiet)

    def over_bands(self, values, p):
        """The p-norm over bands, weighted by their width (examples x frames)."""
        total = self.bark.sum()
        return ((values.abs() * self.bark + 1e-12) ** p).sum(2).clamp(min=1e-20) ** (1 / p) * total ** (1 - 1 / p)


@lru_cache
def ear_on(device):
    return Ear(device)


def over_time(values):
    """Aggregates disturbances of frames: 6-norm within sections, root mean square over sections."""
    return (values.unfold(1, FRAMES, STEP) ** 6).mean(2).clamp(min=1e-12).pow(1 / 6).square().mean(1).sqrt()


def disturbances(estimate, reference):
    """Symmetric and asymmetric disturbance of each example, from spectra (examples x bins x frames) of 32 ms Hann windows, 16 ms apart."""
    ear = ear_on(estimate.device)
    found, true = ear.powers(estimate), ear.powers(reference)
    with torch.no_grad():
        spoken = (ear.audible(true, 100) >= 1e7)[..., None]
        mean = lambda p: (p * (p > 100 * ear.threshold) * spoken).sum(1) / spoken.sum(1).clamp(min=1)
        ratio = ((mean(found) + 1000) / (mean(true) + 1000)).clamp(0.01, 100)
        true = true * ratio[:, None]
        frame = (ear.audible(true, 1) + 5e3) / (ear.audible(found, 1) + 5e3)
        frame[:, 1:] = 0.8 * frame[:, 1:] + 0.2 * frame[:, :-1]
    found = found * frame.clamp(3e-4, 5)[..., None]
    loudness, expected = ear.loudness(found), ear.loudness(true)
    difference = loudness - expected
    # Small differences are inaudible.
    difference = torch.relu(difference.abs() - 0.25 * torch.minimum(loudness, expected))
    added = ((found + 50) / (true + 50)) ** 1.2
    added = (added * (added >= 3)).clamp(max=12)
    loud = ((ear.audible(true, 1) + 1e5) / 1e7) ** 0.04
    return [over_time((ear.over_bands(d, p) / loud).clamp(max=45)) for d, p in ((difference, 2), (difference * added, 1))]


def quality(estimate, reference):
    """PESQ of every example before its output mapping, about 1 to 4.5; see `disturbances`."""
    symmetric, asymmetric = disturbances(estimate, reference)
    return 4.5 - 0.1 * symmetric - 0.0309 * asymmetric


def opinion(raw):
    """MOS-LQO: the output mapping of `quality`."""
    return 0.999 + 4 / (1 + torch.exp(-1.3669 * raw + 3.8224))
