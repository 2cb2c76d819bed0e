"""Masses that nobody weighed: what couples tells their ratio."""

import numpy as np
import pytest

from dhn.cli import main
from dhn.errors import UserError
from dhn.files import read
from dhn.files.foreign import import_measured


def coupled(masses, stiffness, states=600, dt=0.03, noise=0.0, seed=0):
    """Linear motion `M q'' = -K q`, exactly, from its normal modes."""
    masses, stiffness = np.array(masses, float), np.array(stiffness, float)
    root = np.sqrt(masses)
    squared, shapes = np.linalg.eigh(stiffness / np.outer(root, root))
    frequency = np.sqrt(squared)
    t = dt * np.arange(states)
    rng = np.random.default_rng(seed)
    size = rng.normal(size=len(masses)) + 1.5
    wave = size * np.exp(1j * (np.outer(t, frequency) + rng.uniform(0, 6, len(masses))))
    q = wave.real @ (shapes / root[:, None]).T
    v = (1j * frequency * wave).real @ (shapes / root[:, None]).T
    q, v = (x + noise * x.std(0) * rng.normal(size=x.shape) for x in (q, v))
    return t, q, v


def write(path, t, q, v):
    d = q.shape[1]
    names = ["t", *(f"x{i}" for i in range(d)), *(f"v{i}" for i in range(d))]
    np.savetxt(path, np.c_[t, q, v], delimiter=",", header=",".join(names), comments="")
    return {"q": tuple(names[1 : d + 1]), "v": tuple(names[d + 1 :])}


CHAIN = [[30.0, -20.0, 0.0], [-20.0, 45.0, -25.0], [0.0, -25.0, 40.0]]


@pytest.mark.parametrize(
    "masses, stiffness, noise, tolerance",
    [
        ((1.0, 2.5), [[40.0, -25.0], [-25.0, 30.0]], 0.0, 0.01),
        ((1.0, 2.5), [[40.0, -25.0], [-25.0, 30.0]], 0.002, 0.03),
        ((1.0, 0.5, 3.0), CHAIN, 0.0, 0.02),
    ],
)
def test_ratios_of_masses_that_pull_on_each_other(masses, stiffness, noise, tolerance, tmp_path):
    file = tmp_path / "run.csv"
    columns = write(file, *coupled(masses, stiffness, noise=noise))
    found = import_measured(file, mass="fit", **columns)
    data = found.parts["all"]
    np.testing.assert_allclose((data.p / data.v)[0, 5], masses, rtol=tolerance)
    assert "up to a factor" in found.report.momenta


def test_uncoupled_masses_cannot_be_told(tmp_path):
    file = tmp_path / "run.csv"
    columns = write(file, *coupled((1.0, 2.0), np.diag([30.0, 50.0]), noise=0.002))
    with pytest.raises(UserError, match=r"do not pull on each other .* give them"):
        import_measured(file, mass="fit", **columns)


def test_one_coordinate_needs_no_ratio(tmp_path):
    file = tmp_path / "run.csv"
    columns = write(file, *coupled((2.0,), [[30.0]]))
    assert import_measured(file, mass="fit", **columns).parts["all"].p is None


def test_the_command_takes_fit_for_a_mass(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("run.csv", *coupled((1.0, 2.5), [[40.0, -25.0], [-25.0, 30.0]]))
    argv = ["import", "run.csv", "--q", "x0,x1", "--v", "v0,v1", "-o", "run.npz"]
    assert main([*argv, "--mass", "fit"]) == 0
    assert "masses 1 : 2.5" in capsys.readouterr().out
    data = read("run.npz")
    np.testing.assert_allclose((data.p / data.v)[0, 5, 1], 2.5, rtol=0.01)
    assert main([*argv, "--mass", "fat"]) == 2
    assert "should be a valid number" in capsys.readouterr().err
