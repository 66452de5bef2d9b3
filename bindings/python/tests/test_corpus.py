import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import AUDIO, read, write

import alphamf

FAST = {"quality": "fast", "no_neural": True}


def test_metrics(clean):
    reference = clean[0] / 32768
    noise = np.random.default_rng(1).normal(size=reference.size)
    noise -= reference * (noise @ reference) / (reference @ reference)
    noise *= 0.1 * np.sqrt(reference @ reference / (noise @ noise))
    estimate = reference + noise
    assert abs(alphamf.snr(reference, estimate) - 20) < 1e-6
    assert abs(alphamf.si_sdr(reference, 3 * estimate) - 20) < 1e-6
    assert alphamf.sdr(reference, estimate) >= 20
    assert 0 < alphamf.segmental_snr(reference, estimate, 16000) < 35
    for score in (alphamf.stoi, alphamf.estoi):
        assert abs(score(reference, reference, 16000) - 1) < 1e-9 and score(reference, estimate, 16000) < 1
    assert alphamf.snr(clean[0], clean[0] + 1) > 0  # Integers are numbers, too.
    with pytest.raises(ValueError, match="length"):
        alphamf.sdr(reference, reference[1:])
    with pytest.raises(ValueError, match="shape"):
        alphamf.sdr(reference[None], reference[None])


@pytest.fixture
def corpus(noisy, clean, tmp_path):
    for name, (samples, rate) in (("clean", clean), ("noisy", noisy)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "one.wav", samples[:rate], rate)
        write(tmp_path / name / "two.wav", samples[rate:], rate)
    return tmp_path


def test_scores_equal_the_programs(program, corpus):
    folders = {"clean": corpus / "clean", "noisy": corpus / "noisy"}
    record = corpus / "record.json"
    flags = [f"--{name}={path}" for name, path in folders.items()]
    subprocess.run([program, "eval", "-q", *flags, "--quality=fast", "--json", record], check=True)
    expected = json.loads(record.read_text())["evaluations"][0]["files"]
    shares = []
    found = alphamf.evaluate(alphamf.Denoiser(quality="fast"), **folders, progress=shares.append)
    assert shares[-1] == 1 and not found["failures"]
    assert [file["output"] for file in found["files"]] == [file["output"] for file in expected]
    assert found["summary"][0]["files"] == 2


def test_any_function_is_scored(corpus):
    folders = {"clean": corpus / "clean", "noisy": corpus / "noisy"}
    same = alphamf.evaluate(lambda x, rate: x, **folders, save=corpus / "saved")
    assert all(file["input"] == file["output"] for file in same["files"])
    assert np.array_equal(read(corpus / "saved" / "one.wav")[0], read(corpus / "noisy" / "one.wav")[0])
    # One that calls the package itself waits for nobody.
    denoiser = alphamf.Denoiser(threads=1, **FAST)
    inner = alphamf.evaluate(lambda x, rate: denoiser.denoise(x, rate).speech, **folders, threads=1)
    outer = alphamf.evaluate(denoiser, **folders)
    assert [file["output"] for file in inner["files"]] == [file["output"] for file in outer["files"]]
    enhanced = alphamf.evaluate(None, clean=folders["clean"], enhanced=corpus / "saved")
    assert [file["output"] for file in enhanced["files"]] == [file["output"] for file in same["files"]]
    # As everywhere, full scale is 1 for floats of any width and 32768 for integers of 16 bits.
    for convert in (lambda x: x.tolist(), lambda x: x.astype(np.float64), lambda x: (x * 32768).astype(np.int16)):
        again = alphamf.evaluate(lambda x, rate: convert(x), **folders)
        assert [file["output"] for file in again["files"]] == [file["output"] for file in same["files"]]
    for function, words in (
        (lambda x, rate: 1 / 0, "division"),
        (lambda x, rate: x[np.newaxis], f"samples of shape (1, {len(read(folders['noisy'] / 'one.wav')[0])}): expected (n,)"),
        (lambda x, rate: None, "samples of shape (): expected (n,)"),
        (lambda x, rate: (x * 1e6).astype(np.int32), "samples of int32: expected float32 or float64 with full scale 1, or int16"),
    ):
        failed = alphamf.evaluate(function, **folders)
        assert len(failed["failures"]) == 2 and words in failed["failures"][0]["reason"]
    for high_pass in (-1, 20001, np.nan):
        with pytest.raises(ValueError, match=f"high_pass is {high_pass}; expected 0 to 20000"):
            alphamf.evaluate(denoiser, **folders, high_pass=high_pass)
    with pytest.raises(ValueError, match="noisy or enhanced"):
        alphamf.evaluate(None, clean=folders["clean"])


def test_training_equals_the_programs(program, corpus):
    path = corpus / "model.safetensors"
    flags = ["--rank=8", "--iterations=5", "--seed=2"]
    subprocess.run([program, "train", "-q", corpus / "clean", "-o", path, *flags], check=True)
    shares = []
    options = {"rank": 8, "iterations": 5, "seed": 2}
    learned = alphamf.train(corpus / "clean", **options, progress=shares.append)
    assert learned == path.read_bytes() and shares[-1] == 1
    files = sorted((corpus / "clean").iterdir())
    assert alphamf.train(files, threads=1, **options) == learned
    assert alphamf.train(files[0], **options) == alphamf.train(files[:1], **options)
    listed = alphamf._native.audio_files(str(corpus / "clean"))
    assert len(listed) == 2 and all(isinstance(path, Path) for path in listed)
    voice = alphamf.denoise(*read(AUDIO / "demo-noisy.wav"), model=learned, **FAST)
    assert voice.any()
    with pytest.raises(ValueError, match="rank"):
        alphamf.train(corpus / "clean", rank=0)
    for name, value in (("rank", -1), ("iterations", -1), ("seed", -1), ("seed", 2**64)):
        with pytest.raises(ValueError, match=f"{name} is {value}; expected"):
            alphamf.train(corpus / "clean", **{name: value})
    for name in ("rank", "alpha", "iterations", "window", "seed"):
        with pytest.raises(TypeError, match=f"{name} is '9'; expected a number"):
            alphamf.train(corpus / "clean", **{name: "9"})
    with pytest.raises(ValueError, match="no audio files"):
        alphamf.train([])
    broken = corpus / "broken.wav"
    broken.write_bytes(b"RIFF")
    for wrong, error in (("absent.wav", FileNotFoundError), (broken, ValueError)):
        for rate in (None, 8000):
            with pytest.raises(error, match=Path(wrong).name) as raised:
                alphamf.train([wrong], rate=rate)
            assert str(raised.value).count(Path(wrong).name) == 1
    for missing in (
        lambda: alphamf.train("absent"),
        lambda: alphamf.Denoiser(model="absent"),
        lambda: alphamf.evaluate(None, clean="absent", enhanced=corpus / "clean"),
    ):
        with pytest.raises(FileNotFoundError, match="absent"):
            missing()
