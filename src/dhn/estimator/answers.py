"""What can be asked of a trained model. Every question is a mask in and a view out."""

import abc
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.checks import whole
from dhn.errors import UserError
from dhn.estimator.reconstruction import Reconstruction
from dhn.files.accepting import TrajectoriesLike, as_trajectories
from dhn.memory import check_memory
from dhn.trajectories.container import Trajectories
from dhn.trajectories.selection import each_state

if TYPE_CHECKING:
    from dhn.estimator.mechanical import Mechanics
    from dhn.estimator.trained import TrainedModel

BYTES_PER_NUMBER = 200
"""Of each number of an answer at the peak: the question, the posterior and five quantiles, each
scaled and in the data's units, are some 25 arrays of float64."""


class AbstractAnswers(abc.ABC):
    """The questions that networks and mechanical models answer alike."""

    @abc.abstractmethod
    def reconstruct(
        self, data: TrajectoriesLike, *, samples: int = 0, seed: int = 0
    ) -> Reconstruction:
        """Everything that the known numbers of `data` determine about the rest.

        Arguments:
            data: Trajectories at any times; also a DataFrame, a Dataset, a dict of arrays or a
                path. A number is unknown where it is NaN or its state is not `known`: positions
                without momenta, one of two angles, gaps, later times.
            samples: Paths drawn for the quantiles of later times; 0 uses the linearised posterior.
            seed: Of the samples.

        Returns:
            All states with bands, codes, parameters with standard errors, and how well the model
            explains what is known.
        """

    @abc.abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Everything needed to use the model, into one folder.

        Arguments:
            path: The folder; it is made if it does not exist.
        """

    @property
    @abc.abstractmethod
    def time_step(self) -> float:
        """Spacing of the time grid on which forecasts are made."""

    @property
    @abc.abstractmethod
    def record(self) -> dict[str, Any]:
        """Seconds of training, size and origin of the training data."""

    @property
    @abc.abstractmethod
    def network(self) -> "TrainedModel | None":
        """The trained network that answers; a mechanical model has none."""

    @property
    @abc.abstractmethod
    def mechanics(self) -> "Mechanics | None":
        """The fitted mechanics that answer; a network has none."""

    @property
    @abc.abstractmethod
    def assumed_noise(self) -> np.ndarray:
        """(2, d) noise that is assumed of data that state none, in the data's units."""

    def forecast(
        self, observed: TrajectoriesLike, steps: int, *, samples: int = 0, seed: int = 0
    ) -> Trajectories:
        """The observed states followed by `steps` predicted ones, with quantiles.

        Arguments:
            observed: Trajectories on the model's time grid; numbers may be missing or noisy.
            steps: States to predict, at least 1.
            samples: Paths drawn from the posterior and rolled forward, from which quantiles are
                taken; 0 takes them from the linearised posterior, which is faster.
            seed: Of the samples.

        Returns:
            Observed and predicted states; `known` is False for predicted ones. Observed states
            keep their measured values.
        """
        asked = extended(as_trajectories(observed), steps, self.time_step)
        return keep_known(asked, self._view(asked, samples, seed))

    def complete(self, data: TrajectoriesLike, observe: int) -> Trajectories:
        """See the first `observe` states and predict the rest of each trajectory.

        Arguments:
            data: Trajectories on the model's time grid.
            observe: States of each that the model may see, at least 1.

        Returns:
            As many states as `data` has, with quantiles.
        """
        data = as_trajectories(data)
        if not 1 <= whole("observe", observe) < data.states:
            raise UserError(
                f"observe must lie between 1 and {data.states - 1}, one less than the "
                f"trajectories' {data.states} states; got {observe!r}."
            )
        return self.forecast(data[:, :observe], data.states - observe)

    def interpolate(self, sparse: TrajectoriesLike, factor: int) -> Trajectories:
        """`factor - 1` states between each two of `sparse`, on the model's time grid.

        Arguments:
            sparse: Trajectories whose time step is `factor` times the model's.
            factor: Time steps of the result per step of `sparse`.

        Returns:
            Trajectories on the fine grid, with quantiles.
        """
        sparse = as_trajectories(sparse)
        step = sparse.time_step / whole("factor", factor)
        if not np.isclose(step, self.time_step, rtol=1e-4):
            raise UserError(
                f"the model was trained with time step {self.time_step:.6g}, but these data have "
                f"{sparse.time_step:.6g} / {factor}. Use another factor, or train on this grid."
            )
        fine = refined(sparse, factor)
        return keep_known(fine, self._view(fine))

    def denoise(self, data: TrajectoriesLike, *, noise: np.ndarray | None = None) -> Trajectories:
        """The most probable states given noisy measurements; gaps are filled.

        Arguments:
            data: Noisy trajectories.
            noise: (2, d) standard deviations of q and of p (or v), or (n, T, 2, d) of each number;
                by default the data's own.

        Returns:
            States with quantiles; `known` is False everywhere, since all are estimates.
        """
        data = as_trajectories(data)
        if noise is not None and self.mechanics is not None:
            raise UserError("fitted mechanics know the noise of their sensor; leave noise out.")
        data = data if noise is None else data.replace(noise=noise)
        if data.noise is None and not self.assumed_noise.any():
            raise UserError(
                "denoising needs the noise of the measurements; give noise=(2, d) standard "
                "deviations of q and p, or data that carry them."
            )
        found = self._view(data)
        return found.replace(known=np.zeros(found.q.shape[:2], bool))

    def _view(self, data: Trajectories, samples: int = 0, seed: int = 0) -> Trajectories:
        found = self.reconstruct(data, samples=samples, seed=seed)
        if (line := found.warning()) is not None:
            warnings.warn(line, stacklevel=3)
        return found.trajectories


def check_room(data: Trajectories, states: int, samples: int = 0) -> None:
    """A `UserError` if an answer of so many states and samples does not fit into memory."""
    drawn = f", {samples} samples of each" if samples else ""
    check_memory(
        (BYTES_PER_NUMBER + 16 * samples) * 2 * data.dim * len(data) * states,
        f"an answer of {len(data)} trajectories of {states} states{drawn}",
        "ask for fewer states or samples, or about fewer trajectories at a time",
    )


def extended(data: Trajectories, steps: int, time_step: float) -> Trajectories:
    """`data` followed by `steps` unknown states, `time_step` apart."""
    count = whole("steps", steps)
    check_room(data, data.states + count)
    if not np.isfinite(data.times[:, -1]).all():
        raise UserError("a forecast needs trajectories of one length; forecast them one by one.")

    def longer(x):
        return np.concatenate([x, np.full((len(x), count, *x.shape[2:]), np.nan)], axis=1)

    ahead = time_step * np.arange(1, count + 1)
    t = np.concatenate([data.t, data.t[..., -1:] + ahead], axis=-1)
    known = np.concatenate([data.known, np.zeros((len(data), count), bool)], axis=1)
    return data.replace(t=t, known=known, **each_state(data, longer, bands=False))


def hidden(data: Trajectories, observe: int) -> Trajectories:
    """`data` with everything after the first `observe` states unknown."""
    later = np.arange(data.states) >= observe

    def blank(x):
        return None if x is None else np.where(later[:, None], np.nan, x)

    return data.replace(
        q=blank(data.q), p=blank(data.p), v=blank(data.v), known=data.known & ~later,
        q_quantiles={}, p_quantiles={},
    )  # fmt: skip


def refined(sparse: Trajectories, factor: int) -> Trajectories:
    """`sparse` with `factor - 1` unknown states between each two of its own."""
    n, m, _ = sparse.q.shape
    states = (m - 1) * factor + 1
    check_room(sparse, states)

    def wider(x):
        fine = np.full((n, states, *x.shape[2:]), np.nan)
        fine[:, ::factor] = x
        return fine

    known = np.zeros((n, states), bool)
    known[:, ::factor] = sparse.known
    start = sparse.t[0] if sparse.t.ndim == 1 else sparse.t[:, :1]
    t = start + np.arange(states) * (sparse.time_step / factor)
    return sparse.replace(t=t, known=known, **each_state(sparse, wider, bands=False))


def keep_known(data: Trajectories, found: Trajectories) -> Trajectories:
    """`found` with the measured numbers of `data` in place of their estimates."""

    def kept(measured, estimate):
        if measured is None or estimate is None:
            return estimate
        seen = np.asarray(data.known)[..., None] & np.isfinite(measured)
        return np.where(seen, measured, estimate)

    return found.replace(
        q=kept(data.q, found.q), p=kept(data.p, found.p), v=kept(data.v, found.v), noise=data.noise
    )
