"""Forecasts and smoothed paths of a fitted model, in the data's own units."""

import dataclasses
import functools
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from dhn.mechanics.filtering import GATE, Rows, iterate, run_filter
from dhn.mechanics.layout import NEVER_NEGATIVE, Layout
from dhn.mechanics.motion import energy
from dhn.mechanics.rows import Run, Scale, rounded_up, stacked
from dhn.mechanics.sensor import reading

PASSES = 3
"""Of the iterated smoother; later ones change nothing visible."""
BATCHES = (4, 64)
"""Pieces side by side; two shapes, so that new data rarely compile anew."""
FACTOR_STEP, MOST = 0.05, 3.0
"""Difference of the factor of friction for derivatives, and its greatest shift in units of its
spread."""
SPANS = (64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096)
"""Rows of a piece, for the same reason."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Mechanics:
    """What a forecast needs: units, coefficients of every system, the width of dry friction."""

    layout: Layout
    scale: Scale
    theta: Float[np.ndarray, "R P"]
    width: Float[np.ndarray, " d"]
    wander: float = 0.0
    """Standard deviation of the factor of friction from one window to another; forecasts take the
    most probable one, given what they have seen."""

    def energy(
        self, q: Float[np.ndarray, "L d"], v: Float[np.ndarray, "L d"], system: int = 0
    ) -> Float[np.ndarray, " L"]:
        """Energy of scaled states, in the data's units per inertia of the first coordinate.

        Arguments: q, v: (L, d); system: index.
        Returns: (L,).
        """
        with jax.enable_x64(True):
            found = _energies(self.layout, jnp.asarray(self.theta[system]), q, v)
        return np.asarray(found) * (self.scale.size[0] / self.scale.time) ** 2


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Predicted:
    """Readings that the model expects, for every row asked for, in scaled units."""

    mean: Float[np.ndarray, "n L d"]
    """Expected readings, slow error included."""
    variance: Float[np.ndarray, "n L d"]
    """Of a new reading: state, slow error and white noise."""
    state: Float[np.ndarray, "n L k"]
    """q, v and slow error, k = 3d."""
    state_variance: Float[np.ndarray, "n L k"]


@functools.partial(jax.jit, static_argnames="layout")
def _energies(layout, theta, q, v):
    return jax.vmap(lambda q, v: energy(layout, theta, q, v))(q, v)


@functools.partial(jax.jit, static_argnames=("layout", "substeps"))
def _predict(layout, theta, rows, width, substeps):
    d = layout.dim

    def one(theta, rows):
        found, smoothed, covariance = iterate(layout, theta, rows, width, substeps, PASSES)
        ahead = (jnp.cumsum(rows.seen.sum(-1)[::-1])[::-1] == 0)[:, None]
        state = jnp.where(ahead, found.mean, smoothed)
        cov = jnp.where(ahead[..., None], found.covariance, covariance)

        def read(state, cov):
            value = reading(layout, theta, state[:d]) + state[2 * d :]
            slope = jax.jacfwd(lambda q: reading(layout, theta, q))(state[:d])
            full = jnp.concatenate([slope, jnp.zeros((d, d)), jnp.eye(d)], axis=1)
            spread = (full[:, :, None] * cov[None] * full[:, None, :]).sum((1, 2))
            return value, spread + jnp.exp(2 * theta[layout.slices["log_white"]])

        value, spread = jax.vmap(read)(state, cov)
        cost = found.used * (found.innovation**2 / found.variance + jnp.log(found.variance))
        density = -0.5 * (cost + GATE**2 * found.gated).sum()
        return value, spread, state, jax.vmap(jnp.diagonal)(cov), density

    return jax.vmap(one)(theta, rows)


def predict(
    mechanics: Mechanics, pieces: list[Run], systems: Int[np.ndarray, " n"], forecast: bool
) -> Predicted:
    """Smoothed readings of all rows; beyond the last measurement, forecasts.

    Arguments: mechanics; pieces: runs, rows without measurements among them; systems: (n,) index
        of the system each belongs to; forecast: whether pieces are windows with a future,
        which may have friction of the moment, rather than whole runs.
    Returns: arrays padded to the longest piece.
    """
    theta = mechanics.theta[systems]
    if forecast and mechanics.wander > 0:
        theta = _of_the_moment(mechanics, pieces, theta)
    return Predicted(*_all_rows(mechanics, pieces, theta)[:-1])


def _of_the_moment(
    mechanics: Mechanics, pieces: list[Run], theta: Float[np.ndarray, "n P"]
) -> Float[np.ndarray, "n P"]:
    """Coefficients with the factor of friction that is most probable for each piece.

    The log-likelihood of a piece is taken as quadratic in the factor.
    """
    entries = np.concatenate([np.r_[mechanics.layout.slices[x]] for x in NEVER_NEGATIVE])

    def scaled(shift: Any) -> np.ndarray:
        found = theta.copy()
        found[:, entries] *= 1 + shift
        return found

    step, spread = FACTOR_STEP, mechanics.wander
    less, same, more = (_all_rows(mechanics, pieces, scaled(x))[-1] for x in (-step, 0, step))
    slope = (more - less) / (2 * step)
    curve = np.maximum(2 * same - more - less, 0.0) / step**2
    shift = np.nan_to_num(slope * spread**2 / (1 + curve * spread**2))
    return scaled(np.clip(shift, -MOST * spread, MOST * spread)[:, None])


def _all_rows(
    mechanics: Mechanics, pieces: list[Run], theta: Float[np.ndarray, "n P"]
) -> list[np.ndarray]:
    """What `_predict` gives for every piece with its own coefficients."""
    length = max(len(x) for x in pieces)
    found, batch = [], BATCHES[-1]
    for start in range(0, len(pieces), batch):
        part = pieces[start : start + batch]
        shape = (rounded_up(len(part), BATCHES), rounded_up(length, SPANS))
        rows = stacked(part, mechanics.scale, mechanics.layout.angles, shape)
        own = np.resize(theta[start : start + batch], (rows.step.shape[0], theta.shape[1]))
        with jax.enable_x64(True):
            out = _predict(
                mechanics.layout, jnp.asarray(own), rows, mechanics.width, mechanics.scale.substeps
            )
        found.append([np.asarray(x)[: len(part)] for x in out])
    *rows_of, density = (np.concatenate(x) for x in zip(*found, strict=True))
    return [*(x[:, :length] for x in rows_of), density]


@functools.partial(jax.jit, static_argnames=("layout", "substeps"))
def _density(layout, theta, rows, width, substeps):
    def one(theta, rows):
        found = run_filter(layout, theta, rows, width, substeps)
        cost = found.used * (found.innovation**2 / found.variance + jnp.log(found.variance))
        return -0.5 * cost.sum() - 12.5 * found.gated.sum()

    return jax.vmap(lambda t: jax.vmap(lambda r: one(t, r))(rows))(theta)


def likely_systems(mechanics: Mechanics, rows: Rows, count: int) -> Int[np.ndarray, " n"]:
    """The trained system under which each piece is most likely.

    Arguments: mechanics; rows of pieces; count: how many of them are not padding.
    Returns: (count,) indices.
    """
    if len(mechanics.theta) == 1:
        return np.zeros(count, int)
    with jax.enable_x64(True):
        value = np.asarray(
            _density(
                mechanics.layout,
                jnp.asarray(mechanics.theta),
                rows,
                mechanics.width,
                mechanics.scale.substeps,
            )
        )
    return np.argmax(value[:, :count], axis=0)
