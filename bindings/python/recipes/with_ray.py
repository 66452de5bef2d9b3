"""Denoises a folder of recordings with Ray: with_ray.py IN OUT [WORKERS]"""

import io
import os
import sys

import ray
import soundfile

import alphamf


class Denoise:
    """Made once in a worker: a denoiser's tables take longer than a second of sound."""

    def __init__(self, output):
        self.output, self.denoiser = output, alphamf.Denoiser(threads=1)

    def __call__(self, batch):
        for path, content in zip(batch["path"], batch["bytes"]):
            samples, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
            speech = self.denoiser.denoise(samples.T, rate).speech
            soundfile.write(os.path.join(self.output, os.path.basename(path)), speech.T, rate)
        return {"path": batch["path"]}


if __name__ == "__main__":
    folder, output, workers = *map(os.path.abspath, sys.argv[1:3]), int((sys.argv[3:] or ["2"])[0])
    os.makedirs(output, exist_ok=True)
    if "RAY_ADDRESS" not in os.environ:
        ray.init(num_cpus=workers + 1)  # of this machine, one for reading
    recordings = ray.data.read_binary_files(folder, include_paths=True, override_num_blocks=4 * workers)
    done = recordings.map_batches(
        Denoise,
        fn_constructor_args=(output,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )
    print(done.count(), "recordings")
