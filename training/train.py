#!/usr/bin/env python3
"""Learn the listener: train.py PREPARED CHECKPOINT --until HH:MM [--processes 2]. Resumes from CHECKPOINT.

One process a core, one thread each; gradients are averaged after every step.
"""

import argparse
import datetime
import os
import time

# Before the libraries that read them.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import live
from mixing import Mixer
from network import BANDS, BINS, HALF, HALF_BANDS, HOP, LIVE_SHAPE, PAIR, RATE, WINDOW, Listener, features, interpolation

SHORT_WINDOW, SHORT_HOP = 512, 256
ESTOI_SECONDS = 0.384
LIVE_HOPS = (64, 128, 128, 128, 256)  # half the latency, samples
REPORT_EVERY, SAVE_EVERY = 20, 100  # steps


def stft(x, window, hop):
    hann = torch.hann_window(window)
    return torch.stft(x, window, hop, window=hann, center=True, return_complex=True, pad_mode="constant")


@torch.compile
def compressed_error(estimate, reference):
    """Both (..., 2): squared distances of spectra compressed by the power 0.3, of their magnitudes, and of lost magnitude."""
    p = torch.log(estimate[..., 0] ** 2 + estimate[..., 1] ** 2 + 1e-7)
    q = torch.log(reference[..., 0] ** 2 + reference[..., 1] ** 2 + 1e-7)
    distance = estimate * torch.exp(-0.35 * p)[..., None] - reference * torch.exp(-0.35 * q)[..., None]
    magnitude, expected = torch.exp(0.15 * p), torch.exp(0.15 * q)
    lost = torch.relu(expected - magnitude)
    return (0.4 * distance.square().sum(-1) + 0.6 * (magnitude - expected) ** 2 + 0.3 * lost**2).mean()


def spectral_loss(estimate, reference):
    return compressed_error(torch.view_as_real(estimate), torch.view_as_real(reference))


def third_octaves():
    """Which bins of the short window (columns) are in which of 15 bands from 150 Hz on (rows)."""
    centre = 150 * 2 ** (np.arange(15)[:, None] / 3)
    hertz = np.arange(SHORT_WINDOW // 2 + 1) * RATE / SHORT_WINDOW
    return torch.from_numpy(np.float32((centre * 2 ** (-1 / 6) <= hertz) & (hertz < centre * 2 ** (1 / 6))))


def intelligibility(estimate, reference, hop):
    """ESTOI (Jensen and Taal 2016) of spectra (examples x bins x frames) of the short window in place of 25.6 ms, `hop` samples
    apart in place of 12.8 ms: without the frames that lack voice, the correlation of third octaves over 384 ms, normalised
    over time, then over bands."""
    length = round(ESTOI_SECONDS * RATE / hop)
    bands = third_octaves()
    power = torch.stack([bands @ x.abs().square() for x in (estimate, reference)])
    energy = reference.abs().square().sum(1)
    scores = []
    for both, of_frame in zip(power.unbind(1), energy):
        spoken = both[:, :, of_frame > 1e-4 * of_frame.max() + 1e-9]
        if spoken.shape[2] >= length:
            segments = (spoken + 1e-9).sqrt().unfold(2, length, length // 4)
            for axis in (3, 1):
                segments = segments - segments.mean(axis, keepdim=True)
                segments = segments / (segments.square().sum(axis, keepdim=True) + 1e-12).sqrt()
            scores.append((segments[0] * segments[1]).sum(0).mean())
    return torch.stack(scores).mean() if scores else torch.zeros(())


def losses(net, spread, noisy, voice, top):
    """Of a batch (examples x samples): at the long window, at the short one, the signal-to-noise ratio in dB, ESTOI."""
    Y, X = stft(noisy, WINDOW, HOP), stft(voice, WINDOW, HOP)
    frames = Y.shape[2] // 2 * 2
    # Recordings at 8 kHz have no upper half.
    half = [highest == 4000 for highest in top]
    present = torch.ones(len(top), BINS, 1)
    present[torch.tensor(half), HALF:] = 0
    Y, X = Y[..., :frames] * present, X[..., :frames] * present
    power = (Y.abs() ** 2).transpose(1, 2).numpy()
    seen = [features(p, HALF_BANDS if h else BANDS) for p, h in zip(power, half)]
    gain = torch.sigmoid(torch.einsum("ntb,bf->nft", net(torch.from_numpy(np.stack(seen))), spread))
    S = gain * Y
    hann, length = torch.hann_window(WINDOW), HOP * (frames - 1)
    s, x = (torch.istft(Z, WINDOW, HOP, window=hann, length=length) for Z in (S, X))
    long = spectral_loss(S, X)
    fine = [stft(z, SHORT_WINDOW, SHORT_HOP) for z in (s, x)]
    short = spectral_loss(*fine)
    signal, error = (x**2).mean(1), ((s - x) ** 2).mean(1)
    # No example counts beyond 40 dB.
    ratio = 10 * torch.log10(signal / (error + 1e-4 * signal + 1e-9) + 1e-6)
    return long, short, ratio.mean(), intelligibility(*fine, SHORT_HOP)


def live_losses(net, spread, noisy, voice, top, rng):
    """The same of a listener that hears the past alone: of the frames that complete a pair, and of what they give out."""
    hop = int(rng.choice(LIVE_HOPS))
    analysis, synthesis = live.windows(hop)
    Y, X = live.frames(noisy, analysis), live.frames(voice, analysis)
    frames = Y.shape[1] // 2 * 2
    half = [highest == 4000 for highest in top]
    present = torch.ones(len(top), 1, BINS)
    present[torch.tensor(half), :, HALF:] = 0
    Y, X = Y[:, :frames] * present, X[:, :frames] * present
    # Recordings are as loud as they are: the statistics have a range.
    power = (Y.abs() ** 2 * 10 ** rng.uniform(-4.5, -0.5)).numpy()
    seen = [live.features(p, HALF_BANDS if h else BANDS) for p, h in zip(power, half)]
    gain = torch.sigmoid(net(torch.from_numpy(np.stack(seen)))[:, 1::2] @ spread)
    Y, X = Y[:, 1::2], X[:, 1::2]
    S = gain * Y
    # As loud as with the other windows.
    long = spectral_loss(20 * S, 20 * X)
    s, x = (torch.fft.irfft(Z)[..., -2 * hop :] * synthesis for Z in (S, X))
    fine = [torch.fft.rfft(z, SHORT_WINDOW).transpose(1, 2) for z in (s, x)]
    short = spectral_loss(*fine)
    signal, error = (x**2).mean((1, 2)), ((s - x) ** 2).mean((1, 2))
    ratio = 10 * torch.log10(signal / (error + 1e-4 * signal + 1e-9) + 1e-6)
    return long, short, ratio.mean(), intelligibility(*fine, PAIR * HOP)


class Muon(torch.optim.Optimizer):
    """Momentum whose matrices are made orthogonal (Jordan et al. 2024), scaled to the step of Adam (Liu et al. 2025)."""

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.01):
        super().__init__(parameters, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                m = self.state[p].setdefault("momentum", torch.zeros_like(p, memory_format=torch.contiguous_format))
                m.lerp_(p.grad, 1 - g["momentum"])
                x = p.grad.lerp(m, g["momentum"]).reshape(len(p), -1)
                tall = x.shape[0] > x.shape[1]
                x = x.T if tall else x
                x = x / (x.norm() + 1e-12)
                # Newton and Schulz's iteration, with Jordan's coefficients.
                for _ in range(5):
                    y = x @ x.T
                    x = 3.4445 * x + (-4.7750 * y + 2.0315 * y @ y) @ x
                x = x.T if tall else x
                p.mul_(1 - g["lr"] * g["weight_decay"])
                p.add_(x.reshape(p.shape), alpha=-0.2 * max(x.shape) ** 0.5 * g["lr"])


def follow(average, net, step, longest):
    """Moves an average of the weights towards them: of all steps at first, then with the decay `longest`."""
    decay = min(longest, (step + 1) / (step + 20))
    for name, value in net.state_dict().items():
        if value.dtype.is_floating_point:
            average[name].mul_(decay).add_(value, alpha=1 - decay)
        else:
            average[name].copy_(value)


class Run:
    """What goes on from one run to the next."""

    def __init__(self, rate, live=False):
        self.net = Listener(live, **(LIVE_SHAPE if live else {})).to(memory_format=torch.channels_last)
        self.average = {name: value.clone() for name, value in self.net.state_dict().items()}
        matrices = [p for p in self.net.parameters() if p.dim() > 2 and len(p) > 1]
        others = [p for p in self.net.parameters() if not (p.dim() > 2 and len(p) > 1)]
        adam = torch.optim.AdamW(others, lr=rate, weight_decay=0.01, betas=(0.9, 0.98))
        self.optimisers = [Muon(matrices, lr=rate), adam]
        self.step, self.spent, self.seen = 0, 0.0, 0.0  # steps, seconds of time, seconds of mixtures

    def begin(self, weights):
        """From weights by name; a layer that has none adds nothing yet."""
        state = self.net.state_dict()
        for name, value in state.items():
            if name in weights:
                value.copy_(weights[name])
            elif name.endswith("norm.weight"):
                value.zero_()
        self.average = {name: value.clone() for name, value in state.items()}

    def load(self, path):
        c = torch.load(path, weights_only=False)
        self.net.load_state_dict(c["net"])
        self.average = c["average"]
        for optimiser, state in zip(self.optimisers, c["optimisers"]):
            optimiser.load_state_dict(state)
        self.step, self.spent, self.seen = c["step"], c["spent"], c["seen"]

    def save(self, path, spent):
        state = dict(net=self.net.state_dict(), average=self.average, step=self.step, spent=spent, seen=self.seen)
        state["optimisers"] = [optimiser.state_dict() for optimiser in self.optimisers]
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)

    def set_rate(self, rate):
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate

    def descend(self, loss, processes):
        """One step along the gradient of all processes; its norm. A gradient that is not finite is left out."""
        self.net.zero_grad()
        loss.backward()
        parameters = list(self.net.parameters())
        flat = torch.cat([p.grad.reshape(-1) for p in parameters])
        dist.all_reduce(flat)
        flat /= processes
        norm = float(flat.norm())
        self.step += 1
        if not np.isfinite(norm):
            return norm
        flat *= min(1.0, 2.0 / norm)
        for p, gradient in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad.copy_(gradient.view_as(p))
        for optimiser in self.optimisers:
            optimiser.step()
        follow(self.average, self.net, self.step, 0.999)
        return norm


def end_of(until):
    hour, minute = map(int, until.split(":"))
    return datetime.datetime.now(datetime.timezone.utc).replace(hour=hour, minute=minute, second=0).timestamp()


def learn(rank, a):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    address = f"tcp://127.0.0.1:{a.port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=a.processes)
    run = Run(a.rate, a.live)
    if os.path.exists(a.checkpoint):
        run.load(a.checkpoint)
    if rank == 0:
        print(sum(p.numel() for p in run.net.parameters()), "weights, from step", run.step, flush=True)
    mixer = Mixer(a.prepared, [a.seed, run.step, rank], a.seconds)
    spread = torch.from_numpy(interpolation())
    start = time.time()
    spent = lambda: run.spent + time.time() - start
    budget = run.spent + end_of(a.until) - start
    per_step = a.processes * a.batch * a.seconds
    sums, since = np.zeros(4), time.time()
    while True:
        progress = torch.tensor([spent() / budget])
        dist.broadcast(progress, 0)
        if progress >= 1:
            break
        warm_up = min(1, (run.step + 1) / 300)
        run.set_rate(a.rate * warm_up * (0.5 + 0.5 * np.cos(np.pi * float(progress))) + 1e-6)
        noisy, voice, top = zip(*[mixer.mixture() for _ in range(a.batch)])
        batch = (torch.from_numpy(np.stack(x)) for x in (noisy, voice))
        if a.live:
            terms = live_losses(run.net, spread, *batch, top, mixer.rng)
        else:
            terms = losses(run.net, spread, *batch, top)
        long, short, ratio, estoi = terms
        norm = run.descend(long + 2 * short - a.snr * ratio - a.estoi * estoi, a.processes)
        run.seen += per_step
        sums += [term.item() for term in terms]
        if rank == 0 and run.step % REPORT_EVERY == 0:
            means, pace = sums / REPORT_EVERY, per_step * REPORT_EVERY / (time.time() - since)
            print(
                f"step {run.step} ({float(progress):.0%}) losses {means[0]:.4f} {means[1]:.4f} SNR {means[2]:.2f} dB "
                f"ESTOI {means[3]:.4f} gradient {norm:.2f} heard {run.seen / 3600:.2f} h, {pace:.1f} s/s",
                flush=True,
            )
            sums, since = np.zeros(4), time.time()
        if rank == 0 and run.step % SAVE_EVERY == 0:
            run.save(a.checkpoint, spent())
    if rank == 0:
        run.save(a.checkpoint, spent())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prepared", help="folder that prepare.py has made")
    parser.add_argument("checkpoint")
    parser.add_argument("--until", required=True, metavar="HH:MM", help="today, UTC")
    parser.add_argument("--live", action="store_true", help="a listener that hears the past alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=3, help="mixtures a step and process")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a mixture")
    parser.add_argument("--rate", type=float, default=2e-3, help="step size at its highest")
    parser.add_argument("--snr", type=float, default=0.02, help="what a decibel of SNR counts")
    parser.add_argument("--estoi", type=float, default=1.0, help="what ESTOI counts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=29517)
    arguments = parser.parse_args()
    mp.spawn(learn, (arguments,), nprocs=arguments.processes)
