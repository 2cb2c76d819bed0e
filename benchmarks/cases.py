"""The models and data that the benchmarks share."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from dhn.blocks import StateBlock
from dhn.models.config import DHNConfig, NetworkConfig
from dhn.models.contract import ModelContext
from dhn.models.dhn import DHNModel
from dhn.models.presets import PAPER_NETWORK, get_preset
from dhn.models.registry import draw_weights
from dhn.training.config import TrainingConfig
from dhn.training.step import Run, TrainingData, TrainState, initial_state, run_steps

CONTEXT = ModelContext(
    dim=2, time_step=10 / 128, angles=(False, False), radian=(1.0, 1.0), changes=(0.1, 0.2, 0.4)
)


def paper_sized(block_size: int, layer_norm: bool = False) -> DHNConfig:
    """Width 128, 2 layers, latent code 128; clean and noised pass of both Hamiltonians.

    With `layer_norm` the network is the paper's in every part; without it, what this package
    trains better (tanh).
    """
    network = NetworkConfig(kind="transformer", width=128, depth=2)
    return DHNConfig(
        block_size=block_size,
        stride=max(block_size // 2, 1),
        linked=False,
        denoising_weight=1.0,
        latent_size=128,
        network=PAPER_NETWORK if layer_norm else network,
    )


def default_sized(block_size: int = 1, width: int = NetworkConfig().width) -> DHNConfig:
    """What `dhn.DHN()` trains."""
    return DHNConfig(
        block_size=block_size, stride=max(block_size // 2, 1), network=NetworkConfig(width=width)
    )


def recipe(config: DHNConfig, **changes) -> TrainingConfig:
    """The default's, or for the paper's network the optimiser that it is trained with."""
    own = get_preset("paper")[1] if config.network.kind == "transformer" else {}
    return TrainingConfig.model_validate({**own, "batch_of": "windows", **changes})


def states(trajectories: int, length: int = 128) -> StateBlock:
    """Numbers of order one: the time of a step does not depend on what they are."""
    keys = jr.split(jr.key(0))
    return StateBlock(*(jr.normal(key, (trajectories, length, CONTEXT.dim)) for key in keys))


class Training:
    """The real training step, random batches and optimiser included, ready to be called."""

    def __init__(self, config: DHNConfig, training: TrainingConfig, trajectories: int = 1000):
        self.model = draw_weights(DHNModel, config, CONTEXT, jr.key(1))
        data = states(trajectories, 128 if trajectories <= 100_000 else 16)
        steps = data.q.shape[1] - self.model.window_shapes[0].reach
        windows = jnp.stack(
            [
                jnp.repeat(jnp.arange(trajectories), steps),
                jnp.tile(jnp.arange(steps), trajectories),
            ],
            axis=1,
        ).astype(jnp.int32)
        static = eqx.partition(self.model, eqx.is_inexact_array)[1]
        count = jnp.asarray(len(windows), jnp.int32)
        self.run = Run(
            static,
            TrainingData(data, (windows,), (count,)),
            training,
            jnp.zeros((), jnp.int32),
            jnp.asarray(1_000_000, jnp.int32),
        )
        self.state: TrainState = initial_state(self.model, trajectories, training)

    def __call__(self, steps: int = 1):
        self.state, log = run_steps(self.run, self.state, jnp.asarray(steps, jnp.int32))
        return log
