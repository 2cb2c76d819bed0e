"""Typed, frozen configurations of the models. Unknown keys fail; JSON round trips are exact."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import pydantic

from dhn.errors import UserError


class Config(pydantic.BaseModel):
    """Base of every configuration: immutable, finite, and a misspelt key is an error."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __repr_args__(self) -> Iterable[tuple[str, Any]]:
        """What pydantic's `repr` shows: the fields that differ from their defaults."""
        for name, field in type(self).model_fields.items():
            if getattr(self, name) != field.default:
                yield name, getattr(self, name)

    def refuse_unused(self, because: str, *fields: str) -> None:
        """An error for the first of these fields that is not at its default, which does nothing."""
        for name in fields:
            default = type(self).model_fields[name].default
            if getattr(self, name) != default:
                raise UserError(
                    f"{name}={getattr(self, name)!r} has no effect {because}; leave {name} at "
                    f"its default {default!r}."
                )


MOST = 2**31 - 1
"""Compiled programs count in 32 bits."""
Positive = Annotated[int, pydantic.Field(ge=1, le=MOST)]
Count = Annotated[int, pydantic.Field(ge=0, le=MOST)]
Layers = Annotated[int, pydantic.Field(ge=1, le=1000)]
"""More layers take hours to compile."""
Fraction = Annotated[float, pydantic.Field(ge=0.0, le=1.0)]
Weight = Annotated[float, pydantic.Field(ge=0.0)]


class NetworkConfig(Config):
    """The scalar network inside a Hamiltonian."""

    kind: Literal["mlp", "transformer"] = "mlp"
    width: Positive = 64
    depth: Layers = 3
    """Residual layers of the MLP, or transformer layers."""
    heads: Positive = 4
    """Attention heads (transformer only)."""
    activation: Literal["tanh", "silu", "gelu", "relu"] = "tanh"
    """`relu` is the authors'; it makes ∂H piecewise constant in what it acts on."""
    quadratic: bool = False
    """A quadratic form of the states beside the MLP: exact for springs and constant masses."""
    layer_norm: bool = False
    """LayerNorm behind each part of a transformer layer (post-norm, the paper's); without it
    training goes further."""
    initial: Literal["wide", "pytorch"] = "wide"
    """First weights of the transformer: `pytorch`, the authors', are narrower, with positions at
    zero and noise levels at N(0, 1)."""

    @pydantic.model_validator(mode="after")
    def _every_field_counts(self) -> "NetworkConfig":
        if self.kind == "mlp":
            self.refuse_unused("in an MLP", "heads", "layer_norm", "initial")
        else:
            self.refuse_unused("in a transformer", "quadratic")
        return self


class DenoisingConfig(Config):
    """How the unknown states of a window are found at inference."""

    noisy_rounds: Count = 0
    """Rounds at the levels `1, ..., 1/N` (the paper's); 0 starts from a straight continuation of
    the context instead of noise."""
    clean_rounds: Positive = 2
    """Rounds at level 0 afterwards: fixed-point iterations of the clean equations."""
    temperature: Weight = 1.0
    """Scale of the noise; 0 makes noisy rounds deterministic."""
    advance: Literal["stride", "one"] = "stride"
    """States of each window that a forecast keeps: all new ones, or (authors' code) the first."""

    @pydantic.model_validator(mode="after")
    def _every_field_counts(self) -> "DenoisingConfig":
        if self.noisy_rounds == 0:
            self.refuse_unused("without noisy rounds", "temperature")
        return self


class DHNConfig(Config):
    """A Denoising Hamiltonian Network."""

    kind: Literal["dhn"] = "dhn"
    block_size: Positive = 1
    stride: Count = 1
    spacings: Annotated[tuple[Positive, ...], pydantic.Field(min_length=1)] = (1,)
    """Grid spacing of each stage; several stages share one codebook (progressive refinement)."""
    linked: bool = True
    """One H⁺, solved implicitly (symplectic), instead of the paper's two networks."""
    network: NetworkConfig = NetworkConfig()
    latent_size: Positive = 4
    """Numbers of a code, at most: `TrainingConfig.code_search` finds how many are needed."""
    units: Literal["change", "state"] = "change"
    """Of the networks' outputs and of the loss: a typical change over the lag, or (the paper's)
    the scaled state itself."""
    equation_weight: Weight = 1.0
    denoising_weight: Weight = 0.0
    """0 trains on clean windows alone; the next five fields then have no effect."""
    mask: str = "autoregressive"
    shared_mask: bool = False
    """All windows of a batch share one draw of a random mask (authors' code)."""
    noise: Literal["ladder", "uniform", "nearby"] = "ladder"
    """Levels of unknown tokens: rungs `1/N, ..., 1` (the paper's text); all of (0, 1], the network
    conditioned on the rung above (authors' code); or a distance of up to one typical change, on a
    quarter of the windows of the clean pass, which makes denoising free (preset `blocks`)."""
    denoising_steps: Positive = 10
    """Noise levels `N` in training."""
    denoising_outputs: Literal["unknown", "all"] = "unknown"
    damping: Literal["none", "learned"] = "none"
    angles: Literal["raw", "periodic"] = "periodic"
    """Whether angles enter the network as they are or as sine and cosine."""
    inference: DenoisingConfig = DenoisingConfig()

    @pydantic.model_validator(mode="after")
    def _every_field_counts(self) -> "DHNConfig":
        if self.linked and self.denoising_weight > 0:
            raise UserError(
                f"denoising_weight={self.denoising_weight} trains a loss that a linked model never "
                f"uses: its states are solved for. Use linked=False or denoising_weight=0."
            )
        if self.denoising_weight == 0:
            fields = ("mask", "shared_mask", "noise", "denoising_outputs")
            self.refuse_unused("without a denoising loss (denoising_weight=0)", *fields)
        if self.mask in ("autoregressive", "autoregressive-text", "superresolution"):
            self.refuse_unused(f"with the mask {self.mask}, which draws nothing", "shared_mask")
        if self.noise == "nearby":
            self.refuse_unused("with noise='nearby', which leaves the rest", "denoising_outputs")
        ladder = self.denoising_weight > 0 and self.noise != "nearby"
        if not ladder and self.network.kind == "mlp":
            self.refuse_unused("without levels to choose from", "denoising_steps")
        return self

    @pydantic.model_validator(mode="after")
    def _inference_uses_what_was_trained(self) -> "DHNConfig":
        rounds = self.inference.noisy_rounds
        if rounds and (self.denoising_weight == 0 or self.noise == "nearby"):
            raise UserError(
                f"inference with noisy_rounds={rounds} conditions the networks on levels 1 to "
                f"1/{rounds}, which this training never draws. Use noisy_rounds=0, or train with "
                f"denoising_weight > 0 and noise='ladder' or 'uniform'."
            )
        if rounds and self.denoising_steps % rounds:
            raise UserError(
                f"inference with noisy_rounds={rounds} uses levels between the "
                f"{self.denoising_steps} that training draws. Use a divisor of denoising_steps."
            )
        if not self.linked and self.equation_weight == 0:
            raise UserError(
                "inference ends with rounds at level 0, which equation_weight=0 never trains. Use "
                "equation_weight > 0."
            )
        if len(self.spacings) > 1 and (self.block_size, self.stride) != (2, 1):
            raise UserError(
                f"stages of several spacings double the resolution with windows of two known "
                f"states and one between; block_size={self.block_size}, stride={self.stride} has "
                f"others. Use block_size=2, stride=1, or one spacing."
            )
        return self
