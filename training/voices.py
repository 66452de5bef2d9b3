"""Synthesises raised, shouted and whispered versions of speech, which free recordings lack.

Signals are mono float32 at `rate` Hz, and keep their length. `prepare.py` uses this module; `voices.py IN.flac OUT_FOLDER` writes one
version of each kind, for inspection.
"""

import argparse
import os

import numpy as np
import soundfile as sf
import soxr

from common import read_channels
from options import run

FRAME, HOP = 0.032, 0.008  # frames of the spectra, s
LIFTER = 0.0018  # highest quefrency of the spectral envelope, s


def stretched(x, factor, rate):
    """The signal `factor` times as long at the same pitch, by WSOLA (Verhelst and Roelands 1993)."""
    piece, search = int(0.03 * rate) // 2 * 2, int(0.006 * rate)
    step, window = piece // 2, np.hanning(piece + 1)[:-1].astype(np.float32)
    padded = np.pad(x, (search, piece + 2 * search))
    count = int(len(x) * factor / step) + 1
    out = np.zeros(count * step + piece, np.float32)
    want = None
    for k in range(count):
        at = min(int(k * step / factor), len(x) - 1) + search
        if want is not None:
            near = padded[at - search : at + search + step]
            fit = np.correlate(near, want[:step], "valid")
            fit = fit / np.sqrt(np.convolve(near**2, np.ones(step, np.float32), "valid") + 1e-9)
            at += int(fit.argmax()) - search
        out[k * step : k * step + piece] += padded[at : at + piece] * window
        want = padded[at + step : at + step + piece]
        if len(want) < piece:
            break
    return out[: int(len(x) * factor)]


def spectra(x, rate):
    n, hop = int(FRAME * rate), int(HOP * rate)
    window = np.hanning(n + 1)[:-1].astype(np.float32)
    padded = np.pad(x, (n, 2 * n))
    frames = np.lib.stride_tricks.sliding_window_view(padded, n)[::hop]
    return np.fft.rfft(frames * window), window, hop


def signal(spectrum, window, hop, length):
    n = len(window)
    frames = np.fft.irfft(spectrum, n).astype(np.float32) * window
    out = np.zeros(len(frames) * hop + n, np.float32)
    for k in range(n // hop):
        own = frames[:, k * hop : (k + 1) * hop].reshape(-1)
        out[k * hop : k * hop + len(own)] += own
    return out[n : n + length] / float((window**2).sum() / hop)


def envelopes(spectrum, rate):
    """Spectral envelopes: log magnitudes (frames x bins) smoothed in the cepstrum."""
    log = np.log(np.abs(spectrum) + 1e-5)
    cepstrum = np.fft.irfft(log, axis=1)
    keep = int(LIFTER * rate)
    cepstrum[:, keep + 1 : -keep] = 0
    return np.fft.rfft(cepstrum, axis=1).real


def warped(envelope, factor):
    """Envelopes with frequencies multiplied by `factor`."""
    bins = np.arange(envelope.shape[1]) / factor
    low = np.minimum(bins.astype(int), envelope.shape[1] - 2)
    part = np.clip(bins - low, 0, 1)
    return envelope[:, low] * (1 - part) + envelope[:, low + 1] * part


def tilt(hertz, decibels):
    """Amplitude gains with a slope of `decibels` per octave from 300 Hz to 3.5 kHz, and 1 at 1 kHz."""
    octaves = np.log2(np.clip(hertz, 300, 3500) / 1000)
    return 10 ** (decibels * octaves / 20)


def raised(x, pitch, formants, rate=16000, decibels=0.0):
    """Multiplies the fundamental by `pitch` and formants by `formants`; tilts the spectrum by `decibels` per octave."""
    y = stretched(x, pitch, rate)
    y = soxr.resample(y, rate * pitch, rate, quality="HQ").astype(np.float32)
    y = np.pad(y, (0, max(0, len(x) - len(y))))[: len(x)]
    spectrum, window, hop = spectra(y, rate)
    want = warped(envelopes(spectra(x, rate)[0], rate), formants)
    change = np.clip(want - envelopes(spectrum, rate), -5, 3)
    spectrum = spectrum * np.exp(change) * tilt(np.fft.rfftfreq(len(window), 1 / rate), decibels)
    return like(signal(spectrum, window, hop, len(x)), x)


def shouted(x, pitch, formants, decibels, roughness, rng, rate=16000):
    """Raised speech with less dynamic range; `roughness` (0 to 1) modulates it at 30 to 80 Hz, as in a scream."""
    y = raised(x, pitch, formants, rate, decibels)
    m = rate // 50
    level = np.sqrt(np.convolve(y**2, np.ones(m, np.float32) / m, "same")) + 1e-4
    # The limit keeps noise in pauses from being amplified.
    y = y * np.maximum(level / level.max(), 0.1) ** -0.35
    if roughness > 0:
        knots = rng.uniform(30, 80, len(y) // (rate // 8) + 2)
        hertz = np.interp(np.arange(len(y)), np.arange(len(knots)) * (rate // 8), knots)
        y = y * (1 - roughness * (0.5 + 0.5 * np.sin(2 * np.pi * np.cumsum(hertz) / rate)))
    return like(np.tanh(1.5 * y / (np.abs(y).max() + 1e-9)), x)


def whispered(x, rng, rate=16000):
    """Whispered speech: noise with the envelope of the voice, attenuated below 1 kHz, with a flatter spectrum and higher formants."""
    spectrum, window, hop = spectra(x, rate)
    envelope = warped(envelopes(spectrum, rate), rng.uniform(1.05, 1.2))
    noise, _, _ = spectra(rng.standard_normal(len(x)).astype(np.float32), rate)
    noise = noise / np.sqrt((window**2).sum())
    hertz = np.fft.rfftfreq(len(window), 1 / rate)
    high = 1 / np.sqrt(1 + (rng.uniform(350, 700) / np.maximum(hertz, 1)) ** 4)
    loud = envelope.mean(1, keepdims=True)
    loud = np.maximum(loud - loud.max(), -2.0)
    # Whispering has less dynamic range than voiced speech.
    gains = np.exp(envelope - 0.3 * loud) * high * tilt(hertz, rng.uniform(3, 6))
    return like(signal(noise * gains, window, hop, len(x)), x)


def like(y, x):
    """y scaled to the peak of x."""
    return (y * (np.abs(x).max() / (np.abs(y).max() + 1e-9))).astype(np.float32)


def make(x, rng, rate=16000):
    """A version of a random kind: (kind, samples)."""
    u = rng.random()
    if u < 0.25:
        return "whispered", whispered(x, rng, rate)
    pitch, formants = np.exp(rng.uniform(np.log(1.3), np.log(2.5))), rng.uniform(1.05, 1.3)
    if u < 0.6:
        return "raised", raised(x, pitch, formants, rate, rng.uniform(0, 4))
    roughness = rng.uniform(0.2, 0.8) if rng.random() < 0.4 else 0.0
    return "shouted", shouted(x, pitch, formants, rng.uniform(3, 9), roughness, rng, rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="IN.flac")
    parser.add_argument("folder", metavar="OUT_FOLDER")
    a = parser.parse_args()
    samples, at = read_channels(a.source, "float32")
    if len(samples) < FRAME * at:
        raise SystemExit(f"{a.source}: shorter than {FRAME} s")
    samples = samples.mean(1)
    os.makedirs(a.folder, exist_ok=True)
    draw = np.random.default_rng(0)
    made = dict(
        raised=raised(samples, 1.8, 1.15, at, 3.0),
        shouted=shouted(samples, 1.5, 1.2, 6.0, 0.0, draw, at),
        rough=shouted(samples, 2.2, 1.2, 6.0, 0.6, draw, at),
        whispered=whispered(samples, draw, at),
    )
    for name, values in made.items():
        sf.write(os.path.join(a.folder, name + ".flac"), values, at)


if __name__ == "__main__":
    run(main)
