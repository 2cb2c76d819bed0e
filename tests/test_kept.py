"""Programs that were traced before are used again, and only where they are the same."""

import os
import subprocess
import sys
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dhn
from dhn import kept
from dhn.kept import Unkept, lasting_name, traced
from dhn.models.compiling import solving_jit

X = jnp.arange(3.0)


class Pair(NamedTuple):
    sum: jax.Array
    parts: tuple[jax.Array, jax.Array]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Programs are kept in a folder of this test alone."""
    monkeypatch.setitem(kept._SETTING, "keep", True)
    before = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    yield tmp_path / "traced"
    jax.config.update("jax_compilation_cache_dir", before)


def _never(*arguments):
    raise AssertionError("traced again")


def test_a_program_is_traced_once(cache):
    def both(x, more):
        return Pair(x + more["y"], (x, 2 * more["y"]))

    arguments = (X, {"y": X + 1})
    first = traced(both, arguments, "both")(*arguments)
    again = traced(_never, arguments, "both")(*arguments)
    assert type(again) is Pair
    jax.tree.map(np.testing.assert_array_equal, again, first)
    jax.tree.map(np.testing.assert_array_equal, again, both(*arguments))


@pytest.mark.parametrize("other", ["key", "shape", "type", "damage"])
def test_another_program_is_traced_anew(cache, other):
    traced(jnp.sin, (X,), "sin")
    argument = {"shape": X[:2], "type": X.astype("float16")}.get(other, X)
    if other == "damage":
        (file,) = cache.iterdir()
        content = bytearray(file.read_bytes())
        content[-100] ^= 1
        file.write_bytes(content)
    with pytest.raises(AssertionError, match="traced again"):
        traced(_never, (argument,), "cos" if other == "key" else "sin")


class Foreign(eqx.Module):
    number: float = 1.0


def test_what_has_no_lasting_name_is_not_kept():
    names = [lasting_name(x) for x in (jnp.sin, jnp.cos, 1, 1.0, (1, None), (None, 1), "a")]
    assert len(set(names)) == len(names)
    for value in (lambda x: x, _never, Foreign(), {"inner": object()}):
        with pytest.raises(Unkept):
            lasting_name(value)


def test_solving_programs_are_kept_and_give_the_same(cache):
    def solve(matrix, right, power=1):
        return jnp.linalg.solve(matrix, right) ** power

    jitted, matrix = solving_jit(solve), jnp.eye(3) + 0.1
    for power in (1, 2):
        found = jitted(matrix, X, power=power)
        np.testing.assert_allclose(found, np.linalg.solve(matrix, X) ** power, rtol=1e-5)
    assert len(list(cache.iterdir())) == 2
    # With a function as an argument it is compiled as usual.
    apply = solving_jit(lambda function, x: function(x))
    assert [float(apply(f, X[1])) for f in (lambda x: x + 1, lambda x: x + 2)] == [2.0, 3.0]
    assert len(list(cache.iterdir())) == 2


def test_kept_simulations_have_the_same_bytes(tmp_path):
    """Traced here, traced and kept by a command, and found by the next one."""
    words = ["mass_spring", "--trajectories", "2", "--steps", "7", "--seed", "3", "-o"]
    env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    for name in ("first.npz", "again.npz"):
        argv = [sys.executable, "-m", "dhn", "simulate", *words, str(tmp_path / name)]
        subprocess.run(argv, check=True, env=env)
        # The solve, and the momenta of the initial velocities.
        assert len(list((tmp_path / "cache" / "traced").iterdir())) == 2
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    again, here = dhn.read(tmp_path / "again.npz"), dhn.simulate("mass_spring", 2, steps=7, seed=3)
    np.testing.assert_array_equal(again.q, here.q)
    np.testing.assert_array_equal(again.p, here.p)
