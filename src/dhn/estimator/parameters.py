"""Parameters of trajectories, read off their codes."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int

from dhn.blocks import Codes
from dhn.reconstruct.posterior import Result

if TYPE_CHECKING:
    from dhn.estimator.trained import TrainedModel

CLEARLY = 3.0
"""Standard errors that a parameter must lie beyond the training set's range to count as outside."""


@final
class Parameters(Mapping[str, tuple[np.ndarray, np.ndarray]]):
    """Parameters that vary, with standard errors; a probe is fitted when it is asked for."""

    def __init__(
        self, trained: "TrainedModel", codes: Codes, code_root: Float[np.ndarray, "n k r"]
    ):
        self._trained, self._codes, self._root = trained, codes, code_root
        self._names = tuple(name for name, x in trained.params.items() if np.ptp(x) > 0)

    def __getitem__(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in self._names:
            raise KeyError(name)
        probe = self._trained.probe(name)
        return probe(self._codes), probe.standard_errors(self._codes, self._root)

    def judged(self, result: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Results in which good fits with parameters outside the training set's are marked."""
        outside = np.zeros(len(result), bool)
        for name, (estimate, error) in self.items():
            values = self._trained.params[name]
            outside |= estimate - CLEARLY * error > values.max()
            outside |= estimate + CLEARLY * error < values.min()
        return np.where(outside & (result == Result.OK), Result.OUTSIDE_TRAINING, result)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
