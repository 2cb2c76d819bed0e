"""Runs tasks until every cell has a result or an error; executors differ in how."""

import abc
import dataclasses
import time
from collections.abc import Sequence
from typing import final

from dhn.jobs.cells import ERROR, JOB, Task, failure, finished, give_up
from dhn.jobs.progress import View


class AbstractExecutor(abc.ABC):
    """Starts the commands of tasks and notices their end."""

    poll_seconds: float
    """How often it is asked."""

    @abc.abstractmethod
    def submit(self, tasks: Sequence[Task]) -> None:
        """Start these tasks, now or when there is room."""

    @abc.abstractmethod
    def ended(self) -> list[tuple[Task, str]]:
        """Tasks that have ended since the last call, and how."""

    @property
    @abc.abstractmethod
    def busy(self) -> bool:
        """Whether any task has not ended."""

    @abc.abstractmethod
    def close(self) -> str:
        """Let go of what still runs; what becomes of it, for the user."""


@final
@dataclasses.dataclass(frozen=True)
class Outcome:
    """What happened to the cells of one run."""

    done: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: dict[str, str]
    """Name -> why."""


def run_tasks(tasks: Sequence[Task], executor: AbstractExecutor, show: bool = True) -> Outcome:
    """Compute every cell that has no result.

    A cell that fails, or whose process dies, leaves the others alone: it is given up for this
    run, and the rest of its task is submitted again. The same call continues where it ended.

    Arguments:
        tasks: Cells, grouped by the process that computes them; their folders are laid out.
        executor: Where the commands run.
        show: Whether progress goes to standard error.

    Returns:
        Names of cells that are done now, were done before, and failed.
    """
    cells = [cell for task in tasks for cell in task.cells]
    before = [cell for cell in cells if finished(cell)]
    left = [(task, tuple(x for x in task.cells if not finished(x))) for task in tasks]
    waiting = [dataclasses.replace(task, cells=some) for task, some in left if some]
    watched = [cell for task in waiting for cell in task.cells]
    total, done, failed = len(watched), [], {}

    view = View(show, total, len(before))

    def look() -> None:
        for cell in list(watched):
            why = None if finished(cell) else failure(cell)
            if why is not None:
                failed[cell.name] = why
            elif finished(cell):
                done.append(cell.name)
            else:
                continue
            view.ended(cell.name, why)
            watched.remove(cell)

    try:
        if waiting:
            executor.submit(waiting)
        while executor.busy:
            look()
            for task, how in executor.ended():
                lost = task.left()
                if lost:
                    give_up(lost[0], f"its process ended with {how}")
                if lost[1:]:
                    executor.submit([dataclasses.replace(task, cells=lost[1:])])
            if executor.busy:
                time.sleep(executor.poll_seconds)
        look()
    except KeyboardInterrupt:
        what = executor.close()
        raise KeyboardInterrupt(
            f"stopped with {len(done)} of {total} cells done; {what}: "
            "run the same command again to go on"
        ) from None
    finally:
        executor.close()
    return Outcome(tuple(done), tuple(cell.name for cell in before), failed)


def forget_failures(task: Task) -> None:
    """Before a task is tried (again): what its cells failed of, and which job had them."""
    for cell in task.cells:
        for name in (ERROR, JOB):
            (cell / name).unlink(missing_ok=True)
