"""Error bars that mean what they say: bands widened to what held-out trajectories showed.

An ensemble knows what the codes and start states leave open; it does not know what the network
has wrong. Held-out trajectories know both. The half-width of a band is a factor times
`sqrt(spread² + error²)`: the ensemble's spread of this trajectory, and the typical error at this
horizon on held-out ones. The factor of each level is the quantile of the held-out errors in these
units, so that the bands cover there what they claim.
"""

import dataclasses
import itertools

import numpy as np
from jaxtyping import Float

LEVELS = (0.5, 0.9)
BINS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """Learned from held-out forecasts of `H` steps."""

    error: Float[np.ndarray, "H 2 d"]
    """Root mean square error of q and p at each horizon."""
    factors: Float[np.ndarray, "H levels 2"]
    """For q and for p."""

    @classmethod
    def fit(
        cls, errors: Float[np.ndarray, "m H 2 d"], spreads: Float[np.ndarray, "m H 2 d"]
    ) -> "Calibration":
        """From `m` forecasts; errors are NaN where nothing was measured.

        Neighbouring horizons share their factors, else few trajectories would mean noise. The
        horizon ends where the last measurement does.
        """
        measured = np.flatnonzero(np.isfinite(errors).any((0, 2, 3)))
        horizon = int(measured[-1]) + 1 if measured.size else 0
        errors, spreads = errors[:, :horizon], spreads[:, :horizon]
        counted = np.isfinite(errors)
        total = np.where(counted, errors, 0.0) ** 2
        error = np.sqrt(total.sum(0) / np.maximum(counted.sum(0), 1))
        units = np.abs(errors) / np.sqrt(spreads**2 + error**2 + 1e-30)
        edges = np.unique(np.linspace(0, horizon, BINS + 1).astype(int))
        factors = np.ones((horizon, len(LEVELS), 2))
        for first, last in itertools.pairwise(edges):
            for part in range(2):
                here = units[:, first:last, part]
                if np.isfinite(here).any():
                    factors[first:last, :, part] = np.nanquantile(here, LEVELS)
        return cls(error, factors)

    def half_widths(
        self, spread: Float[np.ndarray, "n h 2 d"]
    ) -> dict[float, Float[np.ndarray, "n h 2 d"]]:
        """Level -> half-width of its band. Past the held-out horizon the error grows on evenly."""
        steps, known = spread.shape[1], self.error.shape[0]
        row = np.minimum(np.arange(steps), known - 1)
        growth = np.maximum((np.arange(steps) + 1) / known, 1.0)[:, None, None]
        unit = np.sqrt(spread**2 + (self.error[row] * growth) ** 2)
        return {level: self.factors[row, i][..., None] * unit for i, level in enumerate(LEVELS)}

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"calibration/error": self.error, "calibration/factors": self.factors}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Calibration | None":
        if "calibration/error" not in arrays:
            return None
        return cls(arrays["calibration/error"], arrays["calibration/factors"])
