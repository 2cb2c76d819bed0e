"""The faults of measured data, put into perfect data: noise, gaps, uneven sampling."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.systems.sampling import LARGEST, generator


def thin(keep: float | int, times: Float[np.ndarray, "n T"], seed: int) -> np.ndarray:
    """`(n, K)` indices, ascending, of a random fraction `keep` of each trajectory's states.

    The first state always stays, so that all trajectories still begin together.
    """
    n, length = times.shape
    if not 0 < keep <= 1:
        raise UserError(f"subsample must be a fraction in (0, 1] of the states kept; got {keep}.")
    count = max(2, round(keep * length)) if length > 1 else 1
    order = generator(seed, "subsample").random((n, length))
    order[:, 0] = -1.0
    return np.sort(np.argsort(order, axis=1)[:, :count], axis=1)


def noise_levels(
    noise: Any, names: tuple[str, ...], q: np.ndarray, p: np.ndarray
) -> Float[np.ndarray, "2 d"]:
    """Standard deviations of the noise of `q` and of `p`, from a fraction, a mapping or an array.

    A fraction is taken of each coordinate's (momentum's) standard deviation over all states.
    """
    if isinstance(noise, Mapping):
        known = [*names, *(f"p_{name}" for name in names)]
        for name in noise:
            if name not in known:
                raise UserError(
                    f"noise names '{name}', which is neither a coordinate nor a momentum; "
                    f"known are {', '.join(known)}."
                )
        levels = np.array([float(noise.get(name, 0.0)) for name in known])
        levels = levels.reshape(2, len(names))
    else:
        levels = np.asarray(noise, dtype=np.float64)
        if levels.ndim == 0:
            levels = levels * np.stack([x.std(axis=(0, 1)) for x in (q, p)])
        elif levels.shape != (2, len(names)):
            raise UserError(
                f"noise must be a fraction, a mapping of names to standard deviations, or an "
                f"array of shape {(2, len(names))} (for q and p); got shape {levels.shape}."
            )
    if not ((levels >= 0).all() and (levels < LARGEST).all()):
        raise UserError(f"noise must be finite and not negative; got {noise}.")
    return levels


def check_faults(noise: Any, gaps: Any, subsample: Any, names: tuple[str, ...]) -> None:
    """A `UserError` about what makes no sense, before anything is solved."""
    one = np.ones((1, 2, len(names))) * [[0], [1]]
    try:
        noise_levels(noise, names, one, one)
        holes(gaps, (1, 2), 0)
        thin(subsample, one[..., 0], 0)
    except UserError:
        raise
    except (TypeError, ValueError):
        raise UserError(
            f"noise, gaps and subsample must be numbers; got {noise!r}, {gaps!r}, {subsample!r}."
        ) from None


def holes(fraction: float | int, shape: tuple[int, int], seed: int) -> np.ndarray:
    """`(n, T)` bool: a random `fraction` of each trajectory's states, never all of them."""
    if not 0 <= fraction < 1:
        raise UserError(f"gaps must be a fraction in [0, 1) of the states; got {fraction}.")
    count = min(round(fraction * shape[1]), shape[1] - 1)
    order = np.argsort(generator(seed, "gaps").random(shape), axis=1)
    return order.argsort(axis=1) < count
