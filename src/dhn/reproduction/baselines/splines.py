"""Interpolation without a network: straight lines, cubic splines, Hermite splines."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.systems.system import System
from dhn.trajectories.container import Trajectories

Slopes = Callable[[Trajectories], tuple[np.ndarray, np.ndarray | None]]
"""`(dq/dt, dp/dt)` at every state of some trajectories; the second may be unknown."""


def linear_interpolation(sparse: Trajectories, factor: int) -> Trajectories:
    """Straight lines between the known states."""

    def through(t, x, fine):
        return np.stack([np.interp(fine, t, column) for column in x.T], axis=-1)

    return _refine(sparse, factor, through)


def cubic_spline(sparse: Trajectories, factor: int) -> Trajectories:
    """The cubic spline through all known states of a trajectory (not-a-knot ends)."""
    from scipy.interpolate import CubicSpline

    return _refine(sparse, factor, lambda t, x, fine: CubicSpline(t, x)(fine))


def hermite_spline(sparse: Trajectories, factor: int, slopes: Slopes) -> Trajectories:
    """Cubic between neighbours with given slopes; momenta without slopes take a cubic spline."""
    from scipy.interpolate import CubicHermiteSpline, CubicSpline

    q_slope, p_slope = slopes(sparse)

    def q_through(row, t, x, fine, kept):
        return CubicHermiteSpline(t, x, q_slope[row, kept])(fine)

    def p_through(row, t, x, fine, kept):
        if p_slope is None:
            return CubicSpline(t, x)(fine)
        return CubicHermiteSpline(t, x, p_slope[row, kept])(fine)

    return _refine_rows(sparse, factor, q_through, p_through)


def system_slopes(system: System) -> Slopes:
    """Hamilton's equations of the true system, with each trajectory's true parameters."""

    def slopes(data: Trajectories) -> tuple[np.ndarray, np.ndarray | None]:
        if data.p is None:
            raise UserError("slopes from a system need momenta p; these data have none.")
        gamma = data.params.get("gamma", 0.0) if "gamma" not in system.params else 0.0
        params = {name: data.params[name] for name in system.params if name in data.params}
        return system.derivatives(data.q, data.p, params, gamma)

    return slopes


def _refine(sparse: Trajectories, factor: int, through: Callable) -> Trajectories:
    """One rule for q and p that needs the known states alone."""

    def ignoring_the_rest(row, t, x, fine, kept):
        return through(t, x, fine)

    return _refine_rows(sparse, factor, ignoring_the_rest, ignoring_the_rest)


def _refine_rows(
    sparse: Trajectories, factor: int, q_through: Callable, p_through: Callable
) -> Trajectories:
    """Every interval cut into `factor`; gaps are filled too. Known states keep their values."""
    if factor < 1:
        raise UserError(f"factor must be at least 1; got {factor}.")
    fine = refined_times(sparse.times, factor)
    momenta = sparse.momenta
    q = np.full((len(sparse), fine.shape[1], sparse.dim), np.nan)
    p = None if momenta is None else q.copy()
    known = np.zeros(q.shape[:2], bool)
    known[:, ::factor] = sparse.known
    for row in range(len(sparse)):
        kept = np.flatnonzero(sparse.known[row])
        if len(kept) < 2:
            raise UserError(
                f"interpolation needs two known states in every trajectory; trajectory "
                f"'{sparse.ids[row]}' has {len(kept)}."
            )
        # Nothing is extrapolated: states before the first and after the last known one stay empty.
        inside = slice(kept[0] * factor, kept[-1] * factor + 1)
        t, at = sparse.times[row, kept], fine[row, inside]
        q[row, inside] = q_through(row, t, sparse.q[row, kept], at, kept)
        if p is not None and momenta is not None:
            p[row, inside] = p_through(row, t, momenta[row, kept], at, kept)
    q[:, ::factor][sparse.known] = sparse.q[sparse.known]
    fields = {"q": q}
    if p is not None and momenta is not None:
        p[:, ::factor][sparse.known] = momenta[sparse.known]
        fields["p" if sparse.p is not None else "v"] = p
    times = fine[0] if sparse.t.ndim == 1 else fine
    return sparse.replace(
        t=times, known=known, noise=sparse.typical_noise, q_quantiles={}, p_quantiles={}, **fields
    )


def refined_times(times: Float[np.ndarray, "n m"], factor: int) -> Float[np.ndarray, "n T"]:
    """Every interval of time cut into `factor` equal parts."""
    fraction = np.arange(factor) / factor
    start, step = times[:, :-1, None], np.diff(times, axis=1)[..., None]
    inner = (start + fraction * step).reshape(len(times), -1)
    return np.concatenate([inner, times[:, -1:]], axis=1)
