"""The commands do their work: the files hold physics, the tables and JSON say what is in them."""

import json
import subprocess
import sys

import numpy as np
import pytest

import dhn
from dhn.cli import main

# Few shapes, so that few programs are compiled.
STEPS = ("--steps", 39)
SPRING = ("simulate", "mass_spring", "--trajectories", 4, *STEPS)


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run dhn in an empty folder; give back what it printed, as JSON if it was asked to."""
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out) if "--json" in argv else out

    return run


def test_systems_are_listed_with_their_parameters(call):
    found = call("systems", "--json")
    assert list(found) == dhn.SYSTEMS
    assert found["double_pendulum"]["coordinates"] == ["theta1", "theta2"]
    assert found["double_pendulum"]["params"]["l2"] == [0.5, 1.5]
    assert found["kepler"]["conserved"][0] == "energy"
    assert "angular_momentum" in found["kepler"]["conserved"]
    table = call("systems")
    assert all(name in table for name in dhn.SYSTEMS)
    assert "l2=0.5:1.5" in table


def test_simulate_writes_what_python_computes(call):
    argv = ("simulate", "single_pendulum", "--trajectories", 3, *STEPS, "--dt", 0.1)
    argv += ("--param", "l=0.6:0.8", "--initial", "theta=-1:1", "--seed", 5, "-o", "sp.npz")
    found = call(*argv, "--json")
    assert (found["trajectories"], found["states"], found["coordinates"]) == (3, 40, 1)
    data = dhn.read("sp.npz")
    expected = dhn.simulate(
        "single_pendulum",
        trajectories=3,
        seed=5,
        params={"l": (0.6, 0.8)},
        initial={"theta": (-1.0, 1.0)},
        time_step=0.1,
        steps=39,
    )
    np.testing.assert_array_equal(data.q, expected.q)
    np.testing.assert_array_equal(data.p, expected.p)
    assert ((data.params["l"] >= 0.6) & (data.params["l"] <= 0.8)).all()
    assert np.abs(data.q[:, 0]).max() <= 1


def test_the_seed_decides_every_byte(call, tmp_path):
    argv = (*SPRING, "--noise", 0.1)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        call(*argv, "--gaps", 0.2, "--seed", seed, "-o", f"{name}.csv")
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_simulate_with_the_faults_of_measurements(call):
    call(*SPRING, "-o", "clean.npz")
    call(*SPRING, "--noise", 0.05, "--gaps", 0.25, "-o", "faulty.npz")
    call(*SPRING, "--subsample", 0.5, "-o", "uneven.npz")
    clean, faulty, uneven = (dhn.read(f"{name}.npz") for name in ("clean", "faulty", "uneven"))
    assert np.mean(faulty.known) == 0.75
    error = (faulty.q - clean.q)[faulty.known]
    assert 0.02 < error.std() / clean.q.std() < 0.1
    assert uneven.q.shape[1] == 20
    assert np.ptp(np.diff(uneven.t, axis=-1)) > 0


def test_damping_takes_energy_away(call):
    call(*SPRING, "--dt", 0.25, "--damping", 0.3, "-o", "damped.npz")
    found = call("inspect", "damped.npz", "--json")
    # Underdamped, over 9.75 s at a rate of 0.3, about e^-2.9 of the energy is left.
    assert found["energy"]["relative_change"]["median"] > 0.8


def test_a_system_from_a_file_of_the_user(call, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import dhn\n"
        "quartic = dhn.System(name='quartic', coordinates=('x',), initial={'x': 1.0},\n"
        "    hamiltonian=lambda q, p, params: p[0] ** 2 / 2 + q[0] ** 4 / 4)\n"
    )
    call("simulate", "mine.py:quartic", "--trajectories", 2, *STEPS, "-o", "quartic.npz")
    data = dhn.read("quartic.npz")
    energy = data.p[..., 0] ** 2 / 2 + data.q[..., 0] ** 4 / 4
    np.testing.assert_allclose(energy, 0.25, rtol=1e-8)
    # The file names a system that only mine.py knows: no energy, and no complaint.
    assert call("inspect", "quartic.npz", "--json")["energy"] is None
    assert main(["simulate", "mine.py:cubic", "-o", "c.npz"]) == 2


def test_a_file_without_that_system_is_the_users_mistake(call, tmp_path, capsys):
    (tmp_path / "mine.py").write_text("x = 1\n")
    assert main(["simulate", "mine.py:cubic", "-o", "c.npz"]) == 2
    assert "mine.py has no dhn.System called 'cubic'; the systems in it: none." in (
        capsys.readouterr().err
    )


def test_inspect_tells_the_facts(call):
    call("simulate", "double_pendulum", "--trajectories", 8, "-o", "dp.npz")
    found = call("inspect", "dp.npz", "--json")
    assert (found["system"], found["trajectories"], found["states"]) == ("double_pendulum", 8, 129)
    assert found["time"]["step"] == pytest.approx(10 / 128)
    assert [row["name"] for row in found["coordinates"]] == ["theta1", "theta2"]
    assert found["coordinates"][0]["angle"] and found["known"] == 1.0
    assert 0.5 <= found["params"]["l2"]["min"] <= found["params"]["l2"]["max"] <= 1.5
    # Let go at 90 degrees at rest, the energy is zero; it stays so to the solver's accuracy.
    assert abs(found["energy"]["range"]["max"]) < 1e-8
    assert found["energy"]["relative_change"]["max"] < 1e-8
    table = call("inspect", "dp.npz")
    for word in ("8 trajectories of double_pendulum", "angle [rad]", "p_theta2", "l2", "energy"):
        assert word in table


@pytest.mark.parametrize(
    "system, faults",
    [("single_pendulum", ("--noise", 0.02, "--gaps", 0.2)), ("double_pendulum", ())],
)
def test_inspect_draws(call, tmp_path, system, faults):
    call("simulate", system, "--trajectories", 8, *STEPS, *faults, "-o", "data.npz")
    found = call("inspect", "data.npz", "--plot", "a.png", "--json")
    assert found["plot"] == "a.png"
    call("inspect", "data.npz", "--plot", "b.png")
    call("inspect", "data.npz", "--plot", "c.png", "--seed", 1)
    a, b, c = ((tmp_path / f"{name}.png").read_bytes() for name in "abc")
    assert a.startswith(b"\x89PNG") and len(a) > 20_000
    assert a == b  # the same data, the same picture
    assert a != c  # another seed colours other trajectories
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_installed_command_ends_with_the_right_code(tmp_path):
    for argv, code in ((["systems"], 0), (["systems", "--jsn"], 2)):
        done = subprocess.run([sys.executable, "-m", "dhn.cli", *argv], capture_output=True)
        assert done.returncode == code


def test_a_closed_pipe_is_not_an_error():
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m dhn.cli systems | head -n 1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == ""
