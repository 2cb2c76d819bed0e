"""Where training trajectories pass at given times, to test whether a new one passes there too.

Starts from narrow ranges fill a thin tube around one orbit, which the range of every single
coordinate contains many times over. A section is the Gaussian of all training states at one time.
A trajectory is compared with every section, so one that begins later on the same orbit counts as
covered. Starts from wide ranges make wide sections, which decide nothing.
"""

import dataclasses
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.reconstruct.question import States

SPACING = 8
"""States between two sections."""
COMPARED = 2 * SPACING
"""First states of a trajectory that are compared: some of them pass close to a section."""
ORDINARY = 0.99
"""Share of stretches of training trajectories within `reach`; their beginnings all are."""
MOST = 256
"""Sections; those of longer trajectories are further apart."""
ENOUGH = 10
"""Training states per dimension that a section is estimated from; with fewer there is none."""
SAMPLE = 4096
"""Training trajectories, spread over the set, from which sections are estimated."""
RESOLUTION = 1e-3
"""Standard deviation in scaled units below which sections are not resolved."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Sections:
    """Gaussians of the training states at some times."""

    mean: Float[np.ndarray, "s m"]
    axes: Float[np.ndarray, "s m m"]
    """Columns are principal axes, each as long as its standard deviation."""
    reach: Float[np.ndarray, ""]
    """Distance within which nearly all training trajectories lie; zero without sections."""

    @classmethod
    def make(cls, states: States) -> "Sections":
        """From the scaled training set; unknown numbers are NaN."""
        states = states[:: max(1, -(-len(states) // SAMPLE))]
        T, m = states.shape[1:]
        spacing = max(SPACING, -(-T // MOST))
        complete = np.asarray(np.isfinite(states).all(-1))
        times = [k for k in range(0, T, spacing) if complete[:, k].sum() >= ENOUGH * m]
        means, axes = np.zeros((len(times), m)), np.zeros((len(times), m, m))
        for place, k in enumerate(times):
            here = states[complete[:, k], k]
            means[place] = here.mean(0)
            before, after = max(k - 1, 0), min(k + 1, T - 1)
            both = complete[:, before] & complete[:, after]
            moved = (states[both, after] - states[both, before]).sum(0)
            # States between two times of the grid: along the flow a step is no distance.
            step = moved / max(both.sum(), 1) / max(after - before, 1)
            spread = np.cov(here.T).reshape(m, m) + np.outer(step, step)
            variance, directions = np.linalg.eigh(spread + RESOLUTION**2 * np.eye(m))
            axes[place] = directions * np.sqrt(variance)
        made = cls(means.astype(np.float32), axes.astype(np.float32), np.array(0.0))
        begins = (0, T // 3, 2 * T // 3)
        known = [states[complete[:, b : b + COMPARED].all(1), b : b + COMPARED] for b in begins]
        found = [made.distance(x, np.zeros(x.shape[:2])) for x in known]
        if not np.concatenate(found).any():  # no stretch is complete, or all are too short
            return cls(made.mean[:0], made.axes[:0], made.reach)
        reach = max(np.quantile(np.concatenate(found), ORDINARY), found[0].max(initial=0.0))
        return dataclasses.replace(made, reach=np.array(reach))

    def distance(
        self, states: States, deviation: Float[np.ndarray, "n T"]
    ) -> Float[np.ndarray, " n"]:
        """Distance of each trajectory's first states from the nearest section.

        Arguments:
            states: Scaled.
            deviation: Their standard deviations, the largest of a state's numbers.

        Returns:
            In standard deviations of section and state together; zero without sections, and for
            trajectories so short that they may lie between two of them.
        """
        if states.shape[1] < SPACING or not len(self.mean):
            return np.zeros(len(states))
        first, noise = states[:, :COMPARED], deviation[:, :COMPARED, None] ** 2
        found = np.full(first.shape[:2], np.inf)
        for mean, axes in zip(self.mean, self.axes, strict=True):
            length = np.sqrt((axes**2).sum(0))
            along = (first - mean) @ (axes / length)
            found = np.minimum(found, (along**2 / (length**2 + noise)).sum(-1))
        return np.sqrt(found.min(1))
