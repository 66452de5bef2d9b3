"""Clips of a small repository: pieces, minutes, and recordings that other sources gave."""

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile as sf

import gather
import options
import prepare
from conftest import make_data

RATE = 4000
SECONDS = {"rain/long.wav": 210, "rain/half.wav": 30, "rain/third.wav": 20, "wind/long.wav": 45, "wind/half.wav": 30}
KINDS = [["rain", "steady-rain"], [".", "wind"]]


@pytest.fixture(scope="module")
def clones(tmp_path_factory):
    """A folder with a clone, and its commit."""
    folder = tmp_path_factory.mktemp("clones")
    tree = folder / "someone+sounds"
    rng = np.random.default_rng(0)
    for name, seconds in SECONDS.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        sf.write(tree / name, 0.1 * rng.standard_normal(seconds * RATE), RATE)

    def git(*words):
        return gather.command("git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b", *words).decode().strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "sounds")
    return str(folder), git("rev-parse", "HEAD")


def rows_of(clones, out, taken=(), **keys):
    source = dict(name="sounds", kind="noise", repository="someone/sounds", commit=clones[1], files="wav$", licence="CC0")
    rows = gather.gather({**source, "kinds": KINDS, **keys}, str(out), clones[0], "", taken)
    for name, _, seconds, rate, *_ in rows:
        assert sf.info(out / "noise" / name).frames == pytest.approx(float(seconds) * rate, abs=0.01 * rate)
    return rows


def test_a_long_recording_gives_as_many_pieces_as_asked_for(clones, tmp_path):
    for pieces, expected in ((1, 1), (3, 3), (9, 5)):
        rows = [row for row in rows_of(clones, tmp_path, pieces=pieces) if row[5] == "rain/long.wav"]
        assert [float(row[2]) for row in rows] == [40] * expected
        stem = f"steady-rain__sounds-{rows[0][6][:12]}"
        assert [row[0] for row in rows] == [f"{stem}{f'-{i}' if i else ''}.flac" for i in range(expected)]
    x = np.arange(210.0)
    assert [part[0] for part in gather.parts_of(x, 1, 3)] == [0, 70, 140]


def test_a_file_is_taken_when_one_of_its_name_is_among_others(clones, tmp_path):
    rows = rows_of(clones, tmp_path, files="^rain/.*wav$", among="^wind/")
    assert sorted(row[5] for row in rows) == ["rain/half.wav", "rain/long.wav"]


def test_of_each_kind_so_many_minutes_are_taken(clones, tmp_path):
    rows = rows_of(clones, tmp_path, minutes=0.6)
    for kind in ("steady-rain", "wind"):
        seconds = [float(row[2]) for row in rows if row[1] == kind]
        assert sum(seconds) >= 36 > sum(seconds[:-1])
    assert len(rows) < len(SECONDS) == len(rows_of(clones, tmp_path))


def test_what_an_earlier_source_gave_is_left_out(clones, tmp_path):
    first = rows_of(clones, tmp_path, files="^rain")
    later = rows_of(clones, tmp_path, taken={row[6] for row in first})
    assert {row[5] for row in later} == {name for name in SECONDS if name.startswith("wind")}


def test_what_an_earlier_source_joined_is_left_out(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    # The last one alone is too short for a clip.
    clips = {f"knock/{i}.wav": 0.1 * rng.standard_normal(int(seconds * RATE)) for i, seconds in enumerate((0.5, 0.5, 0.5, 0.3))}
    tree = tmp_path / "someone+knocks"
    for name, x in clips.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        sf.write(tree / name, x, RATE)
    read = lambda path: lambda: (tree / path).read_bytes()
    monkeypatch.setattr(gather, "git_files", lambda source, _: [(path, read(path)) for path in sorted(clips) if re.search(source["files"], path)])
    keys = dict(kind="noise", repository="someone/knocks", commit="0", licence="CC0", kinds=KINDS, join=True)
    sources = [dict(keys, name="first", files="[012]"), dict(keys, name="again", files="wav$")]
    monkeypatch.setattr(gather.tomllib, "load", lambda _: dict(source=sources))
    monkeypatch.setattr(sys, "argv", ["gather.py", str(tmp_path / "out"), "--clones", str(tmp_path)])
    gather.main()
    with open(tmp_path / "out" / "noise" / "manifest.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert [row["path"] for row in rows] == ["knock/0.wav + knock/1.wav + knock/2.wav"]
    checksums = [hashlib.sha256(read(path)()).hexdigest() for path in sorted(clips)[:3]]
    assert rows[0]["sha256"].split(" + ") == checksums
    # The name is that of earlier versions.
    assert rows[0]["file"] == f"wind__first-{hashlib.sha256(''.join(checksums).encode()).hexdigest()[:12]}.flac"


def test_settings_whose_clips_were_replaced_are_gathered_again(clones, tmp_path, monkeypatch):
    out = str(tmp_path)
    source = dict(name="sounds", kind="noise", repository="someone/sounds", commit=clones[1], files="^rain", licence="CC0", kinds=KINDS)
    # The second piece of five starts elsewhere than that of three, and has its name.
    three, five = {**source, "pieces": 3}, {**source, "pieces": 5}
    other = {**three, "name": "sounds-more", "files": "^wind"}

    def run(*sources):
        monkeypatch.setattr(gather.tomllib, "load", lambda _: dict(source=list(sources)))
        monkeypatch.setattr(sys, "argv", ["gather.py", out, "--clones", clones[0]])
        gather.main()
        with open(tmp_path / "noise" / "manifest.csv", newline="") as f:
            return {row["file"]: (tmp_path / "noise" / row["file"]).read_bytes() for row in csv.DictReader(f)}

    first = run(three, other)
    assert run(five, other) != first
    assert run(three, other) == first
    # What is done is not done again.
    monkeypatch.setattr(gather, "gather", None)
    assert run(three, other) == first


def test_a_clone_without_the_commit_ends_it_with_the_line_of_git(clones, tmp_path, monkeypatch, ended):
    source = dict(name="sounds", kind="noise", repository="someone/sounds", commit=40 * "0", files="wav$", licence="CC0", kinds=KINDS)
    monkeypatch.setattr(gather, "resolved", lambda _: [source])
    assert ended(gather.main, tmp_path, "--clones", clones[0]).startswith("fatal: ")


def test_names_of_sources_that_there_are_not_are_refused(tmp_path, ended):
    out = tmp_path / "out"
    line = ended(gather.main, out, "--clones", tmp_path, "--only", "so762", "so763", "0")
    assert line == "no source 0, so763 in sources.toml" and not out.exists()


def test_a_source_has_the_keys_of_the_one_that_it_is_like():
    first = dict(name="a", kind="noise", kinds=KINDS, commit="1")
    assert gather.resolved([first, dict(name="b", like="a", commit="2")])[1] == dict(name="b", kind="noise", kinds=KINDS, commit="2")
    with pytest.raises(KeyError):
        gather.resolved([dict(name="b", like="a")])


def test_an_interrupted_package_is_unpacked_again(tmp_path, monkeypatch):
    package = tmp_path / "sounds_1_all.deb"
    package.write_bytes(b"package")
    source = dict(name="sounds", package="sounds=1", sha256=hashlib.sha256(b"package").hexdigest())
    names = ["a.wav", "b.wav"]

    def unpack(program, _, path, folder, interrupted=False):
        assert (program, path) == ("dpkg-deb", str(package))
        for name in names:
            with open(os.path.join(folder, name), "x"):
                pass
            if interrupted:
                raise KeyboardInterrupt

    files = lambda: [path for path, _ in gather.package_files(source, str(tmp_path))]
    monkeypatch.setattr(gather, "command", lambda *words: unpack(*words, interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        files()
    monkeypatch.setattr(gather, "command", unpack)
    assert files() == names
    monkeypatch.setattr(gather, "command", None)
    assert files() == names


def test_other_formats_are_decoded(tmp_path):
    x = 0.3 * np.sin(np.arange(RATE * 4) * 0.3)
    sf.write(tmp_path / "a.wav", x, RATE * 4)
    for ending in (".m4a", ".g722"):
        try:
            words = ["ffmpeg", "-v", "error", "-i", tmp_path / "a.wav", "-ar", "16000", tmp_path / f"a{ending}"]
            subprocess.run(words, check=True)
        except FileNotFoundError:
            pytest.skip("no ffmpeg")
        y, rate = gather.decoded((tmp_path / f"a{ending}").read_bytes(), f"a{ending}")
        assert rate == 16000 and len(y) == pytest.approx(RATE * 4, rel=0.2)
        assert y.std() == pytest.approx(x.std(), rel=0.1)


def test_channels_that_cancel_each_other_are_not_averaged(tmp_path):
    x = 0.3 * np.sin(np.arange(RATE) * 0.3)
    for other, expected in ((-0.9 * x, x), (-0.45 * x, 0.275 * x), (0 * x, 0.5 * x)):
        sf.write(tmp_path / "a.wav", np.stack([x, other], 1), RATE, "FLOAT")
        for found in (gather.decoded((tmp_path / "a.wav").read_bytes(), "a.wav")[0], prepare.read(tmp_path / "a.wav", RATE)):
            assert found == pytest.approx(expected, abs=1e-6)


def test_clips_of_earlier_settings_are_not_prepared(clones, tmp_path, capsys):
    folder, out = tmp_path / "gathered", tmp_path / "gathered" / "noise"
    for pieces in (3, 1):
        rows = rows_of(clones, folder, pieces=pieces)
    names = sorted(row[0] for row in rows)
    assert len(list(out.iterdir())) > len(names)
    with open(out / "manifest.csv", "w", newline="") as f:
        csv.writer(f).writerows([gather.COLUMNS, *rows])
    speech = tmp_path / "gathered" / "speech"
    speech.mkdir()
    for name in ("a__1.flac", "a__2.flac"):
        (speech / name).touch()
    found = lambda files: sorted(os.path.basename(path) for _, path in files)
    assert found(prepare.noise_files(str(tmp_path), [str(out)], False)) == names
    assert f"recordings in {out} left out, as its manifest.csv lacks them" in capsys.readouterr().out
    # All of a folder without a manifest.
    assert found(speech_files(tmp_path, speech)) == ["a__1.flac", "a__2.flac"]
    (speech / "manifest.csv").write_text("file,path\na__2.flac,there\n")
    assert found(speech_files(tmp_path, speech)) == ["a__2.flac"]


def speech_files(data, folder):
    """Of a folder, and of `data` without a recording of development."""
    (data / "dev").mkdir(parents=True, exist_ok=True)
    (data / "dev" / "voices16.txt").touch()
    return prepare.speech_files(str(data), [str(folder)], False)


def test_an_interrupted_run_leaves_no_index_of_an_earlier_one(tmp_path, monkeypatch):
    data, index = tmp_path / "data", tmp_path / "prepared" / "index.json"
    data.mkdir()
    make_data(str(data))
    monkeypatch.setattr(sys, "argv", ["prepare.py", str(index.parent), "--data", str(data)])
    prepare.main()
    assert json.loads(index.read_text())["noise"]

    # Nothing is replaced before there is something to prepare.
    empty = tmp_path / "empty"
    speech_files(empty, empty)
    unreadable = tmp_path / "unreadable"
    shutil.copytree(data, unreadable)
    (unreadable / "dev/voices16.txt").write_text("dev/voices16.txt\n")
    for words, expected in (
        (["--data", str(tmp_path / "typo")], "2"),
        (["--data", str(data), "--speech", str(tmp_path / "typo")], "2"),
        (["--data", str(data), "--made", "nan"], "2"),
        (["--data", str(empty)], f"{empty}: no speech to learn from"),
        (["--data", str(unreadable)], f"{unreadable}/dev/voices16.txt: Format not"),
    ):
        with monkeypatch.context() as patched, pytest.raises(SystemExit) as refused:
            patched.setattr(sys, "argv", ["prepare.py", str(index.parent), *words])
            options.run(prepare.main)
        assert str(refused.value).startswith(expected), words
        assert json.loads(index.read_text())["noise"]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "noise_files", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare.main()
    assert not index.exists()
