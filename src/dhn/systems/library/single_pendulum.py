"""The single pendulum of appendix D (paper, Eq. 21)."""

import math

import jax.numpy as jnp

from dhn.systems.system import System


def lagrangian(q, v, params):
    m, l, g = params["m"], params["l"], params["g"]
    return 0.5 * m * l**2 * v[0] ** 2 - m * g * l * (1 - jnp.cos(q[0]))


SYSTEM = System(
    name="single_pendulum",
    description="a bob on a rigid massless rod",
    coordinates=("theta",),
    angles=("theta",),
    lagrangian=lagrangian,
    params={"l": (0.5, 1.0), "m": 1.0, "g": 0.981},
    initial={"theta": math.pi / 2},
    units={"theta": "rad", "p_theta": "kg m²/s", "t": "s", "l": "m", "m": "kg", "g": "m/s²"},
)
