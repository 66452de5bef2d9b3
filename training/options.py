"""Argument types and error reporting of scripts here and in eval/. Imports no package, as train.py may run where few are installed."""

import argparse
import math
import subprocess
from pathlib import Path


def run(main):
    """Runs a script; errors of files and programs end it with one line."""
    try:
        main()
    except subprocess.CalledProcessError as error:
        said = error.stderr or ""
        lines = (said.decode(errors="replace") if isinstance(said, bytes) else said).strip().splitlines()
        raise SystemExit(lines[-1] if lines else error)
    except OSError as error:
        raise SystemExit(error)


def existing_folder(text):
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no such folder")
    return Path(text)


def whole(text):
    """A count, 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return value


def from_zero(text):
    """A number, 0 or more."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 or more")
    return value


def several(text):
    """A count for a standard error, 2 or more."""
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"{text}: expected 2 or more")
    return value


def positive(text):
    """A finite number above 0."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return value


def finite(text):
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text}: expected a number")
    return value


def fraction(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 0 to 1")
    return value
