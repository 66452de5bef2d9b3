"""The speech-presence networks and their features. Shapes are (examples, channels, frames, places)."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

RATE, WINDOW, HOP, BINS = 16000, 1024, 256, 513
SINGLE, BANDS, GROUP = 76, 160, 5  # bands of one bin, number of bands, bands per place
PLACES, FEATURES, PAIR = BANDS // GROUP, 3, 2  # frames per place


def edges():
    """First bin of every band, and the number of bins: bands of one bin up to 1.2 kHz, then 84 bands on a logarithmic scale."""
    wide = np.round(SINGLE * (BINS / SINGLE) ** (np.arange(BANDS - SINGLE + 1) / (BANDS - SINGLE))).astype(int)
    return np.concatenate([np.arange(SINGLE), wide])


HALF = BINS // 2 + 1  # bins of recordings at 8 kHz
HALF_BANDS = int(np.searchsorted(edges(), HALF, side="right") - 1)


def averages():
    """Weights (bins x bands) of the mean over the bins of a band."""
    e = edges()
    w = np.zeros((BINS, BANDS), np.float32)
    for band in range(BANDS):
        w[e[band] : e[band + 1], band] = 1 / (e[band + 1] - e[band])
    return w


AVERAGES = averages()


def interpolation():
    """Weights (bands x bins) of the linear interpolation from the centres of bands to bins."""
    e = edges()
    centre = (e[:-1] + e[1:] - 1) / 2
    w = np.zeros((BANDS, BINS), np.float32)
    for b in range(BINS):
        k = int(np.clip(np.searchsorted(centre, b, side="right") - 1, 0, BANDS - 2))
        t = np.clip((b - centre[k]) / (centre[k + 1] - centre[k]), 0, 1)
        w[k, b] += 1 - t
        w[k + 1, b] += t
    return w


def levels(power, e):
    """Mean powers of bands with the edges `e` (frames x bins -> frames x bands)."""
    return np.add.reduceat(power[:, : e[-1]], e[:-1], axis=1) / np.diff(e)


def relative(p, whole):
    """Features (FEATURES x frames x bands) of mean powers (frames x bands), in the log domain: relative to `whole`; relative to the quiet
    level of the band (its 10 % quantile over time); and this quiet level relative to `whole`."""
    level = np.log(p + np.exp(whole) * 1e-9)
    quiet = np.sort(level, axis=0)[len(level) // 10]
    quiets = np.broadcast_to(quiet, level.shape)
    return np.stack([(level - whole) / 4, (level - quiet) / 4 - 0.5, (quiets - whole) / 4 + 1]).astype(np.float32)


def levels_of(power, half):
    """Mean powers of bands (n x frames x BANDS), and which bands are present (n x 1 x BANDS), from powers (n x frames x bins); recordings
    in `half` (n) are sampled at 8 kHz."""
    device = power.device
    averages = torch.from_numpy(AVERAGES).to(device)
    there = torch.arange(BANDS, device=device) < torch.where(half, HALF_BANDS, BANDS)[:, None, None]
    return power.float() @ averages * there, there


def features(power, half):
    """Features (n x FEATURES x frames x BANDS, float32) of whole recordings, from powers (n x frames x bins); half (n): which are sampled at
    8 kHz. In the log domain: power of a band relative to the mean of the recording; relative to the quiet level of the band (its 10 %
    quantile over time); and this quiet level relative to the mean. Zero for absent bands."""
    p, there = levels_of(power, half)
    mean = p.sum((1, 2)) / (there.sum((1, 2)) * p.shape[1]) + 1e-30
    whole = torch.log(mean)[:, None, None]
    level = torch.log(p + mean[:, None, None] * 1e-9)
    quiet = level.kthvalue(level.shape[1] // 10 + 1, 1, keepdim=True).values
    seen = torch.stack([(level - whole) / 4, (level - quiet) / 4 - 0.5, ((quiet - whole) / 4 + 1).expand_as(level)], 1)
    return seen * there[:, None]


def features_of(power, bands):
    """`features` of one recording in numpy: frames x bins -> FEATURES x frames x BANDS; `bands`: BANDS or HALF_BANDS."""
    full = np.zeros((1, len(power), BINS), np.float32)
    full[0, :, : power.shape[1]] = power
    return features(torch.from_numpy(full), torch.tensor([bands == HALF_BANDS]))[0].numpy()


def on_places(x, pair):
    """Features (n, FEATURES, frames, BANDS) -> (n, FEATURES * pair * GROUP, frames / pair, PLACES)."""
    n, _, t, _ = x.shape
    x = x.reshape(n, FEATURES, t // pair, pair, PLACES, GROUP).permute(0, 1, 3, 5, 2, 4)
    return x.reshape(n, FEATURES * pair * GROUP, t // pair, PLACES).contiguous(memory_format=torch.channels_last)


def on_bands(x, pair):
    """(n, pair * GROUP, frames / pair, PLACES) -> (n, frames, BANDS)."""
    n, _, t, _ = x.shape
    return x.reshape(n, pair, GROUP, t, PLACES).permute(0, 3, 1, 4, 2).reshape(n, t * pair, BANDS)


class Near(nn.Conv2d):
    """Convolution over neighbouring places and over frames, of both sides or, if causal, of the past."""

    def __init__(self, inputs, outputs, dilation, causal):
        taps = 2 if causal else 3
        super().__init__(inputs, outputs, (taps, 3), padding=(dilation, 1), dilation=(dilation, 1))

    def forward(self, x):
        # Two taps with padding on both sides give `dilation` frames too many, at the end.
        return super().forward(x)[:, :, : x.shape[2]]


def ends_of(recurrence):
    """Suffixes of the names of the weights, by direction."""
    return ("l0", "l0_reverse") if recurrence.bidirectional else ("l0",)


class Turn(nn.Module):
    """A residual layer of gated recurrent units over places or over frames (n, frames, places, channels), bidirectional or forward."""

    def __init__(self, channels, units, over_frames, both):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.recurrence = nn.GRU(channels, units, batch_first=True, bidirectional=both)
        self.join = nn.Linear(2 * units if both else units, channels)
        self.over_frames = over_frames

    def forward(self, x):
        if x.is_cuda:
            # Triton may be missing on other devices.
            import recurrence

            return x + self.join(recurrence.run(self.norm, self.recurrence, x, self.over_frames))
        y = self.norm(x)
        y = y.transpose(1, 2) if self.over_frames else y
        y = self.join(self.recurrence(y.flatten(0, 1))[0]).reshape(y.shape)
        return x + (y.transpose(1, 2) if self.over_frames else y)


class PresenceNet(nn.Module):
    """Convolutions around recurrence over places and over frames alternately (dual-path; Luo, Chen and Yoshioka 2020). The network for whole
    recordings processes pairs of frames, the causal one single frames."""

    def __init__(self, channels=64, over_places=40, over_frames=64, near=(1,), turns=3, after=(1,), causal=False):
        super().__init__()
        self.pair = 1 if causal else PAIR
        convolution = lambda inputs, d=1: Near(inputs, channels, d, causal)
        self.place = nn.Parameter(torch.zeros(1, channels, 1, PLACES))
        self.first = convolution(FEATURES * self.pair * GROUP)
        self.near = nn.ModuleList([convolution(channels, d) for d in near])
        units = ((over_places, False, True), (over_frames, True, not causal)) * turns
        self.turns = nn.ModuleList([Turn(channels, *of_turn) for of_turn in units])
        self.after = nn.ModuleList([convolution(channels, d) for d in after])
        self.last = nn.Conv2d(channels, self.pair * GROUP, 1)

    def forward(self, x):
        """Features (n, FEATURES, frames, BANDS), an even number of frames -> log odds of speech (n, frames, BANDS)."""
        x = F.leaky_relu(self.first(on_places(x, self.pair)) + self.place, 0.1)
        for layer in self.near:
            x = x + F.leaky_relu(layer(x), 0.1)
        # On an accelerator, bf16 reduces the time of a step by a third; on processors it does not help.
        half = x.is_cuda and torch.is_autocast_enabled("cuda")
        with torch.autocast(x.device.type, torch.bfloat16, enabled=half):
            x = x.float().permute(0, 2, 3, 1)
            for turn in self.turns:
                x = turn(x)
            x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
        for layer in self.after:
            x = x + F.leaky_relu(layer(x), 0.1)
        return on_bands(self.last(x), self.pair)


class CausalPresenceNet(PresenceNet):
    """The causal network of the live denoiser."""

    def __init__(self, channels=48, over_places=32, over_frames=64, near=(), turns=4, after=()):
        super().__init__(channels, over_places, over_frames, near, turns, after, causal=True)
