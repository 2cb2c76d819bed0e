"""The marginal likelihood of whole runs and its Fisher information, by the filter's innovations."""

import dataclasses
import functools
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from dhn.mechanics.filtering import GATE, Rows, run_filter
from dhn.mechanics.layout import Layout

DIRECTIONS = 16
"""Derivatives taken in one call; a fixed number, so that one program serves every choice."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Stretches of training data, ready for the filter."""

    layout: Layout
    rows: Rows
    run: Int[np.ndarray, " S"]
    """System that each stretch belongs to; -1 for padding."""
    width: Float[np.ndarray, " d"]
    substeps: int
    outlier: Float[np.ndarray, " d"]
    """Cost of an outlier beyond its `GATE²/2`: half the logarithm of a wide variance."""

    @property
    def runs(self) -> int:
        """Number of systems with coefficients of their own."""
        return int(self.run.max()) + 1


@final
@dataclasses.dataclass(frozen=True)
class Slope:
    """Log-likelihood, its gradient and Fisher information in the fitted entries."""

    value: float
    gradient: Float[np.ndarray, " k"]
    information: Float[np.ndarray, "k k"]
    gated: int
    measured: int

    def take(self, places: Int[np.ndarray, " m"]) -> "Slope":
        """The derivatives in some of the entries."""
        information = self.information[np.ix_(places, places)]
        return dataclasses.replace(self, gradient=self.gradient[places], information=information)


@final
@dataclasses.dataclass(frozen=True)
class Entries:
    """Which entries are fitted: shared ones first, then those of every system in turn."""

    shared: Int[np.ndarray, " s"]
    own: Int[np.ndarray, " o"]
    runs: int

    @staticmethod
    def of(active: Bool[np.ndarray, " P"], own: Bool[np.ndarray, " P"], runs: int) -> "Entries":
        """From masks of the fitted entries and of those that differ by system."""
        return Entries(np.flatnonzero(active & ~own), np.flatnonzero(active & own), runs)

    @property
    def size(self) -> int:
        """Number of fitted numbers."""
        return len(self.shared) + self.runs * len(self.own)

    @property
    def columns(self) -> Int[np.ndarray, " k"]:
        """Entries of one system's vector."""
        return np.concatenate([self.shared, self.own])

    def places(self, run: int) -> Int[np.ndarray, " k"]:
        """Where the columns of a system lie in the fitted vector."""
        start = len(self.shared) + run * len(self.own)
        return np.concatenate(
            [np.arange(len(self.shared)), np.arange(start, start + len(self.own))]
        ).astype(int)

    def within(self, larger: "Entries") -> Int[np.ndarray, " k"]:
        """Where these entries lie in the fitted vector of a larger choice."""
        shared = np.searchsorted(larger.shared, self.shared)
        own = np.searchsorted(larger.own, self.own)
        starts = len(larger.shared) + len(larger.own) * np.arange(self.runs)
        return np.concatenate([shared, (starts[:, None] + own).ravel()]).astype(int)

    def gather(self, theta: Float[np.ndarray, "R P"]) -> Float[np.ndarray, " k"]:
        """The fitted vector."""
        return np.concatenate([theta[0, self.shared], theta[:, self.own].ravel()])

    def scatter(
        self, theta: Float[np.ndarray, "R P"], values: Float[np.ndarray, " k"]
    ) -> Float[np.ndarray, "R P"]:
        """Coefficients with the fitted vector put in."""
        theta = theta.copy()
        for run in range(self.runs):
            theta[run, self.columns] = values[self.places(run)]
        return theta


@functools.partial(jax.jit, static_argnames=("layout", "substeps"))
def _sensitivities(layout, theta, rows, directions, width, substeps):
    def innovations(theta, rows):
        found = run_filter(layout, theta, rows, width, substeps)
        return (found.innovation, found.variance), (found.used, found.gated)

    def one(theta, rows):
        def along(direction):
            return jax.jvp(lambda z: innovations(z, rows), (theta,), (direction,))

        return jax.vmap(along, out_axes=(None, 0))(directions)

    return jax.vmap(one)(theta, rows)


def likelihood(problem: Problem, theta: Float[np.ndarray, "R P"], entries: Entries) -> Slope:
    """Log-likelihood of all stretches with derivatives in the fitted entries.

    Arguments: problem; theta: (R, P) coefficients of every system; entries: what is fitted.
    Returns: value, gradient (k,) and information (k, k).
    """
    layout, columns = problem.layout, entries.columns
    run = np.maximum(problem.run, 0)
    own = theta[run]
    parts = []
    out = None
    for start in range(0, max(len(columns), 1), DIRECTIONS):
        directions = np.zeros((DIRECTIONS, layout.size))
        for k, column in enumerate(columns[start : start + DIRECTIONS]):
            directions[k, column] = 1.0
        with jax.enable_x64(True):
            found = _sensitivities(
                layout, jnp.asarray(own), problem.rows, directions, problem.width, problem.substeps
            )
        out, tangents = jax.tree.map(np.asarray, found)
        parts.append(tangents[0])
    assert out is not None
    (e, s), (used, gated) = out
    value = -0.5 * (used * (e**2 / s + np.log(s))).sum()
    value -= (gated * (0.5 * GATE**2 + problem.outlier)).sum()
    de = np.concatenate([x[0] for x in parts], axis=1)[:, : len(columns)]
    ds = np.concatenate([x[1] for x in parts], axis=1)[:, : len(columns)]
    gradient, information = np.zeros(entries.size), np.zeros((entries.size, entries.size))
    keep = used[:, None] > 0
    de, ds = np.where(keep, de, 0.0) / np.sqrt(s)[:, None], np.where(keep, ds, 0.0) / s[:, None]
    unit = (e / np.sqrt(s))[:, None]
    for k, r in enumerate(problem.run):
        if r < 0:
            continue
        slopes = np.stack([de[k], ds[k] / np.sqrt(2)], axis=1).reshape(len(columns), -1)
        g = (-de[k] * unit[k] + 0.5 * ds[k] * (unit[k] ** 2 - 1)).sum((1, 2))
        places = entries.places(int(r))
        gradient[places] += g
        information[np.ix_(places, places)] += slopes @ slopes.T
    return Slope(float(value), gradient, information, int(gated.sum()), int((used + gated).sum()))
