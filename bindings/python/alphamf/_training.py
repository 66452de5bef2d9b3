"""Training of dictionaries, and evaluation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _native
from ._arrays import Progress, as_floats, check_dtype, check_number, check_rate, check_threads, whole
from ._denoiser import Denoiser

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._arrays import Array


def train(
    files: Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]],
    *,
    rate: Optional[int] = None,
    rank: int = 100,
    alpha: float = 0.8,
    iterations: int = 60,
    window: float = 0.064,
    seed: int = 0,
    threads: Optional[int] = None,
    progress: Optional[Progress] = None,
) -> bytes:
    """Trains a speech dictionary; returns the bytes of its file, for ``Denoiser(model=...)``.

    :param files: clean speech: a folder, searched recursively for audio files, a file, or files.
    :param rate: sample rate of the dictionary in Hz; default: the lowest of the files.
    :param rank: number of spectra, 1 to 1,000.
    :param alpha: characteristic exponent of speech, 0.2 to 2.
    :param iterations: number of sweeps over the speech.
    :param window: length of the analysis window, s.
    :param seed: seed of all random numbers; the same seed gives the same bytes.
    :raises FileNotFoundError: if the folder or a file is missing.
    :raises ValueError: if a file is invalid, or there is too little speech.
    """
    if isinstance(files, (str, os.PathLike)):
        paths: Sequence[Union[str, Path]] = _native.audio_files(os.fspath(files))
    else:
        paths = [os.fspath(path) for path in files]
    if not paths:
        raise ValueError("no audio files found")
    named = (("rank", rank), ("iterations", iterations), ("seed", seed))
    rank, iterations, seed = (whole(name, value, 0, 2**64 - 1) for name, value in named)
    for name, number in (("alpha", alpha), ("window", window)):
        check_number(name, number)
    if rate is None:
        rate = min(_native.sample_rates(paths))
    return _native.train(paths, check_rate(rate), rank, alpha, iterations, window, seed, check_threads(threads), progress)


def evaluate(
    denoiser: Union[None, Denoiser, Callable[[Array, int], ArrayLike]],
    *,
    clean: Union[str, "os.PathLike[str]"],
    noisy: Union[None, str, "os.PathLike[str]"] = None,
    enhanced: Union[None, str, "os.PathLike[str]"] = None,
    high_pass: float = 0.0,
    save: Union[None, str, "os.PathLike[str]"] = None,
    threads: Optional[int] = None,
    progress: Optional[Progress] = None,
) -> Mapping[str, Any]:
    """Scores a denoiser on folders of mono recordings, as ``denoise eval`` does.

    :param denoiser: a :class:`Denoiser` (without its ``mix``, ``channels`` and ``no_dither``), any function of
        samples ``(n,)`` in ``float32`` and sample rate, or ``None`` for recordings enhanced elsewhere. The function returns
        samples ``(n,)``, floats at full scale 1 or ``int16``.
    :param clean: the folder of clean recordings.
    :param noisy: the folder of noisy recordings, paired by name.
    :param enhanced: the folder of recordings enhanced by another program.
    :param high_pass: high-pass frequency before scoring, 0 to 20000 Hz.
    :param save: a folder for the denoised recordings.
    :returns: ``files`` with their scores before (``input``) and after (``output``), ``failures``, and a ``summary``
        with means and standard errors: of all files, then by condition.
    :raises FileNotFoundError: if a folder is missing.
    """
    check_number("high_pass", high_pass)
    if not 0 <= high_pass <= 20000:
        raise ValueError(f"high_pass is {high_pass}; expected 0 to 20000")
    if noisy is None and enhanced is None:
        raise ValueError("nothing to score: set noisy or enhanced")
    function: Any = None
    if isinstance(denoiser, Denoiser):
        function = denoiser._native
    elif denoiser is not None:
        given = denoiser

        def function(x: Array, rate: int) -> Array:
            result = np.asarray(given(x[0], rate))
            if result.ndim != 1:
                raise ValueError(f"samples of shape {result.shape}: expected (n,)")
            # Floats of every width are scored, integers as everywhere in this package.
            if result.dtype.kind != "f":
                check_dtype(result.dtype)
            return as_floats(result)

    def path(folder: Union[None, str, "os.PathLike[str]"]) -> Optional[str]:
        return None if folder is None else os.fspath(folder)

    record: Mapping[str, Any] = json.loads(
        _native.evaluate(
            os.fspath(clean), path(noisy), path(enhanced), function, high_pass, path(save), check_threads(threads), progress
        )
    )
    return record
