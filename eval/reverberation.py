#!/usr/bin/env python3
"""Late reverberation in measured rooms: `denoise --dereverb` beside weighted prediction error (WPE) on one microphone.

    pip install numpy scipy soundfile soxr pesq pystoi pyroomacoustics nara_wpe torchmetrics gammatone torchaudio
    python eval/reverberation.py denoise DATA OUT [--voices 6] [--every-room]

DATA holds dev/speech16, dev/rir and dev/noise. Each voice, 10 s, in each of the measured rooms, with steady noise 20 dB below. Scores of
the output against the voice with its room's first 50 ms: ESTOI, wide-band PESQ; without a reference, SRMR (torchmetrics). WPE runs with
40 taps (frames of 8 ms, behind a delay of three), alone and with `denoise` after it. Standard errors are over rooms, each the mean of its voices.

With --every-room, all of dev/rir and the voice without a room: reverberation time of the response (three times its decay from -5 to -25 dB) and as
`--stats` has it (median of octaves and voices), and the change of ESTOI and PESQ by `--dereverb 0.5`.
"""

import argparse
import json
import subprocess
from pathlib import Path

import arrays
import numpy as np
import soundfile as sf
import torch
from arrays import RATE
from nara_wpe.utils import istft, stft
from nara_wpe.wpe import wpe
from pesq import pesq
from pystoi import stoi
from scipy.signal import fftconvolve
from signals import existing_folder, files_of, mean_and_error, run, whole
from torchmetrics.functional.audio.srmr import speech_reverberation_modulation_energy_ratio

LENGTH = 10 * RATE
EARLY = RATE // 20  # samples after the direct sound that are not late
TAPS = 40


def predicted(samples):
    """Weighted prediction error of one microphone, as the package's example has it."""
    spectrum = stft(samples, size=512, shift=128).T[:, None]
    clean = wpe(spectrum, taps=TAPS, delay=3, iterations=5, statistics_mode="full")
    return istft(clean[:, 0].T, size=512, shift=128)[:LENGTH]


def scores(truth, found):
    modulation = speech_reverberation_modulation_energy_ratio(torch.from_numpy(np.float32(found)), RATE)
    return stoi(truth, found, RATE, extended=True), pesq(RATE, truth, found, "wb"), float(modulation)


def time_of(response):
    """Reverberation time, s."""
    left = np.cumsum(response[::-1] ** 2)[::-1]
    start, end = (np.argmax(left < left[0] * 10 ** (level / 10)) for level in (-5, -25))
    return 3 * (end - start) / RATE


def every_room(rooms, count, record, denoised, stats):
    """Prints times and changes of scores in each room, and without one."""
    for name, response in [*((path.stem, arrays.read(path)) for path in rooms), ("none", np.ones(1))]:
        changes, times = [], []
        for number in range(count):
            truth = record(response, number)[1]
            found = denoised("input", "--stats", stats), denoised("input", "--dereverb", "0.5")
            octaves = json.loads(stats.read_text())["files"][0]["reverberation_seconds"]
            times += [time for time in octaves or () if time is not None]
            plain, dried = ((stoi(truth, x, RATE, extended=True), pesq(RATE, truth, x, "wb")) for x in found)
            changes.append(np.subtract(dried, plain))
        estimate = np.median(times) if times else np.nan
        print(f"{name}: {time_of(response):.2f} s, estimate {estimate:.2f} s, change", np.mean(changes, 0).round(3), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("denoise", type=Path)
    parser.add_argument("data", type=existing_folder)
    parser.add_argument("out", type=Path)
    parser.add_argument("--voices", type=whole, default=6)
    parser.add_argument("--every-room", action="store_true", help="reverberation times, and changes by --dereverb 0.5, in all of dev/rir")
    given = parser.parse_args()
    denoise, dev = given.denoise.resolve(), given.data / "dev"
    voices = files_of(dev / "speech16", "so762*")
    voices = voices[:: max(1, len(voices) // given.voices)][: given.voices]
    noises = files_of(dev / "noise", "steady-*")
    # Standard errors are over them.
    rooms = files_of(dev / "rir", "measured-*", 2)
    given.out.mkdir(parents=True, exist_ok=True)
    at = lambda name: str(given.out / f"{name}.wav")

    def denoised(source, *options):
        subprocess.run([denoise, "-q", "--force", at(source), at("found"), *options], check=True)
        return sf.read(at("found"))[0]

    def record(response, number):
        """Writes a voice in a room with noise; its samples, and the voice with the room's early part."""
        direct = int(np.abs(response).argmax())
        voice = arrays.voice_of(voices[number], LENGTH)
        reverberant, truth = (fftconvolve(voice, r)[direct : direct + LENGTH] for r in (response, response[: direct + EARLY]))
        reverberant = reverberant + arrays.noise_of(noises[(7 * number) % len(noises)], LENGTH) * reverberant.std() / 10
        scale = 0.5 / np.abs(reverberant).max()
        sf.write(at("input"), scale * reverberant, RATE, "FLOAT")
        return scale * reverberant, scale * truth

    if given.every_room:
        return every_room(files_of(dev / "rir"), len(voices), record, denoised, given.out / "stats.json")
    names = ["input", "denoise", "--dereverb 0.5", "--dereverb 1", "WPE", "WPE, denoise"]
    everything = []
    for room in rooms:
        response = arrays.read(room)
        rows = []
        for number in range(len(voices)):
            reverberant, truth = record(response, number)
            found = [reverberant, denoised("input"), denoised("input", "--dereverb", "0.5"), denoised("input", "--dereverb", "1")]
            found.append(predicted(reverberant))
            sf.write(at("dried"), found[-1], RATE, "FLOAT")
            found.append(denoised("dried"))
            rows.append([scores(truth, samples) for samples in found])
        everything.append(rows)
        print(room.name.split("__")[0], *(f"{name}: {np.round(m, 3)}" for name, m in zip(names, np.mean(rows, 0))), sep="\n  ", flush=True)
    np.save(given.out / "scores.npy", everything)
    # Voices of one room are not independent.
    of_rooms = np.mean(everything, 1)
    change = of_rooms - of_rooms[:, 1:2]
    print("all, and change to denoise ± standard error over rooms")
    for name, score, differences in zip(names, of_rooms.mean(0), change.transpose(1, 2, 0)):
        print(f"  {name}: {score.round(3)}; {', '.join(mean_and_error(room, '+.3f') for room in differences)}")


if __name__ == "__main__":
    run(main)
