"""Shooting: start state and code fitted together, so that the rolled-out path meets the data.

Codes alone are fitted on one-step residuals, which measurement noise swamps. Here the model's own
path over the whole observed stretch is laid through the measurements: what noise there is averages
out, and the end of that path, not the last noisy measurement, is where a forecast starts.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from dhn.blocks import StateBlock
from dhn.codes.autodecode import CodeFit, CodePrior, inverse_root
from dhn.codes.batches import in_batches
from dhn.codes.least_squares import levenberg_marquardt
from dhn.errors import UserError
from dhn.models.contract import AbstractForecaster, weights_dtype
from dhn.models.path import path_from

SURER = 3.0
"""Codes of noisy states lie so many times nearer to the right ones than `autodecode` says, whose
Gaussians are made wide on purpose (docs/experiments.md)."""


class Shot(NamedTuple):
    """The model's path through the observed states, and what it was made from."""

    path: StateBlock
    """(n, T, d) scaled states: the observed stretch, denoised."""
    codes: Float[np.ndarray, "n k"]
    loss: Float[np.ndarray, " n"]
    """Mean squared distance to the measurements, in units of the noise: about 1 if all is well."""
    code_root: Float[np.ndarray, "n k r"]
    end_root: Float[np.ndarray, "n s r"]
    """Square root of the covariance of the last context's states `[q, p]`, matching the code's."""


def shoot(
    model: AbstractForecaster,
    states: StateBlock,
    known: Bool[np.ndarray, "n T"],
    codes: CodeFit,
    prior: CodePrior,
    noise: Float[np.ndarray, "2 d"],
    *,
    trusted: bool = True,
    max_iterations: int = 20,
    batch_size: int = 256,
) -> Shot:
    """Fit start states and codes to the known states, whose noise (scaled) is given.

    Begins from the codes of `autodecode` and the first measured states; where the first states are
    unknown, from the first one that is known. If `trusted`, a code may leave what `autodecode`
    found about as far as that is uncertain, else as far as training codes lie apart. Codes that
    were learned step by step should be fitted so, too: bent to make a whole path meet the data,
    they take the blame for what the model has wrong.
    """
    length = model.context_length
    if states.q.shape[1] <= length:
        raise UserError(
            f"shooting needs more than the {length} observed states that one step starts from; "
            f"got {states.q.shape[1]}."
        )
    dtype = weights_dtype(model)
    fixed = tuple(
        jnp.asarray(x, dtype)
        for x in (prior.mean, prior.basis, np.maximum(noise, 1e-6), np.linalg.pinv(prior.basis))
    )

    def run(part):
        states, known, codes, root = part
        return _shoot(model, states, known, codes, root, fixed, trusted, max_iterations)

    nearest = np.where(known, np.arange(known.shape[1]), np.argmax(known, axis=1)[:, None])
    states = jax.tree.map(
        lambda x: np.take_along_axis(np.asarray(x, dtype), nearest[..., None], axis=1), states
    )
    parts = (states, known, codes.codes.astype(dtype), codes.root.astype(dtype))
    return Shot(*in_batches(run, parts, batch_size))


@eqx.filter_jit
def _shoot(model, states: StateBlock, known, codes, root, fixed, trusted, max_iterations):
    mean, basis, noise, whiten = fixed
    n, T, d = states.q.shape
    length, r = model.context_length, basis.shape[1]
    size = 2 * length * d
    observed = jax.tree.map(jnp.nan_to_num, states)
    scale = jnp.concatenate([jnp.tile(noise[0], length), jnp.tile(noise[1], length)])
    first = jnp.concatenate(
        [observed.q[:, :length].reshape(n, -1), observed.p[:, :length].reshape(n, -1)], axis=1
    )

    begun = (codes - mean) @ whiten.T
    if trusted:
        root = whiten @ root / SURER
        centre, precision = begun, inverse_root(root @ jnp.swapaxes(root, 1, 2))
    else:
        centre, precision = jnp.zeros_like(begun), jnp.broadcast_to(jnp.eye(r), (n, r, r))

    def roll(x):
        """Unknowns (start in units of the noise about its measurement, whitened code) to a path."""
        begin = first + x[:, :size] * scale
        z = mean + x[:, size:] @ basis.T
        context = StateBlock(
            begin[:, : size // 2].reshape(n, length, d), begin[:, size // 2 :].reshape(n, length, d)
        )

        return path_from(model, context, z, T), z

    def residuals(x):
        path, _ = roll(x)
        misses = [
            jnp.where(known[..., None], (a - b) / s, 0.0).reshape(n, -1)
            for a, b, s in zip(path, observed, noise, strict=True)
        ]
        away = jnp.einsum("nab,nb->na", precision, x[:, size:] - centre)
        return jnp.concatenate([*misses, away], axis=1)

    start = jnp.concatenate([jnp.zeros((n, size), first.dtype), begun], axis=1)
    x, _, hessian = levenberg_marquardt(residuals, start, max_iterations)
    path, z = roll(x)
    root = jnp.linalg.cholesky(jnp.linalg.inv(hessian + 1e-6 * jnp.eye(size + r)))

    def end(x):
        last = roll(x)[0].at(slice(-length, None))
        return jnp.concatenate([last.q.reshape(n, -1), last.p.reshape(n, -1)], axis=1)

    columns = jax.lax.map(lambda c: jax.jvp(end, (x,), (c,))[1], jnp.moveaxis(root, 2, 0))
    misses = (residuals(x)[:, :-r] ** 2).sum(1) / (known.sum(1) * 2 * d)
    code_root = jnp.einsum("ka,nab->nkb", basis, root[:, size:])
    return path, z, misses, code_root, jnp.moveaxis(columns, 0, 2)
