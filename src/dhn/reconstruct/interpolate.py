"""Interpolation: states between known ones, from the model and from a spline, weighed honestly."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.interpolate import CubicSpline

from dhn.blocks import StateBlock, draw_known, superresolution
from dhn.codes.autodecode import CodeFit, CodePrior, autodecode
from dhn.codes.batches import in_batches
from dhn.errors import UserError
from dhn.models.contract import (
    AbstractForecaster,
    AbstractModel,
    ModelContext,
    WindowShape,
    weights_dtype,
)
from dhn.models.denoise import denoise
from dhn.models.dhn import DHNModel
from dhn.models.stage import AbstractStage, LinkedStage
from dhn.models.upsampler import AbstractUpsampler

STRAGGLING = 100.0
"""So many times the median loss means that a code's fit has failed."""


def interpolate(
    model: AbstractModel,
    coarse: StateBlock,
    prior: CodePrior,
    factor: int,
    context: ModelContext,
    key: Key[Array, ""],
) -> StateBlock:
    """Fit codes on the coarse states alone, then put `factor - 1` states between each two.

    A linked one-state model is mixed with a spline by the errors that the known states reveal.
    Scaled states in and out.
    """
    if factor < 2:
        raise UserError(f"factor must be at least 2; got {factor}.")
    if isinstance(model, DHNModel) and _steps_singly(model):
        splined = spline(coarse, factor)
        codes = _codes_of_pairs(model, coarse, splined, factor, prior, context)
        refined = refine(model, coarse, codes, factor, key)
        return weigh(coarse, refined, splined, _misses(model, coarse, codes, factor))
    codes = _codes_of_coarse(model, coarse, factor, prior)
    if isinstance(model, AbstractUpsampler):
        dtype = weights_dtype(model)
        arrays = jax.tree.map(lambda x: np.asarray(x, dtype), (coarse, codes))
        return in_batches(lambda x: _upsample(model, x[0], x[1], factor), arrays, 256)
    if isinstance(model, DHNModel):
        return refine(model, coarse, codes, factor, key)
    raise UserError(f"a {type(model).__name__} cannot interpolate; use a DHN or an upsampler.")


@eqx.filter_jit
def _upsample(model: AbstractUpsampler, coarse: StateBlock, codes, factor: int) -> StateBlock:
    return model.upsample(coarse, codes, factor)


def _codes_of_coarse(
    model: AbstractModel, coarse: StateBlock, factor: int, prior: CodePrior
) -> np.ndarray:
    """Lay the states on the fine grid with gaps between them; only coarse windows are complete."""
    n, length, d = coarse.q.shape
    if not np.any(prior.basis):  # a network without code: the codebook never moved
        return np.tile(prior.mean, (n, 1))
    known = np.zeros((n, (length - 1) * factor + 1), bool)
    known[:, ::factor] = True
    fine = [np.zeros((*known.shape, d)) for _ in range(2)]
    for x, y in zip(fine, coarse, strict=True):
        x[:, ::factor] = y
    spacings = [shape.spacing for shape in model.window_shapes]
    # No window of the other stages is complete.
    stages = tuple(i for i, spacing in enumerate(spacings) if spacing % factor == 0)
    if not stages:
        raise UserError(
            f"interpolating by {factor} fits the code on states {factor} steps apart, for which "
            f"this model has no stage; its spacings are {', '.join(map(str, spacings))}. "
            f"Train with spacings ({_halvings(factor)})."
        )
    return autodecode(model, StateBlock(*fine), known, prior, stages=stages).codes


def _halvings(factor: int) -> str:
    return ", ".join(str(factor >> i) for i in range(factor.bit_length()))


def _steps_singly(model: DHNModel) -> bool:
    """Is there a linked stage that moves one state by one step of the grid?"""
    stage = model.finest
    return isinstance(stage, LinkedStage) and stage.spec.window_length == 2 and stage.spacing == 1


def spline(coarse: StateBlock, factor: int) -> StateBlock:
    """Cubic spline through the known states, coordinates and momenta alike."""
    length = coarse.q.shape[1]
    if length < 2:
        raise UserError(f"interpolation needs at least 2 known states; got {length}.")
    fine = np.arange((length - 1) * factor + 1) / factor
    return StateBlock(*(_through(np.arange(length), x)(fine) for x in coarse))


def _through(places: np.ndarray, states: Float[np.ndarray, "n L d"]) -> CubicSpline:
    return CubicSpline(
        places, states, axis=1, bc_type="not-a-knot" if len(places) >= 4 else "natural"
    )


def refine(
    model: DHNModel,
    coarse: StateBlock,
    codes: Float[np.ndarray, "n k"],
    factor: int,
    key: Key[Array, ""],
    *,
    batch_size: int = 1024,
) -> StateBlock:
    """The model's own interpolation, scaled states in and out.

    A linked one-state model steps forward from each known state and backward from the next one
    and blends the two. Any other model doubles the resolution stage by stage (paper, Sec. 4.3).
    """
    stage = model.finest
    if isinstance(stage, LinkedStage) and _steps_singly(model):
        return in_batches(lambda x: _blend(stage, x[0], x[1], factor), (coarse, codes), batch_size)
    spacing = factor // 2
    while spacing >= 1:
        found = [s for s in model.stages if s.spacing == spacing]
        if not found or found[0].spec.window_length < 3:
            have = ", ".join(str(s.spacing) for s in model.stages)
            raise UserError(
                f"interpolating by {factor} needs stages of spacing {factor // 2} down to 1 with "
                f"windows of 3 states or more; this model has spacings {have} and windows of "
                f"{model.finest.spec.window_length}. Train with block_size=2, stride=1, "
                f"spacings=({_halvings(factor)})."
            )
        guess = spline(coarse, 2)
        key, step_key = jr.split(key)
        coarse = in_batches(
            lambda x, stage=found[0], key=step_key: _fill(stage, model, x[0], x[1], x[2], key),
            (coarse, guess, codes),
            batch_size,
        )
        spacing //= 2
    return coarse


@eqx.filter_jit
def _blend(stage: LinkedStage, coarse: StateBlock, codes, factor: int) -> StateBlock:
    """Forward from the left end, backward from the right end, each weighed by its distance."""
    n, length, d = coarse.q.shape
    left = jax.tree.map(lambda x: x[:, :-1].reshape(-1, 1, d), coarse)
    right = jax.tree.map(lambda x: x[:, 1:].reshape(-1, 1, d), coarse)
    z = jnp.repeat(codes, length - 1, axis=0)

    def repeat(move, state):
        def body(state, _):
            state = move(state, z)
            return state, state

        return jax.lax.scan(body, state, None, length=factor - 1)[1]

    ahead, behind = repeat(stage.forward, left), repeat(stage.backward, right)
    weight = (jnp.arange(1, factor) / factor)[:, None, None, None]

    def join(known, ahead, behind):
        inner = (1 - weight) * ahead + weight * behind[::-1]
        inner = jnp.moveaxis(inner[:, :, 0], 0, 1).reshape(n, length - 1, factor - 1, d)
        runs = jnp.concatenate([known[:, :-1, None], inner], axis=2).reshape(n, -1, d)
        return jnp.concatenate([runs, known[:, -1:]], axis=1)

    return jax.tree.map(join, coarse, ahead, behind)


@eqx.filter_jit
def _fill(stage: AbstractStage, model: DHNModel, coarse, guess, codes, key) -> StateBlock:
    """One doubling: each window's middle state(s) denoised from the spline's guess."""
    n, length, d = coarse.q.shape
    start = 2 * jnp.arange(length - 1)
    window = jax.tree.map(lambda x: x[:, start[:, None] + jnp.arange(3)].reshape(-1, 3, d), guess)
    z = jnp.repeat(codes, length - 1, axis=0)
    known = draw_known(key, superresolution, stage.spec, window.q.shape[0])
    filled = denoise(stage, window, known, z, key, model.config.inference)

    def join(known, filled):
        middle = filled[:, 1].reshape(n, length - 1, 1, d)
        runs = jnp.concatenate([known[:, :-1, None], middle], axis=2).reshape(n, -1, d)
        return jnp.concatenate([runs, known[:, -1:]], axis=1)

    return jax.tree.map(join, coarse, filled)


def _codes_of_pairs(
    model: DHNModel,
    coarse: StateBlock,
    splined: StateBlock,
    factor: int,
    prior: CodePrior,
    context: ModelContext,
) -> Float[np.ndarray, "n k"]:
    """Codes with which `factor` steps lead from one known state to the next."""
    # A spline's states are good enough for a first code, and single steps are cheap.
    step_noise = prior.noise + _roughness(coarse) / context.change(1)
    everything = np.ones(splined.q.shape[:2], bool)
    codes = autodecode(
        model, splined, everything, prior,
        noise=float(step_noise), local=False, max_iterations=8,
    ).codes  # fmt: skip
    pairs = _pairs(coarse)
    composed = Composed(model, factor, context.change(factor), pairs.q.shape[1])
    # Small errors of single steps add up over the lag.
    noise = prior.noise * np.sqrt(factor) * context.change(1) / context.change(factor)

    def fit(some: StateBlock, start: np.ndarray | None, max_iterations: int) -> CodeFit:
        known = np.ones(some.q.shape[:2], bool)
        return autodecode(
            composed, some, known, prior,
            noise=float(noise), start=start, max_iterations=max_iterations,
        )  # fmt: skip

    found = fit(pairs, codes, 8)
    codes = found.codes
    # The spline may have led a few astray, or they need far more iterations than the others.
    stragglers = np.flatnonzero(found.loss > STRAGGLING * np.median(found.loss))
    if len(stragglers):
        codes[stragglers] = fit(jax.tree.map(lambda x: x[stragglers], pairs), None, 40).codes
    return codes


def _pairs(coarse: StateBlock, most: int = 6) -> StateBlock:
    """Neighbouring known states at a few places, evenly spread: enough to fit a code on."""
    starts = np.unique(np.linspace(0, coarse.q.shape[1] - 2, most).astype(int))
    chosen = np.stack([starts, starts + 1], axis=1).ravel()
    return StateBlock(coarse.q[:, chosen], coarse.p[:, chosen])


class Composed(eqx.Module):
    """A one-step model seen from pairs of states `factor` steps apart: to fit a code on them."""

    model: AbstractForecaster
    factor: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)
    length: int = eqx.field(static=True)
    """States of a trajectory: its pairs, one after the other, make one window."""

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]:
        return (WindowShape(self.length, 1),)

    def stage_residuals(
        self, stage: int, window: StateBlock, z: Float[Array, "n k"]
    ) -> Float[Array, "n m"]:
        """Where `factor` steps lead from the first of each pair, against the second."""
        del stage
        pairs = jax.tree.map(lambda x: x.reshape(-1, 2, x.shape[-1]), window)
        codes = jnp.repeat(z, self.length // 2, axis=0)
        state = _advance(self.model, pairs.at(slice(0, 1)), codes, self.factor)
        error = jax.tree.map(lambda a, b: a - b, state, pairs.at(slice(1, 2)))
        return jnp.concatenate([x.reshape(len(z), -1) for x in error], axis=1) / self.scale


def _advance(model: AbstractForecaster, state: StateBlock, codes, factor: int) -> StateBlock:
    """`factor` single steps."""
    key = jr.key(0)
    return jax.lax.scan(
        lambda state, _: (model.advance(state, codes, key), None), state, None, length=factor
    )[0]


def weigh(
    coarse: StateBlock, refined: StateBlock, splined: StateBlock, misses: StateBlock
) -> StateBlock:
    """Model and spline mixed in every interval by the errors that known states reveal around it.

    The spline's error is measured by leaving every other known state out and scaled down by the
    order of a cubic spline (error ~ spacing⁴). The model's is the amount by which stepping from
    one known state `misses` the next; the blend of both ends leaves a quarter of it if the defect
    grows evenly. A model may be right in one part of a trajectory and wrong in another, where
    training has not been, but there it is wrong in all coordinates: they are judged together, lest
    one that is right by chance counts. Squared once more, the weights let the worse one hardly in.
    """
    if coarse.q.shape[1] < 5:
        return refined
    ratios = [
        (_around(miss**2) / 16 + 1e-30) / (_around(_spline_error(known)) + 1e-30)
        for miss, known in zip(misses, coarse, strict=True)
    ]
    ratio = np.exp(np.log(np.concatenate(ratios, axis=2)).mean(2, keepdims=True))
    share = 1 / (1 + ratio**2)
    factor = (refined.q.shape[1] - 1) // share.shape[1]
    # Known states are the same in both, so it does not matter which interval they count with.
    weight = np.repeat(share, factor, axis=1)
    weight = np.concatenate([weight, weight[:, -1:]], axis=1)
    return StateBlock(
        *(weight * a + (1 - weight) * b for a, b in zip(refined, splined, strict=True))
    )


def _around(squares: Float[np.ndarray, "n I d"]) -> Float[np.ndarray, "n I d"]:
    """Means over an interval and its neighbours, weighed 1 : 2 : 1; one alone says little."""
    padded = np.pad(squares, ((0, 0), (1, 1), (0, 0)), "edge")
    return (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4


def _misses(
    model: DHNModel, coarse: StateBlock, codes: Float[np.ndarray, "n k"], factor: int
) -> StateBlock:
    """By how much `factor` steps from each known state miss the next one, `(n, L - 1, d)`."""
    dtype = weights_dtype(model)
    arrays = jax.tree.map(lambda x: np.asarray(x, dtype), (coarse, codes))
    return in_batches(lambda x: _step_over(model, x[0], x[1], factor), arrays, 256)


@eqx.filter_jit
def _step_over(model: DHNModel, coarse: StateBlock, codes, factor: int) -> StateBlock:
    n, length, d = coarse.q.shape
    z = jnp.repeat(codes, length - 1, axis=0)
    start = jax.tree.map(lambda x: x[:, :-1].reshape(-1, 1, d), coarse)
    state = _advance(model, start, z, factor)
    return jax.tree.map(lambda x, y: x.reshape(n, -1, d) - y[:, 1:], state, coarse)


def _spline_error(coarse: Float[np.ndarray, "n L d"]) -> Float[np.ndarray, "n I d"]:
    """Squared error of a cubic spline in every interval, from every other known state left out.

    Which ones are left out and which are kept is then exchanged, so that each inner state tells of
    the two intervals beside it.
    """
    squares = np.zeros_like(coarse)
    for first in (0, 1):
        kept = np.arange(first, coarse.shape[1], 2)
        hidden = np.arange(first + 1, kept[-1], 2)
        squares[:, hidden] = (_through(kept, coarse[:, kept])(hidden) - coarse[:, hidden]) ** 2
    squares[:, 0], squares[:, -1] = squares[:, 1], squares[:, -2]
    return (squares[:, :-1] + squares[:, 1:]) / 2 / 4.0**4


def _roughness(coarse: StateBlock) -> float:
    """Typical error of a spline's states over the whole set; nothing known of very short ones."""
    if coarse.q.shape[1] < 5:
        return 0.1
    each = [_spline_error(x).mean((1, 2)) for x in coarse]
    return float(np.sqrt(np.median(np.mean(each, axis=0))))
