"""The loss that one-step baselines share: the mean square of their residuals."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from dhn.blocks import Code, StateBlock
from dhn.models.contract import AbstractModel


class AbstractResidualLoss(AbstractModel):
    """A model with one stage whose loss is the mean square of `stage_residuals`."""

    def losses(
        self,
        windows: tuple[StateBlock, ...],
        codes: tuple[Code, ...],
        key: Key[Array, ""],
        part: Int[Array, ""] | int = 0,
    ) -> dict[str, Float[Array, ""]]:
        """Two means, of q and of p, added: the same weights as in DHN's equation loss."""
        error = self.stage_residuals(0, windows[0], codes[0])
        return {self.loss_names[0]: 2 * jnp.mean(error**2)}
