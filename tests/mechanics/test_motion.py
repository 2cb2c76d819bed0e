"""The equations of motion are those of the energy, and friction only takes energy away."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dhn.mechanics.layout import NEVER_NEGATIVE, Layout
from dhn.mechanics.motion import acceleration, advance, energy, friction, mass_matrix

LAYOUTS = [(True,), (False,), (True, True), (False, False), (False, True), (True, True, True)]
CONSERVATIVE = (
    "inertia", "stiffness", "phase", "sine", "cosine", "sine2", "cosine2", "force", "square",
    "cube", "link_square", "link_cube",
)  # fmt: skip
WIDTH = 0.05


def coefficients(layout: Layout, blocks: tuple[str, ...], seed: int = 0) -> np.ndarray:
    """Random numbers in the named blocks; friction positive."""
    rng, theta = np.random.default_rng(seed), np.zeros(layout.size)
    for name in blocks:
        place = layout.slices[name]
        theta[place] = 0.3 * rng.standard_normal(place.stop - place.start)
    for name in NEVER_NEGATIVE:
        theta[layout.slices[name]] = np.abs(theta[layout.slices[name]])
    return theta


def states(layout: Layout, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    q, v = np.random.default_rng(seed).standard_normal((2, layout.dim))
    return q, v


@pytest.mark.parametrize("angles", LAYOUTS)
def test_accelerations_solve_the_euler_lagrange_equations(angles):
    layout = Layout(angles)
    with jax.enable_x64(True):
        theta = jnp.asarray(coefficients(layout, CONSERVATIVE))
        q, v = states(layout)

        def lagrangian(q, v):
            kinetic = 0.5 * v @ mass_matrix(layout, theta, q) @ v
            return 2 * kinetic - energy(layout, theta, q, v)

        @jax.jit
        def sides(q, v):
            a = acceleration(layout, theta, q, v, np.full(layout.dim, WIDTH))
            left = jax.hessian(lagrangian, 1)(q, v) @ a
            left += jax.jacfwd(jax.grad(lagrangian, 1), 0)(q, v) @ v
            return left, jax.grad(lagrangian, 0)(q, v)

        np.testing.assert_allclose(*sides(q, v), atol=1e-12)


@pytest.mark.parametrize("angles", LAYOUTS)
def test_the_mass_matrix_is_positive_definite_everywhere(angles):
    layout = Layout(angles)
    with jax.enable_x64(True):
        matrices = jax.jit(jax.vmap(lambda theta, q: mass_matrix(layout, theta, q), (None, 0)))
        for seed in range(5):
            theta = 5 * coefficients(layout, ("inertia", "phase"), seed)
            q = np.random.default_rng(seed).uniform(-np.pi, np.pi, (20, layout.dim))
            assert np.linalg.eigvalsh(matrices(theta, q)).min() > 0


@pytest.mark.parametrize("angles", LAYOUTS)
def test_friction_never_does_work(angles):
    layout = Layout(angles)
    with jax.enable_x64(True):
        theta = jnp.asarray(coefficients(layout, NEVER_NEGATIVE))
        force = lambda q, v: friction(layout, theta, q, v, np.full(layout.dim, WIDTH))  # noqa: E731
        q, v = np.random.default_rng(0).standard_normal((2, 50, layout.dim))
        assert ((v * jax.jit(jax.vmap(force))(q, v)).sum(-1) < 0).all()


def flow(layout: Layout, theta: np.ndarray, substeps: int = 8):
    return jax.jit(
        lambda x: advance(
            layout, jnp.asarray(theta), x, jnp.asarray(0.2), np.full(layout.dim, WIDTH), substeps
        )
    )


def test_energy_never_grows_and_is_kept_without_friction():
    layout = Layout((True, True))
    kept = coefficients(layout, ("inertia", "sine"), 2)
    kept[layout.slices["sine"]] = 1.0
    lossy = kept.copy()
    for name in NEVER_NEGATIVE:
        lossy[layout.slices[name]] = 0.02
    with jax.enable_x64(True):
        for theta, drop in ((kept, False), (lossy, True)):
            step, x, levels = flow(layout, theta), jnp.array([1.5, -1.0, 0.3, 0.8]), []
            for _ in range(100):
                levels.append(float(energy(layout, jnp.asarray(theta), x[:2], x[2:])))
                x = step(x)
            assert (np.diff(levels) < 0).all() if drop else np.ptp(levels) < 1e-7


def test_without_friction_the_flow_is_symplectic():
    """In q and p = M(q) v, to the integrator's accuracy."""
    layout = Layout((True, True))
    theta = coefficients(layout, CONSERVATIVE, 3)
    with jax.enable_x64(True):
        step = flow(layout, theta)

        def canonical(z):
            q, p = z[:2], z[2:]
            v = jnp.linalg.solve(mass_matrix(layout, jnp.asarray(theta), q), p)
            x = step(jnp.concatenate([q, v]))
            p = mass_matrix(layout, jnp.asarray(theta), x[:2]) @ x[2:]
            return jnp.concatenate([x[:2], p])

        j = np.asarray(jax.jacfwd(canonical)(jnp.array([0.4, -0.7, 0.5, 0.2])))
        omega = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
        np.testing.assert_allclose(j.T @ omega @ j, omega, atol=1e-8)


def test_viscous_friction_alone_is_conformally_symplectic():
    """One coordinate: areas shrink by exp(-b t) everywhere."""
    layout = Layout((True,))
    theta = coefficients(layout, ("sine", "cosine"), 4)
    theta[layout.slices["viscous"]] = 0.3
    with jax.enable_x64(True):
        step = flow(layout, theta)
        for x in ([0.1, 0.0], [2.0, -1.0]):
            found = np.linalg.det(jax.jacfwd(step)(jnp.array(x)))
            assert found == pytest.approx(np.exp(-0.3 * 0.2), rel=1e-8)
