"""A process that computes cells: `python -m dhn.jobs.worker MODULE:FUNCTION FOLDER ...`.

What goes wrong in one cell is written down in its folder, and the next one begins. A signal that
ends a training saves it first; the same command again goes on.
"""

import importlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dhn.jobs.cells import CELL, ERROR, RESULT, computing, finished, give_up, write_json

PARENT = "DHN_ENDS_WITH_PARENT"
"""Set by a parent whose death, noticed by the end of standard input, ends this process as well."""


def compute(function: Callable[[Any, Path], dict[str, Any]], cell: Path) -> None:
    """One cell, unless it has its result."""
    with computing(cell):
        if finished(cell):
            return
        (cell / ERROR).unlink(missing_ok=True)
        try:
            values = json.loads((cell / CELL).read_text(encoding="utf-8"))
            write_json(function(values, cell), cell / RESULT)
        except Exception as error:
            traceback.print_exc()
            give_up(cell, f"{traceback.format_exc()}\n{type(error).__name__}: {error}")


def main(words: list[str]) -> int:
    """Compute the cells one after the other; the exit code is 128 + the signal that ended it."""
    if os.environ.get(PARENT):
        threading.Thread(target=_end_with_parent, daemon=True).start()
    module, _, name = words[0].partition(":")
    function = getattr(importlib.import_module(module), name)
    try:
        for place in words[1:]:
            compute(function, Path(place))
    except KeyboardInterrupt as interruption:
        return getattr(interruption, "exit_code", 130)
    return 0


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
