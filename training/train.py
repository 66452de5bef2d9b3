#!/usr/bin/env python3
"""Trains a speech-presence network: train.py PREPARED CHECKPOINT --until HH:MM | --minutes M [--device cuda --bf16 --batch 64].

Resumes from CHECKPOINT. All computation, including mixing, runs on --device. On processors, --processes sets the number of processes of one
thread each; their gradients are averaged after every step.
"""

import argparse
import contextlib
import datetime
import io
import os
import time

# The libraries below read these variables when imported.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from dnsmos import Judge
from losses import live_losses, losses
from mixing import Mixer
from network import CausalPresenceNet, PresenceNet
from options import finite, positive, run, whole

REPORT_EVERY = 20  # steps
SAVE_SECONDS = 60
CHECKPOINT_BYTES = 16 << 20


class Muon(torch.optim.Optimizer):
    """Momentum with orthogonalised updates of matrices (Jordan et al. 2024), scaled to the step size of Adam (Liu et al. 2025)."""

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.01):
        super().__init__(parameters, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            # Matrices of equal size are updated in one batch.
            sizes = {}
            for p in g["params"]:
                sizes.setdefault((len(p), p[0].numel()), []).append(p)
            for (rows, columns), alike in sizes.items():
                directions = []
                for p in alike:
                    m = self.state[p].setdefault("momentum", torch.zeros_like(p, memory_format=torch.contiguous_format))
                    m.lerp_(p.grad, 1 - g["momentum"])
                    directions.append(p.grad.lerp(m, g["momentum"]).reshape(rows, columns))
                x = torch.stack(directions)
                x = x.mT if rows > columns else x
                x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-12)
                # Newton and Schulz's iteration, with Jordan's coefficients.
                for _ in range(5):
                    y = x @ x.mT
                    x = 3.4445 * x + (-4.7750 * y + 2.0315 * y @ y) @ x
                x = x.mT if rows > columns else x
                for p, direction in zip(alike, x):
                    p.mul_(1 - g["lr"] * g["weight_decay"])
                    p.add_(direction.reshape(p.shape), alpha=-0.2 * max(rows, columns) ** 0.5 * g["lr"])


def follow(average, net, step, longest):
    """Updates the moving average of the weights: over all steps at first, then with the decay `longest`."""
    decay = min(longest, (step + 1) / (step + 20))
    state = net.state_dict()
    moving = [name for name, value in state.items() if value.dtype.is_floating_point]
    torch._foreach_lerp_([average[name] for name in moving], [state[name] for name in moving], 1 - decay)
    for name in state.keys() - set(moving):
        average[name].copy_(state[name])


def halved(tree, dtype=torch.bfloat16):
    """The tree with tensors of more than 64 numbers converted to 16 bits."""
    if isinstance(tree, dict):
        return {key: halved(value, dtype) for key, value in tree.items()}
    if isinstance(tree, list):
        return [halved(value, dtype) for value in tree]
    if torch.is_tensor(tree) and tree.dtype == torch.float32 and tree.numel() > 64:
        return tree.to(dtype)
    return tree


def loaded(path, device="cpu"):
    """Loads a file of torch.save with tensors, arrays, numbers and text in dictionaries and lists. A file with other types is rejected, as
    it could run code."""
    array = np.zeros(0)
    # Types that numpy arrays and scalars are pickled with.
    numbers = [array.__reduce__()[0], np.float64().__reduce__()[0], np.ndarray, np.dtype, type(array.dtype)]
    with torch.serialization.safe_globals(numbers):
        return torch.load(path, weights_only=True, map_location=device)


def checkpoint_of(source, device="cpu"):
    """The contents of a checkpoint, which is a path or already loaded."""
    return loaded(source, device) if isinstance(source, str) else source


def weights_of(source):
    """Averaged weights of a checkpoint (`checkpoint_of`) by name, float32."""
    average = checkpoint_of(source)["average"]
    return {name: value.float() if value.dtype.is_floating_point else value for name, value in average.items()}


def fill(net, weights, path):
    """Fills a network with the weights of a checkpoint."""
    try:
        net.load_state_dict(weights)
    except RuntimeError:
        raise SystemExit(f"{path}: weights of another network, such as the causal one (--live)")


class Run:
    """The state of training, which checkpoints hold."""

    def __init__(self, rate, live=False, device="cpu", shape=None):
        self.device = torch.device(device)
        self.shape = shape or {}
        net = (CausalPresenceNet if live else PresenceNet)(**self.shape)
        self.net = net.to(self.device, memory_format=torch.channels_last)
        self.average = {name: value.clone() for name, value in self.net.state_dict().items()}
        matrices = [p for p in self.net.parameters() if p.dim() > 1 and len(p) > 1]
        others = [p for p in self.net.parameters() if not (p.dim() > 1 and len(p) > 1)]
        adam = torch.optim.AdamW(others, lr=rate, weight_decay=0.01, betas=(0.9, 0.98))
        self.optimisers = [Muon(matrices, lr=rate), adam]
        self.step, self.spent, self.seen = 0, 0.0, 0.0  # steps, seconds of training, seconds of mixtures

    def load(self, source):
        c = checkpoint_of(source, self.device)
        self.average = weights_of(c)
        fill(self.net, c["net"] or self.average, source if isinstance(source, str) else "checkpoint")
        for optimiser, state in zip(self.optimisers, c["optimisers"]):
            # This converts the state to the type of the weights.
            optimiser.load_state_dict(state)
        self.step, self.spent, self.seen = c["step"], c["spent"], c["seen"]

    def save(self, path, spent):
        """Writes at most CHECKPOINT_BYTES. Checkpoints of larger networks omit state that training recovers within some hundred steps."""
        state = dict(average=self.average, step=self.step, spent=spent, seen=self.seen, shape=self.shape)
        state["net"] = halved(self.net.state_dict())
        state["optimisers"] = [halved(optimiser.state_dict()) for optimiser in self.optimisers]
        for less in ({}, {"optimisers": []}, {"net": None}, {"average": halved(self.average, torch.float16)}):
            state.update(less)
            written = io.BytesIO()
            torch.save(state, written)
            if written.tell() <= CHECKPOINT_BYTES:
                break
        else:
            raise SystemExit(f"{path}: {written.tell()} bytes of weights alone, at most {CHECKPOINT_BYTES} fit")
        with open(path + ".part", "wb") as f:
            f.write(written.getbuffer())
        os.replace(path + ".part", path)

    def set_rate(self, rate):
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = float(rate)

    def descend(self, loss, processes):
        """Updates the weights by the mean gradient of all processes and returns its norm. A non-finite gradient is ignored."""
        self.net.zero_grad()
        loss.backward()
        parameters = list(self.net.parameters())
        flat = torch.cat([p.grad.reshape(-1) for p in parameters])
        if processes > 1:
            dist.all_reduce(flat)
            flat /= processes
        norm = flat.norm()
        self.step += 1
        flat = torch.where(torch.isfinite(norm), flat * (2.0 / norm).clamp(max=1), torch.zeros_like(flat))
        for p, gradient in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad.copy_(gradient.view_as(p))
        for optimiser in self.optimisers:
            optimiser.step()
        follow(self.average, self.net, self.step, 0.999)
        return norm


def end_of(a):
    """End time of training, seconds since 1970."""
    if a.minutes is not None:
        return time.time() + 60 * a.minutes
    now = datetime.datetime.fromtimestamp(time.time(), datetime.timezone.utc)
    end = datetime.datetime.combine(now.date(), a.until, now.tzinfo)
    return (end if end > now else end + datetime.timedelta(days=1)).timestamp()


def learn(rank, a):
    if a.device == "cpu":
        torch.set_num_threads(1)
    torch.manual_seed(0)
    if a.processes > 1:
        address = f"tcp://127.0.0.1:{a.port}"
        dist.init_process_group("gloo", init_method=address, rank=rank, world_size=a.processes)
    if os.path.exists(a.checkpoint):
        checkpoint = checkpoint_of(a.checkpoint, a.device)
        run = Run(a.rate, a.live, a.device, checkpoint["shape"])
        run.load(checkpoint)
        if a.new_schedule:
            run.spent = 0.0
    else:
        run = Run(a.rate, a.live, a.device)
    mixer = Mixer(a.prepared, [a.seed, run.step, rank], a.seconds, a.device)
    batches = mixer.batches(a.batch, a.ahead)
    judge = Judge(a.dnsmos, run.device) if a.overall else None
    start = saved = since = time.time()
    if rank == 0:
        print(sum(p.numel() for p in run.net.parameters()), "weights, from step", run.step, flush=True)
    spent = lambda: run.spent + time.time() - start
    budget = run.spent + end_of(a) - start
    per_step = a.processes * a.batch * a.seconds
    sums, last = torch.zeros(6, device=run.device), run.step + a.steps if a.steps else float("inf")
    reported = run.step
    reduced = lambda: torch.autocast(run.device.type, torch.bfloat16) if a.bf16 else contextlib.nullcontext()

    def net(seen):
        with reduced():
            return run.net(seen)

    while run.step < last:
        progress = torch.tensor([spent() / budget if not a.steps else 0.5])
        if a.processes > 1:
            dist.broadcast(progress, 0)
        if progress >= 1:
            break
        warm_up = min(1, (run.step + 1) / 300)
        run.set_rate(a.rate * warm_up * (0.5 + 0.5 * np.cos(np.pi * float(progress))) + 1e-6)
        batch = next(batches)
        if a.live:
            terms = live_losses(net, batch.noisy, batch.voice, batch.half, mixer.rng, judge)
        else:
            terms = losses(net, batch.noisy, batch.voice, batch.half, judge)
        long, short, ratio, estoi, pesq, overall = terms
        total = long + 2 * short - a.snr * ratio - a.estoi * estoi - a.overall * overall
        # Without weight, PESQ needs no gradient.
        norm = run.descend(total - a.pesq * pesq if a.pesq else total, a.processes)
        run.seen += per_step
        sums += torch.stack(terms).detach()
        if rank == 0 and (run.step % REPORT_EVERY == 0 or run.step == last):
            # Fewer than REPORT_EVERY at the end, and after a restart.
            steps = run.step - reported
            means, pace = (sums / steps).tolist(), per_step * steps / (time.time() - since)
            print(
                f"step {run.step} ({float(progress):.0%}) losses {means[0]:.4f} {means[1]:.4f} SNR {means[2]:.2f} dB "
                f"ESTOI {means[3]:.4f} PESQ {means[4]:.3f} DNSMOS {means[5]:.3f} gradient {float(norm):.2f} seen {run.seen / 3600:.2f} h, {pace:.1f} s/s",
                flush=True,
            )
            sums.zero_()
            reported, since = run.step, time.time()
        if rank == 0 and time.time() > saved + SAVE_SECONDS:
            run.save(a.checkpoint, spent())
            saved = time.time()
    if rank == 0:
        run.save(a.checkpoint, spent())


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared", help="folder of prepare.py")
    parser.add_argument("checkpoint")
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--until", type=datetime.time.fromisoformat, metavar="HH:MM", help="end at this time, UTC, today or tomorrow")
    end.add_argument("--minutes", type=positive, help="end after so many minutes")
    parser.add_argument("--new-schedule", action="store_true", help="restart the schedule of the step size; weights and optimiser state are those of CHECKPOINT")
    parser.add_argument("--steps", type=whole, help="end after so many more steps, at half the step size throughout")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--bf16", action="store_true", help="compute the networks in bf16 where possible")
    parser.add_argument("--live", action="store_true", help="train the causal network")
    parser.add_argument("--processes", type=whole, default=1, help="number of processes on processors: one per core")
    parser.add_argument("--batch", type=whole, default=3, help="mixtures per step and process; 64 on an accelerator")
    parser.add_argument("--ahead", type=whole, default=1, help="batches mixed at once; 6 on an accelerator")
    parser.add_argument("--seconds", type=positive, default=5.0, help="length of a mixture")
    parser.add_argument("--rate", type=positive, default=2e-3, help="maximum step size")
    parser.add_argument("--snr", type=finite, default=0.02, help="loss weight of 1 dB of SNR")
    parser.add_argument("--estoi", type=finite, default=1.0, help="loss weight of ESTOI")
    parser.add_argument("--pesq", type=finite, default=0.0, help="loss weight of one point of PESQ")
    parser.add_argument("--overall", type=finite, default=0.0, help="loss weight of one point of DNSMOS OVRL")
    parser.add_argument("--dnsmos", metavar="FILE", help="network of DNSMOS, sig_bak_ovr.onnx of the package speechmos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=29517)
    a = parser.parse_args(words)
    if a.overall and not a.dnsmos:
        parser.error("--overall needs the network of DNSMOS: --dnsmos FILE")
    return a


def main():
    a = arguments()
    if a.processes == 1:
        learn(0, a)
    else:
        mp.spawn(learn, (a,), nprocs=a.processes)


if __name__ == "__main__":
    run(main)
