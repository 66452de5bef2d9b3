"""Helpers of several scripts, of eval/ too: new folders, reading, parts and bands of signals, levels of speech, SI-SDR, means with their
errors, logistic regression."""

from pathlib import Path

import numpy as np
import soundfile
import soxr
from scipy.optimize import minimize

RATE = 16_000  # Hz, of `is_speech`
SPEECH_DB, SMOOTHED_SECONDS = -40, 0.05
SILENCE = 1e-20  # power


def read_channels(path, dtype="float64"):
    """Samples (samples x channels), and their rate."""
    try:
        return soundfile.read(path, dtype=dtype, always_2d=True)
    # A damaged header may claim more samples than fit.
    except (soundfile.LibsndfileError, MemoryError) as error:
        raise OSError(f"{path}: {getattr(error, 'error_string', error)}")


def read_exactly(path, rate, samples=None, channels=1, dtype="float64"):
    """Samples (samples x channels) of a file with that rate, and so many samples and channels."""
    x, own = read_channels(path, dtype)
    if own != rate or x.shape[1] != channels or samples not in (None, len(x)):
        count = "" if samples is None else f"{samples} samples of "
        raise SystemExit(f"{path}: expected {count}{channels} channel{'s'[: channels - 1]} at {rate} Hz")
    return x


def read_mono(path, rate, quality="VHQ"):
    """The mean of all channels (float64) at a sample rate."""
    samples, own = read_channels(path)
    samples = samples.mean(1)
    return soxr.resample(samples, own, rate, quality=quality) if own != rate else samples


def loud_mono(x):
    """The mean of all channels (samples x channels); the loudest alone where they cancel each other."""
    mono, powers = x.mean(1), (x**2).sum(0)
    return mono if (mono**2).sum() >= 0.05 * powers.mean() else x[:, powers.argmax()]


def mean_and_error(values, form):
    """Their mean in that format, with the standard error if there are two or more."""
    mean = format(np.mean(values), form)
    if len(values) < 2:
        return mean
    return f"{mean} ± {format(np.std(values, ddof=1) / np.sqrt(len(values)), form.lstrip('+'))}"


def kept_clips(data):
    """Paths below `data` of the clips in its folders to learn from that are kept for development."""
    lines = Path(data, "dev", "voices16.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip()]


def new_folders(out, *names):
    """Makes folders of OUT, or uses empty ones: other files there would be taken for those of this run."""
    folders = [Path(out, name) for name in names]
    for folder in folders:
        if folder.is_dir() and any(folder.iterdir()):
            raise SystemExit(f"{folder}: not empty, expected a new folder")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)


def active_power(x, rate, name="voice"):
    """Mean power of the 20 ms frames within 30 dB of the loudest, of one signal; `name` is that of the error if it is silent."""
    m = rate // 50
    p = (x[: len(x) // m * m].reshape(-1, m) ** 2).mean(1)
    if not p.max(initial=0) > 0:
        raise SystemExit(f"{name}: silent, expected a voice")
    return p[p > 1e-3 * p.max()].mean()


def band(x, rate, low, high=np.inf):
    spectrum, hertz = np.fft.rfft(x), np.fft.rfftfreq(len(x), 1 / rate)
    spectrum[(hertz < low) | (hertz > high)] = 0
    return np.fft.irfft(spectrum, len(x))


def spoken_power(x, rate, name="voice"):
    """Mean power above 75 Hz of the frames of 20 ms within 30 dB of the loudest."""
    return active_power(band(x, rate, 75), rate, name)


def part(x, samples, rng):
    """A part of a noise, which begins anew where it ends."""
    at = rng.integers(max(len(x) - samples, 0) + 1)
    if len(x) < samples:
        edge = np.linspace(0, 1, min(len(x) // 4, 400))
        x = x.copy()
        x[: len(edge)] *= edge
        x[len(x) - len(edge) :] *= edge[::-1]
        x = np.tile(x, -(-samples // len(x)))
    return x[at : at + samples].copy()


def cut(x, samples, rng):
    """A part of a noise, which is repeated as it is. Not `part`, which fades its ends: it would make other mixtures."""
    x = np.tile(x, -(-samples // len(x)))
    at = rng.integers(len(x) - samples + 1)
    return x[at : at + samples]


def is_speech(voice, at, speech_db=SPEECH_DB):
    """Whether the level of a voice at 16 kHz, smoothed over 50 ms around each of these samples, is above `speech_db` of its maximum."""
    reach = int(SMOOTHED_SECONDS * RATE) // 2
    total = np.concatenate([[0], np.cumsum(np.square(voice, dtype=np.float64))])
    level = total[np.clip(at + reach, 0, len(voice))] - total[np.clip(at - reach, 0, len(voice))]
    return level > level.max() * 10 ** (speech_db / 10)


def decibels(power, reference):
    return float(10 * np.log10(max(power, SILENCE) / max(reference, SILENCE)))


def si_sdr(clean, found):
    """dB; means are not removed."""
    target = (clean @ found) / (clean @ clean) * clean
    error = target - found
    return decibels(target @ target, error @ error)


def logistic_regression(x, y, weights):
    """Bias and weights, by maximum likelihood; `weights` of the examples."""

    def loss(parameters):
        z = x @ parameters[1:] + parameters[0]
        slope = weights * (1 / (1 + np.exp(-z)) - y)
        return (weights * (np.logaddexp(0, z) - y * z)).sum(), np.concatenate([[slope.sum()], slope @ x])

    return minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
