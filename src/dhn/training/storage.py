"""One file for weights and everything that explains them: safetensors with a JSON header.

The structure of a model is rebuilt from its configuration; the file holds arrays under their
paths in that structure. No pickle. A checksum over the header and over every array is verified at
each load.
"""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, final

import jax
import numpy as np
import safetensors
from jaxtyping import PyTree
from safetensors.numpy import save_file

from dhn.checks import from_json
from dhn.errors import UserError
from dhn.files.atomic import atomic_path

HEADER = "dhn"
CHECKSUM = "sha256"
LAYOUT = 5
"""Goes up when the meaning of a file changes."""

R = TypeVar("R")
Fields = Mapping[str, type | tuple[type, ...]]
"""Key of a header -> the types that its value may have."""


@final
class DamagedFile(UserError):
    """What was read is not what was written."""

    def __init__(self, path: Path, reason: str):
        super().__init__(f"{path} is damaged ({reason}); use another copy, or train again.")
        self.reason = reason


def save_arrays(
    path: str | os.PathLike[str], metadata: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write JSON-able `metadata` and `arrays` to one file, whole or not at all."""
    header = json.dumps({"layout": LAYOUT, "version": _version(), **metadata})
    # safetensors silently garbles arrays that are not C-contiguous. (np.ascontiguousarray would
    # turn a scalar into a vector.)
    host = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {HEADER: header, CHECKSUM: checksum(header, host)}
    with atomic_path(path) as temporary:
        try:
            save_file(host, temporary, metadata=metadata)
        except safetensors.SafetensorError as error:
            # A full disk arrives as text: "... No space left on device (os error 28)".
            code = re.search(r"(?:os error|code:) (\d+)", str(error))
            number = int(code.group(1)) if code else errno.EIO
            raise OSError(number, os.strerror(number)) from error
        # safetensors makes files for their owner's eyes only; these are to be shared like others.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)


def checksum(header: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of the header's text and of every array's name, type, shape and bytes."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(json.dumps([name, str(array.dtype), array.shape]).encode())
        digest.update(array.data)
    return digest.hexdigest()


def load_arrays(
    path: str | os.PathLike[str], kind: str, fields: Fields | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and arrays of a file written by `save_arrays` with `metadata["kind"] == kind`.

    **Arguments:**

    - `path`: the file.
    - `kind`: what it must be.
    - `fields`: keys that its header must have, with their types.

    **Returns:** the header and the arrays by name, after the checksum was verified. A
    `DamagedFile` is raised if it is wrong, another `UserError` if the file is something else.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path} does not exist; expected a {kind} saved by dhn.")
    try:
        # The format itself bounds every array by the size of the file.
        with safetensors.safe_open(path, framework="numpy") as file:
            stored = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text, expected = stored.get(HEADER), stored.get(CHECKSUM)
        header = None if text is None else from_json(text)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise DamagedFile(path, str(error).splitlines()[0]) from error
    except (TypeError, AttributeError, KeyError) as error:  # a type of numbers that NumPy lacks
        raise DamagedFile(path, "it has numbers of an unknown type") from error
    if expected is not None and (text is None or expected != checksum(text, arrays)):
        raise DamagedFile(path, "its checksum is wrong")
    if not isinstance(header, dict) or "layout" not in header:
        raise UserError(f"{path} was not written by dhn; expected a {kind} saved by dhn.")
    if expected is None and header["layout"] == LAYOUT:
        raise DamagedFile(path, "it has no checksum")
    if header["layout"] != LAYOUT:
        raise UserError(
            f"{path} has layout {_short(header['layout'])} (dhn {_short(header.get('version'))}), "
            f"this dhn {_version()} reads layout {LAYOUT}; use that version of dhn, or train again."
        )
    if header.get("kind") != kind:
        raise UserError(
            f"{path} is a {_short(header.get('kind'))}, expected a {kind} saved by dhn."
        )
    check_fields(header, fields or {}, path)
    return header, arrays


def check_fields(header: Mapping[str, Any], fields: Fields, path: str | os.PathLike[str]) -> None:
    """A `UserError` that names the first key of `header` that is missing or of a wrong type."""
    for name, kinds in fields.items():
        if name not in header:
            raise UserError(f"{path} lacks {name!r} in its header; use another copy.")
        value, allowed = header[name], kinds if isinstance(kinds, tuple) else (kinds,)
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            names = " or ".join(_JSON.get(one, one.__name__) for one in allowed)
            raise UserError(
                f"{path}: {name!r} in its header must be {names}, got {_short(value)!r}; use "
                f"another copy."
            )


@contextlib.contextmanager
def understanding(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever fails inside while a file's values are interpreted becomes one line naming it."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # values of a stranger fail in a hundred ways
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise UserError(
            f"{path} holds values that this dhn {_version()} does not understand "
            f"({type(error).__name__}: {reason}); use another copy, or train again."
        ) from error


def check_numbers(
    arrays: Mapping[str, np.ndarray], path: Path, *, partly: tuple[str, ...] = ()
) -> None:
    """A `DamagedFile` if an array holds NaN; those that begin with `partly` may, in part."""
    for name, values in arrays.items():
        if values.dtype.kind == "f" and values.size:
            missing = np.isnan(values)
            if missing.all() or (missing.any() and not name.startswith(partly)):
                raise DamagedFile(path, f"{name} holds numbers that are NaN")


def record_arrays(record: Any, prefix: str) -> dict[str, np.ndarray]:
    """The arrays and numbers among the fields of a dataclass, under `prefix/name`."""
    values = {x.name: getattr(record, x.name) for x in dataclasses.fields(record)}
    kept = {name: x for name, x in values.items() if isinstance(x, np.ndarray | float)}
    return {f"{prefix}/{name}": np.asarray(x) for name, x in kept.items()}


def read_record(kind: type[R], arrays: Mapping[str, np.ndarray], prefix: str, **others: Any) -> R:
    """The record that `record_arrays` wrote; `others` are fields that stand elsewhere."""
    fields = {x.name: x.type for x in dataclasses.fields(kind) if x.name not in others}  # type: ignore[arg-type]
    found: dict[str, Any] = {name: arrays[f"{prefix}/{name}"] for name in fields}
    numbers = {name: float(found[name]) for name, kind in fields.items() if kind is float}
    return kind(**found | numbers | others)


def tree_arrays(tree: PyTree, prefix: str = "") -> dict[str, np.ndarray]:
    """Every array of a tree on the host, under its path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def fill_tree(
    template: PyTree, arrays: Mapping[str, np.ndarray], source: str | os.PathLike[str], prefix=""
) -> PyTree:
    """The tree with every array replaced by the one stored under its path."""

    def stored(path, leaf):
        name = prefix + jax.tree_util.keystr(path)
        found = arrays.get(name)
        if found is None:
            raise UserError(f"{source} lacks {name!r}; it belongs to another model. Train again.")
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise UserError(
                f"{source}: {name!r} has shape {found.shape} of {found.dtype}, expected "
                f"{leaf.shape} of {leaf.dtype}; it belongs to another model or precision."
            )
        # A copy of its own: donated buffers must not share memory with the file's.
        return jax.device_put(np.array(found))

    return jax.tree_util.tree_map_with_path(stored, template)


_JSON = {dict: "an object", list: "a list", str: "text", int: "an integer", float: "a number"}
_JSON |= {type(None): "null", bool: "true or false"}


def _short(value: Any) -> str:
    """Somebody's value within a line."""
    return " ".join(str(value).split())[:40]


def _version() -> str:
    from importlib.metadata import version

    return version("dhn")
