"""Ratios of masses, estimated from the motion.

Action and reaction: where forces come from a potential, `m_i a_i` responds to `q_j` exactly as
`m_j a_j` does to `q_i`. So the accelerations of coupled coordinates give the ratio of their masses.
"""

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.files.foreign.grid import Gridded

WEAK = 3.0
"""Couplings below this many standard errors are treated as zero."""


def mass_ratios(runs: list[Gridded], dt: float) -> Float[np.ndarray, " d"]:
    """Masses up to a common factor (the first is 1), from a linear fit `a = -A q - B v + c`.

    Assumes constant masses, no coupling through velocities (as between the links of a pendulum),
    and motion near enough to an equilibrium for forces to be about linear.
    """
    before, after = _differences(runs, dt)
    d = after.shape[1]
    if len(before) < 4 * (2 * d + 1):
        raise UserError(
            f"masses cannot be estimated from {len(before)} states with known neighbours; "
            f"give them (mass)."
        )
    centred = before - before.mean(0)
    solution, *_ = np.linalg.lstsq(centred, after - after.mean(0), rcond=None)
    left = after - after.mean(0) - centred @ solution
    covariance = np.linalg.pinv(centred.T @ centred)
    error = np.sqrt(np.outer(np.diag(covariance), left.var(0)))[:d]
    coupling = np.where(np.abs(solution[:d]) > WEAK * error, solution[:d], 0.0).T
    rows = []
    for i in range(d):
        for j in range(i + 1, d):
            size = np.hypot(coupling[i, j], coupling[j, i])
            if coupling[i, j] * coupling[j, i] > 0:
                row = np.zeros(d)
                row[i], row[j] = coupling[i, j] / size, -coupling[j, i] / size
                rows.append(row)
    if len(rows) < d - 1:
        raise UserError(
            "the coordinates do not pull on each other strongly enough to estimate the ratios of "
            "their masses; give them (mass)."
        )
    masses = np.linalg.svd(np.array(rows))[2][-1]
    masses = masses / masses[0]
    if not (masses > 0).all():
        raise UserError(
            f"the motion does not look like masses pulling on each other (ratios "
            f"{np.round(masses, 3).tolist()}); give masses (mass)."
        )
    return masses


def _differences(runs: list[Gridded], dt: float) -> tuple[np.ndarray, np.ndarray]:
    """`[q, v]` of states whose neighbours are known, and their accelerations."""
    before, after = [], []
    for run in runs:
        if run.v is None or len(run) < 3:
            continue
        known = run.known & np.isfinite(run.v).all(-1)
        good = known[:-2] & known[1:-1] & known[2:]
        before.append(np.concatenate([run.q, run.v], axis=1)[1:-1][good])
        after.append(((run.v[2:] - run.v[:-2]) / (2 * dt))[good])
    return np.concatenate(before), np.concatenate(after)
