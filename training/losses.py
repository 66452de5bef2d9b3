"""What a network is judged by: spectra, the signal-to-noise ratio, ESTOI, PESQ, DNSMOS. All on the device of what comes in."""

from functools import lru_cache

import numpy as np
import torch

import live
import loudness
from network import BINS, HALF, HOP, RATE, WINDOW, features, interpolation

SHORT_WINDOW, SHORT_HOP = loudness.WINDOW, loudness.HOP
ESTOI_SECONDS = 0.384
JUDGED = 4  # one in so many examples is judged by DNSMOS, which is a larger network than those that learn
SILENCE = 1e-6  # mean square, of mixtures of one: softer voices are none
LIVE_HOPS = (64, 128, 128, 128, 256)  # half the latency, samples


@lru_cache
def hann(window, device):
    return torch.hann_window(window, device=device)


@lru_cache
def spread_of(device):
    """Weights (bands x bins) that spread values of bands over bins."""
    return torch.from_numpy(interpolation()).to(device)


@lru_cache
def third_octaves(device):
    """Which bins of the short window (columns) are in which of 15 bands from 150 Hz on (rows)."""
    centre = 150 * 2 ** (np.arange(15)[:, None] / 3)
    hertz = np.arange(SHORT_WINDOW // 2 + 1) * RATE / SHORT_WINDOW
    rows = np.float32((centre * 2 ** (-1 / 6) <= hertz) & (hertz < centre * 2 ** (1 / 6)))
    return torch.from_numpy(rows).to(device)


def stft(x, window, hop):
    return torch.stft(x, window, hop, window=hann(window, x.device), center=True, return_complex=True, pad_mode="constant")


def compressed_error(estimate, reference):
    """Both (..., 2): squared distances of spectra compressed by the power 0.3, of their magnitudes, and of lost magnitude."""
    p = torch.log(estimate[..., 0] ** 2 + estimate[..., 1] ** 2 + 1e-7)
    q = torch.log(reference[..., 0] ** 2 + reference[..., 1] ** 2 + 1e-7)
    distance = estimate * torch.exp(-0.35 * p)[..., None] - reference * torch.exp(-0.35 * q)[..., None]
    magnitude, expected = torch.exp(0.15 * p), torch.exp(0.15 * q)
    lost = torch.relu(expected - magnitude)
    return (0.4 * distance.square().sum(-1) + 0.6 * (magnitude - expected) ** 2 + 0.3 * lost**2).mean()


# Not before there is a loss: a process that needs none would wait longer for the compiler's import than for all others.
@lru_cache
def compiled_error():
    return torch.compile(compressed_error, dynamic=True)


def spectral_loss(estimate, reference):
    return compiled_error()(torch.view_as_real(estimate), torch.view_as_real(reference))


def intelligibility(estimate, reference, hop):
    """ESTOI (Jensen and Taal 2016) of spectra (examples x bins x frames) of the short window in place of 25.6 ms, `hop` samples
    apart in place of 12.8 ms: without the frames that lack voice, the correlation of third octaves over 384 ms, normalised
    over time, then over bands. Of the examples that have voice enough; zero if none has."""
    length = round(ESTOI_SECONDS * RATE / hop)
    bands = third_octaves(estimate.device)
    power = torch.stack([bands @ x.abs().square() for x in (estimate, reference)], 1)
    energy = reference.abs().square().sum(1)
    spoken = energy > 1e-4 * energy.amax(1, keepdim=True) + 1e-9
    # Frames with voice first, in their order.
    order = torch.argsort((~spoken).to(torch.int8), dim=1, stable=True)
    power = power.gather(3, order[:, None, None].expand_as(power))
    if power.shape[3] < length:
        return power.new_zeros(())
    segments = (power + 1e-9).sqrt().unfold(3, length, length // 4)
    for axis in (4, 2):
        segments = segments - segments.mean(axis, keepdim=True)
        segments = segments / (segments.square().sum(axis, keepdim=True) + 1e-12).sqrt()
    scores = (segments[:, 0] * segments[:, 1]).sum(1).mean(2)
    ends = torch.arange(scores.shape[1], device=scores.device) * (length // 4) + length
    valid = (ends <= spoken.sum(1, keepdim=True)).to(scores.dtype)
    of_example = (scores * valid).sum(1) / valid.sum(1).clamp(min=1)
    some = valid[:, 0]
    return (of_example * some).sum() / some.sum().clamp(min=1)


def ratio_of(voice, error, axes):
    """The mean signal-to-noise ratio in dB of the examples with a voice; none counts beyond 40 dB."""
    signal, error = voice.square().mean(axes), error.square().mean(axes)
    return mean_over(10 * torch.log10(signal / (error + 1e-4 * signal + 1e-9) + 1e-6), signal > SILENCE)


def mean_over(values, some):
    """The mean of some of the values; zero of none."""
    return torch.where(some, values, torch.zeros_like(values)).sum() / some.sum().clamp(min=1)


def opinion(judge, estimate, voice, signal_of=lambda x: x):
    """DNSMOS of a part of a batch (see `dnsmos.Judge.no_better_than`), after `signal_of` has made signals of it; zero without a judge."""
    some = max(1, len(voice) // JUDGED)
    if not judge:
        return estimate.new_zeros(())
    estimate, voice = signal_of(estimate[:some]), signal_of(voice[:some])
    return mean_over(judge.no_better_than(estimate, voice), voice.square().mean(1) > SILENCE)


def losses_of(gain, Y, X, judge=None):
    """What `losses` gives, of gains, spectra of mixtures, and spectra of their voices (examples x bins x frames)."""
    S, length = gain * Y, HOP * (Y.shape[2] - 1)
    s, x = (torch.istft(Z, WINDOW, HOP, window=hann(WINDOW, Z.device), length=length) for Z in (S, X))
    fine = [stft(z, SHORT_WINDOW, SHORT_HOP) for z in (s, x)]
    estoi, pesq = intelligibility(*fine, SHORT_HOP), mean_over(loudness.quality(*fine), x.square().mean(1) > SILENCE)
    return spectral_loss(S, X), spectral_loss(*fine), ratio_of(x, s - x, 1), estoi, pesq, opinion(judge, s, x)


def losses(net, noisy, voice, half, judge=None):
    """Of a batch (examples x samples; half: which are recordings at 8 kHz): at the long window, at the short one, the
    signal-to-noise ratio in dB, ESTOI, PESQ before its last map, DNSMOS."""
    Y, X = stft(noisy, WINDOW, HOP), stft(voice, WINDOW, HOP)
    frames = Y.shape[2] // 2 * 2
    # Recordings at 8 kHz have no upper half.
    present = torch.ones(len(half), BINS, 1, device=noisy.device)
    present[half, HALF:] = 0
    Y, X = Y[..., :frames] * present, X[..., :frames] * present
    with torch.no_grad():
        seen = features((Y.abs() ** 2).transpose(1, 2), half)
    gain = torch.sigmoid((net(seen).float() @ spread_of(noisy.device)).transpose(1, 2))
    return losses_of(gain, Y, X, judge)


def live_losses(net, noisy, voice, half, rng, judge=None):
    """The same of a network that knows the past alone: of what every frame gives out."""
    hop = int(rng.choice(LIVE_HOPS))
    analysis, synthesis = (w.to(noisy.device) for w in live.windows(hop))
    Y, X = live.frames(noisy, analysis), live.frames(voice, analysis)
    present = torch.ones(len(half), 1, BINS, device=noisy.device)
    present[half, :, HALF:] = 0
    Y, X = Y * present, X * present
    # Recordings are as loud as they are: the statistics have a range.
    with torch.no_grad():
        seen = live.features(Y.abs() ** 2 * 10 ** rng.uniform(-4.5, -0.5), half)
    S = torch.sigmoid(net(seen).float() @ spread_of(noisy.device)) * Y
    # As loud as with the other windows.
    long = spectral_loss(20 * S, 20 * X)
    waves = [torch.fft.irfft(Z) for Z in (S, X)]
    s, x = (wave[..., -2 * hop :] * synthesis for wave in waves)
    fine = [torch.fft.rfft(z, SHORT_WINDOW).transpose(1, 2) for z in (s, x)]
    estoi, pesq = intelligibility(*fine, HOP), mean_over(loudness.quality(*fine), x.square().mean((1, 2)) > SILENCE)
    overall = opinion(judge, *waves, lambda wave: live.continuous(wave, analysis, hop))
    return long, spectral_loss(*fine), ratio_of(x, s - x, (1, 2)), estoi, pesq, overall
