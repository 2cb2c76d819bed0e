"""The contract of files: a folder a cell, and the command that fills it.

A cell's folder holds `cell.json`, what is to be computed; `result.json`, once it is done; and
`error.txt` if it failed, whose last line is the reason. A file is written whole or not at all, so
that its presence is enough. Whoever runs the command, and however often it dies, these files
alone show what is left to do. While a process computes the cell it holds a lock on `.lock`.
"""

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from dhn.checks import from_json, plain
from dhn.errors import os_errors
from dhn.files.atomic import write_text

CELL, RESULT, ERROR, JOB = "cell.json", "result.json", "error.txt", "job.txt"
LOCK = ".lock"
SETTINGS = {
    # Small networks gain little from a second thread; two processes gain a whole core.
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
}


@final
@dataclasses.dataclass(frozen=True)
class Task:
    """Cells that one process computes, one after the other, and how that process is started."""

    function: str
    """`module:name` of a function `(values, folder) -> result`, both JSON objects."""
    cells: tuple[Path, ...]
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that the process has beside its parent's."""

    @property
    def command(self) -> list[str]:
        """What is submitted."""
        places = [str(cell.absolute()) for cell in self.cells]
        return [sys.executable, "-m", "dhn.jobs.worker", self.function, *places]

    def left(self) -> tuple[Path, ...]:
        """Cells without a result or an error, the one that was being computed first."""
        return tuple(c for c in self.cells if not finished(c) and not (c / ERROR).is_file())


def finished(cell: Path) -> bool:
    """Whether this cell has its result, whole."""
    return _result(cell) is not None


def _result(cell: Path) -> dict[str, Any] | None:
    try:
        found = from_json((cell / RESULT).read_bytes())
    except (OSError, ValueError):  # none yet, or damaged: to be computed again
        return None
    return found if isinstance(found, dict) else None


def failure(cell: Path) -> str | None:
    """Why this cell failed when it was last tried, in one line."""
    try:
        lines = (cell / ERROR).read_text(encoding="utf-8").strip().splitlines()
    except FileNotFoundError:
        return None
    return lines[-1] if lines else "no reason was given"


@contextlib.contextmanager
def computing(cell: Path) -> Iterator[None]:
    """Hold this cell for the block, after any other process that computes it; the lock is the
    kernel's and ends with the process, however that ends."""
    descriptor = os.open(cell / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with contextlib.suppress(ImportError, OSError):  # some file systems know no locks
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def computed_now(cell: Path) -> bool:
    """Whether a process computes this cell at the moment."""
    try:
        import fcntl

        with (cell / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):  # never begun, or locks are unknown here
        return False
    return False


def give_up(cell: Path, why: str) -> None:
    """Write down that this cell failed."""
    write_text(cell / ERROR, why + "\n")


def lay_out(cells: Mapping[Path, Mapping[str, Any]]) -> None:
    """Make the folder of every cell, with what is to be computed in it."""
    for place, values in cells.items():
        with os_errors(f"{place} cannot be made"):
            place.mkdir(parents=True, exist_ok=True)
        write_json(values, place / CELL, digits=None)


def environment(folder: Path, xla_flags: str = "") -> tuple[tuple[str, str], ...]:
    """One thread a process, and compiled programs shared through `folder`."""
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(folder.absolute() / "compiled")
    flags = (os.environ.get("XLA_FLAGS", ""), xla_flags, SETTINGS["XLA_FLAGS"])
    changes = {"JAX_COMPILATION_CACHE_DIR": cache, "XLA_FLAGS": " ".join(filter(None, flags))}
    return tuple({**SETTINGS, **changes}.items())


def write_json(values: Any, path: Path, indent: int | None = None, digits: int | None = 6) -> None:
    """Whole or not at all."""
    write_text(path, json.dumps(plain(values, digits), indent=indent, allow_nan=False))


def results(cells: Sequence[Path]) -> list[dict[str, Any]]:
    """The results there are, in this order."""
    return [found for cell in cells if (found := _result(cell)) is not None]
