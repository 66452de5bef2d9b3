"""Ten steps of learning on the processor, checkpoints, losses, and the file that the program reads."""

import datetime
import importlib.util
import json
import os
import pickle
import runpy
import sys
import types
from unittest import mock

import numpy as np
import pytest
import soundfile as sf
import torch
from safetensors.numpy import load_file, safe_open

import average
import dnsmos
import export
import live
import losses
import loudness
import network
import restore
import train
import upper
import voices
from conftest import TRAINING
from mixing import Mixer
from network import BANDS, BINS, HALF_BANDS, features_of
from train import CHECKPOINT_BYTES, Run, arguments, learn, weights_of


def run_script(name, *words):
    """In this process, where PyTorch is loaded already."""
    with mock.patch.object(sys, "argv", [name, *map(str, words)]):
        runpy.run_path(os.path.join(TRAINING, name), run_name="__main__")


@pytest.fixture(scope="module")
def checkpoint(prepared, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("run") / "checkpoint.pt")
    words = [prepared, path, "--minutes", "60", "--steps", "10", "--batch", "2", "--seconds", "1.5"]
    learn(0, arguments(words))
    return path


def test_damaged_recordings_are_left_out_and_other_errors_are_not(tmp_path, monkeypatch, capsys):
    import prepare

    whole, cut, text, large = (str(tmp_path / name) for name in ("a.flac", "b.flac", "c.wav", "d.flac"))
    sf.write(whole, np.random.default_rng(0).standard_normal(16000) * 0.1, 16000)
    with open(whole, "rb") as f:
        data = bytearray(f.read())
    with open(cut, "wb") as f:
        f.write(data[: len(data) // 2])
    with open(text, "w") as f:
        f.write("not a recording")
    # A header that claims 2^36 samples.
    data[21:26] = [data[21] | 15, 255, 255, 255, 255]
    with open(large, "wb") as f:
        f.write(data)
    files = [("a", f) for f in (cut, text, large, whole)]
    assert [f for (_, f, _), _ in prepare.readable(files, 16000)] == [whole]
    assert capsys.readouterr().out.count("left out: ") == 3
    monkeypatch.setattr(prepare, "read", lambda *_: [][0])
    with pytest.raises(IndexError):
        list(prepare.readable(files, 16000))


def test_nothing_of_the_development_sets_is_prepared(tmp_path):
    from prepare import noise_files, speech_files

    kept = ("dev/voices16.txt", "dev/noise/wind-outdoor__forest__1.opus", "dev/speech48/jo__x.flac", "dev_expressive/mia__cry-x.flac")
    kept += ("dev/speech16/so-0010__x.flac",)
    sums = ("0a1b2c3d4e5f", "0a1b2c3d4e5f-1", "012345678901-2")
    noise = [f"noise/wind__{source}-{end}.flac" for source in ("forest", "meadow") for end in sums]
    for name in (*kept, *noise, "speech/jo__1.flac", "speech/mia__1.flac", "speech/so-10__1.flac", "speech/lee__1.flac"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = noise_files(str(tmp_path), [str(tmp_path / "noise")], False)
    assert sorted(os.path.basename(f) for _, f in found) == sorted(f"wind__meadow-{end}.flac" for end in sums)
    assert [voice for voice, _ in speech_files(str(tmp_path), [str(tmp_path / "speech")], False)] == ["lee"]


def test_ten_steps_change_the_weights_and_can_be_gone_on_from(prepared, checkpoint):
    c = torch.load(checkpoint, weights_only=True)
    assert c["step"] == 10 and c["seen"] == 30.0
    torch.manual_seed(0)
    new = Run(2e-3)
    before = new.net.state_dict()["first.weight"].clone()
    new.load(checkpoint)
    assert new.step == 10
    assert not torch.allclose(new.net.state_dict()["first.weight"], before, atol=1e-4)
    assert os.path.getsize(checkpoint) <= CHECKPOINT_BYTES


def test_files_are_read_without_running_code(tmp_path):
    """Numbers and arrays of numpy are read: checkpoints of earlier versions and the cells of levels.py have them."""
    path = str(tmp_path / "checkpoint.pt")
    torch.save([dict(kind="gsm", x=np.ones((3, 2)), rate=np.float64(2e-3))], path)
    (found,) = train.loaded(path)
    assert (found["kind"], found["x"].shape, found["rate"]) == ("gsm", (3, 2), 2e-3)

    class Code:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    torch.save(dict(average=Code()), path)
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        weights_of(path)
    assert not (tmp_path / "made").exists()


def test_reports_are_means_over_the_steps_since_the_last_one(prepared, tmp_path, monkeypatch, capsys):
    def constant(net, *_):
        zero = 0 * net(torch.zeros(1, 3, 2, BANDS)).mean()
        return [zero + k for k in range(1, 7)]

    monkeypatch.setattr(train, "losses", constant)
    monkeypatch.setattr(train, "REPORT_EVERY", 4)
    words = [prepared, str(tmp_path / "checkpoint.pt"), "--minutes", "60", "--batch", "2", "--seconds", "1.5"]
    for steps in ("6", "3"):
        learn(0, arguments([*words, "--steps", steps]))
    reports = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step ")]
    assert [line.split()[1] for line in reports] == ["4", "6", "8", "9"]
    assert all("losses 1.0000 2.0000 SNR 3.00 dB ESTOI 4.0000 PESQ 5.000 DNSMOS 6.000" in line for line in reports), reports


def test_a_run_ends_at_the_next_time_of_day_that_is_given(prepared, tmp_path, monkeypatch):
    """Also if that is tomorrow, and if a run is gone on with."""
    clock = [datetime.datetime(2026, 11, 27, 23, 50, 30, 5, datetime.timezone.utc).timestamp()]
    monkeypatch.setattr(train, "time", types.SimpleNamespace(time=lambda: clock[0]))
    for until, seconds in (("23:51", 30), ("23:50", 86370), ("00:10", 1170)):
        end = train.end_of(arguments(["prepared", "checkpoint.pt", "--until", until]))
        assert end - clock[0] == pytest.approx(seconds, abs=0.01), until

    steps, descend = [], Run.descend

    def slowly(run, *given):
        clock[0] += 200
        steps.append(run.step)
        assert len(steps) < 20, "it goes on after its end"
        return descend(run, *given)

    monkeypatch.setattr(Run, "descend", slowly)
    for until in ("00:10", "00:30"):
        learn(0, arguments([prepared, str(tmp_path / "checkpoint.pt"), "--until", until, "--batch", "1", "--seconds", "1"]))
    assert steps == list(range(12))


@pytest.mark.parametrize(
    "option", ["--minutes -1", "--minutes 0", "--minutes nan", "--minutes inf", "--steps 0", "--processes 0", "--batch 0", "--ahead 0", "--seconds 0", "--rate nan", "--snr nan"]
)
def test_numbers_that_no_run_can_have_are_refused(option, capsys):
    """A run of -1 minutes had no end, one of no process did nothing, and steps of NaN spoil the checkpoint."""
    end = [] if option.startswith("--minutes") else ["--minutes", "1"]
    with pytest.raises(SystemExit) as refused:
        arguments(["prepared", "checkpoint.pt", *end, *option.split()])
    name, value = option.split()
    assert refused.value.code == 2 and f"argument {name}: {value}: expected" in capsys.readouterr().err


def test_steps_on_the_same_batch_lower_the_loss(prepared):
    torch.manual_seed(0)
    run, batch = Run(2e-3), Mixer(prepared, 2, 1.5).batch(4)
    run.set_rate(2e-3)
    totals = []
    for _ in range(10):
        long, short, ratio, estoi, pesq, _ = losses.losses(run.net, batch.noisy, batch.voice, batch.half)
        total = long + 2 * short - 0.02 * ratio - estoi - 0.1 * pesq
        run.descend(total, 1)
        totals.append(float(total.detach()))
    assert totals[-1] < totals[0] - 0.1


def test_a_gradient_that_is_not_finite_is_left_out(prepared):
    run = Run(2e-3)
    before = run.net.state_dict()["last.weight"].clone()
    run.set_rate(0.0)
    run.descend(sum(p.sum() for p in run.net.parameters()) * float("nan"), 1)
    assert torch.equal(run.net.state_dict()["last.weight"], before)


def test_large_networks_leave_out_what_does_not_fit(tmp_path):
    run = Run(2e-3, shape=dict(channels=192, over_frames=192))
    run.descend(sum(p.square().sum() for p in run.net.parameters()), 1)
    path = str(tmp_path / "large.pt")
    run.save(path, 1.0)
    assert os.path.getsize(path) <= CHECKPOINT_BYTES
    again = Run(2e-3, shape=dict(channels=192, over_frames=192))
    again.load(path)
    assert torch.allclose(again.average["last.weight"], run.average["last.weight"], rtol=1e-3)


def test_true_gains_are_judged_better_than_none():
    torch.manual_seed(0)
    voice = torch.randn(2, 24000) * (torch.sin(torch.arange(24000) / 2000) > 0)
    noisy = voice + 0.5 * torch.randn(2, 24000)
    power = losses.stft(voice, 1024, 256).abs().square().transpose(1, 2)[:, :94]
    whole = losses.stft(noisy, 1024, 256).abs().square().transpose(1, 2)[:, :94]
    e = network.AVERAGES
    odds = torch.log((power @ torch.from_numpy(e) + 1e-6) / (whole @ torch.from_numpy(e) + 1e-6)).clamp(-8, -1e-3)
    half = torch.zeros(2, dtype=torch.bool)
    good = losses.losses(lambda seen: odds + 2, noisy, voice, half)
    none = losses.losses(lambda seen: torch.full_like(odds, 9.0), noisy, voice, half)
    assert good[0] < none[0] and good[1] < none[1] and good[2] > none[2] and good[3] > none[3] and good[4] > none[4]
    perfect = losses.intelligibility(losses.stft(voice, 512, 256), losses.stft(voice, 512, 256), 256)
    assert abs(float(perfect) - 1) < 1e-3
    assert none[2] == pytest.approx(float(10 * torch.log10(voice.square().mean(1) / (noisy - voice).square().mean(1)).mean()), abs=0.3)


def test_mixtures_without_a_voice_count_as_noise_to_be_removed_alone():
    """For SNR and PESQ they are not there; the spectra are those of silence, and every gradient is finite."""
    torch.manual_seed(3)
    voice = torch.randn(2, 32000) * torch.sin(torch.arange(32000) / 4000).clamp(min=0)
    noisy = voice + 0.3 * torch.randn(2, 32000)
    voice[1] = 0
    level = torch.tensor(2.0, requires_grad=True)
    of = lambda rows: losses.losses(
        lambda seen: level.expand(len(seen), seen.shape[2], BANDS), noisy[rows], voice[rows], torch.zeros(len(voice[rows]), dtype=torch.bool)
    )
    both, first = of(slice(2)), of(slice(1))
    for term in (2, 4):
        assert torch.allclose(both[term], first[term], atol=1e-4), term
    gradients = [torch.autograd.grad(term, level, retain_graph=True)[0] for term in both[:5]]
    assert all(torch.isfinite(gradient) for gradient in gradients), gradients
    silent = torch.autograd.grad(of(slice(1, 2))[0], level)[0]
    assert silent > 0  # less is better


def test_pesq_is_near_the_package_and_has_a_gradient():
    """White noise of five levels: what the package `pesq` (0.0.4, wide band) gives."""
    rng = np.random.default_rng(5)
    time = np.arange(64000) / 16000
    glottal = sum(np.sin(2 * np.pi * 120 * k * time + 0.02 * k * np.sin(2 * np.pi * 3 * time)) / k for k in range(1, 40))
    voice = glottal * np.clip(np.sin(2 * np.pi * 0.5 * time), 0, 1)
    spectra = lambda x: losses.stft(torch.from_numpy(np.float32(x))[None], 512, 256)
    found = []
    for level in (0.0003, 0.001, 0.003, 0.01, 0.03):
        noisy = voice + level * rng.normal(size=voice.shape)
        found.append(float(loudness.opinion(loudness.quality(spectra(noisy), spectra(voice)))[0]))
    assert np.abs(np.array(found) - [4.217, 3.417, 2.688, 2.012, 1.397]).max() < 0.1, found
    gain = torch.full((1, 257, 251), 0.9, requires_grad=True)
    value = loudness.quality(gain * spectra(noisy), spectra(voice)).sum()
    value.backward()
    step = 1e-2 * torch.sign(gain.grad)
    with torch.no_grad():
        moved = loudness.quality((gain + step) * spectra(noisy), spectra(voice)).sum()
    assert torch.isfinite(gain.grad).all() and moved > value


def test_dnsmos_is_that_of_the_package_and_raises_no_estimate_above_its_voice():
    """White noise and harmonics of 9.01 s: what the package `speechmos` (0.0.1.1) gives."""
    speechmos = os.path.dirname(importlib.util.find_spec("speechmos").origin)
    judge = dnsmos.Judge(os.path.join(speechmos, "dnsmos_models", "sig_bak_ovr.onnx"), "cpu")
    rng, time = np.random.default_rng(6), np.arange(144160) / 16000
    noise = 0.02 * rng.standard_normal(time.shape)
    voice = 0.1 * sum(np.sin(2 * np.pi * 150 * k * time) / k for k in range(1, 20)) * np.clip(np.sin(2 * np.pi * 2.5 * time), 0, 1)
    signals = torch.from_numpy(np.float32([noise, voice, voice + noise]))
    expected = [1.0692, 2.3138, 1.7742]
    assert np.abs(judge.overall(signals).numpy() - expected).max() < 1e-3
    clean = signals[1:2, :48000]
    estimate = (clean + 4 * signals[:1, :48000]).requires_grad_()
    value = judge.no_better_than(estimate, clean)
    value.backward()
    moved = estimate.detach() + 1e-4 * torch.sign(estimate.grad)
    best = judge.no_better_than(clean, clean)
    assert value < judge.no_better_than(moved, clean) <= best
    # Where the voice is worse than the estimate, nothing is gained.
    better = clean.clone().requires_grad_()
    judge.no_better_than(better, estimate.detach()).backward()
    assert better.grad.abs().max() == 0


def test_frames_of_every_latency_give_a_continuous_signal():
    x = torch.randn(1, 16000)
    for hop in losses.LIVE_HOPS:
        analysis, _ = live.windows(hop)
        y = live.continuous(torch.fft.irfft(live.frames(x, analysis)), analysis, hop)
        first = network.WINDOW - hop - network.HOP
        assert torch.allclose(y, x[:, first : first + y.shape[1]], atol=1e-5)


def test_features_do_not_depend_on_the_level_or_on_other_recordings():
    rng = np.random.default_rng(0)
    power = np.exp(rng.normal(0, 2, (40, BINS))).astype(np.float32)
    for of in (features_of, live.features_of):
        one = of(power, BANDS)
        assert one.shape == (3, 40, BANDS)
        assert of(power[:, :257], HALF_BANDS)[:, :, HALF_BANDS:].max() == 0
    assert np.allclose(features_of(power * 100, BANDS), features_of(power, BANDS), atol=1e-4)
    both = torch.from_numpy(np.stack([power, power[::-1].copy()]))
    assert np.allclose(network.features(both, torch.zeros(2, dtype=torch.bool))[0].numpy(), features_of(power, BANDS), atol=1e-5)
    # Live, what comes later changes nothing before.
    later = power.copy()
    later[30:] *= 50
    assert np.array_equal(live.features_of(power, BANDS)[:, :30], live.features_of(later, BANDS)[:, :30])


def test_exported_weights_give_the_written_reference(checkpoint, tmp_path):
    out, reference = tmp_path / "net.safetensors", tmp_path / "reference.csv"
    run_script("export.py", checkpoint, out, "--reference", reference)
    with safe_open(out, "np") as f:
        header = json.loads(f.metadata()["header"])
    tensors = load_file(out)
    assert tensors["weights"].dtype == np.int8 and np.isfinite(tensors["scales"]).all()
    assert header["window_seconds"] == 0.064
    agrees(network.PresenceNet(), checkpoint, reference)


def agrees(net, checkpoint, reference):
    """What was written as a reference is what the network of a checkpoint finds, up to weights of eight bits."""
    from export import spectrum

    rows = np.genfromtxt(reference, delimiter=",", names=True)
    net.load_state_dict(weights_of(checkpoint))
    net.eval()
    with torch.no_grad():
        odds = net(torch.from_numpy(features_of(spectrum(BINS), BANDS))[None])[0].numpy() @ network.interpolation()
    whole = rows[rows["bins"] == BINS]
    found = odds[whole["frame"].astype(int), whole["bin"].astype(int)]
    assert len(whole) > 20 and np.abs(found - whole["log_odds"]).mean() < 0.05 * np.abs(odds).mean() + 0.02


def test_the_causal_network_learns_and_is_exported(prepared, tmp_path):
    path, reference = str(tmp_path / "checkpoint.pt"), tmp_path / "reference.csv"
    words = [prepared, path, "--live", "--minutes", "60", "--steps", "10", "--batch", "2", "--seconds", "1.5"]
    learn(0, arguments(words))
    run_script("export.py", path, tmp_path / "net.safetensors", "--live", "--reference", reference)
    assert load_file(tmp_path / "net.safetensors")["weights"].dtype == np.int8
    again, second = tmp_path / "again.pt", tmp_path / "second.csv"
    run_script("restore.py", tmp_path / "net.safetensors", again, "--live")
    run_script("export.py", again, tmp_path / "second.safetensors", "--live", "--reference", second)
    agree(reference, second)


def agree(*references):
    """Two written references, up to weights of eight bits."""
    first, second = (np.genfromtxt(path, delimiter=",", names=True)["log_odds"] for path in references)
    assert np.abs(first - second).max() < 0.05 * np.abs(first).max() + 0.02


def test_a_larger_network_computes_the_same_at_first_and_learns(prepared, checkpoint, tmp_path, ended):
    out, larger = tmp_path / "net.safetensors", str(tmp_path / "larger.pt")
    run_script("export.py", checkpoint, out)
    run_script("restore.py", out, larger, "--over-places", 48, "--over-frames", 72, "--turns", 4)
    small, _ = restore.read(out, live=False)
    shape = torch.load(larger, weights_only=True)["shape"]
    large = network.PresenceNet(**shape)
    large.load_state_dict(weights_of(larger))
    assert (shape["over_places"], shape["over_frames"], len(large.turns)) == (48, 72, 8)
    seen = torch.randn(2, 3, 20, BANDS)
    with torch.no_grad():
        assert torch.allclose(small(seen), large(seen), atol=1e-4)
    learn(0, arguments([prepared, larger, "--minutes", "60", "--steps", "3", "--batch", "2", "--seconds", "1.5"]))
    learned = torch.load(larger, weights_only=True)
    changed = lambda name: not torch.equal(learned["net"][name].float(), large.state_dict()[name].bfloat16().float())
    # The outputs of new units and of the new turn, which were zero.
    assert learned["shape"] == shape and changed("turns.7.join.weight")
    assert learned["net"]["turns.0.join.weight"][:, 40:48].abs().max() > 0
    assert "or more" in ended(restore.main, out, larger, "--turns", 2)


def test_what_was_exported_can_be_restored(prepared, checkpoint, tmp_path):
    out, again, second = tmp_path / "net.safetensors", tmp_path / "again.pt", tmp_path / "second.csv"
    run_script("export.py", checkpoint, out, "--reference", tmp_path / "first.csv")
    run_script("restore.py", out, again)
    run_script("export.py", again, tmp_path / "second.safetensors", "--reference", second)
    agree(tmp_path / "first.csv", second)


def test_the_mean_of_two_runs_has_a_fraction_of_each(checkpoint, tmp_path, monkeypatch, ended):
    """The second one may be that of a large network, in 16 bits."""
    first = train.checkpoint_of(checkpoint)
    second = {**first, "average": {name: value + 1 for name, value in train.halved(first["average"], torch.float16).items()}}
    torch.save(second, tmp_path / "second.pt")
    monkeypatch.setattr(sys, "argv", ["average.py", checkpoint, str(tmp_path / "second.pt"), "0.25", str(tmp_path / "out.pt")])
    average.main()
    means, before = weights_of(str(tmp_path / "out.pt")), weights_of(first)
    assert all(torch.allclose(means[name], value + 0.75, atol=2e-3) for name, value in before.items() if value.dtype.is_floating_point)
    assert train.checkpoint_of(str(tmp_path / "out.pt"))["average"]["first.weight"].dtype == torch.float16
    for words in ("1.5", "-0.1", "nan"):
        line = ended(average.main, checkpoint, checkpoint, words, tmp_path / "no.pt")
        assert line.endswith(f"argument FRACTION: {words}: expected a number from 0 to 1")
    Run(1e-3, shape=dict(turns=2)).save(str(tmp_path / "other.pt"), 0.0)
    assert ended(average.main, checkpoint, tmp_path / "other.pt", "0.5", tmp_path / "no.pt") == f"{tmp_path}/other.pt: other sizes than {checkpoint}"
    assert not (tmp_path / "no.pt").exists()


def test_files_of_another_network_are_refused(checkpoint, tmp_path, ended):
    """Each by one line, and nothing is written."""
    live, spoilt, out = str(tmp_path / "live.pt"), str(tmp_path / "spoilt.pt"), tmp_path / "out"
    Run(1e-3, live=True).save(live, 0.0)
    c = train.checkpoint_of(checkpoint)
    c["average"]["first.weight"][0] = float("nan")
    torch.save(c, spoilt)
    for words in ((live,), (checkpoint, "--live")):
        assert ended(export.main, words[0], out, *words[1:]) == f"{words[0]}: weights of another network, such as the causal one (--live)"
    with pytest.raises(SystemExit, match="weights of another network"):
        Run(1e-3).load(live)
    assert ended(export.main, spoilt, out) == "non-finite weights: nothing is written"
    models = {"--live": tmp_path / "live.safetensors", "": tmp_path / "net.safetensors"}
    run_script("export.py", live, models["--live"], "--live")
    run_script("export.py", checkpoint, models[""])
    assert ended(restore.main, models["--live"], out) == f"{models['--live']}: the causal network, which needs --live"
    assert ended(restore.main, models[""], out, "--live") == f"{models['']}: not the causal network, which --live needs"
    export.write(tmp_path / "pool.safetensors", "alphamf-pool", {}, [("first", "F32", np.zeros(1, np.float32))])
    assert ended(restore.main, tmp_path / "pool.safetensors", out) == f"{tmp_path}/pool.safetensors: no speech-presence network, but alphamf-pool"
    assert "No such file" in ended(restore.main, tmp_path / "typo.safetensors", out)
    assert not out.exists()


def test_too_few_mixtures_above_eight_kilohertz_are_refused(tmp_path, ended):
    """Below 17 there is no step, or none that is judged."""
    np.savez(tmp_path / "few.npz", inputs=np.zeros((16, 2, upper.INPUTS), np.float16), targets=np.zeros((16, 2, 3, upper.UPPER), np.float32))
    assert ended(upper.main, "learn", tmp_path / "few.npz", tmp_path / "out.pt") == f"{tmp_path}/few.npz: 16 mixtures, expected 17 or more"
    assert ended(upper.main, "learn", tmp_path / "few.npz", tmp_path / "out.pt", "--epochs", 0).endswith("argument --epochs: 0: expected 1 or more")
    assert ended(upper.main, "mix", tmp_path, "checkpoint.pt", "mixtures.npz", "--count", 0).endswith("argument --count: 0: expected 1 or more")


def test_weights_of_the_speech_track_need_mixtures_and_noises(ended):
    """Without mixtures, those of the live probability were zeros."""
    for script in ("voice_activity", "speech_track"):
        # eval/ has a script of the same name.
        spec = importlib.util.spec_from_file_location(f"training_{script}", os.path.join(TRAINING, f"{script}.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for option in ("--mixtures", "--noises"):
            assert ended(module.main, "one", "other", option, 0).endswith(f"argument {option}: 0: expected 1 or more")


def test_made_voices_are_of_any_recording(tmp_path, monkeypatch, ended):
    """Of the mean of two channels; a recording shorter than a frame was a traceback."""
    rng = np.random.default_rng(0)
    for name, samples in (("stereo", 8000), ("short", 100), ("empty", 0)):
        sf.write(tmp_path / f"{name}.wav", 0.1 * rng.standard_normal((samples, 2)), 16000)
    monkeypatch.setattr(sys, "argv", ["voices.py", str(tmp_path / "stereo.wav"), str(tmp_path / "made")])
    voices.main()
    made = [sf.read(path)[0] for path in (tmp_path / "made").iterdir()]
    assert len(made) == 4 and all(x.shape == (8000,) and x.any() for x in made)
    for name in ("short", "empty"):
        assert ended(voices.main, tmp_path / f"{name}.wav", tmp_path / "none").startswith(f"{tmp_path}/{name}.wav: shorter than ")
    (tmp_path / "bad.wav").write_text("text")
    assert ended(voices.main, tmp_path / "bad.wav", tmp_path / "none").startswith(f"{tmp_path}/bad.wav: ")
    assert not (tmp_path / "none").exists()


def test_live_losses_are_finite(prepared):
    run, mixer = Run(1e-3, live=True), Mixer(prepared, 4, 1.5)
    batch = mixer.batch(2)
    terms = losses.live_losses(run.net, batch.noisy, batch.voice, batch.half, mixer.rng)
    assert all(torch.isfinite(term) for term in terms)
    run.descend(terms[0], 1)


def test_the_network_above_eight_kilohertz_learns_from_full_band_mixtures(tmp_path_factory, checkpoint):
    from conftest import make_data

    data, out = str(tmp_path_factory.mktemp("full") / "data"), tmp_path_factory.mktemp("prepared48")
    os.makedirs(data)
    make_data(data, 48000)
    run_script("prepare.py", out, "--full-band", "--data", data, "--made", "0")
    run_script("upper.py", "mix", out, checkpoint, out / "mixtures.npz", "--count", "17")
    run_script("upper.py", "learn", out / "mixtures.npz", out / "upper.pt", "--epochs", "1")
    run_script("upper.py", "export", out / "upper.pt", out / "upper.safetensors", "--reference", out / "upper.csv")
    assert np.isfinite(load_file(out / "upper.safetensors")["scales"]).all()
