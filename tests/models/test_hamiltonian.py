"""Right and left block Hamiltonians: exact on the oscillator, and gradients of one scalar."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_oscillator import (
    EXACT,
    TIME_STEP,
    cast,
    exact_left,
    exact_right,
    exact_states,
    random_network,
)

from dhn.blocks import BlockSpec, NoiseLevel, StateBlock, no_noise
from dhn.models import LeftHamiltonian, RightHamiltonian
from dhn.models.networks.scalar import AbstractScalarNetwork

N, B, D, K = 4, 3, 2, 5

# A product q p / cos and a sum or two of numbers of order 1-3: some tens of roundings.
TOLERANCE = {"float64": 1e-13, "float32": 5e-6}


right = eqx.filter_jit(RightHamiltonian.right_update)
left = eqx.filter_jit(LeftHamiltonian.left_update)


def random_inputs(n=N, block_size=B):
    draw = np.random.default_rng(11)
    level = NoiseLevel(*(draw.integers(0, 11, (2, n, block_size)) / 10))
    states = draw.normal(size=(2, n, block_size, D))
    return states[0], states[1], level, draw.normal(size=(n, K))


@pytest.mark.parametrize(("b", "s", "precision"), EXACT)
def test_the_exact_hamiltonians_reproduce_the_oscillator(b, s, precision):
    with jax.enable_x64(precision == "float64"):
        spec = BlockSpec(b, s, TIME_STEP)
        window, z = exact_states(b * 10 + s, spec.window_length, dtype=precision)
        assert window.q.dtype == precision
        source, target = window.at(spec.source), window.at(spec.target)
        level = no_noise(source)
        Q_target, P_source = right(exact_right(spec), source.q, target.p, level, z)
        Q_source, P_target = left(exact_left(spec), target.q, source.p, level, z)
        for said, truth in zip(
            (Q_source, P_source, Q_target, P_target), (*source, *target), strict=True
        ):
            assert said.dtype == precision
            np.testing.assert_allclose(said, truth, atol=TOLERANCE[precision], rtol=0)


def test_the_oscillator_test_can_fail():
    """The neighbouring lag is not accepted: the exactness above is no matter of tolerance."""
    spec = BlockSpec(2, 1, TIME_STEP)
    window, z = exact_states(0, spec.window_length, dtype="float32")
    wrong = exact_right(BlockSpec(2, 2, TIME_STEP))
    level = no_noise(window.at(spec.source))
    said, _ = right(wrong, window.q[:, spec.source], window.p[:, spec.target], level, z)
    assert jnp.abs(said - window.q[:, spec.target]).max() > 1e-2


@pytest.mark.parametrize("kind", ["mlp", "transformer"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_mixed_derivatives_are_symmetric(kind, side):
    """`∂Q_target,i/∂Q_source,j = ∂P_source,j/∂P_target,i`, and both diagonal blocks symmetric.

    This is all that being the gradient of one scalar means; a vanilla network has none of it.
    """
    with jax.enable_x64(True):
        network = random_network(kind, B)
        Q, P, level, z = cast(random_inputs(n=1), "float64")
        if side == "right":
            hamiltonian = RightHamiltonian(network, 0.7)
            update = hamiltonian.right_update
        else:
            hamiltonian = LeftHamiltonian(network, 0.7)
            update = hamiltonian.left_update

        def flat(q, p):
            """New coordinates and momenta of one sample, as functions of the old."""
            new = update(q.reshape(1, B, D), p.reshape(1, B, D), level, z)
            return new[0].ravel(), new[1].ravel()

        jacobian = jax.jit(jax.jacobian(flat, (0, 1)))(Q.ravel(), P.ravel())
        (q_by_q, q_by_p), (p_by_q, p_by_p) = jacobian
        np.testing.assert_allclose(q_by_q, p_by_p.T, atol=1e-13)
        np.testing.assert_allclose(q_by_p, q_by_p.T, atol=1e-13)
        np.testing.assert_allclose(p_by_q, p_by_q.T, atol=1e-13)
        # Not vacuous: the mixed block couples different states and is not symmetric by itself.
        assert jnp.abs(q_by_q - q_by_q.T).max() > 1e-4
        assert jnp.abs(q_by_p).max() > 1e-4


@pytest.mark.parametrize("kind", ["mlp", pytest.param("transformer", marks=pytest.mark.slow)])
def test_a_block_of_one_state_is_the_one_step_rule(kind):
    """`b = s = 1`: `q1 = D₂H⁺(q0, p1)`, `p0 = D₁H⁺(q0, p1)` and the same with H⁻."""
    with jax.enable_x64(True):
        network = random_network(kind, 1)
        Q, P, level, z = cast(random_inputs(block_size=1), "float64")
        Q_target, P_source = right(RightHamiltonian(network, 0.7), Q, P, level, z)
        Q_source, P_target = left(LeftHamiltonian(network, 0.7), Q, P, level, z)

        @jax.jit
        def one_step(q, p, level, z):
            """One state, each Hamiltonian written out as a scalar."""
            level, z = jax.tree.map(lambda x: x[None], (level, z))

            def h(q, p):
                return 0.7 * network(q[None, None], p[None, None], level, z)[0]

            plus = jax.grad(lambda q, p: q @ p + h(q, p), (0, 1))(q, p)
            minus = jax.grad(lambda q, p: -q @ p + h(q, p), (0, 1))(q, p)
            return plus[1], plus[0], -minus[1], -minus[0]

        for i in range(N):
            row = jax.tree.map(lambda x, i=i: x[i], (level, z))
            expected = one_step(Q[i, 0], P[i, 0], *row)
            for said, truth in zip((Q_target, P_source, Q_source, P_target), expected, strict=True):
                np.testing.assert_allclose(said[i, 0], truth, atol=1e-13)


class Pendulum(AbstractScalarNetwork):
    """`Δt · (p²/2 - cos q)`: with it `H⁺` is the paper's one-step discretisation."""

    time_step: float = eqx.field(static=True)

    def __call__(self, Q, P, level, z):
        return self.time_step * (P**2 / 2 - jnp.cos(Q)).sum((1, 2))


def test_the_one_step_rule_of_a_separable_energy_is_symplectic_euler():
    with jax.enable_x64(True):
        q0, p0 = cast(np.random.default_rng(0).normal(size=(2, N, 1, 1)), "float64")
        p1 = p0 - 0.1 * jnp.sin(q0)
        q1 = q0 + 0.1 * p1
        z, level = jnp.zeros((N, 1)), no_noise(StateBlock(q0, p0))
        Q_target, P_source = right(RightHamiltonian(Pendulum(0.1), 1.0), q0, p1, level, z)
        np.testing.assert_allclose(Q_target, q1, atol=1e-14)
        np.testing.assert_allclose(P_source, p0, atol=1e-14)


@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_a_network_that_says_nothing_leaves_the_state_where_it_is(kind):
    network = jax.tree.map(lambda x: np.zeros(x.shape, np.float32), random_network(kind, B))
    Q, P, level, z = cast(random_inputs(), "float32")
    np.testing.assert_array_equal(right(RightHamiltonian(network, 1.0), Q, P, level, z)[0], Q)
    np.testing.assert_array_equal(left(LeftHamiltonian(network, 1.0), Q, P, level, z)[1], P)


@pytest.mark.parametrize("kind", ["mlp", pytest.param("transformer", marks=pytest.mark.slow)])
def test_samples_do_not_see_each_other(kind):
    """The gradient of the batch's sum is the batch of gradients only then."""
    with jax.enable_x64(True):
        hamiltonian = RightHamiltonian(random_network(kind, B), 1.0)
        inputs = cast(random_inputs(), "float64")
        together = right(hamiltonian, *inputs)
        for i in range(N):
            alone = right(hamiltonian, *jax.tree.map(lambda x, i=i: x[i : i + 1], inputs))
            for a, b in zip(alone, together, strict=True):
                np.testing.assert_allclose(a[0], b[i], atol=1e-14)


@pytest.mark.parametrize("kind", ["mlp", pytest.param("transformer", marks=pytest.mark.slow)])
def test_jitted_vmapped_and_plain_calls_agree(kind):
    with jax.enable_x64(True):
        hamiltonian = RightHamiltonian(random_network(kind, B), 1.0)
        inputs = cast(random_inputs(), "float64")
        plain = hamiltonian.right_update(*inputs)
        jitted = right(hamiltonian, *inputs)
        single = jax.tree.map(lambda x: x[:, None], inputs)
        mapped = jax.tree.map(
            lambda x: x[:, 0], jax.jit(jax.vmap(hamiltonian.right_update))(*single)
        )
        for a, b, c in zip(plain, jitted, mapped, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-14)
            np.testing.assert_allclose(a, c, atol=1e-14)
