"""Mixtures on the fly: clean voices in every kind of real noise, rooms, colours, levels, damage."""

import json
import os

import numpy as np
import soxr
from scipy.fft import irfft, next_fast_len, rfft

from network import RATE


# How much more often kinds of noise are drawn than by how much there is of them.
PREFERENCE = dict(event=1.3, impulsive=1.3, vehicle=1.6, babble=2.5, wind=1.5, tonal=0.9)


def filtered(x, response):
    """x through a filter; response(n) is that at the n // 2 + 1 frequencies of a transform of length n."""
    n = next_fast_len(len(x), real=True)
    return irfft(rfft(x, n) * response(n), n)[: len(x)].astype(np.float32)


def telephone(low, high, order):
    """The response of a telephone's band, corners in Hz."""

    def response(n):
        f = np.fft.rfftfreq(n, 1 / RATE)
        return 1 / np.sqrt((1 + (low / np.maximum(f, 1)) ** (2 * order)) * (1 + (f / high) ** (8 * order)))

    return response


def below(top, rate=RATE):
    """The response that leaves nothing from `top` Hz on."""
    return lambda n: (np.arange(n // 2 + 1) < int(top / rate * n)).astype(np.float32)


def convolve(x, r):
    n = next_fast_len(len(x) + len(r) - 1, real=True)
    return irfft(rfft(x, n) * rfft(r, n), n)[: len(x)].astype(np.float32)


class Mixer:
    def __init__(self, folder, seed, seconds=5.0, rate=RATE):
        self.rng, self.rate = np.random.default_rng(seed), rate
        self.n = int(seconds * rate)
        self.data = {k: np.load(os.path.join(folder, k + ".npy"), mmap_mode="r") for k in ("speech", "noise", "room")}
        index = json.load(open(os.path.join(folder, "index.json")))
        self.clips = {}
        for kind, rows in index.items():
            groups = {}
            for label, at, n in rows:
                groups.setdefault(label, []).append((at, n))
            self.clips[kind] = groups
        # A voice is drawn by the root of how much of it there is, a kind of noise likewise.
        self.draw = {}
        for kind, groups in self.clips.items():
            labels = sorted(groups)
            share = np.sqrt([sum(n for _, n in groups[l]) for l in labels])
            if kind == "noise":
                share *= [PREFERENCE.get(l.split("-")[0], 1.0) for l in labels]
            self.draw[kind] = (labels, np.cumsum(share) / np.sum(share))

    def label(self, kind):
        labels, c = self.draw[kind]
        return labels[min(int(np.searchsorted(c, self.rng.random())), len(labels) - 1)]

    def clip(self, kind, label):
        at, n = self.clips[kind][label][self.rng.integers(len(self.clips[kind][label]))]
        return at, n

    def part(self, kind, at, n, longest):
        if n > longest:
            at, n = at + int(self.rng.integers(n - longest + 1)), longest
        return np.asarray(self.data[kind][at : at + n], dtype=np.float32) / 32000

    def stretch(self, x, low, high):
        """Faster or slower, pitch and all."""
        ratio = np.exp(self.rng.uniform(np.log(low), np.log(high)))
        return soxr.resample(x, self.rate * ratio, self.rate, quality="QQ").astype(np.float32)

    def colour(self, decibels):
        """A smooth random frequency response."""
        weights = [self.rng.normal() / (k + 1) for k in range(1, 6)]

        def response(n):
            f = np.linspace(0, 1, n // 2 + 1) ** 0.5
            gain = sum(w * np.cos(np.pi * k * f) for k, w in enumerate(weights, 1)) * decibels
            return 10 ** (gain / 20)

        return response

    def voice(self, label=None, pauses=True):
        rng, out, have = self.rng, [], 0
        label = label or self.label("speech")
        if pauses and rng.random() < 0.5:
            out.append(np.zeros(int(rng.uniform(0, 1.2) * self.rate), np.float32))
            have += len(out[0])
        while have < self.n:
            x = self.part("speech", *self.clip("speech", label), self.n)
            x = x * 10 ** (rng.uniform(-3, 3) / 20)
            out.append(x)
            have += len(x)
            gap = np.zeros(int(rng.exponential(0.25 if rng.random() < 0.8 else 1.0) * self.rate), np.float32)
            out.append(gap)
            have += len(gap)
        x = np.concatenate(out)[: int(1.15 * self.n)]
        if rng.random() < 0.5:
            x = self.stretch(x, 0.88, 1.14)
        x = x[: self.n]
        return np.pad(x, (0, self.n - len(x)))

    def noise(self):
        rng, u = self.rng, self.rng.random()
        if u < 0.10:
            return sum(
                self.voice(pauses=False) * 10 ** (rng.normal(0, 3) / 20)
                for _ in range(int(rng.choice([2, 3, 4, 6, 8])))
            )
        if u < 0.17:
            return self.made()
        label = self.label("noise")
        gaps = label.startswith(("event", "impulsive")) and rng.random() < 0.4
        out, have = [], 0
        while have < int(1.5 * self.n):
            x = self.part("noise", *self.clip("noise", label), int(1.5 * self.n))
            k = min(len(x) // 4, 200)
            x = x.copy()
            x[:k] *= np.linspace(0, 1, k)
            x[len(x) - k :] *= np.linspace(1, 0, k)
            if gaps:
                x = x * 10 ** (rng.normal(0, 4) / 20)
                out.append(np.zeros(int(rng.exponential(0.7) * self.rate), np.float32))
                have += len(out[-1])
            out.append(x)
            have += len(x)
        x = np.concatenate(out)[: int(1.5 * self.n)]
        if rng.random() < 0.7:
            x = self.stretch(x, 0.67, 1.45)
        if len(x) < self.n:
            x = np.tile(x, -(-self.n // len(x)))
        at = int(rng.integers(len(x) - self.n + 1))
        return x[at : at + self.n]

    def made(self):
        """Coloured noise, some of it modulated, or hum."""
        rng, n = self.rng, self.n
        if rng.random() < 0.3:
            f0 = rng.choice([50, 60, rng.uniform(40, 400)])
            t = np.arange(n) / self.rate
            x = np.zeros(n)
            for k in range(1, int(rng.integers(2, 30))):
                if k * f0 < 0.49 * self.rate:
                    x += rng.exponential() / k ** rng.uniform(0, 1.5) * np.sin(2 * np.pi * (k * f0 * t + rng.random()))
            return x.astype(np.float32) + 1e-3 * rng.standard_normal(n).astype(np.float32)
        m = next_fast_len(n, real=True)
        f = np.maximum(np.fft.rfftfreq(m, 1 / self.rate), 30)
        x = irfft(rfft(rng.standard_normal(m)) * f ** (-rng.uniform(-0.3, 1.2)), m)[:n]
        if rng.random() < 0.4:
            x = x * np.exp(np.interp(np.arange(n), np.linspace(0, n, 12), rng.normal(0, 1.0, 12)))
        return x.astype(np.float32)

    def power(self, x):
        m = self.rate // 50
        p = (x[: len(x) // m * m].reshape(-1, m) ** 2).mean(1)
        return float(p[p > 1e-3 * p.max()].mean()) if p.max() > 0 else 0.0

    def scene(self):
        """noisy, voice (float32, self.n samples) at a level of one, and whose voice it is."""
        rng = self.rng
        who = self.label("speech")
        x = self.voice(who)
        z = self.noise()
        p = float((z**2).mean())
        z = z / np.sqrt(p + 1e-12)
        if rng.random() < 0.3:
            w = self.noise()
            w = w / np.sqrt(float((w**2).mean()) + 1e-12)
            z = z + w * 10 ** (rng.uniform(-12, 0) / 20)
        other = rng.random() < 0.04
        if other:
            z = self.voice() + (0.05 * z if rng.random() < 0.5 else 0)
        if rng.random() < 0.3:
            z = filtered(z, self.colour(8))
        if rng.random() < 0.15:
            z = z * np.exp(np.interp(np.arange(self.n), np.linspace(0, self.n, 6), rng.normal(0, 0.8, 6))).astype(
                np.float32
            )
        if rng.random() < 0.4:
            room = self.label("room")

            def through(y):
                at, n = self.clip("room", room)
                r = np.asarray(self.data["room"][at : at + n])
                k = int(np.abs(r).argmax())
                if rng.random() < 0.3:
                    r = r * np.exp(-np.arange(len(r)) / self.rate * rng.uniform(0, 20)).astype(np.float32)
                r = r[max(0, k - 8) :]
                return convolve(y, r / np.sqrt((r**2).sum()))

            x = through(x)
            if rng.random() < 0.7:
                z = through(z)
        a, b = self.power(x), float((z**2).mean())
        if a == 0 or b == 0:
            return self.scene()
        u = rng.random()
        if other:
            snr = rng.uniform(5, 15)
        elif u < 0.03:
            snr = rng.uniform(30, 60)
        elif u < 0.8:
            snr = rng.uniform(-6, 20)
        else:
            snr = rng.uniform(0, 10)
        z = z * np.sqrt(a / b / 10 ** (snr / 10))
        y = x + z
        if rng.random() < 0.5:
            microphone = self.colour(6)
            x, y = filtered(x, microphone), filtered(y, microphone)
        s = 1 / np.sqrt(float((y**2).mean()) + 1e-12)
        x, y = x * s, y * s
        if rng.random() < 0.03:
            c = rng.uniform(2.0, 4.0)
            y = np.clip(y, -c, c)
        return y.astype(np.float32), x.astype(np.float32), who

    def mixture(self):
        """noisy, voice (float32, self.n samples), and the highest frequency that the recording has, Hz."""
        rng = self.rng
        y, x, _ = self.scene()
        u = rng.random()
        top = 4000 if u < 0.28 else rng.uniform(3300, 7500) if u < 0.34 else 8000
        if top == 4000 and rng.random() < 0.4:
            band = telephone(rng.uniform(150, 350), rng.uniform(3200, 3900), int(rng.integers(2, 9)))
            x, y = filtered(x, band), filtered(y, band)
        if top not in (4000, 8000):
            x, y = filtered(x, below(top)), filtered(y, below(top))
            y = y + (1e-5 * rng.standard_normal(self.n)).astype(np.float32)
        return y.astype(np.float32), x.astype(np.float32), 4000 if top == 4000 else 8000
