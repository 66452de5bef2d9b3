"""Helpers that training/common.py and training/options.py have for the scripts of both folders."""

import sys
from pathlib import Path

# Last, so that no package is hidden by a script there.
sys.path.append(str(Path(__file__).resolve().parent.parent / "training"))

from common import SILENCE, SPEECH_DB, active_power, band, decibels, is_speech, new_folders, read_channels, read_exactly, read_mono, si_sdr, spoken_power
from options import existing_folder, finite, positive, run, whole

__all__ = ["SILENCE", "SPEECH_DB", "active_power", "band", "decibels", "is_speech", "new_folders", "read_channels", "read_exactly"]
__all__ += ["mixtures", "recordings", "read_mono", "si_sdr", "spoken_power", "existing_folder", "finite", "positive", "run", "whole"]


def mixtures(folder, count, rate):
    """Of so many mixtures with noise, spread over those of a folder as of make_development.py: names, voices and noises."""
    noisy = [p for p in sorted((folder / "noisy").glob("*.wav")) if not p.name.startswith(("voice__", "room__"))]
    if not noisy:
        raise SystemExit(f"{folder}/noisy: no mixtures with noise")
    chosen = noisy[:: max(1, len(noisy) // count)][:count]
    voices = [read_exactly(folder / "clean" / p.name, rate)[:, 0] for p in chosen]
    return [p.name for p in chosen], voices, [read_exactly(p, rate, len(x))[:, 0] - x for p, x in zip(chosen, voices)]


def recordings(out, pattern):
    """Names of what a script has made."""
    names = [path.name for path in sorted((out / "noisy").glob(pattern))]
    if not names:
        raise SystemExit(f"{out}: no recordings of `make`")
    return names
