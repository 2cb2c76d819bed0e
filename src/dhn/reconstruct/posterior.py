"""What a reconstruction returns: states and codes with their uncertainty, and how well they fit."""

import dataclasses
import enum
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from dhn.blocks import Codes
from dhn.reconstruct.question import States


class Result(enum.IntEnum):
    """How a reconstruction of one trajectory went."""

    OK = 0
    NOT_CONVERGED = 1
    POOR_FIT = 2
    OUTSIDE_TRAINING = 3
    NOT_IDENTIFIABLE = 4

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Result.OK: "converged",
    Result.NOT_CONVERGED: "the iteration did not converge",
    Result.POOR_FIT: "poor fit: the model does not explain the known numbers within their noise",
    Result.OUTSIDE_TRAINING: "outside training: states, code or parameters leave what it covered",
    Result.NOT_IDENTIFIABLE: "not identifiable: the known numbers do not determine the code",
}


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """Gaussian posterior of `n` trajectories on a grid of `T` times, in scaled units."""

    states: States
    """Posterior mean of `[q, p]`."""
    deviation: States
    """Posterior standard deviation."""
    codes: Codes
    code_root: Float[np.ndarray, "n k r"]
    """`code_root @ code_root.T` is the covariance of a code."""
    fit: Float[np.ndarray, " n"]
    """Mean squared residual of model and measurements in units of what was expected."""
    result: Int[np.ndarray, " n"]
    """Values of `Result`."""
    iterations: int
    draws: Float[np.ndarray, "K n T m"]
    """Samples of the states, rolled forward beyond the last known number; none by default."""

    @property
    def poor(self) -> Bool[np.ndarray, " n"]:
        """Trajectories whose result is not OK."""
        return self.result != Result.OK
