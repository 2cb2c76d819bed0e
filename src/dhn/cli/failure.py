"""How a command ends that did not work: one line, an exit code, and JSON for machines."""

import contextlib
import json
import logging
import os
import sys
import traceback

from dhn.errors import UserError
from dhn.printable import one_line

INTERRUPTED = 130  # what a shell reports for a process ended by Ctrl-C
LOG = logging.getLogger("dhn")


def explain(error: BaseException, *, as_json: bool) -> int:
    """Print what went wrong, and return the exit code.

    `DHN_DEBUG=1` shows the traceback first. With `as_json` the same line is the value of "error"
    in an object on standard output, too.
    """
    message, code = describe(error)
    if os.environ.get("DHN_DEBUG", "0") not in ("", "0"):
        traceback.print_exception(error)
    with contextlib.suppress(OSError, ValueError):  # a closed terminal or pipe cannot be told
        sys.stdout.flush()
        if as_json:
            print(json.dumps({"error": message, "exit_code": code}), flush=True)
        print(f"dhn: {message}", file=sys.stderr, flush=True)
    return code


def describe(error: BaseException) -> tuple[str, int]:
    """One line for a person, and the exit code: 2 is a user's mistake, 130 Ctrl-C, 1 the rest."""
    text = one_line(str(error))
    match error:
        case UserError():
            return text, 2
        case KeyboardInterrupt():
            # A command that has saved its work says so in the exception it raises.
            code = getattr(error, "exit_code", INTERRUPTED)
            return text or "interrupted; nothing was written", code
        case MemoryError():
            return f"the memory of this machine does not suffice{_in(text)}; use less data.", 1
        case OSError() if error.strerror:
            name = f"{one_line(str(error.filename))}: " if error.filename else ""
            return f"{name}{error.strerror}; check that the file or folder can be used.", 1
    if "RESOURCE_EXHAUSTED" in text or "Out of memory" in text:
        return f"the memory of this machine does not suffice{_in(text)}; use less data.", 1
    return (
        f"an unexpected {type(error).__name__}{_in(text)}; this is a fault of dhn, please report "
        f"it. DHN_DEBUG=1 shows where it arose.",
        1,
    )


def _in(text: str) -> str:
    return f" ({text[:200]})" if text else ""
