import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import oscillators, prepared, problem, recipe

from dhn.codes.autodecode import CodePrior
from dhn.models import DHNConfig, NetworkConfig, WindowShape
from dhn.training import session as session_module
from dhn.training.devices import Devices
from dhn.training.fit import fit
from dhn.training.step import TrainState
from dhn.training.storage import load_arrays
from dhn.training.validation import Validator, _of_full_rank, choose_split

TWO = (WindowShape(2),)


def test_twenty_trajectories_or_more_are_held_out_whole():
    known = np.ones((40, 16), bool)
    split = choose_split(known, TWO, 0.1, seed=0)
    assert split.held_out.sum() == 4
    assert not split.train[split.held_out].any() and split.train[~split.held_out].all()
    # The loss is taken on the second half; the first is for the code.
    np.testing.assert_array_equal(split.validation, split.held_out[:, None] & (np.arange(16) >= 8))
    np.testing.assert_array_equal(split.held_out, choose_split(known, TWO, 0.1, 0).held_out)
    assert not np.array_equal(split.held_out, choose_split(known, TWO, 0.1, 1).held_out)


def test_few_trajectories_keep_back_their_ends():
    known = np.ones((3, 20), bool)
    known[1, 12:] = False  # a shorter one gives the end of its own length
    split = choose_split(known, TWO, 0.2, seed=0)
    assert not split.held_out.any()
    assert not (split.train & split.validation).any()
    np.testing.assert_array_equal(split.train | split.validation, known)
    np.testing.assert_array_equal(split.validation.sum(1), [4, 3, 4])
    assert split.validation[1, 9:12].all()


def test_an_end_shorter_than_a_window_grows_to_one():
    split = choose_split(np.ones((3, 40), bool), (WindowShape(3, 4),), 0.05, seed=0)
    np.testing.assert_array_equal(split.validation.sum(1), 9)


@pytest.mark.parametrize(
    ("states", "fraction"), [(5, 0.1), (20, 0.0)], ids=["too short", "not wanted"]
)
def test_no_validation(states, fraction):
    known = np.ones((4, states), bool)
    split = choose_split(known, (WindowShape(4),), fraction, seed=0)
    assert split.train.all() and not split.validation.any()


def test_trajectories_too_short_to_validate_are_not_chosen():
    known = np.ones((30, 16), bool)
    known[:20, 3:] = False
    split = choose_split(known, TWO, 0.2, seed=0)
    assert split.held_out.sum() == 6 and not split.held_out[:20].any()


def test_validation_by_trajectories_finds_their_codes(tmp_path):
    """Held-out frequencies come out of the codes as those of the trained trajectories do."""
    data = oscillators(60, 40)
    arguments = problem(data, DHNConfig(network=NetworkConfig(width=32, depth=1), latent_size=1))
    config = recipe(steps=600, batch_size=128, validation=0.1)
    result = fit(*arguments, config, directory=tmp_path, progress=False)
    measured = [r["validation"] for r in result.history if "validation" in r]
    assert len(measured) == 5
    assert result.validation == measured[-1] < 0.5 * measured[0]
    assert result.chosen == "last"
    metadata, _ = load_arrays(tmp_path / "best.safetensors", "training checkpoint")
    assert metadata["best"]["validation"] == min(measured)
    lines = [json.loads(x) for x in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == result.history

    held = choose_split(np.asarray(data.known), TWO, 0.1, 0).held_out
    frequency = np.random.default_rng(0).uniform(0.8, 1.2, 60)
    order = np.argsort(result.codes[~held, 0])
    book = result.codes[~held, 0][order], frequency[~held][order]
    error = np.interp(result.codes[held, 0], *book) - frequency[held]
    assert np.sqrt(np.mean(error**2)) < 0.3 * frequency.std()


def test_a_padded_prior_describes_the_same_codes():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(50, 1)) @ np.ones((1, 3))
    prior = CodePrior.fit(codes, 0.1)
    padded = _of_full_rank(prior)
    assert prior.basis.shape == (3, 1) and padded.basis.shape == (3, 3)
    np.testing.assert_allclose(padded.basis @ padded.basis.T, prior.basis @ prior.basis.T)
    np.testing.assert_allclose(padded.codes @ padded.basis.T, prior.codes @ prior.basis.T)


def test_validation_never_sees_training_windows():
    """The loss does not change when every state that trains is replaced by nonsense."""
    model, data, scaler = problem(oscillators(4, 30))
    split = choose_split(np.asarray(data.known), TWO, 0.2, seed=0)
    codes = jnp.zeros((1024, 2))

    def loss(data):
        arrays = prepared(data, scaler, TWO, usable=split.train)
        return Validator(data.complete, TWO, split, arrays, 0, Devices()).loss(model, codes)

    spoiled = np.where(split.train[..., None], 7.0, data.q)
    assert loss(data) == loss(data.replace(q=spoiled))
    other = np.where(split.validation[..., None], data.q + 0.1, data.q)
    assert loss(data) != loss(data.replace(q=other))


@pytest.mark.parametrize("folder", [False, True])
def test_the_best_is_returned_if_clearly_better(monkeypatch, tmp_path, folder):
    """Validation losses are dictated; the returned weights are those of the chosen moment."""
    losses = iter([1.0, 0.1, 0.5, 0.6, 0.7])
    states: list[TrainState] = []

    def dictated(session):
        states.append(jax.tree.map(np.asarray, session.state))
        return next(losses)

    monkeypatch.setattr(session_module.Session, "_validation_loss", dictated)
    directory = tmp_path if folder else None
    result = fit(*problem(), recipe(validation=0.2), directory=directory, progress=False)
    assert result.chosen == "best" and result.validation == 0.1 and result.steps == 16
    np.testing.assert_array_equal(result.codes, states[1].codebook.rows[:12])
    assert not np.array_equal(result.codes, states[-1].codebook.rows[:12])
