"""The recipes on a cluster of this machine; engines that are not installed are reported."""

import importlib.util
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import AUDIO, read, write

import alphamf

RECIPES = Path(__file__).parents[1] / "recipes"


def missing(engine):
    needed = [engine, "soundfile"]
    lacking = [name for name in needed if importlib.util.find_spec(name) is None]
    if engine == "pyspark" and shutil.which("java") is None:
        lacking.append("java")
    return lacking


@pytest.mark.parametrize("engine", ["ray", "pyspark", "dask"])
def test_recipe(engine, tmp_path):
    lacking = missing(engine)
    if lacking:
        # More than a letter in the report: warnings are listed.
        warnings.warn(f"the recipe for {engine} is NOT TESTED: {', '.join(lacking)} not installed", stacklevel=1)
        pytest.skip(f"{', '.join(lacking)} not installed")
    recordings, voices = tmp_path / "recordings", tmp_path / "voices"
    recordings.mkdir()
    samples, rate = read(AUDIO / "demo-noisy.wav")
    sections = [samples[n * rate // 2 : n * rate // 2 + rate] for n in range(3)]
    for n, section in enumerate(sections):
        write(recordings / f"{n}.wav", section, rate)

    script = RECIPES / f"with_{engine.removeprefix('py')}.py"
    run = subprocess.run(
        [sys.executable, script, recordings, voices, "2"], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "3 recordings"
    for n, section in enumerate(sections):
        expected = alphamf.denoise(section.astype(np.float32) / 32768, rate)
        found, found_rate = read(voices / f"{n}.wav")
        assert found_rate == rate
        assert np.abs(found / 32768 - expected).max() < 1.5 / 32768
