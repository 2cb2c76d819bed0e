"""Damping: a conformally symplectic map, exact on the damped oscillator."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from exact_oscillator import cast, random_network
from scipy.linalg import expm

from dhn.blocks import BlockSpec, StateBlock
from dhn.models import LeftHamiltonian, LinkedStage, PairedStage, RightHamiltonian
from dhn.models.damping import LearnedDamping, NoDamping
from dhn.models.networks.scalar import AbstractScalarNetwork
from dhn.models.stage import stage_residuals

LAG = 0.3


def learned(base, slope, time_step):
    damping = LearnedDamping(len(slope), time_step)
    return eqx.tree_at(
        lambda d: (d.base, d.slope), damping, (jnp.asarray(base), jnp.asarray(slope))
    )


def test_fresh_damping_is_none_and_rates_are_per_unit_of_time():
    z = jnp.asarray([[1.0, 2.0], [0.0, -1.0]])
    assert (LearnedDamping(2, 0.1).growth(z, 5.0) == 1).all()
    assert (NoDamping().growth(z, 5.0) == 1).all()
    rate = learned(0.02, [0.01, 0.03], 0.1).rate(z)
    np.testing.assert_allclose(rate, [0.9, -0.1], rtol=1e-6)
    growth = learned(0.02, [0.01, 0.03], 0.1).growth(z, 2.0)
    np.testing.assert_allclose(growth[:, 0, 0], np.exp([1.8, -0.2]), rtol=1e-6)


def test_the_damped_map_is_conformally_symplectic():
    """`Jᵀ Ω J = exp(-γ lag) Ω` for a random network, block size 2, two coordinates."""
    with jax.enable_x64(True):
        b, d = 2, 2
        draw = np.random.default_rng(0)
        x, z = draw.normal(size=2 * b * d), jnp.asarray(draw.normal(size=(1, 5)))
        damping = learned(0.02, [0.01, -0.02, 0.0, 0.03, 0.01], 0.1)
        spec = BlockSpec(b, 3, 0.1)
        stage = LinkedStage(
            right=RightHamiltonian(random_network("mlp", b), 0.3),
            damping=damping,
            spec=spec,
            spacing=1,
            scale=1.0,
        )

        def flat(x):
            q, p = x.reshape(2, 1, b, d)
            return jnp.concatenate([y.ravel() for y in stage.forward(StateBlock(q, p), z)])

        J = np.asarray(jax.jit(jax.jacobian(flat))(x))
        zero, one = np.zeros((b * d, b * d)), np.eye(b * d)
        omega = np.block([[zero, one], [-one, zero]])
        shrink = float(jnp.exp(-damping.rate(z)[0] * LAG))
        assert abs(shrink - 1) > 1e-3
        np.testing.assert_allclose(J.T @ omega @ J, shrink * omega, atol=1e-13)


class LinearFlow(AbstractScalarNetwork):
    """`h±` of a linear symplectic map `(q, p) → (a q + b p, c q + e p)`, `a e - b c = 1`."""

    matrix: tuple = eqx.field(static=True)
    side: str = eqx.field(static=True)

    def __call__(self, Q, P, level, z):
        (a, b), (c, e) = self.matrix
        if self.side == "right":
            h = Q * P * (1 / e - 1) + b / (2 * e) * P**2 - c / (2 * e) * Q**2
        else:
            h = -Q * P * (1 / a - 1) + b / (2 * a) * P**2 - c / (2 * a) * Q**2
        return h.sum((1, 2))


def test_the_damped_oscillator_is_exact():
    """Against the matrix exponential of `q' = p, p' = -k q - γ p`, block size 2, stride 1."""
    with jax.enable_x64(True):
        gamma, stiffness, spec = 0.8, 2.0, BlockSpec(2, 1, LAG)
        flow = expm(LAG * np.array([[0.0, 1.0], [-stiffness, -gamma]]))
        symplectic = np.diag([1.0, np.exp(gamma * LAG)]) @ flow
        np.testing.assert_allclose(np.linalg.det(symplectic), 1.0, atol=1e-14)
        matrix = tuple(map(tuple, symplectic.tolist()))
        right = RightHamiltonian(LinearFlow(matrix, "right"), 1.0)
        left = LeftHamiltonian(LinearFlow(matrix, "left"), 1.0)
        shared = {
            "damping": learned(gamma * LAG, [0.0], LAG),
            "spec": spec,
            "spacing": 1,
            "scale": 1.0,
        }
        linked = LinkedStage(right=right, **shared)
        paired = PairedStage(right=right, left=left, **shared)

        states = np.random.default_rng(0).normal(size=(1, 2, 4, 3))  # time, (q, p), n, d
        for _ in range(2):
            states = np.concatenate([states, np.einsum("ij,jnd->ind", flow, states[-1])[None]])
        window = cast(StateBlock(*np.moveaxis(states, 0, 2)), "float64")
        z = jnp.zeros((4, 1))

        @jax.jit
        def evaluate():
            return (
                stage_residuals(paired, window, z),
                stage_residuals(linked, window, z),
                linked.forward(window.at(spec.source), z),
                linked.backward(window.at(spec.target), z),
            )

        *residuals, forward, backward = evaluate()
        for residual in residuals:
            np.testing.assert_allclose(residual, 0.0, atol=1e-14)
        truth = (*window.at(spec.target), *window.at(spec.source))
        for said, expected in zip((*forward, *backward), truth, strict=True):
            np.testing.assert_allclose(said, expected, atol=1e-13)
