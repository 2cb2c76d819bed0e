"""A bob on a spring that swings and stretches."""

import jax.numpy as jnp

from dhn.systems.system import System


def lagrangian(q, v, params):
    r, theta = q
    m, k, l, g = (params[name] for name in ("m", "k", "l", "g"))
    kinetic = 0.5 * m * (v[0] ** 2 + r**2 * v[1] ** 2)
    return kinetic + m * g * r * jnp.cos(theta) - 0.5 * k * (r - l) ** 2


SYSTEM = System(
    name="elastic_pendulum",
    description="a bob on a spring, swinging and stretching",
    coordinates=("r", "theta"),
    angles=("theta",),
    lagrangian=lagrangian,
    params={"k": (2.0, 6.0), "l": 1.0, "m": 1.0, "g": 0.981},
    initial={"r": (1.1, 1.5), "theta": (-1.0, 1.0)},
    units={
        **{"r": "m", "theta": "rad", "p_r": "kg m/s", "p_theta": "kg m²/s", "t": "s"},
        **{"k": "N/m", "l": "m", "m": "kg", "g": "m/s²"},
    },
)
