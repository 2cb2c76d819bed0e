"""Compiled programs of a system; those of built-in ones are kept for later commands."""

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from dhn.kept import Unkept, keeping, traced

if TYPE_CHECKING:
    from dhn.systems.system import System


def compiled(
    system: "System", function: Callable[..., Any], shapes: tuple[Any, ...], what: str
) -> Callable[..., Any]:
    """`function(system, *arguments)` in double precision, ready for several threads.

    Arguments:
        system: Whose mechanics it computes.
        function: A pure function.
        shapes: Of its arguments, `jax.ShapeDtypeStruct` in any containers.
        what: What it computes of the system, in words that no other program has.

    Returns:
        A function of such arguments.
    """
    from dhn.systems.library import BUILT_IN  # made of the class that needs this function

    solve = functools.partial(function, system)
    with jax.enable_x64(True):
        # A system of the user's may be another one under the same name.
        if system in BUILT_IN and keeping():
            with contextlib.suppress(Unkept):
                solve = traced(solve, shapes, f"{what} of {system.name}")
        return jax.jit(solve).lower(*shapes).compile()
