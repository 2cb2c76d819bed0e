"""How a window of states splits into a source and a target block (paper, Sec. 3.3)."""

import dataclasses
from typing import final

from dhn.errors import UserError


@final
@dataclasses.dataclass(frozen=True)
class BlockSpec:
    """`b + s` consecutive states: the first `b` are the source block, the last `b` the target.

    `b = 1, s = 1` is the classical one-step discrete Hamiltonian, right (paper, Eq. 3-4) and left
    (paper, Eq. 13-14). `s < b` makes the blocks share
    `b - s` states. `s > b` leaves `s - b` states between the blocks out of the network. `s = 0`
    makes source and target the same block: the loss degenerates to pure self-coherence, and there
    is no next state to forecast.
    """

    block_size: int
    stride: int
    time_step: float = 1.0
    """Time between neighbouring states of the window."""

    def __post_init__(self):
        if self.block_size < 1:
            raise UserError(f"block_size must be at least 1; got {self.block_size}.")
        if self.stride < 0:
            raise UserError(f"stride must be 0 or more; got {self.stride}.")
        if not self.time_step > 0:
            raise UserError(f"time_step must be positive; got {self.time_step}.")

    @property
    def window_length(self) -> int:
        return self.block_size + self.stride

    @property
    def source(self) -> slice:
        return slice(0, self.block_size)

    @property
    def target(self) -> slice:
        return slice(self.stride, self.stride + self.block_size)

    @property
    def between(self) -> slice:
        """States that neither block holds; empty unless `s > b`."""
        return slice(self.block_size, max(self.block_size, self.stride))

    @property
    def context_length(self) -> int:
        """States before the first new one: the source block, and for `s > b` what follows it."""
        return max(self.block_size, self.stride)

    @property
    def step_length(self) -> int:
        """States of the target block that come after the context."""
        return min(self.block_size, self.stride)

    @property
    def lag(self) -> float:
        """Time by which the map moves every state of the source block."""
        return self.stride * self.time_step
