"""The paper's solver on whole trajectories: exact oscillators are found from what is known."""

import sys
from pathlib import Path

import jax
import jax.random as jr
import numpy as np
import pytest

from dhn.blocks import StateBlock
from dhn.errors import UserError
from dhn.models import DenoisingConfig
from dhn.reconstruct.denoiser import denoise_trajectories, straight_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from exact_oscillator import exact_model, exact_states, with_precision

LENGTH = 14


SHAPE = (5, LENGTH, 3)


def patterns():
    """Which states of five trajectories are known: booleans (n, T, d)."""
    draw = np.random.default_rng(0)
    first, fourth = np.zeros((2, *SHAPE), bool)
    first[:, :4] = True
    fourth[:, ::4] = fourth[:, -1] = True
    some = np.broadcast_to(draw.random((5, LENGTH, 1)) < 0.3, SHAPE).copy()
    some[:, :3] = True
    return {"forecast": first, "interpolation": fourth, "states at random": some}


def solve(model, truth, known, z, seed=0):
    holes = [np.where(part, x, np.nan) for part, x in zip(known, truth, strict=True)]
    model = with_precision(model, z.dtype)
    known = StateBlock(*known)
    return denoise_trajectories(model, StateBlock(*holes), known, np.asarray(z), jr.key(seed))


@pytest.mark.parametrize("name", patterns())
@pytest.mark.parametrize(
    ("b", "s", "linked"), [(1, 1, False), (2, 1, False), (1, 1, True), (2, 1, True)]
)
def test_the_exact_motion_is_found_from_any_known_states(b, s, linked, name):
    with jax.enable_x64(True):
        truth, z = exact_states(0, LENGTH)
        known = patterns()[name]
        found = solve(exact_model(b, s, linked=linked), truth, (known, known), z)
        assert found.settled.all()
        for x, exact in zip(found.states, truth, strict=True):
            np.testing.assert_allclose(x, exact, atol=1e-11)
            np.testing.assert_array_equal(x[known], np.asarray(exact)[known])


def test_single_numbers_may_be_known():
    """Half of all numbers, here and there; the others follow, only more slowly."""
    with jax.enable_x64(True):
        truth, z = exact_states(0, LENGTH)
        known = np.random.default_rng(0).random((2, *SHAPE)) < 0.5
        known[:, :, [0, -1]] = True
        found = solve(exact_model(1, 1, linked=False), truth, tuple(known), z)
        for x, part, exact in zip(found.states, known, truth, strict=True):
            np.testing.assert_allclose(x, exact, atol=1e-6)
            np.testing.assert_array_equal(x[part], np.asarray(exact)[part])


def test_noise_to_begin_with_is_forgotten():
    """With larger blocks, too."""
    with jax.enable_x64(True):
        truth, z = exact_states(0, LENGTH)
        config = DenoisingConfig(noisy_rounds=10, clean_rounds=1)
        model = exact_model(
            4, 2, linked=False, inference=config, noise="uniform", denoising_weight=0.1
        )
        known = patterns()["forecast"]
        for seed in (0, 1):
            found = solve(model, truth, (known, known), z, seed)
            for x, exact in zip(found.states, truth, strict=True):
                np.testing.assert_allclose(x, exact, atol=1e-11)


def test_positions_alone_do_not_settle():
    with jax.enable_x64(True):
        truth, z = exact_states(0, LENGTH)
        known = (np.ones(SHAPE, bool), np.zeros(SHAPE, bool))
        found = solve(exact_model(1, 1, linked=False), truth, known, z)
        assert not found.settled.any()
        np.testing.assert_array_equal(found.states.q, truth.q)


def test_straight_lines_join_what_is_known():
    x = np.array([[[0.0], [np.nan], [4.0], [np.nan]], [[np.nan]] * 4])
    found = straight_lines(x, np.isfinite(x))
    np.testing.assert_array_equal(found[..., 0], [[0, 2, 4, 4], [0, 0, 0, 0]])


def test_trajectories_shorter_than_a_window_are_refused():
    truth, z = exact_states(0, 3, dtype="float32")
    known = StateBlock(*(np.ones(x.shape, bool) for x in truth))
    with pytest.raises(UserError, match=r"at least 6 states, one window of this model; got 3"):
        denoise_trajectories(
            exact_model(4, 2, linked=False), truth, known, np.asarray(z), jr.key(0)
        )
