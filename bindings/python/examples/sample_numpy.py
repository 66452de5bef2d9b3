"""Eight schools (Rubin 1981), non-centred: the effects of coaching, with gradients by hand and all chains at once."""

import numpy as np

from alphamf import samplers

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(theta):
    """Potentials (chains,) and gradients (chains, 10): mean, logarithm of the spread, eight standard normals."""
    mean, log_spread, schools = theta[:, :1], theta[:, 1:2], theta[:, 2:]
    spread = np.exp(log_spread)
    residual = (mean + spread * schools - EFFECTS) / ERRORS
    # Normal(0, 5) for the mean, half Cauchy(0, 5) for the spread, with the Jacobian of its logarithm.
    ratio = (spread / 5.0) ** 2
    potential = 0.5 * (residual**2 + schools**2).sum(1) + (0.5 * (mean / 5) ** 2 + np.log1p(ratio) - log_spread)[:, 0]
    slope = residual / ERRORS
    gradient = np.hstack(
        [
            slope.sum(1, keepdims=True) + mean / 25,
            (slope * spread * schools).sum(1, keepdims=True) + 2 * ratio / (1 + ratio) - 1,
            slope * spread + schools,
        ]
    )
    return potential, gradient


starts = np.random.default_rng(1).normal(size=(4, 10))
result = samplers.sample(schools, starts, draws=2000, vectorized=True, seed=1)
print(f"mean effect {result.mean[0]:.1f} +- {result.deviation[0]:.1f}, spread exp({result.mean[1]:.2f})")
print(f"R-hat {result.r_hat.max():.3f} at worst, {result.effective_size.min():.0f} effective draws at least")
