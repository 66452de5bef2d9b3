"""Helpers that training/common.py and training/options.py have for the scripts of both folders."""

import sys
from pathlib import Path

# Last, so that no package is hidden by a script there.
sys.path.append(str(Path(__file__).resolve().parent.parent / "training"))

from common import SILENCE, SPEECH_DB, active_power, band, decibels, is_speech, new_folders, read_channels, read_mono, si_sdr, spoken_power
from options import existing_folder, finite, positive, run, whole

__all__ = ["SILENCE", "SPEECH_DB", "active_power", "band", "decibels", "is_speech", "new_folders", "read_channels", "read_mono"]
__all__ += ["si_sdr", "spoken_power", "existing_folder", "finite", "positive", "run", "whole"]
