"""Validation on a part of the training set that no step sees."""

import dataclasses
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Key

from dhn.blocks import Codes, StateBlock, complete_windows, cut_windows
from dhn.codes.autodecode import CodePrior, autodecode
from dhn.models.contract import AbstractModel, WindowShape
from dhn.training.devices import Devices, replicated
from dhn.training.step import TrainingData

ENOUGH_TRAJECTORIES = 20  # to hold whole ones out
MOST_TRAJECTORIES = 16
"""Trajectories that the validation loss looks at; more would only cost time."""
CODE_ITERATIONS = 8  # of each fit of codes
WINDOWS = 64
"""Windows of each of them."""
SPLIT_STREAM = 0x5EED
"""Keeps the split's random numbers apart from other uses of the same seed."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Which states train, and which states measure the validation loss."""

    train: Bool[np.ndarray, "n T"]
    validation: Bool[np.ndarray, "n T"]
    """States on which the loss is taken; empty without validation."""
    held_out: Bool[np.ndarray, " n"]
    """Trajectories without a row in the codebook: their codes are fitted with `autodecode`."""


def choose_split(
    known: Bool[np.ndarray, "n T"], shapes: tuple[WindowShape, ...], fraction: float, seed: int
) -> Split:
    """Whole trajectories if there are twenty or more, else the end of every trajectory.

    The code of a held-out trajectory is fitted on its first half and the loss taken on its
    second, as in completion. Without enough states for either, there is no validation.
    """
    nothing = Split(known, np.zeros_like(known), np.zeros(len(known), bool))
    if fraction <= 0:
        return nothing
    first, second = _halves(known, 0.5)
    eligible = _has_windows(first, shapes) & _has_windows(second, shapes)
    rng = np.random.default_rng([SPLIT_STREAM, seed % 2**63])
    count = round(fraction * len(known))
    if len(known) >= ENOUGH_TRAJECTORIES and 1 <= count <= eligible.sum():
        held_out = np.zeros(len(known), bool)
        held_out[rng.permutation(np.flatnonzero(eligible))[:count]] = True
        train = known & ~held_out[:, None]
        if _has_windows(train, shapes).any():
            return Split(train, second & held_out[:, None], held_out)
    train, end = _halves(known, 1 - fraction)
    if not _has_windows(end, shapes).any():
        # The end is shorter than a window: take as much as the longest window needs.
        longest = max(shape.reach for shape in shapes) + 1
        train, end = _halves(known, 1 - min(1.0, longest / known.shape[1]))
    enough = _has_windows(end, shapes).any() and all(
        complete_windows(train, *shape).sum() >= complete_windows(end, *shape).sum()
        for shape in shapes
    )
    return Split(train, end, nothing.held_out) if enough else nothing


def aside(
    known: Bool[np.ndarray, "n T"],
    shapes: tuple[WindowShape, ...],
    held_out: Bool[np.ndarray, " n"],
) -> Split:
    """These trajectories train nothing; the second half of each measures the loss."""
    first, second = _halves(known, 0.5)
    usable = held_out & _has_windows(first, shapes) & _has_windows(second, shapes)
    return Split(known & ~held_out[:, None], second & usable[:, None], usable)


def _halves(
    known: Bool[np.ndarray, "n T"], share: float
) -> tuple[Bool[np.ndarray, "n T"], Bool[np.ndarray, "n T"]]:
    """The known states before and after `share` of each trajectory's length."""
    length = known.shape[1] - np.argmax(known[:, ::-1], axis=1)
    early = np.arange(known.shape[1]) < np.floor(share * length)[:, None]
    return known & early, known & ~early


def _has_windows(
    known: Bool[np.ndarray, "n T"], shapes: tuple[WindowShape, ...]
) -> Bool[np.ndarray, " n"]:
    """Trajectories with a window of every stage."""
    return np.all([complete_windows(known, *shape).any(1) for shape in shapes], axis=0)


@final
class Validator:
    """Measures the validation loss; the same windows and the same noise every time."""

    def __init__(
        self,
        known: Bool[np.ndarray, "n T"],
        shapes: tuple[WindowShape, ...],
        split: Split,
        training: TrainingData,
        seed: int,
        devices: Devices,
    ):
        self.split, self.shapes, self.training = split, shapes, training
        self._devices = devices
        self._seed = replicated(devices.mesh, jnp.asarray(seed % 2**31, jnp.uint32))
        self.trained_rows = np.flatnonzero(~split.held_out)
        self.held_rows = np.flatnonzero(split.held_out)
        self.enabled = bool(split.validation.any())
        self._held_states = devices.take(training.states, self.held_rows)
        self._held_known = known[self.held_rows]
        self._observed = _halves(self._held_known, 0.5)[0] if len(self.held_rows) else None
        self._checked = slice(0, MOST_TRAJECTORIES)
        self._picks = self._choose_windows(seed) if self.enabled else ()

    def _choose_windows(self, seed: int) -> tuple[np.ndarray, ...]:
        """For each stage `(g, WINDOWS, 2)`: windows of `g` trajectories."""
        rng = np.random.default_rng([SPLIT_STREAM, 1, seed % 2**63])
        visible = self.split.validation
        rows = np.flatnonzero(_has_windows(visible, self.shapes))
        if len(self.held_rows):
            rows = rows[np.isin(rows, self.held_rows[self._checked])]
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_TRAJECTORIES)).astype(int)]
        picks = []
        for shape in self.shapes:
            chosen = []
            for row in rows:
                start = np.flatnonzero(complete_windows(visible[row : row + 1], *shape)[0])
                start = start[rng.integers(0, len(start), WINDOWS)]
                chosen.append(np.stack([np.full(WINDOWS, row), start], axis=1))
            picks.append(np.stack(chosen).astype(np.int32))
        return tuple(picks)

    @property
    def code_batches(self) -> int:
        """Batches in which `all_codes` works, each about as long as one validation."""
        return -(-len(self.held_rows) // MOST_TRAJECTORIES)

    def noise(self, model: AbstractModel, codes: Array) -> float:
        """Root mean square residual over training windows: how exactly data obey the model."""
        model, codes = replicated(self._devices.mesh, (model, codes))
        total = [
            _mean_square(model, codes, i, self.training, self._seed)
            for i in range(len(model.window_shapes))
        ]
        return float(np.sqrt(np.mean([float(x) for x in total])))

    def loss(self, model: AbstractModel, codes: Array) -> float | None:
        """The training loss on held-out windows; None if nothing was held out.

        Median over trajectories: a single one that the model cannot explain, among so few,
        does not show which weights are better.
        """
        if not self.enabled:
            return None
        if self._observed is not None:
            part = self._checked
            fitted = self._autodecode(
                model, codes, jax.tree.map(lambda x: x[part], self._held_states),
                self._observed[part],
            )  # fmt: skip
            codes = codes.at[self.held_rows[part]].set(jnp.asarray(fitted, codes.dtype))
        picks = tuple(jnp.asarray(pick) for pick in self._picks)
        model, codes, picks = replicated(self._devices.mesh, (model, codes, picks))
        found = float(_loss(model, codes, picks, self.training.states, self._seed))
        return self._devices.agree(found)  # each process has fitted codes for itself

    def all_codes(self, model: AbstractModel, codes: Array) -> Codes:
        """The codebook with the codes of held-out trajectories, fitted on all their states."""
        found = np.array(codes[: len(self.split.held_out)])
        if len(self.held_rows):
            found[self.held_rows] = self._autodecode(
                model, codes, self._held_states, self._held_known
            )
        return found

    def _autodecode(self, model, codes, states, known) -> np.ndarray:
        book = np.asarray(codes)[self.trained_rows]
        prior = _of_full_rank(CodePrior.fit(book, self.noise(model, codes)))
        fitted = autodecode(
            model, states, known, prior,
            max_iterations=CODE_ITERATIONS, batch_size=MOST_TRAJECTORIES,
        )  # fmt: skip
        return fitted.codes


def _of_full_rank(prior: CodePrior) -> CodePrior:
    """The same prior with empty directions added, so that its shapes do not change in a run."""
    size, rank = prior.basis.shape
    more = max(min(size, 16) - rank, 0)
    return dataclasses.replace(
        prior,
        basis=np.pad(prior.basis, ((0, 0), (0, more))),
        codes=np.pad(prior.codes, ((0, 0), (0, more))),
    )


def _key(seed: Array) -> Key[Array, ""]:
    return jr.fold_in(jr.key(SPLIT_STREAM), seed)


@eqx.filter_jit
def _mean_square(model, codes, stage: int, data: TrainingData, seed):
    key = jr.fold_in(_key(seed), stage)
    pick = data.starts[stage][jr.randint(key, (8 * WINDOWS,), 0, data.counts[stage])]
    windows = cut_windows(data.states, pick[:, 0], pick[:, 1], *model.window_shapes[stage])
    return jnp.mean(model.stage_residuals(stage, windows, codes[pick[:, 0]]) ** 2)


@eqx.filter_jit
def _loss(model, codes, picks: tuple[Array, ...], states: StateBlock, seed):
    key = _key(seed)

    def of_trajectory(picks):
        windows = tuple(
            cut_windows(states, pick[:, 0], pick[:, 1], *shape)
            for pick, shape in zip(picks, model.training_shapes, strict=True)
        )
        terms = model.losses(windows, tuple(codes[pick[:, 0]] for pick in picks), key)
        return sum(terms.values())

    return jnp.median(jax.lax.map(of_trajectory, picks))
