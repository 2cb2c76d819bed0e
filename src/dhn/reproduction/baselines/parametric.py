"""The ceiling: the true equations, with the unknown constants fitted to the observed states."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from dhn.errors import UserError
from dhn.evaluation.extrapolation import continued
from dhn.systems import System, get_system, simulate
from dhn.trajectories.container import Trajectories

GRID = 9
"""Starting values tried for each free parameter, over its range."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ParametricFit:
    """The fitted system of every trajectory: constants and the state at the first observed time."""

    system: System
    params: Mapping[str, np.ndarray]
    """Name -> (n,), the fitted ones among them."""
    q: np.ndarray
    """(n, d) initial coordinates."""
    p: np.ndarray
    """(n, d) initial momenta."""
    damping: np.ndarray
    """(n,)"""
    cost: np.ndarray
    """(n,) mean squared residual over the observed states, in units of their noise or size."""

    def states(self, times: Any) -> Trajectories:
        """The fitted trajectories at these times, the first of which is the first observed."""
        return _run(self.system, self.params, self.damping, self.q, self.p, times)

    def forecast(self, observed: Trajectories, steps: int) -> Trajectories:
        """The observed states followed by `steps` of the fitted system."""
        h = observed.time_step
        later = observed.t[..., -1:] + h * np.arange(1, steps + 1)
        ahead = self.states(np.concatenate([observed.t, later], axis=-1))[:, observed.states :]
        assert ahead.p is not None
        return continued(observed, ahead.q, ahead.p)


def fit_system(
    observed: Trajectories,
    system: str | System,
    free: Sequence[str] | Mapping[str, tuple[float, float]] | None = None,
    *,
    shooting: bool = False,
) -> ParametricFit:
    """Fit the `free` parameters (default: those with a range) of each trajectory by least squares.

    `free` has names, or names with ranges where the system's own do not fit.
    The other parameters are taken as known. Ranges are both the starting grid and the bounds, since
    a ceiling may know what values are possible. With `shooting` the initial state is fitted as
    well, which noisy observations need; otherwise it is the first observed state.
    """
    from scipy.optimize import least_squares

    system = get_system(system)
    if observed.p is None:
        raise UserError("fitting a system needs momenta p; these data have none.")
    if not observed.known[:, 0].all():
        raise UserError("fitting a system needs the first state of every trajectory to be known.")
    ranges = _ranges(system, free)
    names = list(ranges)
    low, high = (np.array([ranges[name][i] for name in names]) for i in (0, 1))
    fixed = {
        name: observed.params[name]
        for name in system.params
        if name in observed.params and name not in ranges
    }
    gamma = observed.params.get("gamma", np.zeros(len(observed)))
    damping = np.zeros(len(observed)) if "gamma" in system.params else gamma
    unit_q, unit_p = _units(observed)

    def residual(unknown, rows):
        """(m, T * 2d) of `m` candidates for as many trajectories."""
        k, d = len(names), observed.dim
        params = {name: x[rows] for name, x in fixed.items()}
        params |= {name: unknown[:, i] for i, name in enumerate(names)}
        q, p = (unknown[:, k : k + d], unknown[:, k + d :]) if shooting else _first(observed, rows)
        times = observed.t if observed.t.ndim == 1 else observed.t[rows]
        predicted = _run(system, params, damping[rows], q, p, times)
        assert predicted.p is not None and observed.p is not None
        error = np.concatenate(
            [(predicted.q - observed.q[rows]) / unit_q, (predicted.p - observed.p[rows]) / unit_p],
            axis=-1,
        )
        return np.where(observed.known[rows][..., None], error, 0.0).reshape(len(rows), -1)

    start = _best_on_grid(residual, observed, low, high, shooting)
    bounds = (low, high)
    scale = high - low
    if shooting:
        open_end = np.full(2 * observed.dim, np.inf)
        bounds = (np.concatenate([low, -open_end]), np.concatenate([high, open_end]))
        scale = np.concatenate([scale, unit_q, unit_p])
    found, costs = [], []
    for row in range(len(observed)):
        # `least_squares` asks for value and slopes at the same place one after the other.
        last: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

        def both(x, row=row, last=last):
            if x.tobytes() not in last:
                step = 1e-6 * scale * np.where(x + 1e-6 * scale > bounds[1], -1, 1)
                moved = np.concatenate([x[None], x + np.diag(step)])
                predicted = residual(moved, np.full(len(moved), row))
                last.clear()
                last[x.tobytes()] = predicted[0], ((predicted[1:] - predicted[0]) / step[:, None]).T
            return last[x.tobytes()]

        answer = least_squares(
            lambda x, both=both: both(x)[0],
            start[row],
            jac=lambda x, both=both: both(x)[1],  # type: ignore[arg-type]
            bounds=bounds,
            x_scale=scale,
            xtol=1e-12,
            ftol=1e-12,
            gtol=1e-12,
        )
        found.append(answer.x)
        costs.append(2 * answer.cost / (observed.known[row].sum() * 2 * observed.dim))
    x = np.array(found)
    k, d = len(names), observed.dim
    q, p = (x[:, k : k + d], x[:, k + d :]) if shooting else _first(observed, slice(None))
    params = {**fixed, **{name: x[:, i] for i, name in enumerate(names)}}
    return ParametricFit(system, params, q, p, damping, np.array(costs))


def _ranges(system: System, free) -> dict[str, tuple[float, float]]:
    if isinstance(free, Mapping):
        return dict(free)
    varied = {name: value for name, value in system.params.items() if np.ndim(value) == 1}
    if free is None:
        free = tuple(varied)
    for name in free:
        if name not in varied:
            raise UserError(
                f"parameter '{name}' of '{system.name}' has no range to search; those with one "
                f"are {', '.join(varied) or 'none'}."
            )
    if not free:
        raise UserError(f"system '{system.name}' has no parameter with a range to fit.")
    return {name: varied[name] for name in free}


def _units(observed: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation of the noise where it is known, else the size of the states."""
    assert observed.p is not None
    noise = observed.typical_noise
    if noise is not None and (noise > 0).all():
        return noise[0], noise[1]
    sizes = (np.sqrt(np.mean(x[observed.known] ** 2, axis=0)) for x in (observed.q, observed.p))
    q, p = (np.where(size > 0, size, 1.0) for size in sizes)
    return q, p


def _first(observed: Trajectories, rows: Any) -> tuple[np.ndarray, np.ndarray]:
    assert observed.p is not None
    return observed.q[rows, 0], observed.p[rows, 0]


def _best_on_grid(residual, observed, low, high, shooting):
    """The best of a coarse grid for each trajectory: the landscape has more than one valley."""
    fraction = (np.arange(GRID) + 0.5) / GRID
    grid = np.array(
        list(itertools.product(*(a + fraction * (b - a) for a, b in zip(low, high, strict=True))))
    )
    rows = np.repeat(np.arange(len(observed)), len(grid))
    unknown = np.tile(grid, (len(observed), 1))
    if shooting:
        unknown = np.concatenate([unknown, *_first(observed, rows)], axis=1)
    cost = (residual(unknown, rows) ** 2).sum(1).reshape(len(observed), len(grid))
    return unknown.reshape(len(observed), len(grid), -1)[np.arange(len(observed)), cost.argmin(1)]


def _run(system: System, params, damping, q, p, times) -> Trajectories:
    initial = {name: q[:, i] for i, name in enumerate(system.coordinates)}
    initial |= {f"p_{name}": p[:, i] for i, name in enumerate(system.coordinates)}
    return simulate(
        system, len(q), params=params, initial=initial, times=times, damping=damping, seed=0
    )
