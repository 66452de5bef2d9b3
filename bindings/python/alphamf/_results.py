"""Results of denoising."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple

import numpy as np

from . import _native

if TYPE_CHECKING:
    from ._arrays import Array


@dataclass(frozen=True)
class Deviation:
    """Uncertainty of the gain: its standard deviation over the posterior draws, 0 to 0.5.

    It is that of the model's gain, before the speech-presence network counts; above 8 kHz it is 0.

    ``values`` has shape ``(bins, frames)`` or, with separate channels, ``(channels, bins, frames)``; without draws
    (``quality="fast"``) there are no frames. Bins are ``bin_hertz`` apart, from 0 Hz. Frames are ``frame_seconds`` apart;
    the first ends that long after the start of the recording.
    """

    values: Array
    bin_hertz: float
    frame_seconds: float


@dataclass(frozen=True)
class Levels:
    """Speech level in third octaves and exactly the time of each slot, with a nominal 90 % interval.

    ``values`` has shape ``(3, bands, slots)`` or, with separate channels, ``(channels, 3, bands, slots)``: level, lower
    and upper end of the interval, in dBFS; NaN in silence. ``edges_hertz`` are the edges of the bands; slot 0 starts
    ``first_slot`` times ``slot_seconds`` after the start of the recording.
    """

    values: Array
    edges_hertz: Array
    slot_seconds: float
    first_slot: int


@dataclass(frozen=True)
class SpeechTrack:
    """Where speech is.

    ``probability`` of speech per slot has shape ``(slots,)`` or, with separate channels, ``(channels, slots)``; slot 0
    starts ``first_slot`` times ``slot_seconds`` after the start of the recording. ``segments`` has an element for each
    section with speech that has ended, with the fields ``start_seconds``, ``end_seconds``, ``level_dbfs`` and ``snr_db``. It
    is an array of shape ``(n,)`` in a tuple of one, or a tuple of one for each separate channel.
    """

    probability: Array
    segments: Tuple[Array, ...]
    slot_seconds: float
    first_slot: int


@dataclass(frozen=True)
class Denoised:
    """A denoised recording.

    ``speech`` and ``residual``, the recording minus the speech, have the shape and type of the recording. They
    add up to it with ``int16``, too, as their dither is opposite. ``stats`` has the fields that ``denoise --stats`` reports
    of a file's samples. ``residual``, ``gain_std``, ``levels`` and ``speech_track`` are ``None`` unless requested,
    ``noise`` (the noise profile) is ``None`` without ``noise_from``.
    """

    speech: Array
    residual: Optional[Array]
    stats: Mapping[str, Any]
    gain_std: Optional[Deviation]
    levels: Optional[Levels]
    speech_track: Optional[SpeechTrack]
    noise: Optional[NoiseProfile]


class NoiseProfile:
    """Mean power spectrum of a section without speech; made by :meth:`Denoiser.noise_profile`.

    ``power`` has shape ``(channels, bins)``: ``|X|^2`` over the dictionary's windows, 64 ms for the built-in one.
    ``frequencies`` are those of the bins, in Hz. A copy made by :mod:`pickle` has them, but is no ``noise_from``.
    """

    def __init__(self, native: _native.NoiseProfile) -> None:
        self._native: Optional[_native.NoiseProfile] = native
        spectra = native.spectra()
        if spectra is None:
            raise ValueError("noise section is shorter than one analysis window")
        self.power, bin_hertz = spectra
        self.frequencies = bin_hertz * np.arange(self.power.shape[1])

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_native": None}

    def __copy__(self) -> NoiseProfile:
        return self

    def __deepcopy__(self, _memo: Dict[int, Any]) -> NoiseProfile:
        return self

    def _learned(self) -> _native.NoiseProfile:
        if self._native is None:
            raise ValueError("a noise profile that was pickled has only its spectrum: learn it again (Denoiser.noise_profile)")
        return self._native


def read_stats(session: _native.Session, dtype: np.dtype[Any]) -> Mapping[str, Any]:
    statistics, clipped = session.statistics()
    stats: Dict[str, Any] = json.loads(statistics)
    if dtype == np.int16:
        stats["clipped_samples"] = clipped
    return stats


def take_gain_std(session: _native.Session, separate: bool) -> Deviation:
    parts, bin_hertz, frame_seconds = session.take_gain_std()
    values = np.stack([part.T for part in parts])
    return Deviation(values if separate else values[0], bin_hertz, frame_seconds)


def take_levels(session: _native.Session, separate: bool) -> Levels:
    parts, edges_hertz, slot_seconds, first_slot = session.take_levels()
    values = np.stack([part.T for part in parts])
    return Levels(values if separate else values[0], np.asarray(edges_hertz), slot_seconds, first_slot)


def take_speech_track(session: _native.Session, separate: bool) -> SpeechTrack:
    tracks, slot_seconds, first_slot = session.take_speech_track()
    values = np.stack([probability for probability, _ in tracks])
    fields = np.dtype([(name, np.float64) for name in ("start_seconds", "end_seconds", "level_dbfs", "snr_db")])
    segments = tuple(rows.view(fields).reshape(-1) for _, rows in tracks)
    return SpeechTrack(values if separate else values[0], segments, slot_seconds, first_slot)
