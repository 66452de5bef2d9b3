#!/usr/bin/env python3
"""Trains the weights of the pool of model and network for recordings where the network is uncertain.

    pool.py mix MIXTURES --data DATA                    mixtures of expressive and ordinary voices, and of noise alone
    pool.py dump DENOISE MIXTURES DUMPS                 log odds of model and network, by the program DENOISE
    pool.py learn DUMPS OUT.safetensors [--reference OUT.csv] [--judge DUMPS ...]

MIXTURES has `clean/KIND__NN.wav` and `noisy/KIND__NN.wav` (the same names); `dump` accepts any such folder. DUMPS hold the log odds of the
program, so that training takes minutes on one thread. `--judge` prints SI-SDR by kind for other dumps, with constant and with trained
weights; this script applies the gains.
"""

import argparse
import csv
import re
import subprocess
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import soundfile as sf
import torch
from torch import nn
from torch.nn import functional as F

import voices
from common import cut, mean_and_error, new_folders, si_sdr
from export import write
from losses import compressed_error
from make_expressive import power_above_75_hz
from network import AVERAGES, BANDS, HOP, PAIR, RATE, WINDOW, edges, interpolation
from options import existing_folder, run, whole
from prepare import highpass, read, sound_files, speech_files, trim

# --- mixtures -----------------------------------------------------------------------------------------------------------

CRIES = ("angry", "cry", "death-cry", "emotion", "laugh", "pain", "scream", "shout", "sigh", "taunt")
# Fractions of the mixtures; `alone` is noise alone, which the pool must not keep.
SHARES = dict(cry=0.27, natural=0.33, made=0.15, ordinary=0.17, alone=0.08)
# Weights of kinds of noise that resemble voices; others have 2.
LIKE_VOICES = dict(baby=14, human=8, dog=6, animal=4, bigcat=3, bird=3, siren=3, babble=5, music=3)
SECONDS = (4.0, 8.0)
SNR = (-5.0, 20.0)


def emotions(data):
    with open(Path(data) / "speech_expressive" / "manifest.csv") as f:
        return {row["file"]: row["emotion"] for row in csv.DictReader(f)}


def sources(data):
    """Files by kind of mixture and voice."""
    by_emotion, kinds = emotions(data), {kind: {} for kind in SHARES}
    for voice, path in speech_files(data, [], False):
        if "speech_expressive" in path:
            kind = "cry" if by_emotion[Path(path).name] in CRIES else "natural"
        else:
            kind = "ordinary"
        kinds[kind].setdefault(voice, []).append(path)
    kinds["made"] = {**kinds["natural"], **kinds["ordinary"]}
    return kinds


def noises(data):
    """Files and their probabilities."""
    files = sound_files(Path(data) / "noise_train") + sound_files(Path(data) / "noise_more")
    kinds = [Path(f).name.split("__")[0] for f in files]
    counts = {kind: kinds.count(kind) for kind in kinds}
    weight = [next((w for key, w in LIKE_VOICES.items() if key in kind), 2) / counts[kind] ** 0.5 for kind in kinds]
    return files, np.array(weight) / np.sum(weight)


def cut_anywhere(x, n, rng):
    """Like `cut`, but the section may begin anywhere in a repeated noise. `cut` would change the mixtures."""
    return cut(np.tile(x, -(-n // len(x)) + 1), n, rng)


def voice_track(kind, files, n, rng):
    """One voice: one to three cries, or sentences with pauses."""
    x = np.zeros(n)
    at = int(rng.uniform(0.2, 1.2) * RATE)
    count = rng.integers(1, 4) if kind == "cry" else 9
    for _ in range(count):
        clip = trim(highpass(read(files[rng.integers(len(files))], RATE), 65, RATE), RATE)
        if kind == "made" and len(clip) > RATE // 2:
            clip = voices.make(clip, rng)[1]
        clip = clip / (np.abs(clip).max() + 1e-9) * 10 ** (rng.normal(0, 2) / 20)
        clip = clip[: n - at]
        x[at : at + len(clip)] += clip
        at += len(clip) + int(rng.uniform(0.2, 1.0) * RATE)
        if at >= n - RATE // 10:
            break
    return x


def mix(out, data, count, seed):
    new_folders(out, "clean", "noisy")
    kinds, (files, weights) = sources(data), noises(data)
    rooms = sound_files(Path(data) / "rir_train")
    if not (files and rooms):
        raise SystemExit(f"{data}: no noises or rooms")
    rows = []
    for kind, share in SHARES.items():
        for i in range(round(share * count)):
            rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), i])
            n = int(rng.uniform(*SECONDS) * RATE)
            names = sorted(kinds[kind])
            voice = names[rng.integers(len(names))] if names else "none"
            x = voice_track(kind, kinds[kind][voice], n, rng) if names else np.zeros(n)
            noise = files[rng.choice(len(files), p=weights)]
            z = cut_anywhere(read(noise, RATE).astype(np.float64), n, rng)
            if rng.random() < 0.25:
                other = cut_anywhere(read(files[rng.choice(len(files), p=weights)], RATE).astype(np.float64), n, rng)
                level = lambda v: np.sqrt((v**2).mean()) + 1e-9
                z = z / level(z) + 10 ** (rng.uniform(-12, 0) / 20) * other / level(other)
            if rng.random() < 0.25 and names:
                room = read(rooms[rng.integers(len(rooms))], RATE)[: int(1.2 * RATE)].astype(np.float64)
                peak = int(np.abs(room).argmax())
                room /= np.sqrt((room[peak:] ** 2).sum()) + 1e-9
                through = lambda v, first: np.fft.irfft(np.fft.rfft(v, 2 * n + RATE) * np.fft.rfft(room, 2 * n + RATE))[first : first + n]
                x, z = through(x, peak), through(z, peak)
            snr = rng.uniform(*SNR)
            if names:
                power = power_above_75_hz(x, voice)
            else:
                power, snr = (z**2).mean(), 0.0
            z = z * np.sqrt(power / max((highpass(z, 75, RATE) ** 2).mean(), 1e-20) / 10 ** (snr / 10))
            # The program skips frames of digital silence, so there must be none.
            y = x + z + 1e-5 * np.abs(x + z).max() * rng.standard_normal(n)
            scale, name = 0.5 / np.abs(y).max(), f"{kind}__{i:03d}.wav"
            for side, values in (("clean", x), ("noisy", y)):
                sf.write(Path(out) / side / name, values * scale, RATE, "PCM_24")
            rows.append((kind, name, voice, Path(noise).name, f"{snr:.1f}"))
    with open(Path(out) / "list.csv", "w", newline="") as f:
        csv.writer(f).writerows([("kind", "file", "voice", "noise", "snr_db"), *rows])
    print(len(rows), "mixtures")


# --- log odds of the program ---------------------------------------------------------------------------------------------

BLOCK = re.compile(r"bins=(\d+) bands=(\d+) model=\[(.*?)\] network=\[(.*?)\] levels=\[(.*?)\]")


def dump(denoise, mixtures, out, jobs):
    """Writes, for every mixture of one block, log odds of the model by bin and of the network by band, levels of bands (frames x values,
    in hundredths), and mixture and speech."""
    # Kinds alternate, so that an interrupted run has all of them.
    noisy = sorted(Path(mixtures).glob("noisy/*.wav"), key=lambda path: path.stem.split("__")[::-1])
    if not noisy:
        raise SystemExit(f"{mixtures}/noisy: no WAV files")
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    listed = Path(mixtures) / "list.csv"
    voice = {row["file"]: row["voice"] for row in csv.DictReader(open(listed))} if listed.exists() else {}

    def of(path):
        if (out / f"{path.stem}.npz").exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            command = [denoise, str(path), f"{folder}/out.wav", "--threads", "1", "--log", "trace"]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
        blocks = BLOCK.findall(run.stderr)
        recorded, rate = sf.read(path, dtype="float32")
        clean = sf.read(path.parent.parent / "clean" / path.name, dtype="float32")[0]
        if len(blocks) != 1:
            print(path.name, "is left out:", len(blocks), "blocks")
            return
        bins, bands = int(blocks[0][0]), int(blocks[0][1])
        model, network, levels = (np.array(text.split(","), np.int16) for text in blocks[0][2:])
        values = dict(model=model.reshape(-1, bins), network=network.reshape(-1, BANDS)[:, :bands], levels=levels.reshape(-1, bands))
        frames = -(-len(recorded) // (rate // 62.5)) + 3
        if len(values["model"]) != frames:
            print(path.name, "is left out:", len(values["model"]), "of", int(frames), "frames")
            return
        # Renamed when complete, so that an interrupted run recomputes it.
        part = out / f"{path.stem}.part"
        with open(part, "wb") as f:
            np.savez(f, noisy=recorded, clean=clean, rate=rate, voice=voice.get(path.name, ""), **values)
        part.replace(out / f"{path.stem}.npz")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(of, noisy))


# --- the pool -----------------------------------------------------------------------------------------------------------

# As in src/presence/pool.rs and src/wiener/fusion.rs.
NEAR, NEAR_BANDS = (4, 15, 47), 6  # pairs of frames, and bands, to either side
CERTAIN = (1.0, 4.0)
LEARNED = (5.0, 8.0)  # certainties between which the probability of an example falls
MORE, LESS = 0.95, 0.9
FLOOR = 10 ** (-45 / 20)
MOST = 8.0  # maximum shift
PRESENT_BINS, NEAR_FRAMES, MIN_LOG_ODDS, SLOPE = 8, 16, -1.0, 4.0
INPUTS, HIDDEN = 23, (32, 16)
PART = 200  # frames of an example per step


def paired(x):
    """Means over pairs of frames (frames x bands); an odd last frame is kept."""
    last = x[-1:] if len(x) % 2 else x[:0]
    return torch.cat([x[: len(x) // 2 * 2].unflatten(0, (-1, 2)).mean(1), last])


def near(x, reach, axis):
    """Means over up to `reach` neighbours on either side."""
    n = x.shape[axis]
    sums = torch.cat([torch.zeros_like(x.narrow(axis, 0, 1)), x.cumsum(axis)], axis)
    at = torch.arange(n)
    first, end = (at - reach).clamp(min=0), (at + reach + 1).clamp(max=n)
    count = (end - first).to(x.dtype)
    return (sums.index_select(axis, end) - sums.index_select(axis, first)) / (count[:, None] if axis == 0 else count)


def uneven(x):
    """Standard deviation over neighbouring bands."""
    return (near(x * x, NEAR_BANDS, 1) - near(x, NEAR_BANDS, 1) ** 2).clamp(min=0).sqrt()


def odds_of(kept, whole):
    fraction = (kept / whole.clamp(min=1e-30)).clamp(max=1)
    return torch.log((fraction + 1e-3) / (1 - fraction + 1e-3))


def certainty_of(network):
    """The 99.5 % quantile of the log odds."""
    n = network.numel()
    return network.flatten().kthvalue(n - n // 200).values


def inputs(model, network, levels):
    """Inputs (pairs x bands x INPUTS) from log odds of the model and of the network and log levels (frames x bands each)."""
    certainty = certainty_of(network)
    model, network, level = (paired(x.double()) for x in (model, network, levels))
    pairs, bands = level.shape
    quiet = level.sort(0).values[pairs // 10].expand_as(level)
    power = level.exp() * torch.from_numpy(np.diff(edges())[:bands].astype(float))
    kept = [power * torch.sigmoid(x) for x in (model, network)]
    in_pair = [odds_of(x.sum(1), power.sum(1))[:, None].expand_as(level) for x in kept]
    in_all = [odds_of(x.sum(), power.sum()).expand_as(level) for x in kept]
    found = [model, network, (model - network).abs()]
    found += [near(x, reach, 0) for x in (model, network) for reach in NEAR]
    found += [near(x, NEAR_BANDS, 1) for x in (model, network)]
    found += [uneven(x) for x in (model, network, level)]
    found += [level, level - quiet - 2, quiet + 4, certainty.double().expand_as(level), *in_pair, *in_all]
    place = torch.arange(bands).double().expand_as(level) / BANDS * 8 - 4
    return torch.stack([*found, place], 2).float() / 4


class Pool(nn.Module):
    """Maps the inputs of bands and pairs to a change of the logit of the network's weight, and to a shift of the log odds."""

    def __init__(self):
        super().__init__()
        sizes = [INPUTS, *HIDDEN, 2]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        nn.init.zeros_(self.layers[-1].weight)
        nn.init.zeros_(self.layers[-1].bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.leaky_relu(layer(x), 0.1)
        weight, shift = self.layers[-1](x).unbind(-1)
        return weight, MOST * torch.tanh(shift / MOST)


def presence_of(odds):
    """Probability of speech near each frame, from log odds (frames x bins)."""
    eighth = odds.topk(PRESENT_BINS, 1).values[:, -1]
    return torch.sigmoid(SLOPE * (F.max_pool1d(eighth[None], 2 * NEAR_FRAMES + 1, 1, NEAR_FRAMES)[0] - MIN_LOG_ODDS))


class Example:
    """A dump with derived values for training."""

    def __init__(self, path):
        d = np.load(path)
        self.name, self.voice, self.rate = Path(path).stem, str(d["voice"]), int(d["rate"])
        self.kind = self.name.split("__")[0]
        self.model, network, levels = (torch.from_numpy(d[key].astype(np.float32) / 100) for key in ("model", "network", "levels"))
        bins, bands = self.model.shape[1], network.shape[1]
        # Bins above the highest band have its values.
        spread = torch.from_numpy(interpolation())[:, :bins]
        self.spread = torch.cat([spread[: bands - 1], spread[bands - 1 :].sum(0, keepdim=True)])
        self.network = network @ self.spread
        self.certainty = float(certainty_of(network))
        self.share, self.drawn = (
            float(np.clip((high - self.certainty) / (high - low), 0, 1)) for low, high in (CERTAIN, LEARNED)
        )
        self.inputs = inputs(self.model @ torch.from_numpy(AVERAGES[:bins, :bands]), network, levels)
        self.presence = presence_of(self.network)[:, None]
        self.noisy, self.clean = (torch.from_numpy(d[key].astype(np.float32)) for key in ("noisy", "clean"))
        # The gains of the program do not depend on the level.
        scale = self.noisy.square().mean().rsqrt()
        self.noisy, self.clean = self.noisy * scale, self.clean * scale
        self.noisy_spectrum, self.clean_spectrum = self.spectra()

    def spectra(self):
        """Spectra of mixture and speech (frames x bins x 2), with mean power 1; frames as in the program."""
        window, hop = (int(self.rate * x / RATE) for x in (WINDOW, HOP))
        pad = lambda x: F.pad(x, (window - hop, window + hop))
        both = (torch.stft(pad(x), window, hop, window=torch.hann_window(window), center=False, return_complex=True) for x in (self.noisy, self.clean))
        noisy, clean = (torch.view_as_real(x[:, : len(self.model)].T.contiguous()) for x in both)
        scale = noisy.square().mean().rsqrt()
        return noisy * scale, clean * scale

    def voice_of(self, gain):
        """The mixture after these gains, samples."""
        window, hop = (int(self.rate * x / RATE) for x in (WINDOW, HOP))
        hann, n = torch.hann_window(window), len(self.noisy)
        frames = torch.fft.irfft(gain * torch.view_as_complex(self.noisy_spectrum), window) * hann
        length = window + hop * (len(frames) - 1)
        sums = F.fold(frames.T[None], (1, length), (1, window), stride=(1, hop))[0, 0, 0] / 1.5
        return sums[window - hop :][:n]

    def gain(self, net=None, share=None, part=slice(None)):
        """Gains (frames x bins) of a range of frames, which starts with a pair."""
        share = self.share if share is None else share
        model, network, presence = self.model[part], self.network[part], self.presence[part]
        weight = torch.where(model > network, MORE, LESS)
        shift = 0.0
        if net is not None and share > 0:
            first = part.start or 0
            pairs = slice(first // PAIR, (first + len(model) + 1) // PAIR)
            more, shift = (x.repeat_interleave(PAIR, 0)[: len(model)] @ self.spread * share for x in net(self.inputs[pairs]))
            weight = torch.sigmoid(torch.logit(weight) + more)
            presence = presence + share * (1 - presence)
        odds = model + weight * (network - model) + shift
        gain = (presence * torch.sigmoid(odds)).clamp(min=FLOOR)
        # Empty bins at the top have no log odds.
        return F.pad(gain, (0, self.noisy_spectrum.shape[1] - gain.shape[1]))


def decibels(voice, error):
    return 10 * torch.log10(voice / (error + 1e-5) + 1e-6)


def loss_of(example, net, rng):
    """Loss of a section of an example: distance of compressed spectra, signal-to-noise ratio, and its decrease relative to the mixture;
    without speech, the level of the residual noise."""
    frames = len(example.model)
    first = int(rng.integers(0, max(frames - PART, 0) // PAIR + 1)) * PAIR
    part = slice(first, first + PART)
    gain = example.gain(net, 1.0, part)
    noisy, clean = example.noisy_spectrum[part], example.clean_spectrum[part]
    found = gain[..., None] * noisy
    loss = 3 * compressed_error(found, clean)
    voice = clean.square().mean()
    if voice > 1e-4:
        after, before = (decibels(voice, (x - clean).square().mean()) for x in (found, noisy))
        return loss - 0.02 * after + 0.1 * torch.relu(before - after)
    # In noise alone, the network is as uncertain as for a voice that it misses, so residual noise has a weight.
    return loss + 0.02 * decibels(found.square().mean(), noisy.square().mean())


def load(folder):
    return [Example(path) for path in sorted(Path(folder).glob("*.npz"))]


def held_out(example):
    return zlib.crc32(example.voice.encode()) % 5 == 0


def learn(examples, steps, batch, seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    net = Pool()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, steps)
    # Examples with uncertain networks, for which the pool is used, are drawn more often.
    share = np.array([3.25 if example.kind == "alone" else 0.25 + example.drawn for example in examples])
    for step in range(steps):
        chosen = rng.choice(len(examples), batch, p=share / share.sum())
        loss = sum(loss_of(examples[k], net, rng) for k in chosen) / batch
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(step, f"{loss.item():.3f}", flush=True)
    return net


def score(example, out):
    """SI-SDR above 75 Hz, dB."""
    return si_sdr(*(highpass(v.numpy().astype(np.float64), 75, example.rate).astype(np.float64) for v in (example.clean, out)))


def judge(examples, net):
    """Prints SI-SDR by kind: input, constant weights, change; for noise alone its output level, dB."""
    rows = {}
    with torch.no_grad():
        for example in examples:
            out = [example.voice_of(torch.ones(())), *(example.voice_of(example.gain(n)) for n in (None, net))]
            if example.clean.any():
                values = [score(example, x) for x in out]
            else:
                values = [float(10 * np.log10(x.square().mean())) for x in out]
            rows.setdefault(example.kind, []).append(values)
            if example.clean.any():
                rows.setdefault("all", []).append(values)
    for kind, values in rows.items():
        before, constant, after = np.array(values).T
        change = after - constant
        falls = np.maximum(before - after, 0).sum(), np.maximum(before - constant, 0).sum()
        print(f"{kind:10} {len(change):4}  {before.mean():6.2f} {constant.mean():6.2f} {mean_and_error(change, '+.2f')}   falls {falls[1]:.1f} -> {falls[0]:.1f}")


def export(net, examples, out, reference):
    """Writes the network (rows of weights by input, then biases) and reference outputs for a few inputs."""
    tensors = [
        (name, "F32", torch.cat([layer.weight.detach().T, layer.bias.detach()[None]]).numpy().ravel())
        for name, layer in zip(("first", "second", "third"), net.layers)
    ]
    write(out, "alphamf-pool", dict(inputs=INPUTS, hidden=list(HIDDEN)), tensors, version="1")
    if reference:
        with torch.no_grad():
            chosen = torch.stack([e.inputs[len(e.inputs) // 2, 40 + 10 * k] for k, e in enumerate(examples[:: max(len(examples) // 8, 1)][:8])])
            found = torch.stack(net(chosen), 1)
            made = evidence()
            of_made = inputs(*made)
        rows = [["outputs", *x, *y] for x, y in zip(chosen.tolist(), found.tolist())]
        rows += [[f"{pair}:{band}", *of_made[pair, band].tolist(), 0, 0] for pair, band in ((0, 0), (3, 80), (24, 130), (59, 159))]
        with open(reference, "w") as f:
            f.write(",".join(["row", *(f"input_{k}" for k in range(INPUTS)), "weight", "shift"]) + "\n")
            f.writelines(",".join([row[0], *(f"{v:.5f}" for v in row[1:])]) + "\n" for row in rows)


def evidence():
    """Synthetic log odds of model and network, and levels (frames x BANDS), as in the test of the program."""
    t, b = np.mgrid[0:119, 0:BANDS].astype(np.float64)
    made = 4 * np.sin(0.05 * t * (1 + b % 7)) - b / 40, 3 * np.cos(0.3 * b + 0.1 * t) - 2, 2 * np.sin(0.2 * b) + np.cos(0.07 * t) - b / 30
    model, network, level = (torch.from_numpy(x.astype(np.float32)) for x in made)
    return model, network, level - level.double().exp().mean().log().float()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    a = commands.add_parser("mix")
    a.add_argument("out")
    a.add_argument("--data", type=existing_folder, required=True)
    a.add_argument("--count", type=whole, default=300)
    a.add_argument("--seed", type=int, default=1)
    a = commands.add_parser("dump")
    a.add_argument("denoise")
    a.add_argument("mixtures", type=existing_folder)
    a.add_argument("out")
    a.add_argument("--jobs", type=whole, default=1)
    a = commands.add_parser("learn")
    a.add_argument("dumps", type=existing_folder)
    a.add_argument("out")
    a.add_argument("--steps", type=whole, default=600)
    a.add_argument("--batch", type=whole, default=4)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--reference")
    a.add_argument("--judge", type=existing_folder, nargs="*", default=[])
    a = parser.parse_args()
    if a.command == "mix":
        mix(a.out, a.data, a.count, a.seed)
    elif a.command == "dump":
        dump(a.denoise, a.mixtures, a.out, a.jobs)
    else:
        torch.set_num_threads(1)
        examples = load(a.dumps)
        learned = [e for e in examples if not held_out(e)]
        if not learned:
            raise SystemExit(f"{a.dumps}: no dumps to learn from")
        net = learn(learned, a.steps, a.batch, a.seed)
        for those in ([e for e in examples if held_out(e)], *map(load, a.judge)):
            judge(those, net)
        export(net, examples, a.out, a.reference)


if __name__ == "__main__":
    run(main)
