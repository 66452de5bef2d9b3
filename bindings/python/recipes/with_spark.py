"""Denoises a folder of recordings with Spark: with_spark.py IN OUT [WORKERS]"""

import io
import os
import sys

import soundfile
from pyspark.sql import SparkSession

import alphamf


def denoiser_of(output):
    def denoise(rows):
        # Once for a partition: a denoiser's tables take longer than a second of sound.
        denoiser = alphamf.Denoiser(threads=1)
        for path, content in rows:
            samples, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
            speech = denoiser.denoise(samples.T, rate).speech
            soundfile.write(os.path.join(output, os.path.basename(path)), speech.T, rate)
            yield path

    return denoise


if __name__ == "__main__":
    folder, output, workers = *map(os.path.abspath, sys.argv[1:3]), int((sys.argv[3:] or ["2"])[0])
    os.makedirs(output, exist_ok=True)
    # For a cluster, `spark-submit` names the master.
    session = SparkSession.builder.master(f"local[{workers}]").getOrCreate()
    recordings = session.sparkContext.binaryFiles(folder, minPartitions=4 * workers).repartition(4 * workers)
    print(recordings.mapPartitions(denoiser_of(output)).count(), "recordings")
    session.stop()
