#!/usr/bin/env python3
"""Decodes all training recordings once, to OUT/{speech,noise,room}-NN.npy (int16 or float16, concatenated, at most 60 MiB each) and
OUT/index.json.

    prepare.py --data DATA [--speech FOLDER ...] [--noise FOLDER ...] [--full-band] [--made 0.3] OUT

A FOLDER with a manifest.csv of gather.py gives the files in it only: others are of earlier runs with other settings. Left out are the
voices reserved for development (DATA/dev/voices16.txt) and, in FOLDERs, voices and sources of noise of the development sets (DATA/dev,
DATA/dev_expressive). As the same recording may have several names, recordings that share a second with a held-out one (KEPT) are detected
by their sound (same_sound.py), left out and printed. Output is mono at 16 kHz or, with --full-band, at 48 kHz from recordings at 44.1 kHz
or more. For a fraction of the clips (--made), a raised, shouted or whispered version is added (voices.py).
"""

import argparse
import csv
import glob
import json
import os
import re
from pathlib import Path

import numpy as np
import soxr

import same_sound
import voices
from common import kept_clips, loud_mono, read_channels
from options import existing_folder, fraction, run

NARROW, FULL = 16000, 48000  # Hz
PART_BYTES = 60 << 20
ENDINGS = (".flac", ".opus", ".wav", ".ogg")
# Folders of DATA with development and test recordings.
KEPT = ("dev/noise", "dev/speech16", "dev/speech48", "dev_expressive", "noise", "noizeus/clean", "voicebank_p232/clean")


def resampled(x, rate, want):
    return soxr.resample(x, rate, want, quality="HQ") if rate != want else x


def read(path, want):
    x, rate = read_channels(path, "float32")
    return resampled(loud_mono(x), rate, want)


def highpass(x, hertz, rate):
    n = 1 << (len(x) + 800).bit_length()
    X = np.fft.rfft(x, n)
    f = np.fft.rfftfreq(n, 1 / rate)
    X *= np.clip((f - 0.7 * hertz) / (0.3 * hertz), 0, 1)
    return np.fft.irfft(X, n)[: len(x)].astype(np.float32)


def trim(x, rate):
    """Removes silence at both ends."""
    m = rate // 100
    p = (x[: len(x) // m * m].reshape(-1, m) ** 2).mean(1)
    loud = np.flatnonzero(p > 1e-4 * p.max()) if len(p) else []
    return x[max(0, loud[0] - 15) * m : (loud[-1] + 16) * m] if len(loud) else x


class Pack:
    """Writes recordings of one kind (speech, noise, room) in parts. Rows of the index are (label, part, first sample, samples)."""

    def __init__(self, out, kind, dtype):
        self.out, self.kind, self.dtype = out, kind, dtype
        self.rows, self.waiting, self.samples, self.part = [], [], 0, 0
        for old in glob.glob(os.path.join(out, kind + "-*.npy")):
            os.remove(old)

    def add(self, label, x):
        if len(x) == 0 or not np.isfinite(x).all() or np.abs(x).max() == 0:
            return
        x = x / np.abs(x).max()
        x = np.round(x * 32000).astype(np.int16) if self.dtype == np.int16 else x.astype(self.dtype)
        if self.samples and (self.samples + len(x)) * x.itemsize > PART_BYTES:
            self.flush()
        self.rows.append((label, self.part, self.samples, len(x)))
        self.waiting.append(x)
        self.samples += len(x)

    def flush(self):
        if self.waiting:
            np.save(os.path.join(self.out, f"{self.kind}-{self.part:02d}.npy"), np.concatenate(self.waiting))
            self.part += 1
        self.waiting, self.samples = [], 0

    def finish(self, rate):
        self.flush()
        minutes = sum(row[3] for row in self.rows) / rate / 60
        print(f"{self.kind}: {len(self.rows)} clips, {minutes:.1f} min, {len({row[0] for row in self.rows})} labels", flush=True)
        return self.rows


def plain(name):
    """Removes leading zeros of numbers: so762-114 of gather.py is so762-0114 in the development sets."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)


def in_development(data, part):
    """Names of voices (part 0) or of sources of noise (part 1) of the development recordings; `__` separates parts of file names."""
    folders = ["dev/speech16", "dev/speech48", "dev_expressive"] if part == 0 else ["dev/noise"]
    names = (os.path.basename(f).split("__") for folder in folders for f in glob.glob(os.path.join(data, folder, "*__*")))
    return {plain(name[part]) for name in names}


def sound_files(folder):
    return [f for f in sorted(glob.glob(os.path.join(folder, "*"))) if f.endswith(ENDINGS)]


def kept_apart(data):
    """(path, samples at the rate of same_sound.py) of all held-out recordings."""
    paths = [f for folder in KEPT for f in sound_files(os.path.join(data, folder))]
    paths += sorted({os.path.join(data, f) for f in kept_clips(data)})
    return ((f, read(f, same_sound.RATE)) for f in paths)


def recordings_in(folder):
    """(name, samples at the rate of same_sound.py) in a folder of sound files, or of this script."""
    index = os.path.join(folder, "index.json")
    if not os.path.exists(index):
        yield from ((f, x) for (_, f, x), _ in readable(((None, f) for f in sound_files(folder)), same_sound.RATE))
        return
    with open(index) as f:
        index = json.load(f)
    for kind in ("speech", "noise"):
        for label, part, at, n in index[kind]:
            if not label.startswith("made-"):
                x = np.load(os.path.join(folder, f"{kind}-{part:02d}.npy"), mmap_mode="r")[at : at + n].astype(np.float32)
                yield f"{kind} {label} in part {part} at {at}", resampled(x, index["rate"], same_sound.RATE)


def readable(files, rate):
    """((label, path, samples), samples at the rate of same_sound.py) of all readable files (label, path)."""
    for label, f in files:
        try:
            x = read(f, rate)
        except OSError as e:
            print("left out:", e)
            continue
        yield (label, f, x), resampled(x, rate, same_sound.RATE)


def without_copies(kept, files, rate):
    """(label, samples) of all files (label, path) that share no sound with the held-out recordings."""
    count = 0
    for (label, f, x), match in kept.compared(readable(files, rate)):
        if match:
            count += 1
            print(f"left out: {f} {same_sound.described(match)}", flush=True)
        else:
            yield label, x
    print(f"recordings left out by their sound: {count}", flush=True)


def manifest_of(folder):
    """Rows of the manifest of a folder by file; `None` without a manifest."""
    try:
        with open(os.path.join(folder, "manifest.csv"), newline="") as f:
            return {row["file"]: row for row in csv.DictReader(f)}
    except FileNotFoundError:
        return None


def listed(files, manifest, folder):
    """Files that are listed in the manifest of their folder; all files without a manifest."""
    found = [f for f in files if f.endswith(ENDINGS) and (manifest is None or os.path.basename(f) in manifest)]
    if manifest is not None and len(found) < (count := sum(f.endswith(ENDINGS) for f in files)):
        print(f"recordings in {folder} left out, as its manifest.csv lacks them: {count - len(found)}", flush=True)
    return found


def speech_files(data, folders, full_band):
    """(voice, path) of clean speech without duplicates; lossless folders come first."""
    kept_voices = {os.path.basename(f).split("-")[0].split("_")[0] for f in kept_clips(data)}
    own = ["speech48_train"] if full_band else ["librispeech251", "vctk4", "speech_train", "speech_expressive"]
    taken, sources, apart = {}, set(), in_development(data, 0)
    for folder in [*folders, *(Path(data, name) for name in own)]:
        manifest = manifest_of(folder)
        paths = {name: row.get("path", "") for name, row in (manifest or {}).items()}
        for f in listed(sorted(glob.glob(os.path.join(folder, "*.*"))), manifest if folder in folders else None, folder):
            base = os.path.basename(f)
            stem = os.path.splitext(base)[0]
            voice = base.split("__")[0] if "__" in base else base.split("-")[0].split("_")[0]
            if os.path.basename(folder) in ("librispeech251", "vctk4") and voice in kept_voices:
                continue
            if folder in folders and plain(voice) in apart:
                continue
            origin = paths.get(base, "").split(";")[0]
            if stem in taken or (origin and (voice, origin) in sources):
                continue
            sources.add((voice, origin))
            taken[stem] = (voice, f)
    return list(taken.values())


def noise_files(data, folders, full_band):
    """(kind, path) of noise."""
    taken, apart = {}, in_development(data, 1)
    for folder in [*folders, Path(data, "noise_train"), Path(data, "noise_more")]:
        manifest = manifest_of(folder)
        rates = {name: int(row.get("native_rate") or row.get("rate") or 0) for name, row in (manifest or {}).items()}
        for f in listed(sorted(glob.glob(os.path.join(folder, "*__*"))), manifest if folder in folders else None, folder):
            base = os.path.basename(f)
            stem = os.path.splitext(base)[0]
            # gather.py appends a checksum to the name of the source, and a number to pieces of a recording.
            if folder in folders and plain(re.sub(r"-[0-9a-f]{12}(-\d+)?$", "", stem.split("__")[1])) in apart:
                continue
            if not (full_band and rates.get(base, FULL) < 44100):
                taken.setdefault(stem, (base.split("__")[0], f))
    return list(taken.values())


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--data", type=existing_folder, required=True)
    a.add_argument("--speech", type=existing_folder, nargs="*", default=[])
    a.add_argument("--noise", type=existing_folder, nargs="*", default=[])
    a.add_argument("--full-band", action="store_true")
    a.add_argument("--made", type=fraction, default=0.3, help="fraction of clips with a raised, shouted or whispered version")
    a.add_argument("out")
    a = a.parse_args()
    rate = FULL if a.full_band else NARROW
    voiced = speech_files(a.data, a.speech, a.full_band)
    if not voiced:
        raise SystemExit(f"{a.data}: no speech to learn from")
    kept = same_sound.Kept(kept_apart(a.data))
    os.makedirs(a.out, exist_ok=True)
    index_path = os.path.join(a.out, "index.json")
    # An interrupted run must not leave the index of an earlier one.
    if os.path.exists(index_path):
        os.remove(index_path)

    def clips(files, work):
        for label, x in without_copies(kept, files, rate):
            x = work(x)
            if len(x) >= rate // 20:
                yield label, x

    index = {}
    speech, rng = Pack(a.out, "speech", np.int16), np.random.default_rng(1)
    for voice, x in clips(voiced, lambda x: trim(highpass(x, 65, rate), rate)):
        speech.add(voice, x)
        if rng.random() < a.made and len(x) > rate // 2:
            how, y = voices.make(x, rng, rate)
            speech.add(f"made-{how}-{voice}", y)
    index["speech"] = speech.finish(rate)
    noise = Pack(a.out, "noise", np.int16)
    for kind, x in clips(noise_files(a.data, a.noise, a.full_band), lambda x: x - x.mean()):
        noise.add(kind, x)
    index["noise"] = noise.finish(rate)
    room = Pack(a.out, "room", np.float16)
    rooms = sorted(f for f in glob.glob(os.path.join(a.data, "rir_train", "*.*")) if f.endswith(ENDINGS))
    for kind, x in clips(((os.path.basename(f).split("__")[0], f) for f in rooms), lambda x: x[: int(1.2 * rate)]):
        room.add(kind, x)
    index["room"] = room.finish(rate)
    with open(index_path + ".part", "w") as f:
        json.dump(dict(rate=rate, **index), f)
    os.replace(index_path + ".part", index_path)


if __name__ == "__main__":
    run(main)
