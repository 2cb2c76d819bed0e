"""`dhn --help` and a wrong flag answer at once: the heavy libraries stay out of parsing."""

import os
import subprocess
import sys

import pytest

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

THREADS = """
import time
from dhn.cli import main
main(["--version"])
import numpy as np
x = np.random.default_rng(0).normal(size=(1500, 1500))
whole, own = time.process_time(), time.thread_time()
x @ x
print((time.process_time() - whole) / (time.thread_time() - own))
"""


def output(code: str, threads: str | None = None) -> str:
    """What a fresh interpreter prints."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    env = {k: x for k, x in os.environ.items() if k not in names}
    env |= {} if threads is None else {names[0]: threads}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
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


def test_commands_multiply_small_matrices_by_one_thread():
    assert float(output(THREADS).split()[-1]) < 1.1


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_a_number_of_threads_that_the_user_set_stays():
    assert float(output(THREADS, threads="2").split()[-1]) > 1.3
