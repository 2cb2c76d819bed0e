"""`read` and `write`: trajectories in the files that people already have."""

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, final

from dhn.checks import as_path
from dhn.errors import UserError, os_errors
from dhn.files import stored
from dhn.files.arrays import from_arrays, shown, to_arrays
from dhn.files.atomic import atomic_path
from dhn.files.stored import is_store
from dhn.files.storing import write_store
from dhn.files.table import Table, check_fingerprint, from_table, to_table
from dhn.memory import check_memory
from dhn.printable import printable
from dhn.trajectories.container import Trajectories
from dhn.trajectories.segments import shared_codes

_TEXT_MEMORY = 8  # times its size on disk: a cell of ten characters is a Python object of 60 bytes


@final
@dataclasses.dataclass(frozen=True)
class Format:
    """A kind of file; its module in `dhn.files.formats` has `load` and `save`."""

    name: str
    module: str
    layout: Literal["arrays", "table"]
    extra: str | None = None
    """The optional dependency it needs."""
    nested: bool = False
    """Whether its module also has `load_nested`, for cells and structs."""

    def implementation(self) -> ModuleType:
        """Imported on first use, since most people need one format only."""
        try:
            return importlib.import_module(f"dhn.files.formats.{self.module}")
        except ImportError as error:
            if self.extra is None:
                raise
            raise UserError(
                f'{self.name} files need an extra: pip install "dhn[{self.extra}]" '
                f"({error.name or error} is missing)."
            ) from None


_HDF5 = Format("HDF5", "hdf5", "arrays", "hdf5")
FORMATS: Mapping[str, Format] = {
    ".npz": Format("NumPy .npz", "npz", "arrays"),
    ".csv": Format("CSV", "csv", "table"),
    ".mat": Format("MATLAB .mat", "mat", "arrays", nested=True),
    ".h5": _HDF5,
    ".hdf5": _HDF5,
    ".parquet": Format("Parquet", "parquet", "table", "parquet"),
    ".nc": Format("NetCDF", "netcdf", "arrays", "netcdf"),
}
"""File ending -> format."""

_SIGNATURES = {
    b"PK\x03\x04": (".npz",),
    b"\x89HDF": (".h5", ".hdf5", ".nc"),
    b"MATLAB 5.0": (".mat",),
    b"PAR1": (".parquet",),
}


def format_of(path: Path) -> Format:
    """The format that the ending of `path` names, or a `UserError`."""
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise UserError(
            f"{path}: the ending {path.suffix!r} is not one of {', '.join(FORMATS)}; rename or "
            f"convert the file."
        )
    return form


def check_file(path: Path) -> bytes:
    """The first bytes of a file that exists, can be opened and is not empty."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the name of a file in it.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a device or pipe; name a file.")
    if not path.is_file():
        raise UserError(f"there is no file {path}; check its name and folder.")
    size = path.stat().st_size
    if size == 0:
        raise UserError(f"{path} is empty (0 bytes); write or download it again.")
    try:
        check_memory(size, "the file")
        hint = "; check its permissions."
        with os_errors("it cannot be opened", hint), open(path, "rb") as file:
            return file.read(16)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def check_text_size(path: Path) -> None:
    """Raise a `UserError` if the cells of a text file would not fit into memory."""
    check_memory(_TEXT_MEMORY * path.stat().st_size, "its cells")


def load_content(path: Path, start: bytes, nested: bool = False) -> tuple[Format, Any]:
    """The format of a file and its contents, a dict of arrays or a `Table`.

    Arguments:
        path: A file whose ending is one of `FORMATS`.
        start: Its first bytes, from `check_file`.
        nested: Keep the cells and structs of formats that have them.

    Returns:
        Names in the contents hold no control characters. Any damage is a `UserError` that does
        not name the file.
    """
    form = format_of(path)
    implementation = form.implementation()
    for signature, endings in _SIGNATURES.items():
        if start.startswith(signature) and path.suffix.lower() not in endings:
            raise UserError(
                f"its contents look like {FORMATS[endings[0]].name}, not {form.name}; "
                f"rename it to end in {endings[0]}."
            )
    load = implementation.load_nested if nested and form.nested else implementation.load
    try:
        if form.module == "csv":
            check_text_size(path)
        content = load(path)
    except UserError:
        raise
    except Exception as error:  # parsers report damage by many kinds of exceptions
        reason = (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
        raise UserError(
            f"it cannot be read as {form.name} ({printable(reason):.120}); it is damaged or not "
            f"what its ending says: write or download it again."
        ) from error
    columns = content.columns if isinstance(content, Table) else content
    columns = {printable(name): value for name, value in columns.items()}
    if isinstance(content, Table):
        return form, dataclasses.replace(content, columns=columns)
    return form, columns


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
        data = stored.open(path).read()
        return data.replace(**fields) if fields else data
    format_of(path)
    start = check_file(path)
    if unknown := set(fields) - field_names():
        raise UserError(
            f"read does not know the option {min(unknown)!r}; fields of Trajectories do."
        )
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


def field_names() -> set[str]:
    """Of `Trajectories`."""
    return {x.name for x in dataclasses.fields(Trajectories)}


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
    return data.replace(**{key: shown(getattr(data, key)) for key in ("units", "meta", "system")})
