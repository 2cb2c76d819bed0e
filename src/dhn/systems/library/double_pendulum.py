"""The double pendulum of appendix D (paper, Eq. 22-25)."""

import math

import jax.numpy as jnp

from dhn.systems.system import System


def lagrangian(q, v, params):
    theta1, theta2 = q
    omega1, omega2 = v
    m1, m2, l1, l2, g = (params[name] for name in ("m1", "m2", "l1", "l2", "g"))
    return (
        0.5 * (m1 + m2) * l1**2 * omega1**2
        + 0.5 * m2 * l2**2 * omega2**2
        + m2 * l1 * l2 * omega1 * omega2 * jnp.cos(theta1 - theta2)
        + (m1 + m2) * g * l1 * jnp.cos(theta1)
        + m2 * g * l2 * jnp.cos(theta2)
    )


SYSTEM = System(
    name="double_pendulum",
    description="two bobs on rigid massless rods, one below the other; chaotic",
    coordinates=("theta1", "theta2"),
    angles=("theta1", "theta2"),
    lagrangian=lagrangian,
    params={"l1": 1.0, "l2": (0.5, 1.5), "m1": 1.0, "m2": 1.0, "g": 0.981},
    initial={"theta1": math.pi / 2, "theta2": math.pi / 2},
    units={
        **{"theta1": "rad", "theta2": "rad", "p_theta1": "kg m²/s", "p_theta2": "kg m²/s"},
        **{"t": "s", "l1": "m", "l2": "m", "m1": "kg", "m2": "kg", "g": "m/s²"},
    },
)
