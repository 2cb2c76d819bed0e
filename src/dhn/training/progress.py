"""Progress for a person: a bar on a terminal, a line now and then elsewhere.

A terminal may be closed while a training runs; what can no longer be shown must not end it.
"""

import abc
import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any, final

SECONDS_BETWEEN_LINES = 10.0  # off a terminal
LOG = logging.getLogger("dhn.progress")


class AbstractProgress(abc.ABC):
    """Receives every record of a training, and decides what to show."""

    @abc.abstractmethod
    def show(self, record: dict[str, Any], total_steps: int) -> None:
        """One more chunk of steps is done."""

    @abc.abstractmethod
    def say(self, message: str) -> None:
        """Something happened."""


@final
class Silent(AbstractProgress):
    def show(self, record: dict[str, Any], total_steps: int) -> None:
        pass

    def say(self, message: str) -> None:
        pass


@final
class PlainLines(AbstractProgress):
    """A line every ten seconds, and for the last step: for log files and pipes."""

    def __init__(self, file: Any = None):
        self.file = file or sys.stderr
        self._last = float("-inf")

    def show(self, record: dict[str, Any], total_steps: int) -> None:
        now = time.monotonic()
        done = record["step"] >= total_steps
        if done or "validation" in record or now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            self.say(f"step {record['step']}/{total_steps}  {figures(record, total_steps)}")

    def say(self, message: str) -> None:
        LOG.info(message)
        with contextlib.suppress(OSError):
            print(message, file=self.file, flush=True)


@final
class Bar(AbstractProgress):
    """A rich progress bar that stays on its line."""

    def __init__(self, bar: Any):
        self._bar = bar
        self._task = bar.add_task("training", total=None, figures="compiling")

    def show(self, record: dict[str, Any], total_steps: int) -> None:
        text = figures(record, total_steps)
        with contextlib.suppress(OSError):
            self._bar.update(
                self._task, completed=record["step"], total=total_steps, figures=text, refresh=True
            )

    def say(self, message: str) -> None:
        LOG.info(message)
        with contextlib.suppress(OSError):
            self._bar.console.print(message, highlight=False, markup=False)


def figures(record: dict[str, Any], total_steps: int) -> str:
    """`loss 1.2e-03  410 steps/s  210k windows/s  0:42 left`."""
    parts = [f"loss {record['loss']:.2e}"]
    if "validation" in record:
        parts.append(f"validation {record['validation']:.2e}")
    speed = record["steps_per_second"]
    parts.append(f"{speed:.3g} steps/s")
    parts.append(f"{_short(record['windows_per_second'])} windows/s")
    if speed > 0:
        parts.append(f"{clock(max(total_steps - record['step'], 0) / speed)} left")
    return "  ".join(parts)


def clock(seconds: float | int) -> str:
    """`0:42` or `2:46:40`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _short(number: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


@contextlib.contextmanager
def open_progress(enabled: bool) -> Iterator[AbstractProgress]:
    """The kind of progress that suits where stderr goes."""
    if not enabled:
        yield Silent()
        return
    if not sys.stderr.isatty():
        yield PlainLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    bar = Progress(*columns, console=Console(stderr=True), refresh_per_second=4)
    bar.start()
    try:
        yield Bar(bar)
    finally:
        with contextlib.suppress(OSError):
            bar.stop()
