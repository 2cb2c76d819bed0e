"""Configurations of the trainable baselines: frozen, typed, distinguished by `kind`."""

from typing import Annotated, Literal

import pydantic

from dhn.models.config import Config, NetworkConfig, Positive

TrainingRule = Literal["euler", "leapfrog", "rk4", "midpoint"]
RolloutRule = Literal["euler", "leapfrog", "rk4", "midpoint", "dopri5"]
NotNegative = Annotated[int, pydantic.Field(ge=0)]


class HNNConfig(Config):
    """Hamiltonian neural network: one scalar `H(q, p, z)` of a single state."""

    kind: Literal["hnn"] = "hnn"
    network: NetworkConfig = NetworkConfig()
    training: TrainingRule = "midpoint"
    """The rule whose one-step equation is the loss; `euler` is the classical HNN loss."""
    rollout: RolloutRule = "midpoint"
    """The integrator of forecasts; may be changed after training (`HNNModel.with_rollout`)."""
    latent_size: Positive = 4
    angles: Literal["raw", "periodic"] = "raw"


class VanillaConfig(Config):
    """Next-state network without physical structure: predicts the change of state."""

    kind: Literal["vanilla"] = "vanilla"
    network: Literal["resnet", "transformer"] = "resnet"
    width: Positive = 64
    depth: Positive = 2
    """Residual blocks (two linear maps each), or transformer layers."""
    heads: Positive = 4
    """Attention heads (transformer only)."""
    activation: Literal["tanh", "silu", "gelu"] = "tanh"
    layer_norm: bool = False
    """LayerNorm in the transformer."""
    context: Positive = 1
    """States that the network sees."""
    latent_size: Positive = 4
    angles: Literal["raw", "periodic"] = "raw"


class CNNConfig(Config):
    """1-D convolutions over linearly upsampled states, for super-resolution."""

    kind: Literal["cnn"] = "cnn"
    factor: Annotated[int, pydantic.Field(ge=2)] = 4
    """Every `factor`-th state is known."""
    intervals: Positive = 16
    """Known intervals of a training window: 16 intervals of 4 make 65 states, 17 known."""
    width: Positive = 64
    """Channels."""
    depth: Annotated[int, pydantic.Field(ge=2)] = 4
    """Convolutions, the first and the last one included."""
    kernel: Annotated[int, pydantic.Field(ge=3)] = 7
    activation: Literal["tanh", "silu", "gelu"] = "silu"
    residual: bool = True
    """Learn the difference to linear interpolation; False is the paper's network."""
    latent_size: NotNegative = 0
    """Entries of the code that every state sees as extra channels; 0, as in the paper: none."""

    @pydantic.field_validator("kernel")
    @classmethod
    def _odd(cls, kernel: int) -> int:
        if kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, so that it has a centre; got {kernel}")
        return kernel


class NeighbourConfig(Config):
    """MLP that fills the gap between two neighbouring known states."""

    kind: Literal["neighbour"] = "neighbour"
    gaps: tuple[tuple[Annotated[int, pydantic.Field(ge=2)], Positive], ...] = ((4, 1), (2, 4))
    """Pairs `(parts, spacing)`: a gap of `parts * spacing` grid steps, filled at every
    `spacing`-th one. `(4, 1)` is fourfold interpolation; `(2, 4)` needs only every fourth state, so
    that the code of a sparse trajectory can be fitted on the states it has."""
    guess: Literal["linear", "hermite"] = "linear"
    """What the network corrects; the slopes of `hermite` come from a second network."""
    width: Positive = 64
    depth: Positive = 2
    """Residual blocks (two linear maps each)."""
    activation: Literal["tanh", "silu", "gelu"] = "tanh"
    latent_size: Positive = 4
    angles: Literal["raw", "periodic"] = "raw"
