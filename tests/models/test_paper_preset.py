"""Preset `paper`: each value of the paper and its authors' public code, pinned by name."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from exact_oscillator import Recorder, exact_model, exact_states

import dhn
from dhn.blocks import StateBlock, no_noise
from dhn.models import DHNModel, ModelContext
from dhn.models.presets import get_preset
from dhn.models.registry import draw_weights
from dhn.models.stage import equation_loss
from dhn.training.config import TrainingConfig
from dhn.training.step import initial_state
from dhn.trajectories.scaling import Scaler

CONTEXT = ModelContext(1, 0.1, (True,), (1.0,), (0.25,))
MODEL, RECIPE = get_preset("paper")
TRAINING = TrainingConfig.model_validate(RECIPE)


@functools.cache
def paper(name="paper"):
    return draw_weights(DHNModel, get_preset(name)[0], CONTEXT, jr.key(0))


@functools.cache
def windows(n=64):
    keys = jr.split(jr.key(1), 3)
    states = StateBlock(*(0.5 * jr.normal(key, (n, 3, 1)) for key in keys[:2]))
    return states, jr.normal(keys[2], (n, 128))


def test_blocks_of_two_states_with_stride_one():
    assert (MODEL.block_size, MODEL.stride, MODEL.spacings) == (2, 1, (1,))


def test_two_networks():
    assert not MODEL.linked


def test_all_128_numbers_of_a_code_are_used():
    assert (MODEL.latent_size, TRAINING.code_search) == (128, 0.0)


def test_denoising_weight_one_tenth():
    assert (MODEL.equation_weight, MODEL.denoising_weight) == (1.0, 0.1)


def test_losses_are_unscaled_sums_of_four_mean_squares():
    window, z = windows()

    @eqx.filter_jit
    def computed(model):
        stage = model.stages[0]
        said = stage.equations(window, no_noise(window), z)
        terms = model.losses((window,), (z,), jr.key(0))
        return said, terms["equation"], equation_loss(stage, window, z)

    (right, left), loss, in_changes = computed(paper())
    first, last = slice(0, 2), slice(1, 3)
    expected = sum(
        np.mean(np.asarray(said - truth) ** 2)
        for said, truth in (
            (right.Q_target, window.q[:, last]),
            (right.P_source, window.p[:, first]),
            (left.Q_source, window.q[:, first]),
            (left.P_target, window.p[:, last]),
        )
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    # In units of a typical change (0.25) it would be 16 times as large.
    np.testing.assert_allclose(16 * expected, in_changes, rtol=1e-5)
    stage = paper().stages[0]
    assert stage.right.scale == stage.left.scale == 1.0


def test_adam_at_1e_4_constant():
    assert TRAINING.optimiser == "adam"
    assert TRAINING.learning_rate == TRAINING.code_learning_rate == 1e-4
    assert (TRAINING.warmup, TRAINING.final_learning_rate) == (0, 1.0)


def test_l2_of_1e_4_on_weights_and_codes_without_clipping():
    assert (TRAINING.l2, TRAINING.clip, TRAINING.code_updates) == (1e-4, 0.0, "all")


def test_batches_of_32_whole_trajectories():
    assert (TRAINING.batch_of, TRAINING.batch_size) == ("trajectories", 32)


def test_6432_steps_on_all_trajectories():
    assert (TRAINING.steps, TRAINING.validation) == (6432, 0.0)


def test_codes_of_128_normal_numbers():
    codes = initial_state(paper(), 500, TRAINING).codebook.rows
    assert codes.shape == (500, 128)
    # 64,000 numbers: five standard errors of mean and standard deviation.
    assert abs(codes.mean()) < 5 / 253 and abs(codes.std() - 1) < 5 / 357
    other = initial_state(paper(), 500, TRAINING.model_copy(update={"seed": 1}))
    assert (other.codebook.rows != codes).any(), "another seed, other codes"


def test_training_levels_are_uniform_and_conditioned_on_the_rung_above():
    """Each Hamiltonian's unknown token: noise of any size, one of ten embeddings, never clean."""
    model = exact_model(2, 1, linked=False, **noise_options())
    calls = []
    stage = eqx.tree_at(
        lambda s: s.right.network, model.stages[0], Recorder(model.stages[0].right.network, calls)
    )
    model = DHNModel(stages=(stage,), config=model.config)
    window, z = exact_states(0, 3, n=2000, d=1, dtype="float32")
    far = jax.tree.map(lambda x: x + 1000.0, window)
    jax.block_until_ready(jax.jit(lambda w: model.losses((w,), (z,), jr.key(0)))(far))
    jax.effects_barrier()
    # The noised windows follow the clean ones.
    _, P, told_q, told_p = (x[2000:] for x in next(call for call in calls if call[3].any()))
    assert (told_q == 0).all() and (told_p[:, 0] == 0).all(), "known tokens are clean"
    applied = 1 - P[:, 1, 0] / 1000.0  # what is left of the signal, to the size of the noise
    np.testing.assert_allclose(told_p[:, 1], np.ceil(10 * told_p[:, 1] - 1e-4) / 10, atol=1e-6)
    assert (applied < told_p[:, 1] + 0.01).all() and (applied > told_p[:, 1] - 0.11).all()
    rungs, counts = np.unique(np.round(10 * told_p[:, 1]).astype(int), return_counts=True)
    np.testing.assert_array_equal(rungs, np.arange(1, 11))
    assert np.abs(counts - 200).max() < 5 * np.sqrt(200)


def noise_options():
    names = ("denoising_weight", "noise", "denoising_outputs", "denoising_steps")
    return {name: getattr(MODEL, name) for name in names}


def test_eleven_level_embeddings_shared_by_all_tokens():
    assert MODEL.noise == "uniform" and MODEL.denoising_steps == 10
    assert paper().stages[0].right.network.embed_level.shape == (11, 128)


@pytest.mark.parametrize(
    ("name", "mask", "outputs"),
    [
        ("paper", "autoregressive", "all"),
        ("paper-random", "random", "all"),
        ("paper-superresolution", "superresolution", "unknown"),
    ],
)
def test_all_outputs_count_except_in_superresolution(name, mask, outputs):
    config = get_preset(name)[0]
    assert (config.mask, config.denoising_outputs) == (mask, outputs)


def test_the_random_mask_is_drawn_once_a_batch():
    assert get_preset("paper-random")[0].shared_mask


def test_superresolution_has_three_stages():
    assert get_preset("paper-superresolution")[0].spacings == (4, 2, 1)


def test_inference_has_eleven_rounds_of_which_the_last_is_clean():
    assert (MODEL.inference.noisy_rounds, MODEL.inference.clean_rounds) == (10, 1)
    assert MODEL.inference.temperature == 1.0


def test_a_forecast_advances_by_one_state_even_for_larger_strides():
    assert MODEL.inference.advance == "one"
    with jax.enable_x64(True):
        inference = MODEL.inference.model_copy(update={"noisy_rounds": 0, "clean_rounds": 30})
        model = exact_model(4, 2, linked=False, inference=inference)
        assert (model.context_length, model.step_length) == (4, 1)
        truth, z = exact_states(0, 5)
        found = eqx.filter_jit(model.advance)(truth.at(slice(0, 4)), z, jr.key(0))
        np.testing.assert_allclose(found.q, truth.q[:, 4:], atol=1e-11)
        np.testing.assert_allclose(found.p, truth.p[:, 4:], atol=1e-11)


def test_the_network_is_pytorchs_encoder():
    """Two post-norm layers, width 128, 4 heads, MLP 512, ReLU, positions from zero."""
    network = MODEL.network
    assert (network.kind, network.depth, network.width, network.heads) == ("transformer", 2, 128, 4)
    assert (network.activation, network.layer_norm) == ("relu", True)
    built = paper().stages[0].right.network
    assert built.layers[0].up.shape == (128, 512)
    for position in (built.position_z, built.position_q, built.position_p):
        assert not position.any()
    bound = {"up": 128**-0.5, "down": 512**-0.5, "query": (1.5 / 128) ** 0.5}
    for name, largest in bound.items():
        found = float(jnp.abs(getattr(built.layers[0], name)).max())
        assert 0.99 * largest < found <= largest, name


def test_post_norm_gives_normed_tokens():
    layer = paper().stages[0].right.network.layers[0]
    out = layer(jr.normal(jr.key(0), (5, 7, 128)), only_first=False)
    np.testing.assert_allclose(out.mean(-1), 0.0, atol=1e-5)
    np.testing.assert_allclose(out.std(-1), 1.0, atol=1e-3)


def test_angles_enter_as_they_are():
    assert MODEL.angles == "raw"


def test_angles_are_told_in_quarter_turns():
    assert TRAINING.scaling == "quarter-turn"
    data = dhn.simulate("single_pendulum", 4, seed=0, steps=12)
    for scaling in ("quarter-turn", "spread"):
        model = dhn.DHN(width=8, depth=1, latent_size=1, scaling=scaling).fit(data, steps=1)
        assert model.trained.scaler == Scaler.fit(data, scaling)
    assert Scaler.fit(data, "quarter-turn") != Scaler.fit(data)


def test_paper_smooth_differs_in_the_activation_alone():
    smooth, recipe = get_preset("paper-smooth")
    assert smooth.network.activation == "gelu" and recipe == RECIPE
    back = smooth.network.model_copy(update={"activation": "relu"})
    assert smooth.model_copy(update={"network": back}) == MODEL
