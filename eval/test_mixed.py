"""Recordings made of development mixtures, by turns.py, stereo.py, hum.py and clipping.py, and what the scripts of this folder refuse."""

import importlib
import sys
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import soundfile

import clipping
import hum
import impulses
import long_recordings
import signals
import speech_in_noise
import stereo
import transcription
import turns
import voice_activity

# Last, so that no test is hidden by one there.
sys.path.append(str(Path(__file__).resolve().parent.parent / "training/tests"))

from refusals import ended  # noqa: E402, F401

RATE = 16000


def mixtures(folder, count, seconds=6.0, rate=RATE, voices=None):
    """As of make_development.py: noise that comes and goes, in place of voices."""
    for side in ("clean", "noisy"):
        (folder / side).mkdir(parents=True)
    for i in range(count):
        rng = np.random.default_rng(i % (voices or count))
        n = int(seconds * rate)
        x = 0.1 * rng.standard_normal(n) * (np.sin(np.arange(n) * 2 * np.pi / rate) > 0)
        soundfile.write(folder / f"clean/wind__{i:02}.wav", x, rate)
        soundfile.write(folder / f"noisy/wind__{i:02}.wav", x + 0.01 * np.random.default_rng(50 + i).standard_normal(n), rate)
    return folder


def test_the_mean_of_one_value_has_no_error():
    assert signals.mean_and_error([1.0], ".2f") == "1.00"
    assert signals.mean_and_error([1.0, 3.0], "+.1f") == "+2.0 ± 1.0"


@pytest.mark.parametrize("script", (turns, stereo, hum))
def test_mixtures_that_do_not_fit_are_refused(script, tmp_path, ended):
    """At another rate, turns of 3 s were of 1 s or of 6 s."""
    out = tmp_path / "out"
    assert ended(script.main, "make", tmp_path / "typo", out).endswith("typo: no such folder")
    assert ended(script.main, "make", tmp_path, out) == f"{tmp_path}/noisy: no mixtures with noise"
    high = mixtures(tmp_path / "high", 5, rate=48000)
    assert ended(script.main, "make", high, out) == f"{high}/clean/wind__00.wav: expected 1 channel at 16000 Hz"
    if script is not hum:
        few = mixtures(tmp_path / "few", 5, voices=1) if script is stereo else mixtures(tmp_path / "few", 3)
        assert ended(script.main, "make", few, out) == f"{few}: " + ("one voice, expected others" if script is stereo else "3 mixtures, expected 4 or more")
    if script is turns:
        short = mixtures(tmp_path / "short", 5, seconds=5)
        assert ended(script.main, "make", short, out) == f"{short}/clean/wind__00.wav: expected 6 s or more"
    if script is not hum:
        alone = mixtures(tmp_path / "alone", 5)
        (alone / "noisy/wind__01.wav").write_bytes((alone / "clean/wind__01.wav").read_bytes())
        assert ended(script.main, "make", alone, tmp_path / "none") == f"{alone}/noisy/wind__01.wav: the voice alone, expected noise"
    assert ended(script.main, "score", tmp_path, tmp_path) == f"{tmp_path}: no recordings of `make`"


@pytest.mark.parametrize("script", (turns, stereo, hum))
def test_made_recordings_are_scored_and_results_of_other_lengths_refused(script, tmp_path, ended, monkeypatch, capsys):
    out = tmp_path / "out"
    for words in (("make", mixtures(tmp_path / "mixtures", 5), out), ("score", out, out / "noisy")):
        monkeypatch.setattr(sys, "argv", ["script.py", *map(str, words)])
        script.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == (2 * len(script.KINDS) if script is hum else 8) and "nan" not in "".join(lines)
    assert ended(script.main, "make", tmp_path / "mixtures", out).endswith(": not empty, expected a new folder")
    cut = tmp_path / "cut"
    cut.mkdir()
    assert ended(script.main, "score", out, tmp_path / "typo").endswith("typo: no such folder")
    assert "/cut/" in (line := ended(script.main, "score", out, cut)) and line.count("\n") == 0
    for path in (out / "noisy").iterdir():
        soundfile.write(cut / path.name, soundfile.read(path)[0][:-9], RATE)
    samples, channels = (12 if script is turns else 14) * RATE, "2 channels" if script is stereo else "1 channel"
    assert ended(script.main, "score", out, cut).endswith(f": expected {samples} samples of {channels} at 16000 Hz")


def test_sentences_of_long_recordings_are_scored(tmp_path, ended, monkeypatch, capsys):
    """Slices of what was joined are the sentences alone, so that nothing lies between them."""
    main, out, made = long_recordings.main, tmp_path / "out", mixtures(tmp_path / "mixtures", 5, rate=8000)
    assert ended(main, "make", mixtures(tmp_path / "few", 2), out) == f"{tmp_path}/few: 2 mixtures, expected 3 or more"
    assert ended(main, "score", tmp_path, tmp_path, tmp_path) == f"{tmp_path}: no recordings of `make`"
    for words in (("make", made, out, "--rate", 8000), ("score", out, out / "long", out / "alone")):
        monkeypatch.setattr(sys, "argv", ["script.py", *map(str, words)])
        main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(line.endswith(" dB, +0.00 ± 0.00") for line in lines)
    assert ended(main, "make", made, out, "--rate", 8000).endswith(": not empty, expected a new folder")
    soundfile.write(path := out / "long/few__0.wav", soundfile.read(path)[0][:-9], 8000)
    assert ended(main, "score", out, out / "long", out / "alone") == f"{path}: expected 96000 samples of 1 channel at 8000 Hz"


def test_clicks_need_the_corpus_and_the_program(tmp_path, ended):
    assert ended(impulses.main, "denoise", tmp_path / "typo", tmp_path / "out").endswith("typo: no such folder")
    assert ended(impulses.main, "denoise", tmp_path, tmp_path / "out").startswith(f"{tmp_path}/clean/sp21.wav: ")


def test_recognition_needs_texts_noises_and_a_recogniser(tmp_path, ended):
    main, texts, noise, out = transcription.main, tmp_path / "texts", tmp_path / "noise", tmp_path / "out"
    noise.mkdir()
    texts.write_text("voice.wav hello\n")
    assert ended(main, "run", texts, noise, out).endswith("error: give a recogniser: --whisper, --moonshine or --sphinx")
    words = "run", texts, noise, out, "--sphinx"
    assert ended(main, *words) == f"{noise}: no recordings of noise"
    soundfile.write(noise / "wind-a.wav", np.zeros(9), RATE)
    assert ended(main, *words) == f"{texts}: 'voice.wav hello': expected a path, a tab and a text"
    texts.write_text("voice.wav\thello\n")
    assert ended(main, *words).startswith("voice.wav: ")
    assert "No such file" in ended(main, "run", tmp_path / "typo", noise, out, "--sphinx")
    assert "No such file" in ended(main, "table", tmp_path)


def test_detectors_need_their_program_and_files_with_pauses(tmp_path, ended):
    main, made = voice_activity.main, mixtures(tmp_path / "mixtures", 2)
    assert ended(main, made, "--only", "track").endswith("error: track and segments need --program")
    assert "invalid choice: 'trac'" in ended(main, made, "--only", "trac")
    assert "no such folder" in ended(main, tmp_path / "typo")
    assert "No such file or directory: " in ended(main, made, "--only", "track", "--program", tmp_path / "typo")
    (tmp_path / "none/noisy").mkdir(parents=True)
    assert ended(main, tmp_path / "none") == f"{tmp_path}/none: no files with 0.1 s of speech and of pauses"
    high = mixtures(tmp_path / "high", 1, rate=48000)
    assert ended(main, high) == f"{high}/clean/wind__00.wav: expected 1 channel at 16000 Hz"


def test_clipped_recordings_are_made_and_scored(tmp_path, monkeypatch, capsys):
    out, made = tmp_path / "out", mixtures(tmp_path / "mixtures", 2)
    called = lambda *words: monkeypatch.setattr(sys, "argv", ["clipping.py", *map(str, words)])
    called("make", made, out)
    clipping.main()
    shares = {}
    for path in sorted((out / "noisy").glob("*__00.wav")):
        noisy, clean = (soundfile.read(out / side / path.name)[0] for side in ("noisy", "clean"))
        peak = np.abs(clean).max()
        shares[path.name.split("__")[0]] = (np.abs(noisy) > 0.9999).sum() / (np.abs(clean) > clipping.AUDIBLE * peak).sum()
    assert shares.keys() == clipping.KINDS.keys()
    assert all(share == pytest.approx(clipping.KINDS[kind], rel=0.2) for kind, share in shares.items())
    called("score", out, out / "clean")
    clipping.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(clipping.KINDS) and "nan" not in "".join(lines)


def test_noises_that_hold_speech_are_listed(tmp_path, ended, monkeypatch, capsys):
    folder = tmp_path / "noise"
    folder.mkdir()
    assert ended(speech_in_noise.main, folder) == f"{folder}: no recordings"
    for name, samples in (("loud", np.full(RATE, 0.1)), ("silent", np.zeros(RATE)), ("steady", np.full(RATE, -0.1))):
        soundfile.write(folder / f"{name}.wav", samples, RATE)
    # A detector that takes positive samples for speech, of which it is given 2 s at a peak of 0.5.
    lengths = []
    detector = lambda noise: (lengths.append(len(noise)), noise > 0.4)[1]
    monkeypatch.setattr(speech_in_noise, "silero_scores", lambda: detector)
    monkeypatch.setattr(sys, "argv", ["speech_in_noise.py", str(folder)])
    speech_in_noise.main()
    lines = ["1.00 loud.wav", "3 recordings, 1 with speech in 0.4 of their frames or more"]
    assert capsys.readouterr().out.splitlines() == lines and lengths == [2 * RATE] * 2


def test_worst_files_need_results_of_all_mixtures(tmp_path, ended, monkeypatch):
    for package in ("matplotlib", "matplotlib.pyplot", "PIL"):
        monkeypatch.setitem(sys.modules, package, MagicMock())
    main, made, result = importlib.import_module("worst_files").main, mixtures(tmp_path / "mixtures", 2), tmp_path / "result"
    refused = lambda *words: ended(main, tmp_path / "picture.png", *words)
    assert refused(made, result).endswith("result: no such folder")
    result.mkdir()
    assert refused(result, result) == f"{result}/noisy: no WAV files"
    assert refused(made) == "a RESULT is missing: give FOLDER and RESULT in turn"
    assert refused(made, result).startswith(f"{result}/wind__00.wav: ")
    soundfile.write(result / "wind__00.wav", np.zeros(9), RATE)
    assert refused(made, result).startswith(f"{result}/wind__00.wav: channels, rates ")
    assert refused(made, result, "--count", 0).endswith("0: expected 1 or more")


# Packages of scripts about rooms, which no refusal needs.
ROOM_PACKAGES = ("pesq", "pystoi", "pyroomacoustics", "torch", "nara_wpe", "nara_wpe.utils", "nara_wpe.wpe")
ROOM_PACKAGES += ("torchmetrics", "torchmetrics.functional", "torchmetrics.functional.audio", "torchmetrics.functional.audio.srmr")


@pytest.mark.parametrize("name", ("arrays", "recorders", "reverberation"))
def test_rooms_need_voices_noises_and_enough_of_each(name, tmp_path, ended, monkeypatch):
    for package in ROOM_PACKAGES:
        monkeypatch.setitem(sys.modules, package, MagicMock())
    main, data, out = importlib.import_module(name).main, tmp_path / "data", tmp_path / "out"
    noise = 0.1 * np.random.default_rng(0).standard_normal(RATE)
    refused = lambda *more: ended(main, tmp_path / "denoise", data, out, *more)
    assert refused().endswith("data: no such folder")
    data.mkdir()
    of_voices, of_noises = ("*" if name == "arrays" else "so762*"), ("steady-*" if name == "reverberation" else "*")
    for folder, pattern in (("speech16", of_voices), ("noise", of_noises)):
        assert refused() == f"{data}/dev/{folder}/{pattern}: 0 files, expected 1 or more"
        (data / "dev" / folder).mkdir(parents=True)
        soundfile.write(data / "dev" / folder / ("so762-1__a.wav" if folder == "speech16" else "steady-a.wav"), noise, RATE)
    if name == "reverberation":
        (data / "dev/rir").mkdir()
        soundfile.write(data / "dev/rir/measured-1.wav", noise[:9], RATE)
        assert refused() == f"{data}/dev/rir/measured-*: 1 file, expected 2 or more"
        assert refused("--voices", 0).endswith("0: expected 1 or more")
        # Fewer voices than are asked for are all used.
        soundfile.write(data / "dev/rir/measured-2.wav", noise[:9], RATE)
        assert "No such file" in refused("--voices", 9)
    else:
        assert refused("--mixtures", 1).endswith("1: expected 2 or more")
        assert refused("--first", -1).endswith("-1: expected 0 or more")
    if name == "arrays":
        rooms = tmp_path / "rooms"
        assert refused("--rooms", rooms).endswith("rooms: no such folder")
        rooms.mkdir()
        assert refused("--rooms", rooms) == f"{rooms}/*_target_ir_*.wav: 0 files, expected 1 or more"
        soundfile.write(rooms / "hall_target_ir_1.wav", noise[:9], RATE)
        assert refused("--rooms", rooms) == f"{rooms}/hall_target_ir_*.wav: 1 file, expected 2 or more"
