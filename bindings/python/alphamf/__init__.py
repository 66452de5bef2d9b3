"""A Bayesian speech denoiser: noisy recordings in, voices out.

    import alphamf
    voice = alphamf.denoise(samples, sample_rate)

Samples are numpy arrays of shape ``(n,)`` or ``(channels, n)``, ``float32``, ``float64`` or ``int16``; full scale is 1
for floats, 32768 for integers. A :class:`Denoiser` keeps what is set up and tells more; a :class:`Stream` takes a
recording chunk by chunk. :mod:`alphamf.samplers` draws from any posterior.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _native, samplers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[Any]

__all__ = [
    "Denoised",
    "Denoiser",
    "Deviation",
    "Levels",
    "Live",
    "NoiseProfile",
    "Stream",
    "denoise",
    "estoi",
    "evaluate",
    "samplers",
    "sdr",
    "segmental_snr",
    "si_sdr",
    "snr",
    "stoi",
    "train",
]
__version__ = _native.VERSION

#: A file, by its path or as its bytes.
Model = Union[str, "os.PathLike[str]", bytes]
#: Is called with the share of the work that is done, 0 to 1; what it raises ends the work.
Progress = Callable[[float], object]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int16))


@dataclass(frozen=True)
class Deviation:
    """How sure the denoiser is of its gain: the standard deviation over the posterior draws, 0 to 0.5.

    ``values`` has shape ``(bins, frames)`` or, where channels are denoised one by one, ``(channels, bins, frames)``;
    there are no frames where nothing is drawn (``quality="fast"``). Bins are ``bin_hertz`` apart from 0 Hz on.
    Frames are ``frame_seconds`` apart; the first ends that long after the beginning of the recording.
    """

    values: Array
    bin_hertz: float
    frame_seconds: float


@dataclass(frozen=True)
class Levels:
    """The level of the voice in third octaves and slots of time, with intervals that hold the true one in about nine of
    ten cases.

    ``values`` has shape ``(3, bands, slots)`` or, where channels are denoised one by one, ``(channels, 3, bands,
    slots)``: the level, and the lower and upper end of its interval, in dBFS; not a number in silence. Bands lie between
    ``edges_hertz``; slot 0 begins ``first_slot`` times ``slot_seconds`` after the beginning of the recording.
    """

    values: Array
    edges_hertz: Array
    slot_seconds: float
    first_slot: int


@dataclass(frozen=True)
class Denoised:
    """A denoised recording.

    ``voice`` and ``residual`` (the recording minus the voice; ``None`` if it was not asked for) have the shape and type
    of the recording. ``stats`` holds what ``denoise --stats`` tells of a file's samples. ``deviation``, ``levels`` and
    ``noise`` (the profile that the noise was started from) are ``None`` if they were not asked for.
    """

    voice: Array
    residual: Optional[Array]
    stats: Mapping[str, Any]
    deviation: Optional[Deviation]
    levels: Optional[Levels]
    noise: Optional[NoiseProfile]


class NoiseProfile:
    """The mean power spectrum of a stretch that holds noise alone; made by :meth:`Denoiser.noise_profile`.

    ``power`` has shape ``(channels, bins)``: ``|X|^2`` of windows of 64 ms, or as long as those of the dictionary;
    ``frequencies`` are those of the bins, in Hz.
    """

    def __init__(self, native: _native.NoiseProfile) -> None:
        self._native = native
        spectra = native.spectra()
        if spectra is None:
            raise ValueError("the stretch that should hold the noise is shorter than a window")
        self.power, bin_hertz = spectra
        self.frequencies = bin_hertz * np.arange(self.power.shape[1])


class Denoiser:
    """Denoises recordings. It can be pickled, and used from several threads at once.

    Options have the names and defaults of the program (``denoise --help``); ``None`` keeps the default. Their description
    is that of ``src/options.rs``: a test compares.

    :param model: a dictionary made by :func:`train` or ``denoise train``: its path, or its bytes.
    :param quality: Choose between quality and speed. Default: normal. fast takes about half the time: fewer sweeps of
        expectation maximisation, no Gibbs sweeps. The seed then affects the dither alone. One of normal, fast.
    :param strength: Set the noise reduction. Default: normal. gentle removes 12 dB at most, normal 45 dB, strong 70 dB.
        With ``no_neural``, normal removes about 26 dB, more where noise is louder than speech and less where it is
        barely audible. Excludes ``floor_db``. One of gentle, normal, strong.
    :param floor_db: Set the minimum gain of any frequency, in dB. Range: -100 to 0. Default: that of ``strength``,
        which it replaces.
    :param mix: Set the fraction of denoised signal in the output. Range: 0 to 1. Default: 1. The rest is the input; 0
        returns the input.
    :param dereverb: Reduce late reverberation, 0 (off) to 1 (full). Range: 0 to 1. Default: 0. Start with 0.5.
    :param channels: Couple or separate channels. Default: shared. shared applies one gain to all channels and keeps the
        stereo image; separate denoises each channel alone. One of shared, separate.
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
        trained with alpha 1.2. Excludes all options but ``seed``, ``mix``, ``channels`` and ``no_dither``. One of
        published.
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
    :param em_iterations: Set the number of expectation-maximisation sweeps. Range: 0 to 10000. Default: 18; with
        ``quality`` fast, 12. They precede the Gibbs sweeps; without those, 1 is the least.
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
    :param threads: worker threads; all cores if not given. The result is the same for any number.
    :raises ValueError: if an option is out of its range or has no effect, or a file is of no use.
    """

    def __init__(
        self,
        *,
        model: Optional[Model] = None,
        quality: Optional[str] = None,
        strength: Optional[str] = None,
        floor_db: Optional[float] = None,
        mix: Optional[float] = None,
        dereverb: Optional[float] = None,
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
        # Read once, here: a copy in another process, or on another machine, has the same.
        if "model" in given:
            given["model"] = _bytes(given["model"])
        self._given = given
        options = dict(given)
        model_bytes = options.pop("model", None)
        _threads(options.pop("threads", None))
        self._native = _native.Denoiser(_json(options), model_bytes, threads)
        self._separate = channels == "separate"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _denoiser, (self._given,)

    def __repr__(self) -> str:
        given = (f"{name}={'...' if isinstance(value, bytes) else repr(value)}" for name, value in self._given.items())
        return f"Denoiser({', '.join(given)})"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings in use, as ``denoise --stats`` tells them."""
        settings: Mapping[str, Any] = json.loads(self._native.settings())
        return settings

    @property
    def dictionary(self) -> bytes:
        """The dictionary in use, as the bytes of its file."""
        return self._native.dictionary()

    def denoise(
        self,
        x: ArrayLike,
        sample_rate: int,
        *,
        noise_from: Union[None, NoiseProfile, Tuple[float, Optional[float]]] = None,
        residual: bool = False,
        deviation: bool = False,
        levels: bool = False,
        progress: Optional[Progress] = None,
    ) -> Denoised:
        """Denoises a recording.

        :param x: its samples, ``(n,)`` or ``(channels, n)``.
        :param sample_rate: in Hz, 8000 to 192000.
        :param noise_from: a stretch that holds only noise, as its start and end (``None``: that of the recording) in
            seconds, or the profile of one.
        :param residual: whether to give what was taken out, too.
        :param deviation: whether to tell how sure the gain is.
        :param levels: whether to tell the level of the voice by band, and how sure it is.
        :param progress: is called with the share that is done, 0 to 1. What it raises ends the work.
        :raises TypeError: for samples of another type than ``float32``, ``float64`` and ``int16``.
        :raises ValueError: for a shape that is none of the two, samples that are not finite, and a sample rate or a
            number of channels that is not served.
        """
        recording = np.asarray(x)
        samples = _floats(_channels(recording))
        dtype = recording.dtype
        session = self._session(sample_rate, len(samples), dtype, residual, deviation, levels)
        noise = self._noise(noise_from, samples, sample_rate)
        if noise is not None:
            session.set_noise_profile(noise._native)
        share = None
        if progress is not None:
            seconds = samples.shape[1] / sample_rate
            share = lambda done: progress(min(done / seconds, 1.0))  # noqa: E731
        parts = [session.push(samples, share), session.finish(share)]
        voice, *removed = (
            np.concatenate(blocks, axis=1).astype(dtype, copy=False).reshape(recording.shape) for blocks in zip(*parts)
        )
        return Denoised(
            voice=voice,
            residual=removed[0] if residual else None,
            stats=_stats(session, dtype),
            deviation=_deviation(session, self._separate) if deviation else None,
            levels=_levels(session, self._separate) if levels else None,
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
        deviation: bool = False,
        levels: bool = False,
    ) -> Stream:
        """A recording of any length that comes in chunks of ``dtype``, in memory that does not grow.

        The parameters are those of :meth:`denoise`.
        """
        dtype = _dtype(np.dtype(dtype))
        session = self._session(sample_rate, channels, dtype, residual, deviation, levels)
        if noise_from is not None:
            session.set_noise_profile(noise_from._native)
        return Stream(session, channels, dtype, self._separate)

    def live(
        self,
        sample_rate: int,
        channels: int = 1,
        *,
        latency: float = 16.0,
        strength: float = 1.0,
        floor_db: Optional[float] = None,
        mix: Optional[float] = None,
        bypass: bool = False,
    ) -> Live:
        """Sound as it comes, in calls and streams: what goes in comes out ``latency`` milliseconds (4 to 32) later.

        It goes by the dictionary and the listener of this denoiser; ``floor_db`` and ``mix`` are this denoiser's if
        they are not given. The controls are those of :meth:`Live.set`.
        """
        controls = {
            "strength": strength,
            "floor_db": self.settings["gain"]["floor_db"] if floor_db is None else floor_db,
            "mix": self._given.get("mix", 1.0) if mix is None else mix,
            "bypass": bypass,
        }
        native = self._native.live(_rate(sample_rate), channels, latency / 1000, _json(controls))
        return Live(native, channels)

    def noise_profile(self, x: ArrayLike, sample_rate: int) -> NoiseProfile:
        """Learns the noise from samples that hold nothing else, ``(n,)`` or ``(channels, n)``."""
        samples = _floats(_channels(np.asarray(x)))
        return NoiseProfile(self._native.noise_profile(samples, _rate(sample_rate)))

    def _session(
        self, sample_rate: int, channels: int, dtype: np.dtype[Any], residual: bool, deviation: bool, levels: bool
    ) -> _native.Session:
        is_integer = dtype == np.int16
        return self._native.session(_rate(sample_rate), channels, is_integer, residual, deviation, levels)

    def _noise(self, noise: Any, samples: Array, sample_rate: int) -> Optional[NoiseProfile]:
        if noise is None or isinstance(noise, NoiseProfile):
            return noise
        start, end = noise
        length = samples.shape[1]
        first = math.floor(start * sample_rate + 0.5)
        last = length if end is None else math.floor(end * sample_rate + 0.5)
        if not 0 <= first < last <= length:
            seconds = length / sample_rate
            raise ValueError(f"noise_from is {start}..{end} s; expected a stretch of the recording's {seconds:.2f} s")
        return NoiseProfile(self._native.noise_profile(samples[:, first:last], sample_rate))


class Stream:
    """A recording that is denoised as it comes; made by :meth:`Denoiser.stream`.

    What goes in comes out later, by at most :attr:`latency` samples. The result does not depend on how the samples are
    divided into chunks. One thread at a time works on a stream: others wait.
    """

    def __init__(self, session: _native.Session, channels: int, dtype: np.dtype[Any], separate: bool) -> None:
        self._session = session
        self._channels = channels
        self._dtype = dtype
        self._separate = separate
        #: The samples of what was taken out, ``(channels, n)``, as far as :meth:`push` and :meth:`finish` gave the
        #: voice the last time; ``None`` if it was not asked for.
        self.residual: Optional[Array] = None

    def push(self, chunk: ArrayLike) -> Array:
        """Takes the next samples and returns those that are done, fewer or more.

        Both have shape ``(channels, n)``; a chunk of a single channel may be ``(n,)``, and so is what it gives.

        :raises ValueError: for more or fewer channels than announced, and once the stream is finished.
        """
        samples = np.asarray(chunk)
        if _dtype(samples.dtype) != self._dtype:
            raise TypeError(f"a chunk of {samples.dtype}: expected {self._dtype}, as the stream was made for")
        flat = samples.ndim == 1
        if flat:
            samples = samples[np.newaxis]
        if samples.ndim != 2 or len(samples) != self._channels:
            hint = "; transpose it (chunk.T)" if samples.shape[1:] == (self._channels,) else ""
            raise ValueError(f"a chunk of shape {samples.shape}: expected ({self._channels}, n){hint}")
        return self._give(self._session.push(_floats(samples)), flat)

    def finish(self) -> Array:
        """Ends the recording: the samples still to come, ``(channels, n)``, or ``(n,)`` of a single channel."""
        return self._give(self._session.finish(), self._channels == 1)

    def denoise(self, chunks: Iterable[ArrayLike]) -> Iterator[Array]:
        """Denoises all chunks of a recording: what is done after each, and in the end the rest."""
        for chunk in chunks:
            yield self.push(chunk)
        yield self.finish()

    @property
    def latency(self) -> int:
        """The most samples per channel that may have gone in and not come out yet after a :meth:`push`."""
        return self._session.latency()

    @property
    def stats(self) -> Mapping[str, Any]:
        """What was found so far."""
        return _stats(self._session, self._dtype)

    def take_gain_std(self) -> Deviation:
        """How sure the gain of the frames is that were done since it was last asked for."""
        return _deviation(self._session, self._separate)

    def take_levels(self) -> Levels:
        """The levels of the voice in the slots that were done since it was last asked for."""
        return _levels(self._session, self._separate)

    def _give(self, blocks: Sequence[Array], flat: bool) -> Array:
        voice, *removed = (block.astype(self._dtype, copy=False) for block in blocks)
        self.residual = removed[0] if removed else None
        return voice[0] if flat else voice


class Live:
    """Takes noise out of sound as it comes, sample for sample; made by :meth:`Denoiser.live`.

    What goes in comes out exactly :attr:`latency` samples later; the samples do not depend on the size of the blocks.
    For the first 50 ms all is taken for noise; then it follows.
    """

    def __init__(self, native: _native.Live, channels: int) -> None:
        self._native = native
        self._channels = channels

    def process(self, block: ArrayLike) -> Array:
        """As many samples as come in: ``(channels, n)``, or ``(n,)`` of one channel, ``float32`` or ``float64``."""
        samples = np.asarray(block)
        if samples.dtype not in _DTYPES[:2]:
            raise TypeError(f"a block of {samples.dtype}: expected float32 or float64")
        rows = samples[np.newaxis] if samples.ndim == 1 else samples
        if rows.ndim != 2 or len(rows) != self._channels:
            raise ValueError(f"a block of shape {samples.shape}: expected ({self._channels}, n)")
        done = self._native.process(np.ascontiguousarray(rows.T, np.float32))
        return np.ascontiguousarray(done.T, samples.dtype).reshape(samples.shape)

    def set(self, **controls: Any) -> None:
        """Changes controls, smoothly; what is out of its range is taken for the nearest in it.

        ``strength`` (0 to 2) is the power that gains are raised to, ``floor_db`` (-100 to 0) the least gain, ``mix``
        (0 to 1) how much of the result is the voice, ``bypass`` whether the sound passes as it came, as late.
        """
        self._native.set_controls(_json({**self.controls, **controls}))

    @property
    def controls(self) -> Mapping[str, Any]:
        """The controls as they were set."""
        controls: Mapping[str, Any] = json.loads(self._native.controls())
        return controls

    @property
    def meters(self) -> Mapping[str, float]:
        """Over the last tenth of a second: ``noise_dbfs``, ``speech_dbfs``, and ``gain_db`` of the result."""
        return dict(zip(("noise_dbfs", "speech_dbfs", "gain_db"), self._native.meters()))

    def learn_noise(self, seconds: float) -> None:
        """Takes all that comes in the next ``seconds`` for noise."""
        self._native.learn_noise(seconds)

    def reset(self) -> None:
        """Forgets all that has come. Controls stay as they are set."""
        self._native.reset()

    @property
    def latency(self) -> int:
        """Samples from what comes in to what goes out."""
        return self._native.latency()


def denoise(
    x: ArrayLike,
    sample_rate: int,
    *,
    noise_from: Union[None, NoiseProfile, Tuple[float, Optional[float]]] = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Array:
    """Takes the noise out of a recording: the voice, in the shape and type of ``x``.

    ``options`` are those of :class:`Denoiser`, all else that of :meth:`Denoiser.denoise`.
    """
    return Denoiser(**options).denoise(x, sample_rate, noise_from=noise_from, progress=progress).voice


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
    """Learns a dictionary of speech: the bytes of its file, for ``Denoiser(model=...)``.

    :param files: clean speech: a folder, in and below which every audio file is taken, or files.
    :param rate: sample rate of the dictionary in Hz; the lowest of the files if not given.
    :param rank: number of spectra, 1 to 1,000.
    :param alpha: characteristic exponent of speech, 0.2 to 2.
    :param iterations: sweeps over the speech.
    :param window: length of the analysis window, s.
    :param seed: that of all random numbers: the same seed gives the same bytes.
    :raises ValueError: if a file is of no use, or there is too little speech.
    """
    if isinstance(files, (str, os.PathLike)):
        paths = _native.audio_files(os.fspath(files))
    else:
        paths = [os.fspath(path) for path in files]
    if not paths:
        raise ValueError("no audio files to learn from")
    if rate is None:
        rate = min(_native.sample_rates(paths))
    return _native.train(paths, _rate(rate), rank, alpha, iterations, window, seed, _threads(threads), progress)


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
    """Scores a denoiser over folders of recordings with one channel, as ``denoise eval`` does.

    :param denoiser: a :class:`Denoiser` (of whose options ``mix``, ``channels`` and ``no_dither`` do not count), any
        function of samples ``(n,)`` in ``float32`` and sample rate, or ``None`` for recordings that were enhanced
        elsewhere.
    :param clean: the folder of clean recordings.
    :param noisy: that of the noisy ones, paired by their names.
    :param enhanced: that of what another program made of them.
    :param high_pass: remove all below this frequency before scoring, Hz.
    :param save: a folder for the denoised recordings.
    :returns: ``files`` with their scores before (``input``) and after (``output``), ``failures``, and a ``summary``
        with means and standard errors: of all files, then by condition.
    """
    if noisy is None and enhanced is None:
        raise ValueError("nothing to score: expected noisy or enhanced")
    function: Any = None
    if isinstance(denoiser, Denoiser):
        function = denoiser._native
    elif denoiser is not None:
        given = denoiser

        def function(x: Array, rate: int) -> Array:
            return np.asarray(given(x[0], rate), np.float32)

    def path(folder: Union[None, str, "os.PathLike[str]"]) -> Optional[str]:
        return None if folder is None else os.fspath(folder)

    record: Mapping[str, Any] = json.loads(
        _native.evaluate(
            os.fspath(clean), path(noisy), path(enhanced), function, high_pass, path(save), _threads(threads), progress
        )
    )
    return record


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
    return _native.segmental_snr(*_pair(reference, estimate), _rate(sample_rate))


def stoi(reference: ArrayLike, estimate: ArrayLike, sample_rate: int) -> float:
    """Short-time objective intelligibility."""
    return _native.stoi(*_pair(reference, estimate), _rate(sample_rate))


def estoi(reference: ArrayLike, estimate: ArrayLike, sample_rate: int) -> float:
    """Extended short-time objective intelligibility."""
    return _native.estoi(*_pair(reference, estimate), _rate(sample_rate))


def _pair(reference: ArrayLike, estimate: ArrayLike) -> Tuple[Array, Array]:
    pair = tuple(np.ascontiguousarray(x, np.float64) for x in (reference, estimate))
    for x in pair:
        if x.ndim != 1:
            raise ValueError(f"samples of shape {x.shape}: expected (n,)")
    return pair  # type: ignore[return-value]


def _denoiser(given: Mapping[str, Any]) -> Denoiser:
    return Denoiser(**given)


def _bytes(model: Model) -> bytes:
    return bytes(model) if isinstance(model, (bytes, bytearray, memoryview)) else Path(model).read_bytes()


def _json(options: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{value!r}: expected a number, a word, or a truth value")

    return json.dumps(options, default=plain)


def _threads(threads: Optional[int]) -> Optional[int]:
    if threads is not None and not 1 <= threads <= 1024:
        raise ValueError(f"threads is {threads}; expected 1 to 1024")
    return threads


def _rate(sample_rate: Any) -> int:
    rate = int(sample_rate)
    if rate != sample_rate or not 8000 <= rate <= 192000:
        raise ValueError(f"sample rate of {sample_rate} Hz: expected a whole number from 8000 to 192000")
    return rate


def _dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype not in _DTYPES:
        raise TypeError(f"samples of {dtype}: expected float32, float64 or int16")
    return dtype


def _channels(samples: Array) -> Array:
    """The samples of a recording as (channels, n)."""
    _dtype(samples.dtype)
    if samples.ndim not in (1, 2) or samples.size == 0:
        raise ValueError(f"samples of shape {samples.shape}: expected (n,) or (channels, n), and a sample at least")
    if samples.ndim == 1:
        return samples[np.newaxis]
    # No recording has more channels than samples.
    if samples.shape[0] > samples.shape[1]:
        raise ValueError(
            f"samples of shape {samples.shape}: expected (channels, n), and this looks like (n, channels); "
            "transpose it (x.T)"
        )
    return samples


def _floats(samples: Array) -> Array:
    if samples.dtype == np.int16:
        return samples.astype(np.float32) / np.float32(32768)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(samples, np.float32)


def _stats(session: _native.Session, dtype: np.dtype[Any]) -> Mapping[str, Any]:
    statistics, clipped = session.statistics()
    stats: Dict[str, Any] = json.loads(statistics)
    if dtype == np.int16:
        stats["clipped_samples"] = clipped
    return stats


def _deviation(session: _native.Session, separate: bool) -> Deviation:
    parts, bin_hertz, frame_seconds = session.take_gain_std()
    values = np.stack([part.T for part in parts])
    return Deviation(values if separate else values[0], bin_hertz, frame_seconds)


def _levels(session: _native.Session, separate: bool) -> Levels:
    parts, edges_hertz, slot_seconds, first_slot = session.take_levels()
    values = np.stack([part.T for part in parts])
    return Levels(values if separate else values[0], np.asarray(edges_hertz), slot_seconds, first_slot)
