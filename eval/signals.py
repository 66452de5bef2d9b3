"""Helpers that training/common.py has for the scripts of both folders."""

import sys
from pathlib import Path

# Last, so that no package is hidden by a script there.
sys.path.append(str(Path(__file__).resolve().parent.parent / "training"))

from common import SILENCE, SPEECH_DB, active_power, band, decibels, is_speech, read_mono, si_sdr, spoken_power

__all__ = ["SILENCE", "SPEECH_DB", "active_power", "band", "decibels", "is_speech", "read_mono", "si_sdr", "spoken_power"]
