"""One resolution level of a DHN: the block map between states `spacing` grid steps apart.

Two ways to hold the map. *Paired*: `H⁺` and `H⁻` are two networks, as in the paper, and denoising
alternates between them. *Linked*: there is one `H⁺`; the other direction is found by solving its
implicit equation, so the block map is symplectic to the accuracy of the solve.
"""

import abc
from collections.abc import Callable
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dhn.blocks import Block, BlockSpec, Code, Known, NoiseLevel, StateBlock, no_noise, select
from dhn.blocks.noise import Nearby
from dhn.models.damping import AbstractDamping
from dhn.models.hamiltonian import LeftHamiltonian, RightHamiltonian
from dhn.models.solve import solve_fixed_point


@final
class Outputs(eqx.Module):
    """What one Hamiltonian predicts of a window, in the window's own units."""

    Q_target: Block | None = None
    P_source: Block | None = None
    Q_source: Block | None = None
    P_target: Block | None = None

    def parts(self, spec: BlockSpec) -> list[tuple[str, slice, Block]]:
        """What there is of them, each with its place in the window: `(part, states, value)`."""
        found = (
            ("q", spec.target, self.Q_target),
            ("p", spec.source, self.P_source),
            ("q", spec.source, self.Q_source),
            ("p", spec.target, self.P_target),
        )
        return [(part, states, value) for part, states, value in found if value is not None]


class AbstractStage(eqx.Module):
    """The equations that tie the source block of a window to its target block."""

    spec: eqx.AbstractVar[BlockSpec]
    spacing: eqx.AbstractVar[int]
    scale: eqx.AbstractVar[float]
    """Typical change of a state over the lag, `s` times the spacing: the unit of residuals."""
    right: eqx.AbstractVar[RightHamiltonian]
    damping: eqx.AbstractVar[AbstractDamping]

    def places(self, states: int) -> Int[np.ndarray, "w L"]:
        """Where the states of each window stand in a trajectory of so many states."""
        offsets = self.spacing * np.arange(self.spec.window_length)
        return np.arange(max(states - offsets[-1], 0))[:, None] + offsets

    def right_outputs(self, Q_source, P_target, level, z):
        """`(Q_target, P_source)` by `H⁺`, which sees the target's momenta undamped."""
        spec = self.spec
        growth = self.damping.growth(z, spec.lag)
        tokens = NoiseLevel(level.q[:, spec.source], level.p[:, spec.target])
        return self.right.right_update(Q_source, growth * P_target, tokens, z)

    @abc.abstractmethod
    def equations(self, window: StateBlock, level: NoiseLevel, z: Code) -> tuple[Outputs, ...]:
        """Apply each Hamiltonian once to the inputs it takes from this window."""

    @abc.abstractmethod
    def predict(
        self,
        window: StateBlock,
        known: Known,
        level: NoiseLevel,
        z: Code,
        renoise: Callable[[StateBlock], StateBlock] = lambda states: states,
    ) -> StateBlock:
        """The clean window as the model predicts it: one round of both updates.

        Where source and target estimate the same state, the mean of both.

        **Arguments**: `window` (n, L, d), noised where unknown; `known` (n, L); `level` (n, L),
        what each token is conditioned on; `z` (n, k); `renoise` noises the first Hamiltonian's
        outputs before the second one takes them in.

        **Returns**: (n, L, d). States that neither block holds stay as they are.
        """

    @abc.abstractmethod
    def target_block(self, window: StateBlock, z: Code) -> StateBlock:
        """Where the block map leads the source block of a clean window: (n, b, d)."""


@final
class PairedStage(AbstractStage):
    """`H⁺` and `H⁻` as two networks (the paper's)."""

    right: RightHamiltonian
    left: LeftHamiltonian
    damping: AbstractDamping
    spec: BlockSpec = eqx.field(static=True)
    spacing: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def left_outputs(self, Q_target, P_source, level, z):
        """`(Q_source, P_target)` by `H⁻`, whose momenta are damped afterwards."""
        spec = self.spec
        growth = self.damping.growth(z, spec.lag)
        tokens = NoiseLevel(level.q[:, spec.target], level.p[:, spec.source])
        Q_source, P_target = self.left.left_update(Q_target, P_source, tokens, z)
        return Q_source, P_target / growth

    def target_block(self, window: StateBlock, z: Code) -> StateBlock:
        """Coordinates by `H⁺` and momenta by `H⁻`, each from the window's own states."""
        right, left = self.equations(window, no_noise(window), z)
        assert right.Q_target is not None and left.P_target is not None
        return StateBlock(right.Q_target, left.P_target)

    def equations(self, window: StateBlock, level: NoiseLevel, z: Code) -> tuple[Outputs, ...]:
        source, target = window.at(self.spec.source), window.at(self.spec.target)
        Q_target, P_source = self.right_outputs(source.q, target.p, level, z)
        Q_source, P_target = self.left_outputs(target.q, source.p, level, z)
        return (
            Outputs(Q_target=Q_target, P_source=P_source),
            Outputs(Q_source=Q_source, P_target=P_target),
        )

    def predict(
        self,
        window: StateBlock,
        known: Known,
        level: NoiseLevel,
        z: Code,
        renoise: Callable[[StateBlock], StateBlock] = lambda states: states,
    ) -> StateBlock:
        """`H⁺` first; `H⁻` then takes the newest estimate of whatever is unknown."""
        spec = self.spec
        source, target = window.at(spec.source), window.at(spec.target)
        Q_target, P_source = self.right_outputs(source.q, target.p, level, z)
        newest = StateBlock(
            window.q.at[:, spec.target].set(Q_target), window.p.at[:, spec.source].set(P_source)
        )
        newest = renoise(select(known, window, newest))
        Q_source, P_target = self.left_outputs(
            newest.q[:, spec.target], newest.p[:, spec.source], level, z
        )
        return StateBlock(
            _join(spec, window.q, Q_source, Q_target),
            _join(spec, window.p, P_source, P_target),
        )


@final
class LinkedStage(AbstractStage):
    """One `H⁺`; its implicit equation is solved in either direction."""

    right: RightHamiltonian
    damping: AbstractDamping
    spec: BlockSpec = eqx.field(static=True)
    spacing: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def equations(self, window: StateBlock, level: NoiseLevel, z: Code) -> tuple[Outputs, ...]:
        source, target = window.at(self.spec.source), window.at(self.spec.target)
        Q_target, P_source = self.right_outputs(source.q, target.p, level, z)
        return (Outputs(Q_target=Q_target, P_source=P_source),)

    def predict(
        self,
        window: StateBlock,
        known: Known,
        level: NoiseLevel,
        z: Code,
        renoise: Callable[[StateBlock], StateBlock] = lambda states: states,
    ) -> StateBlock:
        """Forward from the source block and backward from the target block, both solved exactly.

        The equations hold between clean states, so every token is conditioned on level 0: there is
        one symplectic map, not one for each noise level.
        """
        del known, level, renoise
        spec = self.spec
        forward = self.forward(window.at(spec.source), z)
        backward = self.backward(window.at(spec.target), z)
        return StateBlock(
            _join(spec, window.q, backward.q, forward.q),
            _join(spec, window.p, backward.p, forward.p),
        )

    def target_block(self, window: StateBlock, z: Code) -> StateBlock:
        """By solving the implicit equation from the source block alone."""
        return self.forward(window.at(self.spec.source), z)

    def forward(self, source: StateBlock, z: Code) -> StateBlock:
        """The target block: solve `P_source = ∂H⁺/∂Q_source` for `P_target`.

        **Returns**: (n, b, d); not a number for samples whose equation has no solution nearby.
        """
        clean = no_noise(source)

        def update(P_target):
            _, P_source = self.right.right_update(source.q, P_target, clean, z)
            return P_target + source.p - P_source

        P_target = solve_fixed_point(update, source.p).or_nan
        Q_target, _ = self.right.right_update(source.q, P_target, clean, z)
        return StateBlock(Q_target, P_target / self.damping.growth(z, self.spec.lag))

    def backward(self, target: StateBlock, z: Code) -> StateBlock:
        """The source block: solve `Q_target = ∂H⁺/∂P_target` for `Q_source`. This is `H⁻`.

        **Returns**: (n, b, d); not a number for samples whose equation has no solution nearby.
        """
        clean = no_noise(target)
        P_target = target.p * self.damping.growth(z, self.spec.lag)

        def update(Q_source):
            Q_target, _ = self.right.right_update(Q_source, P_target, clean, z)
            return Q_source + target.q - Q_target

        Q_source = solve_fixed_point(update, target.q).or_nan
        _, P_source = self.right.right_update(Q_source, P_target, clean, z)
        return StateBlock(Q_source, P_source)


def _join(
    spec: BlockSpec, window: Float[Array, "n L d"], source: Block, target: Block
) -> Float[Array, "n L d"]:
    """Lay both blocks' estimates over the window; where they overlap, take the mean.

    States that neither block holds (`s > b`) stay as they are.
    """
    total = jnp.zeros_like(window).at[:, spec.source].add(source).at[:, spec.target].add(target)
    count = jnp.zeros(spec.window_length, window.dtype)
    count = count.at[spec.source].add(1).at[spec.target].add(1)
    covered = (count > 0)[:, None]
    return jnp.where(covered, total / jnp.maximum(count, 1)[:, None], window)


def errors(
    stage: AbstractStage, window: StateBlock, outputs: tuple[Outputs, ...]
) -> list[tuple[str, slice, Block]]:
    """Each output minus the truth, in units of a typical change: `(part, states, error)`."""
    return [
        (part, states, (value - getattr(window, part)[:, states]) / stage.scale)
        for predicted in outputs
        for part, states, value in predicted.parts(stage.spec)
    ]


def equation_loss(stage: AbstractStage, window: StateBlock, z: Code) -> Float[Array, ""]:
    """Clean inputs, all outputs: for each Hamiltonian two mean squares, added (paper, Eq. 10)."""
    predicted = stage.equations(window, no_noise(window), z)
    terms = [jnp.mean(error**2) for _, _, error in errors(stage, window, predicted)]
    return jnp.stack(terms).sum()


def separate_losses(
    stage: AbstractStage,
    window: StateBlock,
    noised: StateBlock,
    known: Known,
    level: NoiseLevel,
    z: Code,
    outputs: str,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Equation and denoising loss of the same windows, once clean and once noised.

    Both go through the networks side by side, which halves the program to compile.

    **Arguments**: `window` (n, L, d) clean and `noised`; `known` (n, L); `level` (n, L) of the
    noised tokens; `outputs`, whether unknown ones alone or all of them are compared.

    **Returns**: `equation_loss`, and the mean over noised windows and these outputs.
    """
    n = window.q.shape[0]
    clean = no_noise(window)
    inputs, levels, truth = (
        jax.tree.map(lambda *x: jnp.concatenate(x), *pair)
        for pair in ((window, noised), (clean, level), (window, window))
    )
    predicted = stage.equations(inputs, levels, jnp.concatenate([z, z]))
    equation = denoising = jnp.zeros((), window.q.dtype)
    for part, states, error in errors(stage, truth, predicted):
        squares = error**2
        equation += jnp.mean(squares[:n])
        if outputs == "all":
            denoising += jnp.mean(squares[n:])
        else:
            unknown = ~getattr(known, part)[:, states, None]
            count = jnp.maximum(unknown.sum() * squares.shape[-1], 1)
            denoising += jnp.where(unknown, squares[n:], 0.0).sum() / count
    return equation, denoising


def merged_losses(
    stage: AbstractStage,
    window: StateBlock,
    nearby: Nearby,
    known: Known,
    noised: Bool[Array, " n"],
    z: Code,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Equation and denoising loss from one pass: some rows are `noised`, the others clean.

    **Arguments**: `window` (n, L, d) clean; `nearby`, the same windows with unknown tokens moved;
    `known` (n, L); `noised` (n,), which rows take the moved tokens.

    **Returns**: the mean over clean rows and all their outputs, and the mean over noised rows and
    their unknown outputs, each row weighted.
    """
    rows = noised[:, None, None]
    inputs = jax.tree.map(lambda a, b: jnp.where(rows, a, b), nearby.states, window)
    level = NoiseLevel(*(jnp.where(noised[:, None], x, 0.0) for x in nearby.level))
    equation = denoising = jnp.zeros((), window.q.dtype)
    for part, states, error in errors(stage, window, stage.equations(inputs, level, z)):
        squares = error**2
        clean_count = jnp.maximum((~noised).sum() * squares[0].size, 1)
        equation += jnp.where(rows, 0.0, squares).sum() / clean_count
        unknown = rows & ~getattr(known, part)[:, states, None]
        count = jnp.maximum(unknown.sum() * squares.shape[-1], 1)
        weighted = nearby.weight[:, None, None] * squares
        denoising += jnp.where(unknown, weighted, 0.0).sum() / count
    return equation, denoising


def stage_residuals(stage: AbstractStage, window: StateBlock, z: Code) -> Float[Array, "n m"]:
    """All clean-equation errors of each window in one row."""
    predicted = stage.equations(window, no_noise(window), z)
    rows = [error.reshape(error.shape[0], -1) for _, _, error in errors(stage, window, predicted)]
    return jnp.concatenate(rows, axis=1)
