"""Denoising inference: known states untouched, levels as told, the oscillator found exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from exact_oscillator import Recorder, cast, exact_stage, exact_states, random_network

from dhn.blocks import (
    BlockSpec,
    Known,
    NoiseLevel,
    StateBlock,
    corrupt,
    draw_known,
    get_mask,
    noise_levels,
    select,
)
from dhn.models import DenoisingConfig, LeftHamiltonian, PairedStage, RightHamiltonian, denoise
from dhn.models.damping import NoDamping

run = eqx.filter_jit(denoise)

NOISE = DenoisingConfig(noisy_rounds=10, clean_rounds=1)
COLD = DenoisingConfig(noisy_rounds=10, clean_rounds=1, temperature=0.0)
GUESS = DenoisingConfig(clean_rounds=3)
EXACT = DenoisingConfig(clean_rounds=30)


def bits(x):
    """The bit patterns, so that -0.0 and 0.0 differ and NaN equals itself."""
    x = np.asarray(x)
    return x.view(f"u{x.itemsize}")


def masks(name, spec, n, key=0):
    return draw_known(jr.key(key), get_mask(name), spec, n)


@pytest.mark.parametrize(
    ("b", "s", "linked", "config"),
    [
        (2, 1, False, NOISE),
        (2, 1, False, GUESS),
        (2, 1, True, NOISE),
        (2, 1, True, GUESS),
        (2, 3, False, NOISE),
    ],
)
def test_known_states_come_back_bit_for_bit(b, s, linked, config):
    """Whatever the mask, and wherever both blocks say something else about a known state."""
    stage = exact_stage(b, s, linked=linked)
    n, length = 20, stage.spec.window_length
    draw = np.random.default_rng(0)
    q, p = draw.normal(size=(2, n, length, 2)).astype(np.float32)
    q[0], p[0] = -0.0, 1e-42  # a sum with zero or a product with one could lose these
    window, z = cast((StateBlock(q, p), draw.uniform(-0.4, 0.4, (n, 2))), "float32")
    middle = ("superresolution",) if s <= b else ()
    for name in ("autoregressive", "random", "mixed", *middle):
        known = masks(name, stage.spec, n)
        filled = run(stage, window, known, z, jr.key(1), config)
        assert np.isfinite(filled.q).all() and np.isfinite(filled.p).all()
        for before, after, is_known in zip(window, filled, known, strict=True):
            same = bits(before) == bits(after)
            assert same[np.asarray(is_known)].all(), name
            covered = np.ones(length, bool)
            covered[stage.spec.between] = False
            if (~np.asarray(is_known)[:, covered]).any():
                assert not same.all(), f"{name}: and unknown ones do change"
            assert same[:, ~covered].all(), "neither block speaks of the states between them"


@pytest.mark.parametrize(
    ("b", "s", "name", "linked"),
    [
        (1, 1, "autoregressive", False),
        (4, 2, "autoregressive", False),
        (2, 1, "superresolution", False),
        (4, 2, "autoregressive", True),
        (2, 1, "superresolution", True),
    ],
)
def test_the_oscillator_is_found_exactly(b, s, name, linked):
    """From a wrong guess; each pass shrinks the error by tan²(w lag) for the paired networks."""
    with jax.enable_x64(True):
        stage = exact_stage(b, s, linked=linked)
        truth, z = exact_states(0, stage.spec.window_length)
        known = masks(name, stage.spec, 5)
        guess = select(known, truth, jax.tree.map(jnp.zeros_like, truth))
        assert jnp.abs(guess.q - truth.q).max() > 0.1
        filled = run(stage, guess, known, z, jr.key(0), EXACT)
        for said, exact in zip(filled, truth, strict=True):
            np.testing.assert_allclose(said, exact, atol=1e-12)


def test_single_precision_finds_it_to_single_precision():
    stage = exact_stage(2, 1, linked=False)
    truth, z = exact_states(0, 3, dtype="float32")
    known = masks("autoregressive", stage.spec, 5)
    guess = select(known, truth, jax.tree.map(jnp.zeros_like, truth))
    filled = run(stage, guess, known, z, jr.key(0), EXACT)
    for said, exact in zip(filled, truth, strict=True):
        assert said.dtype == jnp.float32
        np.testing.assert_allclose(said, exact, atol=1e-5)


def test_from_pure_noise_too():
    """Ten stochastic rounds and a clean one: 0.1 ε reaches p, and from there q, by tan(0.14)."""
    stage = exact_stage(2, 1, linked=False)
    truth, z = exact_states(0, 3, dtype="float32")
    known = masks("autoregressive", stage.spec, 5)
    first, again, other = (run(stage, truth, known, z, jr.key(i), NOISE) for i in (0, 0, 1))
    for said, exact in zip(first, truth, strict=True):
        np.testing.assert_allclose(said, exact, atol=2e-2)
    np.testing.assert_array_equal(first.p, again.p)
    assert (first.p != other.p).any(), "another key, another sample"
    cold = [run(stage, truth, known, z, jr.key(i), COLD) for i in (0, 1)]
    np.testing.assert_array_equal(cold[0].p, cold[1].p, "without temperature no key matters")


def test_what_unknown_tokens_hold_does_not_matter():
    """Denoising from noise is told nothing about the unknown: not even NaN gets through."""
    stage = exact_stage(2, 1, linked=False)
    truth, z = exact_states(0, 3, dtype="float32")
    known = masks("autoregressive", stage.spec, 5)
    holes = select(known, truth, jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), truth))
    filled = run(stage, truth, known, z, jr.key(0), NOISE)
    from_holes = run(stage, holes, known, z, jr.key(0), NOISE)
    np.testing.assert_array_equal(filled.q, from_holes.q)
    np.testing.assert_array_equal(filled.p, from_holes.p)


def recorded_stage(b, s):
    right, left = Recorder(random_network("mlp", b), []), Recorder(random_network("mlp", b), [])
    right, left = cast(right, "float32"), cast(left, "float32")
    return PairedStage(
        right=RightHamiltonian(right, 0.3),
        left=LeftHamiltonian(left, 0.3),
        damping=NoDamping(),
        spec=BlockSpec(b, s),
        spacing=1,
        scale=1.0,
    )


def random_window(n=3, length=3):
    draw = np.random.default_rng(0)
    window = StateBlock(*draw.normal(size=(2, n, length, 2)))
    return cast((window, draw.normal(size=(n, 5))), "float32")


def test_one_level_for_all_unknown_tokens_falls_from_one_to_zero():
    """Conditioned on `1, 0.9, ... 0.1, 0` for unknown tokens and on 0 for known ones."""
    stage = recorded_stage(2, 1)
    window, z = random_window()
    known = masks("random", stage.spec, 3, key=4)
    jax.block_until_ready(denoise(stage, window, known, z, jr.key(0), NOISE))
    jax.effects_barrier()
    source, target = stage.spec.source, stage.spec.target
    for hamiltonian, q_block, p_block in (
        (stage.right, source, target),
        (stage.left, target, source),
    ):
        calls = sorted(hamiltonian.network.calls, key=lambda call: -call[2].max())
        assert len(calls) == 11
        for call, alpha in zip(calls, np.arange(10, -1, -1) / 10, strict=True):
            told_q = np.where(known.q[:, q_block], 0.0, alpha)
            told_p = np.where(known.p[:, p_block], 0.0, alpha)
            np.testing.assert_allclose(call[2], told_q, atol=1e-6)
            np.testing.assert_allclose(call[3], told_p, atol=1e-6)
            # Known tokens are what they are at every step.
            is_known = np.asarray(known.p[:, p_block])
            np.testing.assert_array_equal(call[1][is_known], window.p[:, p_block][is_known])


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_schedule_is_the_papers(temperature):
    """Appendix C and the authors' code as a plain loop.

    Noise to the level, H⁺, noise its outputs to the same level, H⁻; the level falls to 0.
    """
    stage = recorded_stage(2, 1)
    window, z = random_window()
    known = masks("random", stage.spec, 3, key=4)
    rounds = 4
    config = DenoisingConfig(noisy_rounds=rounds, clean_rounds=1, temperature=temperature)
    source, target = stage.spec.source, stage.spec.target

    def noised(clean, alpha, key):
        """`(1-α) x̂ + α ε` with ε of this temperature, known tokens as they are."""
        ones = NoiseLevel(*(jnp.ones(part.shape) for part in known))
        epsilon = corrupt(key, clean, ones)
        mixed = [
            (1 - alpha) * x + temperature * alpha * e for x, e in zip(clean, epsilon, strict=True)
        ]
        return select(known, window, StateBlock(*mixed))

    @jax.jit
    def right(states, level):
        return stage.right_outputs(states.q[:, source], states.p[:, target], level, z)

    @jax.jit
    def left(states, level):
        return stage.left_outputs(states.q[:, target], states.p[:, source], level, z)

    states = window
    ladder = noise_levels(rounds)
    for n, key in zip(range(rounds, -1, -1), jr.split(jr.key(9), rounds + 1), strict=True):
        level = NoiseLevel(*(jnp.where(part, 0.0, ladder[n]) for part in known))
        first, second = jr.split(key)
        Q_target, P_source = right(noised(states, ladder[n], first), level)
        newest = StateBlock(
            states.q.at[:, target].set(Q_target), states.p.at[:, source].set(P_source)
        )
        Q_source, P_target = left(noised(select(known, window, newest), ladder[n], second), level)
        middle = [(Q_source[:, 1] + Q_target[:, 0]) / 2, (P_source[:, 1] + P_target[:, 0]) / 2]
        q = jnp.stack([Q_source[:, 0], middle[0], Q_target[:, 1]], axis=1)
        p = jnp.stack([P_source[:, 0], middle[1], P_target[:, 1]], axis=1)
        states = select(known, window, StateBlock(q, p))
    filled = run(stage, window, known, z, jr.key(9), config)
    for said, expected in zip(filled, states, strict=True):
        np.testing.assert_allclose(said, expected, atol=2e-6)


def test_windows_do_not_see_each_other():
    stage = exact_stage(2, 1, linked=False)
    truth, z = exact_states(0, 3, dtype="float32")
    known = masks("autoregressive", stage.spec, 5)
    guess = select(known, truth, jax.tree.map(jnp.zeros_like, truth))
    together = run(stage, guess, known, z, jr.key(0), GUESS)
    alone = run(stage, *jax.tree.map(lambda x: x[2:3], (guess, known, z)), jr.key(0), GUESS)
    np.testing.assert_allclose(alone.q[0], together.q[2], atol=1e-6)


def test_single_precision_works_where_double_is_allowed():
    with jax.enable_x64(True):
        stage = exact_stage(2, 1, linked=False)
        window, z = exact_states(0, 3, dtype="float32")
        known = Known(*(jnp.asarray([[True, True, False]] * 5),) * 2)
        for config in (NOISE, GUESS):
            assert run(stage, window, known, z, jr.key(0), config).q.dtype == jnp.float32
