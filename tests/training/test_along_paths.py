"""Paths through measurements: what they leave over is noise, and the classical part is exact."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import dhn
from dhn.blocks import StateBlock
from dhn.estimator.adapt import path_states
from dhn.models.path import path_from, path_loss, path_residuals
from dhn.training.classical import fit_classical
from dhn.training.prepare import make_context, prepare
from dhn.trajectories.scaling import Scaler

FREQUENCY, RATE, STEP, NOISE = 2.0, 0.15, 0.1, 0.01


def oscillator(count: int = 6, states: int = 60, noise: float = NOISE, seed: int = 0):
    """Exactly damped oscillations, q'' = -w² q - γ q', with measurement noise on q and p."""
    rng = np.random.default_rng(seed)
    t = STEP * np.arange(states)
    w = np.sqrt(FREQUENCY**2 - RATE**2 / 4)
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    size = rng.uniform(0.8, 1.2, (count, 1)) * np.exp(-RATE / 2 * t)
    q = size * np.cos(w * t + phase)
    p = -RATE / 2 * q - size * w * np.sin(w * t + phase)
    q, p = (x + noise * rng.normal(size=x.shape) for x in (q, p))
    return dhn.Trajectories(
        q=q[..., None], p=p[..., None], t=t, noise=np.full((2, 1), max(noise, 1e-9))
    )


def measured(path: int = 24, **options):
    return dhn.DHN("measured", path=path, width=8, depth=1, latent_size=1, **options)


def fresh(train, **options):
    config = measured(**options).config
    scaler = Scaler.fit(train)
    context = make_context(train, scaler)
    model = dhn.models.registry.build_model(config, context, jr.key(0))
    return model, scaler, prepare(train, scaler, model.training_shapes)


@pytest.fixture(scope="module")
def classical():
    train = oscillator()
    model, scaler, data = fresh(train)
    return train, scaler, data, fit_classical(model, data, scaler.scaled_noise(train.noise))


def test_the_classical_part_finds_rate_and_noise(classical):
    train, scaler, _, model = classical
    rate = float(model.finest.damping.rate(jnp.zeros((1, 1)))[0])
    assert rate == pytest.approx(RATE, rel=0.05)
    found = np.asarray(model.path_noise) / scaler.scaled_noise(train.noise)
    assert np.all((found > 0.85) & (found < 1.1)), found


def test_seeds_differ_by_what_the_data_leave_open(classical):
    train, scaler, data, model = classical
    other = fit_classical(fresh(train)[0], data, scaler.scaled_noise(train.noise), seed=1)
    slopes = [m.finest.right.network.form.matrix for m in (model, other)]
    gap = float(jnp.abs(slopes[0] - slopes[1]).max() / jnp.abs(slopes[0]).max())
    assert 1e-6 < gap < 0.05


def test_the_classical_part_holds_outside_the_data(classical):
    """A motion ten times smaller than any in training, over five periods, without noise."""
    _, scaler, _, model = classical
    truth = oscillator(1, 160, noise=0.0)
    small = truth.replace(q=truth.q / 10, p=truth.p / 10)
    q, p = (jnp.asarray(x, jnp.float32) for x in scaler.transform(small))
    path = path_from(model, StateBlock(q[:, :1], p[:, :1]), jnp.zeros((1, 1)), q.shape[1])
    said = scaler.inverse_q(np.asarray(path.q))
    assert np.abs(said - small.q).max() < 0.05 * np.abs(small.q).max()


def test_residuals_are_those_of_the_best_start(classical):
    """Moving the measured first state moves nothing but that one residual."""
    _, _, data, model = classical
    window = jax.tree.map(lambda x: x[:4, :24], data.states)
    z = jnp.zeros((4, 1))
    noise = jnp.full((2, 1), 0.02)
    residuals = eqx.filter_jit(path_residuals)
    before = residuals(model.finest, window, z, noise)
    moved = StateBlock(window.q.at[:, 0].add(0.02), window.p)
    after = residuals(model.finest, moved, z, noise)
    # One of 48 measurements was moved by one noise level.
    assert float(jnp.abs(after[:, 1:] - before[:, 1:]).max()) < 0.3
    assert float(jnp.abs(after[:, 0, 0] - before[:, 0, 0]).min()) > 0.6


def test_the_gradient_is_that_of_the_refitted_path(classical):
    """The start is not differentiated: at its best value, by weights that fit, it need not be."""
    _, _, data, model = classical
    window = jax.tree.map(lambda x: x[:4, :24], data.states)
    z, noise = jnp.zeros((4, 1)), jnp.full((2, 1), 0.02)
    for _ in range(3):
        misses = eqx.filter_jit(path_residuals)(model.finest, window, z, noise) * noise
        noise = jnp.sqrt(jnp.mean(misses**2, axis=(0, 1)))
    with jax.enable_x64(True):
        model, window, z, noise = jax.tree.map(
            lambda x: x.astype(float) if eqx.is_inexact_array(x) else x, (model, window, z, noise)
        )
        slope = model.finest.right.network.form.slope

        @jax.jit
        def loss(shift):
            moved = eqx.tree_at(
                lambda m: m.finest.right.network.form.slope, model, slope.at[0].add(shift)
            )
            return path_loss(moved.finest, window, z, noise)

        exact = float(jax.jit(jax.grad(loss))(0.0))
        numeric = (float(loss(1e-4)) - float(loss(-1e-4))) / 2e-4
    assert exact == pytest.approx(numeric, rel=2e-2)


@pytest.fixture(scope="module")
def trained():
    return measured(validation=0.3).fit(oscillator(), steps=20)


def test_a_linear_system_keeps_its_classical_part(trained):
    assert trained.trained.summary["chosen"] == "classical"
    assert trained.trained.summary["steps"] == 20
    assert not np.any(trained.trained.model.finest.right.network.readout)


def test_forecasts_start_from_the_path_not_from_the_noise(trained):
    model, test = trained, oscillator(8, 90, seed=1)
    clean = oscillator(8, 90, noise=0.0, seed=1)
    said = model.complete(test, 30)
    error = np.sqrt(np.mean((said.q - clean.q)[:, 30:] ** 2))
    assert error < NOISE
    smooth = model.denoise(test[:, :30])
    assert np.sqrt(np.mean((smooth.q - clean.q[:, :30]) ** 2)) < 0.5 * NOISE


def test_a_long_run_is_denoised_without_losing_the_phase(trained):
    """Twenty periods, and a wrong frequency would show after two."""
    noisy, clean = (oscillator(1, 600, noise=x, seed=3) for x in (NOISE, 0.0))
    known = np.ones((1, 600), bool)
    known[:, 200:260] = False  # longer than a piece
    smooth = trained.denoise(noisy.replace(known=known))
    error = (smooth.q - clean.q)[known]
    assert np.sqrt(np.mean(error**2)) < 0.6 * NOISE


def test_an_unknown_first_state_is_no_obstacle(trained):
    model, test = trained, oscillator(4, 60, seed=2)
    whole = model.complete(test, 30)
    known = np.asarray(test.known).copy()
    known[1, :3] = False
    part = model.complete(test.replace(known=known), 30)
    np.testing.assert_allclose(part.q[0, 30:], whole.q[0, 30:], atol=1e-4)
    assert np.abs(part.q[1, 30:] - whole.q[1, 30:]).max() < 3 * NOISE


def test_paths_are_most_of_a_period():
    train = oscillator(states=120)
    assert path_states(train) == pytest.approx(0.75 * 2 * np.pi / FREQUENCY / STEP, abs=2)
    known = np.asarray(train.known).copy()
    known[:, ::20] = False
    assert path_states(train.replace(known=known)) == 9


def test_paths_without_a_classical_part_are_refused():
    model = dhn.DHN("linked", path=16, width=8, depth=1, latent_size=1)
    with pytest.raises(dhn.UserError, match="quadratic=true"):
        model.fit(oscillator(), steps=2)
    with pytest.raises(dhn.UserError, match="linked=true"):
        measured(linked=False).fit(oscillator(), steps=2)


def test_a_path_longer_than_every_run_is_refused():
    train = oscillator()
    known = np.asarray(train.known).copy()
    known[:, ::20] = False
    with pytest.raises(dhn.UserError, match="24 "):
        measured().fit(train.replace(known=known), steps=2)
    with pytest.raises(dhn.UserError, match="99 states"):
        measured(path=99).fit(train, steps=2)
