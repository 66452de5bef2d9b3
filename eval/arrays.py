#!/usr/bin/env python3
"""Several microphones in simulated rooms: `denoise --channels array` beside one microphone, FastMNMF2 and AuxIVA.

    pip install numpy scipy soundfile soxr pesq pystoi pyroomacoustics
    python eval/arrays.py denoise DATA OUT [--mixtures 12] [--first 0] [--counts 2 4 8] [--circle | --rooms RESPONSES [--spread]]
        [--alone] [--lost]

DATA holds dev/speech16 and dev/noise. Rooms of 4 to 8 m, 0.25 to 0.6 s of reverberation; 2 or 4 microphones in a row 5 cm apart, 8 (with
--circle, all) in a circle of 20 cm; a voice at 0.8 to 2.5 m; one noise, two, or one from 12 directions; 5 and 0 dB in turn; 8 s at 16 kHz.
RESPONSES is the folder impulse_dataset of github.com/kitamura-laboratory/impResDataset: a music room and an open lounge with a voice and
one or two noises, measured with two or three rows of four microphones 1 cm apart. Microphones count from the first row on; with
--spread, they are taken evenly from all rows.
With --lost, the last microphone is silent in the second half, as with a flat battery.
Truth is the reverberant voice at the first microphone. Of FastMNMF2 and AuxIVA, the output that is nearest to the truth counts; with
--alone they are left out.
"""

import argparse
import subprocess
from pathlib import Path

import numpy as np
import pyroomacoustics as pra
import soundfile as sf
import soxr
from pesq import pesq
from pystoi import stoi
from scipy.signal import fftconvolve, istft, stft

from signals import existing_folder, files_of, from_zero, mean_and_error, run, several, si_sdr

RATE, SECONDS = 16_000, 8
LENGTH = RATE * SECONDS


def read(path):
    samples, rate = sf.read(path, always_2d=True)
    return soxr.resample(samples[:, 0], rate, RATE) if rate != RATE else samples[:, 0]


def noise_of(path, length=LENGTH):
    samples = read(path)
    samples = np.tile(samples, -(-length // len(samples)))[:length]
    return samples / samples.std()


def voice_of(path, length=LENGTH):
    samples = read(path)
    once = np.concatenate([samples, np.zeros(RATE // 4)])
    return np.tile(once, -(-length // len(once)))[:length]


def microphones(count, centre, circle):
    if not circle:
        offsets = np.stack([0.05 * (np.arange(count) - (count - 1) / 2), np.zeros(count), np.zeros(count)])
    else:
        angles = 2 * np.pi * np.arange(count) / count
        offsets = 0.1 * np.stack([np.cos(angles), np.sin(angles), 0 * angles])
    return centre[:, None] + offsets


def mixture(count, index, voices, noises, circle=False, length=LENGTH):
    """The voice at the first microphone, and all microphones (samples x microphones), in a row or a circle."""
    random = np.random.default_rng([count, index])
    room = random.uniform([4, 3.5, 2.5], [8, 6, 3.2])
    absorption, order = pra.inverse_sabine(random.uniform(0.25, 0.6), room)
    centre = room / 2 + random.uniform(-0.5, 0.5, 3)
    centre[2] = 1.2

    def place():
        while True:
            place = random.uniform([0.4, 0.4, 1], room - [0.4, 0.4, 0.9])
            if 0.8 < np.linalg.norm(place[:2] - centre[:2]) < 2.5:
                return place

    def recorded(signals, places):
        shoebox = pra.ShoeBox(room, fs=RATE, materials=pra.Material(absorption), max_order=min(order, 12))
        shoebox.add_microphone_array(microphones(count, centre, circle))
        for signal, at in zip(signals, places):
            shoebox.add_source(at, signal=signal)
        shoebox.simulate()
        return shoebox.mic_array.signals[:, :length]

    kind = ("one noise", "two noises", "all around")[index % 3]
    voice = recorded([voice_of(random.choice(voices), length)], [place()])
    drawn = [noise_of(random.choice(noises), length) for _ in range(2 if kind == "two noises" else 1)]
    if kind == "all around":
        angles = 2 * np.pi * np.arange(12) / 12
        around = [np.clip(centre + [3 * np.cos(a), 3 * np.sin(a), 0.3], 0.2, room - 0.2) for a in angles]
        noise = recorded([np.roll(drawn[0], i * length // 12) for i in range(12)], around)
    else:
        noise = recorded(drawn, [place() for _ in drawn])
    return kind, *mixed(voice, noise, (5, 0)[index % 2], random)


def measured_mixture(count, index, voices, noises, responses, spread):
    """Like `mixture`, with measured responses of all rooms and arrangements in turn."""
    random = np.random.default_rng([count, index])
    arrangements = sorted({file.name.split("_target")[0] for file in files_of(responses, "*_target_ir_*.wav")})
    arrangement = arrangements[index % len(arrangements)]

    def recorded(signal, source):
        files = files_of(responses, f"{arrangement}_{source}_ir_*.wav", 1 if spread else count)
        files.sort(key=lambda file: int(file.stem.split("_")[-1]))
        chosen = np.linspace(0, len(files) - 1, count).round().astype(int) if spread else range(count)
        return np.stack([fftconvolve(signal, read(files[number]))[:LENGTH] for number in chosen])

    kind = ("one noise", "two noises")[(index + index // len(arrangements)) % 2]
    voice = recorded(voice_of(random.choice(voices)), "target")
    drawn = [noise_of(random.choice(noises)) for _ in range(2 if kind == "two noises" else 1)]
    noise = sum(recorded(signal, f"int{number}") for number, signal in enumerate(drawn, 1))
    return kind, *mixed(voice, noise, (5, 0)[index // 2 % 2], random)


def mixed(voice, noise, snr, random):
    """The voice at the first microphone, and all microphones, with noise of their own."""
    noise += 1e-3 * noise.std() * random.standard_normal(noise.shape)
    noise *= np.sqrt((voice[0] ** 2).sum() / (noise[0] ** 2).sum()) * 10 ** (-snr / 20)
    scale = 0.5 / np.abs(voice + noise).max()
    return scale * voice[0], scale * (voice + noise).T


def separated(name, samples, truth):
    window = 1024 if name == "FastMNMF2" else 2048
    spectra = stft(samples.T, RATE, nperseg=window, noverlap=3 * window // 4)[2].transpose(2, 1, 0)
    np.random.seed(0)
    if name == "FastMNMF2":
        found = pra.bss.fastmnmf2(spectra, n_src=min(samples.shape[1], 3), n_iter=60, n_components=8, mic_index=0)
    else:
        found = pra.bss.auxiva(spectra, n_iter=40, proj_back=True)
    found = np.asarray(found)
    if found.shape[0] == spectra.shape[0]:
        found = found.transpose(2, 0, 1)
    outputs = [istft(source.T, RATE, nperseg=window, noverlap=3 * window // 4)[1][:LENGTH] for source in found]
    return max(outputs, key=lambda output: si_sdr(truth, output))


def arguments(description, mixtures, first):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("denoise")
    parser.add_argument("data", type=existing_folder)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mixtures", type=several, default=mixtures)
    parser.add_argument("--first", type=from_zero, default=first, help="index of the first mixture")
    return parser


def main():
    parser = arguments(__doc__, mixtures=12, first=0)
    parser.add_argument("--counts", type=several, nargs="+", default=(2, 4, 8), metavar="COUNT", help="of microphones")
    places = parser.add_mutually_exclusive_group()
    places.add_argument("--circle", action="store_true", help="all microphones in a circle of 20 cm")
    places.add_argument("--rooms", type=existing_folder, metavar="RESPONSES", help="measured rooms")
    parser.add_argument("--spread", action="store_true", help="measured rooms: microphones from all rows")
    parser.add_argument("--alone", action="store_true", help="without FastMNMF2 and AuxIVA")
    parser.add_argument("--lost", action="store_true", help="the last microphone is silent in the second half")
    given = parser.parse_args()
    voices, noises = files_of(given.data / "dev/speech16"), files_of(given.data / "dev/noise")
    for count in given.counts:
        folder = given.out / str(count)
        for name in ("first", "all"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        truths = {}
        for index in range(given.first, given.first + given.mixtures):
            if given.rooms:
                kind, truth, samples = measured_mixture(count, index, voices, noises, given.rooms, given.spread)
            else:
                kind, truth, samples = mixture(count, index, voices, noises, given.circle or count > 4)
            if given.lost:
                samples[len(samples) // 2 :, -1] = 0.0
            truths[f"{index:03d}.wav"] = kind, truth
            sf.write(folder / "all" / f"{index:03d}.wav", samples, RATE, "FLOAT")
            sf.write(folder / "first" / f"{index:03d}.wav", samples[:, 0], RATE, "FLOAT")
        for source, name, options in (("first", "one", []), ("all", "shared", []), ("all", "array", ["--channels", "array"])):
            subprocess.run([given.denoise, folder / source, "-o", folder / name, "-q", "--force", *options], check=True)
        scores = {}
        peers = () if given.alone else ("FastMNMF2", "AuxIVA")
        # The reference of all comparisons comes first.
        for name in ("one", "noisy", "shared", "array", *peers):
            rows = []
            for file, (kind, truth) in truths.items():
                if name in peers:
                    found = separated(name, sf.read(folder / "all" / file)[0], truth)
                else:
                    found = sf.read(folder / ("first" if name == "noisy" else name) / file, always_2d=True)[0][:, 0]
                truth = truth[: len(found)]
                rows.append((si_sdr(truth, found), pesq(RATE, truth, found, "wb"), stoi(truth, found, RATE, extended=True)))
            scores[name] = np.array(rows)
            mean, change = scores[name].mean(0), scores[name] - scores["one"]
            line = f"{count} microphones, {name}: {mean[0]:.2f} / {mean[1]:.2f} / {mean[2]:.3f}"
            if name != "one":
                line += "; to one: " + ", ".join(mean_and_error(score, "+.3f") for score in change.T)
            print(line, flush=True)
        for kind in sorted({kind for kind, _ in truths.values()}):
            rows = [i for i, (of, _) in enumerate(truths.values()) if of == kind]
            print(f"{count} microphones, {kind}: array to one {(scores['array'] - scores['one'])[rows].mean(0).round(2)}")


if __name__ == "__main__":
    run(main)
