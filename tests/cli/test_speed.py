"""`dhn --help` and a wrong flag answer at once: the heavy libraries stay out of parsing."""

import subprocess
import sys

import pytest

from dhn.cli import COMMANDS

HEAVY = ("jax", "numpy", "scipy", "matplotlib", "equinox", "diffrax", "optax", "h5py", "pandas")
CALLS = [["--help"], ["--version"], ["simulate", "pendulum", "-o", "x.npz", "--sed", "1"]]
CALLS += [[command, "--help"] for command in COMMANDS]


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


def test_importing_dhn_is_light():
    code = "import sys, dhn, dhn.cli; print([m for m in ('jax', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_questions_load_no_plotting_and_no_optimiser():
    """Forecasts answer sooner without the libraries that only training and reports need."""
    slow = ("matplotlib", "optax", "diffrax", "scipy.signal", "scipy.optimize", "pandas")
    code = "import sys, dhn.cli.asking, dhn.estimator, dhn.files, dhn.evaluation.metrics\n"
    code += f"print([m for m in {slow!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stdout + done.stderr
