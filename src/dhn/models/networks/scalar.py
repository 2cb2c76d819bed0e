"""The scalar network inside a block Hamiltonian: any smooth function of a block and a code."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dhn.blocks import Block, Code, NoiseLevel
from dhn.errors import UserError

ACTIVATIONS: dict[str, Callable] = {
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
}
"""ReLU is the authors'. It makes the gradient of H piecewise constant in what it acts on, so the
other presets have smooth ones."""


def get_activation(name: str) -> Callable:
    if name not in ACTIVATIONS:
        raise UserError(f"activation must be one of {', '.join(ACTIVATIONS)}; got {name!r}.")
    return ACTIVATIONS[name]


class AbstractScalarNetwork(eqx.Module):
    """Maps a batch of blocks to one scalar each.

    Written for a batch, not for one sample under `vmap`: a block has so few tokens that the
    layout of the batch decides the speed on a CPU. Sample `i` of the output depends on sample `i`
    of the input alone, so the gradient of the sum is the batch of gradients.
    """

    @abc.abstractmethod
    def __call__(self, Q: Block, P: Block, level: NoiseLevel, z: Code) -> Float[Array, " n"]: ...
