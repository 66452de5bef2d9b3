#!/usr/bin/env python3
"""Voice activity beside other detectors: area under the ROC curve, and F1, per 10 ms frame.

    pip install numpy scipy soundfile soxr onnxruntime silero-vad webrtcvad-wheels
    pip install bindings/python        # the package alphamf, of this repository
    python eval/voice_activity.py MIXTURES [--by-kind] [--csv FILE]
    python eval/voice_activity.py MIXTURES --program target/release/denoise --only track segments silero webrtc

MIXTURES holds clean/NAME.wav and noisy/NAME.wav, 16 kHz, one channel; the kind of a mixture is its name before `__`. A frame
holds speech if the level of the clean side, smoothed over 50 ms, is above -40 dB of its maximum. Each detector takes the
noisy side causally, from its initial state; `track` and `segments` are what `denoise --speech` has, which looks ahead. Its
output may be late by a constant delay, for which the best of 0 to 100 ms is taken. Printed: the mean over files, of at least
0.1 s of either class, of the area under the ROC curve with its standard error, the area over all frames together, the mean of
differences from the first detector with its standard error, and the same for F1 at a probability of 0.5; for webrtcvad that of
the best of its modes.
"""

import argparse
import csv
import functools
import json
import os
import subprocess
import tempfile

import numpy as np
import soundfile
from scipy.stats import rankdata

from signals import SPEECH_DB, existing_folder, finite, is_speech, mean_and_error, read_exactly, run

RATE = 16_000
FRAME = RATE // 100
MIN_FRAMES = 10
MAX_DELAY_FRAMES = 10


def truth(clean, speech_db=SPEECH_DB):
    """Whether each 10 ms frame holds speech."""
    frames = len(clean) // FRAME
    return is_speech(clean[: frames * FRAME], FRAME * np.arange(frames) + FRAME // 2, speech_db)


def alphamf_scores(no_neural=False):
    from alphamf import Denoiser

    denoiser = Denoiser(no_neural=no_neural)

    def scores(noisy):
        live = denoiser.live(RATE)
        found = []
        for start in range(0, len(noisy) - FRAME + 1, FRAME):
            live.process(noisy[start : start + FRAME])
            found.append(live.meters["speech_probability"])
        return np.array(found)

    return scores


def silero_scores():
    import onnxruntime
    from importlib.util import find_spec

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The package itself imports torch.
    model = os.path.join(find_spec("silero_vad").submodule_search_locations[0], "data", "silero_vad.onnx")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    chunk, context = 512, 64

    def scores(noisy):
        state = np.zeros((2, 1, 128), np.float32)
        padded = np.concatenate([np.zeros(context, np.float32), noisy, np.zeros(chunk, np.float32)])
        found = []
        for start in range(0, len(noisy), chunk):
            block = padded[None, start : start + context + chunk]
            output, state = session.run(None, {"input": block, "state": state, "sr": np.array(RATE, np.int64)})
            found.append(output[0, 0])
        # The chunk that holds the middle of each frame.
        middles = (np.arange(len(noisy) // FRAME) * FRAME + FRAME // 2) // chunk
        return np.array(found)[middles]

    return scores


def webrtc_scores():
    """Number of its four modes that detect speech."""
    import webrtcvad

    def scores(noisy):
        pcm = np.clip(np.round(noisy * 32768), -32768, 32767).astype("<i2")
        blocks = [pcm[start : start + FRAME].tobytes() for start in range(0, len(pcm) - FRAME + 1, FRAME)]
        detectors = [webrtcvad.Vad(mode) for mode in range(4)]
        return np.array([[float(detector.is_speech(block, RATE)) for block in blocks] for detector in detectors]).sum(0)

    return scores


@functools.cache
def track_of(program, samples):
    """The output of `denoise --speech` for a channel of 32-bit float samples, given as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        recording, voice, track = (os.path.join(folder, name) for name in ("in.wav", "out.wav", "track.json"))
        soundfile.write(recording, np.frombuffer(samples, np.float32), RATE, "FLOAT")
        subprocess.run([program, recording, voice, "--speech", track, "-q", "--threads", "1"], check=True)
        with open(track) as found:
            return json.load(found)["channels"][0]


def track_scores(program, segments=False):
    """The probabilities of `denoise --speech`, or whether there is a segment."""

    def scores(noisy):
        channel = track_of(program, noisy.tobytes())
        probability = np.array(channel["probability"])
        if not segments:
            return probability
        middles = (np.arange(len(probability)) + 0.5) / 100
        return sum(((s["start_seconds"] < middles) & (middles < s["end_seconds"]) for s in channel["segments"]), np.zeros(len(middles)))

    return scores


def f1(scores, is_speech, threshold):
    found = scores >= threshold
    return 2 * (found & is_speech).sum() / max(found.sum() + is_speech.sum(), 1)


def area(scores, is_speech):
    """Area under the ROC curve; ties count half."""
    positive = is_speech.sum()
    negative = len(is_speech) - positive
    return (rankdata(scores)[is_speech].sum() - positive * (positive + 1) / 2) / (positive * negative)


def delayed(scores, is_speech, frames):
    """Scores after compensation of a delay in frames, and labels."""
    return scores[frames:], is_speech[: len(is_speech) - frames]


def best_delay(results):
    """The delay with the highest mean area, in frames."""
    mean = [np.mean([area(*delayed(*result, frames)) for result in results]) for frames in range(MAX_DELAY_FRAMES + 1)]
    return int(np.argmax(mean))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mixtures", type=existing_folder)
    parser.add_argument("--by-kind", action="store_true", help="print the areas by kind of mixture, too")
    parser.add_argument("--speech-db", type=finite, default=SPEECH_DB, help="level of speech, dB of the maximum [-40]")
    parser.add_argument("--csv", help="write the area of every file and detector")
    known = ("alphamf", "alphamf-no-neural", "track", "segments", "silero", "webrtc")
    parser.add_argument("--only", nargs="*", choices=known, metavar="DETECTOR", help=", ".join(known))
    parser.add_argument("--program", help="denoise, for track and segments")
    arguments = parser.parse_args()
    if {"track", "segments"} & set(arguments.only or ()) and not arguments.program:
        parser.error("track and segments need --program")
    detectors = {
        "alphamf": alphamf_scores,
        "alphamf-no-neural": lambda: alphamf_scores(no_neural=True),
        "silero": silero_scores,
        "webrtc": webrtc_scores,
        "track": lambda: track_scores(arguments.program),
        "segments": lambda: track_scores(arguments.program, segments=True),
    }
    thresholds = {"webrtc": (1, 2, 3, 4)}
    names = arguments.only or ["alphamf", "alphamf-no-neural", "silero", "webrtc"]
    files = []
    for name in sorted(os.listdir(os.path.join(arguments.mixtures, "noisy"))):
        clean, noisy = (
            read_exactly(arguments.mixtures / side / name, RATE, dtype="float32")[:, 0] for side in ("clean", "noisy")
        )
        files.append((name, noisy, truth(clean, arguments.speech_db)))
    # A file of its own area has enough frames of either class; all count in the area over all frames.
    alone = [min(is_speech.sum(), (~is_speech).sum()) >= MIN_FRAMES for _, _, is_speech in files]
    if not any(alone):
        raise SystemExit(f"{arguments.mixtures}: no files with 0.1 s of speech and of pauses")
    share = np.mean([is_speech.mean() for _, _, is_speech in files])
    print(f"{len(files)} files, {sum(alone)} of them scored alone, {100 * share:.0f} % of frames with speech")
    areas, f1s = {}, {}
    for name in names:
        scores = detectors[name]()
        results = []
        for _, noisy, is_speech in files:
            found = scores(noisy)
            length = min(len(found), len(is_speech))
            results.append((found[:length], is_speech[:length]))
        delay = best_delay([result for result, is_alone in zip(results, alone) if is_alone])
        in_time = [delayed(*result, delay) for result in results]
        areas[name] = [area(*result) for result, is_alone in zip(in_time, alone) if is_alone]
        tried = [
            [f1(*result, threshold) for result, is_alone in zip(in_time, alone) if is_alone]
            for threshold in thresholds.get(name, (0.5,))
        ]
        f1s[name] = max(tried, key=np.mean)
        all_frames = area(*(np.concatenate(side) for side in zip(*in_time)))
        line = f"{name:18} {mean_and_error(areas[name], '.4f')}  all frames {all_frames:.4f}  {10 * delay} ms late"
        if name != names[0]:
            line += f"  {mean_and_error(np.subtract(areas[name], areas[names[0]]), '+.4f')} against {names[0]}"
        line += f"  F1 {mean_and_error(f1s[name], '.4f')}"
        if name != names[0]:
            line += f"  {mean_and_error(np.subtract(f1s[name], f1s[names[0]]), '+.4f')}"
        print(line, flush=True)
    files = [name for (name, _, _), is_alone in zip(files, alone) if is_alone]
    if arguments.by_kind:
        kinds = [name.split("__")[0] for name in files]
        for kind in sorted(set(kinds)):
            mine = np.array([other == kind for other in kinds])
            cells = [f"{name} {np.asarray(areas[name])[mine].mean():.4f}" for name in names]
            print(f"{kind:12} {'  '.join(cells)}")
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as out:
            table = csv.writer(out)
            table.writerow(["file", *names])
            table.writerows([name, *row] for name, row in zip(files, zip(*(areas[name] for name in names))))


if __name__ == "__main__":
    run(main)
