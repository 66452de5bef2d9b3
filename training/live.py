"""Frames and features of the causal network: windows with a short fall, and statistics of past frames."""

import numpy as np
import torch

from network import BANDS, BINS, HALF_BANDS, HOP, RATE, WINDOW, levels_of

FRAME_HOP = 128  # samples between frames
# The same as in src/presence/causal.rs.
MEAN_SECONDS, QUIET_SECONDS, QUIET, LEAST = 0.7, 8.0, 0.1, 1e-9
LOWEST, CELL, CELLS = -32.0, 0.4, 96
TOGETHER = 16  # examples whose quiet levels are computed at once


def windows(hop):
    """Analysis window (of mean square 1 / WINDOW), and synthesis window of its last two hops, as in low_delay.rs."""
    rise = WINDOW - hop
    quarter = lambda n, length: np.pi / 2 * (np.arange(n) + 0.5) / length
    analysis = np.concatenate([np.sin(quarter(rise, rise)), np.cos(quarter(hop, hop))])
    synthesis = np.sin(quarter(2 * hop, hop)) ** 2 / analysis[-2 * hop :]
    scale = np.sqrt((analysis**2).sum())
    return torch.tensor(analysis / scale, dtype=torch.float32), torch.tensor(synthesis * scale, dtype=torch.float32)


def frames(x, window, hop=HOP):
    """Spectra (..., frames, bins) of all complete windows of x."""
    return torch.fft.rfft(x.unfold(-1, WINDOW, hop) * window)


def continuous(waves, window, hop):
    """One signal (..., samples) of the inverse transforms (..., frames, WINDOW) of frames HOP apart. Of every frame the 2 HOP samples
    before the fall of the analysis window (its last `hop` samples) are used, and cross-faded with those of the next frame."""
    taken = slice(WINDOW - hop - 2 * HOP, WINDOW - hop)
    part = waves[..., taken] / window[taken]
    part = part * torch.sin(np.pi / 2 * (torch.arange(2 * HOP, device=part.device) + 0.5) / HOP) ** 2
    return (part[..., 1:, :HOP] + part[..., :-1, HOP:]).flatten(-2)


def quiet_levels(level, hop):
    """The QUIET quantile of the past levels of every band, by a histogram with exponential forgetting; logarithms (n x frames x BANDS)."""
    # Growing weights are equivalent to forgetting.
    age = torch.arange(level.shape[1], device=level.device, dtype=torch.float64) * hop / RATE
    weight = torch.exp(age / QUIET_SECONDS)
    goal = (QUIET * weight.cumsum(0)).float()[:, None]
    cell = ((level - LOWEST) / CELL).clamp(0, CELLS - 1).long()[:, None]
    # Cumulative weight of lower cells; sums over the last axis would be slower.
    n, frames_, bands = level.shape
    below = torch.zeros(n, CELLS + 1, frames_, bands, device=level.device)
    below.scatter_(1, cell + 1, weight.float()[:, None].expand_as(cell))
    below = below.cumsum(2).cumsum(1)
    k = (below < goal).sum(1, keepdim=True, dtype=torch.int32).long() - 1
    low, high = below.gather(1, k), below.gather(1, k + 1)
    return (LOWEST + CELL * (k + (goal - low) / (high - low)))[:, 0]


def features(power, half, hop=HOP):
    """power: n x frames x bins; half (n): which are at 8 kHz -> n x FEATURES x frames x BANDS, like `network.features`, with the
    statistics of the past of every frame."""
    p, there = levels_of(power, half)
    age = torch.arange(p.shape[1], device=p.device, dtype=torch.float64) * hop / RATE
    weight = torch.exp(age / MEAN_SECONDS)
    of_frame = (p.sum(2) / there.sum((1, 2))[:, None]).double()
    mean = ((weight * of_frame).cumsum(1) / weight.cumsum(0) + 1e-30).float()[..., None]
    level = torch.log(p + LEAST * mean)
    quiet = torch.cat([quiet_levels(some, hop) for some in level.split(TOGETHER)])
    whole = torch.log(mean)
    seen = torch.stack([(level - whole) / 4, (level - quiet) / 4 - 0.5, (quiet - whole) / 4 + 1], 1)
    return seen * there[:, None]


def in_turns(net, seen):
    """The log odds (n x frames x BANDS) of features (n x FEATURES x frames x BANDS) of frames FRAME_HOP apart. As in the program,
    the network processes frames HOP apart, so the frames form HOP / FRAME_HOP interleaved sequences."""
    turns = HOP // FRAME_HOP
    odds = seen.new_empty(len(seen), *seen.shape[2:])
    for turn in range(turns):
        odds[:, turn::turns] = net(seen[:, :, turn::turns])
    return odds


def features_of(power, bands, hop=HOP):
    """`features` of one recording in numpy: frames x bins -> FEATURES x frames x BANDS."""
    full = np.zeros((1, len(power), BINS), np.float32)
    full[0, :, : power.shape[1]] = power
    return features(torch.from_numpy(full), torch.tensor([bands == HALF_BANDS]), hop)[0].numpy()
