"""Batches of whole trajectories, dense codes and the penalty, as the paper trains."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from small import oscillators, prepared, problem, recipe

from dhn.blocks import cut_windows
from dhn.codes.codebook import CodebookState, update_all
from dhn.models import DHNConfig, NetworkConfig, WindowShape
from dhn.training.config import TrainingConfig
from dhn.training.fit import fit
from dhn.training.step import (
    count_pieces,
    draw_trajectories,
    loss_and_gradient,
    make_optimiser,
    windows_per_step,
)
from dhn.trajectories.scaling import Scaler

SHAPES = [WindowShape(3), WindowShape(3, 2)]


def data_with_a_short_one():
    """Seven trajectories of 24 states; the third ends after 10, the fifth has no window."""
    data = oscillators(7, 24)
    known = np.array(data.known)
    known[2, 10:] = False
    known[4, 1:] = False
    return data.replace(known=known)


@pytest.fixture(scope="module")
def arrays():
    data = data_with_a_short_one()
    return prepared(data, Scaler.fit(data), SHAPES)


def test_a_batch_holds_every_window_of_its_trajectories(arrays):
    assert arrays.whole.most == (22, 20)
    draw = jax.jit(lambda step: draw_trajectories(jr.key(0), arrays, 2, step))
    seen = []
    for step in range(3):
        picks = [np.asarray(pick) for pick in draw(step)]
        assert [len(pick) for pick in picks] == [44, 40]
        rows = {tuple(dict.fromkeys(pick[:, 0])) for pick in picks}
        assert len(rows) == 1, "all stages see the same trajectories"
        seen += list(rows.pop())
        for pick, last in zip(picks, (22, 20), strict=True):
            for row in set(pick[:, 0]):
                starts = np.sort(pick[pick[:, 0] == row, 1])
                whole = np.arange(last - 14 if row == 2 else last)
                np.testing.assert_array_equal(np.unique(starts), whole)
                if row != 2:
                    np.testing.assert_array_equal(starts, whole)
    # Six of seven have windows; three batches of two are one round.
    assert sorted(seen) == [0, 1, 2, 3, 5, 6]


def test_a_batch_may_end_one_round_and_begin_the_next(arrays):
    picks = [draw_trajectories(jr.key(0), arrays, 4, jnp.asarray(step))[0] for step in range(3)]
    rows = [row for pick in picks for row in np.asarray(pick)[::22, 0]]
    assert sorted(rows[:6]) == sorted(rows[6:]) == [0, 1, 2, 3, 5, 6]
    assert rows[:6] != rows[6:], "in another order"


@pytest.mark.parametrize(
    ("sizes", "chunk", "pieces"),
    [
        ([256], 128, 2),
        ([16], 128, 1),
        ([4064], 64, 32),  # 32 trajectories of 127 windows
        ([32 * 57, 32 * 61, 32 * 63], 64, 32),
        ([251], 64, 1),  # a prime has no pieces
        ([4096], 0, 1),
    ],
)
def test_batches_are_cut_into_equal_pieces_near_the_chunk_size(sizes, chunk, pieces):
    assert count_pieces(sizes, chunk) == pieces


def test_stages_with_different_numbers_of_windows_are_chunked_together():
    config = DHNConfig(
        block_size=2,
        linked=False,
        network=NetworkConfig(width=8, depth=1),
        latent_size=2,
        spacings=(2, 1),
    )
    model, data, scaler = problem(config=config)
    arrays = prepared(data, scaler, model.window_shapes)
    picks = draw_trajectories(jr.key(0), arrays, 4, jnp.asarray(0))
    windows = tuple(
        cut_windows(arrays.states, pick[:, 0], pick[:, 1], *shape)
        for pick, shape in zip(picks, model.window_shapes, strict=True)
    )
    codes = tuple(0.1 * jr.normal(jr.key(2), (len(pick), 2)) for pick in picks)
    whole, cut = (
        jax.jit(lambda size=size: loss_and_gradient(model, windows, codes, jr.key(1), size))()
        for size in (0, 20)
    )
    for a, b in zip(jax.tree.leaves(cut), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_training_on_whole_trajectories_learns_and_counts_its_windows():
    training = recipe(steps=120, batch_of="trajectories", batch_size=6, code_start=1.0)
    result = fit(*problem(), training, progress=False)
    first, last = result.history[0]["loss"], result.history[-1]["loss"]
    assert last < 0.4 * first
    model, data, scaler = problem()
    assert windows_per_step(prepared(data, scaler, model.window_shapes), training) == (6 * 23,)


def test_dense_codes_follow_optax_with_the_penalty():
    """Rows that no batch names move, too: by momentum, and towards zero."""
    penalty, rate = 0.1, 0.01
    state = CodebookState.start(jr.key(0), 4, 3, 1.0, jnp.float32)
    reference = state.rows
    optimiser = optax.chain(optax.add_decayed_weights(penalty), optax.adam(rate))
    moments = optimiser.init(reference)
    draw = np.random.default_rng(0)
    for _ in range(5):
        index = jnp.asarray(draw.integers(0, 3, 6))
        gradient = jnp.asarray(draw.normal(size=(6, 3)), jnp.float32)
        state = update_all(state, index, gradient, jnp.float32(rate), penalty)
        dense = jnp.zeros((4, 3)).at[index].add(gradient)
        updates, moments = optimiser.update(dense, moments, reference)
        reference = optax.apply_updates(reference, updates)
    np.testing.assert_allclose(state.rows, reference, rtol=1e-5, atol=1e-6)


def test_the_penalty_is_part_of_the_gradient_and_nothing_is_clipped():
    weights = {"up": jnp.full((3, 3), 2.0)}
    gradient = {"up": jnp.full((3, 3), 100.0)}
    config = TrainingConfig(optimiser="adam", l2=0.5, clip=0.0)
    ours, plain = make_optimiser(config), optax.scale_by_adam()
    found, _ = ours.update(gradient, ours.init(weights), weights)
    moved = {"up": gradient["up"] + 0.5 * weights["up"]}
    expected, _ = plain.update(moved, plain.init(weights))
    np.testing.assert_allclose(found["up"], expected["up"], rtol=1e-6)
