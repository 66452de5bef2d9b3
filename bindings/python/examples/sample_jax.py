"""A posterior with the gradients of JAX, all chains at once by vmap."""

import jax
import numpy as np

from alphamf import samplers

jax.config.update("jax_enable_x64", True)


def potential(theta):
    """A ring of radius 2."""
    return 8.0 * (jax.numpy.linalg.norm(theta) - 2.0) ** 2


starts = np.array([[2.0, 0.1], [-2.0, 0.1], [0.1, 2.0], [0.1, -2.0]])
target = jax.jit(jax.vmap(jax.value_and_grad(potential)))
result = samplers.sample(target, starts, vectorized=True, seed=1)
radius = np.linalg.norm(result.draws, axis=-1)
print(f"radius {radius.mean():.2f} +- {radius.std():.2f}, R-hat {result.r_hat.max():.3f}")
