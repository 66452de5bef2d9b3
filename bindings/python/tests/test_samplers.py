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
    if name not in ("hmc", "mh-bfgs", "hmc-bfgs", "qnhmc", "nmc"):
        # Those that need no test have a bias that falls with the step, and draws that depend on each other.
        settings = {"draws": 20000, "step_size": 0.02}
    if name in ("sgrld", "sgrhmc"):
        settings["metric"] = lambda theta: PRECISION
    if name == "nmc":
        settings["hessian"] = lambda theta: PRECISION
    sampled = samplers.sample(gaussian, STARTS, sampler=name, seed=3, **settings)
    assert sampled.draws.shape == (4, settings["draws"], 2)
    assert np.isfinite(sampled.draws).all() and sampled.divergences.sum() < 0.01 * sampled.draws[..., 0].size
    if name != "psgld":  # Which has another stationary distribution, says its documentation.
        assert np.allclose(sampled.mean, 0.0, atol=0.15), sampled.mean
        found = np.cov(sampled.draws.reshape(-1, 2).T)
        assert np.allclose(found, COVARIANCE, atol=0.35), found
    # Where chains take turns, a last round that is not whole does not count.
    assert np.allclose(sampled.mean, sampled.draws.mean((0, 1)), atol=1e-3)


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

    sampled = samplers.sample(counted, STARTS, draws=2000, burn_in=500, vectorized=True)
    assert np.allclose(np.cov(sampled.draws.reshape(-1, 2).T), COVARIANCE, atol=0.35)
    assert (sampled.r_hat < 1.05).all() and sampled.acceptance.shape == (1,)
    several = 0

    def one(theta):
        nonlocal several
        several += 1
        return gaussian(theta)

    samplers.sample(one, STARTS, draws=2000, burn_in=500)
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
        sampled = samplers.sample(gamma, starts, positive=True, draws=2000, burn_in=500, **settings)
        assert np.allclose(sampled.mean, 1.5, atol=0.12) and np.allclose(sampled.deviation**2, 0.75, atol=0.2)
    with pytest.raises(ValueError, match="positive"):
        samplers.sample(gamma, -starts, positive=True)


def test_minibatches_sum_up_to_the_whole():
    data = np.random.default_rng(1).normal(1.0, 1.0, 500)

    def posterior(theta, indices):
        chosen = data if indices is None else data[indices]
        scale = data.size / chosen.size
        return 0.5 * scale * ((chosen - theta) ** 2).sum(), scale * (theta - chosen).sum(keepdims=True)

    sampled = samplers.sample(
        posterior, [[0.0], [2.0]], sampler="sgld", terms=500, minibatch=250, step_size=1e-4, draws=5000
    )
    assert abs(sampled.mean[0] - data.mean()) < 0.02
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
        samplers.sample(gaussian, STARTS, sampler="nuts")
    with pytest.raises(ValueError, match="metric"):
        samplers.sample(gaussian, STARTS, sampler="sgrld")
    with pytest.raises(ValueError, match="starts"):
        samplers.sample(gaussian, np.zeros((0, 2)))
    with pytest.raises(ValueError, match="start"):
        samplers.sample(gaussian, [[np.nan, 0.0]])
    with pytest.raises(ValueError, match="step size"):
        samplers.sample(gaussian, STARTS, step_size=-1.0)


def test_an_interrupt_ends_it():
    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        samplers.sample(gaussian, STARTS, draws=10**6, progress=interrupt)


def test_arviz_takes_the_draws():
    arviz = pytest.importorskip("arviz")
    sampled = samplers.sample(gaussian, STARTS, draws=400)
    new = int(arviz.__version__.split(".")[0]) >= 1
    data = arviz.from_dict({"posterior": {"theta": sampled.draws}} if new else {"theta": sampled.draws})
    assert data.posterior["theta"].shape == (4, 400, 2)
    assert np.allclose(arviz.rhat(data)["theta"].values, sampled.r_hat, atol=0.02)
