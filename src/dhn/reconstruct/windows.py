"""The model's window residuals along whole trajectories, linearised, as terms of the smoother.

A window of `L` states ties `L - 1` states to the next one. Groups of `G = L - 1` consecutive states
make the system block tridiagonal: every window lies within two neighbouring groups.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dhn.blocks import StateBlock
from dhn.models.contract import AbstractModel

CHUNK = 512
"""Windows linearised at once: their tangents fit the second-level cache of a core."""


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


def linearise_windows(
    model: AbstractModel,
    states: Float[Array, "n T m"],
    code: Float[Array, "n r"],
    mean: Float[Array, " k"],
    basis: Float[Array, "k r"],
    *,
    rough: bool = False,
) -> WindowTerms:
    """Residuals of every window of every trajectory and their Jacobians.

    Arguments:
        model: Any model of the contract; its finest stage is used.
        states: Scaled states `[q, p]`.
        code: Whitened codes `u`; the model sees `mean + basis @ u`.
        mean, basis: The codebook's mean and principal directions.
        rough: Derivatives in single precision, which is twice as fast. Gauss-Newton converges to
            the same point, since the residuals themselves are in double precision.

    Returns:
        Residuals in units of a typical change and their derivatives.
    """
    n, T, m = states.shape
    r, d = code.shape[1], m // 2
    L, stage = window_length(model), finest_stage(model)
    W = T - L + 1
    inputs = jnp.stack([states[:, i : i + W] for i in range(L)], axis=2).reshape(n * W, L * m)
    inputs = jnp.concatenate([inputs, jnp.repeat(code, W, axis=0)], axis=1)

    single = jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, model)

    def residual(x, model):
        window = x[:, : L * m].reshape(-1, L, m)
        z = mean.astype(x.dtype) + x[:, L * m :] @ basis.T.astype(x.dtype)
        return model.stage_residuals(stage, StateBlock(window[..., :d], window[..., d:]), z)

    def one_chunk(x):
        chosen, at = (single, x.astype(jnp.float32)) if rough else (model, x)
        value, push = jax.linearize(lambda x: residual(x, chosen), at)
        units = jnp.eye(L * m + r, dtype=at.dtype)
        columns = jax.vmap(lambda unit: push(jnp.broadcast_to(unit, at.shape)))(units)
        value = residual(x, model) if rough else value
        return value, jnp.moveaxis(columns, 0, -1).astype(x.dtype)

    value, jacobian = in_chunks(one_chunk, inputs)
    M = value.shape[1]
    return WindowTerms(
        value.reshape(n, W, M),
        jacobian[..., : L * m].reshape(n, W, M, L, m),
        jacobian[..., L * m :].reshape(n, W, M, r),
    )


def in_chunks(function, rows: Float[Array, "N f"]):
    """`function` on pieces of `CHUNK` rows, one after the other."""
    count = rows.shape[0]
    if count <= CHUNK:
        return function(rows)
    pieces = -(-count // CHUNK)
    padded = jnp.concatenate([rows, jnp.repeat(rows[:1], pieces * CHUNK - count, axis=0)])
    found = jax.lax.map(function, padded.reshape(pieces, CHUNK, -1))
    return jax.tree.map(lambda x: x.reshape(pieces * CHUNK, *x.shape[2:])[:count], found)


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
