"""Programs that must end: a snippet in child processes, each with a time limit.

A deadlock of a compiled program cannot be caught from inside: all threads wait, and no Python code
runs. The child is ended from outside, by its own process group.
"""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import final

SOURCE = Path(__file__).parent.parent / "src"


@final
@dataclass(frozen=True)
class Run:
    """What became of one child."""

    ended: bool
    """False if the time limit was reached."""
    code: int
    out: str
    err: str


def run_snippet(
    snippet: str, *, seconds: float, threads: int = 2, env: dict[str, str] | None = None
) -> Run:
    """Run Python code in a child on so many threads of XLA, for at most so many seconds."""
    settings = {
        **os.environ,
        "NPROC": str(threads),
        "XLA_FLAGS": "",  # optimised as for users, not as for tests
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]),
        **(env or {}),
    }
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(snippet)],
        env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, err = child.communicate(timeout=seconds)
        return Run(True, child.returncode, out, err)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        return Run(False, child.returncode, out, err)


def assert_ends(snippet: str, *, seconds: float, times: int = 10, threads: int = 2) -> list[str]:
    """Run a snippet several times; every run must end by itself, with exit code 0.

    Returns what each run printed.
    """
    printed = []
    for number in range(1, times + 1):
        run = run_snippet(snippet, seconds=seconds, threads=threads)
        assert run.ended, f"run {number} of {times} did not end in {seconds:g} s; {run.err[-500:]}"
        assert run.code == 0, f"run {number} of {times} ended with {run.code}: {run.err[-2000:]}"
        printed.append(run.out)
    return printed
