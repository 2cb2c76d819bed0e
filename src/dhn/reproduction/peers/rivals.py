"""Forecasts from one state by methods without a Hamiltonian network, in one harness.

All of them learn maps or rates of the whole state `(q, p)`. Settings are chosen on a tenth of the
training runs that fitting leaves out, by the error of forecasts from their first states.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import KDTree

from dhn.errors import UserError
from dhn.trajectories.container import Trajectories

States = Float[np.ndarray, "n m"]
Step = Callable[[States], States]
Fitted = Callable[[Trajectories, int], Trajectories]

MOST = 2500
"""Training pairs of kernel ridge; a kernel matrix of more takes minutes."""
WIDTHS = (1.0, 3.0, 10.0)
"""Widths of the kernel over the median distance of two states."""
RIDGES = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
"""Relative to the number of training pairs."""
THRESHOLDS = (1e-3, 1e-2, 1e-1)
"""Coefficients that PySINDy drops, in units of the data."""
HELD_OUT = 10
"""One run of so many chooses settings."""
FAR = 1e6
"""Size of a state, in standard deviations, at which a diverging forecast is stopped."""


def fit_rival(name: str, train: Trajectories) -> Fitted:
    """A forecaster by name.

    Arguments:
        name: One of `RIVALS`.
        train: Runs with momenta on one even grid.

    Returns:
        Function of trajectories of one state and a number of steps.
    """
    if name not in RIVALS:
        raise UserError(f"unknown rival {name!r}; expected one of {', '.join(RIVALS)}.")
    return RIVALS[name](train)


def _states(data: Trajectories) -> Float[np.ndarray, "n T m"]:
    assert data.p is not None
    return np.concatenate([data.q, data.p], axis=-1)


def _split(train: Trajectories) -> tuple[Trajectories, Trajectories]:
    """Runs to fit and runs to choose by; a single run serves both."""
    if len(train) < 2:
        return train, train
    chosen = np.arange(len(train)) % HELD_OUT == HELD_OUT - 1
    if not chosen.any():
        chosen[-1] = True
    return train[np.flatnonzero(~chosen)], train[np.flatnonzero(chosen)]


def _pairs(train: Trajectories) -> tuple[States, States]:
    """Known neighbouring states."""
    x = _states(train)
    whole = np.asarray(np.isfinite(x).all(-1))
    both = whole[:, :-1] & whole[:, 1:]
    return x[:, :-1][both], x[:, 1:][both]


def _rolled(
    step: Step, x: States, steps: int, size: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "n T m"]:
    """The map applied again and again; runs that leave all bounds become NaN."""
    path = [x]
    for _ in range(steps):
        x = step(x)
        x = np.where((np.abs(x) < FAR * size).all(-1, keepdims=True), x, np.nan)
        path.append(x)
    return np.stack(path, axis=1)


def _forecaster(step: Step, train: Trajectories) -> Fitted:
    """Forecasts on the grid of the training set by a map of one step."""
    h, size = train.time_step, _spread(train)

    def forecast(start: Trajectories, steps: int) -> Trajectories:
        with np.errstate(all="ignore"):
            path = _rolled(step, _states(start)[:, -1], steps, size)
        q, p = np.split(path, 2, axis=-1)
        return start.replace(q=q, p=p, t=h * np.arange(steps + 1), known=None)

    return forecast


def _spread(train: Trajectories) -> Float[np.ndarray, " m"]:
    return np.nanstd(_states(train), axis=(0, 1)) + 1e-12


def _chosen(train: Trajectories, candidates: Callable[[Trajectories], Iterator[Step]]) -> Fitted:
    """The candidate with the smallest error of forecasts over the held-out runs."""
    part, held = _split(train)
    truth = _states(held)
    size = _spread(part)
    best: tuple[float, Step] | None = None
    for step in candidates(part):
        with np.errstate(all="ignore"):
            found = _rolled(step, truth[:, 0], held.states - 1, size)
            error = np.abs((found - truth) / size)[np.isfinite(truth)]
        score = float(np.mean(np.where(np.isfinite(error), np.minimum(error, FAR), FAR)))
        if best is None or score < best[0]:
            best = (score, step)
    assert best is not None
    return _forecaster(best[1], train)


def _features(angles: tuple[bool, ...]) -> Callable[[States], States]:
    """Sine and cosine of angles, everything else as it is."""
    turning = np.array([*angles, *(False for _ in angles)])

    def features(x: States) -> States:
        return np.concatenate(
            [np.sin(x[:, turning]), np.cos(x[:, turning]), x[:, ~turning]], axis=1
        )

    return features


def _kernel_ridge(train: Trajectories) -> Fitted:
    """Gaussian kernel from the features of a state to its change in one step."""
    features = _features(train.angles)

    def candidates(part: Trajectories) -> Iterator[Step]:
        before, after = _pairs(part)
        rows = np.linspace(0, len(before) - 1, min(MOST, len(before))).astype(int)
        x, change = features(before[rows]), (after - before)[rows]
        centre, size = x.mean(0), x.std(0) + 1e-12
        x = (x - centre) / size
        mean, spread = change.mean(0), change.std(0) + 1e-12
        square = ((x[:, None] - x[None]) ** 2).sum(-1)
        middle = np.median(square)
        for width, ridge in itertools.product(WIDTHS, RIDGES):
            scale = width**2 * middle
            kernel = np.exp(-square / (2 * scale)) + ridge * len(x) * np.eye(len(x))
            try:
                weights = cho_solve(cho_factor(kernel), (change - mean) / spread)
            except np.linalg.LinAlgError:  # too little ridge for this width
                continue

            def step(state, weights=weights, scale=scale):
                here = (features(state) - centre) / size
                near = np.exp(-((here[:, None] - x[None]) ** 2).sum(-1) / (2 * scale))
                return state + mean + spread * (near @ weights)

            yield step

    return _chosen(train, candidates)


def _parrot(train: Trajectories) -> Fitted:
    """Repeat the changes that followed the nearest training state."""
    before, after = _pairs(train)
    features = _features(train.angles)
    x = features(before)
    centre, size = x.mean(0), x.std(0) + 1e-12
    tree = KDTree((x - centre) / size)
    change = after - before

    def step(state: States) -> States:
        here = np.nan_to_num((features(state) - centre) / size)
        return state + change[tree.query(here)[1]]

    return _forecaster(step, train)


def _dmd(train: Trajectories) -> Fitted:
    """The best affine map of one step."""
    before, after = _pairs(train)
    centre, goal = before.mean(0), after.mean(0)
    operator = np.linalg.lstsq(before - centre, after - goal, rcond=None)[0]
    return _forecaster(lambda x: goal + (x - centre) @ operator, train)


def _persistence(train: Trajectories) -> Fitted:
    """Every later state is the first one."""
    return _forecaster(lambda x: x, train)


def _sindy(train: Trajectories) -> Fitted:
    """PySINDy: sparse rates of change, integrated by Runge-Kutta steps on the data's grid."""
    try:
        import pysindy  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UserError("the rival 'sindy' needs PySINDy: pip install pysindy.") from None
    time_step = train.time_step
    angles = any(train.angles)
    libraries: list[Any] = [pysindy.PolynomialLibrary(degree=k) for k in (2, 3)]
    if angles:
        libraries.append(
            pysindy.PolynomialLibrary(degree=2) + pysindy.FourierLibrary(n_frequencies=1)
        )

    def candidates(part: Trajectories) -> Iterator[Step]:
        runs = [x[np.isfinite(x).all(-1)] for x in _states(part)[: MOST // 10]]
        runs = [x for x in runs if len(x) > 4]
        for library, threshold in itertools.product(libraries, THRESHOLDS):
            model = pysindy.SINDy(
                optimizer=pysindy.STLSQ(threshold=threshold),
                feature_library=library,
                differentiation_method=pysindy.FiniteDifference(order=4),
            )
            try:
                model.fit(runs, t=time_step)
            except (ValueError, np.linalg.LinAlgError):  # a threshold that drops everything
                continue
            yield _runge_kutta(model, time_step)

    return _chosen(train, candidates)


def _runge_kutta(model: Any, time_step: float) -> Step:
    """One step of the grid by four classical Runge-Kutta steps."""
    h = time_step / 4

    def rate(x):
        # Its input check refuses what a diverging forecast makes.
        return np.asarray(model.predict(np.clip(np.nan_to_num(x), -FAR, FAR)))

    def step(x: States) -> States:
        for _ in range(4):
            k1 = rate(x)
            k2 = rate(x + h / 2 * k1)
            k3 = rate(x + h / 2 * k2)
            k4 = rate(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x

    return step


RIVALS: dict[str, Callable[[Trajectories], Fitted]] = {
    "persistence": _persistence,
    "dmd": _dmd,
    "parrot": _parrot,
    "kernel": _kernel_ridge,
    "sindy": _sindy,
}
"""Name of a method -> what fits it."""
