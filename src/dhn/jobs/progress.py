"""One view over the whole grid, with the time left."""

import sys
import time
from typing import final

from dhn.reports.html import duration


@final
class View:
    """A line on standard error for every cell that ends; nothing if it is not to be shown."""

    def __init__(self, show: bool, total: int, skipped: int):
        self._show, self._total = show, total
        self._ended, self._start = 0, time.monotonic()
        if skipped and total:
            self._print(f"{skipped} cells were finished before; {total} to go")

    def _print(self, text: str) -> None:
        if self._show:
            print(text, file=sys.stderr, flush=True)

    def ended(self, name: str, why: str | None = None) -> None:
        """This cell is done, or failed for this reason."""
        self._ended += 1
        elapsed = time.monotonic() - self._start
        left = elapsed / self._ended * (self._total - self._ended)
        times = f"{duration(elapsed)}, {duration(left)} left"
        failed = "" if why is None else f" FAILED: {why}"
        self._print(f"[{self._ended}/{self._total}, {times}] {name}{failed}")
