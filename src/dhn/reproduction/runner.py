"""Runs the cells that have no result yet, in worker processes, and shows how far it is."""

import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

from dhn.errors import UserError
from dhn.reproduction.cell import Cell
from dhn.reproduction.grid import groups
from dhn.reproduction.progress import open_view
from dhn.reproduction.worker import RESULT

SETTINGS = {
    # Small networks gain little from a second thread; two workers gain a whole core.
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
}


@final
@dataclasses.dataclass(frozen=True)
class Outcome:
    """What happened to the cells of one run."""

    done: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: dict[str, str]
    """Name -> why."""


def finished(cell: Cell, folder: Path) -> bool:
    """A result is written whole or not at all, so that its presence is enough."""
    return (folder / "cells" / cell.name / RESULT).is_file()


@final
class Worker:
    """A child process and the thread that listens to it."""

    def __init__(
        self,
        folder: Path,
        events: "queue.Queue[tuple[Worker, dict[str, Any] | None]]",
        xla_flags: str,
    ):
        cache = os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(folder.absolute() / "compiled")
        environment = {**os.environ, **SETTINGS, "JAX_COMPILATION_CACHE_DIR": cache}
        told = (os.environ.get("XLA_FLAGS", ""), xla_flags, SETTINGS["XLA_FLAGS"])
        environment["XLA_FLAGS"] = " ".join(filter(None, told))
        self._log = (folder / "workers.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dhn.reproduction.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        self._events = events
        self.cells: list[Cell] = []
        """Given to it and not yet reported on."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.put((self, json.loads(line)))
        self._process.wait()
        self._events.put((self, None))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> str:
        code = self._process.returncode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def give(self, cells: Sequence[Cell], folder: Path) -> None:
        self.cells = list(cells)
        task = {"folder": str(folder), "cells": [c.model_dump(mode="json") for c in cells]}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.poll() is None and self.cells:
            self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()


def run_grid(
    cells: Sequence[Cell],
    folder: Path,
    workers: int = 2,
    *,
    xla_flags: str = "",
    show: bool = True,
) -> Outcome:
    """Run what is not finished. A cell that fails, or whose process dies, leaves the others alone.

    A dead worker is replaced; the cell it was at is given up for this run, and the rest of its
    group goes to another worker. The same call again goes on where this one ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} cannot be written to; choose another folder with -o.")
    waiting = groups([cell for cell in cells if not finished(cell, folder)])
    skipped = tuple(cell.name for cell in cells if finished(cell, folder))
    total = sum(map(len, waiting))
    done: list[str] = []
    failed: dict[str, str] = {}
    events: queue.Queue[tuple[Worker, dict[str, Any] | None]] = queue.Queue()
    crew: set[Worker] = set()

    with open_view(show, total, len(skipped)) as view:
        try:
            while waiting or any(worker.cells for worker in crew):
                while waiting and len(crew) < workers:
                    crew.add(_hire(Worker(folder, events, xla_flags), folder, waiting.pop(0)))
                worker, message = events.get()
                if message is None:
                    crew.discard(worker)
                    if worker.cells:
                        lost, *rest = worker.cells
                        failed[lost.name] = f"its process ended with {worker.status}"
                        view.failed(lost.name, failed[lost.name])
                        if rest:
                            waiting.insert(0, rest)
                elif "cell" in message:
                    name = message["cell"]
                    worker.cells = [cell for cell in worker.cells if cell.name != name]
                    if "error" in message:
                        failed[name] = message["error"]
                        view.failed(name, message["error"])
                    else:
                        done.append(name)
                        view.done(name)
                elif waiting:
                    worker.give(waiting.pop(0), folder)
                # Else: an idle worker with nothing to do; it stays until the end in case another
                # one dies and leaves cells behind.
                for idle in [w for w in crew if not w.cells and waiting]:
                    idle.give(waiting.pop(0), folder)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped with {len(done)} of {total} cells done; they are kept in {folder}: "
                "run the same command again to go on"
            ) from None
        finally:
            for worker in crew:
                worker.stop()
    return Outcome(tuple(done), skipped, failed)


def _hire(worker: Worker, folder: Path, cells: Sequence[Cell]) -> Worker:
    worker.give(cells, folder)
    return worker


def timestamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
