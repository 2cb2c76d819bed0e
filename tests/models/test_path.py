"""Paths: Newton's method for all states at once finds orbits, and the best of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from exact_oscillator import D, random_stage

from dhn.blocks import StateBlock
from dhn.models.damping import LearnedDamping
from dhn.models.path import path_residuals
from dhn.models.stage import stage_residuals

STATES, NOISE = 40, 0.03


def orbit(stage, start, z, states=STATES):
    """State after state by the implicit solve, `(n, states, 2, d)`."""

    def step(state, _):
        new = stage.forward(state, z)
        return new, new

    _, after = jax.lax.scan(step, start, None, length=states - 1)
    path = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs])[:, :, 0], start, after)
    return jnp.moveaxis(jnp.stack(path, axis=2), 0, 1)


def case():
    """A nonlinear damped map, four of its orbits, and noisy measurements of them."""
    damping = eqx.tree_at(lambda d: d.base, LearnedDamping(5, 0.1), jnp.asarray(0.05))
    stage = random_stage(1, 1, linked=True, damping=damping)
    draw = np.random.default_rng(3)
    start = StateBlock(*jnp.asarray(draw.normal(size=(2, 4, 1, D))))
    z = jnp.asarray(draw.normal(size=(4, 5)))
    truth = orbit(stage, start, z)
    measured = truth + NOISE * draw.normal(size=truth.shape)
    return stage, truth, StateBlock(measured[:, :, 0], measured[:, :, 1]), z


def test_a_path_is_an_orbit_and_none_beside_it_is_nearer():
    with jax.enable_x64(True):
        stage, truth, window, z = case()
        noise = jnp.full((2, D), NOISE)
        residuals = eqx.filter_jit(path_residuals)(stage, window, z, noise)
        path = jnp.stack(window, axis=2) - residuals * noise
        pairs = jnp.stack([path[:, :-1], path[:, 1:]], axis=2).reshape(-1, 2, 2, D)
        left = stage_residuals(
            stage, StateBlock(pairs[:, :, 0], pairs[:, :, 1]), jnp.repeat(z, STATES - 1, axis=0)
        )
        assert float(jnp.abs(left).max()) < 1e-6
        # The truth moves, and the path is much nearer to it than the measurements are.
        assert float(jnp.std(truth, axis=1).mean()) > 10 * NOISE
        assert float(jnp.sqrt(jnp.mean((path - truth) ** 2))) < 0.5 * NOISE

        def distance(shift):
            start = StateBlock(
                path[:, :1, 0] + shift[:, None, 0], path[:, :1, 1] + shift[:, None, 1]
            )
            return jnp.sum((orbit(stage, start, z) - jnp.stack(window, axis=2)) ** 2)

        slope = jax.jit(jax.grad(distance))(jnp.zeros((4, 2, D)))
        steep = jax.jit(jax.grad(distance))(jnp.full((4, 2, D), NOISE))
        assert float(jnp.abs(slope).max()) < 1e-3 * float(jnp.abs(steep).max())


def test_the_gradient_by_weights_is_exact():
    """Of the least distance to the measurements, by finite differences of refitted paths."""
    with jax.enable_x64(True):
        stage, _, window, z = case()
        noise = jnp.full((2, D), NOISE)
        weights, static = eqx.partition(stage, eqx.is_inexact_array)
        direction = jax.tree.map(
            lambda x: jnp.asarray(np.random.default_rng(x.size).normal(size=x.shape)), weights
        )

        def loss(size):
            moved = jax.tree.map(lambda w, v: w + size * v, weights, direction)
            return jnp.sum(path_residuals(eqx.combine(moved, static), window, z, noise) ** 2)

        loss = jax.jit(loss)
        exact = float(jax.jit(jax.grad(loss))(0.0))
        numeric = float((loss(1e-5) - loss(-1e-5)) / 2e-5)
        assert abs(exact - numeric) < 1e-3 * abs(numeric)


def test_states_of_infinite_noise_count_for_nothing():
    with jax.enable_x64(True):
        stage, _, window, z = case()
        half = STATES // 2
        noise = jnp.full((2, D), NOISE)
        late = (jnp.arange(STATES) >= half)[:, None, None]
        measure = eqx.filter_jit(path_residuals)
        some = measure(stage, window, z, jnp.where(late, jnp.inf, noise))
        short = measure(stage, window.at(slice(0, half)), z, noise)
        np.testing.assert_allclose(some[:, :half], short, atol=1e-6)
        assert not np.any(some[:, half:])
