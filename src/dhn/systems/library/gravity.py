"""Bodies in a plane under Newton's gravity: what Kepler's and the three-body problem share."""

import jax.numpy as jnp


def hamiltonian(q, p, params):
    """`H = Σ |p_i|²/2m_i - Σ_{i<j} G m_i m_j / |x_i - x_j|`, with `q = (x1, y1, x2, y2, ...)`."""
    bodies = q.shape[0] // 2
    x, p = q.reshape(bodies, 2), p.reshape(bodies, 2)
    m = [params[f"m{i + 1}"] for i in range(bodies)]
    energy = sum(0.5 * jnp.sum(p[i] ** 2) / m[i] for i in range(bodies))
    for i in range(bodies):
        for j in range(i):
            energy -= params["G"] * m[i] * m[j] / jnp.sqrt(jnp.sum((x[i] - x[j]) ** 2))
    return energy


INVARIANTS = {
    "momentum_x": lambda q, p, params: jnp.sum(p[0::2]),
    "momentum_y": lambda q, p, params: jnp.sum(p[1::2]),
    "angular_momentum": lambda q, p, params: jnp.sum(q[0::2] * p[1::2] - q[1::2] * p[0::2]),
}
