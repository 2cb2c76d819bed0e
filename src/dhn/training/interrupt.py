"""Signals in training: finish the chunk, save, stop; a second SIGINT stops at once.

SIGINT is Ctrl-C, SIGTERM comes from a batch system, SIGHUP from a terminal that was closed.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import final

WATCHED = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Windows has no SIGHUP."""


@final
class TrainingInterrupted(KeyboardInterrupt):
    """Training stopped on a signal, with everything saved; the same call with `resume` goes on."""

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """What a shell expects of a program that a signal ended."""
        return 128 + self.signal_number


@final
class Interruption:
    """Which signal has asked for the end, if any."""

    def __init__(self):
        self.signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def _handle(self, number: int, frame: object) -> None:
        if self.signal_number is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal_number = number


@contextlib.contextmanager
def watch_signals(enabled: bool = True) -> Iterator[Interruption]:
    """Turn the first signal into a flag; the handlers of before come back at the end.

    A signal that is ignored stays ignored: `nohup` asks for that. Outside the main thread signals
    cannot be watched, and they keep their usual meaning.
    """
    interruption = Interruption()
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {
        number: signal.signal(number, interruption._handle)
        for number in WATCHED
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            # None is a handler that was not installed from Python; it cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
