#!/usr/bin/env python3
"""The files that denoising improves least: a table of SI-SDR, and a picture of their spectrograms.

    pip install numpy scipy soundfile soxr matplotlib pillow
    python eval/worst_files.py PICTURE.png FOLDER RESULT [FOLDER RESULT ...] [--count 10]

FOLDER holds `noisy/NAME.wav` and `clean/NAME.wav`, as made by training/make_expressive.py; RESULT the denoised `NAME.wav`. SI-SDR is that
above 75 Hz, dB. The picture has a row for each file: noisy, denoised and clean, 0 to half the rate, 60 dB from black to white.
"""

import argparse
import io

import matplotlib
import numpy as np
from PIL import Image
from scipy.signal import butter, sosfiltfilt, stft

from score import read
from signals import existing_folder, run, si_sdr, whole

matplotlib.use("Agg")
from matplotlib import pyplot

RANGE = 60  # dB


def above_rumble(x, rate):
    return sosfiltfilt(butter(4, 75, "high", fs=rate, output="sos"), x)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("picture")
    a.add_argument("folders", nargs="+", metavar="FOLDER RESULT", type=existing_folder)
    a.add_argument("--count", type=whole, default=10)
    a = a.parse_args()
    if len(a.folders) % 2:
        raise SystemExit("a RESULT is missing: give FOLDER and RESULT in turn")
    files = []
    for folder, result in zip(a.folders[::2], a.folders[1::2]):
        for noisy in sorted((folder / "noisy").glob("*.wav")):
            try:
                signals, rate = read([folder / "clean" / noisy.name, noisy, result / noisy.name])
            except ValueError as error:
                raise SystemExit(error)
            truth, *estimates = (above_rumble(x, rate) for x in signals)
            before, after = (si_sdr(truth, estimate) for estimate in estimates)
            files.append((after - before, before, after, noisy.stem, [*signals[1:], signals[0]], rate))
    if not files:
        raise SystemExit(f"{a.folders[0]}/noisy: no WAV files")
    worst = sorted(files, key=lambda file: file[0])[: a.count]
    print("| file | noisy | denoised | change |\n|---|---|---|---|")
    for change, before, after, name, *_ in worst:
        print(f"| {name} | {before:.1f} | {after:.1f} | {change:+.1f} |")

    figure, axes = pyplot.subplots(len(worst), 3, figsize=(9, 1.25 * len(worst)), sharex="col", squeeze=False)
    for row, (*_, name, signals, rate) in zip(axes, worst):
        spectra = [20 * np.log10(np.abs(stft(x, rate, nperseg=rate // 25)[2]) + 1e-9) for x in signals]
        top = max(spectrum.max() for spectrum in spectra)
        for axis, spectrum, signal in zip(row, spectra, signals):
            extent = (0, len(signal) / rate, 0, rate / 2000)
            axis.imshow(spectrum, cmap="gray", vmin=top - RANGE, vmax=top, origin="lower", aspect="auto", extent=extent)
            axis.tick_params(labelsize=6)
        row[0].set_ylabel(f"{name}\nkHz", fontsize=6)
    for axis, title in zip(axes[0], ("noisy", "denoised", "clean")):
        axis.set_title(title, fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("s", fontsize=6)
    figure.tight_layout(pad=0.4)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    # Few shades of grey: a third of the size.
    Image.open(drawn).convert("L").quantize(16).save(a.picture, optimize=True)


if __name__ == "__main__":
    run(main)
