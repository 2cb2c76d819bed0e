"""Progress of a single long call: nothing at first, then how far it is and how long it takes."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator

from dhn.training.progress import clock

PATIENCE = 2.0  # seconds before anything is shown
SECONDS_BETWEEN_LINES = 10.0  # off a terminal
SECONDS_BETWEEN_UPDATES = 0.25  # on a terminal
LOG = logging.getLogger("dhn.progress")

Report = Callable[[int, int], None]
"""`report(done, total)`: the parts of the work that are done, and all of them."""


@contextlib.contextmanager
def waiting(what: str, *, enabled: bool = True) -> Iterator[Report]:
    """Show on stderr that `what` goes on, for as long as the block runs.

    A terminal has one line that changes and vanishes at the end; elsewhere a line is printed after
    `PATIENCE` seconds and then every ten.
    """
    parts, started = [0, 0], time.monotonic()

    def report(done: int, total: int) -> None:
        parts[:] = done, total

    if not enabled:
        yield report
        return
    ended = threading.Event()

    def show() -> None:
        terminal = sys.stderr.isatty()
        pause = PATIENCE
        while not ended.wait(pause):
            pause = SECONDS_BETWEEN_UPDATES if terminal else SECONDS_BETWEEN_LINES
            text = progress_text(what, parts[0], parts[1], time.monotonic() - started)
            LOG.info(text)
            print(*(("\r", text, "\x1b[K") if terminal else (text, "\n")), sep="", end="",
                  file=sys.stderr, flush=True)  # fmt: skip
        if terminal and pause != PATIENCE:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal was closed
            show()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield report
    finally:
        ended.set()
        thread.join()


def progress_text(what: str, done: int, total: int, seconds: float | int) -> str:
    """`simulating: 512 of 2048, 0:05, about 0:15 left`."""
    parts = [f"{what}: {done} of {total}" if total else what, clock(seconds)]
    if 0 < done < total:
        parts.append(f"about {clock(seconds * (total - done) / done)} left")
    return ", ".join(parts)
