"""What every trainable model offers: DHN and the baselines alike.

`fit`, autodecoding, forecasts, the linear probe, saving and the experiments are written once
against this contract.
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from dhn.blocks import Code, StateBlock
from dhn.errors import UserError
from dhn.models.config import Config
from dhn.models.networks.features import StateFeatures

if TYPE_CHECKING:
    from dhn.models.stage import AbstractStage


class WindowShape(NamedTuple):
    """`length` states, `spacing` steps of the data's grid apart."""

    length: int
    spacing: int = 1

    @property
    def reach(self) -> int:
        return (self.length - 1) * self.spacing


@runtime_checkable
class HasResiduals(Protocol):
    """All that fitting a code asks of a model."""

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]: ...

    def stage_residuals(self, stage: int, window: StateBlock, z: Code) -> Float[Array, "n m"]: ...


@final
@dataclasses.dataclass(frozen=True)
class ModelContext:
    """What the training data determine of a model before it has weights; saved with it."""

    dim: int
    time_step: float
    angles: tuple[bool, ...]
    radian: tuple[float, ...]
    """One radian (or one unit) of each coordinate in scaled units."""
    changes: tuple[float, ...]
    """Root mean square change of the scaled state over 1, 2, 4, ... grid steps."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ModelContext":
        """From JSON values, which have lists in place of tuples."""
        listed: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return cls(**listed)

    def features(self, angles: str) -> StateFeatures:
        """What networks see of a state: angles as they are (`raw`) or as sine and cosine."""
        periodic = [angle and angles == "periodic" for angle in self.angles]
        pairs = zip(periodic, self.radian, strict=True)
        return StateFeatures(tuple(unit if turns else None for turns, unit in pairs))

    def change(self, steps: int) -> float:
        """Typical change over so many grid steps, from the tabulated power of two below."""
        return self.changes[min(steps.bit_length() - 1, len(self.changes) - 1)]


class AbstractModel(eqx.Module):
    """A model of windows, conditioned on a latent code per trajectory.

    A model with several stages asks for one batch of windows per stage; all stages see the same
    codebook.
    """

    config: eqx.AbstractVar[Config]
    """What it was built from; saved with it."""
    latent_size: eqx.AbstractVar[int]
    window_shapes: eqx.AbstractVar[tuple[WindowShape, ...]]
    loss_names: eqx.AbstractVar[tuple[str, ...]]
    """The terms that `losses` returns."""

    @property
    def training_shapes(self) -> tuple[WindowShape, ...]:
        """The windows that `losses` takes: those of the stages, unless a model needs others."""
        return self.window_shapes

    @property
    def tokens(self) -> int:
        """Tokens of one window that attend to each other; 0 without attention."""
        return 0

    @property
    def block_map(self) -> "AbstractStage | None":
        """The equations between source and target blocks on the finest grid, if there are any."""
        return None

    @abc.abstractmethod
    def losses(
        self,
        windows: tuple[StateBlock, ...],
        codes: tuple[Float[Array, "_ k"], ...],
        key: Key[Array, ""],
        part: Int[Array, ""] | int = 0,
    ) -> dict[str, Float[Array, ""]]:
        """Named terms of the training loss, means over the windows. Their sum is minimised.

        **Arguments**: for each stage windows (n, L, d) and codes (n, k); `key` of the whole batch
        and the number of the `part` of it that these windows are, for draws of their own.

        **Returns**: scalars by name, those of `loss_names`.
        """

    @abc.abstractmethod
    def stage_residuals(self, stage: int, window: StateBlock, z: Code) -> Float[Array, "n m"]:
        """How far each clean window of this stage is from obeying the model.

        In units of a typical change. Autodecoding minimises the squares of these over the code of
        a new trajectory.
        """


class AbstractForecaster(AbstractModel):
    """A model that can move a trajectory forward in time."""

    context_length: eqx.AbstractVar[int]
    """States needed to take a step."""
    step_length: eqx.AbstractVar[int]
    """States that one step appends."""

    @abc.abstractmethod
    def advance(self, context: StateBlock, z: Code, key: Key[Array, ""]) -> StateBlock:
        """The `step_length` states after these `context_length` states (paper, Eq. 7)."""


def as_forecaster(model: AbstractModel) -> AbstractForecaster:
    """The same model, if it can move a trajectory forward; else a `UserError`."""
    if not isinstance(model, AbstractForecaster):
        raise UserError(
            f"a {type(model).__name__} fills in states between known ones; it cannot forecast."
        )
    return model


def weights_dtype(model: HasResiduals):
    """The precision of a model: that of its weights, or JAX's default if it has none."""
    weights = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return weights[0].dtype if weights else jnp.zeros(()).dtype
