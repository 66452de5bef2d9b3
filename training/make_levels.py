#!/usr/bin/env python3
"""Makes mixtures to train the intervals of speech levels: make_levels.py OUT --data DATA [--seed 1] [--seconds 6]

Writes OUT/clean/KIND__NNN.wav, OUT/noisy/KIND__NNN.wav and OUT/list.csv (kind, file, fold, rate, voice, noise, SNR dB, kbit/s), from training
recordings: speech_train, librispeech251 without the speakers of dev/voices16.txt, speech_expressive, speech48_train, noise_train,
noise_more and rir_train. Kinds: those of noise (event, impulsive, babble, wind, steady, vehicle, tonal); `voice`, a competing talker; `two`,
two noises; `room`, speech and noise in one room; `telephone`, 300 to 3,400 Hz and mu-law; `opus`, `vorbis`, `mp3` and `aac`, files coded at
12 to 96 kbit/s, and `gsm`, decoded; `full`, at 48 kHz; `clean`, speech alone. The reference is the speech after room, band limit and codec.
The SNR, -5 to 30 dB in steps of 5, is measured above 75 Hz during speech; a third is at 8 kHz.

Voices, noises and rooms are divided into five folds, and all sources of a mixture are of one fold. Needs ffmpeg.
The same arguments give the same samples.
"""

import argparse
import csv
import subprocess
import tempfile
import zlib
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import fftconvolve

from common import band, kept_clips, new_folders, part, read_mono, spoken_power
from options import existing_folder, positive, run

FOLDS = 5
SNRS = (-5, 0, 5, 10, 15, 20, 25, 30)
NOISES = "event impulsive babble wind steady vehicle tonal".split()
# File ending, encoder and bit rates, kbit/s.
CODECS = {
    "opus": ("opus", "libopus", (12, 16, 24, 32, 48, 64)),
    "vorbis": ("ogg", "libvorbis", (32, 48, 64)),
    "mp3": ("mp3", "libmp3lame", (32, 48, 64, 96)),
    "aac": ("m4a", "aac", (24, 32, 48, 64)),
}
# Numbers of mixtures by kind.
COUNTS = dict.fromkeys(NOISES, 24) | dict(voice=32, two=32, room=40, telephone=24, opus=48, vorbis=24, mp3=32, aac=32, gsm=16, full=32, clean=32)
TELEPHONE = (300.0, 3400.0)
# Minimum SNR of clean recordings, dB.
CLEAN_ENOUGH = 30.0


def fold_of(name):
    return zlib.crc32(name.encode()) % FOLDS


def code(x, rate, arguments, path):
    """Encodes a signal to a file."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        soundfile.write(file.name, x, rate, "PCM_16")
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", file.name, "-c:a", *arguments, path], check=True)


def coded(x, rate, arguments, ending):
    """A signal after encoding and decoding, and its sample rate."""
    with tempfile.TemporaryDirectory() as folder:
        path, decoded = f"{folder}/coded.{ending}", f"{folder}/decoded.wav"
        code(x, rate, arguments, path)
        subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-c:a", "pcm_s24le", decoded], check=True)
        return soundfile.read(decoded)


def mu_law(x):
    peak = np.abs(x).max()
    y = np.round(np.sign(x) * np.log1p(255 * np.abs(x) / peak) / np.log(256) * 127) / 127
    return np.sign(y) * np.expm1(np.abs(y) * np.log(256)) / 255 * peak


class Sources:
    """Voices by speaker, noises by kind, and rooms, by fold."""

    def __init__(self, data):
        kept = {line.split("/")[-1].split("-")[0] for line in kept_clips(data) if line.startswith("librispeech251")}
        self.voices, self.full = [{} for _ in range(FOLDS)], [{} for _ in range(FOLDS)]
        self.noises, self.rooms = [{} for _ in range(FOLDS)], [[] for _ in range(FOLDS)]

        def speaker(to, name, path):
            to[fold_of(name)].setdefault(name, []).append(path)

        for folder, to, column in (("speech_train", self.voices, "speaker"), ("speech_expressive", self.voices, "voice"), ("speech48_train", self.full, "speaker")):
            with open(data / folder / "manifest.csv") as table:
                for row in csv.DictReader(table):
                    if float(row["snr_db"] or 0) >= CLEAN_ENOUGH:
                        speaker(to, row[column], data / folder / row["file"])
        with open(data / "librispeech251/files.csv") as table:
            for row in csv.DictReader(table):
                if row["speaker"] not in kept:
                    speaker(self.voices, "libri-" + row["speaker"], data / "librispeech251" / Path(row["path"]).name)
        for folder in ("noise_train", "noise_more"):
            for path in sorted((data / folder).glob("*.opus")):
                kind = path.name.split("__")[0].split("-")[0]
                self.noises[fold_of(path.name)].setdefault(kind, []).append(path)
        for path in sorted((data / "rir_train").glob("*.*")):
            self.rooms[fold_of(path.name)].append(path)

    def voice(self, fold, rate, samples, rng, other_than=None):
        """The name of a speaker, and clips of the speaker with pauses of 0.2 to 0.8 s."""
        speakers = (self.full if rate > 16000 else self.voices)[fold]
        names = sorted(name for name, clips in speakers.items() if name != other_than)
        name = names[rng.integers(len(names))]
        order = rng.permutation(len(speakers[name]))
        parts, length = [], 0
        while length < samples:
            for k in order:
                path = speakers[name][k]
                x = read_mono(path, rate)
                parts += [x / np.sqrt(spoken_power(x, rate, path) + 1e-20), np.zeros(int(rng.uniform(0.2, 0.8) * rate))]
                length += len(parts[-1]) + len(parts[-2])
                if length >= samples:
                    break
        return name, np.concatenate(parts)[:samples]

    def noise(self, fold, kind, rate, samples, rng):
        paths = self.noises[fold].get(kind) or sum(self.noises[fold].values(), [])
        full = [path for path in paths if rate <= 16000 or soundfile.info(path).samplerate > 32000] or paths
        for _ in range(20):
            path = full[rng.integers(len(full))]
            x = part(read_mono(path, rate), samples, rng)
            power = (band(x, rate, 75) ** 2).mean()
            if power > 1e-9:
                return path.name, x / np.sqrt(power)
        raise SystemExit(f"no noise of kind {kind}")


def mixture(sources, kind, number, seconds, seed):
    """Clean speech, mixture, sample rate and sources."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), number])
    fold, snr = number % FOLDS, SNRS[number % len(SNRS)]
    low, high = (8000, 8000) if kind in ("gsm", "telephone") else (16000, 48000) if kind in CODECS else (16000, 8000)
    rate = 48000 if kind == "full" else high if number % 3 == 2 else low
    samples = int(seconds * rate)
    name, x = sources.voice(fold, rate, samples, rng)
    if kind == "voice":
        other, z = sources.voice(fold, rate, samples, rng, name)
        z /= np.sqrt((band(z, rate, 75) ** 2).mean())
    elif kind == "two":
        parts = [sources.noise(fold, NOISES[rng.integers(len(NOISES))], rate, samples, rng) for _ in range(2)]
        other, z = "+".join(part[0] for part in parts), sum(part[1] for part in parts)
    else:
        other, z = sources.noise(fold, kind if kind in NOISES else NOISES[rng.integers(len(NOISES))], rate, samples, rng)
    if kind == "room" or (kind == "clean" and number % 4 == 3):
        h = read_mono(sources.rooms[fold][rng.integers(len(sources.rooms[fold]))], rate)
        direct = int(np.abs(h).argmax())
        h /= np.sqrt((h[direct:] ** 2).sum())
        x, z = fftconvolve(x, h)[direct : direct + samples], fftconvolve(z, h)[:samples]
    if kind == "telephone":
        x, z = (band(signal, rate, *TELEPHONE) for signal in (x, z))
    z *= np.sqrt(spoken_power(x, rate, name) / (band(z, rate, 75) ** 2).mean() / 10 ** (snr / 10))
    y = x + (0 if kind == "clean" else z)
    scale = 10 ** rng.uniform(-1.2, -0.15) / max(np.abs(y).max(), np.abs(x).max())
    x, y = x * scale, y * scale
    if kind == "telephone":
        y = mu_law(y)
    return x, y, rate, (fold, rate, name, other if kind != "clean" else "", snr if kind != "clean" else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=existing_folder, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=positive, default=6.0)
    a = parser.parse_args()
    new_folders(a.out, "clean", "noisy")
    sources = Sources(a.data)
    rows = []
    for kind, count in COUNTS.items():
        for number in range(count):
            x, y, rate, (fold, _, voice, noise, snr) = mixture(sources, kind, number, a.seconds, a.seed)
            name, ending, kilobits = f"{kind}__{number:03}", "wav", ""
            if kind in CODECS:
                ending, codec, rates = CODECS[kind]
                kilobits = rates[number // len(SNRS) % len(rates)]
                arguments = [codec, "-b:a", f"{kilobits}k"]
                code(y, rate, arguments, a.out / "noisy" / f"{name}.{ending}")
                x, rate = coded(x, rate, arguments, ending)
            else:
                if kind == "gsm":
                    x, y = (coded(signal, rate, ["libgsm_ms"], "wav")[0] for signal in (x, y))
                soundfile.write(a.out / "noisy" / f"{name}.wav", y, rate, "PCM_24")
            soundfile.write(a.out / "clean" / f"{name}.wav", x, rate, "PCM_24")
            rows.append((kind, f"{name}.{ending}", fold, rate, voice, noise, snr, kilobits))
        print(kind, count, flush=True)
    with open(a.out / "list.csv", "w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow("kind file fold rate voice noise snr_db kilobits".split())
        writer.writerows(rows)


if __name__ == "__main__":
    run(main)
