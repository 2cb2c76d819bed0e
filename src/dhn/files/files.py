"""`read` and `write`: trajectories in the files that people already have."""

import contextlib
import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dhn.checks import as_path
from dhn.errors import UserError
from dhn.files.arrays import from_arrays, to_arrays
from dhn.files.atomic import atomic_path
from dhn.files.loading import check_file, format_of, load_content
from dhn.files.stored import is_store, open, write_store
from dhn.files.table import check_fingerprint, from_table, to_table
from dhn.printable import printable
from dhn.trajectories.container import Trajectories
from dhn.trajectories.segments import shared_codes


def read(
    path: str | os.PathLike[str],
    columns: Mapping[str, str | None] | None = None,
    **fields: Any,
) -> Trajectories:
    """Trajectories from a file; the ending of its name gives the format (see `FORMATS`).

    Our own files need no more than the path. Files of others are understood if they name t, q and p
    (or `theta` and `p_theta`). Measured files (any text, .mat cells, several files, ...) take the
    options of `dhn import`: `read("run.txt", time="t", q=("theta",), segment=128)`; see
    `dhn.files.foreign.ImportOptions`.

    Arguments:
        path: The file.
        columns: Role of each column, e.g. `{"time": "t", "theta": "q", "omega": "v",
            "len": "param:length"}`; `dhn.files.roles` lists all roles.
        fields: What the file does not hold, such as `angles=(True,)`, `system="..."`.

    Returns:
        The trajectories.
    """
    if fields and columns is None:
        from dhn.files.foreign import read_measured, wants_import

        if wants_import(fields):
            return read_measured(path, **fields)
    path = as_path(path)
    if is_store(path):
        data = open(path).read()
        return data.replace(**fields) if fields else data
    format_of(path)
    start = check_file(path)
    unknown = [k for k in fields if k not in {f.name for f in dataclasses.fields(Trajectories)}]
    if unknown:
        raise UserError(f"read does not know the option {unknown[0]!r}; fields of Trajectories do.")
    try:
        form, content = load_content(path, start)
        if form.layout == "arrays" or columns is not None:
            found = from_arrays if form.layout == "arrays" else from_table
            return upgraded(Trajectories(**(found(content, columns) | fields)))
        data = Trajectories(**from_table(content))
        check_fingerprint(content, data)
        return upgraded(data.replace(**fields) if fields else data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def upgraded(data: Trajectories) -> Trajectories:
    """Files of version 0.2 and before have the sharing of codes in an entry "codes" of `meta`."""
    shared = data.meta.get("codes")
    if data.code_group or shared not in ("run", "all"):
        return data
    meta = {key: value for key, value in data.meta.items() if key != "codes"}
    return data.replace(code_group=shared_codes(data.ids, str(shared)), meta=meta)


def write(data: Trajectories, path: str | os.PathLike[str]) -> None:
    """Write trajectories to a file; nothing half-written remains.

    Arguments:
        data: Trajectories.
        path: The file; the ending of its name gives the format.
    """
    if not isinstance(data, Trajectories):
        raise UserError(f"only Trajectories can be written; got {type(data).__name__}.")
    path = as_path(path)
    if is_store(path):
        write_store(cleaned(data), path)
    else:
        write_all({path: data})


def write_all(files: Mapping[Path, Trajectories]) -> None:
    """Several files, of which none is changed unless all could be written."""
    with contextlib.ExitStack() as stack:
        for path, data in files.items():
            data = cleaned(data)
            form = format_of(path)
            implementation = form.implementation()
            content = to_arrays(data) if form.layout == "arrays" else to_table(data)
            implementation.save(stack.enter_context(atomic_path(path)), content)


def cleaned(data: Trajectories) -> Trajectories:
    """`data` with texts that a terminal may show."""
    units = {k: printable(x) for k, x in data.units.items()}
    meta = {printable(k): printable(x) if isinstance(x, str) else x for k, x in data.meta.items()}
    system = None if data.system is None else printable(data.system)
    return data.replace(units=units, meta=meta, system=system)
