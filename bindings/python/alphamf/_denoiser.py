"""Denoising of whole recordings."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Mapping, Optional, Tuple, Union

import numpy as np

from . import _native
from ._arrays import (
    Model,
    Progress,
    as_channels,
    as_floats,
    check_count,
    check_dtype,
    check_number,
    check_rate,
    check_threads,
    file_bytes,
    is_number,
    to_json,
)
from ._live import Live
from ._results import Denoised, NoiseProfile, read_stats, take_gain_std, take_levels, take_speech_track
from ._stream import Stream

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._arrays import Array


class Denoiser:
    """Removes noise from recordings; it can be pickled, and used from several threads at once.

    Options that are ``None`` keep their default.

    :param model: Use the dictionary of a file of :func:`train` or ``denoise train``: its path, or its bytes.
    :param quality: Choose between quality and speed. Default: normal. fast takes about a third of the time at sample
        rates up to 16 kHz, two thirds at higher rates: a smaller speech-presence network, fewer sweeps of expectation
        maximisation, no Gibbs sweeps. The seed then affects the dither alone. One of normal, fast.
    :param purpose: Set the use of the output. Default: listening. transcription sets ``mix`` to 0.8, unless that is
        given. Except in live denoising and with ``channels`` array, it leaves speech with little noise unchanged.
        Recognisers then make fewer errors than on the input up to 10 dB of SNR, and as many above 20 dB. One of
        listening, transcription.
    :param strength: Set the noise reduction. Default: normal. gentle removes 12 dB at most, normal 45 dB, strong 70 dB.
        With ``no_neural``, normal removes about 26 dB, more where noise is louder than speech and less where it is
        barely audible. Excludes ``floor_db``. One of gentle, normal, strong.
    :param floor_db: Set the minimum gain of any frequency, in dB. Range: -100 to 0. Default: that of ``strength``,
        which it replaces.
    :param mix: Set the fraction of denoised signal in the output. Range: 0 to 1. Default: 1. The rest is the input; 0
        returns the input, exactly up to 24 bits.
    :param dereverb: Reduce late reverberation, 0 (off) to 1 (full). Range: 0 to 1. Default: 0. Start with 0.5.
    :param declip: Restore clipped samples; the output is 6 dB softer. Peaks that were cut off are estimated from the
        samples around them, up to twice as high. The lower level leaves room for them.
    :param channels: Couple or separate channels, or join microphones. Default: auto. auto applies one gain to all
        channels, and denoises each channel alone from where they hold different sounds, as with a microphone for each
        speaker; shared applies one gain throughout, which keeps the stereo image; separate denoises each channel alone
        throughout; array treats the 2 to 16 channels as microphones in one scene: it also uses the direction of sounds,
        and returns the voice in each channel. One of auto, shared, separate, array.
    :param seed: Seed the random numbers. Range: 0 to 18446744073709551615. Default: 0. The same seed gives the same
        output, on any number of threads. It drives sampling and dither; with ``quality`` fast, dither alone.
    :param no_dither: Round to integers without dither. Pauses may then become digital silence and faint noise may be
        gated. Floating-point output has no dither.
    :param no_neural: Disable the speech-presence network. The gain is then the posterior-mean Wiener gain alone, with
        slowly varying noise.
    :param method: Run a published method with its own settings. published is Simsekli et al. (2016), section 4.2: 2500
        Gibbs sweeps, slow. It departs from the paper: factors start at the level of the recording, a minibatch is a
        tenth of the bins across frames, each frame has an L-BFGS memory of its own, the drift of a step is limited, the
        gain is averaged over the impulse variables, and priors and step size were chosen here. It expects a dictionary
        trained with alpha 1.2. Of the options of the denoiser it takes only ``model``, ``noise_from``, ``seed``,
        ``threads``, ``mix``, ``channels`` and ``no_dither``. One of published.
    :param alpha_speech: Set the characteristic exponent of speech. Range: 0.2 to 2. Default: that of the dictionary,
        whose spectra were trained with it.
    :param alpha_noise: Set the characteristic exponent of noise. Range: 0.2 to 2. Default: 1.9.
    :param noise_rank: Model noise with N fixed spectra. Range: 1 to 64. Default: one drifting spectrum, which it
        replaces. Disables the speech-presence network.
    :param sampler: Choose the sampler of activations and noise spectra. Default: hamcmc. Needs Gibbs sweeps. One of
        sgld, psgld, sgrld, hamcmc, sghmc, sgnht, sgrhmc, hmc, mh-bfgs, hmc-bfgs, qnhmc, nuts, nmc.
    :param iterations: Set the number of Gibbs sweeps. Range: 0 to 1000000. Default: 8; with ``quality`` fast, 0.
        Without sweeps nothing is sampled.
    :param burn_in: Discard the first N Gibbs sweeps. Range: 0 to one less than ``iterations``. Default: 2; with
        ``iterations``, half of them. Needs Gibbs sweeps.
    :param em_iterations: Set the number of expectation-maximisation sweeps. Range: 0 to 10000. Default: 8 (fast: 2);
        without the speech-presence network 18 (fast: 12). Above 16 kHz at least 12. They precede the Gibbs sweeps;
        without those, 1 is the least.
    :param step_size: Set the step size of the sampler. Range: above 0 to 1000000. Default: the sampler's own. The
        sampler nmc has none. Needs Gibbs sweeps.
    :param minibatch: Set the fraction of bins in each gradient. Range: above 0 to 1. Default: 1. Samplers that accept
        or reject take 1 alone: hmc, mh-bfgs, hmc-bfgs, qnhmc, nuts, nmc. Needs Gibbs sweeps.
    :param positivity: Choose how the sampler keeps factors positive. Default: log. log samples their logarithms;
        mirrored reflects draws at zero, as in the paper. The sampler nmc takes log alone. Needs Gibbs sweeps. One of
        log, mirrored.
    :param impulses: Choose how impulse variables are treated. Default: integrated. integrated averages over them
        exactly; sampled draws them by Metropolis steps, as in the paper. Needs Gibbs sweeps. One of integrated,
        sampled.
    :param threads: Set the number of worker threads. Default: all cores. The result does not depend on it.
    :raises FileNotFoundError: if the file of ``model`` is missing.
    :raises ValueError: if an option is out of range or has no effect, or the dictionary is invalid.
    """

    def __init__(
        self,
        *,
        model: Optional[Model] = None,
        quality: Optional[str] = None,
        purpose: Optional[str] = None,
        strength: Optional[str] = None,
        floor_db: Optional[float] = None,
        mix: Optional[float] = None,
        dereverb: Optional[float] = None,
        declip: bool = False,
        channels: Optional[str] = None,
        seed: Optional[int] = None,
        no_dither: bool = False,
        no_neural: bool = False,
        method: Optional[str] = None,
        alpha_speech: Optional[float] = None,
        alpha_noise: Optional[float] = None,
        noise_rank: Optional[int] = None,
        sampler: Optional[str] = None,
        iterations: Optional[int] = None,
        burn_in: Optional[int] = None,
        em_iterations: Optional[int] = None,
        step_size: Optional[float] = None,
        minibatch: Optional[float] = None,
        positivity: Optional[str] = None,
        impulses: Optional[str] = None,
        threads: Optional[int] = None,
    ) -> None:
        everything = locals().copy()
        given = {name: value for name, value in everything.items() if name != "self" and value is not None}
        # Read here, so that copies in other processes and on other machines have the same bytes.
        if "model" in given:
            given["model"] = file_bytes(given["model"])
        self._given = given
        options = dict(given)
        model_bytes = options.pop("model", None)
        threads = check_threads(options.pop("threads", None))
        self._native = _native.Denoiser(to_json(options), model_bytes, threads)
        self._separate = channels == "separate"

    def __repr__(self) -> str:
        given = (f"{name}={'...' if isinstance(value, bytes) else repr(value)}" for name, value in self._given.items())
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings, as reported by ``denoise --stats``."""
        settings: Mapping[str, Any] = json.loads(self._native.settings())
        return settings

    @property
    def dictionary(self) -> bytes:
        """Bytes of the dictionary file."""
        return self._native.dictionary()

    def denoise(
        self,
        x: ArrayLike,
        sample_rate: int,
        *,
        noise_from: Union[None, NoiseProfile, Tuple[float, Optional[float]]] = None,
        residual: bool = False,
        gain_std: bool = False,
        levels: bool = False,
        speech_track: bool = False,
        progress: Optional[Progress] = None,
    ) -> Denoised:
        """Denoises a recording.

        :param x: samples, ``(n,)`` or ``(channels, n)``.
        :param sample_rate: in Hz, 8000 to 192000.
        :param noise_from: section without speech, as start and end in seconds (``None``: end of the recording), or a
            noise profile.
        :param residual: return the residual, too.
        :param gain_std: return the uncertainty of the gain, too; without Gibbs sweeps, as by ``quality`` fast, it has no
            frames.
        :param levels: return the speech level by band, with intervals, too.
        :param speech_track: return where speech is, too.
        :param progress: receives the completed fraction, 0 to 1; an exception cancels the work.
        :raises TypeError: for samples of other types than ``float32``, ``float64`` and ``int16``.
        :raises ValueError: for other shapes, samples that are not finite, and unsupported sample rates or numbers of
            channels.
        """
        recording = np.asarray(x)
        samples = as_floats(as_channels(recording))
        dtype = recording.dtype
        session = self._session(sample_rate, len(samples), dtype, residual, gain_std, levels, speech_track)
        noise = self._noise(noise_from, samples, sample_rate)
        if noise is not None:
            session.set_noise_profile(noise._learned())
        fraction = None
        if progress is not None:
            seconds = samples.shape[1] / sample_rate
            fraction = lambda done: progress(done / seconds if done < seconds else 1.0)  # noqa: E731
        parts = [session.push(samples, fraction), session.finish(fraction)]
        speech, *removed = (
            np.concatenate(blocks, axis=1).astype(dtype, copy=False).reshape(recording.shape) for blocks in zip(*parts)
        )
        return Denoised(
            speech=speech,
            residual=removed[0] if residual else None,
            stats=read_stats(session, dtype),
            gain_std=take_gain_std(session, self._separate) if gain_std else None,
            levels=take_levels(session, self._separate) if levels else None,
            speech_track=take_speech_track(session, self._separate) if speech_track else None,
            noise=noise,
        )

    def stream(
        self,
        sample_rate: int,
        channels: int = 1,
        *,
        dtype: Any = np.float32,
        noise_from: Optional[NoiseProfile] = None,
        residual: bool = False,
        gain_std: bool = False,
        levels: bool = False,
        speech_track: bool = False,
    ) -> Stream:
        """Starts a recording of any length in chunks of ``dtype``; memory does not grow with it.

        The parameters are those of :meth:`denoise`, but ``noise_from`` is always a noise profile. Results are read from the
        stream: the residual from :attr:`Stream.residual`, the uncertainty of the gain by :meth:`Stream.take_gain_std`, the
        levels by :meth:`Stream.take_levels`, where speech is by :meth:`Stream.take_speech_track`.
        """
        if not (noise_from is None or isinstance(noise_from, NoiseProfile)):
            raise TypeError(f"noise_from is {noise_from!r}; expected a NoiseProfile: make one by Denoiser.noise_profile")
        dtype, channels = check_dtype(np.dtype(dtype)), check_count(channels)
        session = self._session(sample_rate, channels, dtype, residual, gain_std, levels, speech_track)
        if noise_from is not None:
            session.set_noise_profile(noise_from._learned())
        return Stream(session, channels, dtype, self._separate)

    def live(
        self,
        sample_rate: int,
        channels: int = 1,
        *,
        latency: float = _native.DEFAULT_LATENCY_MS,
        gain_exponent: Optional[float] = None,
        floor_db: Optional[float] = None,
        mix: Optional[float] = None,
        bypass: bool = False,
        voice_threshold: Optional[float] = None,
        voice_hang_over_seconds: Optional[float] = None,
    ) -> Live:
        """Creates a real-time denoiser with a delay of ``latency`` milliseconds, 4 to 64.

        It uses the dictionary and the network of this denoiser, and its ``strength``, ``floor_db``, ``purpose`` and ``mix``
        by default. The controls are those of :meth:`Live.set`.
        """
        controls = {
            "gain_exponent": gain_exponent,
            "floor_db": floor_db,
            "mix": mix,
            "bypass": bypass,
            "voice_threshold": voice_threshold,
            "voice_hang_over_seconds": voice_hang_over_seconds,
        }
        given = {name: value for name, value in controls.items() if value is not None}
        check_number("latency", latency)
        channels = check_count(channels)
        return Live(self._native.live(check_rate(sample_rate), channels, latency, to_json(given)), channels)

    def noise_profile(self, x: ArrayLike, sample_rate: int) -> NoiseProfile:
        """Learns the noise from samples without speech, ``(n,)`` or ``(channels, n)``."""
        samples = as_floats(as_channels(np.asarray(x)))
        return NoiseProfile(self._native.noise_profile(samples, check_rate(sample_rate)))

    def _session(
        self,
        sample_rate: int,
        channels: int,
        dtype: np.dtype[Any],
        residual: bool,
        gain_std: bool,
        levels: bool,
        speech_track: bool,
    ) -> _native.Session:
        is_integer = dtype == np.int16
        return self._native.session(check_rate(sample_rate), channels, is_integer, residual, gain_std, levels, speech_track)

    def _noise(self, noise: Any, samples: Array, sample_rate: int) -> Optional[NoiseProfile]:
        if noise is None or isinstance(noise, NoiseProfile):
            return noise
        start, end = _section(noise)
        length = samples.shape[1]
        seconds = length / sample_rate
        bounds = (start, seconds if end is None else end)
        first, last = (math.floor(bound * sample_rate + 0.5) if math.isfinite(bound) else -1 for bound in bounds)
        if not 0 <= first < last <= length:
            raise ValueError(f"noise_from is {start}..{end} s; expected a section of the recording's {seconds:.2f} s")
        return NoiseProfile(self._native.noise_profile(samples[:, first:last], sample_rate))


def _section(noise: Any) -> Tuple[Any, Any]:
    """Start and end of a section."""
    try:
        start, end = noise
    except (TypeError, ValueError):
        start = end = None
    if not is_number(start) or not (end is None or is_number(end)):
        raise TypeError(f"noise_from is {noise!r}; expected start and end in seconds, or a NoiseProfile")
    return start, end


def denoise(
    x: ArrayLike,
    sample_rate: int,
    *,
    noise_from: Union[None, NoiseProfile, Tuple[float, Optional[float]]] = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Array:
    """Denoises a recording and returns the speech, with the shape and type of ``x``.

    ``options`` are those of :class:`Denoiser`; the other parameters are as in :meth:`Denoiser.denoise`, which can return more
    than the speech.
    """
    return Denoiser(**options).denoise(x, sample_rate, noise_from=noise_from, progress=progress).speech
