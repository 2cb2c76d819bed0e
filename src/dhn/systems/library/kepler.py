"""Two bodies under gravity: Kepler's problem."""

import jax.numpy as jnp

from dhn.systems.library import gravity
from dhn.systems.system import System


def _runge_lenz(q, p, params):
    """The Laplace-Runge-Lenz vector over `mu k`: points at perihelion, as long as eccentricity."""
    m1, m2 = params["m1"], params["m2"]
    mu = m1 * m2 / (m1 + m2)
    x, momentum = q[2:] - q[:2], mu * (p[2:] / m2 - p[:2] / m1)
    spin = x[0] * momentum[1] - x[1] * momentum[0]
    turned = jnp.stack([momentum[1], -momentum[0]])
    return turned * spin / (mu * params["G"] * m1 * m2) - x / jnp.sqrt(jnp.sum(x**2))


SYSTEM = System(
    name="kepler",
    title="Kepler problem",
    description="two bodies under gravity in a plane, on ellipses",
    coordinates=("x1", "y1", "x2", "y2"),
    hamiltonian=gravity.hamiltonian,
    params={"m1": 1.0, "m2": (0.5, 1.5), "G": 1.0},
    initial={
        **{"x1": -0.5, "x2": 0.5, "v_y1": (-0.65, -0.5), "v_y2": (0.5, 0.65)},
    },
    invariants={
        **gravity.INVARIANTS,
        "runge_lenz_x": lambda q, p, params: _runge_lenz(q, p, params)[0],
        "runge_lenz_y": lambda q, p, params: _runge_lenz(q, p, params)[1],
    },
)
