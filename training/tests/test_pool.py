"""Weights of the pool: a few steps on made dumps, and the file that the program reads."""

import json
import types

import numpy as np
import pytest
import soundfile as sf
import torch
from safetensors.numpy import load_file, safe_open

import pool
from network import BANDS, BINS, HALF, HALF_BANDS, HOP, RATE


def make_dump(folder, name, bins, bands, seed, certain=False):
    """A tone that comes and goes in noise; the network takes it for noise, the model does not."""
    rng, rate = np.random.default_rng(seed), RATE if bins == BINS else RATE // 2
    hop, count = HOP * rate // RATE, 120
    n = hop * (count - 3)
    time = np.arange(n) / rate
    clean = 0.3 * np.sin(2 * np.pi * 1000 * time) * (np.sin(2 * np.pi * time) > 0)
    noisy = clean + 0.05 * rng.standard_normal(n)
    model = rng.normal(-400, 50, (count, bins))
    model[:, 60:68] = 500
    network = rng.normal(900 if certain else -400, 50, (count, BANDS))[:, :bands]
    levels = rng.normal(0, 50, (count, bands))
    levels[:, 60:68] = 400
    values = {key: x.astype(np.int16) for key, x in dict(model=model, network=network, levels=levels).items()}
    np.savez(folder / name, noisy=noisy.astype(np.float32), clean=clean.astype(np.float32), rate=rate, voice=name, **values)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dumps")
    for k in range(3):
        make_dump(folder, f"cry__{k}", BINS, BANDS, k)
    make_dump(folder, "cry__narrow", HALF, HALF_BANDS, 3)
    make_dump(folder, "ordinary__0", BINS, BANDS, 4, certain=True)
    return folder


def test_steps_raise_what_the_network_rejects(dumps):
    examples = pool.load(dumps)
    net = pool.learn([e for e in examples if e.kind == "cry"], 60, 2, 1)
    for example in examples:
        with torch.no_grad():
            before, after = (pool.score(example, example.voice_of(example.gain(n))) for n in (None, net))
        if example.kind == "cry":
            assert example.share == 1 and after > before + 3, (example.name, before, after)
        else:
            assert example.share == 0 and after == before


def test_the_file_has_the_network_of_the_program(dumps, tmp_path):
    examples, net = pool.load(dumps), pool.Pool()
    out, reference = tmp_path / "pool.safetensors", tmp_path / "reference.csv"
    pool.export(net, examples, out, reference)
    weights = load_file(out)
    sizes = [pool.INPUTS, *pool.HIDDEN, 2]
    assert [len(weights[k]) for k in ("first", "second", "third")] == [(a + 1) * b for a, b in zip(sizes, sizes[1:])]
    with safe_open(out, "numpy") as f:
        assert json.loads(f.metadata()["header"])["inputs"] == pool.INPUTS
    rows = reference.read_text().splitlines()[1:]
    assert sum(row.startswith("outputs") for row in rows) == len(examples) and len(rows) == len(examples) + 4


def test_folders_without_anything_are_refused(tmp_path, ended):
    """A missing one was a traceback of numpy, and one without mixtures was dumped as nothing."""
    out = tmp_path / "out"
    for words in (("learn", tmp_path / "typo", out), ("dump", "denoise", tmp_path / "typo", out), ("mix", out, "--data", tmp_path / "typo")):
        assert ended(pool.main, *words).endswith("typo: no such folder")
    assert ended(pool.main, "learn", tmp_path, out) == f"{tmp_path}: no dumps to learn from"
    assert ended(pool.main, "dump", "denoise", tmp_path, out) == f"{tmp_path}/noisy: no WAV files"
    for name in ("dev/voices16.txt", "speech_expressive/manifest.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("file,emotion\n" if name.endswith("csv") else "")
    assert ended(pool.main, "mix", out, "--data", tmp_path) == f"{tmp_path}: no noises or rooms"
    (tmp_path / "noisy").mkdir()
    sf.write(tmp_path / "noisy/a.wav", np.zeros(9), RATE)
    assert "No such file" in ended(pool.main, "dump", tmp_path / "program", tmp_path, out)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho trace >&2; echo 'denoise: broken' >&2; exit 1\n")
    program.chmod(0o755)
    assert ended(pool.main, "dump", program, tmp_path, out) == "denoise: broken"


def test_a_dump_that_was_interrupted_is_made_again(tmp_path, monkeypatch):
    """What was written by half must not count as done: `learn` cannot read it."""
    count = 8
    for side in ("clean", "noisy"):
        (tmp_path / side).mkdir()
        sf.write(tmp_path / side / "cry__0.wav", np.zeros(HOP * (count - 3)), RATE)
    numbers = lambda n: ",".join(["1"] * n)
    block = f"bins={BINS} bands={BANDS} model=[{numbers(count * BINS)}] network=[{numbers(count * BANDS)}] levels=[{numbers(count * BANDS)}]"
    monkeypatch.setattr(pool.subprocess, "run", lambda *_, **__: types.SimpleNamespace(stderr=block))
    write = np.savez

    def interrupted(file, **values):
        write(file, **values)
        found = tmp_path / "dumps" / "cry__0.npz"
        if found.exists():
            found.write_bytes(found.read_bytes()[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(pool.np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.dump("denoise", tmp_path, tmp_path / "dumps", 1)
    monkeypatch.setattr(pool.np, "savez", write)
    pool.dump("denoise", tmp_path, tmp_path / "dumps", 1)
    assert [path.name for path in (tmp_path / "dumps").iterdir()] == ["cry__0.npz"]
    with np.load(tmp_path / "dumps" / "cry__0.npz") as found:
        assert found["model"].shape == (count, BINS)
