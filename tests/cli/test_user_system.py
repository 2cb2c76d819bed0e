"""A system file of the user: every mistake in it is one line with file, line and what to do."""

import subprocess
import sys

import pytest

from dhn.cli import main
from dhn.cli.user_system import resolve_system
from dhn.errors import UserError
from dhn.systems import System, simulate

HEAD = "import math\nimport numpy as np\nimport jax.numpy as jnp\nimport dhn\n"
END = "mine = dhn.System(name='mine', coordinates=('x', 'y'), params={'k': 1.0}, hamiltonian=H)\n"


def hamiltonian(body: str) -> str:
    return f"{HEAD}def H(q, p, params):\n    {body}\n{END}"


FILES = [
    ("import dhn\nx = = 1\n", r"mine.py, line 2: invalid syntax; mend the Python there"),
    ("import dhn\ndef f():\nreturn 1\n", r"mine.py, line 3: expected an indented block"),
    ("import numpi\n", r"mine.py, line 1: No module named 'numpi'; install it, or correct"),
    ("from dhn import Sytem\n", r"mine.py, line 1: ImportError: cannot import name 'Sytem'"),
    ("import dhn\n\n1 / 0\n", r"mine.py, line 3: ZeroDivisionError: division by zero\."),
    ("import sys\nsys.exit(3)\n", r"mine.py, line 2: the file ends the program \(sys.exit\)"),
    ("x = 1\0\n", r"^mine.py: source code string cannot contain null bytes; mend"),
    ("x = undefined\n", r"mine.py, line 1: NameError: name 'undefined' is not defined\."),
    (
        HEAD + "mine = 3\n",
        r"no dhn.System called 'mine' \(mine is a int\); the systems in it: none",
    ),
    (
        HEAD + "mine = dhn.System(name='mine', coordinates=('x',))\n",
        r"mine.py, line 5: system 'mine' needs exactly one of lagrangian= and hamiltonian=; got n",
    ),
    (
        hamiltonian("return p**2 / 2 + params['k'] * q**2"),
        r"mine.py, line 5: 'hamiltonian' of system 'mine' must return one real number \(shape "
        r"\(\)\), got shape \(2,\) of float32; take one element, such as q\[0\], or sum with",
    ),
    (hamiltonian("jnp.sum(q)"), r"must return one real number .* got nothing \(is `return` miss"),
    (hamiltonian("return jnp.sum(q), 1.0"), r"must return one real number .* got 2 values"),
    (hamiltonian("return 1j * jnp.sum(q)"), r"got shape \(\) of complex64"),
    (
        hamiltonian("return q[0] if q[0] > 0 else p[0]"),
        r"mine.py, line 6: 'hamiltonian' of system 'mine' fails: it decides \(if, while, and, or\) "
        r"on a value that is not known yet; use jnp.where\.",
    ),
    (hamiltonian("return np.sin(q).sum()"), r"line 6: .* it calls NumPy or SciPy .* use jax.numpy"),
    (hamiltonian("return math.sin(q[0])"), r"line 6: .* needs a number that is not known yet"),
    (hamiltonian("return jnp.sum(q[: int(p[0])])"), r"line 6: .* not known yet"),
    (
        hamiltonian("return params['K'] * q[0]"),
        r"line 6: .* there is no parameter 'K'; the system's params are k\.",
    ),
    (hamiltonian("return jnp.sine(q[0])"), r"line 6: .* AttributeError: .*no attribute 'sine'"),
    (hamiltonian("return jnp.dot(q, jnp.ones(3))"), r"line 6: .*; q and p have shape \(2,\)"),
    (
        HEAD + "def H(q, p):\n    return 1.0\n" + END,
        r"'hamiltonian' of system 'mine' fails: .*positional argument.*; it is called with \(q, p,",
    ),
]


@pytest.mark.parametrize("text, message", FILES, ids=[message[:40] for _, message in FILES])
def test_a_mistake_in_the_file(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        resolve_system("mine.py:mine")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


# Outside the tests, which check types at run time before dhn itself does.
MISTYPED = [
    ("coords=('x',)", "mine.py, line 5: dhn.System got an unexpected keyword argument 'coords'; "),
    (
        "coordinates=('x',), hamiltonian=3.0",
        "'hamiltonian' of system 'mine' must be a function of (q, p, params); got 3.0.",
    ),
]


@pytest.mark.parametrize("fields, message", MISTYPED, ids=["name", "type"])
def test_a_mistake_in_the_fields(tmp_path, fields, message):
    (tmp_path / "mine.py").write_text(f"{HEAD}mine = dhn.System(name='mine', {fields})\n")
    argv = [sys.executable, "-m", "dhn", "simulate", "mine.py:mine", "-o", "x.npz"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


NAMES = [
    ("mine.py", "mine.py needs the name of a system in it; the systems in it: good. Expected path"),
    ("mine.py:bad", "mine.py has no dhn.System called 'bad'; the systems in it: good."),
    ("other.py:good", "there is no file other.py; expected SYSTEM or path/to/file.py:name."),
    ("mine:good", "there is no system 'mine:good'"),
]


@pytest.mark.parametrize("name, message", NAMES)
def test_a_wrong_name(tmp_path, monkeypatch, name, message, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper.py").write_text("K = 2.0\n")
    (tmp_path / "mine.py").write_text(
        "import dhn\nfrom helper import K\n"
        "good = dhn.System(name='good', coordinates='x', hamiltonian=lambda q, p, params: K*q[0])\n"
    )
    assert resolve_system("mine.py:good").name == "good"  # what lies beside it can be imported
    assert main(["simulate", name, "-o", "x.npz"]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert not (tmp_path / "x.npz").exists()


def test_an_energy_without_momenta_is_said_before_solving():
    flat = System(name="flat", coordinates=("x",), hamiltonian=lambda q, p, params: 0.0 * p[0])
    with pytest.raises(UserError, match="'flat' determine no momenta: its energy must be a finite"):
        simulate(flat, trajectories=2, steps=3)


def test_python_gets_the_same_line():
    """An invariant is looked at, too, and a file is named although there is no command line."""
    bad = System(
        name="bad", coordinates=("x",), hamiltonian=lambda q, p, params: (q + p)[0] ** 2,
        invariants={"spin": lambda q, p, params: q},
    )  # fmt: skip
    with pytest.raises(UserError, match=r"test_user_system.py, line \d+: 'spin' of system 'bad'"):
        simulate(bad, trajectories=1)
