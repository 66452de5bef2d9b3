"""Copies are found by their sound, whatever their gain, rate and start; other recordings of the same kind are not."""

import os
import subprocess
import sys

import numpy as np
import pytest
import soundfile as sf
import soxr

import same_sound
from conftest import RATE, TRAINING, make_data
from recordings import index_of

KINDS = ("white", "pink", "crackle", "voice", "hum")


def word(rng, n):
    """Harmonics whose pitch and levels glide."""
    glide = lambda low, high: np.interp(np.arange(n), np.linspace(0, n, 4), rng.uniform(low, high, 4))
    phase = 2 * np.pi * np.cumsum(glide(90, 250)) / RATE
    harmonics = sum(10 ** glide(-1.5, 0) * np.sin(k * phase) for k in range(1, 30))
    return 0.05 * harmonics * np.sin(np.pi * np.arange(n) / n)


def recording(kind, seed, seconds=6.0):
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n = int(seconds * RATE)
    white = rng.standard_normal(n)
    t = np.arange(n) / RATE
    if kind == "white":
        return 0.1 * white
    if kind == "pink":
        return 10 * np.fft.irfft(np.fft.rfft(white) / np.maximum(np.fft.rfftfreq(n, 1 / RATE), 20), n)
    if kind == "crackle":
        return 0.2 * np.convolve((rng.random(n) < 5 / RATE) * white, np.exp(-np.arange(800) / 100), "same") + 1e-4 * white
    if kind == "voice":
        words = [word(rng, int(rng.uniform(0.3, 0.9) * RATE)) for _ in range(int(4 * seconds))]
        return np.concatenate(words)[:n] + 1e-3 * white
    return sum(0.1 * np.sin(2 * np.pi * 50 * k * t + rng.uniform(0, 6)) / k for k in range(1, 40)) + 3e-4 * white


def copied(x, rng, start, seconds, rate):
    """A part of x at another gain, from between two samples on, with noise at -30 dB."""
    y = soxr.resample(x[int(start * RATE) :], RATE, rate)
    y = soxr.resample(y[rate // 50 + 1 :], rate, RATE)[: int(seconds * RATE)]
    return 0.03 * (y + 10 ** (-30 / 20) * y.std() * rng.standard_normal(len(y)))


def matches(kept, others):
    return [match for _, match in kept.compared((None, x) for x in others)]


@pytest.fixture(scope="module")
def kept():
    return same_sound.Kept((f"{kind} {seed}", recording(kind, seed)) for kind in KINDS for seed in range(4))


@pytest.mark.parametrize("kind", ["white", "pink", "voice"])
@pytest.mark.parametrize("rate, seconds", [(44100, 3), (22050, 1.2), (11025, 1.2)])
def test_a_part_of_a_recording_is_found(kept, kind, rate, seconds):
    rng = np.random.default_rng(rate)
    start = 1.2345
    [match] = matches(kept, [copied(recording(kind, 2), rng, start, seconds, rate)])
    assert match.name == f"{kind} 2"
    assert match.at - match.start == pytest.approx(start + 0.02, abs=0.05)


def test_a_whole_recording_of_half_a_second_is_found():
    short = recording("pink", 9, 0.7)
    [match] = matches(same_sound.Kept([("short", short)]), [0.1 * short])
    assert match.name == "short"


def test_a_recording_within_another_is_found(kept):
    rng = np.random.default_rng(1)
    other = recording("white", 20, 8)
    other[40000 : 40000 + 2 * RATE] += 30 * recording("pink", 1)[RATE : 3 * RATE]
    [match] = matches(kept, [other + 1e-4 * rng.standard_normal(len(other))])
    assert match.name == "pink 1"


@pytest.mark.parametrize("kind", KINDS)
def test_other_recordings_of_the_same_kind_are_not(kept, kind):
    assert matches(kept, [recording(kind, seed) for seed in range(50, 70)]) == [None] * 20


def test_silence_and_single_clicks_are_like_nothing(kept):
    click = np.zeros(RATE)
    click[5000] = 1
    clicks = same_sound.Kept([("click", click), ("silence", np.zeros(2 * RATE))])
    others = [np.zeros(2 * RATE), np.roll(click, 3000), np.zeros(10), np.zeros(0)]
    assert matches(clicks, others) == matches(kept, others) == [None] * 4
    assert matches(same_sound.Kept([]), [recording("white", 1)]) == [None]


def test_many_recordings_have_each_their_match(kept, monkeypatch):
    monkeypatch.setattr(same_sound, "SAMPLES_AT_ONCE", 10 * RATE)
    names = ["white 0", None, "voice 3", "pink 1", None]
    others = [(str(i), recording(*name.split()[:1], int(name[-1])) if name else recording("white", 60 + i)) for i, name in enumerate(names)]
    found = list(kept.compared(others))
    assert [key for key, _ in found] == [key for key, _ in others]
    assert [match and match.name for _, match in found] == names


def test_copies_under_other_names_are_not_prepared(tmp_path):
    data, noise, out = (str(tmp_path / name) for name in ("data", "noise", "out"))
    os.makedirs(data)
    make_data(data)
    for folder in (os.path.join(data, "dev", "noise"), noise):
        os.makedirs(folder)
    x = recording("white", 1)
    sf.write(os.path.join(data, "dev", "noise", "steady-rain__a__1.flac"), x, RATE)
    renamed = soxr.resample(x[RATE // 2 : 3 * RATE], RATE, 44100)
    sf.write(os.path.join(noise, "wind-copy__b-0a1b2c3d4e5f.flac"), 0.5 * renamed, 44100)
    sf.write(os.path.join(noise, "wind-other__b-1a1b2c3d4e5f.flac"), recording("white", 3), RATE)
    words = [sys.executable, os.path.join(TRAINING, "prepare.py"), out, "--data", data, "--noise", noise]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    labels = {row[0] for row in index_of(out)["noise"]}
    assert "wind-other" in labels and "wind-copy" not in labels
    [line] = [line for line in printed.splitlines() if "wind-copy" in line]
    assert line.startswith("left out: ") and "steady-rain__a__1.flac" in line
    assert "recordings left out by their sound: 1" in printed

    command = [sys.executable, os.path.join(TRAINING, "same_sound.py"), "--data", data, noise, out]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert [line.split(": ")[0] for line in printed.splitlines()[:-1]] == [os.path.join(noise, "wind-copy__b-0a1b2c3d4e5f.flac")]
    assert printed.splitlines()[-1].startswith("1 of ")


def test_folders_without_recordings_are_refused_and_damaged_ones_named(tmp_path, monkeypatch, capsys):
    data, noise, none = (tmp_path / name for name in ("data", "noise", "none"))
    data.mkdir()
    make_data(str(data))
    noise.mkdir()
    none.mkdir()
    sf.write(noise / "a.flac", recording("white", 1), RATE)
    sf.write(noise / "b.flac", recording("white", 2), RATE)
    (noise / "a.flac").write_bytes((noise / "a.flac").read_bytes()[:1000])

    def run(*folders):
        monkeypatch.setattr(sys, "argv", ["same_sound.py", "--data", str(data), *map(str, folders)])
        same_sound.main()
        return capsys.readouterr().out.splitlines()

    with pytest.raises(SystemExit) as refused:
        run(tmp_path / "typo")
    assert refused.value.code == 2 and "typo: no such folder" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="none: no recordings"):
        run(none)
    damaged, count = run(noise)
    assert damaged.startswith(f"left out: {noise}/a.flac: ") and count.startswith("0 of 1 recordings")
