"""Forecasts without a network: persistence and dynamic mode decomposition."""

import dataclasses
from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.blocks import window_starts
from dhn.errors import UserError
from dhn.estimator.answers import extended
from dhn.trajectories.container import Trajectories


def persistence(observed: Trajectories, steps: int) -> Trajectories:
    """Every later state is the last one observed."""

    def repeat(x):
        return np.repeat(x[:, -1:], steps, axis=1)

    momenta = None if observed.momenta is None else repeat(observed.momenta)
    return continued(observed, repeat(observed.q), momenta)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LinearDMD:
    """`x_{t+1} = [x_t, x_{t-1}, ...] A + c` for all trajectories: the best linear forecast.

    With `delays > 1` the operator sees several states, so that a trajectory carries its own
    constants and a mixture of several oscillations becomes linear (Hankel DMD).
    """

    operator: np.ndarray
    """(delays * 2d, 2d), newest state first, in standardised units."""
    offset: np.ndarray
    """(2d,)"""
    mean: np.ndarray
    scale: np.ndarray
    delays: int

    @classmethod
    def fit(cls, train: Trajectories, *, delays: int = 1, ridge: float = 0.0) -> "LinearDMD":
        """Least squares over all windows of known states; `ridge` is relative to their number."""
        return cls.fit_all(train, delays, (ridge,))[0]

    @classmethod
    def fit_all(
        cls, train: Trajectories, delays: int, ridges: Sequence[float]
    ) -> "list[LinearDMD]":
        """One model for each penalty, from one factorisation of the windows."""
        q, momenta = _states(train)
        x = np.concatenate([q, momenta], axis=-1)
        known = train.complete
        starts = window_starts(known, delays + 1)
        mean, scale = x[known].mean(0), x[known].std(0)
        scale = np.where(scale > 1e-12 * np.abs(x[known]).max(0), scale, 1.0)
        x = (x - mean) / scale
        time = starts[:, 1:] + np.arange(delays + 1)
        windows = x[starts[:, :1], time]
        past = windows[:, :-1][:, ::-1].reshape(len(windows), -1)
        # Centred, so that the offset is not penalised.
        centre, target = past.mean(0), windows[:, -1]
        goal = target.mean(0)
        both = np.concatenate([past - centre, target - goal], axis=1)
        triangle = np.asarray(np.linalg.qr(both, mode="r"))
        size = past.shape[1]
        found = []
        for ridge in ridges:
            penalty = np.eye(size, triangle.shape[1]) * np.sqrt(ridge * len(past))
            rows = np.concatenate([triangle, penalty])
            operator = np.linalg.lstsq(rows[:, :size], rows[:, size:], rcond=None)[0]
            found.append(cls(operator, goal - centre @ operator, mean, scale, delays))
        return found

    def forecast(self, observed: Trajectories, steps: int) -> Trajectories:
        """The observed states followed by `steps` predicted ones."""
        q, momenta = _states(observed)
        if observed.states < self.delays:
            raise UserError(
                f"this DMD sees {self.delays} states, but only {observed.states} were observed. "
                f"Observe more or fit it with fewer delays."
            )
        x = (np.concatenate([q, momenta], axis=-1) - self.mean) / self.scale
        past = x[:, : -self.delays - 1 : -1]
        found = []
        for _ in range(steps):
            new = past.reshape(len(x), -1) @ self.operator + self.offset
            past = np.concatenate([new[:, None], past[:, :-1]], axis=1)
            found.append(new)
        ahead = np.stack(found, axis=1) * self.scale + self.mean
        return continued(observed, *np.split(ahead, 2, axis=-1))


def continued(
    observed: Trajectories,
    q: Float[np.ndarray, "n steps d"],
    momenta: Float[np.ndarray, "n steps d"] | None,
) -> Trajectories:
    """The observed states followed by predicted ones, which are not known, on the same grid."""
    parts = {"q": (observed.q, q)}
    if momenta is not None and observed.momenta is not None:
        parts["v" if observed.p is None else "p"] = (observed.momenta, momenta)
    joined = {name: np.concatenate(x, axis=1) for name, x in parts.items()}
    asked = extended(observed, q.shape[1], observed.usual_step)
    return asked.replace(**{"p": None, "v": None, "noise": observed.typical_noise, **joined})


def _states(data: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    if data.momenta is None:
        raise UserError("this baseline needs momenta p or velocities v; these data have neither.")
    return data.q, data.momenta
