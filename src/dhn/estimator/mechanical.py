"""`Mechanics`: mass matrix, potential, friction and sensor fitted to measured positions.

For data without momenta. It answers the same questions as a network, at the data's own times.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from dhn.checks import mapping, seconds, whole
from dhn.errors import UserError
from dhn.estimator.answers import AbstractAnswers, check_room
from dhn.estimator.reconstruction import Reconstruction
from dhn.estimator.storage import check_run_folder, make_folder
from dhn.files.accepting import TrajectoriesLike, as_trajectories
from dhn.mechanics import MechanicalModel, fit_mechanics
from dhn.reconstruct.bands import LEVELS, Bands
from dhn.reconstruct.posterior import Result
from dhn.systems import System, get_system
from dhn.training.progress import open_progress
from dhn.training.storage import check_numbers, load_arrays, save_arrays, understanding
from dhn.trajectories.container import Trajectories

FILE = "mechanics.safetensors"
KIND = "mechanical model"


@final
class Mechanics(AbstractAnswers):
    """An estimator of mechanics from positions.

    Arguments:
        system: A system or its name, whose equations take the place of features; its parameters
            are fitted.
        params: What is known of them: name -> a number that holds it, or a pair that bounds it.
    """

    def __init__(self, system: str | System | None = None, params: Mapping[str, Any] | None = None):
        self.system = None if system is None else get_system(system)
        self.params = {} if params is None else mapping("params", params)
        if self.params and system is None:
            raise UserError("params belong to a system; name it, or leave them out.")
        self.fitted: MechanicalModel | None = None
        self.labels: dict[str, Any] = {}
        self.loaded = False

    def fit(
        self,
        train: TrajectoriesLike,
        *,
        validation: TrajectoriesLike | None = None,
        budget: float | int | str | None = None,
        directory: str | Path | None = None,
        progress: bool = False,
        source: dict[str, Any] | None = None,
    ) -> "Mechanics":
        """Fit the mechanics to these runs.

        Arguments:
            train: Runs with positions `q` at their own times, NaN where lost.
            validation: Later parts of the runs, which choose what is kept; by default the end of
                every run.
            budget: Seconds for the whole fit, or text such as "5m".
            directory: Receives the fitted model.
            progress: Print a line for every stage.
            source: Where the data come from, kept with the model.

        Returns:
            The estimator itself.
        """
        if self.loaded:
            raise UserError(
                "this model was loaded from a file, and fit would replace what it has learned; "
                "fit another: Mechanics().fit(...)."
            )
        begun = time.monotonic()
        budget = None if budget is None else seconds("budget", budget)
        train = as_trajectories(train)
        if validation is not None:
            validation = as_trajectories(validation)
            if (validation.dim, validation.angles) != (train.dim, train.angles):
                raise UserError(
                    f"the validation data have the coordinates {', '.join(validation.names)}, the "
                    f"training data {', '.join(train.names)}; they must be alike."
                )
        if directory is not None:
            directory = check_run_folder(directory)
        with open_progress(progress) as shown:
            self.fitted = fit_mechanics(
                train, validation, budget=budget, progress=shown.say, system=self.system,
                params=self.params,
            )  # fmt: skip
        self.labels = {
            "names": list(train.names),
            "units": dict(train.units),
            "system": train.system,
            "summary": {
                "seconds": time.monotonic() - begun,
                "trajectories": len(train),
                "fingerprint": train.fingerprint(),
                **({"data": source} if source else {}),
            },
        }
        if directory is not None:
            self.save(directory)
        return self

    @property
    def model(self) -> MechanicalModel:
        """The fitted mechanics."""
        if self.fitted is None:
            raise UserError("this model has not been fitted; call fit(...) first.")
        return self.fitted

    @property
    def record(self) -> dict[str, Any]:
        """Seconds, size and origin of the training data."""
        return self.labels["summary"] if self.model else {}

    def physics(self) -> dict[str, Any]:
        """The identified physics: masses, potential, friction, frequencies, sensor, noise."""
        return self.model.describe()

    def reconstruct(
        self, data: TrajectoriesLike, *, samples: int = 0, seed: int = 0
    ) -> Reconstruction:
        """See `AbstractAnswers.reconstruct`; bands come from the filter's covariance.

        Arguments:
            data: Trajectories whose unknown numbers are NaN or not `known`.
            samples: Mechanics draw none; 0.
            seed: Without effect, since nothing is drawn.

        Returns:
            All states with bands, and how well the model explains what is known.
        """
        data = as_trajectories(data)
        whole("seed", seed, 0)
        if whole("samples", samples, 0):
            raise UserError("mechanics draw no samples; leave samples at 0.")
        self._check(data)
        check_room(data, data.states)
        seen = data.known_q.any(-1)
        if (seen.sum(1) < 2).any():
            poor = data.ids[int(np.argmin(seen.sum(1)))]
            raise UserError(f"trajectory {poor!r} has fewer than two known positions.")
        last = int(np.flatnonzero(seen.any(0))[-1]) + 1
        masked = data.replace(
            q=np.where(data.known_q, data.q, np.nan), p=None, v=None, known=seen,
            p_quantiles={}, q_quantiles={},
        )  # fmt: skip
        observed = masked[:, :last]
        smoothed = self.model.smooth(observed)
        v, now = smoothed.v, np.zeros((len(data), last))
        quantiles = Bands.gaussian().quantiles(smoothed.reading, smoothed.q_sd, now)
        if last < data.states:
            ahead = self.model.forecast(observed, times=masked.times[:, last:], levels=LEVELS)
            later = {0.5: ahead.mean}
            for level, (below, above) in ahead.bands.items():
                later |= {round(0.5 - level / 2, 3): below, round(0.5 + level / 2, 3): above}
            v = np.concatenate([v, ahead.velocity], 1)
            quantiles = {k: np.concatenate([x, later[k]], 1) for k, x in quantiles.items()}
        q = quantiles[0.5]
        found = data.replace(q=q, v=v, p=None, q_quantiles=quantiles, p_quantiles={})
        # States before the first measurement are not reconstructed.
        begun = np.logical_or.accumulate(seen, axis=1) & np.isfinite(data.times)
        sound = [bool(np.isfinite(row[here]).all()) for row, here in zip(q, begun, strict=True)]
        return Reconstruction(
            trajectories=found,
            codes=np.zeros((len(data), 0)),
            code_covariance=np.zeros((len(data), 0, 0)),
            parameters={},
            fit=np.ones(len(data)),
            result=tuple(Result.OK if good else Result.NOT_CONVERGED for good in sound),
        )

    @property
    def time_step(self) -> float:
        """The usual spacing of the training data's times."""
        scale = self.model.mechanics.scale
        return float(scale.step * scale.time)

    @property
    def network(self) -> None:
        return None

    @property
    def mechanics(self) -> "Mechanics":
        return self

    @property
    def assumed_noise(self) -> np.ndarray:
        """(2, d): the noise is part of the fitted model, so that none need be stated."""
        return np.ones((2, self.model.mechanics.layout.dim))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Everything needed to use the model, into one folder.

        Arguments:
            path: The folder; it is made if it does not exist.
        """
        metadata = {"kind": KIND, "model": self.model.metadata(), **self.labels}
        save_arrays(make_folder(path) / FILE, metadata, self.model.to_arrays())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Mechanics":
        """The model that `save` wrote into a folder.

        Arguments:
            path: The folder.

        Returns:
            The model, ready to answer.
        """
        header, arrays = load_arrays(Path(path) / FILE, KIND)
        check_numbers(arrays, Path(path) / FILE, partly=("standard_errors",))
        found = Mechanics()
        found.loaded = True
        with understanding(Path(path) / FILE):
            found.fitted = MechanicalModel.from_arrays(arrays, header["model"])
            found.labels = {name: header[name] for name in ("names", "units", "system", "summary")}
        return found

    def _check(self, data: Trajectories) -> None:
        names = self.labels["names"]
        if data.dim != len(names):
            raise UserError(
                f"the model was fitted to {len(names)} coordinates ({', '.join(names)}), but these "
                f"data have {data.dim} ({', '.join(data.names)}). Use data of the same system."
            )
        if data.angles != self.model.mechanics.layout.angles:
            raise UserError(
                f"the model was fitted with angles={self.model.mechanics.layout.angles}, but these "
                f"data have {data.angles}. Use data of the same system, or set their angles."
            )
