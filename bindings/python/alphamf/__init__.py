"""Removes background noise from recorded speech.

    import alphamf
    speech = alphamf.denoise(samples, sample_rate)

Samples are numpy arrays of shape ``(n,)`` or ``(channels, n)`` and type ``float32``, ``float64`` or ``int16``; full scale
is 1 for floats, 32768 for integers. A :class:`Denoiser` denoises several recordings and returns more; a
:class:`Stream` takes a recording in chunks, a :class:`Live` in real time. :mod:`alphamf.samplers` samples any posterior.
"""

from . import _native, samplers
from ._denoiser import Denoiser, denoise
from ._live import Live, VoiceEvent
from ._metrics import estoi, sdr, segmental_snr, si_sdr, snr, stoi
from ._results import Denoised, Deviation, Levels, NoiseProfile, SpeechTrack
from ._stream import Stream
from ._training import evaluate, train

__all__ = [
    "Denoised",
    "Denoiser",
    "Deviation",
    "Levels",
    "Live",
    "NoiseProfile",
    "SpeechTrack",
    "Stream",
    "VoiceEvent",
    "denoise",
    "estoi",
    "evaluate",
    "samplers",
    "sdr",
    "segmental_snr",
    "si_sdr",
    "snr",
    "stoi",
    "train",
]
__version__ = _native.VERSION
