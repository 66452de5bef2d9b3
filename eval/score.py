#!/usr/bin/env python3
"""Scores of denoised files by public packages, beside those of `denoise eval`.

    pip install numpy scipy soundfile soxr fast_bss_eval pesq pystoi
    pip install speechmos onnxruntime requests librosa   # for --dnsmos
    python eval/score.py CLEAN RESULTS [--noisy NOISY] [--high-pass 75] [--dnsmos] [--csv scores.csv] [--jobs 2]

CLEAN has a file of the same name for each WAV file of RESULTS, or `sp21.wav` for `sp21_babble_sn5.wav`: mono, of the same rate, at most 0.1 s
longer or shorter. Prints the means over files, and before them those of each kind, if names begin with `KIND__`: SDR (BSS-eval with 512 taps,
dB), SI-SDR (dB), segmental SNR (dB), PESQ (narrow band at 8 kHz, wide band at 16 kHz, other rates resampled to it), STOI and ESTOI.

--noisy also prints, in dB, from a least-squares fit of the result by the clean voice and the noise (NOISY less CLEAN), each through a filter of 32
taps for every 0.5 s: `noise_left`, the fitted noise over the noise; `speech_lost`, the error of the fitted voice over the voice; `artifact`,
what the fit leaves over the voice. --dnsmos also prints SIG, BAK and OVRL of DNSMOS P.835, which need no clean voice. --high-pass removes what is below
so many Hz from all files first. A score that a file cannot have, as PESQ of silence, is reported and left out of the means.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # One process for each job instead.

import argparse
import csv
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from signals import SILENCE, band, decibels, existing_folder, finite, read_channels, run, whole
from signals import si_sdr as si_sdr_of_sound

TAPS = 32


def resampled(x, rate, want):
    import soxr

    return soxr.resample(x, rate, want) if rate != want else x


def sdr(clean, found):
    import fast_bss_eval

    return float(fast_bss_eval.sdr(clean[None], found[None], filter_length=512)[0])


def si_sdr(clean, found):
    if not found.any():
        raise ValueError("the result is silent")
    return si_sdr_of_sound(clean, found)


def segmental_snr(clean, found, rate):
    """Mean over 30 ms of the ratio limited to -10 to 35 dB, without segments 60 dB below the strongest."""
    n = int(0.03 * rate)
    clean, found = (x[: len(x) // n * n].reshape(-1, n) for x in (clean, found))
    power = (clean**2).sum(1)
    ratio = 10 * np.log10(power / ((clean - found) ** 2).sum(1).clip(SILENCE) + SILENCE)
    return float(np.clip(ratio[power > 1e-6 * power.max()], -10, 35).mean())


def pesq(clean, found, rate):
    from pesq import pesq

    at = rate if rate in (8000, 16000) else 16000
    return float(pesq(at, resampled(clean, rate, at), resampled(found, rate, at), "nb" if at == 8000 else "wb"))


def stoi(clean, found, rate, extended):
    from pystoi import stoi

    with warnings.catch_warnings():
        # The package returns 1e-5 in that case, which is not a score.
        warnings.filterwarnings("error", "Not enough STFT frames")
        return float(stoi(clean, found, rate, extended=extended))


def dnsmos(found, rate):
    """SIG, BAK and OVRL."""
    from speechmos import dnsmos

    scores = dnsmos.run(np.clip(resampled(found, rate, 16000), -1, 1), 16000)
    return [float(scores[name]) for name in ("sig_mos", "bak_mos", "ovrl_mos")]


def products(u, v, start, end):
    """Sums of u[start + i + t] v[start + j + t] over t < end - start, for all i, j < TAPS."""
    sums = np.empty((TAPS, TAPS))
    sums[0] = np.correlate(v[start : end + TAPS - 1], u[start:end], "valid")
    sums[:, 0] = np.correlate(u[start : end + TAPS - 1], v[start:end], "valid")
    for i in range(TAPS - 1):
        first, last = u[start + i] * v[start : start + TAPS - 1], u[end + i] * v[end : end + TAPS - 1]
        sums[i + 1, 1:] = sums[i, :-1] - first + last
    return sums


def residual(clean, noise, found, rate):
    """`noise_left` (NaN without noise), `speech_lost` and `artifact`."""
    blocks = max(1, round(len(clean) / max(rate // 2, 8 * TAPS)))
    edges = np.linspace(0, len(clean), blocks + 1).astype(int)
    padded = [np.pad(x, TAPS // 2) for x in (clean, noise)]
    left = lost = artifact = 0.0
    for start, end in zip(edges[:-1], edges[1:]):
        matrix = np.block([[products(u, v, start, end) for v in padded] for u in padded])
        target = np.concatenate([np.correlate(x[start : end + TAPS - 1], found[start:end], "valid") for x in padded])
        levels = np.repeat([matrix[:TAPS, :TAPS].trace(), matrix[TAPS:, TAPS:].trace()], TAPS) / TAPS
        filters = np.linalg.solve(matrix + np.diag(1e-7 * levels + 1e-12 * levels.max() + SILENCE), target)
        voice, rest = (np.correlate(x[start : end + TAPS - 1], h, "valid") for x, h in zip(padded, np.split(filters, 2)))
        left += rest @ rest
        lost += ((clean[start:end] - voice) ** 2).sum()
        artifact += ((found[start:end] - voice - rest) ** 2).sum()
    speech = clean @ clean
    return [decibels(left, noise @ noise) if noise.any() else np.nan, decibels(lost, speech), decibels(artifact, speech)]


def clean_file(folder, name):
    for candidate in (name, f"{Path(name).stem.split('_')[0]}.wav"):
        if (folder / candidate).exists():
            return folder / candidate
    raise ValueError(f"{folder} has no clean file for {name}")


def read(paths):
    """Signals cut to the shortest, and their rate."""
    signals, rates = zip(*map(read_channels, paths))
    lengths = [len(x) for x in signals]
    if any(x.shape[1] > 1 for x in signals) or len(set(rates)) > 1 or max(lengths) - min(lengths) > 0.1 * rates[0]:
        raise ValueError(f"{paths[-1]}: channels, rates {rates} or lengths {lengths} differ from those of the clean file")
    return [x[: min(lengths), 0] for x in signals], rates[0]


def score(name, a):
    """All scores of a file by name; NaN, with the reason on standard error, where there is none."""
    folders = [clean_file(a.clean, name), a.results / name] + ([a.noisy / name] if a.noisy else [])
    signals, rate = read(folders)
    clean, found, *noisy = (band(x, rate, a.high_pass) for x in signals)
    scores, silent = {}, (clean**2).mean() <= SILENCE

    def add(names, compute, beside_clean=True):
        names, reason = names.split(), "not a number"
        try:
            if beside_clean and silent:
                raise ValueError("the clean file is silent")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                values = compute()
        except Exception as error:  # Packages raise errors of many types.
            values, reason = np.nan, error if type(error) is ValueError else repr(error)
        by_name = dict(zip(names, np.broadcast_to(values, len(names)).tolist()))
        if missing := [key for key, value in by_name.items() if np.isnan(value)]:
            print(f"{name}: no {' '.join(missing)}: {reason}", file=sys.stderr)
        scores.update(by_name)

    add("sdr", lambda: sdr(clean, found))
    add("si_sdr", lambda: si_sdr(clean, found))
    add("seg_snr", lambda: segmental_snr(clean, found, rate))
    add("pesq", lambda: pesq(clean, found, rate))
    add("stoi", lambda: stoi(clean, found, rate, False))
    add("estoi", lambda: stoi(clean, found, rate, True))
    if noisy:
        add("noise_left speech_lost artifact", lambda: residual(clean, noisy[0] - clean, found, rate))
    if a.dnsmos:
        add("sig bak ovrl", lambda: dnsmos(found, rate), beside_clean=False)
    return scores


def means(rows):
    of_files = {name: [row[name] for row in rows if not np.isnan(row[name])] for name in rows[0]}
    return "  ".join(f"{name} {np.mean(values) if values else np.nan:.3f}" for name, values in of_files.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clean", type=existing_folder)
    parser.add_argument("results", type=existing_folder)
    parser.add_argument("--noisy", type=existing_folder)
    parser.add_argument("--high-pass", type=finite, default=0.0, metavar="HZ")
    parser.add_argument("--dnsmos", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--jobs", type=whole, default=2)
    a = parser.parse_args()
    names = sorted(path.name for path in a.results.glob("*.wav"))
    if not names:
        raise SystemExit(f"{a.results}: no WAV files")
    try:
        with ProcessPoolExecutor(a.jobs, get_context("spawn")) as pool:
            rows = list(pool.map(partial(score, a=a), names))
    except ValueError as error:
        raise SystemExit(error)
    if a.csv:
        with open(a.csv, "w", newline="") as file:
            csv.writer(file).writerows([("file", *rows[0]), *((name, *row.values()) for name, row in zip(names, rows))])
    kinds = [name.split("__")[0] if "__" in name else "" for name in names]
    for kind in sorted(set(kinds) - {""}):
        those = [row for row, own in zip(rows, kinds) if own == kind]
        print(f"{kind}: {len(those)} files  {means(those)}")
    print(f"all: {len(rows)} files  {means(rows)}")


if __name__ == "__main__":
    run(main)
