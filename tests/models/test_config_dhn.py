"""Configurations: exact JSON round trips, and nothing misspelt or impossible gets in."""

import jax
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhn.errors import UserError
from dhn.models import DenoisingConfig, DHNConfig, NetworkConfig
from dhn.models.contract import ModelContext
from dhn.models.presets import PRESETS
from dhn.models.registry import build_model

weights = st.floats(0.0, 1e6, allow_nan=False)
networks = st.builds(
    NetworkConfig,
    kind=st.sampled_from(["mlp", "transformer"]),
    width=st.integers(1, 512),
    depth=st.integers(1, 6),
    activation=st.sampled_from(["tanh", "silu", "gelu"]),
    layer_norm=st.booleans(),
)
configs = st.builds(
    DHNConfig,
    block_size=st.integers(1, 16),
    stride=st.integers(0, 16),
    spacings=st.lists(st.integers(1, 16), min_size=1, max_size=4).map(tuple),
    linked=st.booleans(),
    network=networks,
    mask=st.sampled_from(["autoregressive", "random", "a name of my own"]),
    denoising_weight=weights,
    equation_weight=weights,
    consistency_weight=weights,
    damping=st.sampled_from(["none", "learned"]),
    inference=st.builds(
        DenoisingConfig, start=st.sampled_from(["noise", "persistence"]), temperature=weights
    ),
)


@given(configs)
def test_json_round_trips_are_exact(config):
    assert DHNConfig.model_validate_json(config.model_dump_json()) == config
    assert hash(config) == hash(config.model_copy())


@pytest.mark.parametrize("name", PRESETS)
def test_presets_round_trip(name):
    config = PRESETS[name][0]
    assert type(config).model_validate_json(config.model_dump_json()) == config


def test_the_papers_network_has_the_papers_size():
    network, config = PRESETS["paper"][0].network, PRESETS["paper"][0]
    assert (network.kind, network.depth, network.width, network.heads) == ("transformer", 2, 128, 4)
    assert config.latent_size == 128
    assert config.denoising_steps == config.inference.steps == 10


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"blocksize": 2}, "Extra inputs are not permitted"),
        ({"network": {"widht": 8}}, "Extra inputs are not permitted"),
        ({"block_size": 0}, "greater than or equal to 1"),
        ({"stride": -1}, "greater than or equal to 0"),
        ({"spacings": []}, "at least 1 item"),
        ({"spacings": [2, 0]}, "greater than or equal to 1"),
        ({"denoising_weight": -1.0}, "greater than or equal to 0"),
        ({"denoising_weight": float("inf")}, "finite number"),
        ({"inference": {"temperature": float("nan")}}, "finite number"),
        ({"network": {"activation": "relu"}}, "'tanh', 'silu' or 'gelu'"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, complaint):
    with pytest.raises(pydantic.ValidationError, match=complaint):
        DHNConfig.model_validate(given)


def test_configurations_do_not_change():
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        DHNConfig().block_size = 3


TOO_LARGE = [
    {"network": NetworkConfig(width=10**9)},
    {"latent_size": 10**12},
    {"network": NetworkConfig(kind="transformer", width=10**8)},
]


@pytest.mark.parametrize("fields", TOO_LARGE, ids=["width", "latent_size", "transformer"])
def test_a_model_that_does_not_fit_is_refused_before_it_is_built(fields):
    context = ModelContext(dim=1, time_step=0.1, angles=(False,), radian=(1.0,), changes=(0.1,))
    with pytest.raises(UserError, match=r"a model of \d+ parameters would need about .* are free"):
        build_model(DHNConfig(**fields), context, jax.random.key(0))
