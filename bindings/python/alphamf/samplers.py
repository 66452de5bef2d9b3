"""Draws from any posterior, by gradients and curvature.

    import numpy as np
    from alphamf import samplers

    def normal(theta):
        return 0.5 * theta @ theta, theta

    sampled = samplers.sample(normal, np.zeros((4, 3)), sampler="hmc", seed=1)
    sampled.draws.shape  # (4, 1000, 3)

Which sampler suits what is said in the documentation of the crate ``alphamf-samplers``: ``hmc`` and ``hmc-bfgs`` where
the potential is known and exactness matters, ``hamcmc``, ``sghmc`` and ``sgld`` for gradients of minibatches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Tuple, Union

import numpy as np

from . import _native

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

__all__ = ["NAMES", "SampleResult", "sample"]

#: The names of the samplers.
NAMES: Tuple[str, ...] = tuple(_native.names())


@dataclass(frozen=True)
class SampleResult:
    """What :func:`sample` drew.

    ``draws`` has shape ``(chain, draw, dimension)``, what ArviZ takes: ``arviz.from_dict({"theta": sampled.draws})``,
    or ``arviz.from_dict({"posterior": {"theta": sampled.draws}})`` from its version 1 on. Arrays with a number for
    each unknown: ``mean``, ``deviation``, ``standard_error`` (Monte Carlo, of the mean), ``r_hat`` (rank-normalised;
    above 1.01 the chains do not agree), ``effective_size`` (bulk). ``acceptance`` and ``divergences`` are those of
    each chain, or of all together where the target is vectorized, burn-in left out.
    """

    draws: Array
    mean: Array
    deviation: Array
    standard_error: Array
    r_hat: Array
    effective_size: Array
    acceptance: Array
    divergences: NDArray[np.int64]


def sample(
    target: Callable[..., Tuple[Any, Any]],
    starts: ArrayLike,
    *,
    sampler: str = "hmc",
    draws: int = 1000,
    burn_in: int = 1000,
    seed: int = 0,
    step_size: Union[None, float, Tuple[float, float]] = None,
    terms: Optional[int] = None,
    minibatch: Optional[int] = None,
    vectorized: bool = False,
    positive: bool = False,
    metric: Optional[Callable[[Array], Any]] = None,
    hessian: Optional[Callable[[Array], Any]] = None,
    progress: Optional[Callable[[float], object]] = None,
) -> SampleResult:
    """Runs a chain from each of the ``starts``.

    :param target: given a state of shape ``(dimension,)``, returns the potential (minus the logarithm of the density,
        up to a constant; infinite where the density is zero) and its gradient, as anything numpy makes arrays of.
    :param starts: ``(chains, dimension)``, far apart; the potential must be finite there.
    :param sampler: one of :data:`NAMES`.
    :param draws: steps of each chain that are kept, at least 4.
    :param burn_in: steps before those, while the step size is adapted where the sampler does so.
    :param seed: that of all random numbers: the same seed gives the same draws.
    :param step_size: that of the sampler, or ``(scale, power)`` for ``(scale / t)**power`` at step t.
    :param terms: the number of data terms. The target is then called with a second argument: the indices of the
        terms to look at, or ``None`` for all. A sum over n of them is to be multiplied by ``terms / n``.
    :param minibatch: how many terms each gradient looks at, for samplers that need no exact one.
    :param vectorized: the target takes the states of all chains at once, ``(chains, dimension)``, and returns
        potentials ``(chains,)`` and gradients ``(chains, dimension)``.
    :param positive: the unknowns are positive: the sampler moves their logarithms, or knows the half line (``nmc``).
    :param metric: for ``sgrld`` and ``sgrhmc``: the metric at a state, its diagonal ``(dimension,)`` or
        ``(dimension, dimension)``; one for each chain if vectorized.
    :param hessian: for ``nmc``: the second derivatives, ``(dimension, dimension)``; for each chain if vectorized.
    :param progress: is called with the share that is done, 0 to 1. What it raises ends the work.
    :raises ValueError: if a setting is out of its range, or the target lacks what the sampler needs.
    """
    # A copy, of which no later change comes through.
    begin = np.array(starts, np.float64, ndmin=2)
    if begin.ndim != 2 or begin.size == 0:
        raise ValueError(f"starts of shape {begin.shape}: expected (chains, dimension)")
    if draws < 4:
        raise ValueError(f"draws is {draws}; expected at least 4")
    if positive and not (begin > 0.0).all():
        raise ValueError("a start that is not positive")
    if minibatch is not None and terms is None:
        raise ValueError("minibatch without terms: expected the number of data terms")
    step = None
    if step_size is not None:
        step = tuple(step_size) if isinstance(step_size, (tuple, list)) else (step_size, None)
    flat, summary, acceptance, divergences = _native.sample(
        target, begin, sampler, draws, burn_in, seed, step, minibatch, terms,
        vectorized, positive, metric, hessian, progress,
    )  # fmt: skip
    columns: Mapping[str, Array] = dict(
        zip(("mean", "deviation", "standard_error", "r_hat", "effective_size"), map(np.asarray, summary))
    )
    return SampleResult(
        draws=flat.reshape(len(begin), draws, begin.shape[1]),
        acceptance=np.asarray(acceptance),
        divergences=np.asarray(divergences),
        **columns,
    )
