"""Denoising in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Optional, Sequence

import numpy as np

from . import _native
from ._arrays import as_floats, check_dtype, expected_rows
from ._results import Deviation, Levels, SpeechTrack, read_stats, take_gain_std, take_levels, take_speech_track

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._arrays import Array, Progress


class Stream:
    """Denoises a recording in chunks; made by :meth:`Denoiser.stream`.

    Output lags the input by at most :attr:`latency` samples. The result does not depend on the division into chunks. One
    thread at a time can use a stream; others wait.
    """

    def __init__(self, session: _native.Session, channels: int, dtype: np.dtype[Any], separate: bool) -> None:
        self._session = session
        self._channels = channels
        self._dtype = dtype
        self._separate = separate
        # Whether chunks have shape (n,).
        self._flat = channels == 1
        #: Residual of the samples that :meth:`push` or :meth:`finish` returned last, ``(channels, n)``; ``None`` unless
        #: requested.
        self.residual: Optional[Array] = None

    def push(self, chunk: ArrayLike, progress: Optional[Progress] = None) -> Array:
        """Takes the next samples and returns those completed.

        Both have shape ``(channels, n)``, or both ``(n,)`` for a single channel.

        :param progress: receives the completed seconds of the recording. An exception that it raises, or Ctrl-C, ends the
            stream: samples are lost, and later calls of :meth:`push` and :meth:`finish` raise ``ValueError``.
        :raises ValueError: for another number of channels than the stream's, and after the end of the stream.
        """
        samples = np.asarray(chunk)
        if check_dtype(samples.dtype) != self._dtype:
            hint = f'; make the stream with dtype="{samples.dtype}"'
            raise TypeError(f"a chunk of {samples.dtype}: expected the stream's {self._dtype}{hint}")
        flat = samples.ndim == 1
        rows = samples[np.newaxis] if flat else samples
        if rows.ndim != 2 or len(rows) != self._channels:
            raise ValueError(f"a chunk of shape {samples.shape}: {expected_rows(rows, self._channels)}")
        self._flat = flat
        return self._give(self._session.push(as_floats(rows), progress))

    def finish(self, progress: Optional[Progress] = None) -> Array:
        """Ends the recording and returns the remaining samples, of the shape of the last chunk.

        Without a chunk, it is ``(channels, 0)``, or ``(0,)`` for a single channel.

        :param progress: as of :meth:`push`.
        """
        return self._give(self._session.finish(progress))

    def denoise(self, chunks: Iterable[ArrayLike]) -> Iterator[Array]:
        """Denoises all chunks of a recording: yields the samples completed after each, and finally the rest."""
        for chunk in chunks:
            yield self.push(chunk)
        yield self.finish()

    @property
    def latency(self) -> int:
        """Maximum number of samples per channel held back after a :meth:`push`."""
        return self._session.latency()

    @property
    def stats(self) -> Mapping[str, Any]:
        """Statistics so far."""
        return read_stats(self._session, self._dtype)

    def take_gain_std(self) -> Deviation:
        """Uncertainty of the gain, of the frames completed since the last call; needs ``gain_std=True``."""
        return take_gain_std(self._session, self._separate)

    def take_levels(self) -> Levels:
        """Speech levels, of the slots completed since the last call; needs ``levels=True``."""
        return take_levels(self._session, self._separate)

    def take_speech_track(self) -> SpeechTrack:
        """Where speech is, of the slots completed and the sections ended since the last call; needs ``speech_track=True``."""
        return take_speech_track(self._session, self._separate)

    def _give(self, blocks: Sequence[Array]) -> Array:
        speech, *removed = (block.astype(self._dtype, copy=False) for block in blocks)
        self.residual = removed[0] if removed else None
        return speech[0] if self._flat else speech
