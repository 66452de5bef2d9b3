#!/usr/bin/env python3
"""Several recorders in a simulated room: `denoise join`, then `--channels array`, beside one recorder and takes as they are.

    pip install numpy scipy soundfile soxr pesq pystoi pyroomacoustics
    python eval/recorders.py denoise DATA OUT [--mixtures 8] [--first 6]

Rooms, voices and noises of arrays.py, 24 s, four microphones. All but the first are recorders of their own: they start up to 4 s apart, and
their clocks deviate by up to 60 parts in a million. Scored is the time that all takes have. `one clock` is the array as it would be
with one clock for all microphones; in `as they are` the takes are channels without being joined.
"""

import subprocess

import arrays
import numpy as np
import soundfile as sf
import soxr
from arrays import RATE
from signals import files_of, mean_and_error, run, si_sdr

SECONDS, MICROPHONES = 24, 4
SHIFT_SECONDS, DRIFT_PPM = 4, 60
FINE = 16  # times the sample rate, for linear interpolation


def recorded(samples, shift, ppm):
    """The take of a recorder that starts `shift` seconds earlier, with a clock that is `ppm` fast."""
    lead = int(5 * RATE)
    fine = soxr.resample(np.pad(samples, lead), RATE, FINE * RATE, quality="VHQ")
    times = np.arange(len(samples)) / (RATE * (1 + 1e-6 * ppm)) - shift
    return np.interp((times * RATE + lead) * FINE, np.arange(len(fine)), fine)


def main():
    given = arrays.arguments(__doc__, mixtures=8, first=6).parse_args()
    voices, noises = files_of(given.data / "dev/speech16", "so762*"), files_of(given.data / "dev/noise")
    given.out.mkdir(parents=True, exist_ok=True)
    at = lambda name: str(given.out / f"{name}.wav")

    def denoise(*arguments):
        subprocess.run([given.denoise, *arguments], check=True)

    rows = []
    for index in range(given.first, given.first + given.mixtures):
        kind, truth, samples = arrays.mixture(MICROPHONES, index, voices, noises, length=SECONDS * RATE)
        random = np.random.default_rng(index)
        clocks = [(0, 0)] + [(random.uniform(-SHIFT_SECONDS, SHIFT_SECONDS), random.uniform(-DRIFT_PPM, DRIFT_PPM)) for _ in range(MICROPHONES - 1)]
        takes = [recorded(channel, *clock) for channel, clock in zip(samples.T, clocks)]
        for n, take in enumerate(takes):
            sf.write(at(f"take-{n}"), take, RATE, "FLOAT")
        sf.write(at("one clock"), samples, RATE, "FLOAT")
        sf.write(at("as they are"), np.stack(takes, 1), RATE, "FLOAT")
        inputs = [at(f"take-{n}") for n in range(MICROPHONES)]
        denoise("join", "-q", "--force", *inputs, "-o", at("joined"))
        # The section that all takes share, by the first channel.
        joined = sf.read(at("joined"))[0][:, 0]
        first = sf.read(at("take-0"))[0]
        start = next((n for n in range(len(first)) if np.array_equal(first[n : n + RATE], joined[:RATE])), None)
        if start is None:
            raise SystemExit(f"{at('joined')}: expected a part of take-0 as its first channel")
        common = slice(start, start + len(joined))
        scores = []
        for name in ("take-0", "one clock", "joined", "as they are"):
            options = [] if name == "take-0" else ["--channels", "array"]
            denoise("-q", "--force", at(name), at("voice"), *options)
            found = sf.read(at("voice"), always_2d=True)[0][:, 0]
            found = found if name == "joined" else found[common]
            score = lambda y: (si_sdr(truth[common], y), arrays.pesq(RATE, truth[common], y, "wb"))
            scores.append(score(found))
        print(index, kind, np.round(scores, 2).tolist(), flush=True)
        rows.append(scores)
    rows = np.array(rows)
    change = rows - rows[:, :1]
    for n, name in enumerate(("one recorder", "one clock", "joined", "as they are")):
        to_one = ", ".join(mean_and_error(score, "+.2f") for score in change[:, n].T)
        print(f"{name}: {rows[:, n].mean(0).round(2)}; to one: {to_one}")


if __name__ == "__main__":
    run(main)
