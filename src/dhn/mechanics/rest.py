"""The learned rest: a force that no formula names, linear in features of the state.

Features are harmonics of the angles (powers of other coordinates), each times 1, every rate and
every product of two rates. Rates and lengths are bounded smoothly, so that the force stays bounded
where no data were.
"""

import functools
import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dhn.mechanics.layout import Numbers

ORDERS = {1: 4, 2: 2}
"""Number of coordinates -> greatest order of harmonics and powers; with more coordinates there
would be too many features for the likelihood to weigh in a minute."""
RATE = 25.0
"""Spread of a rate over the width of smoothed dry friction (widths of 2 to 6 % of the spread work;
learned widths diverge)."""
REACH = 3.0
"""Rates and lengths are bounded at so many times their spread."""


def offers(dim: int) -> bool:
    """Whether there is a learned rest for so many coordinates.

    Arguments: dim.
    Returns: whether `ORDERS` has it.
    """
    return dim in ORDERS


@functools.cache
def orders(angles: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
    """Orders of every coordinate in the harmonics and powers, each function once.

    Arguments: angles: which coordinates are angles.
    Returns: integer vectors, their absolute values adding up to `ORDERS` at most.
    """
    most = ORDERS[len(angles)]
    found = []
    for order in itertools.product(range(-most, most + 1), repeat=len(angles)):
        turns = [n for n, angle in zip(order, angles, strict=True) if angle and n != 0]
        powers = [n for n, angle in zip(order, angles, strict=True) if not angle]
        # A power has no sign, and the sine of -x tells nothing beyond that of x.
        once = min(powers, default=0) >= 0 and (not turns or turns[0] > 0)
        if once and 0 < sum(map(abs, order)) <= most:
            found.append(order)
    return tuple(found)


@functools.cache
def count(angles: tuple[bool, ...]) -> int:
    """Number of features.

    Arguments: angles: which coordinates are angles.
    Returns: features; the rest has so many weights for each coordinate.
    """
    return len(np.asarray(features(angles, np.ones(len(angles)), np.ones(len(angles)))))


def features(
    angles: tuple[bool, ...], q: Float[Numbers, " d"], rates: Float[Numbers, " d"]
) -> Float[Numbers, " k"]:
    """Functions of the state whose weighted sum is the force.

    Arguments: angles; q: (d,) scaled; rates: (d,) velocities over their spread.
    Returns: (k,).
    """
    d = len(angles)
    bounded = REACH * jnp.tanh(jnp.asarray(rates) / REACH)
    length = REACH * jnp.tanh(jnp.asarray(q) / REACH)
    shapes = [jnp.ones(())]
    for order in orders(angles):
        turning = [n if angle else 0 for n, angle in zip(order, angles, strict=True)]
        powers = [0 if angle else n for n, angle in zip(order, angles, strict=True)]
        power = jnp.prod(jnp.stack([length[i] ** n for i, n in enumerate(powers)]))
        if any(turning):
            phase = sum(n * q[i] for i, n in enumerate(turning))
            shapes += [power * jnp.cos(phase), power * jnp.sin(phase)]
        else:
            shapes.append(power)
    motion = [jnp.ones(()), *(bounded[i] for i in range(d))]
    motion += [bounded[i] * bounded[j] for i in range(d) for j in range(i + 1)]
    return (jnp.stack(motion)[:, None] * jnp.stack(shapes)[None, :]).ravel()


def rest_force(
    angles: tuple[bool, ...],
    weights: Float[Numbers, " w"],
    q: Float[Numbers, " d"],
    rates: Float[Numbers, " d"],
) -> Float[Numbers, " d"]:
    """The force of the learned rest.

    Arguments: angles; weights: (d k,); q, rates: (d,) as in `features`.
    Returns: (d,).
    """
    found = features(angles, q, rates)
    return (jnp.reshape(weights, (len(angles), -1)) * found[None, :]).sum(-1)
