"""`read` and `write`: trajectories in the files that people already have."""

import dataclasses
import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, final

from dhn.errors import UserError
from dhn.files.arrays import from_arrays, to_arrays
from dhn.files.atomic import atomic_path
from dhn.files.table import from_table, to_table
from dhn.trajectories.container import Trajectories


@final
@dataclasses.dataclass(frozen=True)
class Format:
    """A kind of file; its module in `dhn.files.formats` has `load` and `save`."""

    name: str
    module: str
    layout: Literal["arrays", "table"]
    extra: str | None = None
    """The optional dependency it needs."""

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
    ".mat": Format("MATLAB .mat", "mat", "arrays"),
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


def read(
    path: str | os.PathLike[str],
    columns: Mapping[str, str | None] | None = None,
    **fields: Any,
) -> Trajectories:
    """Trajectories from a file; the ending of its name says the format (see `FORMATS`).

    Our own files need no more than the path. Files of others are understood if they name t, q and
    p (or `theta` and `p_theta`); else `columns` says what is what, e.g.
    `columns={"time": "t", "theta": "q", "omega": "v", "len": "param:length"}` (`dhn.files.roles`
    lists all roles). `fields` set what the file does not say: `angles=(True,)`, `system="..."`.

    Measured files (any text, .mat cells, several files, ...) take the options of `dhn import`:
    `read("run.txt", time="t", q=("theta",), segment=128)`; see `dhn.files.foreign.ImportOptions`.
    """
    if fields and columns is None:
        from dhn.files.foreign import read_measured, wants_import

        if wants_import(fields):
            return read_measured(path, **fields)
    path = Path(path)
    form = _format(path)
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the name of a file in it.")
    if not path.exists():
        raise UserError(f"there is no file {path}; check its name and folder.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty (0 bytes); write or download it again.")
    unknown = [k for k in fields if k not in {f.name for f in dataclasses.fields(Trajectories)}]
    if unknown:
        raise UserError(f"read does not know the option {unknown[0]!r}; fields of Trajectories do.")
    implementation = form.implementation()
    try:
        content = _load(implementation, form, path)
        found = from_arrays if form.layout == "arrays" else from_table
        return Trajectories(**(found(content, columns) | fields))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def write(data: Trajectories, path: str | os.PathLike[str]) -> None:
    """`data` to a file; the ending of its name says the format. Nothing half-written remains."""
    path = Path(path)
    form = _format(path)
    implementation = form.implementation()
    content = to_arrays(data) if form.layout == "arrays" else to_table(data)
    with atomic_path(path) as temporary:
        implementation.save(temporary, content)


def _format(path: Path) -> Format:
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise UserError(
            f"{path}: the ending {path.suffix!r} is not one of {', '.join(FORMATS)}; rename or "
            f"convert the file."
        )
    return form


def _load(implementation: ModuleType, form: Format, path: Path) -> Any:
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except OSError as error:
        raise UserError(f"it cannot be opened: {error.strerror}; check its permissions.") from error
    for signature, endings in _SIGNATURES.items():
        if start.startswith(signature) and path.suffix.lower() not in endings:
            raise UserError(
                f"its contents look like {FORMATS[endings[0]].name}, not {form.name}; "
                f"rename it to end in {endings[0]}."
            )
    try:
        return implementation.load(path)
    except UserError:
        raise
    except Exception as error:  # a parser meets damage in a hundred ways
        reason = (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
        raise UserError(
            f"it cannot be read as {form.name} ({reason:.120}); it is damaged or not what its "
            f"ending says: write or download it again."
        ) from error
