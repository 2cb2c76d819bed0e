"""One contract that every trainable model passes: DHN and the baselines, from one table."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from dhn.blocks import StateBlock, cut_windows, window_starts
from dhn.models import AbstractForecaster, DHNConfig, ModelContext, NetworkConfig
from dhn.models.registry import build_model, config_class
from dhn.reproduction.baselines import (
    AbstractUpsampler,
    CNNConfig,
    HNNConfig,
    NeighbourConfig,
    VanillaConfig,
)
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


def build(config, dtype=np.float32, shake=0.0):
    """`shake` moves all weights, so that none of them is zero."""
    model = build_model(config, context(), jr.key(0))
    weights, static = eqx.partition(model, eqx.is_inexact_array)
    rng = np.random.default_rng(0)
    weights = jax.tree.map(
        lambda x: jnp.asarray(x + shake * rng.normal(size=x.shape), dtype), weights
    )
    return eqx.combine(weights, static)


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


# One of each kind; the others differ in a part that tests of their own have seen.
QUICKLY_FITTED = ("dhn paired", "hnn midpoint", "vanilla resnet, context", "cnn", "neighbour")
QUICK = (*QUICKLY_FITTED, "generating function", "dhn transformer", "hnn dopri5", "cnn with a code")
assert set(QUICK) <= set(CONFIGS)


def marked(quick):
    """All configurations; those that are not quick wait for `make test-all`."""
    return [
        pytest.param(name, id=name, marks=() if name in quick else pytest.mark.slow)
        for name in CONFIGS
    ]


@pytest.fixture(params=marked(QUICK))
def config(request):
    return CONFIGS[request.param]


def test_a_config_survives_json_and_refuses_unknown_keys(config):
    kind = config_class(config.kind)
    assert kind.model_validate_json(config.model_dump_json()) == config
    with pytest.raises(ValueError, match="widht"):
        kind(**{**config.model_dump(), "widht": 3})


def everything(model, windows, codes):
    """Losses, their gradients and all residuals, as one program."""
    weights, static = eqx.partition(model, eqx.is_inexact_array)

    def loss(weights, codes):
        terms = eqx.combine(weights, static).losses(windows, codes, jr.key(1))
        return sum(terms.values()), terms

    (_, terms), gradients = jax.value_and_grad(loss, (0, 1), has_aux=True)(weights, codes)
    rows = tuple(
        model.stage_residuals(stage, window, z)
        for stage, (window, z) in enumerate(zip(windows, codes, strict=True))
    )
    return terms, gradients, rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(config, dtype):
    with jax.enable_x64(dtype == np.float64):
        model = build(config, dtype)
        said = eqx.filter_eval_shape(everything, model, *batch(model, 4, dtype))
        assert {x.dtype for x in jax.tree.leaves(said)} == {np.dtype(dtype)}


def test_compiled_losses_gradients_and_residuals(config):
    model = build(config, shake=0.01)
    windows, codes = batch(model, 4)
    compiled = eqx.filter_jit(everything)
    terms, (by_weight, by_code), rows = compiled(model, windows, codes)
    assert set(terms) == set(model.loss_names)  # a compiled function sorts the keys of a dict
    assert all(jnp.isfinite(x).all() for x in jax.tree.leaves((terms, by_weight, by_code, rows)))
    assert any(jnp.abs(g).max() > 0 for g in jax.tree.leaves(by_weight))
    if getattr(config, "latent_size", 0) > 0:
        assert any(jnp.abs(g).max() > 0 for g in by_code)
    # Samples do not see each other: the first one's residuals stay when the others change.
    # Only the order of sums may differ; errors are counted in units of a small change.
    other = jax.tree.map(lambda x: x.at[1:].set(x[:1] + 1), (windows, codes))
    for row, again in zip(rows, compiled(model, *other)[2], strict=True):
        assert len(row) == 4
        np.testing.assert_allclose(row[0], again[0], atol=2e-4)
        assert jnp.abs(row[1] - again[1]).max() > 1e-3


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
    z = jnp.zeros((2, model.latent_size))
    filled = jax.jit(lambda sparse, z: model.upsample(sparse, z, 4))(sparse, z)
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
    def step(states, z, dz):
        return jax.jvp(lambda z: model.advance(states, z, jr.key(0)), (z,), (dz,))

    after, tangent = step(states, z, jnp.ones_like(z))
    for x in (*after, *tangent):
        assert x.shape == (2, model.step_length, 2)
        assert x.dtype == np.float32
        assert jnp.isfinite(x).all()
    assert max(float(jnp.abs(x).max()) for x in tangent) > 0
    changed = jax.tree.map(lambda x: x.at[1].set(0.5 * x[0]), states)
    other, _ = step(changed, z, jnp.ones_like(z))
    np.testing.assert_allclose(after.q[0], other.q[0], atol=1e-5)
    np.testing.assert_allclose(after.p[0], other.p[0], atol=1e-5)


@pytest.mark.parametrize("name", marked(QUICKLY_FITTED))
def test_two_trajectories_are_fitted(name):
    """From the one training loop, to a loss that only a model of the motion can reach."""
    training = TrainingConfig(steps=800, batch_size=16, learning_rate=8e-3, warmup=20)
    model = build(CONFIGS[name])
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
    state, log = run_steps(run, state, jnp.asarray(1))
    before = float(sum(log.losses.values()))
    state, log = run_steps(run, state, jnp.asarray(training.steps - 51))
    state, log = run_steps(run, state, jnp.asarray(50))
    assert bool(log.finite)
    after = float(sum(log.losses.values()))
    print(f"{name}: {before:.2e} -> {after:.2e}")
    # Denoising has a floor: what noise has destroyed cannot be known.
    assert after < before * (0.2 if "denoising" in model.loss_names else 2e-3)
