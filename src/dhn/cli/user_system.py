"""Systems on the command line: a built-in name, or `file.py:name` from the user's own code."""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.systems import System


def resolve_system(text: str) -> "System":
    """The system called `text`, or the `dhn.System` that `file.py:name` holds.

    Everything that can be wrong with such a file is a `UserError` of one line that names it, and
    the line in it.
    """
    from dhn.systems import System, get_system
    from dhn.systems.probe import check_functions

    path, _, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
    if not path.endswith(".py"):
        return get_system(text)
    if not Path(path).is_file():
        raise UserError(f"there is no file {path}; expected SYSTEM or path/to/file.py:name.")
    values = vars(_execute(path))
    found = {key: value for key, value in values.items() if isinstance(value, System)}
    if name not in found:
        there = ", ".join(found) or "none"
        what = f"has no dhn.System called {name!r}" if name else "needs the name of a system in it"
        other = f" ({name} is a {type(values[name]).__name__})" if name in values else ""
        raise UserError(
            f"{path} {what}{other}; the systems in it: {there}. Expected path/to/file.py:name."
        )
    check_functions(found[name])
    return found[name]


def _execute(path: str) -> ModuleType:
    """Run the file as Python would run it, its folder first among those to import from."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None  # a .py file always has a loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    # No folder of compiled code beside the user's file.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(_failure(path, error)) from error
    finally:
        sys.path.pop(0)
        sys.dont_write_bytecode = before
    return module


def _failure(path: str, error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")[:200]
    if isinstance(error, SyntaxError):  # an IndentationError is one
        place = path if error.lineno is None else f"{path}, line {error.lineno}"
        return f"{place}: {error.msg}; mend the Python there."
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == Path(path).name]
    place = f"{path}, line {lines[-1]}" if lines else path
    match error:
        case UserError():
            return f"{place}: {text}."
        case ModuleNotFoundError():
            return f"{place}: {text}; install it, or correct its name."
        case TypeError() if "System.__init__" in text:
            text = text.replace("System.__init__()", "dhn.System")
            return f"{place}: {text}; help(dhn.System) lists its fields."
        case SystemExit():
            return f"{place}: the file ends the program (sys.exit); remove that."
    return f"{place}: {type(error).__name__}{f': {text}' if text else ''}."
