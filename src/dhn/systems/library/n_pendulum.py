"""A chain of any number of pendulums; the triple pendulum is built in."""

import math

import jax.numpy as jnp

from dhn.errors import UserError
from dhn.systems.system import System


def n_pendulum(links: int, name: str | None = None) -> System:
    """A chain of `links` bobs on rigid massless rods, each hanging from the one above."""
    if links < 1:
        raise UserError(f"a pendulum needs at least one link; got {links}.")
    numbers = range(1, links + 1)

    def lagrangian(q, v, params):
        mass, length = (jnp.stack([params[f"{x}{i}"] for i in numbers]) for x in "ml")
        # A bob's velocity is the sum over the rods above it; its height likewise.
        vx = jnp.cumsum(length * v * jnp.cos(q))
        vy = jnp.cumsum(length * v * jnp.sin(q))
        height = -jnp.cumsum(length * jnp.cos(q))
        return jnp.sum(mass * (0.5 * (vx**2 + vy**2) - params["g"] * height))

    angles = tuple(f"theta{i}" for i in numbers)
    lengths = {f"l{i}": 1.0 for i in numbers}
    return System(
        name=name or f"{links}_pendulum",
        description=f"{links} bobs on rigid massless rods, one below the other",
        coordinates=angles,
        angles=angles,
        lagrangian=lagrangian,
        params={**lengths, f"l{links}": (0.5, 1.5), **{f"m{i}": 1.0 for i in numbers}, "g": 0.981},
        initial={angle: math.pi / 2 for angle in angles},
        units={
            **{angle: "rad" for angle in angles},
            **{f"p_{angle}": "kg m²/s" for angle in angles},
            **{f"l{i}": "m" for i in numbers},
            **{f"m{i}": "kg" for i in numbers},
            **{"t": "s", "g": "m/s²"},
        },
    )


SYSTEM = n_pendulum(3, name="triple_pendulum")
