"""Mask patterns: which states of a window are known (paper, Sec. 3.4).

A pattern is any function `(key, spec) -> Known` for one window. `register_mask` gives it a name.
"""

from collections.abc import Callable
from difflib import get_close_matches

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Key

from dhn.blocks.spec import BlockSpec
from dhn.blocks.state import Known
from dhn.errors import UserError

MaskPattern = Callable[[Key[Array, ""], BlockSpec], Known]


def autoregressive(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """The states of the target block after the context, `min(b, s)` of them, are unknown."""
    del key
    known = jnp.arange(spec.window_length) < spec.context_length
    return Known(known, known)


def superresolution(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """The middle `s` states (one at least) are unknown, the states on both sides known."""
    del key
    length = spec.window_length
    unknown = min(max(spec.stride, 1), length - 2)
    if unknown < 1:
        raise UserError(
            f"superresolution needs a window of at least 3 states (two known ends); "
            f"block_size={spec.block_size}, stride={spec.stride} has {length}. "
            f"Use block_size=2, stride=1."
        )
    start = (length - unknown) // 2
    position = jnp.arange(length)
    known = (position < start) | (position >= start + unknown)
    return Known(known, known)


def random_half(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """A random half (rounded up) of the q-tokens and, independently, of the p-tokens is unknown."""
    length = spec.window_length

    def draw(key):
        return jr.permutation(key, jnp.arange(length) >= (length + 1) // 2)

    key_q, key_p = jr.split(key)
    return Known(draw(key_q), draw(key_p))


def mixture(*patterns: MaskPattern) -> MaskPattern:
    """Every window draws one of these patterns: one model for all their tasks."""
    if not patterns:
        raise UserError("a mixture needs at least one mask pattern; got none.")

    def draw(key, spec):
        key_choice, key_pattern = jr.split(key)
        options = [pattern(key_pattern, spec) for pattern in patterns]
        choice = jr.randint(key_choice, (), 0, len(options))
        return jax.tree.map(lambda *known: jnp.stack(known)[choice], *options)

    return draw


def _mixed(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """One of autoregressive, superresolution (where the window has a middle) and random."""
    patterns = [autoregressive, random_half]
    if spec.window_length >= 3:
        patterns.append(superresolution)
    return mixture(*patterns)(key, spec)


_PATTERNS: dict[str, MaskPattern] = {
    "autoregressive": autoregressive,
    "superresolution": superresolution,
    "random": random_half,
    "mixed": _mixed,
}


def register_mask(name: str, pattern: MaskPattern) -> None:
    """Make a pattern of your own known by name, to configurations and saved models alike."""
    if name in _PATTERNS and _PATTERNS[name] is not pattern:
        raise UserError(f"mask pattern {name!r} exists already; choose another name.")
    _PATTERNS[name] = pattern


def get_mask(name: str) -> MaskPattern:
    if name not in _PATTERNS:
        close = get_close_matches(name, _PATTERNS, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UserError(
            f"unknown mask pattern {name!r}; expected one of {', '.join(sorted(_PATTERNS))}, or a "
            f"name given to register_mask.{hint}"
        )
    return _PATTERNS[name]


def draw_known(key: Key[Array, ""], pattern: MaskPattern, spec: BlockSpec, windows: int) -> Known:
    """One draw of the pattern for each of `windows` windows."""

    def draw(key):
        known = Known(*(jnp.asarray(part) for part in pattern(key, spec)))
        for part in known:
            # A pattern of the user's own; a wrong shape would broadcast and train on nonsense.
            if part.shape != (spec.window_length,) or part.dtype != bool:
                raise UserError(
                    f"a mask pattern must return {spec.window_length} booleans for q and for p "
                    f"(block_size + stride states); got {part.dtype} of shape {part.shape}."
                )
        return known

    return jax.vmap(draw)(jr.split(key, windows))
