"""Cells of the speech level, and refusals, from made ones."""

import types

import numpy as np
import soundfile as sf
import torch

import levels


def cell(slot, value):
    return f"slot={slot} band=3 recorded={value} expected={value} inputs=[{value}, {value}]"


def test_mixtures_without_a_level_are_left_out(tmp_path, monkeypatch, capsys):
    """Where the program expects no voice, its levels are no numbers."""
    for side in ("clean", "noisy"):
        (tmp_path / side).mkdir()
        for name in "abc":
            sf.write(tmp_path / side / f"{name}.wav", 0.1 * np.random.default_rng(0).standard_normal(4000), 16000)
    (tmp_path / "list.csv").write_text("kind,file,snr_db\nwind,a.wav,5\nwind,b.wav,5\nwind,c.wav,5\n")
    found = {"a": "", "b": cell(0, "NaN"), "c": cell(0, -30.0) + cell(1, "NaN")}
    monkeypatch.setattr(levels.subprocess, "run", lambda command, **_: types.SimpleNamespace(stderr=found[command[1][-5]]))
    [recording] = levels.gather("denoise", [tmp_path])
    assert recording["x"].shape == (1, 2) and np.isfinite(recording["y"]).all()
    assert capsys.readouterr().out.splitlines() == ["a.wav is left out: no levels", "b.wav is left out: no levels", "c.wav 1"]


def test_too_few_mixtures_are_refused(tmp_path, ended):
    rng = np.random.default_rng(0)
    of = lambda fold, kilobits: dict(kind="wind", snr="5", fold=fold, kilobits=kilobits, x=rng.standard_normal((3, 2)), y=rng.standard_normal(3))
    one_fold, codecs = [of(0, 0.0) for _ in range(6)], [of(k % 2, 0.0) for k in range(4)] + [of(0, 24.0)]
    for recordings, numbers in ((one_fold, "6 mixtures without a codec in 1 folds"), (codecs, "4 mixtures without a codec in 2 folds")):
        torch.save(recordings, tmp_path / "cells.pt")
        assert ended(levels.main, "learn", tmp_path / "cells.pt", tmp_path / "out") == f"{tmp_path}/cells.pt: {numbers}, expected 5 in 2 at least"
    assert "No such file" in ended(levels.main, "learn", tmp_path / "typo.pt", tmp_path / "out")
    assert "typo: no such folder" in ended(levels.main, "cells", "denoise", tmp_path / "cells.pt", tmp_path / "typo")


def test_share_of_levels_within_the_intervals(tmp_path, monkeypatch, capsys):
    """Of four cells one is above its interval, and one is not judged; a recording without levels is left out."""
    for side in ("clean", "noisy"):
        (tmp_path / side).mkdir()
        for name in "ab":
            sf.write(tmp_path / side / f"{name}.wav", np.sin(2 * np.pi * 1000 * np.arange(4800) / 16000) * 2**0.5 / 10, 16000)
    (tmp_path / "list.csv").write_text("kind,file,snr_db\nwind,a.wav,5\nwind,b.wav,5\n")
    # The tone has -20 dBFS in the third octave of 1 kHz.
    lines = {"a": "0.0,890.9,-20,-25,-15\n0.1,890.9,-20,-22,-15\n0.2,890.9,-30,-40,-21\n0.2,125.0,-90,-95,-85\n", "b": "0.0,890.9,,,\n"}

    def denoise(command, **_):
        name = command[command.index("--levels") + 1]
        name.write_text("start_seconds,low_hz,level_dbfs,lower_dbfs,upper_dbfs\n" + lines[command[1].stem])
        assert command[-2:] == ["--quality", "fast"]

    monkeypatch.setattr(levels.subprocess, "run", denoise)
    levels.held("denoise", tmp_path, ["--quality", "fast"])
    left_out, *found = capsys.readouterr().out.splitlines()
    assert left_out == "b.wav is left out: no levels"
    assert found[-1] == "wind (1): 66.7 +- 0.0 % held, 0.0 % below, pinball loss 2.60, 10.0 dB wide"
