"""Cartesian markers on a chain of links to the links' angles."""

import numpy as np
from jaxtyping import Float


def link_angles(
    points: Float[np.ndarray, "N points 2"], y_down: bool = False
) -> tuple[Float[np.ndarray, "N links"], Float[np.ndarray, "N links"]]:
    """Angle and length of every link of a planar chain, pivot first and tip last.

    An angle is that of its own link against the downward vertical, counterclockwise positive, as
    in the built-in pendulums: a link of length l ends at `(l sin θ, -l cos θ)` from where it
    begins, with y upwards. Angles are in (-π, π]; unwrapping is another step.
    """
    link = np.diff(points, axis=1)
    x, up = link[..., 0], (-link[..., 1] if y_down else link[..., 1])
    return np.arctan2(x, -up), np.hypot(x, up)
