#!/usr/bin/env python3
"""Noises that hold speech, by Silero VAD: speech_in_noise.py FOLDER... [--share 0.4]

    pip install numpy scipy soundfile soxr onnxruntime silero-vad

A voice among the noises is a second talker: no denoiser can know which voice is meant. Prints the recordings in whose first 12 s at least
`--share` of the 32 ms frames have a probability of speech above 0.5, highest share first. Recordings are scaled to a peak of 0.5; those
shorter than 2 s are repeated.
"""

import argparse
from os.path import basename

import numpy as np

from signals import existing_folder, finite, read_mono, run
from voice_activity import RATE, silero_scores

from prepare import sound_files  # of training/, which signals made importable

PEAK, SHORTEST, LONGEST = 0.5, 2 * RATE, 12 * RATE


def share_of_speech(scores, noise):
    """Fraction of frames with speech, 0 to 1; 0 for digital silence."""
    peak = np.abs(noise[:LONGEST]).max(initial=0)
    if not peak > 0:
        return 0.0
    noise = np.tile(noise, -(-SHORTEST // len(noise)))[:LONGEST]
    return float((scores((PEAK / peak * noise).astype(np.float32)) > 0.5).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=existing_folder, nargs="+", metavar="FOLDER")
    parser.add_argument("--share", type=finite, default=0.4, help="minimum fraction of speech frames, 0 to 1 [0.4]")
    arguments = parser.parse_args()
    paths = [path for folder in arguments.folders for path in sound_files(folder)]
    if not paths:
        raise SystemExit(f"{' '.join(map(str, arguments.folders))}: no recordings")
    scores = silero_scores()
    shares = [(share_of_speech(scores, read_mono(path, RATE)), basename(path)) for path in paths]
    found = sorted((pair for pair in shares if pair[0] >= arguments.share), reverse=True)
    for share, name in found:
        print(f"{share:.2f} {name}")
    print(f"{len(paths)} recordings, {len(found)} with speech in {arguments.share:g} of their frames or more")


if __name__ == "__main__":
    run(main)
