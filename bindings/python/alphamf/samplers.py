"""Markov chain Monte Carlo by gradients and curvature, for any posterior.

    import numpy as np
    from alphamf import samplers

    def normal(theta):
        return 0.5 * theta @ theta, theta

    result = samplers.sample(normal, np.zeros((4, 3)), seed=1)
    result.draws.shape  # (4, 1000, 3)

``nuts`` is exact and needs no tuning: start with it. ``hamcmc``, ``sghmc`` and ``sgld`` take gradients of minibatches and have
no acceptance test. The documentation of the crate ``alphamf-samplers`` says where not to use each.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple, Union

import numpy as np

from . import _native
from ._arrays import check_number, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

__all__ = ["NAMES", "SampleResult", "SamplingWarning", "sample"]

#: The names of the samplers.
NAMES: Tuple[str, ...] = tuple(_native.names())


#: Most draws, terms and steps, whose sums and products in the library do not overflow.
MAX_COUNT = 2**48


class SamplingWarning(UserWarning):
    """A reason not to trust the draws: divergences, R-hat above 1.01, fewer than 400 effective draws, and the like."""


@dataclass(frozen=True)
class SampleResult:
    """Draws of :func:`sample`, their summary and statistics.

    ``draws`` has shape ``(start, draw, dimension)``. ``hamcmc``, ``hmc-bfgs`` and ``mh-bfgs`` move ``chains_in_turn`` chains from
    each start in turn: ``draws[0, ::chains_in_turn]`` is one of them, and diagnostics must not take them for one.
    Arrays with one number for each parameter: ``mean``, ``deviation``, ``standard_error`` (Monte Carlo, of the
    mean), ``r_hat`` (rank-normalised; above 1.01 the chains do not agree), ``effective_size`` (bulk) and
    ``tail_effective_size`` (5 % and 95 % quantiles). One number for each chain, or for all together if the target
    is vectorized: ``acceptance``, ``divergences``, ``depth_limited`` (trajectories of NUTS at the maximum depth)
    and ``energy_fraction`` (E-BFMI; empty for samplers without momenta or without an acceptance test).
    ``statistics`` holds arrays ``(chain, draw)`` by ArviZ's names, of all chains together if the target is vectorized.
    ``warnings`` holds the text of every warning. Burn-in is left out of all of them.
    """

    draws: Array
    mean: Array
    deviation: Array
    standard_error: Array
    r_hat: Array
    effective_size: Array
    tail_effective_size: Array
    acceptance: Array
    divergences: NDArray[np.int64]
    depth_limited: NDArray[np.int64]
    energy_fraction: Array
    chains_in_turn: int = 1
    warnings: Tuple[str, ...] = ()
    statistics: Dict[str, Array] = field(default_factory=dict, repr=False)

    def to_arviz(self, name: str = "theta") -> Any:
        """Returns ArviZ's own type (``InferenceData``, or ``DataTree`` from version 1).

        Chains that were moved in turn are separated; draws at the end that would make some longer are left out. It has
        statistics of the steps, unless the target is vectorized.
        """
        import arviz

        groups: Dict[str, Dict[str, Any]] = {"posterior": {name: self._in_chains(self.draws)}}
        if all(values.shape == self.draws.shape[:2] for values in self.statistics.values()):
            groups["sample_stats"] = {
                key: self._in_chains(values > 0 if key == "diverging" else values)
                for key, values in self.statistics.items()
                if not np.isnan(values).any()
            }
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups)
        arguments: Dict[str, Any] = groups
        return arviz.from_dict(**arguments)

    def _in_chains(self, values: NDArray[Any]) -> NDArray[Any]:
        """Separates the chains of ``(start, draw, ...)`` that were moved in turn."""
        turns = self.chains_in_turn
        rounds = values.shape[1] // turns
        chains = [values[:, turn : rounds * turns : turns] for turn in range(turns)]
        return np.stack(chains, axis=1).reshape(-1, rounds, *values.shape[2:])


def sample(
    target: Callable[..., Tuple[Any, Any]],
    starts: ArrayLike,
    *,
    sampler: str = "nuts",
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
    preconditioner: Union[None, str, int] = None,
    target_acceptance: Optional[float] = None,
    metropolis: bool = False,
    progress: Optional[Callable[[float], object]] = None,
) -> SampleResult:
    """Runs a chain from each of the ``starts``, and warns of reasons not to trust the draws.

    :param target: given a state of shape ``(dimension,)``, returns the potential (minus the logarithm of the density,
        up to a constant; infinite where the density is zero) and its gradient, a tuple or another sequence of two, each
        anything that numpy converts. It must not change while the chains run.
    :param starts: ``(chains, dimension)``, far apart; the potential must be finite there.
    :param sampler: one of :data:`NAMES`.
    :param draws: steps of each chain that are kept, at least 4 (of each of the chains that ``hamcmc``, ``hmc-bfgs`` and
        ``mh-bfgs`` move in turn).
    :param burn_in: steps before those. They adapt a preconditioner and the step size.
    :param seed: seed of all random numbers: equal seeds give equal draws.
    :param step_size: step size of the sampler, or ``(scale, power)`` for ``(scale / t)**power`` at step t. Samplers without
        an acceptance test keep it and are not preconditioned then, unless ``preconditioner`` is given; the others keep it
        without burn-in only, which finds a step of its own. Not for ``nmc``.
    :param terms: number of data terms. The target is then called with a second argument: indices of the terms to use, or
        ``None`` for all. A sum over n of them is to be multiplied by ``terms / n``.
    :param minibatch: number of terms in each gradient, for samplers that need no exact one.
    :param vectorized: the target takes the states of all chains at once, ``(chains, dimension)``, and returns
        potentials ``(chains,)`` and gradients ``(chains, dimension)``. This runs chains in parallel wherever numpy, JAX or
        PyTorch do.
    :param positive: the parameters are positive: the sampler moves their logarithms, or the half line itself (``nmc``).
    :param metric: for ``sgrld`` and ``sgrhmc``: the metric at a state, its diagonal ``(dimension,)`` or
        ``(dimension, dimension)``; one for each chain if vectorized.
    :param hessian: for ``nmc``: the second derivatives, ``(dimension, dimension)``; for each chain if vectorized.
    :param preconditioner: ``"diagonal"`` (the default), ``"dense"``, ``"none"``, or a number of directions beside the
        diagonal; estimated during burn-in.
    :param target_acceptance: acceptance that samplers with a test adapt their step to, 0 to 1 [default: 0.8, ``mh-bfgs``
        0.574]. Raise it if steps diverge.
    :param metropolis: test the moves of ``hamcmc``, which are exact then, at the cost of a full potential a step.
    :param progress: receives the completed fraction, 0 to 1. An exception that it raises ends the work.
    :raises ValueError: if a setting is out of its range or not used by the sampler, or the target lacks what the sampler needs.
    :raises TypeError: if the target returns anything but a potential and a gradient.
    :raises MemoryError: if there is no room for the draws.
    """
    # A copy, so that later changes of the argument have no effect.
    begin = np.array(starts, np.float64, ndmin=2)
    if begin.ndim != 2 or begin.size == 0:
        raise ValueError(f"starts of shape {begin.shape}: expected (chains, dimension)")
    draws, burn_in = whole("draws", draws, 4, MAX_COUNT), whole("burn_in", burn_in, 0, MAX_COUNT)
    seed = whole("seed", seed, 0, 2**64 - 1)
    if terms is not None:
        terms = whole("terms", terms, 1, MAX_COUNT)
        minibatch = None if minibatch is None else whole("minibatch", minibatch, 1, terms)
    # Too many raise MemoryError here; in the library they would end the process.
    np.empty((4, draws, *begin.shape))
    if positive and not (begin > 0.0).all():
        raise ValueError("a start that is not positive")
    if minibatch is not None and terms is None:
        raise ValueError("minibatch without terms: expected the number of data terms")
    step = None
    if step_size is not None:
        step = tuple(step_size) if isinstance(step_size, (tuple, list)) else (step_size, None)
        for number in step:
            if number is not None:
                check_number("step_size", number)
    if target_acceptance is not None:
        check_number("target_acceptance", target_acceptance)
    shape: Union[None, str, int] = preconditioner
    if isinstance(preconditioner, (int, np.integer)) and not isinstance(preconditioner, bool):
        shape = f"low-rank-{whole('preconditioner', preconditioner, 1, MAX_COUNT)}"
    if shape is not None and not isinstance(shape, str):
        raise TypeError(f"preconditioner of type {type(shape).__name__}: expected a name or a whole number")
    found = _native.sample(
        target, begin, sampler, draws, burn_in, seed, step, minibatch, terms, vectorized, positive, metric, hessian,
        shape, target_acceptance, metropolis, progress,
    )  # fmt: skip
    steps = {name: values.reshape(-1, draws) for name, values in found.pop("statistics").items()}
    messages = tuple(found.pop("warnings"))
    for message in messages:
        warnings.warn(message, SamplingWarning, stacklevel=2)
    return SampleResult(
        draws=found.pop("draws").reshape(len(begin), draws, begin.shape[1]),
        warnings=messages,
        statistics=steps,
        **found,
    )
