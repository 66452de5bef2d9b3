"""Progress, and work that exceptions and signals end."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import alphamf

FAST = {"quality": "fast", "no_neural": True}


def test_progress_is_told_and_may_end_it(noisy):
    shares = []
    alphamf.denoise(*noisy, iterations=200, progress=shares.append)
    assert len(shares) > 3 and shares == sorted(shares) and 0 <= shares[0] and shares[-1] <= 1

    # A stream reports seconds.
    samples, rate = noisy
    stream = alphamf.Denoiser(**FAST).stream(rate, dtype=np.int16)
    seconds = []
    stream.push(samples, seconds.append)
    stream.finish(progress=seconds.append)
    assert len(seconds) > 0 and seconds == sorted(seconds) and abs(seconds[-1] - len(samples) / rate) < 0.1

    class Enough(Exception):
        pass

    def enough(share):
        raise Enough

    began = time.monotonic()
    with pytest.raises(Enough):
        alphamf.denoise(*noisy, iterations=100_000, progress=enough)
    assert time.monotonic() - began < 5


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_ctrl_c_ends_it_within_a_second(noisy):
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        alphamf.denoise(*noisy, iterations=1_000_000)
    assert time.monotonic() - began < 2.0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_a_signal_handler_that_uses_the_busy_stream_gets_an_error():
    code = """
import os, signal, threading
import numpy as np
import alphamf

def handle(*_):
    try:
        stream.latency
    except RuntimeError as error:
        print(error)

stream = alphamf.Denoiser(no_neural=True, iterations=40).stream(16000)
signal.signal(signal.SIGUSR1, handle)
noise = np.random.default_rng(1).normal(0, 0.1, 160000).astype(np.float32)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
print(len(stream.push(noise)) > 0, stream.latency > 0)
"""
    # In a process of its own, as it would wait for ever.
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout.splitlines() == ["the stream is at work on this thread", "True True"]


def test_a_stream_that_an_exception_interrupted_has_ended(noisy):
    samples, rate = noisy
    long = np.tile(samples, 5)
    denoiser = alphamf.Denoiser(**FAST)
    seconds = []
    denoiser.stream(rate, dtype=np.int16).push(long, seconds.append)

    class Enough(Exception):
        pass

    for last in (0, seconds[-1]):  # The first report, and the last, after which the work is done.
        stream = denoiser.stream(rate, dtype=np.int16)

        def stop(done, last=last):
            if done >= last:
                raise Enough

        with pytest.raises(Enough):
            stream.push(long, stop)
        for use in (lambda: stream.push(samples), stream.finish):
            with pytest.raises(ValueError, match="the stream has ended: an exception interrupted it"):
                use()
