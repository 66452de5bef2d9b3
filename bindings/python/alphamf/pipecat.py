"""Noise reduction for Pipecat: an audio filter for transports. Needs ``pip install 'alphamf[pipecat]'``.

    from alphamf.pipecat import NoiseFilter
    from pipecat.transports.base_transport import TransportParams

    params = TransportParams(audio_in_enabled=True, audio_in_filter=NoiseFilter())
"""

from __future__ import annotations

import asyncio
from typing import Optional

from . import _native
from ._calls import LiveOptions, as_bytes, as_rows, worker_threads
from ._denoiser import Denoiser
from ._live import Live

try:
    from pipecat.audio.filters.base_audio_filter import BaseAudioFilter
    from pipecat.frames.frames import FilterControlFrame, FilterEnableFrame, FilterUpdateSettingsFrame
except ImportError as error:
    raise ImportError("alphamf.pipecat needs pipecat-ai: pip install 'alphamf[pipecat]'") from error

__all__ = ["NoiseFilter"]


class NoiseFilter(BaseAudioFilter):  # type: ignore[misc]
    """Removes noise from the speech of a transport.

    The output is as long as the input, ``latency`` milliseconds late. It takes audio of any length at 8 to 192 kHz. It
    computes on worker threads without the interpreter lock, so the event loop is not blocked, and many filters use all cores.
    One filter serves one transport.

    A ``FilterEnableFrame`` switches it off or on without a click; the latency stays. A ``FilterUpdateSettingsFrame`` sets
    ``gain_exponent``, ``floor_db`` or ``mix``; values out of range are clamped.

    :param denoiser: dictionary, network, and the defaults of ``floor_db`` and ``mix``; one for the whole process by default.
    :param latency: in milliseconds, 4 to 64.
    :param channels: number of channels, interleaved.
    :param gain_exponent: exponent applied to the gain, 0 to 2.
    :param floor_db: minimum gain, -100 to 0 dB.
    :param mix: fraction of denoised signal in the output, 0 to 1.
    """

    def __init__(
        self,
        denoiser: Optional[Denoiser] = None,
        *,
        latency: float = _native.DEFAULT_LATENCY_MS,
        channels: int = 1,
        gain_exponent: float = 1.0,
        floor_db: Optional[float] = None,
        mix: Optional[float] = None,
    ) -> None:
        self._options = LiveOptions(denoiser, latency, gain_exponent=gain_exponent, floor_db=floor_db, mix=mix)
        self._channels = channels
        self._enabled = True
        self._live: Optional[Live] = None
        self._turn: Optional[asyncio.Lock] = None

    async def start(self, sample_rate: int) -> None:
        """Prepares the filter for a sample rate in Hz.

        :raises ValueError: if the rate or a parameter of the filter is out of range.
        """
        loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        arguments = (sample_rate, self._channels, not self._enabled)
        self._live = await loop.run_in_executor(worker_threads(), self._options.open, *arguments)

    async def stop(self) -> None:
        """Frees the state of the filter."""
        self._live = None

    async def process_frame(self, frame: FilterControlFrame) -> None:
        """Switches the filter off or on, or sets its controls.

        :raises ValueError: if a setting is not a control, or its value not a finite number.
        """
        if isinstance(frame, FilterEnableFrame):
            self._enabled = bool(frame.enable)
            if self._live is not None:
                self._live.set(bypass=not self._enabled)
        elif isinstance(frame, FilterUpdateSettingsFrame):
            self._options.update(frame.settings, self._live)

    async def filter(self, audio: bytes) -> bytes:
        """Denoises 16-bit samples; before :meth:`start` and after :meth:`stop` they pass unchanged.

        Calls that overlap are processed in their order; one that is cancelled at work ends with its audio.

        :raises ValueError: if the audio ends in the middle of a sample.
        """
        if self._live is None or self._turn is None or not audio:
            return audio
        live, rows = self._live, as_rows(audio, self._channels)
        async with self._turn:
            job = asyncio.get_running_loop().run_in_executor(worker_threads(), live.process, rows)
            try:
                return as_bytes(await asyncio.shield(job))
            except asyncio.CancelledError:
                # The next call must not overtake it on another thread.
                await asyncio.wait({job})
                raise
