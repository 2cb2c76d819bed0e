"""A first look at the functions of a system, so that a mistake in them is one clear line."""

import functools
import traceback
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dhn.errors import UserError
from dhn.systems.system import System

_TRACED = {
    jax.errors.TracerBoolConversionError: "it decides (if, while, and, or) on a value that is not "
    "known yet; use jnp.where",
    jax.errors.TracerArrayConversionError: "it calls NumPy or SciPy on a value that is not known "
    "yet; use jax.numpy",
    jax.errors.TracerIntegerConversionError: "it uses a value that is not known yet as an index or "
    "a length; use a fixed integer",
    jax.errors.ConcretizationTypeError: "it needs a number that is not known yet (float(), "
    "math.*); use jax.numpy",
}
"""Mistake with a traced value -> what to do, the more specific ones first."""


@functools.lru_cache(maxsize=64)
def check_functions(system: System) -> None:
    """A `UserError` that names file and line if one of the system's functions cannot be used.

    The functions are traced at one state, without computing anything. Each must take `(q, v or p,
    params)` of shapes `(d,)`, `(d,)` and scalars by name, and return one real number.
    """
    kind = "lagrangian" if system.lagrangian is not None else "hamiltonian"
    functions = {kind: getattr(system, kind), **system.invariants}
    for name, function in functions.items():
        _check(system, name, function, "v" if name == "lagrangian" else "p")


def _check(system: System, name: str, function: Callable[..., Any], second: str) -> None:
    state = jax.ShapeDtypeStruct((system.dim,), jnp.float32)
    params = dict.fromkeys(system.params, jax.ShapeDtypeStruct((), jnp.float32))
    label = f"'{name}' of system '{system.name}'"
    try:
        out = jax.eval_shape(function, state, state, params)
    except UserError:
        raise
    except Exception as error:  # code of a user may raise anything
        raise UserError(
            f"{where(error, function)}{label} fails: {_reason(error, system, second)}."
        ) from error
    shapes = [getattr(leaf, "shape", None) for leaf in jax.tree.leaves(out)]
    if shapes != [()] or not jnp.issubdtype(jax.tree.leaves(out)[0].dtype, np.floating):
        raise UserError(
            f"{where(None, function)}{label} must return one real number (shape ()), got "
            f"{_shown(out)}; take one element, such as q[0], or sum with jnp.sum."
        )


def where(error: BaseException | None, function: Callable[..., Any]) -> str:
    """`file.py, line 7: `, the innermost line of the user's file that was running."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    line = code.co_firstlineno
    for frame in traceback.extract_tb(error.__traceback__) if error is not None else ():
        if frame.filename == code.co_filename and frame.lineno is not None:
            line = frame.lineno
    return f"{code.co_filename}, line {line}: "


def _reason(error: Exception, system: System, second: str) -> str:
    for kind, reason in _TRACED.items():
        if isinstance(error, kind):
            return reason
    text = " ".join(str(error).split()).rstrip(".")[:160]
    if isinstance(error, KeyError):
        known = ", ".join(system.params) or "none"
        return f"there is no parameter {text}; the system's params are {known}"
    if isinstance(error, TypeError) and "argument" in text:
        return f"{text}; it is called with (q, {second}, params)"
    if isinstance(error, TypeError | IndexError) and ("shape" in text or "index" in text):
        return f"{text}; q and {second} have shape ({system.dim},)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shown(out: Any) -> str:
    leaves = jax.tree.leaves(out)
    if len(leaves) == 1 and hasattr(leaves[0], "shape"):
        return f"shape {leaves[0].shape} of {leaves[0].dtype}"
    return "nothing (is `return` missing?)" if not leaves else f"{len(leaves)} values"
