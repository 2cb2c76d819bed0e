"""Preset `blocks`: one merged pass, noise nearby, clean rounds from a straight continuation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from exact_oscillator import Recorder, cast, exact_model, exact_states, random_stage

from dhn.blocks import BlockSpec, StateBlock, corrupt_nearby, draw_known, get_mask
from dhn.models import DHNModel
from dhn.models.dhn import NOISED_ROWS, continue_straight
from dhn.models.presets import get_preset
from dhn.models.stage import merged_losses

BLOCKS = get_preset("blocks")[0]


def test_two_networks_with_mlps_and_blocks_of_two():
    assert not BLOCKS.linked and BLOCKS.network.kind == "mlp"
    assert (BLOCKS.block_size, BLOCKS.stride, BLOCKS.noise) == (2, 1, "nearby")
    assert (BLOCKS.inference.noisy_rounds, BLOCKS.inference.clean_rounds) == (0, 2)


def test_noise_is_up_to_one_typical_change_and_its_size_is_what_is_told():
    spec, change, n = BlockSpec(2, 1), 0.3, 4000
    states = StateBlock(*jnp.zeros((2, n, 3, 5)))
    known = draw_known(jr.key(0), get_mask("autoregressive"), spec, n)
    moved, level, weight = corrupt_nearby(jr.key(1), states, known, change)
    for x, alpha, part in zip(moved, level, known, strict=True):
        assert not x[:, :2].any() and not alpha[:, :2].any(), "known tokens stay clean"
        sigma = alpha[:, 2] / (1 - alpha[:, 2])
        assert 0.0099 < sigma.min() < 0.012 and 0.85 < sigma.max() < 1.01
        # Log-uniform: as many below 0.1 as above.
        assert abs((sigma < 0.1).mean() - 0.5) < 0.04
        size = x[:, 2] / (change * sigma[:, None])
        assert abs(size.std() - 1) < 0.02 and abs(size.mean()) < 0.03
        np.testing.assert_allclose(weight, (1 + sigma / 0.01) ** -2, rtol=1e-3)
        assert not part[:, 2].any()


def test_merged_losses_by_hand():
    """Clean rows: all outputs. Noised rows: unknown outputs alone, each row weighted."""
    with jax.enable_x64(True):
        stage, n = random_stage(2, 1, linked=False), 8
        draw = np.random.default_rng(0)
        window, z = cast(
            (StateBlock(*draw.normal(size=(2, n, 3, 2))), draw.normal(size=(n, 5))), "float64"
        )
        known = draw_known(jr.key(0), get_mask("autoregressive"), stage.spec, n)
        nearby = corrupt_nearby(jr.key(1), window, known, stage.scale)
        noised = jnp.arange(n) % 4 == 0
        found = merged_losses(stage, window, nearby, known, noised, z)

        def outputs(states, level):
            right, left = stage.equations(states, level, z)
            return [
                np.asarray(said - truth) / stage.scale
                for said, truth in (
                    (right.Q_target, window.q[:, 1:]),
                    (right.P_source, window.p[:, :2]),
                    (left.Q_source, window.q[:, :2]),
                    (left.P_target, window.p[:, 1:]),
                )
            ]

        clean = outputs(window, jax.tree.map(jnp.zeros_like, nearby.level))
        rows = np.asarray(noised)
        np.testing.assert_allclose(found[0], sum(np.mean(e[~rows] ** 2) for e in clean))
        moved = outputs(nearby.states, nearby.level)
        weight = np.asarray(nearby.weight)[rows, None]
        # Only the last state of the target is unknown: in Q_target and in P_target.
        expected = sum(np.mean(weight * moved[i][rows, 1] ** 2) for i in (0, 3))
        np.testing.assert_allclose(found[1], expected)


def test_one_pass_serves_clean_and_noised_windows():
    """One call of each network: every fourth window noised, the others conditioned on level 0."""
    model = exact_model(2, 1, linked=False, denoising_weight=0.02, noise="nearby")
    calls = []
    stage = eqx.tree_at(
        lambda s: s.right.network, model.stages[0], Recorder(model.stages[0].right.network, calls)
    )
    model = DHNModel(stages=(stage,), config=model.config)
    window, z = exact_states(0, 3, n=16, dtype="float32")
    jax.block_until_ready(jax.jit(lambda: model.losses((window,), (z,), jr.key(0)))())
    jax.effects_barrier()
    assert len(calls) == 1
    noised = calls[0][3].any(1)
    np.testing.assert_array_equal(noised, np.arange(16) % NOISED_ROWS == 0)


@pytest.mark.parametrize("mask", ["mixed", "random", "superresolution"])
def test_other_masks_work_in_the_same_recipe(mask):
    """Exact Hamiltonians have no equation loss under any mask, and noise costs something."""
    with jax.enable_x64(True):
        options = {"denoising_weight": 0.02, "noise": "nearby", "mask": mask}
        model = exact_model(2, 1, linked=False, **options)
        window, z = exact_states(0, 3, n=32)
        terms = jax.jit(lambda: model.losses((window,), (z,), jr.key(0)))()
        assert terms["equation"] < 1e-24 and terms["denoising"] > 1e-9


def test_a_straight_continuation():
    x = jnp.asarray([[[1.0], [3.0]]])
    found = continue_straight(StateBlock(x, -x), 2)
    np.testing.assert_array_equal(found.q[0, :, 0], [1, 3, 5, 7])
    np.testing.assert_array_equal(found.p[0, :, 0], [-1, -3, -5, -7])
    alone = continue_straight(StateBlock(x[:, :1], x[:, :1]), 1)
    np.testing.assert_array_equal(alone.q[0, :, 0], [1, 1])
