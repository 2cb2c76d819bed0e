"""The fast path computes what the plain version computes, and compiles no more than it must."""

import contextlib
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import dhn
from dhn.blocks import NoiseLevel, StateBlock
from dhn.models.config import DHNConfig, NetworkConfig
from dhn.models.contract import ModelContext
from dhn.models.dhn import DHNModel
from dhn.models.registry import draw_weights
from dhn.training.step import loss_and_gradient

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import plain

N = 8
CONTEXT = ModelContext(
    dim=2, time_step=0.1, angles=(False, False), radian=(1.0, 1.0), changes=(0.5, 0.7)
)


def make(block_size, layer_norm):
    network = NetworkConfig(
        kind="transformer", width=16, depth=2, heads=4, layer_norm=layer_norm, activation="silu"
    )
    config = DHNConfig(
        block_size=block_size,
        stride=max(block_size // 2, 1),
        linked=False,
        denoising_weight=1.0,
        latent_size=5,
        network=network,
    )
    model = draw_weights(DHNModel, config, CONTEXT, jr.key(0))
    keys = jr.split(jr.key(1), 3)
    shape = (N, model.window_shapes[0].length, 2)
    window = StateBlock(jr.normal(keys[0], shape), jr.normal(keys[1], shape))
    return model, (window,), (jr.normal(keys[2], (N, 5)),)


def largest_difference(ours, truth):
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(truth), strict=True)
    return max(float(jnp.abs(a - b).max() / jnp.abs(b).max()) for a, b in pairs)


@pytest.mark.parametrize(
    ("block_size", "layer_norm"), [pytest.param(1, True, marks=pytest.mark.slow), (4, False)]
)
def test_one_hamiltonian_equals_the_plain_version(block_size, layer_norm):
    """Gradients by weights of gradients by states, in double precision: the same function."""
    with jax.enable_x64(True):
        model, (window,), (z,) = jax.tree.map(
            lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x,
            make(block_size, layer_norm),
        )
        network, Q, P = model.stages[0].right.network, *window.at(slice(block_size))
        rungs = NoiseLevel(*jr.randint(jr.key(3), (2, *Q.shape[:2]), 0, 11))
        level = jax.tree.map(lambda k: k / 10, rungs)

        def fast(network, Q, P):
            return network(Q, P, level, z)

        def slow(network, Q, P):
            return jax.vmap(lambda *x: plain.scalar(network, *x))(Q, P, *rungs, z)

        @eqx.filter_jit
        def by_weights(value):
            weights, static = eqx.partition(network, eqx.is_inexact_array)

            def squares(weights):
                whole = eqx.combine(weights, static)
                forces = jax.grad(lambda *x: value(whole, *x).sum(), argnums=(0, 1))(Q, P)
                return sum((force**2).sum() for force in forces)

            return jax.grad(squares)(weights)

        assert largest_difference(by_weights(fast), by_weights(slow)) < 1e-10


def test_training_gradients_equal_the_plain_version_in_single_precision():
    model, windows, codes = make(2, False)

    @eqx.filter_jit
    def reference(model, windows, codes, key):
        weights, static = eqx.partition(model, eqx.is_inexact_array)

        def loss(weights, codes):
            return plain.loss(eqx.combine(weights, static), windows, codes, key)

        return jax.value_and_grad(loss, argnums=(0, 1))(weights, codes)

    value, truth = reference(model, windows, codes, jr.key(2))
    terms, ours = eqx.filter_jit(loss_and_gradient)(model, windows, codes, jr.key(2), 0)
    np.testing.assert_allclose(sum(terms.values()), value, rtol=1e-5)
    assert largest_difference(ours, truth) < 5e-5


def test_chunks_add_up_to_the_whole_batch():
    """Without noise nothing is drawn, so chunking may change round-off only."""
    config = DHNConfig(network=NetworkConfig(width=8, depth=1), latent_size=5)
    model = draw_weights(DHNModel, config, CONTEXT, jr.key(0))
    _, windows, codes = make(1, False)
    run = eqx.filter_jit(loss_and_gradient)
    whole = run(model, windows, codes, jr.key(2), 0)
    chunked = run(model, windows, codes, jr.key(2), 2)
    assert largest_difference(chunked, whole) < 1e-5


@contextlib.contextmanager
def compilations():
    """Names of the functions compiled meanwhile."""
    names = []

    def listen(event, duration, **details):
        if event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            names.append(details.get("fun_name", ""))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_fresh_weights_are_one_program():
    """Drawn one by one they were hundreds, which took longer than a short training."""
    config = DHNConfig(network=NetworkConfig(width=9, depth=1), latent_size=3)
    key = jr.key(0)
    with compilations() as names:
        draw_weights(DHNModel, config, CONTEXT, key)
    assert len(names) == 1, names


def test_neither_steps_nor_trajectories_recompile():
    def work(trajectories, train_steps, forecast_steps):
        data = dhn.simulate("single_pendulum", trajectories=trajectories, seed=0)
        model = dhn.DHN(width=8, depth=1, latent_size=2, batch_size=32)
        model.fit(data, steps=train_steps)
        model.forecast(data[:, :8], forecast_steps)

    heavy = ("run_steps", "_fit_codes", "roll_out")
    with compilations() as first:
        work(20, 20, 5)
    for name in heavy:
        assert any(name in compiled for compiled in first), (name, first)
    with compilations() as again:
        work(27, 35, 9)
    assert not [x for x in again if any(name in x for name in heavy)]
