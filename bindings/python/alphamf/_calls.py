"""Parts that the filters for calls share."""

from __future__ import annotations

import functools
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Mapping, Optional

import numpy as np

from . import _native
from ._arrays import check_finite, counted, is_number
from ._denoiser import Denoiser

if TYPE_CHECKING:
    from ._arrays import Array
    from ._live import Live

#: Lowest and highest value of each control.
LEAST, MOST = json.loads(_native.control_ranges())


def clamped(name: str, value: float) -> float:
    """The nearest value in the range of a control.

    :raises ValueError: if it is not a finite number.
    """
    # Settings of a frame may be of any type.
    if not is_number(value):
        raise ValueError(f"{name} is {value!r}; expected a number")
    check_finite(name, value)
    return float(min(max(value, LEAST[name]), MOST[name]))


@functools.lru_cache(maxsize=1)
def shared_denoiser() -> Denoiser:
    """The denoiser of all filters without one of their own: its tables take a fraction of a second to compute."""
    return Denoiser()


class LiveOptions:
    """What a filter makes its real-time denoisers with."""

    def __init__(self, denoiser: Optional[Denoiser], latency: float, **controls: Optional[float]) -> None:
        if not (denoiser is None or isinstance(denoiser, Denoiser)):
            raise TypeError(f"denoiser is {denoiser!r}; expected a Denoiser")
        self.denoiser = denoiser
        self.latency = latency
        self.controls = controls

    def open(self, sample_rate: int, channels: int, bypass: bool = False) -> Live:
        """A real-time denoiser with the present controls."""
        denoiser = shared_denoiser() if self.denoiser is None else self.denoiser
        options: Mapping[str, Any] = self.controls
        return denoiser.live(sample_rate, channels, latency=self.latency, bypass=bypass, **options)

    def update(self, controls: Mapping[str, Any], live: Optional[Live]) -> None:
        """Changes controls, also those of ``live``; values out of range are clamped.

        :raises ValueError: if one has another name, or is not a finite number.
        """
        unknown = sorted(set(controls) - set(self.controls))
        if unknown:
            raise ValueError(f"control is {unknown[0]}; expected {', '.join(self.controls)}")
        # Denoisers made later take values in range alone.
        in_range = {name: clamped(name, value) for name, value in controls.items()}
        if live is not None:
            live.set(**in_range)
        self.controls.update(in_range)


def worker_threads() -> ThreadPoolExecutor:
    """Threads of this process on which filters compute, as many as it may use cores."""
    return _worker_threads(os.getpid())


# By process: a forked child has none of its parent's threads.
@functools.lru_cache(maxsize=1)
def _worker_threads(_process: int) -> ThreadPoolExecutor:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ThreadPoolExecutor(cores, thread_name_prefix="alphamf")


def as_rows(audio: object, channels: int, used: Optional[int] = None) -> Array:
    """Interleaved 16-bit samples as an array of shape (channels, n), without a copy.

    :param used: number of samples, if the buffer may hold more.
    """
    samples = np.frombuffer(audio, np.uint8)  # type: ignore[call-overload]
    width = 2 * channels
    if used is not None:
        samples = samples[: 2 * used]
    if samples.size % width:
        found, of = counted(samples.size, "byte"), counted(channels, "channel")
        raise ValueError(f"{found} of audio: expected a multiple of {width} for {of}")
    rows: Array = samples.view(np.int16).reshape(-1, channels).T
    return rows


def as_bytes(rows: Array) -> bytes:
    """The inverse of :func:`as_rows`."""
    return rows.T.tobytes()
