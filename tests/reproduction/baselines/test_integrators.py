"""Truths about the integrators, on Hamiltonians that are given exactly."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from dhn.blocks import StateBlock
from dhn.models.networks.scalar import AbstractScalarNetwork
from dhn.reproduction.baselines import HNNConfig, HNNModel
from dhn.reproduction.baselines.integrators import EQUATIONS, STEPS

Z = jnp.zeros((1, 1))
ORDERS = {"euler": 1, "leapfrog": 2, "midpoint": 2, "rk4": 4}


class Pendulum(AbstractScalarNetwork):
    """`p²/2 - cos q`: separable."""

    def __call__(self, Q, P, level, z):
        return (P**2 / 2 - jnp.cos(Q)).sum((1, 2))


class Entangled(AbstractScalarNetwork):
    """`(1 + q²)(1 + p²)/2`: no sum of a function of q and one of p."""

    def __call__(self, Q, P, level, z):
        return ((1 + Q**2) * (1 + P**2) / 2).sum((1, 2))


def exact_hnn(hamiltonian, rule, h) -> HNNModel:
    training = "euler" if rule == "dopri5" else rule
    config = HNNConfig(training=training, rollout=rule, latent_size=1)
    return HNNModel(network=hamiltonian, scale=h, time_step=h, config=config)


def state(q, p) -> StateBlock:
    return StateBlock(jnp.full((1, 1, 1), q), jnp.full((1, 1, 1), p))


def rollout(model, start, steps):
    def body(now, _):
        after = model.advance(now, Z.astype(now.q.dtype), jr.key(0))
        return after, after

    return jax.jit(lambda start: jax.lax.scan(body, start, None, length=steps))(start)


def energy_errors(rule, h, time=4.0, hamiltonian=Pendulum):
    with jax.enable_x64(True):
        model = exact_hnn(hamiltonian(), rule, h)
        start = state(1.2, 0.3)
        _, path = rollout(model, start, round(time / h))
        flat = jax.tree.map(lambda x: x[:, 0], path)
        energy = jax.vmap(lambda s: model.energy(jax.tree.map(lambda x: x[None], s), Z)[0])(flat)
        return np.asarray(energy - model.energy(start, Z))


@pytest.mark.parametrize("hamiltonian", [Pendulum, Entangled])
@pytest.mark.parametrize("rule", list(ORDERS))
def test_energy_error_falls_with_the_order(rule, hamiltonian):
    """Regression of the largest energy error on the step size."""
    steps = [0.1, 0.05, 0.025]
    sizes = [np.abs(energy_errors(rule, h, 1.0, hamiltonian)).max() for h in steps]
    slope = np.polyfit(np.log(steps), np.log(sizes), 1)[0]
    # The classical rule's energy error may vanish one order sooner than its state error.
    assert ORDERS[rule] - 0.25 < slope < ORDERS[rule] + (1.25 if rule == "rk4" else 0.25)


@pytest.mark.parametrize("rule", ["leapfrog", "midpoint"])
def test_symplectic_rules_do_not_drift(rule):
    error = energy_errors(rule, 0.2, time=400.0)
    late, early = np.abs(error[-200:]).max(), np.abs(error[:200]).max()
    assert late < 1.1 * early


def test_euler_gains_energy():
    error = energy_errors("euler", 0.1, time=20.0)
    assert error[-1] > 0.1


@pytest.mark.parametrize("rule", ["leapfrog", "midpoint"])
@pytest.mark.parametrize("hamiltonian", [Pendulum, Entangled])
def test_symplectic_rules_keep_area(rule, hamiltonian):
    with jax.enable_x64(True):
        model = exact_hnn(hamiltonian(), rule, 0.1)

        def step(x):
            after = model.advance(state(x[0], x[1]), Z, jr.key(0))
            return jnp.stack([after.q[0, 0, 0], after.p[0, 0, 0]])

        jacobian = jax.jacfwd(step)(jnp.array([0.7, -0.4]))
        np.testing.assert_allclose(jnp.linalg.det(jacobian), 1.0, atol=1e-12)


def test_leapfrog_moves_q_by_a_whole_step():
    """A free particle: q moves by h p. (Half of that is a known mistake.)"""

    class Free(AbstractScalarNetwork):
        def __call__(self, Q, P, level, z):
            return (P**2 / 2).sum((1, 2))

    after = exact_hnn(Free(), "leapfrog", 0.25).advance(state(1.0, 2.0), Z, jr.key(0))
    assert float(after.q[0, 0, 0]) == 1.5
    assert float(after.p[0, 0, 0]) == 2.0


def test_leapfrog_is_the_familiar_rule_where_h_is_separable():
    h, q, p = 0.3, 1.1, 0.4
    with jax.enable_x64(True):
        after = exact_hnn(Pendulum(), "leapfrog", h).advance(state(q, p), Z, jr.key(0))
    half = p - h / 2 * np.sin(q)
    end = q + h * half
    np.testing.assert_allclose(after.q[0, 0, 0], end, rtol=1e-14)
    np.testing.assert_allclose(after.p[0, 0, 0], half - h / 2 * np.sin(end), rtol=1e-14)


def test_dopri5_is_the_exact_flow():
    with jax.enable_x64(True):
        model = exact_hnn(Pendulum(), "dopri5", 0.5)
        fine = exact_hnn(Pendulum(), "rk4", 0.5 / 512)
        after, _ = rollout(model, state(1.2, 0.3), 2)
        truth, _ = rollout(fine, state(1.2, 0.3), 1024)
        np.testing.assert_allclose(after.q, truth.q, atol=1e-9)
        np.testing.assert_allclose(after.p, truth.p, atol=1e-9)


@pytest.mark.parametrize("rule", list(EQUATIONS))
@pytest.mark.parametrize("hamiltonian", [Pendulum, Entangled])
def test_the_training_equation_holds_for_the_rollout(rule, hamiltonian):
    """What a rule trains on is what it rolls out: its own step has (almost) no residual."""
    h = 0.1
    with jax.enable_x64(True):
        model = exact_hnn(hamiltonian(), rule, h)
        source = state(0.8, -0.3)
        target = STEPS[rule](model.field, source, Z, h)
        window = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), source, target)
        residual = model.stage_residuals(0, window, Z)
        # Leapfrog's inner equation is only iterated twice while training.
        tolerance = 1e-4 if rule == "leapfrog" and hamiltonian is Entangled else 1e-12
        assert float(jnp.abs(residual).max()) < tolerance
        far = jax.tree.map(lambda a: a + 0.05, target)
        window = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), source, far)
        assert float(jnp.abs(model.stage_residuals(0, window, Z)).max()) > 0.1


def test_the_rollout_can_be_changed_after_training():
    model = exact_hnn(Pendulum(), "euler", 0.1)
    other = model.with_rollout("rk4")
    assert other.config.rollout == "rk4" and other.config.training == "euler"
    assert dataclasses.asdict(other)["scale"] == model.scale
    start = state(1.0, 0.0)
    moved = [m.advance(start, Z, jr.key(0)).p[0, 0, 0] for m in (model, other)]
    assert abs(moved[0] - moved[1]) > 1e-6
