"""What the listener sees and is judged by live: frames of long windows that end soon, and statistics of the past alone."""

import numpy as np
import torch

from network import BANDS, FEATURES, HOP, RATE, WINDOW, edges

HEARD_HOP = 128  # samples from one frame that is listened to to the next
# The same as in src/listener/live.rs.
MEAN_SECONDS, QUIET_SECONDS, QUIET, LEAST = 3.0, 8.0, 0.1, 1e-9
LOWEST, CELL, CELLS = -32.0, 0.4, 96


def windows(hop):
    """Analysis window (of mean square 1 / WINDOW), and that of the last two hops for synthesis, as in low_delay.rs."""
    rise = WINDOW - hop
    quarter = lambda n, length: np.pi / 2 * (np.arange(n) + 0.5) / length
    analysis = np.concatenate([np.sin(quarter(rise, rise)), np.cos(quarter(hop, hop))])
    synthesis = np.sin(quarter(2 * hop, hop)) ** 2 / analysis[-2 * hop :]
    scale = np.sqrt((analysis**2).sum())
    return torch.tensor(analysis / scale, dtype=torch.float32), torch.tensor(synthesis * scale, dtype=torch.float32)


def frames(x, window, hop=HOP):
    """Spectra (..., frames, bins) of all whole windows of x."""
    return torch.fft.rfft(x.unfold(-1, WINDOW, hop) * window)


def features(power, bands, hop=HOP):
    """power: frames x bins -> FEATURES x frames x BANDS, as `network.features`, with what was known at every frame."""
    e = edges()[: bands + 1]
    p = np.add.reduceat(power[:, : e[-1]], e[:-1], axis=1) / np.diff(e)
    age = np.arange(len(p)) * hop / RATE
    weight = np.exp(age / MEAN_SECONDS)
    mean = np.cumsum(weight * p.mean(1)) / np.cumsum(weight) + 1e-30
    level = np.log(p + LEAST * mean[:, None])
    # What is forgotten counts less against what comes: weights that grow do the same.
    weight = np.exp(age / QUIET_SECONDS)
    goal = QUIET * np.cumsum(weight)
    cell = np.clip((level - LOWEST) / CELL, 0, CELLS - 1).astype(int)
    below = np.zeros((bands, CELLS + 1), np.float32)  # weight of the levels in lower cells
    mask = (np.arange(CELLS + 1)[None, :] > np.arange(CELLS)[:, None]).astype(np.float32)
    band, quiet = np.arange(bands), np.empty_like(level)
    for t in range(len(p)):
        below += mask[cell[t]] * np.float32(weight[t])
        k = (below < goal[t]).sum(1) - 1
        low, high = below[band, k], below[band, k + 1]
        quiet[t] = LOWEST + CELL * (k + (goal[t] - low) / (high - low))
    whole = np.log(mean)[:, None]
    f = np.zeros((FEATURES, len(p), BANDS), np.float32)
    f[0, :, :bands] = (level - whole) / 4
    f[1, :, :bands] = (level - quiet) / 4 - 0.5
    f[2, :, :bands] = (quiet - whole) / 4 + 1
    return f
