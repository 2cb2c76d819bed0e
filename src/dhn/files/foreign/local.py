"""Local polynomial fits: Savitzky and Golay's filter, for even and uneven times alike."""

import numpy as np
from jaxtyping import Float
from numpy.polynomial import legendre

_CHUNK = 2048  # evaluation points at a time, to bound the memory of long recordings


def local_weights(
    t: Float[np.ndarray, " N"], at: Float[np.ndarray, " M"], window: int, order: int
) -> tuple[np.ndarray, Float[np.ndarray, "2 M w"]]:
    """First sample of each window, and the weights that give value and derivative at `at`.

    Each window holds the `window` samples nearest in index to its time; at the ends it is moved
    inwards, which is where the weights, and so the uncertainty, grow.
    """
    window = min(window, len(t))
    order = min(order, window - 1)
    nearest = np.clip(np.searchsorted(t, at), 0, len(t) - 1)
    left = np.clip(nearest - 1, 0, len(t) - 1)
    nearest = np.where(np.abs(t[left] - at) < np.abs(t[nearest] - at), left, nearest)
    first = np.clip(nearest - window // 2, 0, len(t) - window)
    times = t[first[:, None] + np.arange(window)]
    middle, half = (times[:, -1] + times[:, 0]) / 2, (times[:, -1] - times[:, 0]) / 2
    half = np.where(half > 0, half, 1.0)
    basis = legendre.legvander((times - middle[:, None]) / half[:, None], order)
    here = (at - middle) / half
    slopes = np.stack(
        [legendre.legval(here, legendre.legder(np.eye(order + 1)[k])) for k in range(order + 1)],
        axis=-1,
    )
    targets = np.stack([legendre.legvander(here, order), slopes / half[:, None]], axis=-1)
    gram = np.einsum("mwi,mwj->mij", basis, basis)
    return first, np.einsum("mwi,mik->kmw", basis, np.linalg.solve(gram, targets))


def local_fit(
    t: Float[np.ndarray, " N"],
    x: Float[np.ndarray, " N"],
    at: Float[np.ndarray, " M"],
    window: int,
    order: int,
) -> tuple[Float[np.ndarray, "2 M"], Float[np.ndarray, "2 M"]]:
    """Value and derivative at `at`, and the gain of each: its deviation for unit noise in x."""
    values, gains = np.empty((2, len(at))), np.empty((2, len(at)))
    for start in range(0, len(at), _CHUNK):
        part = slice(start, start + _CHUNK)
        first, weights = local_weights(t, at[part], window, order)
        samples = x[first[:, None] + np.arange(weights.shape[2])]
        values[:, part] = np.einsum("kmw,mw->km", weights, samples)
        gains[:, part] = np.sqrt(np.square(weights).sum(-1))
    return values, gains
