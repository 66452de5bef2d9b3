"""Recordings in the memory of the training device, and tracks that are cut from them. Shapes are (tracks, samples)."""

import glob
import json
import os

import numpy as np
import torch

# Factors on the probability of a noise kind or of a group of voices. Those of speechocean762 are many, and recorded at home.
PREFERENCE = dict(event=1.3, impulsive=1.3, vehicle=1.6, babble=2.5, wind=3.0, tonal=0.9, so762=0.3)
MADE = 0.2  # the factor of the voices that voices.py synthesises, `made-KIND-VOICE`
ENOUGH = 15  # seconds; shorter ones are drawn less often, as their clips would be repeated
SCALE = 32000  # integer value of full scale
TAPS = 16  # of the resampling filter
KAISER = 6.0  # shape parameter of its window


def index_of(folder):
    with open(os.path.join(folder, "index.json")) as f:
        return json.load(f)


class Recordings:
    """All recordings of one kind (speech, noise, room), as decoded by prepare.py, concatenated in one tensor on `device`."""

    def __init__(self, folder, kind, device):
        rows = sorted(index_of(folder)[kind])
        if not rows:
            raise SystemExit(f"{folder}: no recordings of the kind {kind}")
        parts = [np.load(path, mmap_mode="r") for path in sorted(glob.glob(os.path.join(folder, kind + "-*.npy")))]
        first = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        self.data = torch.empty(int(first[-1]), dtype=torch.from_numpy(parts[0][:1].copy()).dtype, device=device)
        for at, part in zip(first, parts):
            self.data[at : at + len(part)] = torch.from_numpy(np.array(part))
        self.labels = sorted({row[0] for row in rows})
        number = {label: i for i, label in enumerate(self.labels)}
        self.at = np.array([first[part] + at for _, part, at, _ in rows])
        self.length = np.array([n for _, _, _, n in rows])
        owner = np.array([number[row[0]] for row in rows])
        self.first = np.searchsorted(owner, np.arange(len(self.labels)))
        self.count = np.bincount(owner, minlength=len(self.labels))
        # The probability of a voice or a kind of noise is proportional to the square root of its duration.
        samples = np.bincount(owner, self.length, minlength=len(self.labels))
        share = np.sqrt(samples) * [preference(label) for label in self.labels]
        share *= np.minimum(1, samples / (ENOUGH * index_of(folder)["rate"]))
        self.cumulative = np.cumsum(share) / share.sum()

    def draw(self, rng, *shape):
        """Random indices of labels."""
        return np.minimum(np.searchsorted(self.cumulative, rng.random(shape)), len(self.labels) - 1)

    def clips(self, rng, labels, longest):
        """A clip for each label, cut to at most `longest` samples: first sample and number of samples. Labels are equal along the last axis;
        along it, a clip is repeated only after all other clips of its label."""
        count, pieces = self.count[labels], np.arange(labels.shape[-1])
        # A step that is coprime to the number of clips visits all of them, starting at a random one.
        start = (rng.random(labels.shape[:-1] + (1,)) * count).astype(int)
        step = 1 + (rng.random(labels.shape[:-1] + (1,)) * np.maximum(count - 1, 1)).astype(int)
        step += (np.gcd(step, count) > 1) * (1 - step)
        clip = self.first[labels] + (start + pieces * step) % count
        at, length = self.at[clip], self.length[clip]
        cut = np.minimum(length, longest)
        return at + (rng.random(labels.shape) * (length - cut + 1)).astype(int), cut


class Plan:
    """The clips of tracks: first sample in the recordings, length, start in the track, gain (tracks, pieces); and speed (`ratio`, tracks)."""

    def __init__(self, at, length, start, gain, ratio):
        self.at, self.length, self.start, self.gain, self.ratio = at, length, start, gain, ratio

    @staticmethod
    def of(at, length, gaps, gain, ratio):
        """Clips in sequence, with `gaps` (samples) before each."""
        lasts = length / ratio[:, None] + gaps
        start = np.concatenate([np.zeros((len(at), 1)), np.cumsum(lasts, 1)[:, :-1]], 1) + gaps
        # At speed 1, integer starts avoid resampling.
        return Plan(at, length, np.round(start), gain, ratio)


def preference(label):
    """Factor on the probability of a label."""
    parts = label.split("-", 2)
    made = parts[0] == "made"
    return PREFERENCE.get(parts[-1].split("-")[0] if made else parts[0], 1.0) * (MADE if made else 1)


def sinc(away, cutoff):
    """The resampling filter at distances `away` (samples): a sinc, with the cut-off relative to the Nyquist frequency, in a Kaiser window."""
    window = torch.special.i0(KAISER * (1 - (2 * away / TAPS).square()).clamp(min=0).sqrt()) / float(np.i0(KAISER))
    return cutoff * torch.sinc(cutoff * away) * window


def render(recordings, plan, samples, fade, offset=0):
    """The tracks of a plan from the sample `offset` on. At speeds other than 1 they are resampled by `sinc`, with a cut-off that avoids
    aliasing."""
    data = recordings.data
    device = data.device
    tensor = lambda values, dtype: torch.as_tensor(np.ascontiguousarray(values), dtype=dtype, device=device)
    start = tensor(plan.start, torch.float32)
    time = torch.arange(samples, device=device, dtype=torch.float32) + offset
    piece = torch.searchsorted(start, time.expand(len(start), -1).contiguous(), right=True) - 1
    none = piece < 0
    piece = piece.clamp(min=0)
    within = (time - start.gather(1, piece)) * tensor(plan.ratio, torch.float32)[:, None]
    length = tensor(plan.length, torch.int64).gather(1, piece)
    at = tensor(plan.at, torch.int64).gather(1, piece)
    whole = within.floor()
    part = within - whole
    whole = whole.long()
    inside = (whole < length) & ~none
    take = lambda k: data[at + (whole + k).clamp(min=0).minimum(length - 1)].to(torch.float32)
    if bool((part == 0).all()):
        value = take(0)
    else:
        cutoff = (1 / tensor(plan.ratio, torch.float32)).clamp(max=1)[:, None]
        value = sum(take(k) * sinc(k - part, cutoff) for k in range(1 - TAPS // 2, 1 + TAPS // 2))
    edge = torch.minimum(within, length - within).clamp(0, fade) / fade
    gain = tensor(plan.gain, torch.float32).gather(1, piece)
    return torch.where(inside, value * edge * gain / SCALE, torch.zeros((), device=device))
