import concurrent.futures
import copy
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import AUDIO, read, write

import alphamf
from alphamf import _calls

FAST = {"quality": "fast", "no_neural": True}


def test_output_equals_the_programs_bit_for_bit(program, noisy, tmp_path):
    samples, rate = noisy
    stereo = np.stack([samples, samples[::-1] // 2])
    for number, (recording, options, flags) in enumerate(
        [
            (samples, {}, []),
            (
                samples,
                {"sampler": "sgld", "iterations": 6, "seed": 3},
                ["--sampler=sgld", "--iterations=6", "--seed=3"],
            ),
            (samples, {"strength": "gentle", "mix": 0.8, "threads": 1}, ["--strength=gentle", "--mix=0.8"]),
            (stereo, {"channels": "separate", **FAST}, ["--channels=separate", "--quality=fast", "--no-neural"]),
            (
                stereo,
                {"no_neural": True, "floor_db": -20, "no_dither": True},
                ["--no-neural", "--floor-db=-20", "--no-dither"],
            ),
        ]
    ):
        source, target, residual = (tmp_path / f"{name}{number}.wav" for name in ("in", "out", "rest"))
        write(source, recording, rate)
        command = [program, "-q", source, target, "--residual", residual, "--noise-from", "0.1..0.9", *flags]
        subprocess.run(command, check=True)
        found = alphamf.Denoiser(**options).denoise(recording, rate, noise_from=(0.1, 0.9), residual=True)
        assert found.speech.dtype == np.int16 and found.speech.shape == recording.shape
        assert np.array_equal(found.speech, read(target)[0]), options
        assert np.array_equal(found.residual, read(residual)[0]), options
        # Their dither is opposite. A sample is one off if its float is the middle of two integers: often without dither only.
        difference = found.speech.astype(int) + found.residual - recording
        assert np.abs(difference).max() <= 1, options
        assert options.get("no_dither") or np.count_nonzero(difference) <= 5, options


def test_statistics_equal_the_programs(program, noisy, tmp_path):
    write(tmp_path / "in.wav", *noisy)
    stats = tmp_path / "stats.json"
    subprocess.run([program, "-q", tmp_path / "in.wav", tmp_path / "out.wav", "--stats", stats], check=True)
    expected = json.loads(stats.read_text())["files"][0]
    found = alphamf.Denoiser().denoise(*noisy).stats
    assert len(found) > 12 and found == {name: expected[name] for name in found}


def test_the_example_denoises_a_file_and_silence(tmp_path):
    example = AUDIO.parent / "bindings/python/examples/denoise.py"
    write(tmp_path / "silence.wav", np.zeros(8000, np.int16), 8000)
    for source, words in ((AUDIO / "demo-noisy.wav", "dB before"), (tmp_path / "silence.wav", "no speech found")):
        command = [sys.executable, example, source, tmp_path / "out.wav"]
        assert words in subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert read(tmp_path / "out.wav")[0].shape == read(source)[0].shape


def test_shape_and_type_stay(noisy):
    samples, rate = noisy
    whole = alphamf.denoise(samples, rate, **FAST)
    floats = samples.astype(np.float32) / 32768
    single = alphamf.denoise(floats, rate, **FAST)
    double = alphamf.denoise(floats.astype(np.float64), rate, **FAST)
    assert (whole.dtype, single.dtype, double.dtype) == (np.int16, np.float32, np.float64)
    assert np.array_equal(single, double) and np.abs(whole / 32768 - single).max() < 2 / 32768
    stereo = np.stack([floats, 0.5 * floats])
    both = alphamf.denoise(stereo, rate, **FAST)
    assert both.shape == stereo.shape and np.allclose(both[1], 0.5 * both[0], atol=1e-6)
    # Any layout in memory is read as it means.
    assert np.array_equal(alphamf.denoise(np.asfortranarray(stereo), rate, **FAST), both)
    assert np.array_equal(alphamf.denoise(np.repeat(floats, 2)[::2], rate, **FAST), single)
    unaligned = np.frombuffer(b"?" + floats.tobytes(), np.float32, offset=1)
    assert np.array_equal(alphamf.denoise(unaligned, rate, **FAST), single)
    for samples in (floats, np.zeros(100, np.int16)):
        unaligned = np.frombuffer(b"?" + samples.tobytes(), samples.dtype, offset=1)
        assert np.array_equal(alphamf.Denoiser().live(rate).process(unaligned), alphamf.Denoiser().live(rate).process(samples))
    # A recording may be empty.
    fractions = []
    for shape, dtype in (((0,), np.int16), ((2, 0), np.float64)):
        empty = alphamf.denoise(np.zeros(shape, dtype), rate, progress=fractions.append, **FAST)
        assert (empty.shape, empty.dtype) == (shape, dtype) and all(0 <= fraction <= 1 for fraction in fractions)


@pytest.mark.parametrize(
    ("shape", "dtype", "rate", "error", "words"),
    [
        ((4000, 2), np.float32, 8000, ValueError, "x.T"),
        ((2, 2, 100), np.float32, 8000, ValueError, "(channels, n)"),
        ((0, 2), np.float32, 8000, ValueError, "no channels"),
        ((), np.float32, 8000, ValueError, "(channels, n)"),
        ((4000,), np.int32, 8000, TypeError, "int16"),
        ((4000,), ">i2", 8000, TypeError, "expected the byte order of this machine: x.astype('int16')"),
        ((4000,), np.complex64, 8000, TypeError, "complex64"),
        ((4000,), np.float32, 7999, ValueError, "8000"),
        ((4000,), np.float32, 16000.5, ValueError, "integer"),
        ((4000,), np.float32, np.inf, ValueError, "integer"),
        ((4000,), np.float32, np.nan, ValueError, "integer"),
        ((300, 4000), np.float32, 8000, ValueError, "256"),
    ],
)
def test_what_is_no_recording_is_refused(shape, dtype, rate, error, words):
    with pytest.raises(error) as raised:
        alphamf.denoise(np.zeros(shape, dtype), rate)
    assert words in str(raised.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_samples_that_are_not_finite_are_refused(bad):
    x = np.zeros(8000)
    x[5] = bad
    with pytest.raises(ValueError, match="sample 6 of channel 1"):
        alphamf.denoise(x, 8000)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"strength": "brutal"}, ValueError, "brutal"),
        ({"floor_db": 3}, ValueError, "floor"),
        ({"quality": "fast", "sampler": "hmc"}, ValueError, "no effect"),
        ({"sampler": "unknown"}, ValueError, "unknown"),
        ({"mix": 1.5}, ValueError, "mix"),
        ({"threads": 0}, ValueError, "threads is 0; expected a whole number from 1 to 1024"),
        ({"threads": 2.5}, ValueError, "threads is 2.5; expected a whole number"),
        ({"colour": 1}, TypeError, "colour"),
        ({"mix": [1]}, ValueError, "`mix` is [1]: expected a number"),
        ({"strength": "gentle", "mix": "0.8"}, ValueError, '`mix` is "0.8": expected a number'),
        ({"mix": object()}, TypeError, "mix is <object object at 0x"),
        ({"strength": len}, TypeError, "strength is <built-in function len>; expected a number, a string or a bool"),
        ({"model": b"no dictionary"}, ValueError, ""),
        ({"model": "absent.safetensors"}, OSError, "absent"),
    ],
)
def test_options_out_of_range_are_named(options, error, words):
    with pytest.raises(error) as raised:
        alphamf.denoise(np.zeros(8000), 8000, **options)
    assert words in str(raised.value)


def test_every_option_of_the_program_is_there(program):
    """What is no option of samples but of files and terminals is left out."""
    files = {
        "output-dir", "force", "residual", "plot", "plot-scale", "levels", "stats", "raw", "raw-out", "format", "salvage", "strict",
        "noise-from", "manifest", "shard", "live", "latency", "quiet", "log", "help", "version", "speech", "speech-format",
    }  # fmt: skip
    text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    names = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.MULTILINE))
    annotations = alphamf.Denoiser.__init__.__annotations__
    assert len(names) > 20 and {name.replace("-", "_") for name in names - files} <= set(annotations)


def test_chunks_give_what_the_whole_gives(noisy):
    samples, rate = noisy
    samples = np.tile(samples, 10)  # Several blocks of eight seconds.
    denoiser = alphamf.Denoiser(mix=0.9, **FAST)
    whole = denoiser.denoise(samples, rate, residual=True)
    stream = denoiser.stream(rate, dtype=np.int16, residual=True)
    parts, removed, waiting = [], [], 0
    for start in range(0, len(samples), 7001):
        chunk = samples[start : start + 7001]
        parts.append(stream.push(chunk))
        removed.append(stream.residual[0])
        waiting += len(chunk) - len(parts[-1])
        assert waiting <= stream.latency
    assert waiting < len(samples)
    parts.append(stream.finish())
    removed.append(stream.residual[0])
    assert np.array_equal(np.concatenate(parts), whole.speech)
    assert np.array_equal(np.concatenate(removed), whole.residual)
    assert stream.stats == whole.stats
    with pytest.raises(ValueError, match="ended"):
        stream.push(samples[:100])
    stereo = denoiser.stream(rate, 2)
    with pytest.raises(ValueError, match="transpose"):
        stereo.push(np.zeros((100, 2), np.float32))
    with pytest.raises(TypeError, match="float32"):
        stereo.push(np.zeros((2, 100)))
    for shape in ((100,), (3, 100), (1, 2, 100)):
        with pytest.raises(ValueError, match=re.escape(f"a chunk of shape {shape}: expected (2, n)")):
            stereo.push(np.zeros(shape, np.float32))
    chunks = np.split(np.stack([samples, samples]) / np.float32(32768), 4, axis=1)
    done = np.concatenate(list(denoiser.stream(rate, 2).denoise(chunks)), axis=1)
    assert done.shape == (2, len(samples))


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 96000])
def test_an_impulse_takes_the_latency(rate):
    live = alphamf.Denoiser().live(rate)
    assert live.latency <= 0.016 * rate + 1
    sound = (0.001 * np.random.default_rng(1).standard_normal(rate // 2)).astype(np.float32)
    sound[rate // 4] = 0.5
    done = np.concatenate([live.process(block) for block in np.array_split(sound, 50)])
    assert np.abs(done).argmax() == rate // 4 + live.latency


def test_speech_starts_and_ends(noisy):
    samples, rate = noisy
    sound = samples.astype(np.float32) / 32768
    live = alphamf.Denoiser().live(rate, voice_hang_over_seconds=0.1)
    probabilities, events = [], []
    for start in range(0, len(sound), 160):
        live.process(sound[start : start + 160])
        probabilities.append(live.meters["speech_probability"])
        events += live.events()
        assert live.speaking == (len(events) % 2 == 1)
    assert 0 <= min(probabilities) < 0.5 <= max(probabilities) <= 1
    assert [event.speaking for event in events] == [n % 2 == 0 for n in range(len(events))]
    assert all(0 < event.sample <= len(sound) for event in events)
    integers = alphamf.Denoiser().live(rate, voice_hang_over_seconds=0.1)
    integers.process(samples)
    assert events and integers.events() == events
    live.reset()
    live.set(voice_threshold=1.0)
    live.process(sound)
    assert not live.speaking and live.events() == []


def test_threads_take_turns_with_a_stream(noisy):
    samples, rate = noisy
    sound = np.tile(samples.astype(np.float32) / 32768, 3)
    stream = alphamf.Denoiser(threads=2).stream(rate)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        pushes = []
        for _ in range(4):
            pushes.append(threads.submit(stream.push, sound))
            time.sleep(0.1)  # The first is at work by then, on both threads of the pool.
        done = [push.result(timeout=120) for push in pushes]
    assert sum(len(part) for part in [*done, stream.finish()]) == 4 * len(sound)


def test_live_sound_equals_the_programs(program, noisy, tmp_path):
    samples, rate = noisy
    write(tmp_path / "in.wav", samples, rate)
    flags = ["--live", "--latency=8", "--format=f32", "--mix=0.9", "--floor-db=-20"]
    subprocess.run([program, "-q", tmp_path / "in.wav", tmp_path / "out.raw", "--raw-out", *flags], check=True)
    expected = np.fromfile(tmp_path / "out.raw", "<f4")
    live = alphamf.Denoiser(floor_db=-20, mix=0.9).live(rate, latency=8)
    assert live.latency == 128
    sound = np.append(samples / np.float32(32768), np.zeros(live.latency, np.float32))
    blocks = [live.process(sound[start : start + 333]) for start in range(0, len(sound), 333)]
    done = np.concatenate(blocks)[live.latency :]
    assert done.dtype == np.float32 and np.array_equal(done, expected)
    assert -120 <= live.meters["noise_dbfs"] < 0
    for seconds in (-1, np.nan):
        with pytest.raises(ValueError, match=f"seconds is {seconds}; expected 0 or more"):
            live.learn_noise(seconds)
    with pytest.raises(TypeError, match="seconds is '1'; expected a number"):
        live.learn_noise("1")
    # It begins anew; what passes by is late alone.
    live.reset()
    live.set(bypass=True, gain_exponent=5.0)
    assert live.controls["bypass"] and live.controls["gain_exponent"] == 2.0
    passed = live.process(sound.astype(np.float64))
    assert passed.dtype == np.float64 and np.array_equal(passed[8000:], sound[8000 - 128 : -128])
    stereo = alphamf.Denoiser().live(rate, 2)
    assert stereo.process(np.zeros((2, 100), np.float32)).shape == (2, 100)
    for wrong in (np.zeros((100, 2), np.float32), np.zeros(100, np.float32)):
        with pytest.raises(ValueError, match="expected"):
            stereo.process(wrong)
    with pytest.raises(ValueError, match="colour"):
        stereo.set(colour=1)
    with pytest.raises(ValueError, match="latency is 100; expected 4 to 64"):
        alphamf.Denoiser().live(rate, latency=100)
    with pytest.raises(TypeError, match="latency is '8'; expected a number"):
        alphamf.Denoiser().live(rate, latency="8")
    with pytest.raises(ValueError, match='mix is "half"; expected a number'):
        live.set(mix="half")
    # A float64 beyond float32 is limited, without a warning.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(live.process(np.full(8000, 1e300))).all()


def test_a_live_denoiser_starts_with_the_controls_of_the_denoiser():
    live = alphamf.Denoiser(strength="gentle", purpose="transcription").live(16000, voice_threshold=0.25)
    assert live.controls == {
        "gain_exponent": 1.0, "floor_db": -12.0, "mix": 0.8, "bypass": False, "voice_threshold": 0.25,
        "voice_hang_over_seconds": 0.3,
    }  # fmt: skip
    # Ranges are those of the library.
    for bound, controls in zip((-np.inf, np.inf), (_calls.LEAST, _calls.MOST)):
        assert set(controls) == set(live.controls)
        for name in ("gain_exponent", "floor_db", "mix"):
            live.set(**{name: float(np.clip(bound, -1e9, 1e9))})
            assert live.controls[name] == controls[name] == _calls.clamped(name, np.clip(bound, -1e9, 1e9))


def test_a_noise_profile_is_that_of_the_noise():
    noise = np.random.default_rng(1).normal(0, 0.1, 160000)
    denoiser = alphamf.Denoiser(**FAST)
    profile = denoiser.noise_profile(noise, 16000)
    assert profile.power.shape == (1, 513) and profile.frequencies[1] == 15.625
    # A Hann window of 1024 samples has a mean square of 3/8.
    assert abs(profile.power[0, 5:500].mean() / (0.01 * 1024 * 0.375) - 1) < 0.05
    with pytest.raises(ValueError, match="16000"):
        denoiser.denoise(noise[:8000], 8000, noise_from=profile)
    with pytest.raises(ValueError, match="noise_from"):
        denoiser.denoise(noise, 16000, noise_from=(5, 20))
    given = denoiser.denoise(noise, 16000, noise_from=(0, 2)).noise
    assert np.array_equal(given.power, denoiser.noise_profile(noise[:32000], 16000).power)


@pytest.mark.parametrize("section", ["0..2", "12", 0.5, (0,), (0, 1, 2), (None, 1), (0, "1"), slice(0, 1), (False, True), np.zeros((2, 2))])
def test_what_is_no_section_is_refused(noisy, section):
    denoiser = alphamf.Denoiser(**FAST)
    words = re.escape(f"noise_from is {section!r}; expected start and end in seconds, or a NoiseProfile")
    with pytest.raises(TypeError, match=words):
        denoiser.denoise(*noisy, noise_from=section)
    # What comes in chunks has no sections yet.
    for given in (section, (0, 1)):
        with pytest.raises(TypeError, match=re.escape(f"noise_from is {given!r}; expected a NoiseProfile: make one by")):
            denoiser.stream(16000, noise_from=given)


def test_sections_are_given_by_numbers_of_any_type(noisy):
    denoiser = alphamf.Denoiser(**FAST)
    expected = denoiser.denoise(*noisy, noise_from=(0, 0.5)).noise.power
    for section in ([0, 0.5], np.array([0, 0.5]), (np.int64(0), np.float32(0.5))):
        assert np.array_equal(denoiser.denoise(*noisy, noise_from=section).noise.power, expected)


def test_the_deviation_has_the_frames_of_the_recording(noisy):
    samples, rate = noisy
    stereo = np.stack([samples, samples])
    found = alphamf.Denoiser().denoise(stereo, rate, gain_std=True).gain_std
    frames = -(-(len(samples) + 768) // 256)
    assert found.values.shape == (513, frames) and (found.bin_hertz, found.frame_seconds) == (15.625, 0.016)
    assert 0 < found.values.max() <= 0.5 and found.values.min() >= 0
    separate = alphamf.Denoiser(channels="separate").denoise(stereo, rate, gain_std=True).gain_std
    assert separate.values.shape == (2, 513, frames)
    assert alphamf.Denoiser(**FAST).denoise(samples, rate, gain_std=True).gain_std.values.size == 0


def test_levels_are_those_of_the_voice(noisy):
    samples, rate = noisy
    stereo = np.stack([samples, samples])
    found = alphamf.Denoiser(**FAST).denoise(stereo, rate, levels=True)
    level, lower, upper = found.levels.values
    assert level.shape == (len(found.levels.edges_hertz) - 1, -(-len(samples) * 10 // rate))
    assert (found.levels.slot_seconds, found.levels.first_slot) == (0.1, 0)
    assert np.all((lower <= level) & (level <= upper) | np.isnan(level))
    power = np.nansum(10 ** (level / 10)) / level.shape[1]
    assert abs(10 * np.log10(power / np.mean((found.speech / 32768) ** 2))) < 3
    separate = alphamf.Denoiser(channels="separate", **FAST).denoise(stereo, rate, levels=True).levels
    assert separate.values.shape == (2, 3) + level.shape
    stream = alphamf.Denoiser(**FAST).stream(rate, dtype=np.int16, levels=True)
    stream.push(samples)
    parts = [stream.take_levels()]
    stream.finish()
    parts.append(stream.take_levels())
    assert parts[1].first_slot == parts[0].values.shape[2]
    alone = alphamf.Denoiser(**FAST).denoise(samples, rate, levels=True).levels.values
    assert np.array_equal(np.concatenate([part.values for part in parts], axis=2), alone, equal_nan=True)
    assert alphamf.Denoiser(**FAST).denoise(samples, rate).levels is None


def test_the_speech_track_is_the_streams_and_covers_the_recording(noisy):
    samples, rate = noisy
    track = alphamf.Denoiser(**FAST).denoise(samples, rate, speech_track=True).speech_track
    assert (track.slot_seconds, track.first_slot) == (0.01, 0)
    assert abs(len(track.probability) - len(samples) * 100 / rate) <= 1
    assert 0 <= track.probability.min() and track.probability.max() <= 1
    (segments,) = track.segments
    starts, ends = segments["start_seconds"], segments["end_seconds"]
    assert len(segments) > 0 and np.all(starts < ends) and np.all(starts[1:] > ends[:-1])
    assert np.all(segments["level_dbfs"] < 0) and np.all(segments["snr_db"] <= 100)
    stream = alphamf.Denoiser(**FAST).stream(rate, dtype=np.int16, speech_track=True)
    stream.push(samples)
    parts = [stream.take_speech_track()]
    stream.finish()
    parts.append(stream.take_speech_track())
    assert parts[1].first_slot == len(parts[0].probability)
    assert np.array_equal(np.concatenate([part.probability for part in parts]), track.probability)
    assert np.array_equal(np.concatenate([part.segments[0] for part in parts]), segments)
    stereo = np.stack([samples, samples])
    separate = alphamf.Denoiser(channels="separate", **FAST).denoise(stereo, rate, speech_track=True).speech_track
    assert separate.probability.shape == (2, len(track.probability)) and len(separate.segments) == 2
    assert alphamf.Denoiser(**FAST).denoise(samples, rate).speech_track is None


def test_a_denoiser_is_pickled_with_its_model(noisy, tmp_path):
    samples, rate = noisy
    path = tmp_path / "model.safetensors"
    path.write_bytes(alphamf.Denoiser().dictionary)
    denoiser = alphamf.Denoiser(model=path, seed=5, **FAST)
    path.unlink()
    again = pickle.loads(pickle.dumps(denoiser))
    assert again.settings == denoiser.settings and again.settings["seed"] == 5
    assert np.array_equal(again.denoise(samples, rate).speech, denoiser.denoise(samples, rate).speech)


class Named(alphamf.Denoiser):
    __slots__ = ("place",)

    def __init__(self, name):
        super().__init__(threads=2, **FAST)
        self.name, self.place = name, 3


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_subclass_keeps_its_type_and_attributes(noisy, protocol):
    denoiser = Named("first")
    for again in (pickle.loads(pickle.dumps(denoiser, protocol)), copy.copy(denoiser), copy.deepcopy(denoiser)):
        assert type(again) is Named and (again.name, again.place) == ("first", 3)
        assert again.settings == denoiser.settings and repr(again) == repr(denoiser)
    assert np.array_equal(again.denoise(*noisy).speech, denoiser.denoise(*noisy).speech)


def test_numbers_of_numpy_are_numbers():
    denoiser = alphamf.Denoiser(seed=np.int64(3), iterations=np.uint8(6), floor_db=np.float32(-20))
    settings = denoiser.settings
    same = alphamf.Denoiser(seed=3.0, iterations=np.float64(6), floor_db=np.longdouble(-20))
    assert same.settings == settings
    assert (settings["seed"], settings["sampling"]["iterations"], settings["gain"]["floor_db"]) == (3, 6, -20)


@pytest.mark.parametrize(("name", "value"), [("floor_db", -np.inf), ("mix", np.nan), ("mix", np.float32("inf"))])
def test_numbers_that_are_not_finite_are_named(name, value):
    words = re.escape(f"{name} is {value}; expected a finite number")
    with pytest.raises(ValueError, match=words):
        alphamf.Denoiser(**{name: value})
    live = alphamf.Denoiser(**FAST).live(16000)
    before = live.controls
    with pytest.raises(ValueError, match=words):
        live.set(bypass=True, **{name: value})
    assert live.controls == before


def test_numbers_beyond_integers_are_in_the_message(noisy):
    denoiser = alphamf.Denoiser(**FAST)
    for channels in (-1, 0, 257, 1.5, np.inf, np.nan):
        for make in (denoiser.stream, denoiser.live):
            with pytest.raises(ValueError, match=f"{channels} channels: expected an integer from 1 to 256"):
                make(16000, channels)
    for section in ((0, np.inf), (np.nan, 1), (-np.inf, None)):
        with pytest.raises(ValueError, match=f"noise_from is {section[0]}..{section[1]} s; expected"):
            denoiser.denoise(*noisy, noise_from=section)


@pytest.mark.parametrize("value", ["16000", None, True, [16000]])
def test_what_is_no_number_is_named(noisy, value):
    denoiser = alphamf.Denoiser(**FAST)
    words = re.escape(f"sample_rate is {value!r}; expected a number")
    for call in (lambda: denoiser.denoise(noisy[0], value), lambda: denoiser.stream(value), lambda: denoiser.live(value)):
        with pytest.raises(TypeError, match=words):
            call()
    if value is not None:
        with pytest.raises(TypeError, match=re.escape(f"threads is {value!r}; expected a number")):
            alphamf.Denoiser(threads=value)
    with pytest.raises(TypeError, match=re.escape(f"channels is {value!r}; expected a number")):
        denoiser.stream(16000, value)


def test_a_block_with_a_row_for_each_sample_names_the_remedy():
    denoiser = alphamf.Denoiser(**FAST)
    for take in (denoiser.stream(16000, 2).push, denoiser.live(16000, 2).process):
        with pytest.raises(ValueError, match=re.escape("of shape (100, 2): expected (2, n); transpose it (.T)")):
            take(np.zeros((100, 2), np.float32))
        with pytest.raises(ValueError, match=re.escape("of shape (3, 100): expected (2, n)") + "$"):
            take(np.zeros((3, 100), np.float32))


def test_a_chunk_of_another_type_names_the_remedy():
    with pytest.raises(TypeError, match='a chunk of int16: expected the stream\'s float32; make the stream with dtype="int16"'):
        alphamf.Denoiser(**FAST).stream(16000).push(np.zeros(100, np.int16))


def test_threads_set_different_controls():
    live = alphamf.Denoiser(**FAST).live(16000)

    def lost(name, values):
        count = 0
        for turn in range(1000):
            live.set(**{name: values[turn % 2]})
            count += live.controls[name] != values[turn % 2]
        return count

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(lost, ("mix", "floor_db"), ((0.25, 0.5), (-20.0, -30.0)))) == 0
    finally:
        sys.setswitchinterval(interval)


def test_a_result_is_pickled_with_the_spectrum_of_its_noise(noisy):
    denoiser = alphamf.Denoiser(**FAST)
    found = denoiser.denoise(*noisy, noise_from=(0, 0.5))
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.speech, found.speech) and np.array_equal(again.noise.power, found.noise.power)
    assert np.array_equal(again.noise.frequencies, found.noise.frequencies)
    with pytest.raises(ValueError, match="learn it again"):
        denoiser.denoise(*noisy, noise_from=again.noise)
    assert denoiser.denoise(*noisy, noise_from=copy.deepcopy(found).noise).stats == found.stats


def test_threads_share_a_denoiser(noisy):
    samples, rate = noisy
    denoiser = alphamf.Denoiser(**FAST)
    expected = denoiser.denoise(samples, rate).speech
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: denoiser.denoise(samples, rate).speech, range(8)))
    assert all(np.array_equal(result, expected) for result in results)


def test_other_threads_run_meanwhile(noisy):
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    began = time.monotonic()
    alphamf.denoise(*noisy, iterations=200)
    taken = time.monotonic() - began
    done.set()
    thread.join()
    assert counted > 20 * taken


def _in_child(samples, rate, queue):
    queue.put(alphamf.denoise(samples, rate, noise_from=(0, 0.5), **FAST))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_denoises(noisy):
    expected = alphamf.denoise(*noisy, noise_from=(0, 0.5), **FAST)  # The parent has its threads.
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(*noisy, queue), daemon=True)
    child.start()
    assert np.array_equal(queue.get(timeout=60), expected)


@pytest.mark.parametrize("shape", [(-1,), (1, -1)])
def test_the_end_of_a_stream_has_the_shape_of_its_chunks(noisy, shape):
    samples, rate = noisy
    stream = alphamf.Denoiser(**FAST).stream(rate, dtype=np.int16)
    parts = list(stream.denoise(samples.reshape(shape)[..., start : start + rate] for start in (0, rate)))
    assert np.concatenate(parts, axis=-1).shape == samples.reshape(shape).shape
    assert all(part.ndim == len(shape) for part in parts)


def test_a_stream_without_chunks_ends_empty():
    denoiser = alphamf.Denoiser(**FAST)
    assert denoiser.stream(16000).finish().shape == (0,) and denoiser.stream(16000, 2).finish().shape == (2, 0)
