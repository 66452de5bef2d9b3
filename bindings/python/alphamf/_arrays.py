"""Checks and conversions of arguments."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Union

import numpy as np

from . import _native

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[Any]

#: A file, by path or as its bytes.
Model = Union[str, "os.PathLike[str]", bytes]
#: Receives what is completed, a fraction from 0 to 1 or seconds; an exception cancels the work.
Progress = Callable[[float], object]

DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int16))


def file_bytes(model: Model) -> bytes:
    return bytes(model) if isinstance(model, (bytes, bytearray, memoryview)) else Path(model).read_bytes()


def to_json(options: Mapping[str, Any]) -> str:
    def text(name: str, value: Any) -> str:
        check_finite(name, value)
        if isinstance(value, (float, np.floating)):
            # A whole number, as of iterations, may come as a float.
            number = float(value)
            value = int(number) if abs(number) < 2**64 and number.is_integer() else number
        try:
            return json.dumps(value.item() if isinstance(value, np.generic) else value)
        except (TypeError, ValueError):
            raise TypeError(f"{name} is {value!r}; expected a number, a string or a bool") from None

    return "{" + ", ".join(f"{json.dumps(name)}: {text(name, value)}" for name, value in options.items()) + "}"


def check_finite(name: str, value: Any) -> None:
    if isinstance(value, (float, np.floating)) and not np.isfinite(value):
        raise ValueError(f"{name} is {value}; expected a finite number")


def is_number(value: Any) -> bool:
    """Whether a value is one number, of any type; a truth value is none."""
    # Every type of number has __float__, and no text has; arrays have it, too.
    return hasattr(value, "__float__") and not isinstance(value, (bool, np.bool_)) and np.ndim(value) == 0


def counted(count: int, thing: str) -> str:
    """A number of things, whose plural ends in s."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def check_number(name: str, value: Any) -> None:
    if not is_number(value):
        raise TypeError(f"{name} is {value!r}; expected a number")


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number in a range."""
    check_number(name, value)
    if not least <= value <= most or int(value) != value:
        raise ValueError(f"{name} is {value}; expected a whole number from {least} to {most}")
    return int(value)


def check_threads(threads: Optional[int]) -> Optional[int]:
    return None if threads is None else whole("threads", threads, 1, 1024)


def check_rate(sample_rate: Any) -> int:
    check_number("sample_rate", sample_rate)
    least, most = _native.MIN_SAMPLE_RATE, _native.MAX_SAMPLE_RATE
    if not least <= sample_rate <= most or int(sample_rate) != sample_rate:
        raise ValueError(f"sample rate of {sample_rate} Hz: expected an integer from {least} to {most}")
    return int(sample_rate)


def check_count(channels: Any) -> int:
    check_number("channels", channels)
    if not 1 <= channels <= _native.MAX_CHANNELS or int(channels) != channels:
        raise ValueError(f"{channels} channels: expected an integer from 1 to {_native.MAX_CHANNELS}")
    return int(channels)


def check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.newbyteorder("=") in DTYPES and not dtype.isnative:
        raise TypeError(f"samples of {dtype}: expected the byte order of this machine: x.astype({dtype.name!r})")
    if dtype not in DTYPES:
        raise TypeError(f"samples of {dtype}: expected float32 or float64 with full scale 1, or int16")
    return dtype


def as_channels(samples: Array) -> Array:
    """Samples of a recording, with shape (channels, n)."""
    check_dtype(samples.dtype)
    if samples.ndim not in (1, 2):
        raise ValueError(f"samples of shape {samples.shape}: expected (n,) or (channels, n)")
    if samples.ndim == 1:
        return samples[np.newaxis]
    if samples.shape[0] > samples.shape[1] > 0:
        raise ValueError(
            f"samples of shape {samples.shape}: expected (channels, n); transpose an array of (n, channels): x.T"
        )
    return samples


def expected_rows(rows: Array, channels: int) -> str:
    """What was expected of a block of another shape, and the remedy if it has a row for each sample."""
    hint = "; transpose it (.T)" if rows.shape[1:] == (channels,) else ""
    return f"expected ({channels}, n){hint}"


def as_floats(samples: Array) -> Array:
    if samples.dtype == np.int16:
        return samples.astype(np.float32) / np.float32(32768)
    with np.errstate(over="ignore"):
        return for_native(samples, np.float32)


def for_native(samples: ArrayLike, dtype: Any) -> Array:
    """Numbers as the native part reads them: in the order of C, and aligned, as a part of a buffer may not be."""
    return np.require(samples, dtype, ["C_CONTIGUOUS", "ALIGNED"])
