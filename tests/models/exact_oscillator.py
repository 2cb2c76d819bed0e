"""The harmonic oscillator's exact generating functions as scalar networks: ground truth for all.

For frequency w, mass m and lag D (design of the method, the two Hamiltonians):
`H⁺(q0, p1) = q0 p1 / cos(wD) + tan(wD)/2 · (m w q0² + p1²/(m w))` and
`H⁻(q1, p0) = -q1 p0 / cos(wD) + tan(wD)/2 · (m w q1² + p0²/(m w))`, summed over the block.
The frequency comes from the latent code, so that a code handed to the wrong sample shows.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from dhn.blocks import BlockSpec, StateBlock
from dhn.models import (
    DenoisingConfig,
    DHNConfig,
    DHNModel,
    LeftHamiltonian,
    LinkedStage,
    NetworkConfig,
    PairedStage,
    RightHamiltonian,
)
from dhn.models.damping import NoDamping
from dhn.models.dhn import build_network
from dhn.models.networks.features import StateFeatures
from dhn.models.networks.scalar import AbstractScalarNetwork

MASS = 1.7
TIME_STEP = 0.1
D = 2
"""Coordinates of the random networks."""
SCALE = 0.25
"""Not 1, so that a factor forgotten or applied twice shows."""

SPECS = [(1, 1), (2, 1), (4, 2), (3, 2), (2, 3), (2, 0)]
"""(block size, stride): the paper's, and the legal corners s > b and s = 0."""

EXACT = [*((b, s, "float64") for b, s in SPECS), (2, 1, "float32")]
"""Single precision differs from double in rounding alone, so one case will do."""


def frequency(z):
    return 1.0 + z[:, 0]


class ExactHamiltonian(AbstractScalarNetwork):
    """`h⁺` (sign +1) or `h⁻` (sign -1): what lies beyond identity, in units of `SCALE`."""

    lag: float = eqx.field(static=True)
    sign: int = eqx.field(static=True)

    def __call__(self, Q, P, level, z):
        w = frequency(z)[:, None, None]
        mixed = self.sign * Q * P * (1 / jnp.cos(w * self.lag) - 1)
        own = jnp.tan(w * self.lag) / 2 * (MASS * w * Q**2 + P**2 / (MASS * w))
        return (mixed + own).sum((1, 2)) / SCALE


def exact_right(spec):
    return RightHamiltonian(ExactHamiltonian(spec.lag, 1), SCALE)


def exact_left(spec):
    return LeftHamiltonian(ExactHamiltonian(spec.lag, -1), SCALE)


def exact_stage(block_size, stride, *, linked, spacing=1):
    spec = BlockSpec(block_size, stride, spacing * TIME_STEP)
    shared = {"damping": NoDamping(), "spec": spec, "spacing": spacing, "scale": 0.5}
    if linked:
        return LinkedStage(right=exact_right(spec), **shared)
    return PairedStage(right=exact_right(spec), left=exact_left(spec), **shared)


def exact_model(block_size, stride, *, linked, spacings=(1,), **options):
    options.setdefault("inference", DenoisingConfig(clean_rounds=30))
    config = DHNConfig(
        block_size=block_size,
        stride=stride,
        linked=linked,
        spacings=spacings,
        latent_size=2,
        **options,
    )
    stages = tuple(exact_stage(block_size, stride, linked=linked, spacing=s) for s in spacings)
    return DHNModel(stages=stages, config=config)


def with_precision(model, dtype):
    """The same model with its weights in this precision."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, model)


def oscillate(q, p, z, times):
    """The exact flow of states `(n, d)` to all these times: `(n, time, d)`, in numpy."""
    w = frequency(z)[:, None, None]
    angle = w * np.asarray(times)[None, :, None]
    q, p = q[:, None], p[:, None]
    return StateBlock(
        q * np.cos(angle) + p * np.sin(angle) / (MASS * w),
        p * np.cos(angle) - q * np.sin(angle) * (MASS * w),
    )


def exact_states(seed, length, *, n=5, d=3, spacing=1, dtype="float64"):
    """Trajectories of several oscillators and the codes that go with them."""
    draw = np.random.default_rng(seed)
    z = draw.uniform(-0.4, 0.4, (n, 2))
    times = np.arange(length) * spacing * TIME_STEP
    states = oscillate(draw.normal(size=(n, d)), draw.normal(size=(n, d)), z, times)
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), (states, z))


@functools.cache
def random_network(kind, block_size, d=D, latent_size=5):
    """In double precision; made once, since drawing weights takes longer than using them."""
    heads = {"heads": 2} if kind == "transformer" else {}
    with jax.enable_x64(True):
        return jax.jit(
            lambda: build_network(
                NetworkConfig(kind=kind, width=8, depth=2, **heads),
                block_size=block_size,
                latent_size=latent_size,
                denoising_steps=10,
                features=StateFeatures((None,) * d),
                key=jr.key(3),
            )
        )()


def random_stage(b, s, *, linked, kind="mlp", damping=None):
    spec = BlockSpec(b, s, TIME_STEP)
    shared = {"damping": damping or NoDamping(), "spec": spec, "spacing": 1, "scale": 0.3}
    right = RightHamiltonian(random_network(kind, b), 0.3)
    if linked:
        return LinkedStage(right=right, **shared)
    # Another network: with H⁺ and H⁻ alike, mistaking one for the other would go unseen.
    other = jax.tree.map(lambda x: -0.8 * np.asarray(x), random_network(kind, b))
    return PairedStage(right=right, left=LeftHamiltonian(other, 0.3), **shared)


def cast(tree, dtype):
    """Every number of the tree in this precision."""
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x, dtype)), tree)


class Recorder(AbstractScalarNetwork):
    """Passes a network on and notes what it was given: `(Q, P, level.q, level.p)` of each call."""

    network: AbstractScalarNetwork
    calls: list = eqx.field(static=True)

    def __call__(self, Q, P, level, z):
        jax.debug.callback(
            lambda *given: self.calls.append([np.asarray(x) for x in given]), Q, P, *level
        )
        return self.network(Q, P, level, z)
