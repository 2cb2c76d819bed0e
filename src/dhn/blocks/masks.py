"""Mask patterns: which states of a window are known (paper, Sec. 3.4).

A pattern is any function `(key, spec) -> Known` for one window. `register_mask` gives it a name.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Key

from dhn.blocks.spec import BlockSpec
from dhn.blocks.state import Known
from dhn.errors import UserError, did_you_mean

MaskPattern = Callable[[Key[Array, ""], BlockSpec], Known]


def autoregressive(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """The states of the target block after the context, `min(b, s)` of them, are unknown.

    The last `s` tokens, as in the authors' code; their text has `b - s`, see the next pattern.
    """
    del key
    known = jnp.arange(spec.window_length) < spec.context_length
    return Known(known, known)


def autoregressive_text(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """The last `b - s` states of the target are unknown, as the paper's Sec. 4.1 is worded.

    It equals `autoregressive` for `s = b/2`, the only strides with which the paper forecasts.
    """
    del key
    if not 1 <= spec.stride < spec.block_size:
        raise UserError(
            f"the mask autoregressive-text leaves the last block_size - stride states unknown and "
            f"needs 1 <= stride < block_size; got block_size={spec.block_size}, "
            f"stride={spec.stride}. Use the mask autoregressive."
        )
    known = jnp.arange(spec.window_length) < 2 * spec.stride
    return Known(known, known)


def superresolution(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """The middle `s` states (one at least) are unknown, the states on both sides known."""
    del key
    length = spec.window_length
    unknown = min(max(spec.stride, 1), length - 2)
    if unknown < 1 or spec.stride > spec.block_size:
        raise UserError(
            f"superresolution needs a window of at least 3 states (two known ends), all of them "
            f"in a block (stride <= block_size); block_size={spec.block_size}, "
            f"stride={spec.stride} has {length}. Use block_size=2, stride=1."
        )
    start = (length - unknown) // 2
    position = jnp.arange(length)
    known = (position < start) | (position >= start + unknown)
    return Known(known, known)


def random_half(key: Key[Array, ""], spec: BlockSpec) -> Known:
    """A random half of the source block and a random half of the target block are unknown.

    Independently for q and p, so each Hamiltonian's inputs are distributed as in the authors' code.
    States in both blocks count in both: after half of the source is drawn, as many states behind
    it are drawn as the target still needs, which makes the target's half uniform, too. For
    `b = 1`, which has no half, one of the two states is unknown.
    """
    b, length = spec.block_size, spec.window_length
    alone = min(spec.stride, b)  # states that only one of the blocks holds

    def draw(key):
        key_source, key_rest = jr.split(key)
        if b == 1:
            source = jr.bernoulli(key_source, shape=(1,))
            rest = ~source[:alone]
        else:
            source = jr.permutation(key_source, jnp.arange(b) < b // 2)
            rest = jr.permutation(key_rest, jnp.arange(alone) < source[:alone].sum())
        unknown = jnp.zeros(length, bool).at[spec.source].set(source)
        return ~unknown.at[length - alone :].set(rest)

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
    """One of autoregressive, superresolution (where the blocks hold a middle) and random."""
    patterns = [autoregressive, random_half]
    if spec.window_length >= 3 and spec.stride <= spec.block_size:
        patterns.append(superresolution)
    return mixture(*patterns)(key, spec)


_PATTERNS: dict[str, MaskPattern] = {
    "autoregressive": autoregressive,
    "autoregressive-text": autoregressive_text,
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
        raise UserError(
            f"unknown mask pattern {name!r}; expected one of {', '.join(sorted(_PATTERNS))}, or a "
            f"name given to register_mask.{did_you_mean(name, _PATTERNS)}"
        )
    return _PATTERNS[name]


def draw_known(
    key: Key[Array, ""],
    pattern: MaskPattern,
    spec: BlockSpec,
    windows: int,
    *,
    shared: bool = False,
) -> Known:
    """One draw of the pattern for each of `windows` windows, or one that they all share."""

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

    if shared:
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (windows, *x.shape)), draw(key))
    return jax.vmap(draw)(jr.split(key, windows))
