"""Checks of arguments that every room shares, so that Python and the command line agree."""

import json
import math
import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dhn.errors import UserError

if TYPE_CHECKING:
    import numpy as np

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}  # seconds
LARGEST = 2**63 - 1
"""Whole numbers beyond this fit into no array."""
LONGEST = 1e9
"""Seconds; a longer duration, 30 years, is a mistake."""


def whole(name: str, value: Any, least: int = 1, most: int = LARGEST) -> int:
    """`value` as an int, if it is a whole number between `least` and `most`."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or found < least:
        raise UserError(f"{name} must be a whole number of at least {least}; got {_short(value)}.")
    if found > most:
        raise UserError(f"{name} must be at most {most}; got {found}.")
    return found


def seconds(name: str, value: Any) -> float:
    """A duration in seconds: a number, or text such as 90, 90s, 5m or 1.5h."""
    try:
        if isinstance(value, str):
            number, unit = (value[:-1], value[-1]) if value[-1:] in _UNITS else (value, "s")
            found = float(number) * _UNITS[unit]
        else:
            found = math.nan if isinstance(value, bool | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not 0 < found <= LONGEST:
        raise UserError(
            f"{name} must be a positive duration, in seconds or as text such as 90s, 5m or 1h; "
            f"got {_short(value)}."
        )
    return found


def mapping(name: str, value: Any) -> dict[Any, Any]:
    """`value` as a dict, if it maps names to values."""
    if not isinstance(value, Mapping):
        raise UserError(f"{name} must map names to values; got {_short(value)}.")
    return dict(value)


def sequence(name: str, value: Any) -> tuple[Any, ...]:
    """`value` as a tuple, if it is a sequence that is not one text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise UserError(f"{name} must be a sequence, such as a tuple; got {_short(value)}.")
    return tuple(value)


def texts(name: str, value: Any) -> tuple[str, ...]:
    """`value` as a tuple of texts, if it is one text or a sequence of them."""
    found = (value,) if isinstance(value, str) else sequence(name, value)
    if not all(isinstance(x, str) for x in found):
        raise UserError(f"{name} must be one text or several; got {_short(value)}.")
    return found


def numbers(name: str, value: Any) -> "np.ndarray":
    """`value` as float64, or a `UserError` that names it."""
    import numpy as np  # which commands do without until they need it

    if np.ma.isMaskedArray(value):
        value = np.ma.filled(value.astype(np.float64), np.nan)
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            array = np.asarray(value, dtype=np.float64) if array.dtype.kind == "O" else None
    except (ValueError, TypeError) as error:
        hint = (
            " Arrays of unequal length: use Trajectories.from_list."
            if "inhomogeneous" in str(error)
            else ""
        )
        raise UserError(f"{name} must be an array of real numbers.{hint}") from None
    if array is None:
        kind = np.asarray(value).dtype
        raise UserError(f"{name} must be an array of real numbers; got values of type {kind}.")
    return np.asarray(array, dtype=np.float64)


def as_path(value: Any) -> Path:
    """`value` as a path, if it is text or a path."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value) or not str(value):
        raise UserError(f"expected the name of a file or folder; got {_short(value)}.")
    path = Path(value)
    mode_of(path)
    return path


def from_json(text: str | bytes) -> Any:
    """The value of a JSON text; whatever is wrong with it, nested too deep, say, is a ValueError.

    Arguments:
        text: As a file or a person has it.

    Returns:
        A mapping, list, text, number, truth or None.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def plain(value: Any, digits: int | None = None) -> Any:
    """Values for JSON, which has neither arrays nor NaN: a missing number is null.

    Arguments:
        value: Mappings and sequences of texts, truths, numbers and arrays; all else becomes text.
        digits: Significant digits that are kept of a number that is not whole; all by default.

    Returns:
        What `json.dumps` takes.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(x, digits) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [plain(x, digits) for x in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), digits)
    if isinstance(value, float):
        kept = value if digits is None else float(f"{value:.{digits}g}")
        return kept if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


def mode_of(path: Path) -> int | None:
    """The mode of what is there, or None; a `UserError` if no file can have this name."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise UserError(f"{path} cannot be looked at: {error.strerror}.") from error
    except (OSError, ValueError) as error:  # a name too long, a loop of links, a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{_cut(str(path))} is no usable file name: {reason}.") from error


def _short(value: Any) -> str:
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."
