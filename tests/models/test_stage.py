"""Stages: the equations of a window, one symplectic map, losses and their derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_oscillator import (
    EXACT,
    D,
    cast,
    exact_stage,
    exact_states,
    random_stage,
)

from dhn.blocks import BlockSpec, Known, NoiseLevel, StateBlock, no_noise
from dhn.models import LeftHamiltonian, LinkedStage, PairedStage, RightHamiltonian
from dhn.models.damping import NoDamping
from dhn.models.networks.scalar import AbstractScalarNetwork
from dhn.models.stage import equation_loss, separate_losses, stage_residuals

# Residuals are in units of the stage's scale (0.5), solves stop at 4 eps.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}


def all_known(window):
    return Known(*(jnp.ones(x.shape[:-1], bool) for x in window))


def none_known(window):
    return Known(*(jnp.zeros(x.shape[:-1], bool) for x in window))


def random_window(length, n=3, seed=5, dtype="float64"):
    draw = np.random.default_rng(seed)
    states = StateBlock(*draw.normal(size=(2, n, length, D)))
    return cast((states, draw.normal(size=(n, 5))), dtype)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(("b", "s", "precision"), EXACT)
def test_the_oscillator_obeys_its_equations(b, s, linked, precision):
    """Residuals vanish; a clean window predicts itself, also when told that all is noise."""
    with jax.enable_x64(precision == "float64"):
        stage = exact_stage(b, s, linked=linked)
        window, z = exact_states(1, stage.spec.window_length, dtype=precision)

        @eqx.filter_jit
        def evaluate(stage, window, z):
            told = jax.tree.map(jnp.ones_like, no_noise(window))
            return (
                stage_residuals(stage, window, z),
                equation_loss(stage, window, z),
                stage.predict(window, all_known(window), no_noise(window), z),
                stage.predict(window, none_known(window), told, z),
            )

        residuals, loss, *predictions = evaluate(stage, window, z)
        assert residuals.shape == (5, (2 if linked else 4) * b * 3)
        assert residuals.dtype == loss.dtype == precision
        np.testing.assert_allclose(residuals, 0.0, atol=TOLERANCE[precision])
        for predicted in predictions:
            for said, truth in zip(predicted, window, strict=True):
                assert said.dtype == precision
                np.testing.assert_allclose(said, truth, atol=TOLERANCE[precision], rtol=0)


@pytest.mark.parametrize(("b", "s", "precision"), EXACT)
def test_linked_maps_move_the_oscillator_both_ways(b, s, precision):
    with jax.enable_x64(precision == "float64"):
        stage = exact_stage(b, s, linked=True)
        window, z = exact_states(2, stage.spec.window_length, dtype=precision)
        source, target = window.at(stage.spec.source), window.at(stage.spec.target)
        moved = eqx.filter_jit(lambda: (stage.forward(source, z), stage.backward(target, z)))()
        for said, truth in zip(jax.tree.leaves(moved), (*target, *source), strict=True):
            np.testing.assert_allclose(said, truth, atol=TOLERANCE[precision], rtol=0)


def test_float32_states_stay_float32_where_double_precision_is_allowed():
    with jax.enable_x64(True):
        stage = cast(random_stage(2, 1, linked=False), "float32")
        window, z = random_window(3, dtype="float32")
        assert stage.predict(window, all_known(window), no_noise(window), z).q.dtype == jnp.float32
        assert equation_loss(stage, window, z).dtype == jnp.float32


def symplectic_form(size):
    zero, one = np.zeros((size, size)), np.eye(size)
    return np.block([[zero, one], [-one, zero]])


def block_jacobian(stage, source, z):
    """Of the map of one block, all of its coordinates first, then all momenta."""
    b = stage.spec.block_size

    def flat(x):
        q, p = x.reshape(2, 1, b, D)
        return jnp.concatenate([y.ravel() for y in stage.forward(StateBlock(q, p), z)])

    x = jnp.concatenate([source.q.ravel(), source.p.ravel()])
    return np.asarray(jax.jit(jax.jacobian(flat))(x), np.float64)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("b", "s", "kind"),
    [(1, 1, "mlp"), (2, 1, "mlp"), pytest.param(2, 1, "transformer", marks=pytest.mark.slow)],
)
def test_the_linked_map_is_symplectic(b, s, kind, precision):
    """`Jᵀ Ω J = Ω` for any network: 1e-5 in single precision, round-off in double."""
    with jax.enable_x64(precision == "float64"):
        stage = cast(random_stage(b, s, linked=True, kind=kind), precision)
        source, z = random_window(b, n=1, dtype=precision)
        J = block_jacobian(stage, source, z)
        omega = symplectic_form(b * D)
        tolerance = 1e-5 if precision == "float32" else 1e-13
        np.testing.assert_allclose(J.T @ omega @ J, omega, atol=tolerance, rtol=0)
        # Not because nothing moves: the map is far from the identity.
        assert np.abs(J - np.eye(len(J))).max() > 1e-3


@pytest.mark.parametrize("b", [1, 2])
def test_backward_undoes_forward(b):
    with jax.enable_x64(True):
        stage = random_stage(b, 1, linked=True)
        source, z = random_window(b)
        back = eqx.filter_jit(lambda: stage.backward(stage.forward(source, z), z))()
        for said, truth in zip(back, source, strict=True):
            np.testing.assert_allclose(said, truth, atol=1e-13)


class Telltale(AbstractScalarNetwork):
    """`h = <level.q, Q> + <level.p, P>`: its gradients are the levels it was told."""

    def __call__(self, Q, P, level, z):
        return ((level.q[..., None] * Q) + (level.p[..., None] * P)).sum((1, 2))


@pytest.mark.parametrize(("b", "s"), [(1, 1), (2, 1), (4, 2), (2, 3), (3, 0)])
def test_each_hamiltonian_is_told_the_levels_of_its_own_tokens(b, s):
    with jax.enable_x64(True):
        spec = BlockSpec(b, s)
        telltale = Telltale()
        paired = PairedStage(
            right=RightHamiltonian(telltale, 1.0),
            left=LeftHamiltonian(telltale, 1.0),
            damping=NoDamping(),
            spec=spec,
            spacing=1,
            scale=1.0,
        )
        linked = LinkedStage(
            right=paired.right, damping=NoDamping(), spec=spec, spacing=1, scale=1.0
        )
        window, z = random_window(spec.window_length)
        level = NoiseLevel(*np.random.default_rng(0).uniform(size=(2, 3, spec.window_length)))
        level = cast(level, "float64")
        said_right, said_left = paired.equations(window, level, z)
        (said_linked,) = linked.equations(window, level, z)
        source, target = window.at(spec.source), window.at(spec.target)
        first, last = level.at(spec.source), level.at(spec.target)
        expected = [
            (said_right.Q_target, source.q + last.p[..., None]),
            (said_right.P_source, target.p + first.q[..., None]),
            (said_linked.Q_target, source.q + last.p[..., None]),
            (said_linked.P_source, target.p + first.q[..., None]),
            (said_left.Q_source, target.q - first.p[..., None]),
            (said_left.P_target, source.p - last.q[..., None]),
        ]
        for said, truth in expected:
            np.testing.assert_allclose(said, truth, atol=1e-14)


def test_states_between_the_blocks_are_left_alone():
    stage = cast(random_stage(1, 3, linked=False), "float32")
    window, z = random_window(4, dtype="float32")
    predicted = eqx.filter_jit(stage.predict)(window, none_known(window), no_noise(window), z)
    np.testing.assert_array_equal(predicted.q[:, 1:3], window.q[:, 1:3])
    np.testing.assert_array_equal(predicted.p[:, 1:3], window.p[:, 1:3])
    assert (predicted.q[:, 3] != window.q[:, 3]).all()


@pytest.mark.parametrize("linked", [False, True])
def test_the_denoising_loss_counts_unknown_outputs_only(linked):
    """By hand: the mean over exactly the tokens that are unknown, for each output in turn."""
    with jax.enable_x64(True):
        b, s = 3, 1
        stage = random_stage(b, s, linked=linked)
        window, z = random_window(b + s)
        noised, _ = random_window(b + s, seed=6)
        draw = np.random.default_rng(1)
        known = Known(*(jnp.asarray(draw.random((3, b + s)) < 0.5) for _ in range(2)))
        level = NoiseLevel(*(jnp.where(k, 0.0, 0.3) for k in known))

        @eqx.filter_jit
        def evaluate():
            losses = [
                separate_losses(stage, window, noised, known, level, z, outputs)
                for outputs in ("unknown", "all")
            ]
            clean = equation_loss(stage, window, z)
            return losses, stage.equations(noised, level, z), clean

        ((equation, unknown), (_, every)), outputs, clean = evaluate()
        np.testing.assert_allclose(equation, clean)
        parts = {
            "Q_target": (window.q, known.q, stage.spec.target),
            "P_target": (window.p, known.p, stage.spec.target),
            "Q_source": (window.q, known.q, stage.spec.source),
            "P_source": (window.p, known.p, stage.spec.source),
        }
        by_hand = {"unknown": 0.0, "all": 0.0}
        for said in outputs:
            for name, (truth, is_known, states) in parts.items():
                if getattr(said, name) is not None:
                    error = np.asarray((getattr(said, name) - truth[:, states]) / 0.3)
                    by_hand["unknown"] += np.mean(error[~np.asarray(is_known[:, states])] ** 2)
                    by_hand["all"] += np.mean(error**2)
        np.testing.assert_allclose([unknown, every], [by_hand["unknown"], by_hand["all"]])


def test_nothing_unknown_costs_nothing():
    stage = cast(random_stage(2, 1, linked=False), "float32")
    window, z = random_window(3, dtype="float32")
    known = Known(*(jnp.ones((3, 3), bool),) * 2)
    _, loss = separate_losses(stage, window, window, known, no_noise(window), z, "unknown")
    assert loss == 0.0


@pytest.mark.parametrize(
    ("linked", "kind"),
    [(False, "mlp"), (True, "mlp"), pytest.param(False, "transformer", marks=pytest.mark.slow)],
)
def test_gradients_of_both_losses_match_finite_differences(linked, kind):
    """By weights and by codes together, along a random direction, in double precision."""
    with jax.enable_x64(True):
        stage = random_stage(2, 1, linked=linked, kind=kind)
        window, z = random_window(3)
        noised, _ = random_window(3, seed=6)
        known = Known(*(jnp.asarray([[True, True, False]] * 3),) * 2)
        level = NoiseLevel(*(jnp.where(k, 0.0, 0.7) for k in known))
        weights, static = eqx.partition(stage, eqx.is_inexact_array)

        def loss(at):
            stage, z = eqx.combine(at[0], static), at[1]
            return sum(separate_losses(stage, window, noised, known, level, z, "unknown"))

        leaves, structure = jax.tree.flatten((weights, z))
        draw = np.random.default_rng(2)
        direction = jax.tree.unflatten(structure, [draw.normal(size=x.shape) for x in leaves])

        @jax.jit
        def both(at):
            gradient = jax.grad(loss)(at)
            products = jax.tree.map(lambda g, v: (g * v).sum(), gradient, direction)
            step = 1e-5
            ahead = loss(jax.tree.map(lambda x, v: x + step * v, at, direction))
            behind = loss(jax.tree.map(lambda x, v: x - step * v, at, direction))
            return sum(jax.tree.leaves(products)), (ahead - behind) / (2 * step)

        slope, difference = both((weights, z))
        assert abs(difference) > 1e-3
        np.testing.assert_allclose(slope, difference, rtol=1e-6)


@pytest.mark.parametrize("linked", [False, True])
def test_plain_jitted_and_vmapped_stages_agree_and_samples_are_independent(linked):
    with jax.enable_x64(True):
        stage = random_stage(2, 1, linked=linked)
        window, z = random_window(3)
        level = no_noise(window)

        def both(window, level, z):
            return stage_residuals(stage, window, z), stage.predict(
                window, none_known(window), level, z
            )

        plain = both(window, level, z)
        single = jax.tree.map(lambda x: x[:, None], (window, level, z))
        mapped = jax.tree.map(lambda x: x[:, 0], jax.jit(jax.vmap(both))(*single))
        jitted = jax.jit(both)(window, level, z)
        for a, b, c in zip(*map(jax.tree.leaves, (plain, jitted, mapped)), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-13)
            np.testing.assert_allclose(a, c, atol=1e-13)
