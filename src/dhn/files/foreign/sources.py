"""From a path to the tables in it, whatever the ending."""

from collections.abc import Sequence
from pathlib import Path

from dhn.errors import UserError
from dhn.files.arrays import HEADER
from dhn.files.files import read
from dhn.files.foreign.source import Source
from dhn.files.foreign.text import load_text
from dhn.files.foreign.variables import flatten, variable_sources
from dhn.files.loading import FORMATS, check_file, check_text_size, load_content
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
    return [Source(label, _rows(data, i), **stated) for i, label in enumerate(data.ids)]


def _rows(data: Trajectories, i: int) -> Table:
    known = data.known[i]
    columns = {"t": data.times[i, known]}
    for key, prefix in (("q", ""), ("p", "p_"), ("v", "v_")):
        array = getattr(data, key)
        if array is not None:
            columns |= {f"{prefix}{n}": array[i, known, k] for k, n in enumerate(data.names)}
    return Table(columns)
