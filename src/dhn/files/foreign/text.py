"""Text files as instruments write them: separators, headers, units and faults of all kinds."""

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np

from dhn.errors import UserError
from dhn.files.foreign.recording import Source
from dhn.files.table import Table
from dhn.printable import printable

_COMMENT = re.compile(r"^\s*(%|#|//|!)+\s*")
_MISSING = frozenset({"", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none", "?", "*"})
_COMMA_DECIMAL = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_NAME_AND_UNIT = re.compile(r"(.+?)\s*[\[(]\s*([^\[\]()]*)\s*[\])]")
# fmt: off
_UNITS = frozenset((
    "s", "ms", "us", "µs", "ns", "min", "h", "rad", "deg", "°", "mrad", "m", "mm", "cm", "km", "px",
    "pixel", "pixels", "hz", "kg", "g", "n", "nm", "v", "mv", "a", "k", "rad/s", "deg/s", "°/s",
    "m/s", "mm/s", "cm/s", "px/s", "m/s2", "m/s^2", "m/s²", "1", "-",
))
# fmt: on


def load_text(path: Path) -> Source:
    """One table; columns without a name are called by their position, "1", "2", ..."""
    lines = _decode(path).splitlines()
    first = next((i for i, line in enumerate(lines) if _starts_data(line)), None)
    if first is None:
        raise UserError("it holds no line of numbers; expected one line a state below the header.")
    separator = _separator(lines[first])
    width = len(_cells(lines[first], separator))
    while first and _lost(lines[first - 1], separator, width):
        first -= 1
    dropped, notes = Counter[str](), set[str]()
    rows, numbers = _rows(lines, first, separator, dropped)
    columns = [_column(list(x), separator, notes) for x in zip(*rows, strict=True)]
    if columns and isinstance(columns[-1], list) and not any(columns[-1]):
        columns.pop()  # a separator at the end of every line
    header = [printable(line) for line in lines[:first]]
    names, units, warnings = _header(header, separator, len(columns))
    found = dict(zip(names, columns, strict=True))
    table = Table(found, row=lambda i: f"line {numbers[i]}")
    return Source(path.stem, table, units, tuple(sorted(notes)), tuple(warnings), dropped)


def _decode(path: Path) -> str:
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return raw.decode("utf-16")
        except UnicodeDecodeError:
            raise UserError(
                "it is UTF-16 text that is cut off or damaged; save it again as UTF-8."
            ) from None
    if b"\0" in raw:
        raise UserError("it holds binary data, not text; check that the file is what it should be.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")  # "°" in a header of an old program; numbers are the same


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error as error:
        raise UserError(
            f"the line that begins with {line[:20]!r} is no row of a table: {error}."
        ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return bool(_COMMA_DECIMAL.fullmatch(cell))
    return "_" not in cell


def _starts_data(line: str) -> bool:
    """A line of data has a number, and nothing but numbers, gaps and time stamps."""
    if not line.strip() or _COMMENT.match(line):
        return False
    cells = _cells(line, _separator(line))
    numeric = [_is_number(x) for x in cells]
    rest = [x for x, yes in zip(cells, numeric, strict=True) if not yes]
    plain = all(x.casefold() in _MISSING or (x[:1].isdigit() and len(x) > 7) for x in rest)
    return any(numeric) and (plain or sum(numeric) > len(cells) / 2)


def _lost(line: str, separator: str | None, width: int) -> bool:
    """Whether a line is a state of which nothing was measured."""
    cells = _cells(line, separator) if separator is not None else []
    return len(cells) == width and all(x.casefold() in _MISSING for x in cells)


def _separator(line: str) -> str | None:
    """None stands for blanks; a comma only if there is nothing better to separate with."""
    for separator in ("\t", ";"):
        if separator in line.strip():
            return separator
    if "," not in line:
        return None
    blanks = line.split()
    # "0,033  1,25" has decimal commas between blanks; "0.033, 1.25" has commas between numbers.
    if len(blanks) > 1 and all(_COMMA_DECIMAL.fullmatch(x) or x.isdigit() for x in blanks):
        return None
    return ","


def _rows(
    lines: list[str], first: int, separator: str | None, dropped: Counter[str]
) -> tuple[list[list[str]], list[int]]:
    """The cells of every line of data, and the numbers of these lines."""
    rows, numbers = [], []
    header = {line.strip() for line in lines[:first] if line.strip()}
    last = max(i for i, line in enumerate(lines) if line.strip())
    width = len(_cells(lines[first], separator))
    for i in range(first, len(lines)):
        line = lines[i]
        if not line.strip():
            continue
        if _COMMENT.match(line) or line.strip() in header:
            dropped["header or comment lines between the data"] += 1
            continue
        cells = _cells(line, separator)
        if len(cells) < width and i == last and len(rows) > 1:
            dropped["last line cut short"] += 1
        elif len(cells) != width:
            raise UserError(_ragged(i, line, cells, width, separator))
        else:
            rows.append(cells)
            numbers.append(i + 1)
    return rows, numbers


def _ragged(i: int, line: str, cells: list[str], width: int, separator: str | None) -> str:
    other = _separator(line)
    words = {None: "blanks", ",": "commas", ";": "semicolons", "\t": "tabs"}
    if other != separator:
        return (
            f"line {i + 1} is separated by {words[other]} but the lines before it by "
            f"{words[separator]}; use one separator throughout."
        )
    doubled = separator == "," and len(cells) >= 2 * width
    hint = " (decimal commas between commas? separate by semicolons)" if doubled else ""
    return (
        f"line {i + 1} has {len(cells)} cells but the lines before it have {width}{hint}; "
        f"complete the line or remove it."
    )


def _column(cells: list[str], separator: str | None, notes: set[str]) -> np.ndarray | list[str]:
    """Numbers if all cells are; else the cells as they are, judged when the column is used."""
    try:
        array = np.array(cells, dtype=np.float64)
        if not any("_" in x for x in cells):
            return array
    except ValueError:
        pass
    if not any(cells):
        return [""] * len(cells)
    values = []
    for cell in cells:
        if cell.casefold() in _MISSING:
            values.append(np.nan)
        elif separator != "," and _COMMA_DECIMAL.fullmatch(cell):
            notes.add("decimal commas were read as points")
            values.append(float(cell.replace(",", ".")))
        elif _is_number(cell):
            values.append(float(cell))
        else:
            return cells
    return np.array(values)


def _header(
    lines: list[str], separator: str | None, width: int
) -> tuple[list[str], dict[str, str], list[str]]:
    """Column names, units and warnings from the lines above the data."""
    positions = [str(k + 1) for k in range(width)]
    candidates = []
    for i, line in enumerate(lines):
        text = _COMMENT.sub("", line).strip().lstrip("%#!/ ")
        found = []
        if separator is not None and len([x for x in _cells(text, separator) if x]) > width:
            continue  # more names than columns
        for cells in (_cells(text, separator), _cells(text, None), _cells(text, ",")):
            cells = cells[:-1] if len(cells) == width + 1 and not cells[-1] else cells
            if text and 0 < len(cells) <= width and all(cells):
                found.append((i, cells))
        if found:  # names may be separated otherwise than numbers; the fullest fit is meant
            candidates.append(max(found, key=lambda x: len(x[1])))
    exact = [x for x in candidates if len(x[1]) == width]
    if exact:
        names, units = list(exact[0][1]), {}
        if len(exact) > 1:
            below = exact[-1][1]
            if all(x.strip("[]() ").casefold() in _UNITS for x in below):
                names = list(exact[-2][1])
                units = {n: x.strip("[]() ") for n, x in zip(names, below, strict=True)}
            else:
                names = list(below)
        return _named(_distinct(names, lines, separator), units, [])
    # Other programs leave the column of row labels, on the left, without a name.
    near = [x for x in candidates if x[0] == len(lines) - 1 and width > 1]
    if near and all(not _is_number(x) for x in near[0][1]):
        given = near[0][1]
        names = positions[: width - len(given)] + given
        warning = (
            f"the header names {len(given)} of {width} columns, taken to be the last: "
            f"{', '.join(given)}; columns 1 to {width - len(given)} go by their position"
        )
        return _named(names, {}, [warning])
    if not any(re.search(r"[^\W\d_]", line) for line in lines):
        return positions, {}, []
    return positions, {}, [f"no line of the header names all {width} columns; use their positions"]


def _distinct(names: list[str], lines: list[str], separator: str | None) -> list[str]:
    """Names that stand for several columns, each behind the name of its group in a line above.

    Programs that follow markers write x and y for each, and the markers' names above them, once
    for every column or only above the first.
    """
    twice = {x for x, count in Counter(names).items() if count > 1}
    for line in reversed(lines if twice and separator is not None else []):
        cells = _cells(_COMMENT.sub("", line), separator)
        cells += [""] * (len(names) - len(cells))
        group, groups = "", []
        for cell in cells[: len(names)]:
            group = cell.strip() or group
            groups.append(group)
        found = [f"{g}_{x}" if x in twice and g else x for g, x in zip(groups, names, strict=True)]
        if len(set(found)) == len(found):
            return found
    return names


def _named(
    names: list[str], units: dict[str, str], warnings: list[str]
) -> tuple[list[str], dict[str, str], list[str]]:
    found: dict[str, str] = {}
    result: dict[str, None] = {}
    for k, name in enumerate(names):
        name = name.strip().strip("\"'")
        match = _NAME_AND_UNIT.fullmatch(name)
        unit = units.get(names[k], match[2] if match else "")
        plain = match[1] if match else name
        if plain in result:
            raise UserError(f"two columns are called {plain!r}; rename one of them.")
        result[plain] = None
        if unit and unit not in ("-", "1"):
            found[plain] = unit
    return list(result), found, warnings
