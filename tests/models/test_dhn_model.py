"""The whole model: exact rollouts, stages that see their own windows, honest noise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from exact_oscillator import (
    Recorder,
    cast,
    exact_model,
    exact_states,
    random_network,
)

from dhn.blocks import Known, StateBlock, cut_windows, register_mask
from dhn.errors import UserError
from dhn.models import (
    DHNConfig,
    DHNModel,
    LeftHamiltonian,
    LinkedStage,
    ModelContext,
    NetworkConfig,
    PairedStage,
    RightHamiltonian,
    WindowShape,
)
from dhn.models.damping import LearnedDamping, NoDamping
from dhn.models.registry import draw_weights

CONTEXT = ModelContext(2, 0.1, (False, False), (1.0, 1.0), (0.1, 0.2, 0.4, 0.8))
SMALL = NetworkConfig(width=8, depth=1)


@eqx.filter_jit
def roll_out(model, context, z, steps):
    """Slide the context along, as a forecast does."""

    def step(context, _):
        new = model.advance(context, z, jr.key(0))
        joined = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), context, new)
        return joined.at(slice(model.step_length, None)), new

    _, new = jax.lax.scan(step, context, None, length=steps)
    return jax.tree.map(lambda x: jnp.concatenate(list(x), axis=1), new)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(
    ("b", "s", "precision"),
    [
        (1, 1, "float64"),
        (2, 1, "float64"),
        (4, 2, "float64"),
        (2, 3, "float64"),
        (2, 1, "float32"),
    ],
)
def test_rollouts_reproduce_the_oscillator(b, s, precision, linked):
    """Ten steps; single precision may lose some roundings at each of them."""
    with jax.enable_x64(precision == "float64"):
        model, steps = exact_model(b, s, linked=linked), 10
        length = model.context_length + steps * model.step_length
        truth, z = exact_states(4, length, dtype=precision)
        states = roll_out(model, truth.at(slice(0, model.context_length)), z, steps)
        tolerance = 1e-11 if precision == "float64" else 1e-4
        expected = truth.at(slice(model.context_length, None))
        for said, exact in zip(states, expected, strict=True):
            assert said.shape == exact.shape and said.dtype == precision
            np.testing.assert_allclose(said, exact, atol=tolerance, rtol=0)


def test_context_and_step_make_up_a_window():
    for b, s in [(1, 1), (4, 2), (2, 3), (3, 0)]:
        model = exact_model(b, s, linked=True)
        assert (model.context_length, model.step_length) == (max(b, s), min(b, s))
        assert model.window_shapes == (WindowShape(b + s, 1),)


def test_without_a_stage_on_the_datas_grid_there_is_no_forecast():
    model = exact_model(2, 1, linked=True, spacings=(4, 2))
    context, z = exact_states(0, 2, dtype="float32")
    with pytest.raises(UserError, match=r"finest stage has spacing 2\. Train with 1 among"):
        model.advance(context, z, jr.key(0))


@pytest.mark.parametrize("linked", [False, True])
def test_three_stages_look_at_their_own_windows_with_one_codebook(linked):
    """Exact for spacings 4, 2 and 1: any other window or code would leave a residual."""
    with jax.enable_x64(True):
        spacings = (4, 2, 1)
        model = exact_model(2, 1, linked=linked, spacings=spacings)
        assert model.window_shapes == tuple(WindowShape(3, spacing) for spacing in spacings)
        assert model.finest.spacing == 1
        states, codebook = exact_states(3, 20)
        rows = [jnp.asarray(r) for r in ([0, 1, 2, 4], [3, 3, 0, 1], [4, 2, 1, 0])]
        starts = jnp.asarray([0, 5, 9, 2])
        windows = tuple(
            cut_windows(states, row, starts, *shape)
            for row, shape in zip(rows, model.window_shapes, strict=True)
        )
        codes = tuple(codebook[row] for row in rows)
        losses = eqx.filter_jit(lambda *given: model.losses(*given, jr.key(0)))
        assert losses(windows, codes)["equation"] < 1e-24
        assert losses(windows[::-1], codes[::-1])["equation"] > 1e-3
        assert losses(windows, codes[::-1])["equation"] > 1e-3
        for i in range(3):
            residuals = jax.jit(model.stage_residuals, static_argnums=0)(i, windows[i], codes[i])
            np.testing.assert_allclose(residuals, 0.0, atol=1e-12)


def test_losses_are_means_over_stages_and_follow_their_weights():
    window, z = cast(random_window(length=3), "float32")
    config = DHNConfig(block_size=2, linked=False, network=SMALL, spacings=(2, 1), latent_size=5)

    @jax.jit
    def evaluate(key):
        model = DHNModel.build(config, CONTEXT, key)
        found = []
        for equation, denoising in ((1.0, 0.0), (2.0, 0.0), (1.0, 1.0), (0.0, 3.0)):
            weights = {"equation_weight": equation, "denoising_weight": denoising}
            weighted = DHNModel(stages=model.stages, config=config.model_copy(update=weights))
            found.append(weighted.losses((window,) * 2, (z,) * 2, jr.key(1)))
            assert set(found[-1]) == set(weighted.loss_names)
        return found, [jnp.mean(model.stage_residuals(i, window, z) ** 2) for i in (0, 1)]

    (alone, double, both, denoising), said = evaluate(jr.key(0))
    assert set(alone) == {"equation"} and set(both) == {"equation", "denoising"}
    # Four outputs of the same size, each with its own mean.
    np.testing.assert_allclose(alone["equation"], 4 * np.mean(said), rtol=1e-5)
    np.testing.assert_allclose(double["equation"], 2 * alone["equation"], rtol=1e-5)
    np.testing.assert_allclose(both["equation"], alone["equation"], rtol=1e-5)
    np.testing.assert_allclose(denoising["denoising"], 3 * both["denoising"], rtol=1e-5)
    assert denoising["equation"] == 0


def random_window(n=4, length=2):
    draw = np.random.default_rng(0)
    return StateBlock(*draw.normal(size=(2, n, length, 2))), draw.normal(size=(n, 5))


def recorded_model(b, s, **options):
    spec_model = exact_model(b, s, linked=False, denoising_weight=1.0, **options)
    right, left = (Recorder(random_network("mlp", b), []) for _ in range(2))
    stage = PairedStage(
        right=RightHamiltonian(right, 0.3),
        left=LeftHamiltonian(left, 0.3),
        damping=NoDamping(),
        spec=spec_model.stages[0].spec,
        spacing=1,
        scale=1.0,
    )
    return DHNModel(stages=(stage,), config=spec_model.config)


@pytest.mark.parametrize("mask", ["random", "autoregressive"])
def test_in_training_the_told_level_is_the_applied_one(mask):
    """Twice the same noise, on states and on states moved by one.

    What the networks are given then differs by `1 - α` for each token, in all its coordinates, if
    and only if α is the level that was applied; and α is what the network was told.
    """
    model = cast(recorded_model(2, 1, mask=mask), "float32")
    window, z = cast(random_window(50, 3), "float32")
    moved = jax.tree.map(lambda x: x + 1.0, window)
    losses = jax.jit(lambda states: model.losses((states,), (z,), jr.key(2)))
    for states in (window, moved):
        jax.block_until_ready(losses(states))
    jax.effects_barrier()
    for hamiltonian in (model.stages[0].right, model.stages[0].left):
        halves = [[np.split(x, 2) for x in call] for call in hamiltonian.network.calls]
        clean, (first, second) = ([[x[k] for x in call] for call in halves] for k in (0, 1))
        assert not any(call[2].any() or call[3].any() for call in clean), (
            "the equations' level is 0"
        )
        for i in (0, 1):
            alpha = first[2 + i]
            np.testing.assert_array_equal(alpha, second[2 + i])
            change = second[i] - first[i]
            expected = np.broadcast_to(1 - alpha[..., None], change.shape)
            np.testing.assert_allclose(change, expected, atol=1e-6)
            assert ((alpha >= 0) & (alpha <= 1)).all()
    # Both Hamiltonians are told the same of the token they share: the middle state's q.
    right, left = (h.network.calls[0] for h in (model.stages[0].right, model.stages[0].left))
    assert right[2].any() or right[3].any()
    np.testing.assert_array_equal(right[2][:, 1], left[2][:, 0])


def test_a_mask_of_your_own_reaches_the_loss():
    """All tokens known: nothing to denoise; a pattern is found by the name in the configuration."""

    def everything(key, spec):
        return Known(*(jnp.ones(spec.window_length, bool),) * 2)

    register_mask("everything-known", everything)
    model = exact_model(2, 1, linked=False, denoising_weight=1.0, mask="everything-known")
    window, z = exact_states(0, 3, dtype="float32")
    assert jax.jit(model.losses)((window,), (z,), jr.key(0))["denoising"] == 0
    model = exact_model(2, 1, linked=False, denoising_weight=1.0, mask="everything")
    with pytest.raises(UserError, match=r"unknown mask pattern 'everything'.*register_mask"):
        model.losses((window,), (z,), jr.key(0))


@pytest.mark.parametrize(("b", "s", "linked"), [(2, 0, False), (1, 3, True)])
def test_strides_of_zero_and_beyond_the_block_train(b, s, linked):
    config = DHNConfig(
        block_size=b,
        stride=s,
        linked=linked,
        network=SMALL,
        latent_size=5,
        denoising_weight=0.0 if linked else 1.0,
        mask="autoregressive" if linked else "mixed",
    )
    window, z = cast(random_window(length=b + s), "float32")

    @jax.jit
    def gradient(key):
        model = DHNModel.build(config, CONTEXT, key)
        weights, static = eqx.partition(model, eqx.is_inexact_array)

        def loss(weights):
            terms = eqx.combine(weights, static).losses((window,), (z,), jr.key(1))
            return sum(terms.values())

        return jax.value_and_grad(loss)(weights)

    loss, slopes = gradient(jr.key(0))
    assert np.isfinite(loss) and loss > 0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(slopes))
    assert any((np.asarray(x) != 0).any() for x in jax.tree.leaves(slopes))


def test_building_follows_the_configuration_and_the_key():
    config = DHNConfig(
        block_size=2, linked=False, network=SMALL, spacings=(2, 1), damping="learned"
    )
    model = draw_weights(DHNModel, config, CONTEXT, jr.key(0))
    assert [stage.spacing for stage in model.stages] == [2, 1]
    assert [stage.spec.time_step for stage in model.stages] == [0.2, 0.1]
    assert [stage.scale for stage in model.stages] == [0.2, 0.1], "the change over each one's lag"
    assert all(isinstance(stage.damping, LearnedDamping) for stage in model.stages)
    networks = [h.network.readout for s in model.stages for h in (s.right, s.left)]
    assert len({tuple(np.asarray(x)) for x in networks}) == 4, "no two alike"
    again = draw_weights(DHNModel, config, CONTEXT, jr.key(0))
    for a, b in zip(jax.tree.leaves(model), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    linked = draw_weights(DHNModel, DHNConfig(network=SMALL), CONTEXT, jr.key(0)).stages[0]
    assert isinstance(linked, LinkedStage) and isinstance(linked.damping, NoDamping)


@pytest.mark.parametrize(
    ("steps", "change"), [(1, 0.1), (2, 0.2), (3, 0.2), (4, 0.4), (15, 0.8), (100, 0.8)]
)
def test_the_typical_change_is_that_of_the_power_of_two_below(steps, change):
    assert CONTEXT.change(steps) == change
