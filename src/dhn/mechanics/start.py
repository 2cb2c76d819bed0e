"""A first model: the Euler-Lagrange equations fitted to local accelerations."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, final

import jax
import numpy as np
from jaxtyping import Bool, Float

from dhn.mechanics.classical import classical
from dhn.mechanics.layout import Layout
from dhn.mechanics.local import local_states
from dhn.mechanics.motion import acceleration
from dhn.mechanics.rest import RATE
from dhn.mechanics.rows import Run, Scale, filled, rounded_up, runs_of, scale_of, window_of
from dhn.systems import System
from dhn.trajectories import Trajectories
from dhn.trajectories.noise_level import noise_level

MOST = 4000
"""Rows used; more would change nothing and cost time."""
PADDED = (128, 512, 2048, 8192)
"""Rows that compiled programs take; the rows are repeated to fill them."""


NOISIER = 3.0
"""Times by which the noise of systems must differ for levels of their own."""
STARTS = 8
"""First guesses of a system's parameters."""
FIRST, LAST = 15, 60  # evaluations, of each first guess and of the best


@final
@dataclasses.dataclass(frozen=True)
class Start:
    """Coefficients to begin scoring from, and how well they explain local accelerations."""

    theta: Float[np.ndarray, " P"]
    residual: Float[np.ndarray, " d"]
    """Robust spread of what the accelerations leave over, as share of theirs, as measured."""
    width: Float[np.ndarray, " d"]
    noise: Float[np.ndarray, " d"]


def start_from(layout: Layout, runs: list[Run], scale: Scale) -> Start:
    """Regression on local quartics: linear first, then on accelerations with robust weights.

    Arguments: layout; runs of one system; scale.
    Returns: coefficients with noise levels.
    """
    window = window_of(scale)
    local = [local_states(x.t, x.y, x.seen, window, layout.angles) for x in runs]
    inner = [slice(window // 4, max(len(x) - window // 4, window // 4 + 1)) for x in runs]
    q, v, a = (
        np.concatenate([getattr(x, name)[part] for x, part in zip(local, inner, strict=True)])
        for name in ("q", "v", "a")
    )
    good = np.isfinite(q).all(-1) & np.isfinite(v).all(-1) & np.isfinite(a).all(-1)
    q, v, a = q[good], v[good], a[good]
    every = max(1, len(q) // MOST)
    q, v, a = q[::every], v[::every], a[::every]
    noise = np.maximum(np.median([x.noise for x in local], axis=0), 1e-5)
    chained = _chain(layout)
    rates = v - np.where(chained, np.concatenate([np.zeros((len(v), 1)), v[:, :-1]], 1), 0.0)
    width = np.maximum(np.sqrt((rates**2).mean(0)), 1e-6) / RATE
    active = layout.base()
    for name in ("log_white", "log_kick"):
        active[layout.slices[name]] = False
    if layout.classical is None:
        theta = _linear(layout, q, v, a, chained)
    else:
        tried = [_refined(layout, x, active, q, v, a, width, FIRST) for x in _spreads(layout)]
        theta = min(tried, key=lambda x: float(np.mean(np.abs(x[1]) / np.std(a, axis=0))))[0]
    theta, left = _refined(layout, theta, active, q, v, a, width, LAST)
    as_measured = np.diff(left, axis=1, prepend=0.0) if scale.relative else left
    motion = np.diff(a, axis=1, prepend=0.0) if scale.relative else a
    share = _spread(as_measured) / np.maximum(_spread(motion), 1e-12)
    kick = _spread(left) * np.sqrt(window * scale.step)
    theta[layout.slices["log_white"]] = np.log(noise)
    theta[layout.slices["log_kick"]] = np.log(np.clip(kick, 1e-4, 1.0))
    theta[layout.slices["log_slow"]] = np.log(1e-7)
    theta[layout.slices["log_slow_time"]] = np.log(np.pi)
    return Start(theta, share, width, noise)


def noise_differs(systems: list[list[Run]], dim: int) -> bool:
    """Whether some systems are measured with much more white noise than others.

    Arguments: systems: the runs of each; dim: coordinates.
    Returns: whether any coordinate is.
    """

    def level(runs: list[Run], k: int) -> float:
        seen = [x.seen[:, k] > 0 for x in runs]
        pairs = list(zip(runs, seen, strict=True))
        return noise_level([x.t[s] for x, s in pairs], [x.y[s, k] for x, s in pairs])

    noise = np.array([[level(x, k) for k in range(dim)] for x in systems])
    return bool((noise.max(0) > NOISIER * noise.min(0)).any())


def started(
    train: Trajectories, system: System | None, params: Mapping[str, Any]
) -> tuple[Layout, Scale, Start, list[Run]]:
    """Scale and start; for chains, angles against the link before where these fit better.

    Arguments: train; system: whose equations are the classical part, else features; params: what
        is known of its parameters.
    Returns: layout, scale, first coefficients, and the rows that a fit uses of the runs, scaled.
    """
    layout = Layout(train.angles)
    if system is not None:
        scale = scale_of(train)
        runs = _thinned(train, scale)
        middle = np.median(np.concatenate([x.y[x.seen.all(-1)] for x in runs]), axis=0)
        layout = Layout(train.angles, classical=classical(system, params, scale, middle))
        return layout, scale, start_from(layout, runs, scale.coarse), runs
    found = []
    chain = layout.dim > 1 and all(layout.angles)
    for relative in (False, True) if chain else (False,):
        scale = scale_of(train, relative)
        runs = _thinned(train, scale)
        start = start_from(layout, runs, scale.coarse)
        found.append((float(np.mean(start.residual)), relative, scale, start, runs))
    _, _, scale, start, runs = min(found, key=lambda x: (x[0], x[1]))
    return layout, scale, start, runs


def _thinned(train: Trajectories, scale: Scale) -> list[Run]:
    """The rows that a fit uses; in holes, too, none is further from the next than it should be."""
    some = (x.take(slice(None, None, scale.stride)) for x in runs_of(train, scale))
    return [filled(x, scale.coarse.step) for x in some]


def _spreads(layout: Layout) -> list[np.ndarray]:
    """Several first guesses of a system's parameters within their bounds: equations are not linear
    in them."""
    assert layout.classical is not None
    rng, (low, high) = np.random.default_rng(0), layout.bounds()
    place = layout.slices["params"]
    found = np.zeros((STARTS, layout.size))
    found[1:, place] = rng.normal(0, 1.5, (STARTS - 1, len(layout.classical.free)))
    found[:, layout.slices["viscous"]] = 1e-3
    return list(np.clip(found, low, high))


def _linear(layout: Layout, q: np.ndarray, v: np.ndarray, a: np.ndarray, chained: np.ndarray):
    """Least squares of the equations of motion, linear in masses, forces and viscosities."""
    d, active, places = layout.dim, layout.base(), layout.slices
    angle = np.array(layout.angles)
    turned = np.where(angle, q, 0.0)
    columns: list[tuple[str, int, np.ndarray]] = []

    def inertial(i: int, j: int) -> np.ndarray:
        delta = turned[:, i] - turned[:, j]
        return np.cos(delta) * a[:, j] + np.where(angle[j], np.sin(delta) * v[:, j] ** 2, 0.0)

    target = np.zeros((len(q), d))
    target[:, 0] = -inertial(0, 0)
    for k, (i, j) in enumerate(layout.pairs):
        if active[places["inertia"].start + k]:
            column = np.zeros((len(q), d))
            column[:, i] += inertial(i, j)
            if i != j:
                column[:, j] += inertial(j, i)
            columns.append(("mass", k, column))
        if active[places["stiffness"].start + k]:
            column = np.zeros((len(q), d))
            column[:, i] += q[:, j]
            if i != j:
                column[:, j] += q[:, i]
            columns.append(("stiffness", k, column))
    simple = {"sine": np.sin(q), "cosine": np.cos(q), "force": np.ones_like(q)}
    for name, values in simple.items():
        for i in np.flatnonzero(active[places[name]]):
            column = np.zeros((len(q), d))
            column[:, i] = values[:, i]
            columns.append((name, int(i), column))
    for i in range(d):
        column = np.zeros((len(q), d))
        rate = v[:, i] - (v[:, i - 1] if chained[i] else 0.0)
        column[:, i] += rate
        if chained[i]:
            column[:, i - 1] -= rate
        columns.append(("viscous", i, column))
    design = np.stack([x for _, _, x in columns], axis=-1).reshape(-1, len(columns))
    goal, weight = target.ravel(), np.ones(target.size)
    found = np.zeros(len(columns))
    for _ in range(5):  # robust: Huber's weights
        found = np.linalg.lstsq(design * weight[:, None], goal * weight, rcond=1e-10)[0]
        left = np.abs(goal - design @ found)
        weight = np.sqrt(np.minimum(1.0, 1.5 * np.median(left) / np.maximum(left, 1e-300)))
    theta, masses = np.zeros(layout.size), np.eye(d)
    for (name, k, _), value in zip(columns, found, strict=True):
        if name == "mass":
            i, j = layout.pairs[k]
            masses[i, j] = masses[j, i] = value
        else:
            theta[places[name].start + k] = max(value, 1e-3) if name == "viscous" else value
    theta[places["inertia"]] = _log_cholesky(layout, masses)
    return theta


def _log_cholesky(layout: Layout, masses: np.ndarray) -> np.ndarray:
    """Entries of L with `L Lᵀ` near the given masses, positive definite and `m_11 = 1`."""
    diagonal = np.sqrt(np.maximum(np.diag(masses), 1e-2))
    unit = np.clip(masses / diagonal[:, None] / diagonal, -0.95, 0.95)
    np.fill_diagonal(unit, 1.0)
    values, vectors = np.linalg.eigh(unit)
    unit = (vectors * np.maximum(values, 0.05)) @ vectors.T
    lower = np.linalg.cholesky(unit * diagonal[:, None] * diagonal)
    lower /= lower[0, 0]
    return np.array([np.log(lower[i, i]) if i == j else lower[i, j] for i, j in layout.pairs])


def _refined(
    layout: Layout, theta: np.ndarray, active: Bool[np.ndarray, " P"], q: np.ndarray, v: np.ndarray,
    a: np.ndarray, width: np.ndarray, most: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Nonlinear least squares of the accelerations themselves, with a robust loss."""
    entries, count = np.flatnonzero(active), len(q)
    low, high = layout.bounds()
    size = np.maximum(np.std(a, axis=0), 1e-9)
    rows = np.arange(rounded_up(count, PADDED)) % count
    q, v = q[rows], v[rows]

    def full(x: np.ndarray) -> np.ndarray:
        changed = theta.copy()
        changed[entries] = x
        return changed

    def value(x: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            found = np.asarray(_accelerations(layout, full(x), q, v, width))[:count]
        return np.nan_to_num((found - a) / size, nan=1e6, posinf=1e6, neginf=-1e6).ravel()

    def slope(x: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            found = np.asarray(_slopes(layout, full(x), entries, q, v, width))[:count]
        return np.nan_to_num(found / size[:, None]).reshape(-1, len(entries))

    from scipy.optimize import least_squares  # slow to import; only a fit needs it

    begin = np.clip(theta[entries], low[entries] + 1e-6, high[entries])
    spread = max(1.4826 * float(np.median(np.abs(value(begin)))), 1e-4)
    found = least_squares(
        value, begin, jac=slope, bounds=(low[entries] - 1e-9, high[entries]), loss="soft_l1",  # pyright: ignore
        f_scale=spread, x_scale="jac", max_nfev=most,
    )  # fmt: skip
    best = np.clip(found.x, low[entries], high[entries])
    return full(best), value(best).reshape(a.shape) * size


@functools.partial(jax.jit, static_argnames="layout")
def _accelerations(layout, theta, q, v, width):
    return jax.vmap(lambda q, v: acceleration(layout, theta, q, v, width))(q, v)


@functools.partial(jax.jit, static_argnames="layout")
def _slopes(layout, theta, entries, q, v, width):
    def along(x):
        return _accelerations(layout, theta.at[entries].set(x), q, v, width)

    return jax.jacfwd(along)(theta[entries])


def _chain(layout: Layout) -> np.ndarray:
    angle = np.array(layout.angles)
    return angle & np.concatenate([[False], angle[:-1]])


def _spread(x: np.ndarray) -> np.ndarray:
    return 1.4826 * np.median(np.abs(x - np.median(x, axis=0)), axis=0)
