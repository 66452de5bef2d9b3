"""Development mixtures have the ratios of their list, and the same arguments give the same samples."""

import csv
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile as sf

import make_development
import make_expressive
import make_levels
import pool
import prepare
from common import band, spoken_power
from conftest import RATE, TRAINING, syllables

SCRIPT = os.path.join(TRAINING, "make_development.py")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    clips = {f"speech16/{voice}__{i}": syllables(rng, 0.6, RATE) for voice in ("anna", "ben") for i in range(2)}
    # None is tonal.
    clips |= {f"noise/{kind}-x__a": 0.1 * rng.standard_normal(RATE // 2) for kind in make_development.KINDS[:-1]}
    clips |= {"rir/hall__a": np.exp(-np.arange(2000) / 300) * rng.standard_normal(2000)}
    for name, x in clips.items():
        path = folder / "dev" / f"{name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        sf.write(path, x / np.abs(x).max() * 0.8, RATE)
    os.makedirs(folder / "librispeech251")
    sf.write(folder / "librispeech251/7-0-0000.wav", syllables(rng, 1.5, RATE), RATE)
    (folder / "dev/voices16.txt").write_text("librispeech251/7-0-0000.wav\n")
    return folder


def made(data, out, *words):
    subprocess.run([sys.executable, SCRIPT, out, "--data", data, "--each", "4", "--seconds", "1", *words], check=True)
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("*.*")}


def test_mixtures_have_the_ratios_of_their_list(data, tmp_path):
    files = made(data, tmp_path / "a")
    with open(tmp_path / "a/list.csv") as table:
        rows = list(csv.DictReader(table))
    assert len(files) == 2 * len(rows) + 1 == 2 * 8 * 4 + 1
    for row in rows:
        clean, noisy = (sf.read(tmp_path / "a" / side / row["file"])[0] for side in ("clean", "noisy"))
        assert len(clean) == len(noisy) == RATE
        noise = (band(noisy - clean, RATE, 75) ** 2).mean()
        assert 10 * np.log10(spoken_power(clean, RATE) / noise) == pytest.approx(float(row["snr_db"]), abs=0.01)
        if row["kind"] == "voice":
            assert make_development.speaker(row["voice"]) != make_development.speaker(row["noise"])
            assert float(row["snr_db"]) >= 5
    assert made(data, tmp_path / "b") == files
    assert made(data, tmp_path / "c", "--seed", "2") != files


def refused(data, out, *words):
    """The line by which the script ends."""
    run = subprocess.run([sys.executable, SCRIPT, out, "--data", data, "--each", "4", "--seconds", "1", *words], capture_output=True, text=True)
    assert run.returncode == 1, run
    [line] = run.stderr.splitlines()
    return line


def test_mixtures_of_an_earlier_run_are_not_mixed_with_others(data, tmp_path, monkeypatch):
    """Those that a shorter run does not replace stayed, and were not on its list."""
    files = made(data, tmp_path / "out")
    assert refused(data, tmp_path / "out", "--each", "2") == f"{tmp_path}/out/clean: not empty, expected a new folder"
    assert {path.relative_to(tmp_path / "out"): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == files
    monkeypatch.setattr(sys, "argv", ["SCRIPT", str(tmp_path / "out"), "--data", str(data)])
    for run in (make_expressive.main, make_levels.main, lambda: pool.mix(tmp_path / "out", data, 1, 1)):
        with pytest.raises(SystemExit, match="clean: not empty"):
            run()


def test_the_list_of_voices_may_have_empty_lines_and_must_be_there(data, tmp_path):
    """An empty line was the folder itself."""
    shutil.copytree(data, tmp_path / "data")
    listed = tmp_path / "data/dev/voices16.txt"
    listed.write_text("\n" + listed.read_text() + "\n")
    assert made(tmp_path / "data", tmp_path / "a") == made(data, tmp_path / "b")
    assert len(list(prepare.kept_apart(tmp_path / "data"))) == 4 + 6 + 1
    listed.unlink()
    assert "No such file or directory" in (line := refused(tmp_path / "data", tmp_path / "c")) and "voices16.txt" in line


def test_kinds_without_recordings_are_left_out(data, tmp_path):
    """One voice has no other one, and tonal noise is in no room."""
    for side, keep in (("dev/speech16", "anna"), ("dev/noise", "wind"), ("dev/rir", "hall")):
        (tmp_path / "data" / side).mkdir(parents=True)
        for path in (data / side).glob(f"{keep}*"):
            shutil.copy(path, tmp_path / "data" / side)
    (tmp_path / "data/dev/voices16.txt").touch()
    assert {path.name.split("__")[0] for path in made(tmp_path / "data", tmp_path / "out")} == {"wind", "list.csv"}


def test_expressive_mixtures_need_recordings_of_every_kind(data, tmp_path, ended):
    shutil.copytree(data, tmp_path / "data")
    folder = tmp_path / "data/dev_expressive"
    folder.mkdir()
    (folder / "manifest.csv").write_text("file,emotion\na.wav,cry\n")
    words = tmp_path / "out", "--data", tmp_path / "data"
    assert ended(make_expressive.main, *words) == f"{tmp_path}/data: no recordings of the kinds acted, cartoon, child, lively, tonal"
    assert ended(make_expressive.main, *words, "--each", "0").endswith("argument --each: 0: expected 1 or more")
    assert ended(make_expressive.main, *words, "--seconds", "nan").endswith("argument --seconds: nan: expected a number above 0")


def test_a_silent_voice_is_refused(data, tmp_path):
    """Its mixtures were not numbers, and their files held full scale."""
    shutil.copytree(data, tmp_path / "data")
    for path in (tmp_path / "data").rglob("*__?.wav"):
        if path.parent.name == "speech16":
            sf.write(path, np.zeros(RATE), RATE)
    line = refused(tmp_path / "data", tmp_path / "out")
    assert "speech16" in line and line.endswith(".wav: silent, expected a voice")
    for x in (np.zeros(RATE), np.zeros(0), np.full(RATE, np.nan)):
        with pytest.raises(SystemExit, match="anna: silent"):
            make_expressive.power_above_75_hz(x, "anna")
