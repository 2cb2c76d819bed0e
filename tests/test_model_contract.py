"""One contract that every trainable model passes: DHN and the baselines, from one table."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from dhn.baselines import (
    MODELS,
    AbstractUpsampler,
    CNNConfig,
    HNNConfig,
    NeighbourConfig,
    VanillaConfig,
    build_model,
)
from dhn.blocks import StateBlock, cut_windows, window_starts
from dhn.models import AbstractForecaster, DHNConfig, ModelContext, NetworkConfig
from dhn.training.config import TrainingConfig
from dhn.training.step import Run, TrainingData, initial_state, run_steps

MLP = NetworkConfig(width=24, depth=2)
TRANSFORMER = NetworkConfig(kind="transformer", width=16, depth=2, heads=2)
SMALL = {"width": 24, "depth": 2}

CONFIGS = {
    "generating function": DHNConfig(network=MLP, latent_size=2),
    "dhn paired": DHNConfig(
        block_size=2, linked=False, denoising_weight=1.0, network=MLP, latent_size=2
    ),
    "dhn transformer": DHNConfig(block_size=2, linked=False, network=TRANSFORMER, latent_size=2),
    "hnn euler": HNNConfig(network=MLP, training="euler", rollout="euler", latent_size=2),
    "hnn leapfrog": HNNConfig(network=MLP, training="leapfrog", rollout="leapfrog", latent_size=2),
    "hnn rk4": HNNConfig(network=MLP, training="rk4", rollout="rk4", latent_size=2),
    "hnn midpoint": HNNConfig(network=MLP, training="midpoint", rollout="midpoint", latent_size=2),
    "hnn dopri5": HNNConfig(network=MLP, training="rk4", rollout="dopri5", latent_size=2),
    "hnn transformer": HNNConfig(network=TRANSFORMER, latent_size=2, angles="periodic"),
    "vanilla resnet": VanillaConfig(latent_size=2, **SMALL),
    "vanilla resnet, context": VanillaConfig(latent_size=2, context=8, angles="periodic", **SMALL),
    "vanilla transformer": VanillaConfig(network="transformer", width=16, heads=2, latent_size=2),
    "vanilla transformer, context": VanillaConfig(
        network="transformer", width=16, heads=2, latent_size=2, context=4
    ),
    "cnn": CNNConfig(intervals=4, width=16, depth=3),
    "cnn of the paper": CNNConfig(intervals=4, width=16, depth=3, residual=False),
    "cnn with a code": CNNConfig(intervals=4, width=16, depth=3, latent_size=2),
    "neighbour": NeighbourConfig(latent_size=2, **SMALL),
    "neighbour, hermite": NeighbourConfig(latent_size=2, guess="hermite", **SMALL),
}
STATES = 33
TIME_STEP = 0.15


def oscillators(dtype=np.float32) -> StateBlock:
    """Two coupled pairs of oscillators with different frequencies, in scaled units."""
    t = TIME_STEP * np.arange(STATES)[None, :, None]
    w = np.array([[1.0, 1.3], [1.2, 0.8]])[:, None]
    return StateBlock(
        jnp.asarray(1.4 * np.cos(w * t), dtype), jnp.asarray(-1.4 * np.sin(w * t), dtype)
    )


def context() -> ModelContext:
    q, p = oscillators()
    x = np.concatenate([q, p], axis=-1)
    changes = [float(np.sqrt(np.mean((x[:, k:] - x[:, :-k]) ** 2))) for k in (1, 2, 4, 8, 16)]
    return ModelContext(
        dim=2,
        time_step=TIME_STEP,
        angles=(True, False),
        radian=(0.8, 1.0),
        changes=tuple(changes),
    )


def build(config, dtype=np.float32):
    model = build_model(config, context(), jr.key(0))
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, model)


def batch(model, n, dtype=np.float32):
    """A few windows of every stage, and codes that are not zero."""
    states = oscillators(dtype)
    rng = np.random.default_rng(0)
    windows, codes = [], []
    for length, spacing in model.window_shapes:
        starts = window_starts(np.ones(states.q.shape[:2], bool), length, spacing)
        pick = jnp.asarray(starts[rng.integers(len(starts), size=n)])
        windows.append(cut_windows(states, pick[:, 0], pick[:, 1], length, spacing))
        codes.append(jnp.asarray(0.3 * rng.normal(size=(n, model.latent_size)), dtype))
    return tuple(windows), tuple(codes)


@pytest.fixture(params=list(CONFIGS), ids=list(CONFIGS))
def config(request):
    return CONFIGS[request.param]


def test_a_config_survives_json_and_refuses_unknown_keys(config):
    kind = MODELS[config.kind][0]
    assert kind.model_validate_json(config.model_dump_json()) == config
    with pytest.raises(ValueError, match="widht"):
        kind(**{**config.model_dump(), "widht": 3})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_and_gradients_keep_the_precision(config, dtype):
    with jax.enable_x64(dtype == np.float64):
        model = build(config, dtype)
        windows, codes = batch(model, 4, dtype)
        weights, static = eqx.partition(model, eqx.is_inexact_array)

        @jax.jit
        def differentiate(weights, codes):
            def loss(weights, codes):
                terms = eqx.combine(weights, static).losses(windows, codes, jr.key(1))
                return sum(terms.values()), terms

            return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(weights, codes)

        (total, terms), gradients = differentiate(weights, codes)
        assert tuple(terms) == model.loss_names
        for x in jax.tree.leaves((total, terms, gradients)):
            assert x.dtype == dtype
            assert jnp.isfinite(x).all()
        by_code = gradients[1]
        assert model.latent_size == 0 or any(jnp.abs(g).max() > 0 for g in by_code)
        for stage, (window, z) in enumerate(zip(windows, codes, strict=True)):
            rows = model.stage_residuals(stage, window, z)
            assert len(rows) == 4 and rows.dtype == dtype and jnp.isfinite(rows).all()


def test_samples_do_not_see_each_other(config):
    model = build(config)
    for stage, (window, z) in enumerate(zip(*batch(model, 4), strict=True)):
        whole = model.stage_residuals(stage, window, z)
        other = jax.tree.map(lambda x: x.at[1:].set(x[:1] + 1), (window, z))
        # Only the order of sums may differ; errors are counted in units of a small change.
        np.testing.assert_allclose(whole[0], model.stage_residuals(stage, *other)[0], atol=2e-4)
        assert jnp.abs(whole[1] - whole[0]).max() > 1e-3


def test_weights_survive_being_written(config):
    model = build(config)
    other = build_model(config, context(), jr.key(7))
    assert not eqx.tree_equal(model, other)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    assert eqx.tree_equal(model, eqx.tree_deserialise_leaves(file, other))


def test_an_upsampler_keeps_what_it_knows(config):
    model = build(config)
    if not isinstance(model, AbstractUpsampler):
        pytest.skip("not an upsampler")
    states = oscillators()
    sparse = states.at(slice(None, None, 4))
    filled = jax.jit(model.upsample, static_argnums=2)(sparse, jnp.zeros((2, model.latent_size)), 4)
    assert filled.q.shape == filled.p.shape == (2, STATES, 2)
    for said, truth in zip(filled.at(slice(None, None, 4)), sparse, strict=True):
        assert (said == truth).all()


def test_a_forecaster_steps_and_differentiates(config):
    model = build(config)
    if not isinstance(model, AbstractForecaster):
        pytest.skip("not a forecaster")
    states = oscillators().at(slice(0, model.context_length))
    z = 0.1 * jnp.ones((2, model.latent_size))

    @jax.jit
    def step(z):
        return model.advance(states, z, jr.key(0))

    after, tangent = jax.jvp(step, (z,), (jnp.ones_like(z),))
    for x in (*after, *tangent):
        assert x.shape == (2, model.step_length, 2)
        assert x.dtype == np.float32
        assert jnp.isfinite(x).all()
    assert max(float(jnp.abs(x).max()) for x in tangent) > 0
    alone = [
        model.advance(jax.tree.map(lambda x, i=i: x[i : i + 1], states), z[i : i + 1], jr.key(0))
        for i in range(2)
    ]
    np.testing.assert_allclose(after.q, jnp.concatenate([a.q for a in alone]), atol=1e-5)
    np.testing.assert_allclose(after.p, jnp.concatenate([a.p for a in alone]), atol=1e-5)


def test_two_trajectories_are_fitted(config):
    """From the one training loop, to a loss that only a model of the motion can reach."""
    training = TrainingConfig(steps=1500, batch_size=16, learning_rate=8e-3, warmup=20)
    model = build(config)
    states = oscillators()
    starts, counts = [], []
    for length, spacing in model.window_shapes:
        found = window_starts(np.ones(states.q.shape[:2], bool), length, spacing)
        starts.append(jnp.asarray(found))
        counts.append(jnp.asarray(len(found), jnp.int32))
    run = Run(
        static=eqx.filter(model, eqx.is_inexact_array, inverse=True),
        data=TrainingData(states, tuple(starts), tuple(counts)),
        config=training,
        seed=jnp.asarray(0),
        total_steps=jnp.asarray(training.steps),
    )
    state = initial_state(model, 2, training)
    windows, _ = batch(model, 64)
    before = sum(
        model.losses(
            windows, tuple(jnp.zeros((64, model.latent_size)) for _ in windows), jr.key(1)
        ).values()
    )
    state, log = run_steps(run, state, jnp.asarray(training.steps - 50))
    state, log = run_steps(run, state, jnp.asarray(50))
    assert bool(log.finite)
    after = float(sum(log.losses.values()))
    print(f"{float(before):.2e} -> {after:.2e}")
    assert after < 1e-3 * float(before)
