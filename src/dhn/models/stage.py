"""One resolution level of a DHN: the block map between states `spacing` grid steps apart.

Two ways to hold the map. *Paired*: `H⁺` and `H⁻` are two networks, as in the paper, and denoising
alternates between them. *Linked*: there is one `H⁺`; the other direction is found by solving its
implicit equation, so the block map is symplectic to the accuracy of the solve.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import BlockSpec, Known, NoiseLevel, StateBlock, no_noise
from dhn.models.damping import AbstractDamping
from dhn.models.hamiltonian import LeftHamiltonian, RightHamiltonian
from dhn.models.solve import solve_fixed_point


class Outputs(eqx.Module):
    """What one Hamiltonian says about a window, in the window's own units."""

    Q_target: Float[Array, "n b d"] | None = None
    P_source: Float[Array, "n b d"] | None = None
    Q_source: Float[Array, "n b d"] | None = None
    P_target: Float[Array, "n b d"] | None = None


class AbstractStage(eqx.Module):
    """The equations that tie the source block of a window to its target block."""

    spec: eqx.AbstractVar[BlockSpec]
    spacing: eqx.AbstractVar[int]
    scale: eqx.AbstractVar[float]

    @abc.abstractmethod
    def equations(
        self, window: StateBlock, level: NoiseLevel, z: Float[Array, "n k"]
    ) -> tuple[Outputs, ...]:
        """Apply each Hamiltonian once to the inputs it takes from this window."""

    @abc.abstractmethod
    def predict(self, window: StateBlock, level: NoiseLevel, z: Float[Array, "n k"]) -> StateBlock:
        """The clean window as the model sees it: one round of both updates."""


class PairedStage(AbstractStage):
    """`H⁺` and `H⁻` as two networks (the paper's)."""

    right: RightHamiltonian
    left: LeftHamiltonian
    damping: AbstractDamping
    spec: BlockSpec = eqx.field(static=True)
    spacing: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def right_outputs(self, Q_source, P_target, level, z):
        """`(Q_target, P_source)` by `H⁺`, which sees the target's momenta undamped."""
        spec = self.spec
        growth = self.damping.growth(z, spec.lag)
        tokens = NoiseLevel(level.q[:, spec.source], level.p[:, spec.target])
        return self.right.right_update(Q_source, growth * P_target, tokens, z)

    def left_outputs(self, Q_target, P_source, level, z):
        """`(Q_source, P_target)` by `H⁻`, whose momenta are damped afterwards."""
        spec = self.spec
        growth = self.damping.growth(z, spec.lag)
        tokens = NoiseLevel(level.q[:, spec.target], level.p[:, spec.source])
        Q_source, P_target = self.left.left_update(Q_target, P_source, tokens, z)
        return Q_source, P_target / growth

    def equations(
        self, window: StateBlock, level: NoiseLevel, z: Float[Array, "n k"]
    ) -> tuple[Outputs, ...]:
        source, target = window.at(self.spec.source), window.at(self.spec.target)
        Q_target, P_source = self.right_outputs(source.q, target.p, level, z)
        Q_source, P_target = self.left_outputs(target.q, source.p, level, z)
        return (
            Outputs(Q_target=Q_target, P_source=P_source),
            Outputs(Q_source=Q_source, P_target=P_target),
        )

    def predict(self, window: StateBlock, level: NoiseLevel, z: Float[Array, "n k"]) -> StateBlock:
        """`H⁺` first; `H⁻` then sees the newest `Q_target` wherever its own token is not clean."""
        spec = self.spec
        source, target = window.at(spec.source), window.at(spec.target)
        Q_target, P_source = self.right_outputs(source.q, target.p, level, z)
        noisy = level.q[:, spec.target, None] > 0
        newest = jnp.where(noisy, Q_target, target.q)
        Q_source, P_target = self.left_outputs(newest, source.p, level, z)
        return StateBlock(
            _join(spec, window.q, Q_source, Q_target),
            _join(spec, window.p, P_source, P_target),
        )


class LinkedStage(AbstractStage):
    """One `H⁺`; its implicit equation is solved in either direction."""

    right: RightHamiltonian
    damping: AbstractDamping
    spec: BlockSpec = eqx.field(static=True)
    spacing: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def equations(
        self, window: StateBlock, level: NoiseLevel, z: Float[Array, "n k"]
    ) -> tuple[Outputs, ...]:
        spec = self.spec
        growth = self.damping.growth(z, spec.lag)
        tokens = NoiseLevel(level.q[:, spec.source], level.p[:, spec.target])
        Q_target, P_source = self.right.right_update(
            window.q[:, spec.source], growth * window.p[:, spec.target], tokens, z
        )
        return (Outputs(Q_target=Q_target, P_source=P_source),)

    def predict(self, window: StateBlock, level: NoiseLevel, z: Float[Array, "n k"]) -> StateBlock:
        """Forward from the source block and backward from the target block, both solved exactly.

        The equations hold between clean states, so every token is told level 0: there is one
        symplectic map, not one for each noise level.
        """
        del level
        spec = self.spec
        forward = self.forward(window.at(spec.source), z)
        backward = self.backward(window.at(spec.target), z)
        return StateBlock(
            _join(spec, window.q, backward.q, forward.q),
            _join(spec, window.p, backward.p, forward.p),
        )

    def forward(self, source: StateBlock, z: Float[Array, "n k"]) -> StateBlock:
        """The target block: solve `P_source = ∂H⁺/∂Q_source` for `P_target`."""
        clean = no_noise(source)

        def update(P_target):
            _, P_source = self.right.right_update(source.q, P_target, clean, z)
            return P_target + source.p - P_source

        P_target = solve_fixed_point(update, source.p)
        Q_target, _ = self.right.right_update(source.q, P_target, clean, z)
        return StateBlock(Q_target, P_target / self.damping.growth(z, self.spec.lag))

    def backward(self, target: StateBlock, z: Float[Array, "n k"]) -> StateBlock:
        """The source block: solve `Q_target = ∂H⁺/∂P_target` for `Q_source`. This is `H⁻`."""
        clean = no_noise(target)
        P_target = target.p * self.damping.growth(z, self.spec.lag)

        def update(Q_source):
            Q_target, _ = self.right.right_update(Q_source, P_target, clean, z)
            return Q_source + target.q - Q_target

        Q_source = solve_fixed_point(update, target.q)
        _, P_source = self.right.right_update(Q_source, P_target, clean, z)
        return StateBlock(Q_source, P_source)


def _join(
    spec: BlockSpec,
    window: Float[Array, "n L d"],
    source: Float[Array, "n b d"],
    target: Float[Array, "n b d"],
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
) -> list[tuple[str, slice, Float[Array, "n b d"]]]:
    """Each output minus the truth, in units of a typical change: `(part, states, error)`."""
    spec = stage.spec
    found = []
    for said in outputs:
        for part, states, value in (
            ("q", spec.target, said.Q_target),
            ("p", spec.source, said.P_source),
            ("q", spec.source, said.Q_source),
            ("p", spec.target, said.P_target),
        ):
            if value is not None:
                truth = getattr(window, part)[:, states]
                found.append((part, states, (value - truth) / stage.scale))
    return found


def equation_loss(
    stage: AbstractStage, window: StateBlock, z: Float[Array, "n k"]
) -> Float[Array, ""]:
    """Clean inputs, all outputs (paper, Eq. 11)."""
    said = stage.equations(window, no_noise(window), z)
    terms = [jnp.mean(error**2) for _, _, error in errors(stage, window, said)]
    return jnp.stack(terms).sum()


def denoising_loss(
    stage: AbstractStage,
    window: StateBlock,
    noised: StateBlock,
    known: Known,
    level: NoiseLevel,
    z: Float[Array, "n k"],
    outputs: str,
) -> Float[Array, ""]:
    """Noised inputs against the clean window, on the unknown outputs or on all of them."""
    said = stage.equations(noised, level, z)
    loss = jnp.zeros((), window.q.dtype)
    for part, states, error in errors(stage, window, said):
        if outputs == "all":
            loss += jnp.mean(error**2)
        else:
            unknown = ~getattr(known, part)[:, states, None]
            count = jnp.maximum(unknown.sum() * error.shape[-1], 1)
            loss += jnp.where(unknown, error**2, 0.0).sum() / count
    return loss


def consistency_loss(
    stage: PairedStage, window: StateBlock, z: Float[Array, "n k"], key: Key[Array, ""]
) -> Float[Array, ""]:
    """How far `H⁻` leads from where `H⁺` set out: nothing if both describe one map.

    Beside the data, where the equations say nothing: inputs are shifted by a typical change.
    """
    spec, clean = stage.spec, no_noise(window)
    shifts = stage.scale * jr.normal(key, (2, *window.q[:, spec.source].shape), window.q.dtype)
    Q_source = window.q[:, spec.source] + shifts[0]
    P_target = window.p[:, spec.target] + shifts[1]
    back = stage.left_outputs(*stage.right_outputs(Q_source, P_target, clean, z), clean, z)
    errors = [(a - b) / stage.scale for a, b in zip(back, (Q_source, P_target), strict=True)]
    return sum((jnp.mean(error**2) for error in errors), jnp.zeros((), window.q.dtype))


def stage_residuals(
    stage: AbstractStage, window: StateBlock, z: Float[Array, "n k"]
) -> Float[Array, "n m"]:
    """All clean-equation errors of each window in one row."""
    said = stage.equations(window, no_noise(window), z)
    rows = [error.reshape(error.shape[0], -1) for _, _, error in errors(stage, window, said)]
    return jnp.concatenate(rows, axis=1)
