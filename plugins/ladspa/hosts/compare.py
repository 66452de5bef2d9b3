"""Compares what came out of a host with what the program makes of the same: compare.py NOISY EXPECTED HEARD

WAV files of one channel and one rate, of 16-bit integers or 32-bit floats. HEARD begins and ends at any time. Its frames
begin at another sample than those of EXPECTED, so they are alike, and not the same.
"""

import sys

import numpy as np


def read(path):
    """Samples of a WAV file; what a stopped recorder has left in the header about its length is not relied on."""
    with open(path, "rb") as file:
        data = file.read()
    position, kind = 12, None
    while position + 8 <= len(data):
        name, size = data[position : position + 4], int.from_bytes(data[position + 4 : position + 8], "little")
        if name == b"fmt ":
            kind = int.from_bytes(data[position + 22 : position + 24], "little")
        if name == b"data":
            body = data[position + 8 :]
            if kind == 16:
                return np.frombuffer(body[: len(body) // 2 * 2], "<i2") / 32768
            return np.frombuffer(body[: len(body) // 4 * 4], "<f4").astype(float)
        position += 8 + size + size % 2
    raise SystemExit(f"{path} has no samples")


def aligned(heard, reference):
    """The section of `heard` that is most like `reference`, and where it begins."""
    length = len(heard) + len(reference)
    product = np.fft.rfft(heard, length) * np.conj(np.fft.rfft(reference, length))
    start = int(np.argmax(np.fft.irfft(product, length)[: len(heard)]))
    section = heard[start : start + len(reference)]
    return np.pad(section, (0, len(reference) - len(section))), start


def si_sdr(reference, estimate):
    target = reference * (estimate @ reference) / (reference @ reference)
    return 10 * np.log10((target @ target) / max(np.sum((estimate - target) ** 2), 1e-12))


def main():
    noisy, expected, heard = map(read, sys.argv[1:4])
    if not np.abs(heard).max() > 0.01:
        raise SystemExit("nothing was heard")
    section, start = aligned(heard, expected)
    alike, before = si_sdr(expected, section), si_sdr(expected, noisy[: len(expected)])
    level = 10 * np.log10(np.mean(section**2) / np.mean(expected**2))
    print(
        f"{len(heard)} samples heard, the demo from sample {start}: level {level:+.2f} dB, SI-SDR against the program's "
        f"output {alike:.1f} dB (of the input {before:.1f} dB)"
    )
    if alike < 20 or abs(level) > 0.5:
        raise SystemExit("it is not what the program makes of it: expected 20 dB or more at the same level")


if __name__ == "__main__":
    main()
