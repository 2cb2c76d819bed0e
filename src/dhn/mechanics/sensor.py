"""What an instrument reads: a smooth map of the coordinates, a slow error, white noise."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dhn.mechanics.layout import Layout, Numbers


def reading(
    layout: Layout, theta: Float[Numbers, " P"], q: Float[Numbers, " d"]
) -> Float[Numbers, " d"]:
    """The reading without slow error and noise.

    Angles: `q + s1 (cos q - 1) + s2 sin q + ...` and, along a chain, sine and cosine of the
    difference to the link before (a marker off its axis). Other coordinates: `q + s1 q² + s2 q³`.

    Arguments: layout; theta: (P,); q: (d,).
    Returns: (d,).
    """
    part = {name: theta[place] for name, place in layout.slices.items()}
    bend = part["even"] * (jnp.cos(q) - 1) + part["odd"] * jnp.sin(q)
    bend += part["even2"] * (jnp.cos(2 * q) - 1) + part["odd2"] * jnp.sin(2 * q)
    bend += part["even3"] * (jnp.cos(3 * q) - 1) + part["odd3"] * jnp.sin(3 * q)
    bend += part["even4"] * (jnp.cos(4 * q) - 1) + part["odd4"] * jnp.sin(4 * q)
    straight = part["even"] * q**2 + part["odd"] * q**3 + part["even2"] * q**4
    straight += part["odd2"] * q**5
    off = q - jnp.concatenate([jnp.zeros(1), q[:-1]])
    marker = part["marker_even"] * (jnp.cos(off) - 1) + part["marker_odd"] * jnp.sin(off)
    return q + jnp.where(np.array(layout.angles), bend, straight) + marker
