"""Noise reduction for LiveKit: a frame processor for audio streams. Needs ``pip install 'alphamf[livekit]'``.

    from alphamf.livekit import NoiseFilter
    from livekit import rtc

    stream = rtc.AudioStream(track, noise_cancellation=NoiseFilter())

In LiveKit Agents, pass it as ``room_io.AudioInputOptions(noise_cancellation=NoiseFilter())``.
"""

from __future__ import annotations

from typing import Optional, Tuple

import numpy as np

from . import _native
from ._calls import LiveOptions, as_bytes, as_rows
from ._denoiser import Denoiser

try:
    from livekit.rtc import AudioFrame, FrameProcessor
except ImportError as error:
    raise ImportError("alphamf.livekit needs livekit 1.0.23 or later: pip install 'alphamf[livekit]'") from error

__all__ = ["NoiseFilter"]


class NoiseFilter(FrameProcessor[AudioFrame]):  # type: ignore[misc]
    """Removes noise from the speech of an audio stream.

    Every frame yields a frame of the same length, whose samples are ``latency`` milliseconds late. It takes frames of any
    length and number of channels at 8 to 192 kHz, and restarts when rate or channels change, or when the stream changes
    to another room or participant. It computes without the interpreter lock: other threads go on. One filter serves one
    stream at a time.

    While :attr:`enabled` is off, LiveKit passes frames by the filter, without the latency.

    :param denoiser: dictionary, network, and the defaults of ``floor_db`` and ``mix``; one for the whole process by default.
    :param latency: in milliseconds, 4 to 64.
    :param sample_rate: expected rate, in Hz, for which state is prepared at once; any other costs its first frame some time.
    :param channels: expected number of channels, for which state is prepared at once as well.
    :param gain_exponent: exponent applied to the gain, 0 to 2.
    :param floor_db: minimum gain, -100 to 0 dB.
    :param mix: fraction of denoised signal in the output, 0 to 1.
    :raises ValueError: if a parameter is out of range.
    """

    def __init__(
        self,
        denoiser: Optional[Denoiser] = None,
        *,
        latency: float = _native.DEFAULT_LATENCY_MS,
        sample_rate: int = 48000,
        channels: int = 1,
        gain_exponent: float = 1.0,
        floor_db: Optional[float] = None,
        mix: Optional[float] = None,
    ) -> None:
        self._options = LiveOptions(denoiser, latency, gain_exponent=gain_exponent, floor_db=floor_db, mix=mix)
        self._enabled = True
        self._source: Optional[Tuple[str, str]] = None
        self._open(sample_rate, channels)

    def _open(self, sample_rate: int, channels: int) -> None:
        self._live = self._options.open(sample_rate, channels)
        self._format = (sample_rate, channels)

    @property
    def enabled(self) -> bool:
        """Whether LiveKit passes frames through the filter."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value and not self._enabled:
            # Samples from before the pause are no longer due, nor are windows that hold some; estimates stay.
            rate, channels = self._format
            self._live.process(np.zeros((channels, rate // 10), np.int16))
        self._enabled = value

    def set(self, **controls: float) -> None:
        """Sets ``gain_exponent``, ``floor_db`` or ``mix``, with smooth transitions; values out of range are clamped."""
        self._options.update(controls, self._live)

    def _on_stream_info_updated(self, *, room_name: str, participant_identity: str, publication_sid: str) -> None:
        # A publication gets another number when it reconnects: the microphone is the same.
        source = (room_name, participant_identity)
        if self._source not in (None, source):
            self._live.reset()
        self._source = source

    def _process(self, frame: AudioFrame) -> AudioFrame:
        rate, channels, length = frame.sample_rate, frame.num_channels, frame.samples_per_channel
        if (rate, channels) != self._format:
            self._open(rate, channels)
        done = self._live.process(as_rows(frame.data, channels, length * channels))
        denoised = AudioFrame(as_bytes(done), rate, channels, length)
        denoised.userdata.update(frame.userdata)
        return denoised

    def _close(self) -> None:
        self._live.reset()
        self._source = None
