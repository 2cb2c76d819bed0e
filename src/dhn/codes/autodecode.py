"""Autodecoding: the code of a new trajectory, with the network frozen (paper, Sec. 3.5).

The codes of the training set define which codes are plausible, the training residuals how
exactly a trajectory can be expected to obey the model. Together they make fitting a code a small
nonlinear least-squares problem with a Gaussian prior, which Levenberg-Marquardt solves in a few
iterations for all trajectories side by side.

Codes of systems that differ in one parameter lie along a curve, which one Gaussian describes
badly. So the fit is repeated with the Gaussian of those training codes that fit nearly as well.
"""

import dataclasses
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from dhn.blocks import Codes, StateBlock, complete_windows
from dhn.codes.batches import in_batches
from dhn.codes.least_squares import levenberg_marquardt
from dhn.errors import UserError
from dhn.models.compiling import solving_jit
from dhn.models.contract import HasResiduals, WindowShape, weights_dtype

MAX_DIRECTIONS = 16  # of the codes that a search varies
GLANCES = 4
"""Windows of a trajectory by which the training code is chosen where its search begins."""
MOST_WINDOWS = 64  # of a trajectory without gaps
MOST_CODES = 2048  # training codes that are kept as candidates
NEIGHBOURS = 32
"""Training codes that a local Gaussian is made of; with fewer than twice as many there is none."""
SURPRISING = 4.0
"""Squared distance from the local Gaussian, per direction, above which the Gaussian is widened."""
WIDER = 3.0
"""A local Gaussian is so many times as wide as its codes: new ones may lie beside them."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CodePrior:
    """Gaussian over codes, in as many principal directions of the codebook as matter."""

    mean: np.ndarray
    """(k,)"""
    basis: np.ndarray
    """(k, r): `z = mean + basis @ u` with `u ~ N(0, I)`."""
    codes: np.ndarray
    """(m, r) whitened codes of the training set, or as many of them as are kept."""
    noise: float
    """Root mean square residual of the training set."""

    @classmethod
    def fit(cls, codes: np.ndarray, noise: float) -> "CodePrior":
        """From the training set's codes; directions without variance are left out."""
        codes = np.asarray(codes, np.float64)
        if codes.shape[1] == 0:  # a model without codes
            nothing = np.zeros((1, 1))
            return cls(codes.mean(0), np.zeros((0, 1)), nothing, float(noise))
        mean = codes.mean(0)
        _, sizes, directions = np.linalg.svd(codes - mean, full_matrices=False)
        deviations = sizes / np.sqrt(max(len(codes) - 1, 1))
        keep = (deviations > 1e-4 * max(deviations.max(initial=0.0), 1e-30)) & (deviations > 1e-9)
        r = max(1, min(int(keep.sum()), MAX_DIRECTIONS))
        if not keep.any():  # a single trajectory, or codes that never moved
            deviations = np.zeros_like(deviations)
        basis = directions[:r].T * deviations[:r]
        spread = np.where(deviations[:r] > 0, deviations[:r], 1.0)
        whitened = (codes - mean) @ directions[:r].T / spread
        order = np.argsort(whitened[:, 0])
        # A power of two, so that another number of trajectories seldom means another program.
        number = 1 << (min(len(codes), MOST_CODES).bit_length() - 1)
        kept = order[np.linspace(0, len(order) - 1, number).astype(int)]
        return cls(mean, basis, whitened[kept], float(noise))


class CodeFit(NamedTuple):
    """Codes of new trajectories and how well the model then explains them."""

    codes: Codes
    loss: Float[np.ndarray, " n"]
    """Mean squared residual over the observed windows; compare with `prior.noise**2`."""
    root: Float[np.ndarray, "n k r"]
    """Square root of the code's posterior covariance (Laplace): `z + root @ N(0, I)` samples it."""


def autodecode(
    model: HasResiduals,
    states: StateBlock,
    known: Bool[np.ndarray, "n T"],
    prior: CodePrior,
    *,
    noise: float | None = None,
    local: bool = True,
    max_iterations: int = 30,
    most_windows: int | None = None,
    batch_size: int = 256,
) -> CodeFit:
    """Fit one code to each trajectory's observed states; `noise` overrides the prior's.

    The search begins at the training code that fits best; unless `local`, the Gaussian of all
    training codes is the final prior. Trajectories are padded to whole batches, so their number
    does not recompile.
    """
    shapes = model.window_shapes
    length = known.shape[1]
    usable = [shape for shape in shapes if shape.reach < length]
    windows = sum(complete_windows(np.asarray(known), *shape).sum(1) for shape in usable)
    if not usable or not np.all(windows > 0):
        short = min(shape.reach + 1 for shape in shapes)
        raise UserError(
            f"fitting a code needs at least {short} consecutive observed states in every "
            f"trajectory; got {length} states"
            + ("." if not usable else f" with gaps in trajectory {int(np.argmin(windows))}.")
            + " Observe more states or use a model with a smaller block."
        )
    dtype = weights_dtype(model)
    arrays = (
        np.asarray(prior.mean, dtype),
        np.asarray(prior.basis, dtype),
        np.asarray(prior.codes, dtype),
        np.asarray(max(noise or prior.noise, 1e-12), dtype),
    )
    arrays = jax.device_put(arrays)

    # Long trajectories without gaps need fewer windows.
    most = MOST_WINDOWS if np.all(known) and most_windows is None else None

    # The second fit begins near its end.
    limits = (max_iterations, max_iterations // 2)
    if not local or len(prior.codes) < 2 * NEIGHBOURS:
        limits = limits[:1]

    def solve(part):
        return _fit_codes(model, *part, arrays, most, limits, most_windows)

    parts = (jax.tree.map(lambda x: np.asarray(x, dtype), states), np.asarray(known))
    return CodeFit(*in_batches(solve, parts, batch_size))


def _window_starts(length: int, shape: WindowShape, most: int | None) -> np.ndarray:
    """Where windows start: everywhere, or at so many places, evenly spread."""
    steps = length - shape.reach
    if most is None or steps <= most:
        return np.arange(steps)
    return np.unique(np.linspace(0, steps - 1, most).astype(int))


def _all_windows(states: StateBlock, shape: WindowShape, starts: np.ndarray) -> StateBlock:
    """The windows of every trajectory at these starts, `(n * w, length, d)`."""
    n, _, d = states.q.shape
    time = starts[:, None] + shape.spacing * np.arange(shape.length)
    return jax.tree.map(lambda x: x[:, time].reshape(n * len(starts), shape.length, d), states)


@solving_jit
def _fit_codes(model, states, known, prior, most, limits, few_windows):
    mean, basis, others, noise = prior
    n, r = states.q.shape[0], basis.shape[1]
    shapes = model.window_shapes
    live = [i for i, shape in enumerate(shapes) if shape.reach < states.q.shape[1]]
    starts = {i: _window_starts(states.q.shape[1], shapes[i], most) for i in live}
    # Residuals look at clean windows, so what unknown states hold must not reach them as NaN.
    states = StateBlock(jnp.nan_to_num(states.q), jnp.nan_to_num(states.p))
    windows = {i: _all_windows(states, shapes[i], starts[i]) for i in live}
    weights = {i: complete_windows(known, *shapes[i])[:, starts[i]] for i in live}
    if few_windows is not None:
        for i in live:
            windows[i], weights[i] = _glances(windows[i], weights[i], few_windows)

    def residuals(u, windows=windows, weights=weights):
        z = mean + u @ basis.T
        rows = []
        for i in live:
            steps = weights[i].shape[1]
            codes = jnp.repeat(z, steps, axis=0)
            predicted = model.stage_residuals(i, windows[i], codes).reshape(n, steps, -1)
            rows.append((predicted * weights[i][..., None]).reshape(n, -1))
        return jnp.concatenate(rows, axis=1) / noise

    few, weight = dict(windows), dict(weights)
    for i in live:
        few[i], weight[i] = _glances(windows[i], weights[i], GLANCES)

    def score(u):
        u = jnp.broadcast_to(u, (n, r))
        return (residuals(u, few, weight) ** 2).sum(1) + (u**2).sum(1)

    # The landscape over codes has many valleys, the narrower the better the model has been
    # trained; the right one holds training codes, but not the best of a few of them.
    start = others[jnp.argmin(jax.lax.map(score, others), axis=0)]

    places = sum(weights[i].shape[1] for i in live)
    per_window = jax.eval_shape(residuals, start).shape[1] / places
    counted = sum(weights[i].sum(1) for i in live) * per_window

    def fit_again(carry, max_iterations):
        u, _, centre, precision = carry

        def with_prior(u):
            prior = jnp.einsum("nab,nb->na", precision, u - centre)
            return jnp.concatenate([residuals(u), prior], axis=1)

        u, objective, hessian = levenberg_marquardt(with_prior, u, max_iterations)
        # Some trajectories obey the model less well than the training set on average.
        scatter = jnp.maximum(objective / counted, 1.0)[:, None, None]
        return (u, hessian, *local_gaussian(u, hessian / scatter, others)), None

    one = jnp.broadcast_to(jnp.eye(r, dtype=start.dtype), (n, r, r))
    first = (start, one, jnp.zeros_like(start), one)
    # In a loop, so that the residuals stand in the program once. A third fit changed nothing.
    (u, hessian, *_), _ = jax.lax.scan(fit_again, first, jnp.array(limits))
    root = jnp.einsum("ka,nba->nkb", basis, inverse_root(hessian))
    loss = (residuals(u) ** 2).sum(1) * noise**2 / counted
    return mean + u @ basis.T, loss, root


def _glances(windows: StateBlock, complete, count: int):
    """A few complete windows of each trajectory, evenly spread, and whether they are complete."""
    n, places = complete.shape
    order = jnp.argsort(~complete, axis=1, stable=True)  # complete ones first
    last = jnp.maximum(complete.sum(1, keepdims=True) - 1, 0)
    count = min(count, places)
    chosen = jnp.take_along_axis(order, last * np.arange(count) // max(count - 1, 1), axis=1)
    rows = (places * jnp.arange(n)[:, None] + chosen).reshape(-1)
    return jax.tree.map(lambda x: x[rows], windows), jnp.take_along_axis(complete, chosen, axis=1)


def local_gaussian(u, hessian, others):
    """Centre and square root of the precision of the training codes that are nearest to each code.

    Codes are near if the observed states barely distinguish them, so distance is measured by the
    Hessian of the fit that found `u`. If `u` lies farther from the codes than they and its own
    uncertainty explain, the trajectory is unlike any in training, and the Gaussian is stretched
    towards it. Where round-off leaves no Gaussian, the global one stays.
    """
    count, r = min(NEIGHBOURS, len(others)), u.shape[1]
    eye = jnp.eye(r, dtype=u.dtype)
    apart = jnp.einsum("nba,nmb->nma", jnp.linalg.cholesky(hessian), others - u[:, None])
    _, nearest = jax.lax.top_k(-(apart**2).sum(2), count)
    neighbours = others[nearest]
    centre = neighbours.mean(1)
    shifts = WIDER * (neighbours - centre[:, None])
    covariance = jnp.einsum("nka,nkb->nab", shifts, shifts) / count + 1e-8 * eye
    away = (u - centre)[..., None]
    expected = covariance + jnp.linalg.inv(hessian)
    excess = (away * jnp.linalg.solve(expected, away)).sum((1, 2)) / r
    surprise = jnp.maximum(1 - SURPRISING / jnp.maximum(excess, 1e-6), 0.0)[:, None, None]
    precision = inverse_root(covariance + surprise * away * jnp.swapaxes(away, 1, 2))
    sound = jnp.isfinite(precision).all((1, 2)) & jnp.isfinite(centre).all(1)
    centre = jnp.where(sound[:, None], centre, 0.0)
    return centre, jnp.where(sound[:, None, None], precision, eye)


def inverse_root(matrices):
    """`R` with `RᵀR` the inverse of each matrix; finite even where round-off leaves none."""
    size = jnp.sqrt(jnp.maximum(jnp.einsum("naa->na", matrices), 1e-30))
    values, vectors = jnp.linalg.eigh(matrices / (size[:, :, None] * size[:, None, :]))
    values = jnp.maximum(values, jnp.finfo(matrices.dtype).eps * matrices.shape[-1])
    return jnp.swapaxes(vectors, 1, 2) / jnp.sqrt(values)[:, :, None] / size[:, None, :]
