"""The model's window residuals along whole trajectories, linearised, as terms of the smoother.

A window of `L` states ties `L - 1` states to the next one. Groups of `G = L - 1` consecutive states
make the system block tridiagonal: every window lies within two neighbouring groups.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dhn.blocks import StateBlock
from dhn.models.contract import AbstractForecaster, AbstractModel

CHUNK = 512
"""Windows linearised at once, about: their tangents fit the second-level cache of a core."""


class WindowTerms(NamedTuple):
    """Residuals of all windows of `n` trajectories and their derivatives."""

    residual: Float[Array, "n W M"]
    by_state: Float[Array, "n W M L m"]
    by_code: Float[Array, "n W M r"]


def window_length(model: AbstractModel) -> int:
    """States of a window of the finest stage."""
    return min(model.window_shapes, key=lambda shape: shape.spacing).length


def finest_stage(model: AbstractModel) -> int:
    """Number of the stage with the smallest spacing."""
    spacings = [shape.spacing for shape in model.window_shapes]
    return spacings.index(min(spacings))


def residual_size(model: AbstractModel, dim: int) -> int:
    """Numbers in the residual of one window."""
    L = window_length(model)
    window = jax.ShapeDtypeStruct((1, L, dim), jnp.float32)
    code = jax.ShapeDtypeStruct((1, model.latent_size), jnp.float32)
    stage = finest_stage(model)
    found = jax.eval_shape(
        lambda q, p, z: model.stage_residuals(stage, StateBlock(q, p), z), window, window, code
    )
    return found.shape[1]


def residual_deviation(model: AbstractForecaster, noise: float, size: int) -> float:
    """Standard deviation of a window residual, in units of a typical change.

    The residuals of a window with blocks repeat each other. Widening all of them keeps the
    information of one window at that of the states it adds.

    Arguments:
        model: A trained model.
        noise: Root mean square residual of the training set.
        size: Numbers of a state.
    """
    new = size * max(model.step_length, 1)
    return noise * float(np.sqrt(residual_size(model, size // 2) / new))


def linearise_windows(
    model: AbstractModel,
    states: Float[Array, "n T m"],
    code: Float[Array, "n r"],
    mean: Float[Array, " k"],
    basis: Float[Array, "k r"],
    wanted: Bool[Array, " n"] | None = None,
    *,
    rough: bool = False,
) -> WindowTerms:
    """Residuals of every window of every trajectory and their Jacobians.

    Arguments:
        model: Any model of the contract; its finest stage is used.
        states: Scaled states `[q, p]`.
        code: Whitened codes `u`; the model sees `mean + basis @ u`.
        mean, basis: The codebook's mean and principal directions.
        wanted: Trajectories that are looked at; all by default. Others may come back as zeros.
        rough: Derivatives in single precision, which is faster. Gauss-Newton converges to the same
            point, since the residuals themselves are in double precision.

    Returns:
        Residuals in units of a typical change and their derivatives.
    """
    n, T, m = states.shape
    r = code.shape[1]
    L, stage = window_length(model), finest_stage(model)
    W, inputs = T - L + 1, L * m + r
    M = residual_size(model, m // 2)

    def residual(x, model):
        window = x[:, : L * m].reshape(-1, L, m)
        z = mean.astype(x.dtype) + x[:, L * m :] @ basis.T.astype(x.dtype)
        return model.stage_residuals(stage, StateBlock.of(window), z)

    def jacobian(x, model):
        """`(rows, M, inputs)`, by whichever mode needs fewer passes."""
        if inputs >= M:
            value, pull = jax.vjp(lambda x: residual(x, model), x)
            units = jnp.eye(M, dtype=x.dtype)
            rows = jax.vmap(lambda unit: pull(jnp.broadcast_to(unit, value.shape))[0])(units)
            return value, jnp.moveaxis(rows, 0, 1)
        value, push = jax.linearize(lambda x: residual(x, model), x)
        units = jnp.eye(inputs, dtype=x.dtype)
        columns = jax.vmap(lambda unit: push(jnp.broadcast_to(unit, x.shape)))(units)
        return value, jnp.moveaxis(columns, 0, -1)

    single = jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, model)

    def look(x):
        if not rough:
            return jacobian(x, model)
        _, found = jacobian(x.astype(jnp.float32), single)
        return residual(x, model), found.astype(x.dtype)

    def one_chunk(part):
        states, code, wanted = part
        x = jnp.stack([states[:, i : i + W] for i in range(L)], axis=2).reshape(-1, L * m)
        x = jnp.concatenate([x, jnp.repeat(code, W, axis=0)], axis=1)
        none = (jnp.zeros((len(x), M), x.dtype), jnp.zeros((len(x), M, inputs), x.dtype))
        return jax.lax.cond(wanted.any(), look, lambda _: none, x)

    wanted = jnp.ones(n, bool) if wanted is None else wanted
    value, found = in_chunks(one_chunk, (states, code, wanted), max(1, CHUNK // W))
    found = found.reshape(n, W, M, inputs)
    by_state = found[..., : L * m].reshape(n, W, M, L, m)
    return WindowTerms(value.reshape(n, W, M), by_state, found[..., L * m :])


def in_chunks(function, arrays, size: int):
    """`function` on pieces of `size` rows, one after the other; `(pieces, ...)` come back joined.

    Arguments:
        function: Of arrays like `arrays` with `size` rows.
        arrays: A tree of arrays with the same number of rows.
        size: Rows at once.
    """
    count = jax.tree.leaves(arrays)[0].shape[0]
    pieces = -(-count // size)

    def cut(x):
        x = jnp.concatenate([x, jnp.repeat(x[-1:], pieces * size - count, axis=0)])
        return x.reshape(pieces, size, *x.shape[1:])

    found = jax.lax.map(function, jax.tree.map(cut, arrays))
    return jax.tree.map(
        lambda x: x.reshape(pieces * size, -1, *x.shape[2:])[:count] if pieces * size != count
        else x.reshape(-1, *x.shape[2:]), found,
    )  # fmt: skip


def grouped(
    terms: WindowTerms, valid: Bool[Array, "n W"], sigma: Float[Array, " n"]
) -> tuple[Array, Array, Array, Array]:
    """`(A, B, C, e)` of `linear.Terms`: windows in units of `sigma`, tied group to group.

    Arguments:
        terms: Linearised windows.
        valid: Windows that count; the others get weight 0.
        sigma: Standard deviation of a residual of each trajectory.
    """
    n, W, M, L, m = terms.by_state.shape
    G = L - 1
    r = terms.by_code.shape[-1]
    weight = jnp.where(valid, 1.0 / sigma[:, None], 0.0)
    residual = terms.residual * weight[..., None]
    by_state = terms.by_state * weight[..., None, None, None]
    by_code = terms.by_code * weight[..., None, None]
    J = -(-(W + L - 1) // G) - 1  # groups minus one
    pad = J * G - W
    residual, by_state, by_code = (
        jnp.pad(x, [(0, 0), (0, pad)] + [(0, 0)] * (x.ndim - 2))
        for x in (residual, by_state, by_code)
    )
    if G == 1:
        A, B = by_state[:, :, :, 0], by_state[:, :, :, 1]
        e, C = residual, by_code
    else:
        # Window `g` of a group begins at its state `g` and ends in the next group.
        wide = jnp.zeros((n, J, G, M, 2 * G, m), residual.dtype)
        split = by_state.reshape(n, J, G, M, L, m)
        for g in range(G):
            wide = wide.at[:, :, g, :, g : g + L].set(split[:, :, g])
        wide = wide.reshape(n, J, G * M, 2 * G * m)
        A, B = wide[..., : G * m], wide[..., G * m :]
        e, C = residual.reshape(n, J, G * M), by_code.reshape(n, J, G * M, r)
    return tuple(jnp.moveaxis(x, 1, 0) for x in (A, B, C, e))  # pyright: ignore[reportReturnType]
