"""Helpers that training/common.py and training/options.py have for the scripts of both folders."""

import argparse
import sys
from pathlib import Path

import numpy as np

# Last, so that no package is hidden by a script there.
sys.path.append(str(Path(__file__).resolve().parent.parent / "training"))

from common import SILENCE, SPEECH_DB, active_power, band, cut, decibels, is_speech, mean_and_error, new_folders, read_channels, read_exactly, read_mono, si_sdr, spoken_power
from options import existing_folder, finite, from_zero, positive, run, several, whole

__all__ = ["SILENCE", "SPEECH_DB", "active_power", "band", "cut", "decibels", "is_speech", "mean_and_error", "new_folders", "read_channels", "read_exactly"]
__all__ += ["make_and_score", "mixtures", "recordings", "read_mono", "root_mean_square", "si_sdr", "spoken_power", "existing_folder", "files_of", "finite", "from_zero", "positive", "run", "several", "whole"]


def mixtures(folder, count, rate):
    """Names, voices and noises of `count` mixtures, spread over those of a folder of make_development.py."""
    noisy = [p for p in sorted((folder / "noisy").glob("*.wav")) if not p.name.startswith(("voice__", "room__"))]
    if not noisy:
        raise SystemExit(f"{folder}/noisy: no mixtures with noise")
    chosen = noisy[:: max(1, len(noisy) // count)][:count]
    voices = [read_exactly(folder / "clean" / p.name, rate)[:, 0] for p in chosen]
    return [p.name for p in chosen], voices, [read_exactly(p, rate, len(x))[:, 0] - x for p, x in zip(chosen, voices)]


def root_mean_square(noise, name):
    """Root mean square of a noise; `name` is used in the error for silence."""
    power = (noise**2).mean()
    if not power > 0:
        raise SystemExit(f"{name}: the voice alone, expected noise")
    return np.sqrt(power)


def recordings(out, pattern):
    """Names of the files that a script has made."""
    names = [path.name for path in sorted((out / "noisy").glob(pattern))]
    if not names:
        raise SystemExit(f"{out}: no recordings of `make`")
    return names


def files_of(folder, pattern="*", least=1):
    """Sorted paths in a folder; too few end the script."""
    found = sorted(folder.glob(pattern))
    if len(found) < least:
        raise SystemExit(f"{folder}/{pattern}: {len(found)} file{'s'[: len(found) != 1]}, expected {least} or more")
    return found


def make_and_score(description, kinds, make, ratio):
    """The commands `make MIXTURES OUT`, and `score OUT RESULT...`, which prints SI-SDR (dB) by kind; `ratio` compares a clean and a denoised file."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("mixtures", type=existing_folder)
    making.add_argument("out", type=Path)
    scoring = commands.add_parser("score")
    scoring.add_argument("out", type=existing_folder)
    scoring.add_argument("results", type=existing_folder, nargs="+")
    a = parser.parse_args()
    if a.command == "make":
        make(a.mixtures, a.out)
        return
    for kind in kinds:
        for result in [a.out / "noisy", *a.results]:
            ratios = [ratio(a.out / "clean" / name, result / name) for name in recordings(a.out, f"{kind}__*.wav")]
            print(f"{kind}: {result}: {mean_and_error(ratios, '.1f')} dB, at least {np.min(ratios):.1f}")
