#!/usr/bin/env python3
"""Makes demo-clean.wav and demo-noisy.wav: a synthetic voice, alone and in a synthetic office by a street.

Needs numpy and flite (Debian: python3-numpy, flite). The noise is drawn from a fixed seed.
"""

import io
import pathlib
import subprocess
import wave

import numpy as np

RATE = 16_000
SNR_DB = 5.0
PEAK = 0.7
LEAD_SECONDS, TAIL_SECONDS = 0.5, 0.3
TEXT = (
    "The quiet harbour woke slowly. Somebody was humming on the pier, "
    "while the ferry carried its passengers across the bay."
)
# Who murmurs in the background: voice, pace (larger is slower), words.
CROWD = [
    ("rms", 1.05, "Well, the second draft is on your desk, so we may as well go through the numbers now."),
    ("slt", 1.1, "I told him that it would never arrive before noon, and of course it did not arrive at all."),
    ("kal16", 0.95, "Perhaps we should ask them whether the other room is free on Thursday or on Friday."),
    ("rms", 1.15, "Nobody remembers who ordered the new chairs, but there are eleven of them in the hall."),
    ("slt", 0.9, "Have you seen the map of the old town that used to hang behind the door over there?"),
]


def speak(voice, text, pace=1.0):
    """The samples of a sentence spoken by flite, full scale 1."""
    command = ["flite", "-voice", voice, "--setf", f"duration_stretch={pace}", "-t", text, "-o", "/dev/stdout"]
    # Written to a pipe, the header does not know the length.
    sound = subprocess.run(command, check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(sound)) as reader:
        assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (RATE, 1, 2)
    return np.frombuffer(sound[sound.index(b"data") + 8 :], dtype="<i2") / 32_768


def brighten(speech):
    """The voices of flite are dull: a shelf of 9 dB between 200 Hz and 2 kHz makes up for it."""
    frequency = np.fft.rfftfreq(speech.size, 1 / RATE)
    shelf = np.sqrt((1 + (frequency / 300) ** 2) / (1 + (frequency / 850) ** 2))
    return np.fft.irfft(np.fft.rfft(speech) * shelf, speech.size)


def shaped(random, count, gain):
    """Gaussian noise whose spectrum has the given gain at every frequency in Hz, at a mean power of one."""
    spectrum = np.fft.rfft(random.standard_normal(count)) * gain(np.fft.rfftfreq(count, 1 / RATE))
    noise = np.fft.irfft(spectrum, count)
    return noise / np.std(noise)


def wander(random, count, hertz):
    """A slow random modulation, mean square one."""
    return shaped(random, count, lambda f: np.exp(-0.5 * (f / hertz) ** 2))


def decibels(level):
    return 10 ** (level / 20)


def fan(random, count):
    """Air through a grille, and the blades of the fan."""
    time = np.arange(count) / RATE
    air = shaped(random, count, lambda f: 1 / (1 + (f / 600) ** 2) ** 0.5 + 0.5 * np.exp(-(((f - 1_150) / 350) ** 2)))
    phase = 2 * np.pi * np.cumsum(117 + 0.6 * wander(random, count, 0.5)) / RATE
    blades = sum(decibels(-6 * k) * np.sin(k * phase + k**2) for k in range(1, 6))
    return air * (1 + 0.08 * np.sin(2 * np.pi * 0.7 * time)) + 0.35 * blades


def hum(count):
    """The mains in a lamp."""
    time = np.arange(count) / RATE
    return sum(np.sin(2 * np.pi * 50 * k * time + k) / k for k in (1, 2, 3, 4, 6, 9))


def traffic(random, count):
    """The rumble of a street, and two cars that pass."""
    time = np.arange(count) / RATE
    noise = shaped(random, count, lambda f: 1 / (1 + (f / 150) ** 2)) * decibels(2 * wander(random, count, 0.4))
    for centre, width, level in [(1.9, 0.7, 0.9), (5.6, 0.9, 0.7)]:
        tyres = shaped(random, count, lambda f: np.exp(-0.5 * (np.log2((f + 20) / 900) / 0.9) ** 2))
        noise += level * tyres * np.exp(-0.5 * ((time - centre) / width) ** 2)
    return noise


def murmur(random, count):
    """Colleagues at the far end of a reverberant room."""
    voices = np.zeros(count)
    for voice, pace, words in CROWD:
        speech = speak(voice, words, pace)
        speech = np.roll(np.resize(speech, count), random.integers(count))
        voices += speech / np.std(speech) * decibels(random.uniform(-4, 0))
    reverberation = random.standard_normal(RATE // 2) * np.exp(-np.arange(RATE // 2) / (0.08 * RATE))
    size = count + reverberation.size
    spectrum = np.fft.rfft(voices, size) * np.fft.rfft(reverberation, size)
    spectrum /= 1 + (np.fft.rfftfreq(size, 1 / RATE) / 1_500) ** 2
    room = np.fft.irfft(spectrum, size)[:count]
    return room / np.std(room)


def write(path, samples):
    with wave.open(str(path), "wb") as writer:
        writer.setparams((1, 2, RATE, 0, "NONE", None))
        writer.writeframes(np.round(32_767 * samples).astype("<i2").tobytes())


def main():
    speech = np.pad(brighten(speak("awb", TEXT)), (int(LEAD_SECONDS * RATE), int(TAIL_SECONDS * RATE)))
    random, count = np.random.default_rng(5), speech.size
    noise = fan(random, count) + 0.12 * hum(count) + 0.7 * traffic(random, count) + 0.6 * murmur(random, count)
    noise *= np.std(speech) / np.std(noise) * decibels(-SNR_DB)
    scale = PEAK / np.max(np.abs(speech + noise))
    folder = pathlib.Path(__file__).parent
    write(folder / "demo-clean.wav", scale * speech)
    write(folder / "demo-noisy.wav", scale * (speech + noise))


if __name__ == "__main__":
    main()
