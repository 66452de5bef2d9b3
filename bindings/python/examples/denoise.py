"""Denoises a 16-bit WAV file and prints statistics: denoise.py IN OUT"""

import sys
import wave

import numpy as np

import alphamf

if len(sys.argv) != 3:
    sys.exit(__doc__)
with wave.open(sys.argv[1]) as file:
    parameters = file.getparams()
    if parameters.sampwidth != 2:
        sys.exit(f"{sys.argv[1]}: expected 16 bits")
    noisy = np.frombuffer(file.readframes(parameters.nframes), "<i2").reshape(-1, parameters.nchannels).T
found = alphamf.Denoiser(strength="gentle").denoise(
    noisy, parameters.framerate, progress=lambda fraction: print(f"\r{fraction:4.0%}", end="", file=sys.stderr)
)
with wave.open(sys.argv[2], "wb") as file:
    file.setparams(parameters)
    file.writeframes(found.speech.T.tobytes())
before, after = found.stats["snr_before_db"], found.stats["snr_after_db"]
if before is None or after is None:
    print("\rno SNR: no speech found, or no noise")
else:
    print(f"\r{before:.1f} dB before, {after:.1f} dB after")
