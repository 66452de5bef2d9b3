"""Helpers shared by scripts here and in eval/: output folders, reading, sections and bands of signals, speech level, SI-SDR, means with
standard errors, logistic regression."""

from pathlib import Path

import numpy as np
import soundfile
import soxr
from scipy.optimize import minimize

RATE = 16_000  # Hz, in `is_speech`
SPEECH_DB, SMOOTHED_SECONDS = -40, 0.05
SILENCE = 1e-20  # power


def read_channels(path, dtype="float64"):
    """Samples (samples x channels) and sample rate of a file."""
    try:
        return soundfile.read(path, dtype=dtype, always_2d=True)
    # A damaged header may claim more samples than fit.
    except (soundfile.LibsndfileError, MemoryError) as error:
        raise OSError(f"{path}: {getattr(error, 'error_string', error)}")


def read_exactly(path, rate, samples=None, channels=1, dtype="float64"):
    """Samples (samples x channels) of a file, which must have this sample rate and these numbers of samples and channels."""
    x, own = read_channels(path, dtype)
    if own != rate or x.shape[1] != channels or samples not in (None, len(x)):
        count = "" if samples is None else f"{samples} samples of "
        raise SystemExit(f"{path}: expected {count}{channels} channel{'s'[: channels - 1]} at {rate} Hz")
    return x


def read_mono(path, rate, quality="VHQ"):
    """The mean of all channels of a file (float64), resampled to `rate`."""
    samples, own = read_channels(path)
    samples = samples.mean(1)
    return soxr.resample(samples, own, rate, quality=quality) if own != rate else samples


def loud_mono(x):
    """The mean of all channels (samples x channels), or the loudest channel if they cancel each other."""
    mono, powers = x.mean(1), (x**2).sum(0)
    return mono if (mono**2).sum() >= 0.05 * powers.mean() else x[:, powers.argmax()]


def mean_and_error(values, form):
    """The mean in this format, with the standard error of two or more values."""
    mean = format(np.mean(values), form)
    if len(values) < 2:
        return mean
    return f"{mean} ± {format(np.std(values, ddof=1) / np.sqrt(len(values)), form.lstrip('+'))}"


def kept_clips(data):
    """Paths below `data` of clips in its training folders that are reserved for development."""
    lines = Path(data, "dev", "voices16.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip()]


def new_folders(out, *names):
    """Creates folders in `out`; existing ones must be empty, so that all files are of this run."""
    folders = [Path(out, name) for name in names]
    for folder in folders:
        if folder.is_dir() and any(folder.iterdir()):
            raise SystemExit(f"{folder}: not empty, expected a new folder")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)


def active_power(x, rate, name="voice"):
    """Mean power of the 20 ms frames of a signal within 30 dB of the loudest; `name` is used in the error for silence."""
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
    """Mean power above 75 Hz of the 20 ms frames within 30 dB of the loudest."""
    return active_power(band(x, rate, 75), rate, name)


def part(x, samples, rng):
    """A random section of a noise, which is repeated, with faded ends, if it is too short."""
    at = rng.integers(max(len(x) - samples, 0) + 1)
    if len(x) < samples:
        edge = np.linspace(0, 1, min(len(x) // 4, 400))
        x = x.copy()
        x[: len(edge)] *= edge
        x[len(x) - len(edge) :] *= edge[::-1]
        x = np.tile(x, -(-samples // len(x)))
    return x[at : at + samples].copy()


def cut(x, samples, rng):
    """A random section of a noise, which is repeated without fades. Not `part`, which would change the mixtures."""
    x = np.tile(x, -(-samples // len(x)))
    at = rng.integers(len(x) - samples + 1)
    return x[at : at + samples]


def is_speech(voice, at, speech_db=SPEECH_DB):
    """Whether the level of a voice at 16 kHz at these samples, smoothed over 50 ms, is above `speech_db` relative to its maximum."""
    reach = int(SMOOTHED_SECONDS * RATE) // 2
    total = np.concatenate([[0], np.cumsum(np.square(voice, dtype=np.float64))])
    level = total[np.clip(at + reach, 0, len(voice))] - total[np.clip(at - reach, 0, len(voice))]
    return level > level.max() * 10 ** (speech_db / 10)


def decibels(power, reference):
    return float(10 * np.log10(max(power, SILENCE) / max(reference, SILENCE)))


def si_sdr(clean, found):
    """SI-SDR, dB; the mean is not removed."""
    target = (clean @ found) / (clean @ clean) * clean
    error = target - found
    return decibels(target @ target, error @ error)


def logistic_regression(x, y, weights):
    """Maximum-likelihood bias and coefficients; `weights` are those of the examples."""

    def loss(parameters):
        z = x @ parameters[1:] + parameters[0]
        slope = weights * (1 / (1 + np.exp(-z)) - y)
        return (weights * (np.logaddexp(0, z) - y * z)).sum(), np.concatenate([[slope.sum()], slope @ x])

    return minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
