"""`dhn --help` and a wrong flag answer at once: the heavy libraries stay out of parsing."""

import subprocess
import sys

from dhn.cli import COMMANDS

HEAVY = ("jax", "numpy", "scipy", "matplotlib", "equinox", "diffrax", "optax", "h5py", "pandas")
CALLS = [["--help"], ["--version"], ["simulate", "pendulum", "-o", "x.npz", "--sed", "1"]]
CALLS += [[command, "--help"] for command in COMMANDS]
PARSE = f"""
import sys
from dhn.cli import main
for argv in {CALLS!r}:
    try:
        code = main(argv)
    except SystemExit as leaving:
        code = leaving.code or 0
    loaded = [m for m in {HEAVY!r} if m in sys.modules]
    print(argv, code, loaded, file=sys.stderr)
    assert (code, loaded) == (2 * ("--sed" in argv), [])
"""
QUESTIONS = ["forecast", "interpolate", "denoise", "reconstruct", "infer", "evaluate", "report"]
KEEP = f"""
import sys
import dhn.kept
from dhn.cli import main
from dhn.errors import UserError
def keep():
    print("equinox" in sys.modules)
    raise UserError("enough.")
dhn.kept.keep = keep
for command in {QUESTIONS!r}:
    output = [] if command == "evaluate" else ["-o", "o.html" if command == "report" else "o.npz"]
    output = ["--target", "l"] if command == "infer" else output
    assert main([command, "run", "d.npz", *output]) == 2
"""


def output(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parsing_imports_nothing_heavy():
    output(PARSE)


def test_questions_keep_programs_from_before_the_first_import_of_equinox():
    """Afterwards it is too late, without a word."""
    assert output(KEEP).split() == ["False"] * len(QUESTIONS)


def test_importing_dhn_is_light():
    code = "import sys, dhn, dhn.cli; print([m for m in ('jax', 'numpy') if m in sys.modules])"
    assert output(code) == "[]\n"


def test_questions_load_no_plotting_and_no_optimiser():
    """Forecasts answer sooner without the libraries that only training and reports need."""
    slow = ("matplotlib", "optax", "diffrax", "scipy.signal", "scipy.optimize", "pandas")
    code = "import sys, dhn.cli.asking, dhn.estimator, dhn.files, dhn.evaluation.metrics\n"
    code += f"print([m for m in {slow!r} if m in sys.modules])"
    assert output(code) == "[]\n"
