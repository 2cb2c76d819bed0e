"""One file for weights and everything that explains them: safetensors with a JSON header.

The structure of a model is rebuilt from its configuration; the file holds arrays under their
paths in that structure. No pickle.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
from jaxtyping import PyTree
from safetensors.numpy import save_file

from dhn.errors import UserError
from dhn.files.atomic import atomic_path

HEADER = "dhn"
LAYOUT = 3
"""Goes up when a file of before can no longer be read."""


def save_arrays(
    path: str | os.PathLike[str], metadata: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write JSON-able `metadata` and `arrays` to one file, whole or not at all."""
    header = json.dumps({"layout": LAYOUT, "version": _version(), **metadata})
    # safetensors silently garbles arrays that are not C-contiguous. (np.ascontiguousarray would
    # turn a scalar into a vector.)
    host = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    with atomic_path(path) as temporary:
        save_file(host, temporary, metadata={HEADER: header})
        # safetensors makes files for their owner's eyes only; these are to be shared like others.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)


def load_arrays(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and arrays of a file written by `save_arrays` with `metadata["kind"] == kind`."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path} does not exist; expected a {kind} saved by dhn.")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(HEADER)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = None if text is None else json.loads(text)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path} is damaged ({reason}); use another copy, or train again."
        ) from error
    if not isinstance(header, dict) or "layout" not in header:
        raise UserError(f"{path} was not written by dhn; expected a {kind} saved by dhn.")
    if header["layout"] != LAYOUT:
        raise UserError(
            f"{path} has layout {header['layout']} (dhn {header.get('version')}), this dhn "
            f"{_version()} reads layout {LAYOUT}; use that version of dhn, or train again."
        )
    if header.get("kind") != kind:
        raise UserError(f"{path} is a {header.get('kind')}, expected a {kind} saved by dhn.")
    return header, arrays


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
        return jnp.array(found)

    return jax.tree_util.tree_map_with_path(stored, template)


def _version() -> str:
    from importlib.metadata import version

    return version("dhn")
