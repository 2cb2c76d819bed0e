"""What a model makes of observed states: where a forecast starts, and how sure that is."""

import dataclasses

import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from dhn.blocks import StateBlock


@dataclasses.dataclass(frozen=True, eq=False)
class Observation:
    """Start states and codes, with square roots of their joint posterior covariance if known."""

    start: StateBlock
    codes: np.ndarray
    code_root: np.ndarray | None
    """(n, k, r)"""
    start_root: np.ndarray | None
    """(n, 2 * c * d, r) of the start's `[q, p]`, driven by the same r numbers as the codes."""

    def draw(self, key: Key[Array, ""]) -> tuple[StateBlock, np.ndarray]:
        """One start and code from the posterior."""
        if self.code_root is None:
            return self.start, self.codes
        n, _, r = self.code_root.shape
        white = np.asarray(jr.normal(key, (n, r)))
        codes = self.codes + np.einsum("nkr,nr->nk", self.code_root, white)
        if self.start_root is None:
            return self.start, codes
        shift = np.einsum("nsr,nr->ns", self.start_root, white)
        q, p = np.split(shift, 2, axis=1)
        shape = self.start.q.shape
        return StateBlock(self.start.q + q.reshape(shape), self.start.p + p.reshape(shape)), codes
