"""Checks that a result can be written, before the work that makes it, and writing it."""

import dataclasses
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dhn.checks import mode_of
from dhn.errors import UserError, os_errors
from dhn.memory import size_text

if TYPE_CHECKING:
    from dhn.trajectories import Trajectories

TRAJECTORIES = (".npz", ".csv", ".mat", ".h5", ".hdf5", ".parquet", ".nc")
"""Endings of files of trajectories (`dhn.files.FORMATS`, without its imports)."""

ZARR = ".zarr"
"""Ending of folders of trajectories that are read and written in pieces."""

PICTURES = (".png", ".svg", ".pdf")
"""Endings of pictures."""

PAGES = (".html", ".htm")
"""Endings of pages."""


def check_output(
    path: Path,
    *,
    inputs: Iterable[Path] = (),
    endings: tuple[str, ...] = (),
    size: float | int = 0,
) -> None:
    """A `UserError` if `path` cannot become a file, would replace an input, or ends wrongly.

    **Arguments:**

    - `path`: the file to write.
    - `inputs`: files or folders that must not be replaced.
    - `endings`: the endings that choose a format; none: any ending will do.
    - `size`: bytes that will be written, if known.
    """
    kind = mode_of(path)
    replaceable = ZARR in endings and is_zarr(path) and _is_own(path)
    if kind is not None and stat.S_ISDIR(kind) and not replaceable:
        example = path / f"out{endings[0] if endings else '.npz'}"
        raise UserError(f"{path} is a folder; name a file to write, such as {example}.")
    if path.parent.is_file():
        raise UserError(f"{path.parent} is a file, not a folder; name another place.")
    if not path.parent.is_dir():
        raise UserError(f"the folder {path.parent} does not exist; make it: mkdir -p {path.parent}")
    if kind is not None and not stat.S_ISREG(kind) and not replaceable:
        raise UserError(f"{path} is a device or pipe; name a file to write.")
    if endings and path.suffix.lower() not in endings:
        raise UserError(
            f"{path}: the ending {path.suffix!r} chooses no format; use one of "
            f"{', '.join(endings)}."
        )
    for source in inputs:
        refuse_same(path, source)
    _try_to_write(path, kind is not None)
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise UserError(
            f"{path} would have about {size_text(size)}, and {size_text(free)} are free on that "
            f"disk; make room, or write elsewhere."
        )


def _is_own(path: Path) -> bool:
    from dhn.files.stored import is_own

    return is_own(path)


def refuse_other_results(folder: Path) -> None:
    """A `UserError` if this is a file, or a folder that holds others than cells and their logs."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder for the results.")
    there = {x.name for x in folder.iterdir()} if folder.is_dir() else set()
    if there and not there & {"results.json", "sweep.json", "cells", "workers.log"}:
        raise UserError(
            f"{folder} holds other files ({', '.join(sorted(there)[:3])}); name a new folder for "
            f"the results."
        )


def _try_to_write(path: Path, exists: bool) -> None:
    """A `UserError` unless a file beside `path` can be made now; it is removed at once.

    Permissions are not enough: root has all of them, even on a read-only disk.
    """
    with os_errors(f"{path} cannot be written", "; name another file or folder."):
        if exists and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".dhn"):
            pass


def save_pieces(pieces: "Iterable[Trajectories]", path: Path, count: int) -> None:
    """Write what a command computed, `count` trajectories in pieces.

    If it cannot be written there any more, it is written elsewhere.
    """
    from dhn.files.gathering import gathered
    from dhn.files.stored import is_store
    from dhn.files.storing import writing

    if is_store(path):
        with writing(path) as store:
            for piece in pieces:
                store.append(piece)
        return
    with gathered(pieces, path, count) as save:
        _save_somewhere(save, path)


def _save_somewhere(save: Callable[[Path], None], path: Path) -> None:
    try:
        save(path)
    except (OSError, UserError) as error:
        other = Path(tempfile.mkdtemp(prefix="dhn-")) / path.name
        try:
            save(other)
        except (OSError, UserError):
            raise error from None
        raise UserError(f"{error} The result is in {other} instead.") from error


def refuse_overwriting_inputs(args: Any, log: Path | None = None) -> None:
    """For every command: neither output nor log may be one of the files that it reads or writes.

    All of them must have names that files can have.
    """
    values = {field.name: getattr(args, field.name) for field in dataclasses.fields(args)}
    for value in values.values():
        for path in value if isinstance(value, tuple) else (value,):
            if isinstance(path, Path):
                mode_of(path)
    if log is not None and any(isinstance(x, Path) and same(x, log) for x in values.values()):
        raise UserError(f"the log {log} is another file of this command; name a file of its own.")
    output = values.pop("output", None)
    if not isinstance(output, Path):
        return
    for value in values.values():
        for source in value if isinstance(value, tuple) else (value,):
            if isinstance(source, Path) and (source.is_file() or is_zarr(source)):
                refuse_same(output, source)


def is_zarr(path: Path) -> bool:
    """Whether the name is that of a folder which is read and written in pieces."""
    return path.suffix.lower() == ZARR


def refuse_same(path: Path, source: Path) -> None:
    """A `UserError` if writing `path` would replace the input `source`."""
    if same(path, source):
        raise UserError(
            f"{path} is an input and would be replaced by the result; name another file."
        )


def refuse_twice(paths: Iterable[Path]) -> None:
    """A `UserError` if two of these inputs are one file, whose numbers would count twice."""
    paths = list(paths)
    for number, path in enumerate(paths):
        if any(same(path, x) for x in paths[:number]):
            raise UserError(f"{path} is named twice; name every file once.")


def same(path: Path, other: Path) -> bool:
    """Whether two names are of one file, there or to be made."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them does not exist
        return os.path.abspath(path) == os.path.abspath(other)
