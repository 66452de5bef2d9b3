"""Batches of training mixtures, computed on the training device: clean speech with noise, room responses, spectral colouring, level
changes and distortion. Shapes are (examples, samples). A seed gives the same mixtures on the same type of device: numpy draws the
choices, the generator of the device draws white noise."""

import numpy as np
import torch
from scipy.fft import next_fast_len

from recordings import Recordings, render, Plan, index_of

PIECES = 10  # maximum number of clips in a track
NOISES = 3  # maximum number of noises in an example
MADE_KNOTS = 12  # level changes of synthetic noise, per example
GUST_KNOTS = 24  # level changes of synthetic wind, per example
RUMBLE_HERTZ = 75  # the signal-to-noise ratio excludes noise below, as the scores do
FADE = dict(speech=20, noise=200)  # samples


def active_power(x, rate):
    """Mean power, per example, of the 20 ms frames within 30 dB of the loudest; zero for silence."""
    m = rate // 50
    p = x[:, : x.shape[1] // m * m].reshape(len(x), -1, m).square().mean(2)
    spoken = p > 1e-3 * p.amax(1, keepdim=True)
    return (p * spoken).sum(1) / spoken.sum(1).clamp(min=1)


def interpolated(knots, samples):
    """Linear interpolation of equidistant values (examples, knots) to this number of samples."""
    return torch.nn.functional.interpolate(knots[:, None], samples, mode="linear", align_corners=True)[:, 0]


def mu_law(x):
    """Quantisation to 8 bits by mu-law, as in telephony, relative to the peak."""
    peak = x.abs().amax(1, keepdim=True) + 1e-9
    y = torch.sign(x) * torch.log1p(255 * (x / peak).abs()) / np.log(256)
    y = torch.round(y * 127) / 127
    return torch.sign(y) * (torch.exp(y.abs() * np.log(256)) - 1) / 255 * peak


def holes(x, threshold):
    """Removes bins that are `threshold` (dB, by example) below the maximum of their neighbourhood, as low-bitrate codecs do."""
    window = torch.hann_window(512, device=x.device)
    spectrum = torch.stft(x, 512, 256, window=window, return_complex=True)
    level = spectrum.abs()
    near = torch.nn.functional.max_pool2d(level[:, None], (17, 3), 1, (8, 1))[:, 0]
    kept = spectrum * (level > near * 10 ** (-threshold[:, None, None] / 20))
    return torch.istft(kept, 512, 256, window=window, length=x.shape[1])


class Batch:
    """`noisy` and its `voice` (examples x samples, float32, mixtures of mean square 1); `half`: which examples are recordings at 8 kHz;
    `who`: indices of the speakers; `parts`: the noise."""

    def __init__(self, noisy, voice, half, who, parts=None):
        self.noisy, self.voice, self.half, self.who, self.parts = noisy, voice, half, who, parts

    def __getitem__(self, some):
        """The batch of some of the examples."""
        return Batch(*(of[some] for of in (self.noisy, self.voice, self.half, self.who, self.parts)))


class Mixer:
    def __init__(self, folder, seed, seconds=5.0, device="cpu"):
        self.rate = index_of(folder)["rate"]
        self.rng, self.device = np.random.default_rng(seed), torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(int(np.random.default_rng(seed).integers(1 << 62)))
        self.samples = int(seconds * self.rate)
        self.speech, self.noise, self.room = (Recordings(folder, kind, self.device) for kind in ("speech", "noise", "room"))
        self.reach = min(int(1.2 * self.rate), int(self.room.length.max()))
        self.size = next_fast_len(self.samples + self.reach, real=True)
        self.hertz = torch.fft.rfftfreq(self.size, 1 / self.rate, device=self.device)
        positions = torch.linspace(0, 1, len(self.hertz), device=self.device) ** 0.5
        self.waves = torch.stack([torch.cos(np.pi * k * positions) / (k + 1) for k in range(1, 6)])

    def tensor(self, values):
        return torch.as_tensor(np.asarray(values), dtype=torch.float32, device=self.device)

    def white(self, *shape):
        return torch.randn(shape, device=self.device, generator=self.generator)

    def chosen(self, n, share):
        return self.rng.random(n) < share

    # --- sources --------------------------------------------------------------------------------------------------

    def voices(self, labels, pauses=True):
        """Speech of one speaker per track: clips with pauses, at different speeds, some with sudden level changes."""
        rng, n = self.rng, len(labels)
        at, length = self.speech.clips(rng, np.repeat(labels[:, None], PIECES, 1), self.samples)
        gaps = rng.exponential(np.where(self.rng.random((n, PIECES)) < 0.8, 0.25, 1.0))
        gaps[:, 0] = np.where(pauses & self.chosen(n, 0.5), rng.uniform(0, 1.2, n), 0)
        spread = np.where(self.chosen(n, 0.12), 12.0, 3.0)[:, None]
        gain = 10 ** (rng.uniform(-1, 1, at.shape) * spread / 20)
        ratio = np.where(self.chosen(n, 0.5), np.exp(rng.uniform(np.log(0.88), np.log(1.14), n)), 1.0)
        plan = Plan.of(at, length, gaps * self.rate, gain, ratio)
        return render(self.speech, plan, self.samples, FADE["speech"])

    def silenced(self, x):
        """Speech, of which some starts late, some ends early and some is absent."""
        rng, n = self.rng, len(x)
        time, at = torch.arange(self.samples, device=self.device)[None], rng.uniform(0.2, 0.8, n) * self.samples
        u = rng.random(n)
        first, last = np.where(u < 0.035, at, 0), np.where((u >= 0.035) & (u < 0.07), at, self.samples)
        first = np.where((u >= 0.07) & (u < 0.1), self.samples, first)
        fade = FADE["speech"]
        inside = torch.minimum(time - self.tensor(first)[:, None], self.tensor(last)[:, None] - time).clamp(0, fade) / fade
        whole = torch.as_tensor(u >= 0.1, device=self.device)[:, None]
        return torch.where(whole, x, x * inside)

    def recorded(self, n):
        """Recorded noise; some events and impacts have pauses between them."""
        rng = self.rng
        labels = self.noise.draw(rng, n)
        at, length = self.noise.clips(rng, np.repeat(labels[:, None], PIECES, 1), int(1.5 * self.samples))
        rare = np.array([self.noise.labels[k].startswith(("event", "impulsive")) for k in labels]) & self.chosen(n, 0.4)
        gaps = np.where(rare[:, None], rng.exponential(0.7, at.shape), 0) * self.rate
        gain = np.where(rare[:, None], 10 ** (rng.normal(0, 4, at.shape) / 20), 1)
        ratio = np.where(self.chosen(n, 0.7), np.exp(rng.uniform(np.log(0.6), np.log(1.7), n)), 1.0)
        # Clips shorter than the track are repeated.
        short = length.sum(1) < self.samples * ratio
        plan = Plan.of(at, length, gaps, gain, ratio)
        x = render(self.noise, plan, self.samples, FADE["noise"])
        if short.any():
            lasts = ((length / ratio[:, None] + gaps).sum(1)[short]).astype(int).clip(min=1)
            time = torch.arange(self.samples, device=self.device)
            again = time[None] % torch.as_tensor(lasts, device=self.device)[:, None]
            rows = torch.as_tensor(np.flatnonzero(short), device=self.device)
            x[rows] = x[rows].gather(1, again)
        # Reversed noise is a noise, too.
        rows = torch.as_tensor(np.flatnonzero(self.chosen(n, 0.2)), device=self.device)
        x[rows] = x[rows].flip(1)
        return x

    def babble(self, n):
        # With two voices, either could be the target.
        count = self.rng.choice([3, 4, 6, 8], n)
        owner = torch.as_tensor(np.repeat(np.arange(n), count), device=self.device)
        single = self.voices(self.speech.draw(self.rng, len(owner)), pauses=False)
        gain = self.tensor(10 ** (self.rng.normal(0, 3, len(owner)) / 20))
        return torch.zeros(n, self.samples, device=self.device).index_add_(0, owner, single * gain[:, None])

    def made(self, n):
        """Synthetic noise: coloured, some of it modulated; wind gusts; hum."""
        rng, samples = self.rng, self.samples
        wind = self.chosen(n, 0.3)
        slope = self.tensor(np.where(wind, rng.uniform(1.5, 3, n), rng.uniform(-0.3, 1.2, n)))[:, None]
        white = torch.fft.rfft(self.white(n, samples), self.size)
        x = torch.fft.irfft(white * self.hertz.clamp(min=30) ** -slope, self.size)[:, :samples]
        moved = self.tensor(np.where(wind | self.chosen(n, 0.4), 1.0, 0.0))[:, None]
        gusty = torch.as_tensor(wind, device=self.device)[:, None]
        swell = torch.where(gusty, interpolated(self.white(n, GUST_KNOTS), samples), interpolated(self.white(n, MADE_KNOTS), samples))
        x = x * torch.exp(moved * swell)
        hums = np.flatnonzero(self.chosen(n, 0.3) & ~wind)
        if len(hums):
            f0 = np.choose(rng.integers(0, 3, len(hums)), [50.0, 60.0, rng.uniform(40, 400, len(hums))])
            k = np.arange(1, 30)
            power = rng.exponential(1, (len(hums), 29)) / k ** rng.uniform(0, 1.5, (len(hums), 1))
            power *= (k * f0[:, None] < 0.49 * self.rate) & (k < rng.integers(2, 30, (len(hums), 1)) + 1)
            time = torch.arange(samples, device=self.device, dtype=torch.float32) / self.rate
            tone = sum(
                self.tensor(power[:, i])[:, None]
                * torch.sin(2 * np.pi * ((i + 1) * self.tensor(f0)[:, None] * time + self.tensor(rng.random(len(hums)))[:, None]))
                for i in range(29)
            )
            x[torch.as_tensor(hums, device=self.device)] = tone + 1e-3 * self.white(len(hums), samples)
        return x

    def noises(self, n):
        """n noises of mean square 1: recorded, babble or synthetic."""
        u = self.rng.random(n)
        z = torch.zeros(n, self.samples, device=self.device)
        for those, source in ((u < 0.1, self.babble), ((u >= 0.1) & (u < 0.2), self.made), (u >= 0.2, self.recorded)):
            if those.any():
                z[torch.as_tensor(np.flatnonzero(those), device=self.device)] = source(int(those.sum()))
        z = z / (z.square().mean(1, keepdim=True) + 1e-12).sqrt()
        # Some have the level envelope of another noise.
        like = torch.as_tensor(np.flatnonzero(self.chosen(n, 0.1)), device=self.device)
        if len(like):
            level = torch.nn.functional.avg_pool1d(z[(like + 1) % n, None].square(), self.rate // 25, self.rate // 50)[:, 0].sqrt()
            z[like] *= 0.1 + interpolated(level, self.samples)
            z[like] /= (z[like].square().mean(1, keepdim=True) + 1e-12).sqrt()
        return z

    # --- transfer functions -----------------------------------------------------------------------------------------------------

    def colours(self, decibels):
        """Smooth random frequency responses (examples x frequencies) with these standard deviations, dB."""
        weights = self.tensor(self.rng.normal(0, 1, (len(decibels), 5)) * np.asarray(decibels)[:, None])
        return 10 ** (weights @ self.waves / 20)

    def rooms(self, n, far):
        """Responses of n rooms (examples x frequencies) at two positions each, half of them synthetic; `far`: gain of the direct sound."""
        recorded = torch.as_tensor(self.chosen(n, 0.5), device=self.device)[:, None]
        labels = self.room.draw(self.rng, n)
        decay = self.decays(n)
        places = (torch.where(recorded, self.recorded_rooms(labels), self.made_rooms(decay)) for _ in range(2))
        return [self.from_peak(place, far) for place in places]

    def recorded_rooms(self, labels):
        """Recorded responses of the rooms with these labels (examples x samples)."""
        at, length = self.room.clips(self.rng, labels[:, None], self.reach)
        ones = np.ones((len(labels), 1))
        return render(self.room, Plan(at, length, 0 * ones, ones, ones[:, 0]), self.reach, 1)

    def decays(self, n):
        """Decay rates of synthetic rooms below and above about 1.5 kHz (examples x 1 each), nepers per sample; RT60 of 0.15 to 1.2 s."""
        seconds = np.exp(self.rng.uniform(np.log(0.15), np.log(1.2), n))
        above = seconds * self.rng.uniform(0.4, 1.0, n)
        return [self.tensor(np.log(1e3) / (self.rate * of))[:, None] for of in (seconds, above)]

    def made_rooms(self, decay):
        """Synthetic responses with these decay rates (examples x samples): direct sound, early reflections, decaying noise."""
        rng, n = self.rng, len(decay[0])
        time = torch.arange(self.reach, device=self.device)[None]
        white = torch.fft.rfft(self.white(n, self.reach), self.size)
        above = (self.hertz / 1500).square()
        parts = [white / (1 + above), white * (above / (1 + above))]
        low, high = (torch.fft.irfft(part, self.size)[:, : self.reach] * torch.exp(-d * time) for part, d in zip(parts, decay))
        ratio_db = self.tensor(rng.uniform(-5, 15, n))[:, None]
        tail = low + high
        # The tail starts after the direct sound.
        tail = tail * (time > self.tensor(rng.uniform(0.002, 0.01, n) * self.rate)[:, None])
        early = torch.as_tensor(rng.integers(8, int(0.03 * self.rate), (n, 6)), device=self.device)
        tail = tail.scatter_add(1, early, self.tensor(rng.normal(0, 1, (n, 6))) * tail.abs().amax(1, keepdim=True))
        tail = tail / (tail.square().sum(1, keepdim=True) + 1e-12).sqrt()
        tail[:, 0] = 10 ** (ratio_db[:, 0] / 20)
        return tail

    def from_peak(self, r, far):
        """Spectra of responses (examples x samples) from their peak, normalised to unit energy; some are damped."""
        rng, n = self.rng, len(r)
        time = torch.arange(self.reach, device=self.device)[None]
        peak = r.abs().argmax(1, keepdim=True)
        shifted = (time + peak - 8).clamp(0, self.reach - 1)
        r = r.gather(1, shifted) * (time + peak - 8 < self.reach)
        decay = self.tensor(np.where(self.chosen(n, 0.3), rng.uniform(0, 20, n), 0))[:, None]
        direct = torch.where(time < 8 + self.rate // 400, self.tensor(far)[:, None], torch.ones((), device=self.device))
        r = r * torch.exp(-decay * time / self.rate) * direct
        return torch.fft.rfft(r / (r.square().sum(1, keepdim=True) + 1e-12).sqrt(), self.size)

    def through(self, x, response):
        return torch.fft.irfft(torch.fft.rfft(x, self.size) * response, self.size)[:, : self.samples]

    def snr(self, n, other):
        """Signal-to-noise ratios, dB; positive where the noise is another voice (`other`)."""
        rng, u = self.rng, self.rng.random(n)
        snr = rng.uniform(-6, 20, n)
        for below, low, high in ((0.33, 0, 12), (0.13, 20, 30), (0.07, -10, -4), (0.03, 30, 60)):
            snr = np.where(u < below, rng.uniform(low, high, n), snr)
        return np.where(other, rng.uniform(3, 15, n), snr)

    def scene(self, n):
        """Mixture, speech, speakers and noise, before band limits and distortion."""
        rng, one = self.rng, torch.ones((), device=self.device)
        who = self.speech.draw(rng, n)
        x = self.silenced(self.voices(who))
        levels = 10 ** (rng.uniform(-12, 0, (n, NOISES)) / 20)
        levels[:, 0] = 1
        levels *= np.stack([np.ones(n, bool), self.chosen(n, 0.4), self.chosen(n, 0.12)], 1)
        slots = np.flatnonzero(levels.reshape(-1) > 0)
        z = torch.zeros(n, self.samples, device=self.device)
        gain = self.tensor(levels.reshape(-1)[slots])[:, None]
        z.index_add_(0, torch.as_tensor(slots // NOISES, device=self.device), self.noises(len(slots)) * gain)
        other = self.chosen(n, 0.04)
        if other.any():
            rows = torch.as_tensor(np.flatnonzero(other), device=self.device)
            quiet = self.tensor(np.where(self.chosen(len(rows), 0.5), 0.05, 0))[:, None]
            z[rows] = self.voices(self.speech.draw(rng, len(rows))) * 5 + quiet * z[rows]
        moved = self.tensor(np.where(self.chosen(n, 0.15), 0.8, 0))[:, None]
        z = z * torch.exp(moved * interpolated(self.white(n, 6), self.samples))
        # Room and microphone responses; colouring of speech and of noise alone.
        voice_way = self.colours(np.where(self.chosen(n, 0.15), 5.0, 0))
        noise_way = self.colours(np.where(self.chosen(n, 0.3), 8.0, 0))
        inside = np.flatnonzero(self.chosen(n, 0.4))
        voice_way, noise_way = voice_way.to(torch.complex64), noise_way.to(torch.complex64)
        if len(inside):
            rows = torch.as_tensor(inside, device=self.device)
            far = np.where(self.chosen(len(inside), 0.25), rng.uniform(0.2, 0.7, len(inside)), 1.0)
            too = self.chosen(len(inside), 0.7)
            voice_room, noise_room = self.rooms(len(inside), far)
            voice_way[rows] *= voice_room
            noise_way[rows[torch.as_tensor(too, device=self.device)]] *= noise_room[torch.as_tensor(too, device=self.device)]
        microphone = self.colours(np.where(self.chosen(n, 0.5), 6.0, 0))
        x, z = self.through(x, voice_way * microphone), self.through(z, noise_way * microphone)
        a, b = active_power(x, self.rate), self.through(z, (self.hertz >= RUMBLE_HERTZ).to(torch.complex64)).square().mean(1)
        # The level of another voice excludes its pauses.
        b = torch.where(torch.as_tensor(other, device=self.device), active_power(z, self.rate), b)
        # Without speech, the noise has mean square 1.
        goal = torch.where(a > 0, a, one)
        z = z * (goal / (b + 1e-12) / 10 ** (self.tensor(self.snr(n, other)) / 10)).sqrt()[:, None]
        y = x + z
        scale = (y.square().mean(1, keepdim=True) + 1e-12).rsqrt()
        return y * scale, x * scale, who, z * scale

    def batches(self, n, ahead=1):
        """An endless iterator of batches of n; `ahead` batches are mixed at once, which takes an accelerator no longer than one."""
        while True:
            several = self.batch(n * ahead)
            for i in range(ahead):
                yield several[i * n : (i + 1) * n]

    def batch(self, n):
        """A `Batch` of mixtures, some of them band-limited or distorted."""
        rng = self.rng
        y, x, who, z = self.scene(n)
        clipped = self.tensor(np.where(self.chosen(n, 0.03), rng.uniform(2, 4, n), 1e9))[:, None]
        y = y.clamp(-clipped, clipped)
        u = rng.random(n)
        half = u < 0.15
        top = np.where(half, 4000.0, np.where(u < 0.23, rng.uniform(3300, 7500, n), self.rate))
        line = self.chosen(n, 0.06)  # telephone band
        narrow = np.flatnonzero((u < 0.23) | line)
        if len(narrow):
            rows = torch.as_tensor(narrow, device=self.device)
            k = len(narrow)
            low, high = self.tensor(rng.uniform(150, 350, k))[:, None], self.tensor(rng.uniform(3200, 3900, k))[:, None]
            order = self.tensor(rng.integers(2, 9, k))[:, None]
            f = self.hertz.clamp(min=1)
            band = 1 / (1 + (low / f) ** (2 * order) + (f / high) ** (8 * order).clamp(max=30)).sqrt()
            band = torch.where(torch.as_tensor(line[narrow], device=self.device)[:, None], band, torch.ones_like(band))
            band = band * (self.hertz < self.tensor(top[narrow])[:, None])
            x[rows], y[rows] = self.through(x[rows], band), self.through(y[rows], band)
            # A high band that is present is not digitally silent.
            y[rows] += self.tensor(np.where(half[narrow], 0, 1e-5))[:, None] * self.white(k, self.samples)
        u = rng.random(n)
        for those, damage in (
            (u < 0.03, mu_law),
            ((u >= 0.03) & (u < 0.07), lambda v: holes(v, self.tensor(rng.uniform(15, 35, len(v))))),
        ):
            if those.any():
                rows = torch.as_tensor(np.flatnonzero(those), device=self.device)
                y[rows] = damage(y[rows])
        return Batch(y, x, torch.as_tensor(half, device=self.device), who, z)
