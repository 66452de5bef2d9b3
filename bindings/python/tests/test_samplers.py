import warnings

import numpy as np
import pytest

from alphamf import samplers

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)


def gaussian(theta):
    return 0.5 * theta @ PRECISION @ theta, PRECISION @ theta


def rows(theta):
    return 0.5 * ((theta @ PRECISION) * theta).sum(1), theta @ PRECISION


STARTS = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


@pytest.mark.parametrize("name", samplers.NAMES)
def test_every_sampler_finds_the_moments(name):
    settings = {"draws": 2000, "burn_in": 500}
    if name not in ("hmc", "mh-bfgs", "hmc-bfgs", "qnhmc", "nuts", "nmc"):
        # Those that need no test have a bias that falls with the step, and draws that depend on each other.
        settings = {"draws": 20000, "step_size": 0.02}
    if name in ("sgrld", "sgrhmc"):
        settings["metric"] = lambda theta: PRECISION
    if name == "nmc":
        settings["hessian"] = lambda theta: PRECISION
    result = samplers.sample(gaussian, STARTS, sampler=name, seed=3, **settings)
    assert result.draws.shape == (4, settings["draws"], 2)
    assert np.isfinite(result.draws).all() and result.divergences.sum() < 0.01 * result.draws[..., 0].size
    if name != "psgld":  # Which has another stationary distribution, says its documentation.
        assert np.allclose(result.mean, 0.0, atol=0.15), result.mean
        found = np.cov(result.draws.reshape(-1, 2).T)
        assert np.allclose(found, COVARIANCE, atol=0.35), found
    # Where chains take turns, a last round that is not whole does not count.
    assert np.allclose(result.mean, result.draws.mean((0, 1)), atol=1e-3)


def test_draws_depend_on_the_seed_alone():
    draw = lambda seed, **more: samplers.sample(gaussian, STARTS, draws=50, burn_in=20, seed=seed, **more).draws
    assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))
    # What is done to the results of the target later does not matter.
    kept = []
    draw(1, progress=kept.append)
    assert kept[-1] == 1


def test_all_chains_at_once():
    calls = 0

    def counted(theta):
        nonlocal calls
        calls += 1
        assert theta.shape == (4, 2)
        return rows(theta)

    result = samplers.sample(counted, STARTS, sampler="hmc", draws=2000, burn_in=500, vectorized=True)
    assert np.allclose(np.cov(result.draws.reshape(-1, 2).T), COVARIANCE, atol=0.35)
    assert (result.r_hat < 1.05).all() and result.acceptance.shape == (1,)
    several = 0

    def one(theta):
        nonlocal several
        several += 1
        return gaussian(theta)

    samplers.sample(one, STARTS, sampler="hmc", draws=2000, burn_in=500)
    assert calls < 0.5 * several
    hessian = lambda theta: np.broadcast_to(PRECISION, (4, 2, 2))
    newton = samplers.sample(rows, STARTS, sampler="nmc", hessian=hessian, vectorized=True, draws=500)
    assert np.allclose(np.cov(newton.draws.reshape(-1, 2).T), COVARIANCE, atol=0.35)


def test_positive_unknowns():
    """A gamma law of shape 3 and rate 2 in each coordinate."""

    def gamma(theta):
        # What is far below 1 may round to zero.
        assert (theta >= 0).all()
        if not theta.all():
            return np.inf, np.zeros(2)
        return (2 * theta - 2 * np.log(theta)).sum(), 2 - 2 / theta

    starts = np.array([[0.5, 1.0], [2.0, 1.0]])
    for settings in ({}, {"sampler": "nmc", "hessian": lambda theta: np.diag(2 / theta**2)}):
        result = samplers.sample(gamma, starts, positive=True, draws=2000, burn_in=500, **settings)
        assert np.allclose(result.mean, 1.5, atol=0.12) and np.allclose(result.deviation**2, 0.75, atol=0.2)
    with pytest.raises(ValueError, match="positive"):
        samplers.sample(gamma, -starts, positive=True)


def test_minibatches_sum_up_to_the_whole():
    data = np.random.default_rng(1).normal(1.0, 1.0, 500)

    def posterior(theta, indices):
        chosen = data if indices is None else data[indices]
        scale = data.size / chosen.size
        return 0.5 * scale * ((chosen - theta) ** 2).sum(), scale * (theta - chosen).sum(keepdims=True)

    result = samplers.sample(
        posterior, [[0.0], [2.0]], sampler="sgld", terms=500, minibatch=250, step_size=1e-4, draws=5000
    )
    assert abs(result.mean[0] - data.mean()) < 0.02
    with pytest.raises(ValueError, match="terms"):
        samplers.sample(gaussian, STARTS, minibatch=3)


def test_what_a_target_raises_is_raised():
    def fails(theta):
        if abs(theta[0]) > 2.1:
            raise ZeroDivisionError("far out")
        return gaussian(theta)

    with pytest.raises(ZeroDivisionError, match="far out"):
        samplers.sample(fails, STARTS)
    with pytest.raises(ValueError, match="gradient"):
        samplers.sample(lambda theta: (0.0, np.zeros(3)), STARTS)
    with pytest.raises((TypeError, ValueError)):
        samplers.sample(lambda theta: 0.0, STARTS)
    with pytest.raises(ValueError, match="unknown sampler"):
        samplers.sample(gaussian, STARTS, sampler="gibbs")
    with pytest.raises(ValueError, match="metric"):
        samplers.sample(gaussian, STARTS, sampler="sgrld")
    with pytest.raises(ValueError, match="starts"):
        samplers.sample(gaussian, np.zeros((0, 2)))
    with pytest.raises(ValueError, match="start"):
        samplers.sample(gaussian, [[np.nan, 0.0]])
    with pytest.raises(ValueError, match="step size"):
        samplers.sample(gaussian, STARTS, step_size=-1.0)
    for name, value in [
        ("draws", 3), ("draws", 2**62), ("burn_in", -1), ("burn_in", 2**70), ("seed", -1), ("seed", 2**64), ("terms", 0),
        ("draws", 10.5), ("preconditioner", -1), ("minibatch", 0), ("minibatch", 11),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"{name} is {value}; expected"):
            samplers.sample(gaussian, STARTS, **{"terms": 10 if name == "minibatch" else None, name: value})
    for name, value in [("draws", "9"), ("step_size", "9"), ("step_size", (1, "9")), ("target_acceptance", "9")]:
        with pytest.raises(TypeError, match=f"{name} is '9'; expected a number"):
            samplers.sample(gaussian, STARTS, **{name: value})
    with pytest.raises(MemoryError):
        samplers.sample(gaussian, STARTS, draws=10**14)
    with pytest.raises(ValueError, match="unknown metric"):
        samplers.sample(gaussian, STARTS, preconditioner="round")


def test_potential_and_gradient_come_as_any_sequence_of_two():
    expected = samplers.sample(lambda theta: (theta @ theta / 2, theta), [[1.0], [2.0]], draws=20, burn_in=10).draws
    for join in (list, lambda pair: np.array([pair[0], *pair[1]]), lambda pair: [pair[0], list(pair[1])]):
        target = lambda theta: join((theta @ theta / 2, theta))
        assert np.array_equal(samplers.sample(target, [[1.0], [2.0]], draws=20, burn_in=10).draws, expected)
    for result, words in (
        (1.0, "a float: expected the potential and its gradient"),
        ([1.0], "a list of length 1"),
        ((1.0, [2.0], [3.0]), "a tuple of length 3"),
        (np.array(1.0), "a ndarray: "),
        ({"potential": 1.0, "gradient": [2.0]}, "a dict of length 2"),
    ):
        with pytest.raises(TypeError, match=f"the target returned {words}"):
            samplers.sample(lambda theta: result, [[1.0], [2.0]], draws=20, burn_in=10)


def test_gradients_may_lie_anywhere_in_memory():
    def shifted(numbers):
        return np.frombuffer(b"?" + numbers.tobytes(), np.float64, offset=1)

    def packed(numbers):  # a field of records, 9 bytes from one number to the next
        records = np.zeros(numbers.size, [("mark", "i1"), ("number", "f8")])
        records["number"] = numbers
        return records["number"]

    def backwards(numbers):
        return numbers[::-1].copy()[::-1]

    few = {"draws": 20, "burn_in": 10}
    expected = samplers.sample(gaussian, STARTS, **few).draws
    by_metric = samplers.sample(gaussian, STARTS, sampler="sgrld", metric=lambda theta: np.array([1.0, 2.0]), **few).draws
    for moved in (shifted, packed, backwards):
        target = lambda theta: (gaussian(theta)[0], moved(gaussian(theta)[1]))
        assert np.array_equal(samplers.sample(target, STARTS, **few).draws, expected), moved.__name__
        found = samplers.sample(target, STARTS, sampler="sgrld", metric=lambda theta: moved(np.array([1.0, 2.0])), **few)
        assert np.array_equal(found.draws, by_metric), moved.__name__


def test_settings_without_effect_are_refused():
    unused = [
        ("nuts", {"terms": 5, "minibatch": 2}, "minibatch"),
        ("hmc", {"metric": lambda theta: np.ones(2)}, "metric"),
        ("sgld", {"hessian": lambda theta: np.eye(2)}, "hessian"),
        ("nmc", {"hessian": lambda theta: np.eye(2), "step_size": 0.1}, "step_size"),
        ("sgrld", {"metric": lambda theta: np.ones(2), "preconditioner": "dense"}, "preconditioner"),
        ("nuts", {"metropolis": True}, "metropolis"),
        ("sgld", {"target_acceptance": 0.7}, "target_acceptance"),
        ("hamcmc", {"target_acceptance": 0.7}, "target_acceptance"),
        ("hamcmc", {"target_acceptance": 0.7, "metropolis": True, "step_size": 0.1}, "target_acceptance"),
        ("nmc", {"hessian": lambda theta: np.eye(2), "target_acceptance": 0.7}, "target_acceptance"),
    ]
    for sampler, settings, name in unused:
        with pytest.raises(ValueError, match=f"{name} is given, but {sampler} does not use it"):
            samplers.sample(gaussian, STARTS, sampler=sampler, **settings)
    samplers.sample(gaussian, STARTS, sampler="hamcmc", metropolis=True, target_acceptance=0.7, draws=40, burn_in=40)
    for sampler, name in (("sgrld", "metric"), ("sgrhmc", "metric"), ("nmc", "hessian")):
        with pytest.raises(ValueError, match=f"{name} is missing, but {sampler} needs it"):
            samplers.sample(gaussian, STARTS, sampler=sampler)


def test_an_interrupt_ends_it():
    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        samplers.sample(gaussian, STARTS, draws=10**6, progress=interrupt)


def test_default_settings_fit_any_scale():
    scales = np.array([1e-4, 1.0, 1e4])

    def scaled(theta):
        x = theta / scales - 1
        return 0.5 * x @ x, x / scales

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = samplers.sample(scaled, np.outer([-1, 0, 1, 2], scales), seed=1)
    assert result.warnings == () and (result.r_hat < 1.01).all() and (result.tail_effective_size > 400).all()
    assert np.allclose(result.mean / scales, 1, atol=0.1) and np.allclose(result.deviation / scales, 1, atol=0.1)
    assert result.statistics["n_steps"].shape == (4, 1000) and (result.energy_fraction > 0.5).all()


def test_reasons_not_to_trust_the_draws_are_warnings():
    def funnel(theta):
        spread, x = theta[0], theta[1:]
        squares = np.exp(-spread) * x @ x
        slope = spread / 9 + 0.5 * (x.size - squares)
        return spread**2 / 18 + 0.5 * (x.size * spread + squares), np.append(slope, np.exp(-spread) * x)

    starts = np.random.default_rng(1).normal(size=(4, 10))
    with pytest.warns(samplers.SamplingWarning, match="diverged"):
        result = samplers.sample(funnel, starts, seed=1, draws=500, burn_in=500)
    assert result.divergences.sum() > 0
    with pytest.warns(samplers.SamplingWarning, match="R-hat"):
        samplers.sample(gaussian, 1e3 * STARTS, sampler="sgld", step_size=1e-4, draws=50, burn_in=0)
    # A step that is far too long for a sampler without a test.
    with pytest.warns(samplers.SamplingWarning, match="biased"):
        samplers.sample(gaussian, STARTS, sampler="sgld", step_size=0.2, draws=20000)


@pytest.mark.parametrize("shape", ["none", "diagonal", "dense", 1, np.int64(1)])
def test_every_shape_of_preconditioner(shape):
    result = samplers.sample(gaussian, STARTS, preconditioner=shape, seed=2, draws=2000)
    assert np.allclose(np.cov(result.draws.reshape(-1, 2).T), COVARIANCE, atol=0.2)


def test_a_preconditioner_is_a_name_or_a_whole_number():
    for value, name in ((1.0, "float"), (True, "bool")):
        with pytest.raises(TypeError, match=f"preconditioner of type {name}: expected a name or a whole number"):
            samplers.sample(gaussian, STARTS, preconditioner=value)


def test_hamcmc_with_a_test_is_exact():
    result = samplers.sample(gaussian, STARTS, sampler="hamcmc", metropolis=True, seed=2, draws=20000)
    assert np.allclose(np.cov(result.draws.reshape(-1, 2).T), COVARIANCE, atol=0.1)
    assert (0.3 < result.acceptance).all() and (result.acceptance < 0.9).all()


def test_arviz_takes_the_result():
    arviz = pytest.importorskip("arviz")
    result = samplers.sample(gaussian, STARTS, draws=400)
    data = result.to_arviz()
    assert data.posterior["theta"].shape == (4, 400, 2)
    assert data.sample_stats["diverging"].shape == (4, 400) and data.sample_stats["diverging"].dtype == bool
    assert np.allclose(arviz.rhat(data)["theta"].values, result.r_hat, atol=0.02)
    assert np.allclose(arviz.ess(data)["theta"].values, result.effective_size, rtol=0.02)
    assert np.allclose(arviz.ess(data, method="tail")["theta"].values, result.tail_effective_size, rtol=0.02)
    assert np.allclose(np.asarray(arviz.bfmi(data)).ravel(), result.energy_fraction, rtol=0.02)


def test_arviz_tells_chains_apart_that_are_moved_in_turn():
    arviz = pytest.importorskip("arviz")
    for sampler in ("hamcmc", "hmc-bfgs"):
        result = samplers.sample(gaussian, STARTS, sampler=sampler, draws=2003)
        turns = result.chains_in_turn
        data = result.to_arviz()
        assert turns > 1 and data.posterior["theta"].shape == (4 * turns, 2003 // turns, 2)
        assert data.sample_stats["step_size"].shape == (4 * turns, 2003 // turns)
        assert np.array_equal(data.posterior["theta"].values[1], result.draws[0, 1::turns][: 2003 // turns])
        assert np.allclose(arviz.rhat(data)["theta"].values, result.r_hat, atol=0.01)
        assert np.allclose(arviz.ess(data)["theta"].values, result.effective_size, rtol=0.02)
    assert samplers.sample(gaussian, STARTS, draws=20, burn_in=20).chains_in_turn == 1
