"""Scores of made signals, of which the true values are known."""

import csv
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

import score

RATE = 16000


@pytest.fixture
def signals():
    rng = np.random.default_rng(0)
    return rng.standard_normal(2 * RATE), rng.standard_normal(2 * RATE)


def test_ratios_are_those_of_their_definitions(signals):
    clean, noise = signals
    noise -= (clean @ noise) / (clean @ clean) * clean
    noise *= np.sqrt((clean @ clean) / (noise @ noise) / 10)
    assert score.si_sdr(clean, 3 * (clean + noise)) == pytest.approx(10)
    assert score.segmental_snr(clean, clean + noise, RATE) == pytest.approx(10, abs=0.1)
    assert score.segmental_snr(clean, 0 * clean, RATE) == 0
    assert score.segmental_snr(clean, clean, RATE) == 35


def test_a_result_is_divided_into_voice_noise_and_the_rest(signals):
    clean, noise = signals
    left, lost, artifact = score.residual(clean, noise, 0.5 * clean + 0.1 * noise, RATE)
    assert (left, lost) == (pytest.approx(-20, abs=0.01), pytest.approx(-6.02, abs=0.01))
    assert artifact < -60
    # Without noise there is none to be left, and the voice is judged all the same.
    left, lost, artifact = score.residual(clean, 0 * noise, 0.5 * clean, RATE)
    assert np.isnan(left) and lost == pytest.approx(-6.02, abs=0.01) and artifact < -60
    # Delayed voices are fitted; a tenth of something else is not.
    other = np.random.default_rng(1).standard_normal(2 * RATE)
    _, lost, artifact = score.residual(clean, noise, np.roll(clean, 3) + 0.1 * other, RATE)
    assert lost == pytest.approx(3, abs=0.2) and artifact == pytest.approx(-20, abs=0.2)


def test_scores_that_a_file_cannot_have_are_left_out(signals):
    pytest.importorskip("pystoi")
    clean, noise = signals
    with pytest.raises(ValueError, match="the result is silent"):
        score.si_sdr(clean, 0 * clean)
    clean[3000:] = 0
    for extended in (False, True):
        with pytest.raises(RuntimeWarning, match="Not enough STFT frames"):
            score.stoi(clean, clean + 0.1 * noise, RATE, extended)


def test_what_lies_below_the_high_pass_is_removed():
    t = np.arange(RATE) / RATE
    low, high = np.sin(2 * np.pi * 50 * t), np.sin(2 * np.pi * 100 * t)
    assert np.allclose(score.band(low + high, RATE, 75), high, atol=1e-9)


def test_files_are_paired_by_name_and_scored_by_kind(tmp_path, signals):
    for package in ("fast_bss_eval", "pesq", "pystoi"):
        pytest.importorskip(package)
    clean, noise = (0.1 * x for x in signals)
    for folder in ("clean", "results"):
        (tmp_path / folder).mkdir()
    soundfile.write(tmp_path / "clean/sp21.wav", clean, RATE, "FLOAT")
    soundfile.write(tmp_path / "results/sp21_babble.wav", clean + 0.1 * noise, RATE, "FLOAT")
    for name, factor in (("wind__00.wav", 1), ("wind__01.wav", 0.1)):
        soundfile.write(tmp_path / "clean" / name, clean, RATE, "FLOAT")
        soundfile.write(tmp_path / "results" / name, clean + factor * noise, RATE, "FLOAT")

    def run(*more):
        words = [sys.executable, score.__file__, "clean", "results", "--csv", "scores.csv", *more]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)

    done = run()
    kinds = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert kinds == ["wind: 2 files", "all: 3 files"], done
    with open(tmp_path / "scores.csv") as table:
        rows = {row["file"]: row for row in csv.DictReader(table)}
    assert float(rows["wind__00.wav"]["si_sdr"]) == pytest.approx(0, abs=0.1)
    assert float(rows["sp21_babble.wav"]["sdr"]) == pytest.approx(20, abs=0.5)
    soundfile.write(tmp_path / "results/other.wav", clean, RATE)
    assert "no clean file for other.wav" in run().stderr
    soundfile.write(tmp_path / "clean/other.wav", clean, RATE)
    (tmp_path / "noisy").mkdir()
    (tmp_path / "noisy/other.wav").write_text("text")
    for path in (tmp_path / "results").iterdir():
        if path.name != "other.wav":
            path.unlink()
    for words, line in (
        (("--noisy", "noisy"), "noisy/other.wav: Format not recognised."),
        (("--noisy", "typo"), "score.py: error: argument --noisy: typo: no such folder"),
        (("--high-pass", "nan"), "score.py: error: argument --high-pass: nan: expected a number"),
    ):
        failed = run(*words)
        assert failed.returncode and failed.stderr.splitlines()[-1] == line and "Traceback" not in failed.stderr


def test_every_score_that_a_file_cannot_have_is_reported(tmp_path, signals, capsys):
    """Also where a package returns one: a silent clean file had a STOI of 0."""
    for package in ("fast_bss_eval", "pesq", "pystoi"):
        pytest.importorskip(package)
    clean, noise = (0.1 * x for x in signals)
    spoilt = clean.copy()
    spoilt[9] = np.nan
    for folder, files in dict(clean=(0 * clean, clean, clean), results=(noise, spoilt, clean + 0.1 * noise)).items():
        (tmp_path / folder).mkdir()
        for name, x in zip("abc", files):
            soundfile.write(tmp_path / folder / f"{name}.wav", x, RATE, "FLOAT")
    a = SimpleNamespace(clean=tmp_path / "clean", results=tmp_path / "results", noisy=tmp_path / "clean", high_pass=0.0, dnsmos=False)
    rows = [score.score(f"{name}.wav", a) for name in "abc"]
    groups = ["sdr", "si_sdr", "seg_snr", "pesq", "stoi", "estoi", "noise_left speech_lost artifact"]
    reported = capsys.readouterr().err.splitlines()
    assert all(np.isnan(value) for row in rows[:2] for value in row.values())
    assert [line for line in reported if line.startswith("a.wav")] == [f"a.wav: no {names}: the clean file is silent" for names in groups]
    assert [line.split(": ")[1] for line in reported if line.startswith("b.wav")] == [f"no {names}" for names in groups]
    assert reported[2 * len(groups) :] == ["c.wav: no noise_left: not a number"]
    assert score.means(rows) == score.means(rows[2:])
    assert score.means(rows[:1]) == "  ".join(f"{name} nan" for name in rows[0])
