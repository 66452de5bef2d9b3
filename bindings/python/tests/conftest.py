import os
import signal
import wave
from pathlib import Path

import numpy as np
import pytest

# In the background of a script interrupts are ignored, and tests of them would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

AUDIO = Path(__file__).parents[3] / "audio"


def read(path):
    """The samples of a WAV file of 16 bits, (n,) or (channels, n), and its rate."""
    with wave.open(str(path)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels()).T
        return (samples[0] if len(samples) == 1 else samples).copy(), file.getframerate()


def write(path, samples, rate):
    samples = np.atleast_2d(samples)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(len(samples))
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.T.astype("<i2").tobytes())


@pytest.fixture(scope="session")
def noisy():
    """Two seconds of the demo, int16, and their rate."""
    samples, rate = read(AUDIO / "demo-noisy.wav")
    return samples[rate : 3 * rate], rate


@pytest.fixture(scope="session")
def clean():
    samples, rate = read(AUDIO / "demo-clean.wav")
    return samples[rate : 3 * rate], rate


@pytest.fixture(scope="session")
def program():
    """The program `denoise`, whose output the package's must equal."""
    path = os.environ.get("DENOISE")
    if not path:
        pytest.skip("set DENOISE to the path of the program to compare with it")
    return path
