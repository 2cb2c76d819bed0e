"""Training steps: many of them inside one compiled loop, every batch drawn on the device."""

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Key, PyTree

from dhn.blocks import Codes, StateBlock, cut_windows
from dhn.codes.codebook import CodebookState, update_all, update_rows
from dhn.models.contract import AbstractModel
from dhn.training.config import TrainingConfig
from dhn.training.devices import divided, whole
from dhn.training.schedule import learning_rate

if TYPE_CHECKING:
    import optax

NARROW = 16
"""Matrices narrower than this lead in or out: their directions differ in kind, so Adam has them."""
INPUTS = ("embed", "position", "readout")
"""So do the names of matrices that lead in or out however wide they are."""
EPOCHS = 0x7FFFFFFF  # see CODES
CODES = 0x7FFFFFFE
"""Keep the random numbers of epochs and of the first codes apart from those of the steps."""
FARTHEST_CHUNK = 4
"""A batch is cut into chunks of the wanted size within this factor, or not at all."""


@final
class WholeTrajectories(NamedTuple):
    """Where the windows of each trajectory stand in `TrainingData.starts`, for each stage."""

    eligible: Int[Array, " N"]
    """Trajectories with a window of every stage, then padding."""
    count: Int[Array, ""]
    """How many of them are real."""
    first: tuple[Int[Array, " N"], ...]
    number: tuple[Int[Array, " N"], ...]
    most: tuple[int, ...]
    """The largest number; a trajectory with fewer windows shows some of them twice."""


@final
class TrainingData(NamedTuple):
    """Scaled states and, for each stage, where windows may start."""

    states: StateBlock
    starts: tuple[Int[Array, "w 2"], ...]
    counts: tuple[Int[Array, ""], ...]
    """How many rows of `starts` are real; the rest is padding that keeps shapes from changing."""
    code_rows: Int[Array, " N"] | None = None
    """The codebook row of each trajectory, its own by default: segments of one run share theirs."""
    whole: WholeTrajectories | None = None
    """For batches of whole trajectories."""


@final
class TrainState(eqx.Module):
    """Everything that a step changes; saving it and the seed is enough to resume bit for bit."""

    weights: PyTree
    """The trainable arrays of the model."""
    optimiser: PyTree
    codebook: CodebookState
    average: PyTree | None
    """Exponential moving average of the weights."""
    step: Int[Array, ""]


@final
class StepLog(NamedTuple):
    """Sums over the steps of one call, and whether all numbers were finite."""

    losses: dict[str, Float[Array, ""]]
    gradient_norm: Float[Array, ""]
    finite: Array


def make_optimiser(config: TrainingConfig) -> "optax.GradientTransformation":
    import optax  # slow to import; only training needs it

    kinds = {"adam": optax.scale_by_adam, "muon": _muon}
    parts = [optax.clip_by_global_norm(config.clip)] if config.clip else []
    parts += [optax.add_decayed_weights(config.l2)] if config.l2 else []
    return optax.chain(*parts, kinds[config.optimiser]())


def _muon() -> "optax.GradientTransformation":
    """Muon for hidden matrices, also stacked ones, as large as Adam's steps; Adam for the rest."""
    import optax

    def matrices(weights: PyTree) -> PyTree:
        def axes(path, x):
            leads = str(path[-1]).strip(".[]'").startswith(INPUTS)
            if leads or x.ndim < 2 or min(x.shape[-2:]) < NARROW:
                return None
            return optax.contrib.MuonDimensionNumbers(x.ndim - 2, x.ndim - 1)

        return jax.tree_util.tree_map_with_path(axes, weights)

    # A rate of -1, for optax turns the sign and `one_step` does so, too.
    return optax.contrib.muon(-1.0, consistent_rms=0.2, muon_weight_dimension_numbers=matrices)


def initial_state(
    model: AbstractModel, trajectories: int, config: TrainingConfig, codes: Codes | None = None
) -> TrainState:
    """The state before the first step; `codes` replaces the first rows of the codebook."""
    dtype = jnp.dtype(config.precision)
    weights = eqx.filter(model, eqx.is_inexact_array)
    weights = jax.tree.map(lambda x: jax.device_put(np.array(x, dtype)), weights)
    average = jax.tree.map(jnp.copy, weights) if config.average > 0 else None
    codebook = CodebookState.start(
        jr.fold_in(jr.key(config.seed % 2**32), CODES),
        trajectories,
        model.latent_size,
        config.code_start,
        dtype,
    )
    if codes is not None:
        rows = codebook.rows.at[: len(codes)].set(jnp.asarray(codes, dtype))
        codebook = eqx.tree_at(lambda book: book.rows, codebook, rows)
    return TrainState(
        weights=weights,
        optimiser=make_optimiser(config).init(weights),
        codebook=codebook,
        average=average,
        step=jnp.zeros((), jnp.int32),
    )


def default_chunk_size(model: AbstractModel) -> int:
    """On a CPU few enough windows at once to stay in cache; on an accelerator all of them.

    Measured (docs/benchmarks.md): 128 windows, or 320 rows of tokens, rounded down to a power of
    two so that it divides the usual batches.
    """
    if jax.default_backend() != "cpu":
        return 0
    if not model.tokens:
        return 128
    return 1 << (max(1, 320 // model.tokens).bit_length() - 1)


def count_pieces(sizes: Sequence[int], chunk_size: int) -> int:
    """Into how many equal pieces batches of these sizes are cut, near `chunk_size` windows each.

    **Arguments**: windows of each stage; 0 as the size does not cut.

    **Returns**: a common divisor of the sizes.
    """
    if chunk_size == 0 or max(sizes) <= chunk_size:
        return 1
    common, wanted = math.gcd(*sizes), max(sizes) / chunk_size
    divisors = [i for i in range(1, common + 1) if common % i == 0]
    best = min(divisors, key=lambda pieces: abs(math.log(pieces / wanted)))
    return best if 1 / FARTHEST_CHUNK < best / wanted < FARTHEST_CHUNK else 1


def loss_and_gradient(
    model: AbstractModel,
    windows: tuple[StateBlock, ...],
    codes: tuple[Float[Array, "_ k"], ...],
    key: Key[Array, ""],
    chunk_size: int,
    mesh: Mesh | None = None,
) -> tuple[dict[str, Array], tuple[PyTree, tuple[Array, ...]]]:
    """Mean losses over the batch and gradients by weights and codes, chunk by chunk.

    **Arguments**: for each stage windows (n, L, d) and codes (n, k), as many as it likes; with a
    mesh every chunk is divided among its devices.

    **Returns**: the terms of the loss, and gradients by weights and by each stage's codes.
    """
    weights, static = eqx.partition(model, eqx.is_inexact_array)

    def loss(weights, codes, windows, part):
        terms = eqx.combine(weights, static).losses(windows, codes, key, part)
        return sum(terms.values()), terms

    differentiate = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    pieces = count_pieces([window.q.shape[0] for window in windows], chunk_size)
    if pieces == 1:
        codes, windows = divided(mesh, (codes, windows))
        (_, terms), gradients = differentiate(weights, codes, windows, 0)
        return terms, gradients

    def split(x):
        return x.reshape(pieces, -1, *x.shape[1:])

    def contribution(windows, codes, part):
        (_, terms), (by_weight, by_code) = differentiate(weights, codes, windows, part)
        return (terms, by_weight), by_code

    def body(total, piece):
        part, by_code = contribution(*piece)
        return jax.tree.map(jnp.add, total, part), by_code

    cut = divided(mesh, jax.tree.map(split, (windows, codes)), 1)
    chunks = (*cut, jnp.arange(pieces))
    first = jax.tree.map(lambda x: x[0], chunks)
    zero = jax.tree.map(
        lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(contribution, *first)[0]
    )
    total, by_code = jax.lax.scan(body, zero, chunks)
    terms, by_weight = jax.tree.map(lambda x: x / pieces, total)
    by_code = jax.tree.map(lambda g: g.reshape(-1, g.shape[-1]) / pieces, by_code)
    return terms, (by_weight, by_code)


def draw_windows(
    key: Key[Array, ""], data: TrainingData, batch_size: int
) -> tuple[Int[Array, "n 2"], ...]:
    """For each stage `batch_size` windows at random: trajectory and start."""
    keys = jr.split(key, len(data.starts))
    return tuple(
        starts[jr.randint(key, (batch_size,), 0, count)]
        for starts, count, key in zip(data.starts, data.counts, keys, strict=True)
    )


def draw_trajectories(
    key: Key[Array, ""], data: TrainingData, batch_size: int, step: Int[Array, ""]
) -> tuple[Int[Array, "n 2"], ...]:
    """For each stage every window of the step's trajectories: trajectory and start.

    Every trajectory comes once before any comes again, in an order that `key` draws anew each
    time; a batch may hold the end of one round and the beginning of the next.
    """
    whole = data.whole
    assert whole is not None
    places = jnp.arange(whole.eligible.shape[0])

    def order(epoch):
        drawn = jr.uniform(jr.fold_in(key, epoch), places.shape)
        return jnp.argsort(jnp.where(places < whole.count, drawn, jnp.inf))

    epoch = step * batch_size // whole.count
    place = step * batch_size - epoch * whole.count + jnp.arange(batch_size)
    now, then = order(epoch), order(epoch + 1)
    place = jnp.where(place < whole.count, now[place], then[(place - whole.count) % whole.count])
    row = whole.eligible[place]
    picks = []
    for starts, first, number, most in zip(
        data.starts, whole.first, whole.number, whole.most, strict=True
    ):
        window = jnp.arange(most) % number[row][:, None]
        picks.append(starts[first[row][:, None] + window].reshape(-1, 2))
    return tuple(picks)


def windows_per_step(data: TrainingData, config: TrainingConfig) -> tuple[int, ...]:
    """Windows of each stage that one step sees."""
    if config.batch_of == "windows" or data.whole is None:
        return (config.batch_size,) * len(data.starts)
    return tuple(config.batch_size * most for most in data.whole.most)


@final
class Run(NamedTuple):
    """What stays the same throughout a training."""

    static: AbstractModel
    """The model without its trainable arrays."""
    data: TrainingData
    config: TrainingConfig
    seed: Int[Array, ""]
    total_steps: Int[Array, ""]
    """Length of the schedule."""
    mesh: Mesh | None = None
    """The devices that share the work, if there are several."""


@eqx.filter_jit(donate="all-except-first")
def run_steps(run: Run, state: TrainState, steps: Int[Array, ""]) -> tuple[TrainState, StepLog]:
    """Take `steps` optimiser steps (a traced number: another one does not recompile).

    Every random draw follows from the seed and the step's number alone, so a resumed run draws
    what the uninterrupted one would have. The loop ends early at a number that is not finite.
    """
    static, data, config = run.static, run.data, run.config
    optimiser = make_optimiser(config)
    shapes = static.training_shapes

    def draw(key, step):
        if config.batch_of == "trajectories":
            epochs = jr.fold_in(jr.key(run.seed), EPOCHS)
            picks = draw_trajectories(epochs, data, config.batch_size, step)
        else:
            picks = draw_windows(key, data, config.batch_size)
        windows = tuple(
            cut_windows(data.states, pick[:, 0], pick[:, 1], *shape)
            for pick, shape in zip(picks, shapes, strict=True)
        )
        rows = [pick[:, 0] for pick in picks]
        return windows, tuple(x if data.code_rows is None else data.code_rows[x] for x in rows)

    def one_step(carry):
        state, log, taken = carry
        key_draw, key_loss = jr.split(jr.fold_in(jr.key(run.seed), state.step))
        windows, rows = draw(key_draw, state.step)
        codes = tuple(state.codebook.rows[row] for row in rows)
        model = eqx.combine(state.weights, static)
        chunk = config.chunk_size or default_chunk_size(model)
        terms, gradients = loss_and_gradient(model, windows, codes, key_loss, chunk, run.mesh)
        by_weight, by_code = whole(run.mesh, gradients)
        norm = jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(by_weight)))
        finite = jnp.isfinite(sum(terms.values())) & jnp.isfinite(norm)

        rate = learning_rate(config, state.step, run.total_steps)
        updates, optimiser_state = optimiser.update(by_weight, state.optimiser, state.weights)
        weights = jax.tree.map(
            lambda w, u: w - (config.learning_rate * rate * u).astype(w.dtype),
            state.weights,
            updates,
        )
        keep = functools.partial(jax.tree.map, lambda new, old: jnp.where(finite, new, old))
        by_code = jnp.where(finite, jnp.concatenate(by_code), 0.0)
        update = update_all if config.code_updates == "all" else update_rows
        codebook = update(
            state.codebook,
            jnp.concatenate(rows),
            by_code,
            config.code_learning_rate * rate.astype(by_code.dtype),
            config.l2,
        )
        average = state.average
        if average is not None:
            average = jax.tree.map(
                lambda a, w: config.average * a + (1 - config.average) * w, average, weights
            )
            average = keep(average, state.average)
        state = TrainState(
            weights=keep(weights, state.weights),
            optimiser=keep(optimiser_state, state.optimiser),
            codebook=divided(run.mesh, codebook),
            average=average,
            step=state.step + finite,
        )
        log = StepLog(
            jax.tree.map(jnp.add, log.losses, terms), log.gradient_norm + norm, log.finite & finite
        )
        return state, log, taken + 1

    zero = jnp.zeros((), state.codebook.rows.dtype)
    log = StepLog(dict.fromkeys(static.loss_names, zero), zero, jnp.array(True))
    state, log, taken = jax.lax.while_loop(
        lambda c: (c[2] < steps) & c[1].finite, one_step, (state, log, jnp.zeros((), jnp.int32))
    )
    count = jnp.maximum(taken, 1)
    return state, StepLog(
        jax.tree.map(lambda x: x / count, log.losses), log.gradient_norm / count, log.finite
    )
