"""Real-time denoising."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

import numpy as np

from . import _native
from ._arrays import as_floats, check_dtype, check_number, expected_rows, for_native, to_json

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._arrays import Array


class VoiceEvent(NamedTuple):
    """Start or end of speech."""

    speaking: bool
    """Whether speech starts; otherwise it has ended."""
    sample: int
    """Position in the output, samples per channel since the start or the last reset. An end is late by the hang-over."""


class Live:
    """Causal low-latency denoiser for real-time audio; made by :meth:`Denoiser.live`.

    The output is :attr:`latency` samples late and does not depend on the size of the blocks. The first 64 ms are assumed
    to be noise.
    """

    def __init__(self, native: _native.Live, channels: int) -> None:
        self._native = native
        self._channels = channels

    def process(self, block: ArrayLike) -> Array:
        """Denoises a block, ``(channels, n)``, or ``(n,)`` for one channel, and returns one like it.

        Samples are ``float32``, ``float64`` or ``int16``; integers are rounded to the nearest, without dither. Those that are
        not finite count as 0.
        """
        samples = np.asarray(block)
        check_dtype(samples.dtype)
        rows = samples[np.newaxis] if samples.ndim == 1 else samples
        if rows.ndim != 2 or len(rows) != self._channels:
            raise ValueError(f"a block of shape {samples.shape}: {expected_rows(rows, self._channels)}")
        if samples.dtype == np.int16:
            done: Array = self._native.process_int16(for_native(rows.T, np.int16))
        else:
            done = self._native.process(as_floats(rows.T))
        return np.ascontiguousarray(done.T, samples.dtype).reshape(samples.shape)

    def set(self, **controls: Any) -> None:
        """Sets controls, with smooth transitions; values out of range are clamped.

        ``gain_exponent`` (0 to 2, initially 1) is the exponent applied to the gain, ``floor_db`` (-100 to 0) the minimum
        gain, ``mix`` (0 to 1) the fraction of denoised signal in the output; ``bypass`` returns the delayed input.
        ``voice_threshold`` (0 to 1, initially 0.5) is the probability from which on there is speech,
        ``voice_hang_over_seconds`` (0 to 10, initially 0.3) how long it is lower before speech has ended; the sound does not
        depend on them.

        :raises ValueError: if a control is unknown, or not a finite number.
        """
        self._native.set_controls(to_json(controls))

    @property
    def controls(self) -> Mapping[str, Any]:
        """The controls."""
        controls: Mapping[str, Any] = json.loads(self._native.controls())
        return controls

    @property
    def meters(self) -> Mapping[str, float]:
        """Levels smoothed over 0.1 s, ``noise_dbfs``, ``speech_dbfs``, and ``gain_db``, output relative to input; and the
        ``speech_probability`` (0 to 1) of the last frame."""
        return dict(zip(("noise_dbfs", "speech_dbfs", "gain_db", "speech_probability"), self._native.meters()))

    @property
    def speaking(self) -> bool:
        """Whether there is speech: its probability has reached the threshold within the hang-over."""
        return self._native.speaking()

    def events(self) -> list[VoiceEvent]:
        """Starts and ends of speech since the last call, in their order; of more than 4096, the last."""
        return [VoiceEvent(*event) for event in self._native.take_events()]

    def learn_noise(self, seconds: float) -> None:
        """Estimates the noise from the next ``seconds`` of input, which must hold no speech.

        Infinity continues indefinitely, and 0 ends it. The denoised signal is attenuated to the minimum gain meanwhile.

        :raises ValueError: if ``seconds`` is negative or NaN.
        """
        check_number("seconds", seconds)
        if not seconds >= 0:
            raise ValueError(f"seconds is {seconds}; expected 0 or more")
        self._native.learn_noise(seconds)

    def reset(self) -> None:
        """Clears all state but the controls."""
        self._native.reset()

    @property
    def latency(self) -> int:
        """Delay in samples."""
        return self._native.latency()
