"""How a command ends: values shown as a table or as JSON, or one line about what went wrong."""

import contextlib
import dataclasses
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

from dhn.checks import plain
from dhn.errors import UserError
from dhn.printable import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console as Console
else:
    Console = Any  # commands name it in annotations alone, and rich takes long to import


@final
@dataclasses.dataclass(frozen=True)
class Result:
    """The values of `data` are what `--json` prints; `draw` shows the same to a person."""

    data: Mapping[str, Any]
    draw: Callable[[Console], None]
    code: int = 0
    """Exit code of the command; 1 if what was asked for did not work."""
    silent: bool = False
    """Whether another process shows the result."""

    def show(self, *, as_json: bool) -> None:
        """Print the result to standard output."""
        if self.silent:
            return
        if as_json:
            json.dump(plain(self.data), sys.stdout, indent=2, allow_nan=False)
            print()
        else:
            from rich.console import Console

            # Off a terminal rich would cut tables at 80 columns; a file or a pipe has room.
            width = None if sys.stdout.isatty() else 160
            # No markup: rich would take a unit such as [rad], or a name in a file, for a tag. No
            # colours: then every escape sequence is one that came from a file.
            # Sentences are wrapped by the terminal, so that they can be copied whole.
            console = Console(
                highlight=False, markup=False, width=width, color_system=None, soft_wrap=True
            )
            # Printed by hand: rich itself would make a closed pipe (`| head`) a failure.
            with console.capture() as captured:
                self.draw(console)
            sys.stdout.write(printable(captured.get()))
            sys.stdout.flush()


def draw_table(console: Console, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Columns under their headings; those of the first column are not broken."""
    from rich.table import Table

    table = Table(*header, box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(*row)
    console.print(table, soft_wrap=False)


def draw_lines(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    """A label and a text a line, the texts below each other."""
    lines = list(lines)
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        console.print(f"{label:<{width}}  {text}")


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
    with contextlib.suppress(OSError, ValueError):  # a closed terminal or pipe
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
