"""A file is written whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from dhn.errors import UserError, os_errors


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the same folder; it takes the place of `path` if all goes well.

    The old file, if any, stays as it was until the new one is complete and on the disk.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a device or pipe; name a file to write.")
    if not path.parent.is_dir():
        raise UserError(f"the folder {path.parent} does not exist; create it first.")
    temporary = beside(path)
    try:
        with os_errors(f"{path} cannot be written"):
            yield temporary
            _sync(temporary)
            os.replace(temporary, path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Make a file of this text, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def beside(path: Path) -> Path:
    """A new name in the folder of `path`, no longer than file systems allow.

    The ending stays, in small letters: some writers choose or complete the format by it.
    """
    return path.with_name(f".{path.stem[:STEM]}.{secrets.token_hex(4)}{path.suffix.lower()}")


STEM = 40
"""Characters of a name that its temporary file shows; at most 160 of the 255 bytes of a name."""


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # folders cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
