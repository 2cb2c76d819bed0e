"""Configurations: exact JSON round trips, and nothing misspelt or impossible gets in."""

import jax
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dhn
from dhn.errors import UserError
from dhn.models import DenoisingConfig, DHNConfig, NetworkConfig
from dhn.models.contract import ModelContext
from dhn.models.presets import PRESETS
from dhn.models.registry import build_model

positive = st.floats(1e-3, 1e6, allow_nan=False)
mlps = st.builds(NetworkConfig, width=st.integers(1, 512), depth=st.integers(1, 6))
transformers = st.builds(
    NetworkConfig,
    kind=st.just("transformer"),
    heads=st.integers(1, 8),
    activation=st.sampled_from(["tanh", "silu", "gelu", "relu"]),
    layer_norm=st.booleans(),
    initial=st.sampled_from(["wide", "pytorch"]),
)
linked = st.builds(
    DHNConfig,
    block_size=st.integers(1, 16),
    stride=st.integers(0, 16),
    network=mlps | transformers,
    equation_weight=positive,
    damping=st.sampled_from(["none", "learned"]),
)
paired = st.builds(
    DHNConfig,
    block_size=st.just(2),
    spacings=st.lists(st.integers(1, 16), min_size=1, max_size=4).map(tuple),
    linked=st.just(False),
    network=mlps | transformers,
    units=st.sampled_from(["change", "state"]),
    mask=st.sampled_from(["random", "a name of my own"]),
    shared_mask=st.booleans(),
    noise=st.sampled_from(["ladder", "uniform"]),
    denoising_outputs=st.sampled_from(["unknown", "all"]),
    denoising_weight=positive,
    equation_weight=positive,
    inference=st.builds(
        DenoisingConfig,
        noisy_rounds=st.sampled_from([5, 10]),
        temperature=positive,
        advance=st.sampled_from(["stride", "one"]),
    ),
)
configs = linked | paired


@given(configs)
def test_json_round_trips_are_exact(config):
    assert DHNConfig.model_validate_json(config.model_dump_json()) == config
    assert hash(config) == hash(config.model_copy())


@pytest.mark.parametrize("name", PRESETS)
def test_presets_round_trip(name):
    config = PRESETS[name][0]
    assert type(config).model_validate_json(config.model_dump_json()) == config


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
        ({"network": {"activation": "sine"}}, "'tanh', 'silu', 'gelu' or 'relu'"),
        ({"consistency_weight": 1.0}, "Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, complaint):
    with pytest.raises(pydantic.ValidationError, match=complaint):
        DHNConfig.model_validate(given)


def test_configurations_do_not_change():
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        DHNConfig().block_size = 3


TWO = {"block_size": 2, "linked": False}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"denoising_weight": 0.5}, "denoising_weight=0.5 trains a loss that a linked model never"),
        ({**TWO, "mask": "random"}, "mask='random' has no effect without a denoising loss"),
        ({**TWO, "noise": "uniform"}, "noise='uniform' has no effect without a denoising loss"),
        ({**TWO, "denoising_outputs": "all"}, "denoising_outputs='all' has no effect without"),
        ({**TWO, "denoising_steps": 5}, "denoising_steps=5 has no effect without levels"),
        (
            {**TWO, "denoising_weight": 1.0, "shared_mask": True},
            "shared_mask=True has no effect with the mask autoregressive, which draws nothing",
        ),
        (
            {**TWO, "denoising_weight": 1.0, "noise": "nearby", "denoising_outputs": "all"},
            "denoising_outputs='all' has no effect with noise='nearby'",
        ),
        ({"network": {"heads": 2}}, "heads=2 has no effect in an MLP; leave heads at its default"),
        ({"network": {"layer_norm": True}}, "layer_norm=True has no effect in an MLP"),
        ({"network": {"initial": "pytorch"}}, "initial='pytorch' has no effect in an MLP"),
        (
            {"network": {"kind": "transformer", "quadratic": True}},
            "quadratic=True has no effect in a transformer",
        ),
        ({"inference": {"temperature": 0.5}}, "temperature=0.5 has no effect without noisy rounds"),
    ],
)
def test_what_has_no_effect_is_refused(given, complaint):
    with pytest.raises(pydantic.ValidationError, match=complaint):
        DHNConfig.model_validate(given)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {**TWO, "inference": {"noisy_rounds": 10}},
            "conditions the networks on levels 1 to 1/10, which this training never draws",
        ),
        (
            {
                **TWO,
                "denoising_weight": 1.0,
                "noise": "nearby",
                "inference": {"noisy_rounds": 10},
            },
            "which this training never draws",
        ),
        (
            {**TWO, "denoising_weight": 1.0, "inference": {"noisy_rounds": 4}},
            "uses levels between the 10 that training draws. Use a divisor of denoising_steps",
        ),
        (
            {**TWO, "denoising_weight": 1.0, "equation_weight": 0.0},
            "rounds at level 0, which equation_weight=0 never trains",
        ),
        (
            {"block_size": 4, "stride": 2, "linked": False, "spacings": (2, 1)},
            "block_size=4, stride=2 has others. Use block_size=2, stride=1, or one spacing",
        ),
        (
            {"block_size": 1, "stride": 2, "linked": False, "spacings": (2, 1)},
            "block_size=1, stride=2 has others",
        ),
    ],
)
def test_inference_never_uses_what_was_not_trained(given, complaint):
    with pytest.raises(pydantic.ValidationError, match=complaint):
        DHNConfig.model_validate(given)


def test_the_estimator_answers_in_one_line():
    with pytest.raises(UserError) as found:
        dhn.DHN(mask="random")
    assert str(found.value) == (
        "mask='random' has no effect without a denoising loss (denoising_weight=0); leave mask at "
        "its default 'autoregressive'."
    )


TOO_LARGE = [
    {"network": NetworkConfig(width=10**9)},
    {"latent_size": 2**31 - 1},
    {"network": NetworkConfig(kind="transformer", width=40_000)},
]


@pytest.mark.parametrize("fields", TOO_LARGE, ids=["width", "latent_size", "transformer"])
def test_a_model_that_does_not_fit_is_refused_before_it_is_built(fields):
    context = ModelContext(dim=1, time_step=0.1, angles=(False,), radian=(1.0,), changes=(0.1,))
    with pytest.raises(UserError, match=r"a model of \d+ parameters would need about .* are free"):
        build_model(DHNConfig(**fields), context, jax.random.key(0))


def test_a_configuration_shows_what_differs_from_its_defaults():
    assert repr(DHNConfig()) == "DHNConfig()"
    config = DHNConfig(block_size=2, stride=1, network=NetworkConfig(width=8))
    assert repr(config) == "DHNConfig(block_size=2, network=NetworkConfig(width=8))"
    assert eval(repr(config)) == config
