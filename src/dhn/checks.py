"""Checks of arguments that every room shares, so that Python and the command line agree."""

import math
import operator
import os
from pathlib import Path
from typing import Any

from dhn.errors import UserError

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


def as_path(value: Any) -> Path:
    """`value` as a path, if it is text or a path."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value) or not str(value):
        raise UserError(f"expected the name of a file or folder; got {_short(value)}.")
    return Path(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
