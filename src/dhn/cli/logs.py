"""What a command did, for a log file or for standard error."""

import contextlib
import logging
import platform
import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from dhn.errors import UserError
from dhn.printable import one_line

LOG = logging.getLogger("dhn")
_LINE = 20  # bytes: the time that a line of a log begins with


@contextlib.contextmanager
def logging_to(path: Path | None, *, verbose: bool, argv: Sequence[str]) -> Iterator[None]:
    """Log the command, warnings, progress, failures with their traceback, time and memory.

    **Arguments:**

    - `path`: a file that lines are added to, or None.
    - `verbose`: whether they go to standard error too, without the progress shown there anyway.
    - `argv`: the words of the command.
    """
    handlers = [*_to_file(path), *_to_stderr(verbose)]
    level, LOG.propagate = LOG.level, False
    LOG.setLevel(logging.INFO if handlers else logging.CRITICAL + 1)
    for handler in handlers:
        LOG.addHandler(handler)
    started = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            LOG.info(
                "dhn %s, Python %s on %s: dhn %s",
                version("dhn"), platform.python_version(), platform.platform(), shlex.join(argv),
            )  # fmt: skip
            yield
            LOG.info("done in %.1f s%s", time.monotonic() - started, _memory())
    except BaseException as error:
        LOG.info("failed after %.1f s%s", time.monotonic() - started, _memory(), exc_info=error)
        raise
    finally:
        for handler in handlers:
            LOG.removeHandler(handler)
            with contextlib.suppress(OSError):
                handler.close()
        LOG.setLevel(level)
        LOG.propagate = True


def _refuse_other_files(path: Path) -> None:
    """A log is appended to: a file that holds something else is not one."""
    begins = b""
    with contextlib.suppress(OSError):
        if path.is_fifo() or path.is_socket():  # opening one would wait for ever
            raise UserError(f"the log {path} is a pipe; name a file.")
        if path.is_file():
            with path.open("rb") as there:
                begins = there.read(_LINE)
    if begins and not re.match(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", begins):
        raise UserError(f"{path} is there and no log of dhn; name another file.")


def _to_file(path: Path | None) -> list[logging.Handler]:
    if path is None:
        return []
    _refuse_other_files(path)
    try:
        handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"the log {path} cannot be written: {reason}.") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))

    def give_up(record: logging.LogRecord) -> None:
        """A disk that fills up must not end the work that is logged."""
        LOG.removeHandler(handler)
        print(f"dhn: warning: the log {path} cannot be written any more", file=sys.stderr)

    handler.handleError = give_up
    return [handler]


def _to_stderr(verbose: bool) -> list[logging.Handler]:
    if not verbose:
        return []
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(lambda record: record.name != "dhn.progress" and not record.exc_info)
    handler.setFormatter(logging.Formatter("dhn: %(message)s"))
    return [handler]


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    text = f"warning: {one_line(str(message))}"
    LOG.getChild("progress").warning(text)  # the file alone: the line below is for the terminal
    if issubclass(category, RuntimeWarning):  # NumPy's remarks on arithmetic, not for a user
        return
    with contextlib.suppress(OSError):
        print(f"dhn: {text}", file=sys.stderr, flush=True)


def _memory() -> str:
    """The peak of the resident memory, where the system reports it."""
    try:
        import resource
    except ImportError:
        return ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f", at most {peak / (1e6 if sys.platform == 'darwin' else 1e3):.0f} MB of memory"
