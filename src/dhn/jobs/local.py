"""Tasks as processes of this machine, a few at a time.

submitit's local executor starts all jobs at once and leaves them running when its parent is
killed, so this one is our own. Every task has a fresh interpreter (JAX does not survive a fork),
which ends with this process, however that ends.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import final

from dhn.errors import os_errors
from dhn.jobs.cells import Task
from dhn.jobs.executor import AbstractExecutor, forget_failures
from dhn.jobs.worker import PARENT

GRACE = 20.0  # seconds to save a training before its process is killed


@final
class LocalExecutor(AbstractExecutor):
    """At most `workers` processes, whose output goes to `folder`/workers.log."""

    poll_seconds = 0.3

    def __init__(self, folder: Path, workers: int = 2):
        with os_errors(f"{folder} cannot be written to", "; choose another folder."):
            folder.mkdir(parents=True, exist_ok=True)
            self._log = (folder / "workers.log").open("ab")
        self._workers = workers
        self._waiting: list[Task] = []
        self.running: dict[subprocess.Popen[bytes], Task] = {}

    def submit(self, tasks: Sequence[Task]) -> None:
        """See `AbstractExecutor`; tasks that are submitted again come first."""
        for task in tasks:
            forget_failures(task)
        self._waiting = [*self._waiting, *tasks] if not self.running else [*tasks, *self._waiting]
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self.running) < self._workers:
            task = self._waiting.pop(0)
            variables = {**os.environ, **dict(task.environment), PARENT: "1"}
            process = subprocess.Popen(
                task.command, stdin=subprocess.PIPE, stdout=self._log, stderr=self._log,
                env=variables,
            )  # fmt: skip
            self.running[process] = task

    def ended(self) -> list[tuple[Task, str]]:
        """See `AbstractExecutor`."""
        found = []
        for process in [p for p in self.running if p.poll() is not None]:
            code = process.returncode
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            found.append((self.running.pop(process), how))
            if process.stdin is not None:
                process.stdin.close()
        self._start()
        return found

    @property
    def busy(self) -> bool:
        """See `AbstractExecutor`."""
        return bool(self.running or self._waiting)

    def close(self) -> str:
        """End all processes, after each has saved its training."""
        self._waiting = []
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
        self.running = {}
        self._log.close()
        return "they are kept"
