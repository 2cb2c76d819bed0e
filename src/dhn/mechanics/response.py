"""Weights of the learned rest from the innovations' linear response to a force.

Innovations are linear in a small force along the run: it moves the predicted state, and the filter
corrects part of that at every measurement. With the filter's gains held, the most probable weights
are those of one regression of the innovations on their response to every feature.
"""

import functools
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dhn.mechanics.filtering import run_filter, smooth
from dhn.mechanics.layout import REST_WIDTH, Layout
from dhn.mechanics.likelihood import Problem
from dhn.mechanics.motion import acceleration
from dhn.mechanics.rest import RATE, features


@final
class Regressed(NamedTuple):
    """Weights of the learned rest."""

    weights: Float[np.ndarray, "R w"]
    """To be added to those of every system; all of the first coordinate's first."""
    gain: float
    """Nats that the likelihood is expected to gain by them."""
    effective: float
    """Number of weights that the data tell; noise alone would gain half a nat by each."""


@functools.partial(jax.jit, static_argnames=("layout", "wide", "substeps"))
def _filtered(layout, wide, theta, rows, width, substeps):
    def one(theta, rows):
        found = run_filter(layout, theta, rows, width, substeps)
        states = smooth(found)[0]
        d = layout.dim

        def here(state):
            q, v = state[:d], state[d : 2 * d]

            def moved(force):
                # The first feature is the constant one, so that its weights are a force.
                weights = jnp.zeros((d, wide.rest)).at[:, 0].set(force).ravel()
                whole = theta if layout.rest else jnp.append(theta, jnp.zeros(weights.shape))
                whole = whole.at[wide.slices["rest"]].add(weights)
                return acceleration(wide, whole, q, v, width)

            return jax.jacfwd(moved)(jnp.zeros(d)), features(layout.angles, q, v / (RATE * width))

        return found, *jax.vmap(here)(states)

    return jax.vmap(one)(theta, rows)


def regressed(
    problem: Problem, theta: Float[np.ndarray, "R P"], wide: Layout, width: float = REST_WIDTH,
    own: bool = False,
) -> Regressed:  # fmt: skip
    """The most probable weights, all other coefficients held.

    Arguments: problem; theta: (R, P) fitted coefficients; wide: the layout with a learned rest;
        width: standard deviation of a weight before the data are seen; own: whether every system
        has weights of its own.
    Returns: what is to be added to the weights, and the gain that is expected of it.
    """
    layout, real = problem.layout, problem.run >= 0
    rows = jax.tree.map(lambda x: x[real], problem.rows)
    with jax.enable_x64(True):
        found, inverse, shapes = jax.tree.map(
            np.asarray,
            _filtered(
                layout, wide, theta[problem.run[real]], rows, problem.width, problem.substeps
            ),
        )
    d, size = layout.dim, layout.dim * shapes.shape[-1]
    moved, before = np.zeros((len(shapes), 3 * d, size)), np.zeros((len(shapes), d, size))
    which = problem.run[real] if own else np.zeros(len(shapes), int)
    normal = np.tile(np.eye(size) / width**2, (which.max() + 1, 1, 1))
    right = np.zeros(normal.shape[:2])
    for t in range(shapes.shape[1]):
        h = rows.step[:, t, None, None]
        moved = found.transition[:, t] @ moved
        # (S, d, w) accelerations by unit weights, the mean over the step
        now = np.einsum("sai,sf->saif", inverse[:, t], shapes[:, t]).reshape(before.shape)
        pushed, before = (now + before) / 2, now
        moved[:, :d] += h**2 / 2 * pushed
        moved[:, d : 2 * d] += h * pushed
        for k in range(d):
            response = -np.einsum("sn,snw->sw", found.slope[:, t, k], moved)
            moved += found.gain[:, t, k, :, None] * response[:, None]
            weight = 1 / found.variance[:, t, k]
            for r in range(len(normal)):
                here = which == r
                x, w = response[here], weight[here]
                normal[r] += (x * w[:, None]).T @ x
                right[r] -= (w * found.innovation[here, t, k]) @ x
    weights = np.linalg.solve(normal, right[..., None])[..., 0]
    effective = weights.size - np.trace(np.linalg.inv(normal), axis1=1, axis2=2).sum() / width**2
    gain = 0.5 * float((right * weights).sum())
    return Regressed(np.broadcast_to(weights, (len(theta), size)), gain, float(effective))
