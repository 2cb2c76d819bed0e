"""Whether the learned flow has the true system's phase space, over many periods.

With one degree of freedom: the period at each energy, and the separatrix, the energy from which an
angle turns over. With two: Poincaré sections, the states in which a path crosses a plane.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, final

import jax.random as jr
import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, minimize
from scipy.spatial import KDTree

from dhn.blocks import Codes, StateBlock
from dhn.errors import UserError
from dhn.estimator.trained import TrainedModel
from dhn.evaluation.metrics import known_system
from dhn.reconstruct.forecast import forecast
from dhn.systems.simulation import simulate
from dhn.systems.system import System
from dhn.trajectories.container import Trajectories
from dhn.trajectories.period import characteristic_period

ENERGIES = 12
"""At which periods are compared."""
PERIODS = 10
"""Of small motions, for which each of them is followed: near the separatrix periods are longer."""
NEAR = 0.98
"""Share of the separatrix' energy up to which periods are compared."""
ROUNDS, TRIED = 3, 16
"""In which the learned separatrix is narrowed down, and energies tried in each."""
WIDE = (0.5, 1.5)
"""Times the true separatrix' energy between which the learned one is searched."""
ORBITS, CROSSINGS = 6, 150
"""Of sections, and how often each path should cross."""
MOST_STATES = 20_000
"""Of one path."""

Motion = Callable[[Trajectories, int], Trajectories]
"""Beginnings of paths, and how many states in all -> the whole paths."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class PeriodCurve:
    """One degree of freedom: periods at energies above rest, learned and true, for one system."""

    energies: Float[np.ndarray, " m"]
    learned: Float[np.ndarray, " m"]
    """Periods; NaN where the path does not come back."""
    true: Float[np.ndarray, " m"]
    seen: float
    """The highest energy that the data reach."""
    separatrix: tuple[float, float] | None
    """Energy from which the angle turns over, learned and true; None without an angle. The learned
    one is NaN outside `WIDE`."""

    def errors(self) -> Float[np.ndarray, " m"]:
        """Relative errors of the periods; infinite where the learned path does not come back."""
        error = np.abs(self.learned / self.true - 1)
        return np.where(np.isnan(error), np.inf, error)

    def summary(self) -> dict[str, Any]:
        """Plain numbers for tables and JSON."""
        inside = self.energies <= self.seen
        errors = self.errors()
        found = {
            "period_error_seen": float(np.median(errors[inside])) if inside.any() else None,
            "period_error_worst": float(errors.max()),
            "seen_energy": self.seen,
        }
        if self.separatrix is not None:
            learned, true = self.separatrix
            found["separatrix"] = None if np.isnan(learned) else learned
            found["separatrix_true"] = true
        return found

    def describe(self) -> str:
        """A few sentences for a person."""
        found = self.summary()
        words = f"Periods are off by {found['period_error_worst']:.2g} at most (relative)"
        if found["period_error_seen"] is not None:
            words += f", by {found['period_error_seen']:.2g} typically at energies of these data"
        if self.separatrix is None:
            return words + "."
        learned, true = self.separatrix
        if np.isnan(learned):
            return words + f". The learned angle never turns over near the true energy, {true:.4g}."
        reach = "within" if self.seen >= true else "beyond"
        return (
            f"{words}. The angle turns over from an energy of {learned:.5g} above rest; in truth "
            f"from {true:.5g}, which is {reach} what these data reach."
        )


@final
@dataclasses.dataclass(frozen=True, eq=False)
class PoincareSection:
    """Two degrees of freedom: states in which the second coordinate passes its mean upwards."""

    names: tuple[str, str]
    """The first coordinate, which is drawn with its momentum, and the second."""
    learned: tuple[Float[np.ndarray, "_ 2"], ...]
    """For each orbit, the first coordinate and its momentum at every crossing."""
    true: tuple[Float[np.ndarray, "_ 2"], ...]

    def distances(self) -> tuple[Float[np.ndarray, " orbits"], Float[np.ndarray, " orbits"]]:
        """How far sections are apart, in standard deviations of the true one.

        Returns:
            For each orbit the mean distance of a learned crossing to the nearest true one, and that
            of a true crossing to the nearest one in the other half of the true path: as far as
            sections of so few points lie apart by themselves.
        """
        apart, own = [], []
        for learned, true in zip(self.learned, self.true, strict=True):
            unit = true.std(0)
            a, b = learned / unit, true / unit
            half = len(b) // 2
            apart.append(KDTree(b).query(a)[0].mean() if len(a) else np.inf)
            both = KDTree(b[:half]).query(b[half:])[0], KDTree(b[half:]).query(b[:half])[0]
            own.append(np.concatenate(both).mean())
        return np.array(apart), np.array(own)

    def summary(self) -> dict[str, Any]:
        """Plain numbers for tables and JSON."""
        apart, own = self.distances()
        return {
            "section_distance": float(np.median(apart)),
            "section_distance_worst": float(apart.max()),
            "section_distance_true_halves": float(np.median(own)),
            "crossings": int(sum(map(len, self.true))),
        }

    def describe(self) -> str:
        """A few sentences for a person."""
        found = self.summary()
        return (
            f"{found['crossings']} crossings of {len(self.true)} orbits: learned sections are "
            f"{found['section_distance']:.2g} standard deviations from the true ones (median over "
            f"orbits; worst {found['section_distance_worst']:.2g}), the halves of a true path "
            f"{found['section_distance_true_halves']:.2g} from each other."
        )


def phase_space(
    trained: TrainedModel, data: Trajectories, codes: Codes
) -> PeriodCurve | PoincareSection | None:
    """Compare the flows of a trained model and of the system that the data name.

    Arguments:
        trained: A model that was trained with momenta.
        data: Trajectories of a known system.
        codes: (n, k) a code for each.

    Returns:
        The comparison; None for other than one or two degrees of freedom, with friction, without
        momenta, where the system is not known, or where true paths leave all bounds.
    """
    found = known_system(data.system, data.params)
    damped = np.any(data.params.get("gamma", 0.0))
    if found is None or damped or data.dim > 2 or data.p is None or trained.momenta != "p":
        return None
    system, params = found
    try:
        return _compared(trained, system, params, data, np.asarray(codes))
    except UserError:  # a true path that leaves all bounds
        return None


def _compared(
    trained: TrainedModel,
    system: System,
    params: Mapping[str, np.ndarray],
    data: Trajectories,
    codes: Codes,
) -> PeriodCurve | PoincareSection | None:
    at = {name: np.broadcast_to(values, len(data)) for name, values in params.items()}

    def learned(rows: np.ndarray) -> Motion:
        """The bare model with the codes of these trajectories."""

        def move(begun: Trajectories, states: int) -> Trajectories:
            q, p = trained.scaler.transform(begun)
            given = trained.forecaster.context_length
            start = StateBlock(q[:, :given], p[:, :given])
            ahead = forecast(trained.forecaster, start, codes[rows], states - given, jr.key(0))
            q, p = trained.scaler.inverse(
                np.concatenate([start.q, ahead.q], 1), np.concatenate([start.p, ahead.p], 1)
            )
            return begun.replace(
                q=np.asarray(q, float), p=np.asarray(p, float),
                v=None, t=trained.context.time_step * np.arange(states), known=None,
            )  # fmt: skip

        return move

    step = trained.context.time_step
    if data.dim == 1:
        varying = [values for values in at.values() if np.ptp(values) > 0]
        order = np.argsort(varying[0], kind="stable") if varying else np.arange(len(data))
        row = int(order[len(order) // 2])
        one = {name: float(values[row]) for name, values in at.items()}
        return period_curve(system, one, data, lambda n: learned(np.full(n, row)), step)
    rows = np.arange(min(len(data), ORBITS))
    some = {name: values[rows] for name, values in at.items()}
    return poincare_section(system, some, data[rows], learned(rows), step)


def period_curve(
    system: System,
    params: Mapping[str, float],
    data: Trajectories,
    learned: Callable[[int], Motion],
    step: float,
) -> PeriodCurve | None:
    """Periods of paths that begin at rest's coordinate with more and more momentum.

    Arguments:
        system: Of one degree of freedom.
        params: Its constants.
        data: Trajectories that tell which energies were seen.
        learned: Number of paths -> motion of a model of the same constants.
        step: Of the model's time grid.

    Returns:
        The curve; None where the data show no oscillation about a rest.
    """
    period = characteristic_period(data)
    if period is None:
        return None
    assert data.p is not None
    known = np.asarray(data.complete)

    def above(q: Any, p: Any) -> np.ndarray:
        q, p = (np.reshape(np.asarray(x, float), (1, -1, 1)) for x in (q, p))
        values = {name: np.array([value]) for name, value in params.items()}
        return np.asarray(system.energy(q, p, values))[0]

    start = [float(np.mean(data.q[known]))]
    centre = float(minimize(lambda q: float(above(q[0], 0.0)[0]), start, tol=1e-12).x[0])
    least = float(above(centre, 0.0)[0])
    highest = float(above(data.q[known], data.p[known]).max()) - least
    if not np.isfinite(least) or highest <= 0:
        return None

    def kicks(energies: np.ndarray) -> np.ndarray:
        """Momenta at rest's coordinate that have these energies."""
        assert data.p is not None
        top = float(np.abs(data.p[known]).max())
        while above(centre, top)[0] - least < energies.max() and np.isfinite(top):
            top *= 2.0
        return np.array(
            [brentq(lambda p, e=e: above(centre, p)[0] - least - e, 0.0, top) for e in energies]
        )

    states = min(int(np.ceil(PERIODS * period / step)) + 1, MOST_STATES)

    def paths(energies: np.ndarray) -> tuple[Trajectories, Trajectories]:
        begun = simulate(
            system, len(energies), params=dict(params), time_step=step, steps=states - 1,
            initial={data.names[0]: centre, f"p_{data.names[0]}": kicks(energies)},
        )  # fmt: skip
        return learned(len(energies))(begun, states), begun

    top, separatrix = highest, None
    if data.angles[0]:
        turn = np.linspace(-np.pi, np.pi, 2001)
        barrier = float(above(turn, np.zeros_like(turn)).max()) - least
        top = NEAR * barrier
        low, high = WIDE[0] * barrier, WIDE[1] * barrier
        turned = np.zeros(TRIED, bool)
        for _ in range(ROUNDS):
            energies = np.linspace(low, high, TRIED)
            turned = paths(energies)[0].q[:, -1, 0] - centre > 2 * np.pi
            first = int(np.argmax(turned))
            if not turned.any() or first == 0:
                break
            low, high = float(energies[first - 1]), float(energies[first])
        known_edge = turned.any() and not turned[0]
        separatrix = ((low + high) / 2 if known_edge else float("nan"), barrier)
    energies = np.linspace(0.05, 1.0, ENERGIES) * top
    got, want = paths(energies)
    return PeriodCurve(
        energies, measured_periods(got, centre), measured_periods(want, centre), highest, separatrix
    )


def measured_periods(paths: Trajectories, centre: float) -> Float[np.ndarray, " n"]:
    """Mean time between upward passages of `centre`; NaN for paths that pass less than twice."""
    times = [_passages(paths.t, q - centre) for q in paths.q[:, :, 0]]
    return np.array([np.diff(x).mean() if len(x) > 1 else np.nan for x in times])


def _passages(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Times behind the first state at which a path passes zero upwards."""
    if not np.isfinite(x).all():
        return np.empty(0)
    spline = CubicSpline(t, x)
    roots = spline.roots(extrapolate=False)
    roots = roots[np.isfinite(roots) & (roots > t[0] + 0.5 * (t[1] - t[0]))]
    return roots[spline(roots, 1) > 0]


def poincare_section(
    system: System, params: Mapping[str, np.ndarray], data: Trajectories, learned: Motion,
    step: float,
) -> PoincareSection | None:  # fmt: skip
    """Sections of long paths that begin at the first states of the data.

    Arguments:
        system: Of two degrees of freedom.
        params: Name -> (n,) its constants.
        data: n trajectories whose first states are known.
        learned: Motion of a model of the same constants.
        step: Of the model's time grid.

    Returns:
        The sections; None where the data show no oscillation.
    """
    period = characteristic_period(data)
    if period is None or not np.asarray(data.complete)[:, 0].all() or data.p is None:
        return None
    states = min(int(np.ceil(CROSSINGS * period / step)) + 1, MOST_STATES)
    initial = {}
    for i, name in enumerate(data.names):
        initial |= {name: data.q[:, 0, i], f"p_{name}": data.p[:, 0, i]}
    want = simulate(
        system, len(data), params=dict(params), time_step=step, steps=states - 1, initial=initial
    )
    got = learned(want, states)
    assert want.p is not None and got.p is not None
    sections: list[list[np.ndarray]] = [[], []]
    for k in range(len(data)):
        plane = float(np.mean(want.q[k, :, 1]))
        if data.angles[1]:
            plane = float(np.angle(np.exp(1j * want.q[k, :, 1]).mean()))
        for found, paths in zip(sections, (got, want), strict=True):
            assert paths.p is not None
            found.append(_crossings(paths.t, paths.q[k], paths.p[k, :, 0], plane, data.angles))
    if min(map(len, sections[1])) < 4:
        return None
    return PoincareSection((data.names[0], data.names[1]), tuple(sections[0]), tuple(sections[1]))


def _crossings(
    t: np.ndarray, q: Float[np.ndarray, "T 2"], p: Float[np.ndarray, " T"], plane: float,
    angles: tuple[bool, ...],
) -> Float[np.ndarray, "_ 2"]:  # fmt: skip
    """First coordinate and its momentum where the second passes the plane upwards."""
    ahead = q[:, 1] - plane
    times = _passages(t, np.sin(ahead) if angles[1] else ahead)
    if angles[1] and len(times):
        times = times[np.cos(CubicSpline(t, ahead)(times)) > 0]
    if not len(times):
        return np.empty((0, 2))
    first = CubicSpline(t, q[:, 0])(times)
    if angles[0]:
        first = np.remainder(first + np.pi, 2 * np.pi) - np.pi
    return np.stack([first, CubicSpline(t, p)(times)], axis=1)
