"""How many numbers the codes need: as many as parameters vary."""

import functools

import jax
import pytest

import dhn
from dhn.estimator.code_size import LEAST_STEPS, needed_codes
from dhn.models.config import DHNConfig, NetworkConfig
from dhn.training.config import TrainingConfig
from dhn.training.prepare import make_context
from dhn.training.result import Options
from dhn.trajectories.scaling import Scaler

CONFIG = DHNConfig(network=NetworkConfig(width=32, depth=2), latent_size=3)
RECIPE = TrainingConfig(steps=round(LEAST_STEPS / 0.05), batch_size=128, seed=0)
VARYING = {1: {"k": (0.5, 2.0)}, 2: {"k": (0.5, 2.0), "m": (0.5, 2.0)}}


@functools.cache
def springs(parameters: int):
    return dhn.simulate("mass_spring", 200, seed=0, steps=64, params=VARYING[parameters])


def searched(train, config=CONFIG, recipe=RECIPE, **options):
    scaler = Scaler.fit(train)
    context, how = make_context(train, scaler), Options(progress=False, **options)
    with jax.enable_x64(False):
        return needed_codes(config, context, train, scaler, recipe, how, noisy=False)


@pytest.mark.parametrize("parameters", [1, 2])
def test_as_many_numbers_as_parameters_vary(parameters):
    found = searched(springs(parameters))
    assert found.config.latent_size == parameters
    tried = [3, *range(1, parameters + 1)]
    assert list(found.residuals) == tried
    # One parameter too few leaves an error that no training takes away.
    if parameters == 2:
        assert found.residuals[1] > 5 * found.residuals[2]


@pytest.mark.parametrize(
    "config, recipe",
    [
        (CONFIG.model_copy(update={"latent_size": 1}), RECIPE),
        (CONFIG, RECIPE.model_copy(update={"code_search": 0.0})),
        (CONFIG, RECIPE.model_copy(update={"steps": RECIPE.steps - 20})),
    ],
    ids=["one number", "not wanted", "too few steps"],
)
def test_without_a_search_the_size_is_that_of_the_configuration(config, recipe):
    found = searched(springs(1), config, recipe)
    assert (found.config, found.residuals, found.seconds) == (config, {}, 0.0)


def test_a_short_training_is_not_taken_twice(tmp_path):
    """An interrupted search goes on where it was, with the same result."""
    first = searched(springs(1), directory=tmp_path, resume=False)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("step-*.safetensors")}
    again = searched(springs(1), directory=tmp_path, resume=True)
    assert again.residuals == first.residuals and again.config == first.config
    assert kept and kept == {path: path.stat().st_mtime_ns for path in kept}


def test_a_tiny_budget_is_left_to_the_training():
    assert searched(springs(1), budget=0.05).residuals == {}
