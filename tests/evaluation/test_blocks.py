"""Appendix B on the exact oscillator: what is conserved, and that overlaps agree."""

import dataclasses
import sys
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from tests.reconstruct import oscillator

import dhn
from dhn.blocks import StateBlock
from dhn.errors import UserError
from dhn.evaluation.blocks import block_energy, diagnose, overlap_disagreement
from dhn.models import LeftHamiltonian, RightHamiltonian
from dhn.trajectories.scaling import Scaler

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from exact_oscillator import MASS, exact_states, frequency, with_precision
from exact_oscillator import exact_model as bare_model


def exact_model(b, s, *, linked):
    return with_precision(bare_model(b, s, linked=linked), "float64").finest


def exact(seed, length):
    """States and codes, in double precision, as NumPy arrays."""
    states, z = exact_states(seed, length)
    return StateBlock(*map(np.asarray, states)), np.asarray(z)


def energy_of(z):
    stiffness = MASS * np.asarray(frequency(z))[:, None] ** 2

    def energy(states):
        return (states.p**2).sum(-1) / (2 * MASS) + stiffness * (states.q**2).sum(-1) / 2

    return energy


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(("b", "s"), [(1, 1), (2, 1), (4, 2)])
def test_the_exact_block_map_conserves_the_energy_of_every_state(b, s, linked):
    with jax.enable_x64(True):
        states, z = exact(0, 12)
        found = block_energy(exact_model(b, s, linked=linked), states, z, energy_of(z))
        assert found.summed.shape == found.single.shape == (5, 12 - b - s + 1)
        np.testing.assert_allclose(found.summed, 0.0, atol=1e-12)
        np.testing.assert_allclose(found.single, 0.0, atol=1e-12)


def test_sums_and_single_states_by_hand():
    """States whose amplitude grows: the map keeps each one's energy, the window's does not."""
    with jax.enable_x64(True):
        states, z = exact(0, 6)
        weights = np.array([1.0, 2.0, -1.0, 1.0, 3.0, 1.0])[:, None]
        grown = StateBlock(states.q * weights, states.p * weights)
        model = exact_model(2, 1, linked=True)
        found = block_energy(model, grown, z, energy_of(z))
        np.testing.assert_allclose(found.summed, 0.0, atol=1e-12)
        # Another energy that this map does not conserve, so that both numbers are not zero.
        other = block_energy(model, grown, z, lambda block: (block.q**2).sum(-1))
        q = np.asarray(states.q)
        change = (
            np.stack([q[:, 1:-1], q[:, 2:]], 2) ** 2 - np.stack([q[:, :-2], q[:, 1:-1]], 2) ** 2
        )
        change = (change * np.stack([weights[:-2], weights[1:-1]], 1)[None] ** 2).sum(-1)
        np.testing.assert_allclose(other.summed, change.sum(-1), atol=1e-12)
        np.testing.assert_allclose(other.single, np.sqrt((change**2).mean(-1)), atol=1e-12)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(("b", "s"), [(2, 1), (4, 1), (4, 3)])
def test_overlaps_of_the_exact_map_agree_and_others_do_not(b, s, linked):
    with jax.enable_x64(True):
        states, z = exact(0, 12)
        model = exact_model(b, s, linked=linked)
        found = overlap_disagreement(model, states, z)
        assert found.shape == (5, 12 - b - s + 1)
        np.testing.assert_allclose(found, 0.0, atol=1e-12)
        assert (overlap_disagreement(model, states, z + 0.2) > 1e-3).all()


def test_the_disagreement_by_hand():
    """One output wrong by a known amount: half of the four outputs' mean square, in its unit."""
    with jax.enable_x64(True):
        states, z = exact(0, 5)
        stage = exact_model(2, 1, linked=False)
        wrong = eqx.tree_at(
            lambda s: (s.right, s.left),
            stage,
            (
                RightHamiltonian(stage.right.network, 0.0),
                LeftHamiltonian(stage.left.network, 0.0),
            ),
        )
        # A map that moves nothing returns the neighbours instead of the shared state.
        q, p = (np.asarray(x) for x in states)
        squares = [
            (q[:, :-2] - q[:, 1:-1]) ** 2,
            (p[:, 2:] - p[:, 1:-1]) ** 2,
            (q[:, 2:] - q[:, 1:-1]) ** 2,
            (p[:, :-2] - p[:, 1:-1]) ** 2,
        ]
        expected = np.sqrt(np.mean(squares, axis=(0, 3))) / stage.scale
        np.testing.assert_allclose(overlap_disagreement(wrong, states, z), expected)


def test_blocks_without_overlap_are_refused():
    with jax.enable_x64(True):
        states, z = exact(0, 5)
    with pytest.raises(UserError, match=r"block_size=1, stride=1 leaves none"):
        overlap_disagreement(exact_model(1, 1, linked=True), states, z)


@pytest.fixture(scope="module")
def springs():
    """Oscillators of unit mass with codes of frequency - 1, and a model to put exact maps into."""
    frequencies = np.linspace(0.8, 1.2, 6)
    q, p = oscillator.exact_states(frequencies, 30, np.linspace(0.0, 2.0, 6))
    params = {"m": np.ones(6), "k": frequencies**2}
    t = oscillator.TIME_STEP * np.arange(30)
    data = dhn.Trajectories(q=q, p=p, t=t, system="mass_spring", params=params)
    trained = dhn.DHN(latent_size=1, width=16, depth=1).fit(data, steps=1).trained
    units = Scaler(np.zeros(1), np.full(1, 0.5), np.full(1, 0.5))
    return dataclasses.replace(trained, scaler=units), data, frequencies[:, None] - 1.0


@pytest.mark.parametrize(("b", "s"), [(1, 1), (2, 1), (4, 2)])
def test_diagnostics_of_exact_blocks(springs, b, s):
    trained, data, codes = springs
    exact = dataclasses.replace(trained, model=oscillator.exact_model(b, s, jax.numpy.float32))
    found = diagnose(exact, data, codes)
    assert (found.block_size, found.stride) == (b, s)
    rounding = 1e-5  # of numbers of order one in single precision
    assert found.summed_energy < rounding and found.single_energy < rounding
    assert (found.overlap is None) == (b == s)
    wrong = diagnose(exact, data, codes + 0.1)
    assert wrong.single_energy > 1e-3
    if b > s:
        assert found.overlap < 1e-3 * wrong.overlap
        assert "where blocks overlap" in found.describe()
    # Unknown states leave their windows out, whatever stands there.
    known = np.ones((6, 30), bool)
    known[:, 10] = False
    broken = data.replace(known=known, q=np.where(known[..., None], data.q, 77.0))
    assert diagnose(exact, broken, codes).single_energy < rounding


def test_diagnostics_without_energy_or_windows(springs):
    trained, data, codes = springs
    exact = dataclasses.replace(trained, model=oscillator.exact_model(2, 1, jax.numpy.float32))
    found = diagnose(exact, data.replace(system=None, params={}), codes)
    assert found.summed_energy is None and found.overlap < 1e-4
    assert diagnose(exact, data[:, :2], codes) is None
