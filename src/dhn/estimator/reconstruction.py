"""What comes back from a question about trajectories."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.blocks import Codes
from dhn.reconstruct.posterior import Result
from dhn.trajectories.container import Trajectories


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Reconstruction:
    """All that was found out about some trajectories."""

    trajectories: Trajectories
    """Every state at the times that were asked for, with quantiles; `known` as it was given."""
    codes: Codes
    code_covariance: Float[np.ndarray, "n k k"]
    parameters: Mapping[str, tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]]
    """Name -> estimates and standard errors, for parameters that vary in the training set."""
    fit: Float[np.ndarray, " n"]
    """Mean squared residual in expected units: about 1 or less for a good fit."""
    result: tuple[Result, ...]

    def warning(self) -> str | None:
        """One line about trajectories that should not be trusted, if there are any."""
        return warning(self.result, self.trajectories.ids)


def warning(results: Sequence[Result], ids: tuple[str, ...]) -> str | None:
    """One line about the trajectories whose result is not OK, or None."""
    result = np.array(results, int)
    bad = np.flatnonzero(result != Result.OK)
    if not len(bad):
        return None
    kinds = [kind for kind in Result if kind != Result.OK and (result == kind).any()]
    parts = [f"{int((result == kind).sum())} {kind.message}" for kind in kinds]
    return f"{len(bad)} of {len(result)} trajectories: {'; '.join(parts)} (first: {ids[bad[0]]})."
