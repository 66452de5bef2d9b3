"""Tiny made recordings, prepared as `prepare.py` prepares them."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest
import soundfile as sf

TRAINING = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TRAINING)

from refusals import ended  # noqa: E402, F401

RATE = 16000


def syllables(rng, seconds, rate):
    """Harmonics that come and go."""
    t = np.arange(int(seconds * rate)) / rate
    f0 = rng.uniform(90, 250)
    x = sum(np.sin(2 * np.pi * k * f0 * t + rng.uniform(0, 6)) / k for k in range(1, 20))
    return 0.1 * x * np.maximum(0, np.sin(2 * np.pi * rng.uniform(2, 4) * t))


def make_data(folder, rate=RATE):
    """The folders that `prepare.py --data` reads, with a few seconds in each."""
    rng = np.random.default_rng(0)
    clips = {
        "speech48_train": {f"wide{i}__0": syllables(rng, 1.5, rate) for i in range(2)},
        "speech_train": {f"voice{i}__{j}": syllables(rng, 1.5, rate) for i in range(3) for j in range(2)},
        "librispeech251": {f"{i}-0-0000": syllables(rng, 2, rate) for i in (7, 8)},
        "noise_train": {f"{kind}__a": rng.standard_normal(3 * rate) * 0.1 for kind in ("steady-rain", "event-door", "wind")},
        "rir_train": {"hall__a": np.exp(-np.arange(4000) / 500) * rng.standard_normal(4000)},
        "vctk4": {},
        "speech_expressive": {"actor__angry-a": syllables(rng, 2, rate)},
        "noise_more": {},
    }
    for name, files in clips.items():
        os.makedirs(os.path.join(folder, name))
        for stem, x in files.items():
            sf.write(os.path.join(folder, name, stem + ".flac"), x / np.abs(x).max() * 0.8, rate)
    with open(os.path.join(folder, "speech_train", "manifest.csv"), "w", newline="") as f:
        csv.writer(f).writerows([("file", "path"), ("voice0__0.flac", "same.wav"), ("voice0__1.flac", "other.wav")])
    os.makedirs(os.path.join(folder, "dev"))
    with open(os.path.join(folder, "dev", "voices16.txt"), "w") as f:
        f.write("librispeech251/7-0-0000.flac\n")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    data = str(tmp_path_factory.mktemp("data") / "data")
    os.makedirs(data)
    make_data(data)
    out = str(tmp_path_factory.mktemp("prepared"))
    script = os.path.join(TRAINING, "prepare.py")
    subprocess.run([sys.executable, script, out, "--data", data, "--made", "0.5"], check=True)
    return out
