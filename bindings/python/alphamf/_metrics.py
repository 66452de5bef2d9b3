"""Metrics of speech enhancement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Tuple

import numpy as np

from . import _native
from ._arrays import check_rate, for_native

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._arrays import Array


def sdr(reference: ArrayLike, estimate: ArrayLike) -> float:
    """Signal-to-distortion ratio in dB: BSS-eval version 3, one source, a distortion filter of 512 taps."""
    return _native.sdr(*_pair(reference, estimate))


def si_sdr(reference: ArrayLike, estimate: ArrayLike) -> float:
    """Scale-invariant signal-to-distortion ratio in dB, without removal of the mean."""
    return _native.si_sdr(*_pair(reference, estimate))


def snr(reference: ArrayLike, estimate: ArrayLike) -> float:
    """Energy of the reference over that of the difference, dB."""
    return _native.snr(*_pair(reference, estimate))


def segmental_snr(reference: ArrayLike, estimate: ArrayLike, sample_rate: int) -> float:
    """Mean over segments of 30 ms of the ratio limited to -10..35 dB."""
    return _native.segmental_snr(*_pair(reference, estimate), check_rate(sample_rate))


def stoi(reference: ArrayLike, estimate: ArrayLike, sample_rate: int) -> float:
    """Short-time objective intelligibility."""
    return _native.stoi(*_pair(reference, estimate), check_rate(sample_rate))


def estoi(reference: ArrayLike, estimate: ArrayLike, sample_rate: int) -> float:
    """Extended short-time objective intelligibility."""
    return _native.estoi(*_pair(reference, estimate), check_rate(sample_rate))


def _pair(reference: ArrayLike, estimate: ArrayLike) -> Tuple[Array, Array]:
    pair = tuple(for_native(x, np.float64) for x in (reference, estimate))
    for x in pair:
        if x.ndim != 1:
            raise ValueError(f"samples of shape {x.shape}: expected (n,)")
    return pair  # type: ignore[return-value]
