"""Traced programs kept between processes: tracing a solver takes longer than running it once.

JAX keeps what XLA compiles, but finds it by the traced program. Here the traced program itself is
kept, as StableHLO, beside JAX's own cache. It is found by the source of this package, the versions
of the libraries, and all values that the program depends on.
"""

import functools
import hashlib
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, final

import jax
import numpy as np

_DIGEST = 32  # bytes of SHA-256
_ROOTS = ("builtins", "collections", "dhn", "equinox", "jax", "jaxlib", "numpy")
"""Packages whose classes a kept program may be made from; others may change unnoticed."""


@final
class Unkept(Exception):
    """A program that depends on something without a lasting name."""


_SETTING: dict[str, bool] = {"keep": False}


def keep() -> None:
    """Keep programs from now on; for commands, which begin anew each time.

    Only if Equinox is not loaded yet: calls back into Python, by which it raises errors from within
    programs, cannot be stored, and here it makes them NaN instead.
    """
    if "equinox" not in sys.modules:
        _SETTING["keep"] = os.environ.setdefault("EQX_ON_ERROR", "nan") == "nan"


def keeping() -> bool:
    """Whether programs are kept."""
    return _SETTING["keep"] and jax.config.values.get("jax_compilation_cache_dir") is not None


def traced(function: Callable, arguments: tuple[Any, ...], key: str) -> Callable:
    """`function`, or an equal program that was traced before, of this process or an earlier one.

    Arguments:
        function: A pure function of arrays, in any containers, that returns arrays in tuples.
        arguments: Arrays or `jax.ShapeDtypeStruct`.
        key: All else that the program depends on besides the package's source.

    Returns:
        A function of such arguments.
    """
    leaves, tree = jax.tree.flatten(arguments)
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
    wide = jax.dtypes.canonicalize_dtype(np.float64)
    everything = repr((key, shapes, str(tree), wide, jax.default_backend(), *_circumstances()))
    folder = Path(jax.config.values["jax_compilation_cache_dir"])
    path = folder / "traced" / hashlib.sha256(everything.encode()).hexdigest()
    found = _read(path)
    if found is None:
        found = _trace(lambda *x: function(*jax.tree.unflatten(tree, x)), shapes)
        _write(path, found)
    length = int.from_bytes(found[:4], "big")
    form = json.loads(found[4 : 4 + length])
    program = jax.export.deserialize(bytearray(found[4 + length :])).call

    def call(*arguments):
        return _built(form, iter(program(*jax.tree.leaves(arguments))))

    return call


def lasting_name(tree: Any) -> str:
    """A text that differs for different containers of values that are no arrays.

    Raises `Unkept` where no text tells two of them apart, such as for a function without a name.
    """
    kinds: set[type] = set()

    def note(node: Any) -> bool:
        kinds.add(type(node))
        return False

    leaves, structure = jax.tree.flatten(tree, is_leaf=note)
    if any(kind.__module__.partition(".")[0] not in _ROOTS for kind in kinds):
        raise Unkept
    text = repr((str(structure), [_name(x) for x in leaves]))
    if " at 0x" in text:
        raise Unkept
    return text


def _name(value: Any) -> str:
    if not callable(value) or isinstance(value, type):
        return repr(value)
    place, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if place is None or place.partition(".")[0] not in _ROOTS:
        raise Unkept
    if getattr(importlib.import_module(place), name, None) is not value:
        raise Unkept
    return f"{place}:{name}"


@functools.cache
def _circumstances() -> tuple[str, ...]:
    """Versions of the libraries, and a hash of this package."""
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source.update(path.read_bytes())
    names = ("jax", "jaxlib", "equinox", "diffrax", "numpy")
    return (*map(_version, names), source.hexdigest())


def _version(name: str) -> str:
    """As `importlib.metadata.version`, which reads a whole description first: 0.02 s for each."""
    head = (distribution(name).read_text("METADATA") or "").partition("\n\n")[0]
    return next(line for line in head.splitlines() if line.startswith("Version:"))


def _trace(function: Callable, shapes: list[Any]) -> bytes:
    forms = []

    def flat(*leaves):
        result = function(*leaves)
        forms.append(_form(result))
        return jax.tree.leaves(result)

    try:
        program = jax.export.export(jax.jit(flat))(*shapes).serialize()
    except NotImplementedError:  # it calls back into Python
        raise Unkept from None
    header = json.dumps(forms[0]).encode()
    return len(header).to_bytes(4, "big") + header + bytes(program)


def _form(result: Any) -> Any:
    """Tuples and named tuples around arrays, as lists that begin with their kind."""
    if not isinstance(result, tuple):
        if not isinstance(result, jax.Array):
            raise Unkept
        return None
    kind = type(result)
    name = "" if kind is tuple else f"{kind.__module__}:{kind.__qualname__}"
    return [name, *map(_form, result)]


def _built(form: Any, arrays: Iterator[Any]) -> Any:
    if form is None:
        return next(arrays)
    parts = [_built(x, arrays) for x in form[1:]]
    if not form[0]:
        return tuple(parts)
    place, _, name = form[0].partition(":")
    return getattr(importlib.import_module(place), name)(*parts)


def _read(path: Path) -> bytes | None:
    """What `_write` wrote, if it is whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, found = content[:_DIGEST], content[_DIGEST:]
    return found if hashlib.sha256(found).digest() == digest else None


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all; what cannot be kept is traced again the next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(file.name, path)
    except OSError:
        return
