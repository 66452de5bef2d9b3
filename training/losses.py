"""Loss terms: spectral distances, signal-to-noise ratio, ESTOI, PESQ, DNSMOS. They are computed on the device of their inputs."""

from functools import lru_cache

import numpy as np
import torch

import live
import loudness
from network import BINS, HALF, HOP, RATE, WINDOW, features, interpolation

SHORT_WINDOW, SHORT_HOP = loudness.WINDOW, loudness.HOP
ESTOI_SECONDS = 0.384
JUDGED = 4  # DNSMOS is computed for one in 4 examples, as its network is larger than the trained ones
SILENCE = 1e-6  # mean square below which a mixture of mean square 1 has no speech
LIVE_HOPS = (64, 128, 128, 128, 256)  # half the latency, samples


@lru_cache
def hann(window, device):
    return torch.hann_window(window, device=device)


@lru_cache
def spread_of(device):
    """Weights (bands x bins) of the interpolation from bands to bins."""
    return torch.from_numpy(interpolation()).to(device)


@lru_cache
def third_octaves(device):
    """Membership of the bins of the short window (columns) in 15 third-octave bands from 150 Hz (rows)."""
    centre = 150 * 2 ** (np.arange(15)[:, None] / 3)
    hertz = np.arange(SHORT_WINDOW // 2 + 1) * RATE / SHORT_WINDOW
    rows = np.float32((centre * 2 ** (-1 / 6) <= hertz) & (hertz < centre * 2 ** (1 / 6)))
    return torch.from_numpy(rows).to(device)


def stft(x, window, hop):
    return torch.stft(x, window, hop, window=hann(window, x.device), center=True, return_complex=True, pad_mode="constant")


def compressed_error(estimate, reference):
    """Mean squared distance of spectra (..., 2) compressed by the power 0.3, of their magnitudes, and of the lost magnitude."""
    p = torch.log(estimate[..., 0] ** 2 + estimate[..., 1] ** 2 + 1e-7)
    q = torch.log(reference[..., 0] ** 2 + reference[..., 1] ** 2 + 1e-7)
    distance = estimate * torch.exp(-0.35 * p)[..., None] - reference * torch.exp(-0.35 * q)[..., None]
    magnitude, expected = torch.exp(0.15 * p), torch.exp(0.15 * q)
    lost = torch.relu(expected - magnitude)
    return (0.4 * distance.square().sum(-1) + 0.6 * (magnitude - expected) ** 2 + 0.3 * lost**2).mean()


# Compiled at the first use: importing the compiler takes longer than all other imports.
@lru_cache
def compiled_error():
    return torch.compile(compressed_error, dynamic=True)


def spectral_loss(estimate, reference):
    return compiled_error()(torch.view_as_real(estimate), torch.view_as_real(reference))


def intelligibility(estimate, reference, hop):
    """ESTOI (Jensen and Taal 2016) of spectra (examples x bins x frames) of the short window in place of 25.6 ms, `hop` samples
    apart in place of 12.8 ms. Frames without speech are removed; the third octaves of 384 ms are normalised over time, then over
    bands, and correlated. The mean over the examples with enough speech; zero without any."""
    length = round(ESTOI_SECONDS * RATE / hop)
    bands = third_octaves(estimate.device)
    power = torch.stack([bands @ x.abs().square() for x in (estimate, reference)], 1)
    energy = reference.abs().square().sum(1)
    spoken = energy > 1e-4 * energy.amax(1, keepdim=True) + 1e-9
    # Frames with speech first, in their order.
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
    """The mean signal-to-noise ratio of the examples with speech, at most 40 dB each."""
    signal, error = voice.square().mean(axes), error.square().mean(axes)
    return mean_over(10 * torch.log10(signal / (error + 1e-4 * signal + 1e-9) + 1e-6), signal > SILENCE)


def mean_over(values, some):
    """The mean of the selected values; zero without any."""
    return torch.where(some, values, torch.zeros_like(values)).sum() / some.sum().clamp(min=1)


def opinion(judge, estimate, voice, signal_of=lambda x: x):
    """DNSMOS of a part of a batch (see `dnsmos.Judge.no_better_than`), which `signal_of` converts to signals; zero without a judge."""
    some = max(1, len(voice) // JUDGED)
    if not judge:
        return estimate.new_zeros(())
    estimate, voice = signal_of(estimate[:some]), signal_of(voice[:some])
    return mean_over(judge.no_better_than(estimate, voice), voice.square().mean(1) > SILENCE)


def losses_of(gain, Y, X, judge=None):
    """The terms of `losses` for gains, spectra of mixtures and spectra of their speech (examples x bins x frames)."""
    S, length = gain * Y, HOP * (Y.shape[2] - 1)
    s, x = (torch.istft(Z, WINDOW, HOP, window=hann(WINDOW, Z.device), length=length) for Z in (S, X))
    fine = [stft(z, SHORT_WINDOW, SHORT_HOP) for z in (s, x)]
    estoi, pesq = intelligibility(*fine, SHORT_HOP), mean_over(loudness.quality(*fine), x.square().mean(1) > SILENCE)
    return spectral_loss(S, X), spectral_loss(*fine), ratio_of(x, s - x, 1), estoi, pesq, opinion(judge, s, x)


def losses(net, noisy, voice, half, judge=None):
    """Loss terms of a batch (examples x samples; `half`: which are recordings at 8 kHz): spectral distances with the long and the short
    window, signal-to-noise ratio in dB, ESTOI, PESQ before its output mapping, DNSMOS."""
    Y, X = stft(noisy, WINDOW, HOP), stft(voice, WINDOW, HOP)
    frames = Y.shape[2] // 2 * 2
    # Recordings at 8 kHz lack the upper half of the bins.
    present = torch.ones(len(half), BINS, 1, device=noisy.device)
    present[half, HALF:] = 0
    Y, X = Y[..., :frames] * present, X[..., :frames] * present
    with torch.no_grad():
        seen = features((Y.abs() ** 2).transpose(1, 2), half)
    gain = torch.sigmoid((net(seen).float() @ spread_of(noisy.device)).transpose(1, 2))
    return losses_of(gain, Y, X, judge)


def live_losses(net, noisy, voice, half, rng, judge=None):
    """Like `losses`, for the causal network and the output of each frame."""
    hop = int(rng.choice(LIVE_HOPS))
    analysis, synthesis = (w.to(noisy.device) for w in live.windows(hop))
    Y, X = live.frames(noisy, analysis), live.frames(voice, analysis)
    present = torch.ones(len(half), 1, BINS, device=noisy.device)
    present[half, :, HALF:] = 0
    Y, X = Y * present, X * present
    # Statistics have a limited range, so levels vary.
    with torch.no_grad():
        seen = live.features(Y.abs() ** 2 * 10 ** rng.uniform(-4.5, -0.5), half)
    S = torch.sigmoid(net(seen).float() @ spread_of(noisy.device)) * Y
    # The scale of the spectra of `losses`.
    long = spectral_loss(20 * S, 20 * X)
    waves = [torch.fft.irfft(Z) for Z in (S, X)]
    s, x = (wave[..., -2 * hop :] * synthesis for wave in waves)
    fine = [torch.fft.rfft(z, SHORT_WINDOW).transpose(1, 2) for z in (s, x)]
    estoi, pesq = intelligibility(*fine, HOP), mean_over(loudness.quality(*fine), x.square().mean((1, 2)) > SILENCE)
    overall = opinion(judge, *waves, lambda wave: live.continuous(wave, analysis, hop))
    return long, spectral_loss(*fine), ratio_of(x, s - x, (1, 2)), estoi, pesq, overall
