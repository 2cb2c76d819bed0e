"""Compiling programs that solve equations."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from dhn.kept import Unkept, keeping, lasting_name, traced

_OPTIONS: dict[str, Any] = {
    "compiler_options": {"xla_cpu_enable_concurrency_optimized_scheduler": False}
}


def solving_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """`eqx.filter_jit` for programs that iterate, factorise or solve.

    jaxlib's concurrency-optimised CPU scheduler can deadlock when such programs run on two threads
    (tests/reconstruct/test_hang.py). Training steps keep it, because it makes the paper's network
    1.4 times faster.

    In commands, which begin anew each time, the traced programs are kept as well.
    """
    plain = eqx.filter_jit(function, **_OPTIONS)
    known: dict[tuple[Any, ...], Callable[..., Any]] = {}

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not keeping() or jax.device_count() > 1:
            return plain(*args, **options)
        arrays, rest = eqx.partition((args, options), eqx.is_array)
        leaves = jax.tree.leaves(arrays)
        try:
            name = f"{function.__module__}:{function.__qualname__} {lasting_name(rest)}"
        except Unkept:
            return plain(*args, **options)
        key = (name, *((x.shape, x.dtype) for x in leaves))
        if key not in known:
            known[key] = _kept(function, arrays, rest, name) or plain
        kept = known[key]
        return plain(*args, **options) if kept is plain else kept(arrays)

    return call


def _kept(function: Callable, arrays: Any, rest: Any, name: str) -> Callable | None:
    def program(arrays):
        args, options = eqx.combine(arrays, rest)
        return function(*args, **options)

    try:
        return jax.jit(traced(program, (arrays,), name), **_OPTIONS)
    except Unkept:
        return None
