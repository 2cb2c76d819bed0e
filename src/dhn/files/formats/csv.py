"""CSV: one row a state, numbers with all their digits, our header in a `# dhn` line on top."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dhn.errors import UserError
from dhn.files.table import Table
from dhn.trajectories.labels import TRAJECTORY

_PREFIX = "# dhn "
_FORMULA = re.compile(r"'*[=+@-]")


def load(path: Path) -> Table:
    """Text cells; the separator is whichever of comma, semicolon and tab the names hold most of."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError("it is not text in UTF-8; save it as 'CSV UTF-8'.") from None
    if "\0" in text:
        raise UserError("it holds binary data, not text; check that it is a CSV file.")
    lines = list(io.StringIO(text))
    header, skipped = None, 0
    for line in lines:
        if line.startswith(_PREFIX):
            header = line.removeprefix(_PREFIX)
        if line.strip() and not line.startswith("#"):
            break
        skipped += 1
    if skipped == len(lines):
        raise UserError("it is empty; expected column names and one row a state.")
    if header is not None and not text.endswith("\n"):
        raise UserError(
            f"line {len(lines)}, its last, is incomplete; it was cut off, write it anew."
        )
    separator = max(",;\t", key=lines[skipped].count)
    rows: list[list[str]] = []
    numbers: list[int] = []  # of the lines in the file, as an editor shows them
    reader = csv.reader(lines[skipped:], delimiter=separator, strict=True)
    try:
        for cells in reader:
            if any(cells):
                rows.append(cells)
                numbers.append(skipped + reader.line_num)
    except csv.Error as error:
        raise UserError(f"line {skipped + reader.line_num}: {error}; mend the quotes.") from None
    names = _names(numbers.pop(0), rows.pop(0))
    for number, cells in zip(numbers, rows, strict=True):
        if len(cells) != len(names):
            raise UserError(
                f"line {number} has {len(cells)} cells but there are {len(names)} columns; "
                f"complete the line or remove it."
            )
    columns: dict[str, Sequence[str]] = dict.fromkeys(names, ())
    columns.update(zip(names, zip(*rows, strict=True), strict=bool(rows)))
    if TRAJECTORY in columns:
        columns[TRAJECTORY] = [_unguarded(x) for x in columns[TRAJECTORY]]
    return Table(columns, header, lambda i: f"line {numbers[i]}")


def save(path: Path, table: Table) -> None:
    """`repr` of a float is the shortest text that reads back as the same float."""
    columns = []
    for cells in table.columns.values():
        values = cells.tolist() if isinstance(cells, np.ndarray) else map(guarded, cells)
        columns.append(["" if x != x else x for x in values])
    with open(path, "w", encoding="utf-8", newline="") as file:
        if table.header is not None:
            file.write(f"{_PREFIX}{table.header}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(guarded, table.columns))
        writer.writerows(zip(*columns, strict=True))


def guarded(text: str) -> str:
    """`text` behind an apostrophe if a spreadsheet would run it as a formula; see `_unguarded`."""
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _names(number: int, cells: list[str]) -> list[str]:
    names = [_unguarded(x.strip()) for x in cells]
    if all(_is_number(x) for x in names):
        raise UserError(
            f"line {number} holds numbers where the column names should be; "
            f"add a first line such as t,q,p."
        )
    seen = set[str]()
    for i, name in enumerate(names):
        if not name:
            raise UserError(f"line {number}: column {i + 1} has no name; name or remove it.")
        if name in seen:
            raise UserError(f"line {number}: two columns are called {name!r}; rename one of them.")
        seen.add(name)
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
