"""Denoises a folder of recordings with Dask: with_dask.py IN OUT [WORKERS]"""

import os
import sys

import dask.bag
import soundfile

import alphamf


def denoise(paths, output):
    # Once per partition: a denoiser's tables take longer than a second of audio.
    denoiser = alphamf.Denoiser(threads=1)
    for path in paths:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        speech = denoiser.denoise(samples.T, rate).speech
        soundfile.write(os.path.join(output, os.path.basename(path)), speech.T, rate)
        yield path


if __name__ == "__main__":
    folder, output, workers = *map(os.path.abspath, sys.argv[1:3]), int((sys.argv[3:] or ["2"])[0])
    os.makedirs(output, exist_ok=True)
    recordings = dask.bag.from_sequence(
        sorted(entry.path for entry in os.scandir(folder) if entry.is_file()), npartitions=4 * workers
    )
    # On a cluster, create a `distributed.Client` instead of using local processes.
    done = recordings.map_partitions(denoise, output).count().compute(scheduler="processes", num_workers=workers)
    print(done, "recordings")
