"""Systems on the command line: a built-in name, or `file.py:name` from the user's own code."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.systems import System


def resolve_system(text: str) -> "System":
    """The system called `text`, or the `dhn.System` that `file.py:name` holds."""
    from dhn.systems import System, get_system

    path, colon, name = text.rpartition(":")
    if not colon or not path.endswith(".py"):
        return get_system(text)
    if not Path(path).is_file():
        raise UserError(f"there is no file {path}; expected SYSTEM or path/to/file.py:name.")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None  # a .py file always has a loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items() if isinstance(value, System)}
    if name not in found:
        there = ", ".join(found) or "none"
        raise UserError(f"{path} has no dhn.System called {name!r}; the systems in it: {there}.")
    return found[name]
