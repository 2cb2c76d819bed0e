"""One view over the whole grid, with the time left."""

import abc
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import final


class AbstractView(abc.ABC):
    """Told about every cell as it ends."""

    @abc.abstractmethod
    def done(self, name: str) -> None: ...

    @abc.abstractmethod
    def failed(self, name: str, why: str) -> None: ...


@final
class Silent(AbstractView):
    def done(self, name: str) -> None:
        pass

    def failed(self, name: str, why: str) -> None:
        pass


@final
class Lines(AbstractView):
    """A line on standard error for every cell."""

    def __init__(self, total: int, skipped: int):
        self._total, self._ended, self._start = total, 0, time.monotonic()
        if skipped:
            self._print(f"{skipped} cells were finished before; {total} to go")

    def _print(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _left(self) -> str:
        self._ended += 1
        elapsed = time.monotonic() - self._start
        left = elapsed / self._ended * (self._total - self._ended)
        return f"[{self._ended}/{self._total}, {duration(elapsed)}, {duration(left)} left]"

    def done(self, name: str) -> None:
        self._print(f"{self._left()} {name}")

    def failed(self, name: str, why: str) -> None:
        self._print(f"{self._left()} {name} FAILED: {why}")


@final
class Bar(AbstractView):
    """A moving bar, on a terminal."""

    def __init__(self, progress, task):
        self._progress, self._task = progress, task

    def done(self, name: str) -> None:
        self._progress.update(self._task, advance=1, name=name)

    def failed(self, name: str, why: str) -> None:
        self._progress.console.print(f"failed: {name}: {why}", markup=False, highlight=False)
        self._progress.update(self._task, advance=1)


def duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


@contextlib.contextmanager
def open_view(show: bool, total: int, skipped: int) -> Iterator[AbstractView]:
    """A bar on a terminal, lines elsewhere, nothing if not wanted."""
    if not show or not total:
        yield Silent()
    elif not sys.stderr.isatty():
        yield Lines(total, skipped)
    else:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
            TimeRemainingColumn(), TextColumn("{task.fields[name]}"),
        )  # fmt: skip
        with Progress(*columns, console=Console(stderr=True)) as progress:
            yield Bar(progress, progress.add_task("cells", total=total, name=""))
