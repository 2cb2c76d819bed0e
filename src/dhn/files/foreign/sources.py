"""The tables in a file, whatever its ending: text, tables, or named variables (.mat, .npz, ...)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dhn.errors import UserError
from dhn.files.arrays import HEADER
from dhn.files.files import FORMATS, check_file, check_text_size, load_content, read
from dhn.files.foreign.recording import Source
from dhn.files.foreign.text import load_text
from dhn.files.roles import listing
from dhn.files.table import Table
from dhn.trajectories.container import Trajectories

_BINARY = {b"PK\x03\x04": ".npz or .xlsx", b"\x89HDF": ".h5", b"\xd0\xcf\x11\xe0": ".xls"}
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")


def load_sources(path: Path, wanted: Sequence[str]) -> list[Source]:
    """The recordings in a file; errors begin with its name."""
    start = check_file(path)
    ending = path.suffix.lower()
    try:
        if ending in _SPREADSHEETS:
            raise UserError("it is a spreadsheet; save the sheet as CSV and import that.")
        if ending in FORMATS and ending != ".csv":
            form, content = load_content(path, start, nested=True)
            if form.layout == "table":
                return _own(path) if content.header else [Source(path.stem, content)]
            if HEADER in content:
                return _own(path)
            return variable_sources(flatten(content), path, wanted)
        for signature, kind in _BINARY.items():
            if start.startswith(signature):
                raise UserError(f"its contents are not text but look like {kind}; rename it so.")
        if start.lstrip(b"\xef\xbb\xbf").startswith(b"# dhn {"):
            return _own(path)
        check_text_size(path)
        return [load_text(path)]
    except UserError as error:
        text = str(error)
        raise UserError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _own(path: Path) -> list[Source]:
    """Our own files: the known states of every trajectory."""
    data = read(path)
    angles = frozenset(n for n, angle in zip(data.names, data.angles, strict=True) if angle)
    stated = {"units": dict(data.units), "angles": angles, "coordinates": data.names}
    return [Source(label, _known_rows(data, i), **stated) for i, label in enumerate(data.ids)]


def _known_rows(data: Trajectories, i: int) -> Table:
    known = data.known[i]
    columns = {"t": data.times[i, known]}
    for key, prefix in (("q", ""), ("p", "p_"), ("v", "v_")):
        array = getattr(data, key)
        if array is not None:
            columns |= {f"{prefix}{n}": array[i, known, k] for k, n in enumerate(data.names)}
    return Table(columns)


Variables = dict[str, list[np.ndarray]]
"""Name -> one array a trial; a plain array is a list of one."""

_STEPS = ("dt", "ts", "delta_t", "sample_time")
_RATES = ("fs", "rate", "fps", "sampling_rate", "sample_rate")


def flatten(content: Mapping[str, Any]) -> Variables:
    """Structs become `struct.field`, cell arrays lists of trials; text is left out."""
    found: Variables = {}
    for name, value in content.items():
        for key, trials in _flatten(name, [np.asarray(value)]):
            found[key] = trials
    return found


def _flatten(name: str, values: list[np.ndarray]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """`values` are the same variable of several trials."""
    kinds = {("struct" if x.dtype.names else x.dtype.kind) for x in values}
    if kinds == {"struct"}:
        for field in values[0].dtype.names or ():
            inside = [np.asarray(y) for x in values for y in np.ravel(x[field])]
            yield from _flatten(f"{name}.{field}", inside)
    elif kinds == {"O"}:
        inside = [np.asarray(y) for x in values for y in np.ravel(x)]
        if inside:
            yield from _flatten(name, inside)
    elif kinds <= set("fiub") and len(values) == 1 and values[0].ndim == 3:
        yield name, list(np.asarray(values[0], dtype=np.float64))
    elif kinds <= set("fiub"):
        yield name, [np.asarray(x, dtype=np.float64) for x in values]


def variable_sources(variables: Variables, path: Path, wanted: Sequence[str]) -> list[Source]:
    """One table a trial, with a column for each of the `wanted` references.

    The references are those of `ImportOptions`, time first if there is one, since its length
    decides which axis is time. Without references the names t, q, p, v, ... decide later.
    """
    variables = {k: trials for k, trials in variables.items() if any(x.size for x in trials)}
    if not variables:
        raise UserError("it has no numeric variables; store times and coordinates as arrays.")
    rate = _rate(variables)
    if not wanted:
        wanted = [name for name, trials in variables.items() if trials[0].size > 1]
    if not wanted:
        raise UserError(
            f"none of its variables is a series of numbers; it has {_listing(variables)}."
        )
    sources = []
    for group in _groups(variables, wanted):
        arrays = {ref: variables[_name(ref, group, variables)] for ref in wanted}
        count = max(len(x) for x in arrays.values())
        for ref, trials in arrays.items():
            if len(trials) not in (1, count):
                raise UserError(
                    f"its variable {_name(ref, group, variables)!r} has {len(trials)} trials but "
                    f"others have {count}; they must go together{_star_hint(wanted)}."
                )
        for j in range(count):
            trial = {ref: x[j if len(x) > 1 else 0] for ref, x in arrays.items()}
            number = f"{j + 1}" if count > 1 else ""
            label = "-".join(x for x in (path.stem, group, number) if x)
            table = _table(trial, f" of trial {j + 1}" if count > 1 else "")
            sources.append(Source(label, table, rate=rate))
    return sources


def _groups(variables: Variables, wanted: Sequence[str]) -> list[str]:
    """What the star stands for, in the order of the file; one empty text without stars."""
    starred = [ref for ref in wanted if "*" in ref]
    if not starred:
        return [""]
    groups = None
    for ref in starred:
        pattern = re.escape(ref.partition(":")[0]).replace(r"\*", "(.*)", 1)
        matches = [re.fullmatch(pattern, name) for name in variables]
        found = [m[1] for m in matches if m]
        if not found:
            raise UserError(f"no variable fits {ref!r}; it has {_listing(variables)}.")
        if groups is not None and set(found) != set(groups):
            raise UserError(
                f"{starred[0]!r} fits {', '.join(groups)} but {ref!r} fits {', '.join(found)}; "
                f"a star must stand for the same words everywhere."
            )
        groups = groups or found
    return groups or [""]


def _star_hint(wanted: Sequence[str]) -> str:
    """A proposal where one reference names a single variable and others all of a kind."""
    single = [x.partition(":")[0] for x in wanted if "*" not in x]
    if not single or len(single) == len(wanted):
        return ""
    stem, gap, _ = single[0].rpartition("_")
    return f" (did you mean {stem if gap else single[0]}_*?)"


def _name(ref: str, group: str, variables: Variables) -> str:
    name = ref if ref in variables else ref.partition(":")[0].replace("*", group)
    if name not in variables:
        family = any(x.startswith(f"{name}_") for x in variables)
        hint = f" (did you mean {name}_*, one for each group of trials?)" if family else ""
        raise UserError(f"there is no variable {name!r}{hint}; it has {_listing(variables)}.")
    return name


def _table(trial: Mapping[str, np.ndarray], where: str) -> Table:
    """Columns of equal length; a variable with several rows becomes `name:1`, `name:2`, ..."""
    vectors = [x.size for x in trial.values() if x.ndim < 2 or 1 in x.shape]
    length = max(vectors, default=0)
    matrices = [x.shape for x in trial.values() if x.ndim == 2 and 1 not in x.shape]
    if matrices and not any(length in shape for shape in matrices):
        length = max(matrices[0])
    columns: dict[str, np.ndarray] = {}
    for ref, array in trial.items():
        name, _, part = ref.partition(":")
        rows = _rows(name, array, length, where)
        if part:
            if not part.isdigit() or not 1 <= int(part) <= len(rows):
                raise UserError(
                    f"{ref!r}: {name!r} has {len(rows)} columns{where}; "
                    f"name one from {name}:1 to {name}:{len(rows)}."
                )
            columns[ref] = rows[int(part) - 1]
        elif len(rows) == 1:
            columns[ref] = rows[0]
        else:
            columns |= {f"{ref}:{k + 1}": row for k, row in enumerate(rows)}
    return Table(columns, row=lambda i: f"sample {i + 1}{where}")


def _rows(name: str, array: np.ndarray, length: int, where: str) -> np.ndarray:
    """(columns, times), whichever way the file has it."""
    array = array.reshape(1, -1) if array.ndim < 2 or 1 in array.shape else array
    if array.ndim != 2 or length not in array.shape:
        raise UserError(
            f"its variable {name!r} has shape {array.shape}{where}, which does not fit "
            f"{length} times; leave it out or mend it."
        )
    if array.shape == (length, length) and length > 1:
        raise UserError(
            f"its variable {name!r} is square, {array.shape}{where}: rows or columns may be the "
            f"times; store the coordinates as separate variables."
        )
    return array if array.shape[1] == length else array.T


def _rate(variables: Variables) -> float | None:
    """Samples a second, from a number called dt, fs or the like."""
    for name, trials in variables.items():
        if all(x.size == 1 for x in trials) and float(trials[0].ravel()[0]) > 0:
            value = float(trials[0].ravel()[0])
            if name.casefold() in _STEPS:
                return 1 / value
            if name.casefold() in _RATES:
                return value
    return None


def _listing(variables: Variables) -> str:
    parts = []
    for name, trials in variables.items():
        cells = f"{len(trials)} trials of " if len(trials) > 1 else ""
        parts.append(f"{name} ({cells}{'x'.join(map(str, trials[0].shape)) or 'one number'})")
    return listing(parts)
