"""Typed, frozen configurations of the models. Unknown keys fail; JSON round trips are exact."""

from typing import Annotated, Literal

import pydantic


class Config(pydantic.BaseModel):
    """Base of every configuration: immutable, finite, and a misspelt key is an error."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Positive = Annotated[int, pydantic.Field(ge=1)]
Fraction = Annotated[float, pydantic.Field(ge=0.0, le=1.0)]


class NetworkConfig(Config):
    """The scalar network inside a Hamiltonian."""

    kind: Literal["mlp", "transformer"] = "mlp"
    width: Positive = 64
    depth: Positive = 3
    """Residual layers of the MLP, or transformer layers."""
    heads: Positive = 4
    """Attention heads (transformer only)."""
    activation: Literal["tanh", "silu", "gelu"] = "tanh"
    quadratic: bool = False
    """A quadratic form of the states beside the MLP, fitted first and by itself (`path`)."""
    layer_norm: bool = False
    """LayerNorm in the transformer; the paper has it, without it training goes further."""


class DenoisingConfig(Config):
    """How the unknown states of a window are found at inference."""

    steps: Positive = 2
    start: Literal["noise", "persistence"] = "persistence"
    """`noise`: from N(0, I), re-noised at every step (the paper's). `persistence`: from the nearest
    known states, without noise."""
    temperature: Annotated[float, pydantic.Field(ge=0.0)] = 1.0
    """Scale of the noise; 0 makes `noise` deterministic."""


class DHNConfig(Config):
    """A Denoising Hamiltonian Network."""

    kind: Literal["dhn"] = "dhn"
    block_size: Positive = 1
    stride: Annotated[int, pydantic.Field(ge=0)] = 1
    spacings: Annotated[tuple[Positive, ...], pydantic.Field(min_length=1)] = (1,)
    """Grid spacing of each stage; several stages share one codebook (progressive refinement)."""
    linked: bool = True
    """One H⁺, solved implicitly (symplectic), instead of the paper's two networks."""
    network: NetworkConfig = NetworkConfig()
    latent_size: Positive = 4
    mask: str = "autoregressive"
    denoising_steps: Positive = 10
    """Noise levels `N` in training."""
    denoising_weight: Annotated[float, pydantic.Field(ge=0.0)] = 0.0
    consistency_weight: Annotated[float, pydantic.Field(ge=0.0)] = 0.0
    """Of the loss that H⁺ and H⁻ be inverse to each other; for two networks only."""
    equation_weight: Annotated[float, pydantic.Field(ge=0.0)] = 1.0
    denoising_outputs: Literal["unknown", "all"] = "unknown"
    path: Annotated[int, pydantic.Field(ge=0)] = 0
    """States of the paths that training lays through the measurements; 0: single steps only."""
    path_weight: Annotated[float, pydantic.Field(ge=0.0)] = 1.0
    damping: Literal["none", "learned"] = "none"
    angles: Literal["raw", "periodic"] = "periodic"
    """Whether angles enter the network as they are or as sine and cosine."""
    inference: DenoisingConfig = DenoisingConfig()
