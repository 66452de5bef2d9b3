"""Filters for calls, in the packages that they are made for; those that are not installed are reported."""

import asyncio
import importlib.util
import re
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import AUDIO, read
from soak import LIMIT, frames_of, room_of, soak

import alphamf
from alphamf import _calls


def need(package):
    if importlib.util.find_spec(package) is None:
        # More than a letter in the report: warnings are listed.
        warnings.warn(f"the filter for {package} is NOT TESTED: it is not installed", stacklevel=2)
        pytest.skip(f"{package} not installed")


RATES = [16000, 24000, 48000]
FRAME_MS = [10, 20]


@pytest.fixture(scope="module")
def denoiser():
    return alphamf.Denoiser()


def recording(rate):
    """A second of the demo at a rate: its spectrum, cut or continued with zeros."""
    samples, from_rate = read(AUDIO / "demo-noisy.wav")
    spectrum = np.fft.rfft(samples[from_rate : 2 * from_rate].astype(float))
    padded = np.zeros(rate // 2 + 1, complex)
    count = min(len(spectrum), len(padded))
    padded[:count] = spectrum[:count]
    return np.round(np.fft.irfft(padded, rate) * rate / from_rate).clip(-32768, 32767).astype(np.int16)


def expected(denoiser, samples, rate, **controls):
    """What the live denoiser makes of it: 16-bit codes, nearest to its floats."""
    done = denoiser.live(rate, 1 if samples.ndim == 1 else len(samples), **controls).process(samples / np.float32(32768))
    return np.clip(np.rint(done * 32768), -32768, 32767).astype(np.int16)


def chunks(samples, length):
    return [samples[..., start : start + length] for start in range(0, samples.shape[-1], length)]


def test_integers_are_the_floats_rounded(denoiser):
    samples = recording(16000)
    done = denoiser.live(16000).process(samples)
    assert done.dtype == np.int16 and np.abs(done).max() > 1000
    assert np.array_equal(done, expected(denoiser, samples, 16000))
    # The loudest codes pass as they are.
    loud = np.tile(np.array([-32768, 32767], np.int16), 800)
    passed = denoiser.live(16000, bypass=True).process(loud)
    assert np.array_equal(passed[256:], loud[:-256])


@pytest.mark.parametrize(
    "audio, channels, words",
    [
        (b"a", 1, "1 byte of audio: expected a multiple of 2 for 1 channel"),
        (b"abc", 2, "3 bytes of audio: expected a multiple of 4 for 2 channels"),
    ],
)
def test_samples_that_are_cut_are_counted(audio, channels, words):
    with pytest.raises(ValueError, match=f"{words}$"):
        _calls.as_rows(audio, channels)


@pytest.mark.parametrize("value", ["0.5", None, True, np.bool_(True), np.zeros(2), [1.0], {}])
def test_controls_that_are_no_numbers_are_named_and_change_nothing(denoiser, value):
    options = _calls.LiveOptions(denoiser, 16, gain_exponent=1.0, floor_db=None, mix=None)
    live = options.open(16000, 1)
    before = live.controls
    with pytest.raises(ValueError, match=re.escape(f"mix is {value!r}; expected a number")):
        options.update({"floor_db": -20, "mix": value}, live)
    assert live.controls == before and options.controls == {"gain_exponent": 1.0, "floor_db": None, "mix": None}
    options.update({"floor_db": np.float32(-20), "mix": 1}, live)
    assert live.controls["floor_db"] == -20


@pytest.mark.parametrize("value", ["gentle", alphamf.Denoiser, 16])
def test_what_is_no_denoiser_is_named(value):
    with pytest.raises(TypeError, match=re.escape(f"denoiser is {value!r}; expected a Denoiser")):
        _calls.LiveOptions(value, 16)


@pytest.mark.parametrize("missing", ["livekit", "pipecat"])
def test_a_missing_package_is_named_with_its_remedy(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; import alphamf; import alphamf.{missing}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    line = run.stderr.splitlines()[-1]
    assert line.startswith(f"ImportError: alphamf.{missing} needs {missing}") and f"'alphamf[{missing}]'" in line


def test_the_package_itself_needs_neither():
    code = "import sys, alphamf; sys.exit(any(name in sys.modules for name in ('livekit', 'pipecat')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestLiveKit:
    @pytest.fixture(autouse=True)
    def installed(self):
        need("livekit")

    def frames(self, samples, rate, length):
        from livekit import rtc

        rows = np.atleast_2d(samples)
        return [
            rtc.AudioFrame(np.ascontiguousarray(part.T).tobytes(), rate, len(rows), part.shape[1])
            for part in chunks(rows, length)
        ]

    def samples(self, frames):
        rows = [np.frombuffer(frame.data, np.int16).reshape(-1, frame.num_channels).T for frame in frames]
        joined = np.concatenate(rows, axis=1)
        return joined[0] if len(joined) == 1 else joined

    @pytest.mark.parametrize("rate", RATES)
    @pytest.mark.parametrize("milliseconds", FRAME_MS)
    def test_frames_are_those_of_the_live_denoiser(self, denoiser, rate, milliseconds):
        from alphamf.livekit import NoiseFilter

        samples = recording(rate)
        frames = self.frames(samples, rate, rate * milliseconds // 1000)
        frames[3].userdata["mark"] = 3
        noise_filter = NoiseFilter(denoiser)
        assert noise_filter.enabled
        done = [noise_filter._process(frame) for frame in frames]
        assert [frame.samples_per_channel for frame in done] == [frame.samples_per_channel for frame in frames]
        assert {(frame.sample_rate, frame.num_channels) for frame in done} == {(rate, 1)}
        assert done[3].userdata == {"mark": 3} and done[4].userdata == {}
        assert np.array_equal(self.samples(done), expected(denoiser, samples, rate))

    def test_stereo_and_controls(self, denoiser):
        from alphamf.livekit import NoiseFilter

        stereo = np.stack([recording(24000), recording(24000)[::-1]])
        noise_filter = NoiseFilter(denoiser, latency=8, mix=0.5)
        noise_filter.set(floor_db=-20.0)
        done = [noise_filter._process(frame) for frame in self.frames(stereo, 24000, 480)]
        assert np.array_equal(
            self.samples(done), expected(denoiser, stereo, 24000, latency=8, mix=0.5, floor_db=-20.0)
        )
        with pytest.raises(ValueError, match="control is colour; expected gain_exponent, floor_db, mix"):
            noise_filter.set(colour=1)
        with pytest.raises(ValueError, match="latency"):
            NoiseFilter(denoiser, latency=100)

    def test_controls_out_of_range_are_clamped_at_another_rate_too(self, denoiser):
        from alphamf.livekit import NoiseFilter

        noise_filter = NoiseFilter(denoiser, sample_rate=16000)
        noise_filter.set(mix=1.5, floor_db=-200)
        for rate in (16000, 24000):
            samples = recording(rate)
            done = [noise_filter._process(frame) for frame in self.frames(samples, rate, rate // 100)]
            if rate == 24000:
                assert np.array_equal(self.samples(done), expected(denoiser, samples, rate, mix=1.0, floor_db=-100.0))
        with pytest.raises(ValueError, match="mix is nan"):
            noise_filter.set(mix=float("nan"))

    def test_after_a_pause_nothing_from_before_it_is_heard(self, denoiser):
        from alphamf.livekit import NoiseFilter

        frames = self.frames(recording(16000), 16000, 160)
        silence = self.frames(np.zeros(1600, np.int16), 16000, 160)
        whole, paused = NoiseFilter(denoiser), NoiseFilter(denoiser)
        for frame in frames[:50]:
            whole._process(frame), paused._process(frame)
        paused.enabled = False
        paused.enabled = True
        assert paused.enabled
        assert np.abs(self.samples([whole._process(frame) for frame in silence])).max() > 0
        assert np.abs(self.samples([paused._process(frame) for frame in silence])).max() == 0
        # It has not forgotten the noise: a fresh filter takes the first 64 ms for noise.
        voice = [paused._process(frame) for frame in frames[50:60]]
        fresh = NoiseFilter(denoiser)
        assert np.abs(self.samples(voice)).sum() > 2 * np.abs(self.samples(map(fresh._process, frames[50:60]))).sum()

    def test_another_speaker_starts_anew_and_another_connection_does_not(self, denoiser):
        from alphamf.livekit import NoiseFilter

        frames = self.frames(recording(16000), 16000, 160)
        noise_filter = NoiseFilter(denoiser, sample_rate=16000)

        def told(participant, publication):
            noise_filter._on_stream_info_updated(
                room_name="room", participant_identity=participant, publication_sid=publication
            )

        told("one", "1")
        first = self.samples([noise_filter._process(frame) for frame in frames[:50]])
        told("one", "2")
        rest = self.samples([noise_filter._process(frame) for frame in frames[50:]])
        assert np.array_equal(np.append(first, rest), expected(denoiser, recording(16000), 16000))
        told("two", "1")
        assert np.array_equal(self.samples([noise_filter._process(frame) for frame in frames[:50]]), first)
        noise_filter._on_stream_info_cleared()
        noise_filter._close()
        assert np.array_equal(self.samples([noise_filter._process(frame) for frame in frames[:50]]), first)

    def test_an_audio_stream_of_livekit_takes_it(self, denoiser):
        from livekit import rtc

        from alphamf.livekit import NoiseFilter

        samples = np.tile(recording(48000), 2)
        seen = []

        class Watched(NoiseFilter):
            def _process(self, frame):
                done = super()._process(frame)
                seen.append((self.samples_of(frame), self.samples_of(done)))
                return done

            @staticmethod
            def samples_of(frame):
                return np.frombuffer(frame.data, np.int16).copy()

        async def call():
            source = rtc.AudioSource(48000, 1)
            track = rtc.LocalAudioTrack.create_audio_track("microphone", source)
            stream = rtc.AudioStream(track, sample_rate=48000, num_channels=1, noise_cancellation=Watched(denoiser))
            heard = []

            async def speak():
                for frame in self.frames(samples, 48000, 480):
                    await source.capture_frame(frame)

            speaking = asyncio.ensure_future(speak())
            async for event in stream:
                heard.append(np.frombuffer(event.frame.data, np.int16).copy())
                if sum(map(len, heard)) >= 48000:
                    break
            await speaking
            await stream.aclose()
            await source.aclose()
            return np.concatenate(heard)

        heard = asyncio.run(asyncio.wait_for(call(), 30))
        came, left = (np.concatenate(side) for side in zip(*seen))
        assert np.abs(came).max() > 1000
        assert np.array_equal(left, expected(denoiser, came, 48000)) and np.array_equal(heard, left[: len(heard)])


class TestPipecat:
    @pytest.fixture(autouse=True)
    def installed(self):
        need("pipecat")

    @pytest.mark.parametrize("rate", RATES)
    @pytest.mark.parametrize("milliseconds", FRAME_MS)
    def test_audio_is_that_of_the_live_denoiser(self, denoiser, rate, milliseconds):
        from alphamf.pipecat import NoiseFilter

        samples = recording(rate)

        async def call():
            noise_filter = NoiseFilter(denoiser)
            parts = [part.tobytes() for part in chunks(samples, rate * milliseconds // 1000)]
            assert await noise_filter.filter(parts[0]) == parts[0]
            await noise_filter.start(rate)
            done = [await noise_filter.filter(part) for part in parts]
            assert await noise_filter.filter(b"") == b""
            with pytest.raises(ValueError, match="multiple of 2"):
                await noise_filter.filter(b"123")
            await noise_filter.stop()
            assert await noise_filter.filter(parts[0]) == parts[0]
            assert [len(part) for part in done] == [len(part) for part in parts]
            return np.frombuffer(b"".join(done), np.int16)

        assert np.array_equal(asyncio.run(call()), expected(denoiser, samples, rate))

    def test_calls_that_overlap_are_processed_in_their_order(self, denoiser):
        from alphamf.pipecat import NoiseFilter

        samples = np.tile(recording(16000), 4)

        async def call():
            noise_filter = NoiseFilter(denoiser)
            await noise_filter.start(16000)
            done = await asyncio.gather(*(noise_filter.filter(part.tobytes()) for part in chunks(samples, 160)))
            await noise_filter.start(16000)
            cancelled = asyncio.ensure_future(noise_filter.filter(samples.tobytes()))
            await asyncio.sleep(0)
            cancelled.cancel()
            after = await noise_filter.filter(samples.tobytes())
            assert cancelled.cancelled()
            return np.frombuffer(b"".join(done), np.int16), np.frombuffer(after, np.int16)

        done, after = asyncio.run(call())
        twice = expected(denoiser, np.tile(samples, 2), 16000)
        assert np.array_equal(done, twice[: samples.size]) and np.array_equal(after, twice[samples.size :])

    def test_control_frames(self, denoiser):
        from pipecat.frames.frames import FilterEnableFrame, FilterUpdateSettingsFrame

        from alphamf.pipecat import NoiseFilter

        samples = recording(16000)

        async def call():
            noise_filter = NoiseFilter(denoiser, mix=0.5)
            await noise_filter.process_frame(FilterEnableFrame(enable=False))
            await noise_filter.process_frame(FilterUpdateSettingsFrame(settings={"floor_db": -20.0}))
            await noise_filter.start(16000)
            passed = await noise_filter.filter(samples[:8000].tobytes())
            await noise_filter.process_frame(FilterEnableFrame(enable=True))
            await noise_filter.process_frame(FilterUpdateSettingsFrame(settings={"mix": 1.0}))
            denoised = await noise_filter.filter(samples[8000:].tobytes())
            with pytest.raises(ValueError, match="control is colour; expected gain_exponent"):
                await noise_filter.process_frame(FilterUpdateSettingsFrame(settings={"colour": 1}))
            await noise_filter.stop()
            return np.frombuffer(passed, np.int16), np.frombuffer(denoised, np.int16)

        passed, denoised = asyncio.run(call())
        # The latency stays, and nothing else changes.
        assert np.array_equal(passed[256:], samples[: 8000 - 256])
        live = denoiser.live(16000, mix=0.5, floor_db=-20.0, bypass=True)
        live.process(samples[:8000])
        live.set(bypass=False, mix=1.0)
        assert np.array_equal(denoised, live.process(samples[8000:]))
        assert np.abs(denoised).sum() < 0.9 * np.abs(samples[8000:].astype(int)).sum()

    def test_controls_out_of_range_are_clamped_before_the_start_too(self, denoiser):
        from pipecat.frames.frames import FilterUpdateSettingsFrame

        from alphamf.pipecat import NoiseFilter

        samples = recording(16000)

        async def call():
            noise_filter = NoiseFilter(denoiser)
            settings = {"mix": 1.5, "floor_db": -200}
            await noise_filter.process_frame(FilterUpdateSettingsFrame(settings=settings))
            await noise_filter.start(16000)
            return np.frombuffer(await noise_filter.filter(samples.tobytes()), np.int16)

        assert np.array_equal(asyncio.run(call()), expected(denoiser, samples, 16000, mix=1.0, floor_db=-100.0))

    def test_a_transport_of_pipecat_takes_it(self, denoiser):
        from pipecat.frames.frames import InputAudioRawFrame
        from pipecat.processors.frame_processor import FrameDirection
        from pipecat.tests.utils import SleepFrame, run_test
        from pipecat.transports.base_input import BaseInputTransport
        from pipecat.transports.base_transport import TransportParams

        from alphamf.pipecat import NoiseFilter

        class Microphone(BaseInputTransport):
            async def start(self, frame):
                await super().start(frame)
                await self.set_transport_ready(frame)

        samples = recording(16000)
        parts = chunks(samples, 320)

        async def call():
            noise_filter = NoiseFilter(denoiser)
            parameters = TransportParams(
                audio_in_enabled=True, audio_in_sample_rate=16000, audio_in_filter=noise_filter
            )
            frames = [InputAudioRawFrame(part.tobytes(), 16000, 1) for part in parts]
            down, _ = await run_test(
                Microphone(parameters),
                frames_to_send=[*frames, SleepFrame(2.0)],
                frames_to_send_direction=FrameDirection.DOWNSTREAM,
                start_timeout=20.0,
            )
            return [frame for frame in down if isinstance(frame, InputAudioRawFrame)]

        heard = asyncio.run(asyncio.wait_for(call(), 60))
        assert len(heard) == len(parts)
        done = np.frombuffer(b"".join(frame.audio for frame in heard), np.int16)
        assert np.array_equal(done, expected(denoiser, samples, 16000))


def test_the_interpreter_goes_on_while_a_block_is_computed(denoiser):
    live = denoiser.live(48000)
    block = np.tile(recording(48000), 10)
    ticks, stop = [], threading.Event()

    def count():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    started = time.monotonic()
    live.process(block)
    ended = time.monotonic()
    stop.set()
    counter.join()
    inside = [started, *(tick for tick in ticks if started < tick < ended), ended]
    # A held lock would leave one gap as long as all of it.
    assert ended - started > 0.1 and max(np.diff(inside)) < 0.25 * (ended - started)


def test_fifty_rooms_at_once_do_not_disturb_each_other(denoiser):
    samples = recording(16000)[:4800]
    rooms = [np.roll(samples, 97 * room) for room in range(50)]
    lives = [denoiser.live(16000) for _ in rooms]
    parts = [chunks(room, 160) for room in rooms]

    def run(room):
        return [lives[room].process(parts[room][number]) for number in range(step, step + 5)]

    done = [[] for _ in rooms]
    with ThreadPoolExecutor(8) as threads:
        for step in range(0, 30, 5):
            for room, came in enumerate(threads.map(run, range(50))):
                done[room] += came
    for room, came in zip(rooms, done):
        assert np.array_equal(np.concatenate(came), expected(denoiser, room, 16000))


@pytest.mark.parametrize("package", ["livekit", "pipecat"])
def test_a_frame_takes_little_more_than_the_live_denoiser(package, denoiser):
    need(package)
    # By the clock of the process: another program's work does not count, but it slows down the processor, so that both are measured in
    # turn. Lateness in real time is measured by soak.py, on a machine that does nothing else.
    frames = frames_of(48000, 10)
    assert len(frames) > 300
    works = [room_of(kind, denoiser, 48000) for kind in (package, "live")]
    times = np.empty((2, len(frames)))
    for number, frame in enumerate(frames):
        for work, taken in zip(works, times):
            before = time.process_time()
            work(frame)
            taken[number] = time.process_time() - before
    (median, alone), late = np.median(times, axis=1), np.quantile(times[0], 0.99)
    print(f"{package}: median {1e3 * median:.2f} ms, alone {1e3 * alone:.2f} ms, 99 % {1e3 * late:.2f} ms")
    # Usually 0.5 ms.
    assert median < 2 * alone and median < 0.25 * 0.01
    assert late < LIMIT


@pytest.mark.parametrize("package", ["livekit", "pipecat"])
def test_a_call_in_real_time_is_measured(package):
    need(package)
    figures, rows, control = soak(package, rooms=2, rate=48000, frame_ms=10, seconds=1)
    assert figures["frames"] == rows.size == 200 and control.size == 100
    assert 0 < figures["median_ms"] <= figures["p99.9_ms"] <= figures["worst_ms"]
    assert 0 < figures["cores_used"]
