#!/usr/bin/env python3
"""Trains the high-band network: log odds of speech above 8 kHz, from the levels there and the output of the speech-presence network below.

    upper.py mix PREPARED CHECKPOINT MIXTURES.npz [--count N] [--seed N]   PREPARED by prepare.py --full-band
    upper.py learn MIXTURES.npz CHECKPOINT [--epochs N]
    upper.py export CHECKPOINT OUT.safetensors [--reference OUT.csv]
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from export import Writer, spectrum, write
from losses import stft
from mixing import Mixer
from network import BANDS, BINS, FEATURES, HOP, PAIR, RATE, WINDOW, PresenceNet, edges, features_of, levels, relative
from options import run, whole
from train import checkpoint_of, fill, follow, weights_of

FULL = 48000  # Hz
UPPER, WIDTH = 20, 32  # bands above 8 kHz, bins of each: up to 18 kHz
EDGES = BINS + WIDTH * np.arange(UPPER + 1)
GROUPS = 20  # groups of bands below 8 kHz
INPUTS = 2 * GROUPS + FEATURES * UPPER
CHANNELS, DILATIONS = 64, (1, 2, 4, 8)
SECONDS = 5.0
# Bandwidths of voices with less than 18 kHz, Hz; the loss excludes bands above.
ENDS = {"chenwang": 15500}


class Layer(nn.Module):
    """Convolution over three pairs of frames, normalisation and leaky ReLU; residual where input and output have the same width."""

    def __init__(self, inputs, dilation):
        super().__init__()
        self.convolution = nn.Conv1d(inputs, CHANNELS, 3, padding=dilation, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm1d(CHANNELS, momentum=0.02)
        self.residual = inputs == CHANNELS

    def forward(self, x):
        y = F.leaky_relu(self.norm(self.convolution(x)), 0.1)
        return x + y if self.residual else y


class Upper(nn.Module):
    """The high-band network: convolutions over pairs of frames; bands are channels."""

    def __init__(self):
        super().__init__()
        self.first = Layer(INPUTS * PAIR, 1)
        self.local = nn.Sequential(*[Layer(CHANNELS, d) for d in DILATIONS])
        self.last = nn.Conv1d(CHANNELS, UPPER * PAIR, 1)

    def forward(self, x):
        """(n, frames, INPUTS), an even number of frames -> log odds (n, frames, UPPER)."""
        n, t, _ = x.shape
        x = x.reshape(n, t // PAIR, -1).transpose(1, 2)
        return self.last(self.local(self.first(x))).transpose(1, 2).reshape(n, t, UPPER)


def seen(power, odds):
    """Inputs (frames x INPUTS) from powers (frames x bins) and log odds of the speech-presence network (frames x BANDS): log odds and relative
    levels of groups of bands below 8 kHz, and the features of `network.relative` above. Zero for absent bands."""
    low = levels(power, edges())
    whole = np.log(low.mean() + 1e-30)
    groups = lambda x: x.reshape(len(x), GROUPS, -1).mean(2)
    present = int(np.searchsorted(EDGES, power.shape[1], side="right") - 1)
    above = np.zeros((len(power), FEATURES, UPPER), np.float32)
    if present > 0:
        above[:, :, :present] = relative(levels(power, EDGES[: present + 1]), whole).transpose(1, 0, 2)
    parts = [groups(odds) / 4, groups(relative(low, whole)[0]), above.reshape(len(power), -1)]
    return np.concatenate(parts, 1).astype(np.float32)


class FullMixer(Mixer):
    def full(self):
        """Mixture, speech, bandwidth of the recording, and frequency above which the loss excludes bands, Hz."""
        rng = self.rng
        y, x, who, _ = self.scene(1)
        label = self.speech.labels[who[0]]
        # Synthetic versions are named made-HOW-VOICE.
        end = ENDS.get(label.split("-", 2)[2] if label.startswith("made-") else label, FULL / 2)
        top, u = FULL / 2, rng.random()
        below = lambda v, hertz: self.through(v, (self.hertz < hertz).float())
        if u < 0.12:
            # Band-limited speech in full-band noise.
            narrow = below(x, rng.uniform(6000, 9500))
            x, y, end = narrow, y - x + narrow, FULL / 2
        elif u < 0.35:
            top = rng.uniform(9000, 18000)
            x, y = below(x, top), below(y, top)
        return y[0], x[0], top, end


def mix(a):
    """Writes, for every mixture, inputs (f16), and the powers of mixture and speech and their cross-power per high band (f32)."""
    torch.set_num_threads(1)
    presence = PresenceNet()
    fill(presence, weights_of(a.presence), a.presence)
    presence.eval()
    mixer = FullMixer(a.prepared, [a.seed, 48], SECONDS)
    scale = FULL // RATE
    inputs, targets = [], []
    for _ in range(a.count):
        y, x, top, end = mixer.full()
        Y, X = (stft(v, WINDOW * scale, HOP * scale).T.numpy() for v in (y, x))
        frames = len(Y) // PAIR * PAIR
        Y, X = Y[:frames] / WINDOW, X[:frames] / WINDOW
        bins = min(int(top / (RATE / WINDOW)) + 1, EDGES[-1])
        power = np.abs(Y) ** 2
        with torch.no_grad():
            odds = presence(torch.from_numpy(features_of(power[:, :BINS], BANDS))[None])[0].numpy()
        inputs.append(seen(power[:, :bins], odds).astype(np.float16))
        of_bands = [levels(v, EDGES) for v in (power, np.abs(X) ** 2, (Y * X.conj()).real)]
        # Bands with zero power are excluded from the loss.
        last = np.searchsorted(EDGES, min(bins, end / (RATE / WINDOW)), side="right") - 1
        of_bands = np.stack(of_bands, 1) * (np.arange(UPPER) < last)
        targets.append(of_bands.astype(np.float32))
    np.savez(a.mixtures, inputs=np.stack(inputs), targets=np.stack(targets))


def loss(odds, targets):
    """The distance of `losses.compressed_error`, for bands in place of bins."""
    mixture, voice, common = targets.unbind(2)
    estimate = torch.sigmoid(odds) ** 2 * mixture
    p, q = (estimate + 1e-12) ** 0.15, (voice + 1e-12) ** 0.15
    coherence = common / torch.sqrt(mixture * voice + 1e-24)
    distance = p**2 + q**2 - 2 * coherence.clamp(-1, 1) * p * q
    return (0.4 * distance + 0.6 * (p - q) ** 2 + 0.3 * torch.relu(q - p) ** 2)[mixture > 0].mean()


def learn(a):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = np.load(a.mixtures)
    inputs, targets = (torch.from_numpy(data[name]) for name in ("inputs", "targets"))
    batch = 16
    if len(inputs) <= batch:
        raise SystemExit(f"{a.mixtures}: {len(inputs)} mixtures, expected {batch + 1} or more")
    kept = len(inputs) // 16
    net, rng = Upper(), np.random.default_rng(0)
    average = {name: value.clone() for name, value in net.state_dict().items()}
    optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05, betas=(0.9, 0.98))
    steps = a.epochs * ((len(inputs) - kept) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps, pct_start=0.1)
    step = 0
    for epoch in range(a.epochs):
        net.train()
        total = 0.0
        order = kept + rng.permutation(len(inputs) - kept)
        for at in range(0, len(order) - batch + 1, batch):
            some = np.sort(order[at : at + batch])
            error = loss(net(inputs[some].float()), targets[some])
            optimiser.zero_grad()
            error.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            step += 1
            total += error.item()
            follow(average, net, step, 0.998)
        judged = Upper()
        judged.load_state_dict(average)
        judged.eval()
        with torch.no_grad():
            error = loss(judged(inputs[:kept].float()), targets[:kept]).item()
        print(f"epoch {epoch + 1} loss {total / (len(order) // batch):.4f}, held-out mixtures {error:.4f}", flush=True)
    torch.save(dict(average=average, seen=(len(inputs) - kept) * SECONDS), a.checkpoint)


def export(a):
    c = checkpoint_of(a.checkpoint)
    net = Upper()
    fill(net, c["average"], a.checkpoint)
    net.eval()
    writer = Writer()
    for layer in (net.first, *net.local):
        writer.convolution(layer.convolution, layer.norm)
    writer.convolution(net.last)
    header = dict(
        window_seconds=WINDOW / RATE,
        channels=CHANNELS,
        dilations=DILATIONS,
        hours=round(c["seen"] / 3600, 2),
    )
    write(a.out, "alphamf-presence-high-band", header, writer.tensors())
    print(header, sum(p.numel() for p in net.parameters()))
    if a.reference:
        power = spectrum(EDGES[-1])
        # Synthetic log odds, as in the test of the program.
        t, b = np.mgrid[0 : len(power), 0:BANDS]
        odds = (3 * np.sin(0.2 * t + 0.1 * b)).astype(np.float32)
        with open(a.reference, "w") as f:
            f.write("bins,frame,band,log_odds\n")
            for bins in (EDGES[-1], EDGES[9] + 5):
                with torch.no_grad():
                    found = net(torch.from_numpy(seen(power[:, :bins], odds))[None])[0].numpy()
                f.writelines(
                    f"{bins},{i},{j},{found[i, j]:.4f}\n"
                    for i in (0, 1, 17, 30, 47)
                    for j in (0, 3, 5, 8, 12, 19)
                    if EDGES[j + 1] <= bins
                )


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = a.add_subparsers(required=True)
    b = commands.add_parser("mix")
    b.add_argument("prepared")
    b.add_argument("presence", help="checkpoint of train.py")
    b.add_argument("mixtures")
    b.add_argument("--count", type=whole, default=4000)
    b.add_argument("--seed", type=int, default=1)
    b.set_defaults(run=mix)
    b = commands.add_parser("learn")
    b.add_argument("mixtures")
    b.add_argument("checkpoint")
    b.add_argument("--epochs", type=whole, default=20)
    b.set_defaults(run=learn)
    b = commands.add_parser("export")
    b.add_argument("checkpoint")
    b.add_argument("out")
    b.add_argument("--reference", help="write reference log odds for the test of the program")
    b.set_defaults(run=export)
    a = a.parse_args()
    a.run(a)


if __name__ == "__main__":
    run(main)
