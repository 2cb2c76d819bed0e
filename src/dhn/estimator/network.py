"""The answers of a trained network: through the engine, with codes and probes."""

import abc
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.checks import whole
from dhn.codes.probe import Probe
from dhn.errors import UserError
from dhn.estimator.answers import AbstractAnswers, check_room
from dhn.estimator.asking import answer, ask, denoised, read_back
from dhn.estimator.parameters import Parameters
from dhn.estimator.reconstruction import Reconstruction
from dhn.estimator.tracking import Tracker, check_noise
from dhn.files.accepting import TrajectoriesLike, as_trajectories
from dhn.models.registry import count_parameters
from dhn.reconstruct.posterior import Posterior, Result

if TYPE_CHECKING:
    from dhn.estimator.trained import TrainedModel


class AbstractNetworkAnswers(AbstractAnswers):
    """`TrainedModel` and every fitted estimator of a network."""

    @property
    @abc.abstractmethod
    def trained(self) -> "TrainedModel":
        """The trained model that answers."""

    @property
    def network(self) -> "TrainedModel":
        return self.trained

    @property
    def mechanics(self) -> None:
        return None

    def reconstruct(
        self,
        data: TrajectoriesLike,
        *,
        samples: int = 0,
        seed: int = 0,
        solver: str = "smooth",
    ) -> Reconstruction:
        """See `AbstractAnswers.reconstruct`.

        Arguments:
            data: Trajectories whose unknown numbers are NaN or not `known`.
            samples: Paths drawn for the quantiles; 0 uses the linearised posterior.
            seed: Of the samples.
            solver: "smooth", or the paper's "denoise": updates by H⁺ and H⁻ with a falling noise
                level over all windows, which keep known numbers and give no bands.

        Returns:
            All states with bands, codes, parameters, and how well the model explains what is known.
        """
        trained, data = self.trained, as_trajectories(data)
        samples, seed = whole("samples", samples, 0), whole("seed", seed, 0)
        check_room(data, data.states, samples)
        asked = ask(trained, data)
        if solver == "denoise":
            if samples:
                raise UserError("denoising draws no samples; leave samples at 0.")
            posterior = denoised(trained, asked, seed)
        elif solver == "smooth":
            posterior = answer(trained, asked, samples, seed)
        else:
            raise UserError(f"solver must be 'smooth' or 'denoise'; got {solver!r}.")
        root = posterior.code_root
        parameters = Parameters(trained, posterior.codes, root)
        return Reconstruction(
            trajectories=read_back(trained, data, asked, posterior),
            codes=posterior.codes,
            code_covariance=np.einsum("nkr,nlr->nkl", root, root),
            parameters=parameters,
            fit=posterior.fit,
            result=tuple(Result(code) for code in parameters.judged(posterior.result)),
        )

    def track(self, *, noise: np.ndarray | None = None, lag: int = 16) -> Tracker:
        """Follow one trajectory while it is being measured.

        Arguments:
            noise: (2, d) standard deviations of q and of p (or v) in the data's units; by default
                those of the training set.
            lag: States of the model's grid that tracking begins with, and that are solved for with
                every later measurement.

        Returns:
            A tracker; `tracker.update(t, q)` gives state, code and bands so far.
        """
        if noise is not None:
            noise = check_noise(noise, self.trained)
        return Tracker(self.trained, noise, whole("lag", lag, 4))

    def posterior(self, data: TrajectoriesLike) -> Posterior:
        """States and codes with covariances, on the model's grid and in its units.

        Arguments:
            data: As for `reconstruct`.

        Returns:
            The posterior, before it is brought back into the data's units.
        """
        return answer(self.trained, ask(self.trained, as_trajectories(data)))

    def encode(self, data: TrajectoriesLike) -> np.ndarray:
        """Latent codes of new trajectories.

        Arguments:
            data: As for `reconstruct`.

        Returns:
            (n, k) codes.
        """
        return self.posterior(data).codes

    def infer(self, data: TrajectoriesLike, target: str) -> np.ndarray:
        """A parameter of each trajectory, predicted from its code by the probe.

        Arguments:
            data: As for `reconstruct`.
            target: A parameter that the training data carry.

        Returns:
            (n,) estimates.
        """
        return self.probe(target)(self.encode(data))

    def probe(self, target: str, *, linear: bool = False) -> Probe:
        """Ridge regression from the training codes to a parameter of the training set.

        Arguments:
            target: A parameter that the training data carry.
            linear: The paper's linear probe; otherwise a kernel where cross-validation prefers it.

        Returns:
            A function of codes (n, k) that gives (n,).
        """
        trained = self.trained
        if not isinstance(target, str) or target not in trained.params:
            have = ", ".join(trained.params) or "none"
            raise UserError(
                f"the training data have no parameter {target!r} to learn from; they have: {have}."
            )
        values = trained.params[target]
        if np.ptp(values) == 0:
            raise UserError(
                f"{target} is {values[0]:g} in all training data, so that it cannot be inferred; "
                f"train on trajectories in which it varies."
            )
        key = (target, linear)
        if key not in trained.probes:
            trained.probes[key] = Probe.fit(trained.codes, values, linear=linear)
        return trained.probes[key]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Everything needed to use the model, into one folder.

        Arguments:
            path: The folder; it is made if it does not exist.
        """
        from dhn.estimator.storage import save

        save(self.trained, path)

    @property
    def record(self) -> dict[str, Any]:
        """Steps, seconds, final losses, size and origin of the training data."""
        return self.trained.summary

    @property
    def time_step(self) -> float:
        """Spacing of the model's time grid."""
        return self.trained.context.time_step

    @property
    def assumed_noise(self) -> np.ndarray:
        """(2, d) noise of the training set, in the data's units."""
        scaler = self.trained.scaler
        return self.trained.noise * np.stack([scaler.q_scale, scaler.p_scale])

    @property
    def parameters(self) -> int:
        """Trainable numbers, codes not counted."""
        return count_parameters(self.trained.model)
