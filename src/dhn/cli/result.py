"""What a command answers: one set of values, shown as a table or as JSON."""

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

from dhn.printable import printable

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
            json.dump(_plain(self.data), sys.stdout, indent=2, allow_nan=False)
            print()
        else:
            from rich.console import Console

            # Off a terminal rich would cut tables at 80 columns; a file or a pipe has room.
            width = None if sys.stdout.isatty() else 160
            # No markup: rich would take a unit such as [rad], or a name in a file, for a tag. No
            # colours: then every escape sequence is one that came from a file.
            console = Console(highlight=False, markup=False, width=width, color_system=None)
            # Printed by hand: rich itself would make a closed pipe (`| head`) a failure.
            with console.capture() as captured:
                self.draw(console)
            sys.stdout.write(printable(captured.get()))
            sys.stdout.flush()


def _plain(value: Any) -> Any:
    """JSON knows no numpy, and no NaN: a missing number is null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
