#!/usr/bin/env python3
"""Decode all that a network may learn from, once: OUT/{speech,noise,room}.npy (int16 or float32, end to end) and OUT/index.json.

    prepare.py --data DATA [--speech FOLDER ...] [--noise FOLDER ...] [--full-band] OUT

Nothing of the voices kept for development (DATA/dev/voices16.txt) is taken. Mono, 16 kHz, or 48 kHz of what was recorded at 44.1
kHz and more.
"""

import argparse
import csv
import glob
import json
import os

import numpy as np
import soundfile as sf
import soxr

NARROW, FULL = 16000, 48000  # Hz


def read(path, want):
    x, rate = sf.read(path, dtype="float32", always_2d=True)
    mono = x.mean(1)
    if len(x) and (mono**2).sum() < 0.05 * (x**2).sum() / x.shape[1]:
        mono = x[:, (x**2).sum(0).argmax()]
    return soxr.resample(mono, rate, want, quality="HQ") if rate != want else mono


def highpass(x, hertz, rate):
    n = 1 << (len(x) + 800).bit_length()
    X = np.fft.rfft(x, n)
    f = np.fft.rfftfreq(n, 1 / rate)
    X *= np.clip((f - 0.7 * hertz) / (0.3 * hertz), 0, 1)
    return np.fft.irfft(X, n)[: len(x)].astype(np.float32)


def trim(x, rate):
    """Without the silence at both ends."""
    m = rate // 100
    p = (x[: len(x) // m * m].reshape(-1, m) ** 2).mean(1)
    loud = np.flatnonzero(p > 1e-4 * p.max()) if len(p) else []
    return x[max(0, loud[0] - 15) * m : (loud[-1] + 16) * m] if len(loud) else x


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--data", required=True)
    a.add_argument("--speech", nargs="*", default=[])
    a.add_argument("--noise", nargs="*", default=[])
    a.add_argument("--full-band", action="store_true")
    a.add_argument("out")
    a = a.parse_args()
    os.makedirs(a.out, exist_ok=True)
    kept = {line.strip() for line in open(os.path.join(a.data, "dev", "voices16.txt"))}
    kept_voices = {os.path.basename(f).split("-")[0].split("_")[0] for f in kept}
    files = []
    rate = FULL if a.full_band else NARROW
    folders = ["speech48_train"] if a.full_band else ["librispeech251", "vctk4", "speech_train"]
    for folder in folders:
        for f in sorted(glob.glob(os.path.join(a.data, folder, "*.*"))):
            if not f.endswith((".flac", ".opus", ".wav")):
                continue
            base = os.path.basename(f)
            voice = base.split("__")[0] if "__" in base else base.split("-")[0].split("_")[0]
            if not folder.startswith("speech") and voice in kept_voices:
                continue
            files.append((folder + "/" + voice, f))
    names = {os.path.splitext(os.path.basename(f))[0] for _, f in files}
    for folder in a.speech:
        for f in sorted(glob.glob(os.path.join(folder, "*.flac"))):
            if os.path.splitext(os.path.basename(f))[0] in names:
                continue
            files.append(("speech_train/" + os.path.basename(f).split("__")[0], f))
    index = dict(speech=[], noise=[], room=[])

    def pack(kind, items, dtype, work):
        parts, at = [], 0
        for label, f in items:
            try:
                x = work(read(f, rate))
            except Exception as e:
                print("left out:", f, e)
                continue
            if len(x) < rate // 20 or not np.isfinite(x).all() or np.abs(x).max() == 0:
                continue
            x = x / np.abs(x).max()
            if dtype == np.int16:
                x = np.round(x * 32000)
            parts.append(x.astype(dtype))
            index[kind].append((label, at, len(x)))
            at += len(x)
        np.save(os.path.join(a.out, kind + ".npy"), np.concatenate(parts))
        print(
            kind,
            len(parts),
            "clips",
            round(at / rate / 60, 1),
            "min",
            len({l for l, _, _ in index[kind]}),
            "labels",
            flush=True,
        )

    pack("speech", files, np.int16, lambda x: trim(highpass(x, 65, rate), rate))
    noise = sorted(glob.glob(os.path.join(a.data, "noise_train", "*__*")))
    if a.full_band:
        with open(os.path.join(a.data, "noise_train", "manifest.csv")) as f:
            full = {row["file"] for row in csv.DictReader(f) if int(row["native_rate"]) >= 44100}
        noise = [f for f in noise if os.path.basename(f) in full]
    for folder in a.noise:
        noise += sorted(glob.glob(os.path.join(folder, "*__*.flac")))
    pack("noise", [(os.path.basename(f).split("__")[0], f) for f in noise], np.int16, lambda x: x - x.mean())
    rooms = sorted(
        glob.glob(os.path.join(a.data, "rir_train", "*__*")) + glob.glob(os.path.join(a.data, "rir_train", "*.*"))
    )
    rooms = [f for f in dict.fromkeys(rooms) if f.endswith((".flac", ".wav", ".opus"))]
    pack("room", [(os.path.basename(f).split("__")[0], f) for f in rooms], np.float32, lambda x: x[: int(1.2 * rate)])
    json.dump(index, open(os.path.join(a.out, "index.json"), "w"))


if __name__ == "__main__":
    main()
