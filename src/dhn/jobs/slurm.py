"""Tasks as jobs of SLURM, in arrays, submitted by submitit.

Which job has a cell stands in the cell's folder, so that another call finds it. What has become of
a job is read from the cell's files and from `squeue`, which need no accounting database.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import final

from dhn.errors import UserError
from dhn.files.atomic import write_text
from dhn.jobs.cells import JOB, Task
from dhn.jobs.executor import AbstractExecutor, forget_failures

REQUEUES = 100  # times that a job may reach its time limit; guards against one that never ends
WARNING = 90  # seconds before its limit at which a job is to save itself
SHORTEST = 5
"""Minutes that a job must have. SLURM may warn a minute early, and a job that is warned before its
training has begun would be queued again and again."""
SETTLING = 15.0  # seconds for which a job may be in neither queue nor files (shared file systems)


@final
class Resumable:
    """What a job runs: a command as a process of its own.

    Near the job's time limit, and when it is preempted, submitit calls `checkpoint` and puts the
    job into the queue again. The process is then asked to end, which saves its training.
    """

    def __init__(self) -> None:
        self.pid = 0

    def __call__(self, command: list[str], variables: dict[str, str]) -> None:
        """Run the command to its end."""
        process = subprocess.Popen(
            command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
            # SLURM sends the warning to all processes of the job; it is meant for this one.
            preexec_fn=lambda: signal.signal(signal.SIGUSR2, signal.SIG_IGN),
        )  # fmt: skip
        self.pid = process.pid
        while process.poll() is None:
            time.sleep(0.2)
        if process.returncode:
            raise RuntimeError(f"the command ended with code {process.returncode}")

    def checkpoint(self, command: list[str], variables: dict[str, str]):
        """End the process after it has saved itself; the same command goes on later."""
        import submitit

        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGTERM)
            # Not Popen.wait: this is a signal handler, and may have interrupted its lock.
            os.waitpid(self.pid, 0)
        return submitit.helpers.DelayedSubmission(Resumable(), command, variables)


@final
class SlurmExecutor(AbstractExecutor):
    """Job arrays; at most `array_limit` jobs of an array run at a time."""

    poll_seconds = 1.0

    def __init__(
        self,
        folder: Path,
        *,
        minutes: int = 60,
        partition: str | None = None,
        array_limit: int = 256,
    ):
        if minutes < SHORTEST:
            raise UserError(
                f"a SLURM job needs {SHORTEST} minutes or more, because it is warned up to two and "
                f"a half minutes before its limit; got {minutes}."
            )
        if shutil.which("sbatch") is None or shutil.which("squeue") is None:
            raise UserError("there is no SLURM here (no sbatch); run locally, or log in to it.")
        try:
            import submitit
        except ImportError:
            raise UserError('SLURM needs an extra: pip install "dhn[slurm]".') from None
        logs = folder.absolute() / "slurm"
        logs.mkdir(parents=True, exist_ok=True)
        self._executor = submitit.SlurmExecutor(folder=logs, max_num_timeout=REQUEUES)
        self._executor.update_parameters(
            job_name="dhn", time=minutes, partition=partition, array_parallelism=array_limit,
            cpus_per_task=1, signal_delay_s=WARNING,
            additional_parameters={"requeue": True},
        )  # fmt: skip
        self._jobs: dict[str, Task] = {}
        self._missing: dict[str, float] = {}

    def submit(self, tasks: Sequence[Task]) -> None:
        """See `AbstractExecutor`; tasks whose job is still in the queue are watched again."""
        queued, fresh = queue(), []
        for task in tasks:
            job = job_of(task.cells[0])
            if job in queued:
                self._jobs[job] = task
            else:
                fresh.append(task)
                forget_failures(task)
        if not fresh:
            return
        try:
            with self._executor.batch():
                jobs = [
                    self._executor.submit(Resumable(), task.command, dict(task.environment))
                    for task in fresh
                ]
        except Exception as error:
            reason = str(error).strip().splitlines()[-1]
            raise UserError(f"SLURM refused the jobs: {reason}") from error
        for job, task in zip(jobs, fresh, strict=True):
            self._jobs[job.job_id] = task
            for cell in task.cells:
                write_text(cell / JOB, job.job_id)

    def ended(self) -> list[tuple[Task, str]]:
        """See `AbstractExecutor`."""
        found, queued, now = [], queue(), time.monotonic()
        for job, task in list(self._jobs.items()):
            if job in queued:
                self._missing.pop(job, None)
                continue
            since = self._missing.setdefault(job, now)
            if not task.left() or now - since > SETTLING:
                found.append((self._jobs.pop(job), f"{_state(job)} as job {job}"))
        return found

    @property
    def busy(self) -> bool:
        """See `AbstractExecutor`."""
        return bool(self._jobs)

    def close(self) -> str:
        """Jobs stay in the queue."""
        return "jobs stay in the queue"


def job_of(cell: Path) -> str | None:
    """The job that was last given this cell."""
    try:
        return (cell / JOB).read_text().strip()
    except FileNotFoundError:
        return None


def queue() -> dict[str, str]:
    """Job -> its state, for all jobs of this user that have not ended."""
    if shutil.which("squeue") is None:
        return {}
    words = ["squeue", "--noheader", "--array", "--format=%i %T", f"--user={os.getuid()}"]
    found = subprocess.run(words, capture_output=True, text=True)
    if found.returncode:
        reason = (found.stderr.strip().splitlines() or ["squeue failed"])[-1]
        raise UserError(f"SLURM does not answer: {reason}; try again when it does.")
    pairs = (line.split(maxsplit=1) for line in found.stdout.splitlines())
    return {job: state.lower() for job, state in pairs if state not in ENDED}


ENDED = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE"}


def _state(job: str) -> str:
    """How a job ended, as far as SLURM still knows."""
    words = ["scontrol", "--oneliner", "show", "job", job]
    found = subprocess.run(words, capture_output=True, text=True).stdout
    fields = dict(word.split("=", 1) for word in found.split() if "=" in word)
    state, code = fields.get("JobState", "an unknown state"), fields.get("ExitCode", "0:0")
    return f"{state}, exit code {code}"
