"""`dhn --help` and a wrong flag answer at once: the heavy libraries stay out of parsing."""

import os
import subprocess
import sys

import pytest

from dhn.cli import COMMANDS

HEAVY = ("jax", "numpy", "scipy", "matplotlib", "equinox", "diffrax", "optax", "h5py", "pandas")
CALLS = [["--help"], ["--version"], ["simulate", "pendulum", "-o", "x.npz", "--sed", "1"]]
CALLS += [[command, "--help"] for command in COMMANDS]
SECONDS = 0.5


def run(argv, report):
    """Run dhn in a fresh interpreter that reports on itself at the end."""
    code = f"import atexit, sys\natexit.register(lambda: {report})\nfrom dhn.cli import main\n"
    return subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(main({argv!r}))"], capture_output=True, text=True
    )


@pytest.mark.parametrize("argv", CALLS, ids=" ".join)
def test_parsing_imports_nothing_heavy(argv):
    report = f"print('loaded:', [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    done = run(argv, report)
    assert done.stderr.splitlines()[-1] == "loaded: []", done.stderr
    assert done.returncode == (2 if "--sed" in argv else 0)


@pytest.mark.parametrize("argv", CALLS, ids=" ".join)
def test_parsing_takes_less_than_half_a_second(argv):
    """Processor time, best of three: the wall clock of a busy machine says little."""
    seconds = []
    for _ in range(3):
        before = os.times()
        run(argv, "None")
        after = os.times()
        children = ("children_user", "children_system")
        seconds.append(sum(getattr(after, key) - getattr(before, key) for key in children))
    assert min(seconds) < SECONDS


def test_importing_dhn_is_light():
    code = "import sys, dhn, dhn.cli; print([m for m in ('jax', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
