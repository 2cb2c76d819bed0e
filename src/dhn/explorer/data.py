"""What the page shows of data: where training states lie, and trajectories to start from."""

from typing import Any

import numpy as np
from scipy.spatial import KDTree

from dhn.blocks import Codes, StateBlock
from dhn.errors import UserError
from dhn.estimator.trained import TrainedModel
from dhn.explorer.arrays import encode
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

MOST_POINTS = 4000
"""Training states that the page keeps: 64 kB for two degrees of freedom."""
MOST_RUNS = 24
"""Trajectories that the page offers to start from."""
MOST_STATES = 512
"""States of each of them."""
OBSERVED = 16
"""States on which a shown trajectory's code is fitted, as in `dhn forecast`."""
NEAR = 0.99
"""Share of the training states that have another one within the radius of the region."""


def export_region(data: Trajectories, scaler: Scaler) -> dict[str, Any]:
    """Training states, and how near to one of them counts as inside.

    **Arguments:** `data`, the training set; `scaler`, the model's.

    **Returns:** `states`, packed `(m, 2d)` physical states `(q, p)`, angles within a turn; and
    `radius`, a distance in scaled units.
    """
    momenta = _momenta(data)
    q, p = data.q[data.complete], momenta[data.complete]
    q = np.where(data.angles, (q + np.pi) % (2 * np.pi) - np.pi, q)
    if len(q) < 2:
        raise UserError(f"the explorer needs at least 2 known states of data; got {len(q)}.")
    chosen = np.unique(np.linspace(0, len(q) - 1, MOST_POINTS).astype(int))
    q, p = q[chosen], p[chosen]
    scaled = np.concatenate([scaler.transform_q(q), scaler.transform_p(p)], axis=1)
    distance, _ = KDTree(scaled).query(scaled, k=2)
    radius = float(np.quantile(distance[:, 1], NEAR))
    return {"states": encode(np.concatenate([q, p], axis=1), "f4"), "radius": max(radius, 1e-6)}


def _momenta(data: Trajectories) -> np.ndarray:
    if data.momenta is None:
        raise UserError("the explorer shows states; these data have no momenta or velocities.")
    return data.momenta


def shown(data: Trajectories) -> tuple[Trajectories, int]:
    """The trajectories that the page offers, and how many of their first states fit the code."""
    _momenta(data)  # before codes are fitted
    rows = np.unique(np.linspace(0, len(data) - 1, MOST_RUNS).astype(int))
    chosen = data[rows, :MOST_STATES]
    return chosen, max(2, min(OBSERVED, chosen.states // 2))


def examples(trained: TrainedModel) -> tuple[Trajectories, Codes]:
    """Training trajectories that are stored in the model, with their codes: nothing is fitted.

    **Arguments:** `trained`, the model.

    **Returns:** at most `MOST_RUNS` complete trajectories, with NaN for parameters that the model
    does not hold, and their codes.
    """
    kept = trained.examples
    rows = np.flatnonzero(np.isfinite(kept.states).all((1, 2)))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(MOST_RUNS, len(rows))).astype(int))]
    states, codes = kept.states[rows].astype(float), kept.codes[rows]
    q, p = trained.scaler.inverse(*StateBlock.of(states))
    same = (codes[:, None] == trained.codes[None]).all(-1)
    held, place = same.any(1), same.argmax(1)
    data = Trajectories(
        q=q,
        p=p,
        t=trained.context.time_step * np.arange(q.shape[1]),
        ids=tuple(
            trained.ids[j] if found else f"example {i + 1}"
            for i, (found, j) in enumerate(zip(held, place, strict=True))
        ),
        params={name: np.where(held, x[place], np.nan) for name, x in trained.params.items()},
    )
    return data[:, :MOST_STATES], codes


def export_runs(data: Trajectories, codes: Codes) -> list[dict[str, Any]]:
    """Trajectories to start from, drawn beside the prediction.

    **Arguments:** `data`, of `n` trajectories; `codes`, fitted on their first states.

    **Returns:** for each: `id`, `params`, `code` (k,), and `q` and `p`, packed `(T, d)`.
    """
    momenta = _momenta(data)
    return [
        {
            "id": data.ids[i],
            # A parameter that is not known is NaN, which JSON does not have.
            "params": {
                name: float(values[i])
                for name, values in data.params.items()
                if np.isfinite(values[i])
            },
            "code": encode(codes[i], "f8"),
            "q": encode(data.q[i], "f4"),
            "p": encode(momenta[i], "f4"),
        }
        for i in range(len(data))
    ]
