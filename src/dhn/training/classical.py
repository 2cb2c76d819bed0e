"""The classical part of a model fitted first: a quadratic form and a damping rate, along paths.

So few unknowns need no gradient descent: Levenberg-Marquardt takes the one-step equations, in which
they are linear, then paths of growing length, each beginning where the one before ended.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dhn.blocks import StateBlock, cut_windows
from dhn.codes.least_squares import levenberg_marquardt
from dhn.errors import UserError
from dhn.models.damping import LearnedDamping
from dhn.models.dhn import DHNModel
from dhn.models.networks.form import QuadraticForm
from dhn.models.networks.mlp import MLPNetwork
from dhn.models.path import path_residuals
from dhn.models.stage import LinkedStage, stage_residuals
from dhn.training.step import TrainingData

STATES = 6000
"""States of all paths together; more change little and cost time."""
GROWTH = (0.3, 1.0)
"""Lengths of the paths, as shares of the longest."""
ITERATIONS = 30
NEEDS = (
    "paths need linked=true, block_size=1, stride=1 and an MLP with quadratic=true; "
    "use --preset measured, or path=0."
)
BOOTSTRAP = 0xB007
"""Keeps these random numbers apart from other uses of the same seed."""
LOST = 1e3
"""A path that is no number is this many noise levels off."""


def fit_classical(
    model: DHNModel, data: TrainingData, noise: Float[np.ndarray, "2 d"], seed: int = 0
) -> DHNModel:
    """The same model with form, damping and path noise fitted; the network stays as it is.

    `noise` (scaled) weighs the coordinates against each other. Codes are taken to be zero. Seed 0
    sees evenly spread paths; every other one paths drawn at random, with repetition, so that an
    ensemble shows what the data leave open.
    """
    model = eqx.tree_at(lambda m: m.path_noise, model, jnp.asarray(noise, data.states.q.dtype))
    y = _unknowns(model)
    steps, _ = _windows(data, 0, model.window_shapes[0].length, seed)
    y = _fit_steps(model, steps, y)
    paths, _ = _windows(data, -1, model.config.path, seed)
    for share in GROWTH:
        y = _fit_paths(model, paths, y, jnp.asarray(round(share * model.config.path)))
    model = _with(model, y)
    return eqx.tree_at(lambda m: m.path_noise, model, path_noise(model, data, None))


def path_noise(
    model: DHNModel, data: TrainingData, codes: Float[Array, "N k"] | None
) -> Float[Array, "2 d"]:
    """Root mean square distance of paths to the training data, coordinate by coordinate."""
    windows, rows = _windows(data, -1, model.config.path)
    z = _no_codes(model, windows) if codes is None else codes[rows]
    return jnp.maximum(_rms(model, windows, z), 1e-6)


@eqx.filter_jit
def _rms(model: DHNModel, windows: StateBlock, z):
    assert model.path_noise is not None
    misses = path_residuals(_stage(model), windows, z, model.path_noise) * model.path_noise
    return jnp.sqrt(jnp.mean(misses**2, axis=(0, 1)))


@eqx.filter_jit
def _fit_steps(model: DHNModel, windows: StateBlock, y):
    z = _no_codes(model, windows)
    return _fit(lambda trial: stage_residuals(trial.finest, windows, z), model, y)


@eqx.filter_jit
def _fit_paths(model: DHNModel, windows: StateBlock, y, states):
    """On the first `states` states of every window, a traced number: all lengths are one program.

    The others have infinite noise.
    """
    assert model.path_noise is not None
    z = _no_codes(model, windows)
    late = jnp.arange(windows.q.shape[1]) >= states
    noise = jnp.where(late[:, None, None], jnp.inf, model.path_noise)
    return _fit(lambda trial: path_residuals(_stage(trial), windows, z, noise), model, y)


def _fit(residuals, model: DHNModel, y):
    def rows(y):
        misses = residuals(_with(model, y[0]))
        misses = jnp.nan_to_num(misses, nan=LOST, posinf=LOST, neginf=-LOST)
        return misses.reshape(1, -1) / np.sqrt(misses.size)

    return levenberg_marquardt(rows, y[None], ITERATIONS).x[0]


def _windows(
    data: TrainingData, stage: int, states: int, seed: int = 0
) -> tuple[StateBlock, Array]:
    """The first `states` states of some windows, and the trajectories they are from."""
    count = int(data.counts[stage])
    number = min(count, max(1, STATES // states))
    chosen = np.linspace(0, count - 1, number).round().astype(int)
    if seed:
        chosen = np.random.default_rng([BOOTSTRAP, seed % 2**63]).integers(0, count, number)
    picks = data.starts[stage][chosen]
    return cut_windows(data.states, picks[:, 0], picks[:, 1], states, 1), picks[:, 0]


def _no_codes(model: DHNModel, windows: StateBlock) -> Float[Array, "n k"]:
    return jnp.zeros((windows.q.shape[0], model.latent_size), windows.q.dtype)


def _stage(model: DHNModel) -> LinkedStage:
    stage = model.finest
    if not isinstance(stage, LinkedStage) or stage.spec.window_length != 2 or stage.spacing != 1:
        raise UserError(NEEDS)
    return stage


def _form(model: DHNModel) -> QuadraticForm:
    network = _stage(model).right.network
    if not isinstance(network, MLPNetwork) or network.form is None or not model.config.path:
        raise UserError(NEEDS)
    return network.form


def _unknowns(model: DHNModel) -> Float[Array, " r"]:
    form, damping = _form(model), _stage(model).damping
    rows, columns = np.triu_indices(len(form.slope))
    base = [damping.base[None]] if isinstance(damping, LearnedDamping) else []
    return jnp.concatenate([form.matrix[rows, columns], form.slope, *base])


def _with(model: DHNModel, y: Float[Array, " r"]) -> DHNModel:
    """The model with these numbers in form and damping; the matrix is symmetric."""
    size = len(_form(model).slope)
    rows, columns = np.triu_indices(size)
    upper = jnp.zeros((size, size), y.dtype).at[rows, columns].set(y[: len(rows)])
    matrix, slope = (upper + upper.T) / 2, y[len(rows) : len(rows) + size]
    new = eqx.tree_at(lambda m: (_form(m).matrix, _form(m).slope), model, (matrix, slope))
    damping = _stage(model).damping
    if isinstance(damping, LearnedDamping):
        damping = eqx.tree_at(lambda d: d.base, damping, y[-1])
        new = eqx.tree_at(lambda m: _stage(m).damping, new, damping)
    return new
