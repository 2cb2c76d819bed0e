"""The answers of a trained network: through the engine, with codes and probes."""

import abc
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dhn.codes.probe import Probe
from dhn.errors import UserError
from dhn.estimator.answers import AbstractAnswers, whole
from dhn.estimator.asking import answer, ask, denoised, read_back
from dhn.estimator.reconstruction import Reconstruction
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

    def reconstruct(
        self,
        data: TrajectoriesLike,
        *,
        samples: int = 0,
        seed: int = 0,
        solver: str = "smooth",
    ) -> Reconstruction:
        """See `AbstractAnswers.reconstruct`.

        `solver="denoise"` is the paper's: updates by H⁺ and H⁻ with a falling noise level over all
        windows. It keeps known numbers as they are and gives no bands.
        """
        trained, data = self.trained, as_trajectories(data)
        asked = ask(trained, data)
        if solver == "denoise":
            if samples:
                raise UserError("denoising draws no samples; leave samples at 0.")
            posterior = denoised(trained, asked, seed)
        elif solver == "smooth":
            posterior = answer(trained, asked, whole("samples", samples, 0), seed)
        else:
            raise UserError(f"solver must be 'smooth' or 'denoise'; got {solver!r}.")
        root = posterior.code_root
        return Reconstruction(
            trajectories=read_back(trained, data, asked, posterior),
            codes=posterior.codes,
            code_covariance=np.einsum("nkr,nlr->nkl", root, root),
            parameters=_Parameters(trained, posterior),
            fit=posterior.fit,
            result=tuple(Result(code) for code in posterior.result),
        )

    def posterior(self, data: TrajectoriesLike) -> Posterior:
        """States and codes with covariances, on the model's grid and in its units."""
        return answer(self.trained, ask(self.trained, as_trajectories(data)))

    def encode(self, data: TrajectoriesLike) -> np.ndarray:
        """(n, k) latent codes of new trajectories."""
        return self.posterior(data).codes

    def infer(self, data: TrajectoriesLike, target: str) -> np.ndarray:
        """(n,) a parameter of each trajectory, read off its code by the probe."""
        return self.probe(target)(self.encode(data))

    def probe(self, target: str, *, linear: bool = False) -> Probe:
        """Ridge regression from the training codes to this parameter of the training set.

        The paper's probe is `linear`; otherwise it may bend where cross-validation gains by it.
        """
        trained = self.trained
        if target not in trained.params:
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
        return Probe.fit(trained.codes, values, linear=linear)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Everything needed to use the model, into one folder."""
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


@final
class _Parameters(Mapping[str, tuple[np.ndarray, np.ndarray]]):
    """Parameters that vary, with standard errors; a probe is fitted when it is asked for."""

    def __init__(self, trained: "TrainedModel", posterior: Posterior):
        self._trained, self._posterior = trained, posterior
        self._names = tuple(name for name, x in trained.params.items() if np.ptp(x) > 0)

    def __getitem__(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in self._names:
            raise KeyError(name)
        probe, found = self._trained.probe(name), self._posterior
        return probe(found.codes), probe.standard_errors(found.codes, found.code_root)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
