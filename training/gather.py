#!/usr/bin/env python3
"""Gathers free recordings for training: gather.py OUT --clones DIR [--packages DIR] [--only NAME ...]

Sources, licences and checksums are in sources.toml. A source is a git repository at a commit, with a clone in DIR
(OWNER+NAME, OWNER+NAME/repo or OWNER+NAME.git), or a Debian package in the folder --packages, which is downloaded by `apt-get
download` if missing. Writes OUT/speech/VOICE__*.flac (16 kHz) and OUT/noise/KIND__*.flac (native rate), mono, and a manifest.csv in each: source,
path, SHA-256 of the original file (of each, if several are joined), licence. Finished sources are skipped unless their settings
have changed.

Keys of a source: at most `cap` clips and `minutes` per voice or kind. Noises need a sample rate of `rate` Hz; `join` concatenates
noises that are too short. A noise gives one clip of at most 40 s, a longer one up to `pieces`. A voice needs quiet frames `snr` dB below
its loud ones, a fraction `voiced` of periodic frames among the loud ones, and a length of `min` to `max` s. With `among`, a file needs
another file of the same name that matches this pattern. Recordings of earlier sources are left out. Missing keys are those of the source
in `like`.
Needs git, dpkg-deb, apt-get; ffmpeg for G.722, AAC and CAF.
"""

import argparse
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile

import numpy as np
import soundfile as sf
import soxr

from common import loud_mono
from options import run

RATE = 16000
MAX_RATE = 48000  # of noise, Hz
COLUMNS = "file label seconds rate source path sha256 licence".split()
DEFAULTS = dict(snr=25.0, voiced=0.3, min=0.5, max=15.0, cap=10**6, minutes=10**6, rate=0, join=False, pieces=1)
FFMPEG_ENDINGS = (".g722", ".m4a", ".caf")
NOISE_SECONDS = (1.0, 40.0)
SHORT_SECONDS = (0.05, 1.2)  # of noises to join
JOINED_SECONDS, GAP_SECONDS, JOINED_DB = 12.0, (0.15, 0.6), (-8.0, 0.0)


def command(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, **more).stdout


def git_files(source, clones):
    """Files (path, read) of a repository at its commit; git's object names are checksums."""
    base = os.path.join(clones, source["repository"].replace("/", "+"))
    found = [d for d in (base + "/repo/.git", base + "/repo", base + "/.git", base, base + ".git") if os.path.exists(d + "/HEAD")]
    if not found:
        sys.exit(f"{source['name']}: no clone of {source['repository']} in {clones}")
    for entry in command("git", "--git-dir", found[0], "ls-tree", "-r", "-z", source["commit"]).decode().split("\0"):
        if entry:
            meta, path = entry.split("\t", 1)
            blob = meta.split()[2]
            yield path, lambda blob=blob: command("git", "--git-dir", found[0], "cat-file", "blob", blob)


def package_files(source, folder):
    """Files (path, read) of a Debian package, or of the archive in it that the source names."""
    os.makedirs(folder, exist_ok=True)
    name, version = source["package"].split("=")
    file = f"{name}_{version.replace(':', '%3a')}_all.deb"
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        command("apt-get", "download", source["package"], cwd=folder)
    with open(path, "rb") as f:
        found = hashlib.file_digest(f, "sha256").hexdigest()
    if found != source["sha256"]:
        sys.exit(f"{path}: SHA-256 {found}, expected {source['sha256']}")
    tree = os.path.join(folder, "x", name)
    if not os.path.isdir(tree):
        # Renamed when complete, so that an interrupted run unpacks it again.
        shutil.rmtree(tree + ".part", ignore_errors=True)
        os.makedirs(tree + ".part")
        command("dpkg-deb", "-x", path, tree + ".part")
        os.rename(tree + ".part", tree)
    for root, _, names in os.walk(tree):
        for name in sorted(names):
            inner = os.path.join(root, name)
            if os.path.islink(inner):
                continue
            if source.get("archive") is None:
                yield os.path.relpath(inner, tree), lambda inner=inner: open(inner, "rb").read()
            elif name == source["archive"]:
                archive = zipfile.ZipFile(inner)
                for member in archive.namelist():
                    if not member.endswith("/"):
                        yield member, lambda archive=archive, member=member: archive.read(member)


def decoded(data, path):
    """Mono samples and sample rate."""
    if path.endswith(FFMPEG_ENDINGS):
        with tempfile.NamedTemporaryFile(suffix=os.path.splitext(path)[1]) as f:
            f.write(data)
            f.flush()
            data = command("ffmpeg", "-v", "error", "-i", f.name, "-f", "wav", "-c:a", "pcm_s16le", "-")
    x, rate = sf.read(io.BytesIO(data), always_2d=True)
    return loud_mono(x), rate


def levels(x, rate):
    """Levels of 20 ms frames, dB, at least -95."""
    n = rate // 50
    return np.maximum(10 * np.log10((x[: len(x) // n * n].reshape(-1, n) ** 2).mean(1) + 1e-12), -95)


def trimmed(x, rate, pad=0.2):
    e = levels(x, rate)
    if len(e) < 5:
        return x[:0]
    loud = np.flatnonzero(e > max(min(np.percentile(e, 10) + 12, e.max() - 20), e.max() - 40))
    n = rate // 50
    return x[max(0, loud[0] * n - int(pad * rate)) : (loud[-1] + 1) * n + int(pad * rate)]


def snr_db(x, rate):
    e = levels(x, rate)
    return 10 * np.log10(np.mean(10 ** (e[e > e.max() - 25] / 10))) - np.percentile(e, 10)


def voiced(x, rate):
    """Fraction of periodic frames (70 to 800 Hz) among the loud 40 ms frames."""
    n = rate // 25
    frames = np.lib.stride_tricks.sliding_window_view(x, n)[:: n // 2]
    energy = (frames**2).mean(1)
    frames = frames[energy > 0.01 * energy.max()]
    frames = frames - frames.mean(1, keepdims=True)
    r = np.fft.irfft(np.abs(np.fft.rfft(frames, 2 * n)) ** 2)[:, :n]
    r = r / (r[:, :1] + 1e-12) * n / np.maximum(n - np.arange(n), 1)
    return float((r[:, rate // 800 : rate // 70].max(1) > 0.6).mean())


def kept_apart(label):
    """Whether a voice is reserved for development: every fifth speaker of speechocean762."""
    number = label.split("-")[-1]
    return label.startswith("so762-") and int(hashlib.sha1(("dev" + number).encode()).hexdigest(), 16) % 5 == 0


def speech_of(x, rate, source):
    """The clip to keep, and the reason for which it is left out."""
    if not len(x) or np.abs(x).max() < 0.003 or (np.abs(x) >= 0.999).mean() > 0.01:
        return None, "level"
    y = soxr.resample(x, rate, RATE, "VHQ") if rate != RATE else x
    y = trimmed(y - y.mean(), RATE)
    if not source["min"] <= len(y) / RATE <= source["max"]:
        return None, "length"
    if snr_db(x, rate) < source["snr"]:
        return None, "noise"
    if voiced(y, RATE) < source["voiced"]:
        return None, "not voiced"
    return y * min(1.0, 0.9 / np.abs(y).max()), None


def parts_of(x, rate, pieces):
    """Equidistant sections of a long noise, at most `pieces`, of the maximum length; otherwise the whole noise."""
    length = int(NOISE_SECONDS[1] * rate)
    count = min(pieces, round(len(x) / length))
    return [x[int(i * len(x) / count) :][:length] for i in range(count)] if count > 1 else [x]


def noise_of(x, rate):
    """The clip to keep, and the reason for which it is left out."""
    on = np.flatnonzero(np.abs(x) > 1e-4)
    x = x[on[0] : on[-1] + 1] if len(on) else x[:0]
    x = x[: int(NOISE_SECONDS[1] * rate)]
    if len(x) < NOISE_SECONDS[0] * rate or (np.abs(x) >= 0.999).mean() > 0.02:
        return None, "length or level"
    return x * min(1.0, 0.95 / np.abs(x).max()), None


def joined(pieces, rate):
    """Concatenates pieces (samples, path, SHA-256) to clips of some seconds: samples, and paths and SHA-256 of the pieces."""
    rng = np.random.default_rng(1)
    parts, paths, digests = [], [], []
    for samples, path, checksum in sorted(pieces, key=lambda piece: piece[1]):
        level = 0.7 * 10 ** (rng.uniform(*JOINED_DB) / 20) / np.abs(samples).max()
        parts += [samples * level, np.zeros(int(rng.uniform(*GAP_SECONDS) * rate))]
        paths.append(path)
        digests.append(checksum)
        if sum(map(len, parts)) >= JOINED_SECONDS * rate:
            yield np.concatenate(parts), paths, digests
            parts, paths, digests = [], [], []
    if sum(map(len, parts)) >= NOISE_SECONDS[0] * rate:
        yield np.concatenate(parts), paths, digests


def label_of(source, match):
    """The voice, or the kind of noise, of a path that matched; `None` to leave it out."""
    if source["kind"] == "noise":
        return next((kind for pattern, kind in source["kinds"] if re.search(pattern, match.string)), "") or None
    label = source["label"].format(**{name: (value or "1").lstrip("0") or "0" for name, value in match.groupdict().items()})
    return None if kept_apart(label) else label


def resolved(sources):
    """Sources with their own keys and those of the sources in `like`."""
    by_name = {source["name"]: source for source in sources}
    whole = [{**(by_name[source["like"]] if "like" in source else {}), **source} for source in sources]
    return [{key: value for key, value in source.items() if key != "like"} for source in whole]


def gather(source, out, clones, packages, taken=()):
    """Writes the clips of a source, except recordings whose SHA-256 is in `taken`; returns the rows of the manifest."""
    source = {**DEFAULTS, **source}
    files = git_files(source, clones) if "repository" in source else package_files(source, packages)
    order = sorted(files, key=lambda file: hashlib.sha1(file[0].encode()).hexdigest())
    rows, seen, dropped, of_label, seconds, short = [], set(taken), {}, {}, {}, {}
    folder = os.path.join(out, source["kind"])
    os.makedirs(folder, exist_ok=True)
    speech = source["kind"] == "speech"

    def keep(label, y, rate, path, digest, stem, number=0):
        name = f"{label}__{source['name']}-{stem[:12]}{f'-{number}' if number else ''}.flac"
        sf.write(os.path.join(folder, name), y, rate, subtype="PCM_16")
        of_label[label] = of_label.get(label, 0) + 1
        seconds[label] = seconds.get(label, 0) + len(y) / rate
        origin = source.get("repository", source.get("package"))
        rows.append((name, label, f"{len(y) / rate:.2f}", rate, origin, path, digest, source["licence"]))

    stem = lambda path: os.path.splitext(os.path.basename(path))[0]
    named = {stem(path) for path, _ in order if re.search(source.get("among", ""), path)}
    full = lambda label: of_label.get(label, 0) >= source["cap"] or seconds.get(label, 0) > 60 * source["minutes"]
    for path, read in order:
        match = re.search(source["files"], path)
        label = match and label_of(source, match)
        if not label or full(label) or stem(path) not in named:
            continue
        data = read()
        digest = hashlib.sha256(data).hexdigest()
        if digest in seen:
            continue
        seen.add(digest)
        try:
            x, rate = decoded(data, path)
        except (sf.LibsndfileError, subprocess.CalledProcessError):
            dropped["not decoded"] = dropped.get("not decoded", 0) + 1
            continue
        if rate > MAX_RATE:
            x, rate = soxr.resample(x, rate, MAX_RATE, "VHQ"), MAX_RATE
        if speech:
            clips = [speech_of(x, rate, source)]
        else:
            clips = [noise_of(part, rate) for part in parts_of(x, rate, source["pieces"])]
        if rate < source["rate"]:
            clips = [(None, "sample rate")]
        elif clips[0][1] and source["join"] and len(x) and np.abs(x).max() > 0.01:
            on = np.flatnonzero(np.abs(x) > 1e-3)
            piece = x[on[0] : on[-1] + 1]
            if SHORT_SECONDS[0] * rate <= len(piece) < SHORT_SECONDS[1] * rate:
                short.setdefault((label, rate), []).append((piece, path, digest))
                continue
        for number, (y, why) in enumerate(clips):
            if why:
                dropped[why] = dropped.get(why, 0) + 1
            else:
                keep(label, y, RATE if speech else rate, path, digest, digest, number)
    for (label, rate), pieces in short.items():
        for y, paths, digests in joined(pieces, rate):
            if not full(label):
                stem = hashlib.sha256("".join(digests).encode()).hexdigest()
                keep(label, y, rate, " + ".join(paths), " + ".join(digests), stem)
    minutes = sum(seconds.values()) / 60
    print(f"{source['name']}: {len(rows)} clips, {minutes:.1f} min, {len(of_label)} labels, left out: {dropped}", flush=True)
    return rows


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("out")
    a.add_argument("--clones", required=True)
    a.add_argument("--packages")
    a.add_argument("--only", nargs="*", help="names of the sources to gather")
    a = a.parse_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sources.toml"), "rb") as f:
        sources = resolved(tomllib.load(f)["source"])
    unknown = set(a.only or ()) - {source["name"] for source in sources}
    if unknown:
        sys.exit(f"no source {', '.join(sorted(unknown))} in sources.toml")
    state = os.path.join(a.out, "done")
    os.makedirs(state, exist_ok=True)
    merged = {"speech": [], "noise": []}
    for source in sources:
        settings = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
        done = os.path.join(state, f"{source['name']}-{settings[:12]}.json")
        if not os.path.exists(done):
            if a.only is not None and source["name"] not in a.only:
                continue
            # Clips of other settings may be overwritten, so they no longer count as finished.
            for old in os.listdir(state):
                if re.fullmatch(re.escape(source["name"]) + r"-[0-9a-f]{12}\.json", old):
                    os.remove(os.path.join(state, old))
            taken = {digest for rows in merged.values() for row in rows for digest in row[COLUMNS.index("sha256")].split(" + ")}
            rows = gather(source, a.out, a.clones, a.packages or os.path.join(a.out, "packages"), taken)
            with open(done + ".part", "w") as f:
                json.dump(rows, f)
            os.replace(done + ".part", done)
        with open(done) as f:
            merged[source["kind"]] += json.load(f)
    for kind, rows in merged.items():
        if rows:
            with open(os.path.join(a.out, kind, "manifest.csv"), "w", newline="") as f:
                csv.writer(f).writerows([COLUMNS, *sorted(rows)])


if __name__ == "__main__":
    run(main)
