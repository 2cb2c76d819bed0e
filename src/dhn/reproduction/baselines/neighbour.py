"""Two-neighbour MLP: a state from the known ones before and after it and its place between them."""

from typing import final

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from dhn.blocks import Code, StateBlock
from dhn.models.contract import ModelContext, WindowShape
from dhn.models.networks.features import StateFeatures
from dhn.reproduction.baselines.config import NeighbourConfig
from dhn.reproduction.baselines.networks import ResidualMLP
from dhn.reproduction.baselines.upsampler import AbstractUpsampler, bend


@final
class NeighbourModel(AbstractUpsampler):
    """Corrects a straight line, or a Hermite cubic whose slopes a second network gives.

    The correction vanishes at both ends by construction. One network serves all gaps; it is given
    the logarithm of the gap's length.
    """

    network: ResidualMLP
    slopes: ResidualMLP | None
    features: StateFeatures
    context: ModelContext = eqx.field(static=True)
    config: NeighbourConfig = eqx.field(static=True)

    @classmethod
    def build(
        cls, config: NeighbourConfig, context: ModelContext, key: Key[Array, ""]
    ) -> "NeighbourModel":
        features = context.features(config.angles)
        key_network, key_slopes = jr.split(key)

        def network(states, places, key):
            # Each further state enters as its difference to the first.
            return ResidualMLP(
                inputs=2 * features.size
                + (states - 1) * 2 * context.dim
                + places
                + config.latent_size,
                outputs=2 * context.dim,
                width=config.width,
                depth=config.depth,
                activation=config.activation,
                key=key,
            )

        hermite = config.guess == "hermite"
        # pyright takes Equinox's abstract variables for fields of the constructor.
        return cls(  # pyright: ignore[reportCallIssue]
            network=network(2, 2, key_network),
            slopes=network(1, 0, key_slopes) if hermite else None,
            features=features,
            context=context,
            config=config,
        )

    @property
    def latent_size(self) -> int:
        return self.config.latent_size

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]:
        return tuple(WindowShape(parts + 1, spacing) for parts, spacing in self.config.gaps)

    @property
    def loss_names(self) -> tuple[str, ...]:
        return ("interpolation",)

    def _between(
        self,
        first: Float[Array, "n e"],
        last: Float[Array, "n e"],
        fraction: Float[Array, " n"],
        gap: int,
        z: Code,
    ) -> Float[Array, "n e"]:
        """The state at this fraction of a gap of so many grid steps."""
        u = fraction[:, None]
        change = self.context.change(gap)
        where = jnp.concatenate([2 * u - 1, jnp.full_like(u, jnp.log2(gap) / 4)], axis=1)
        seen = [self._see(first), (last - first) / change, where, z]
        correction = bend(self.context, gap) * self.network(jnp.concatenate(seen, axis=1))
        line = first + u * (last - first)
        if self.slopes is None:
            return line + 4 * u * (1 - u) * correction
        length = gap * self.context.change(1)
        start, end = (
            length * self.slopes(jnp.concatenate([self._see(x), z], axis=1)) for x in (first, last)
        )
        chord = last - first
        cubic = u * (1 - u) * ((1 - u) * (start - chord) - u * (end - chord))
        return line + cubic + 16 * (u * (1 - u)) ** 2 * correction

    def _see(self, x: Float[Array, "n e"]) -> Float[Array, "n f"]:
        q, p = jnp.split(x, 2, axis=1)
        return jnp.concatenate([self.features(q), self.features.momenta(p)], axis=1)

    @property
    def uses_code(self) -> bool:
        return True

    def upsample(self, sparse: StateBlock, z: Code, factor: int) -> StateBlock:
        """`factor` is counted in steps of the training grid: the gap between known states."""
        x = jnp.concatenate(sparse, axis=-1)
        n, m, e = x.shape

        def repeat(y):
            return jnp.repeat(y, factor - 1, axis=0)

        inner = self._between(
            repeat(x[:, :-1].reshape(-1, e)),
            repeat(x[:, 1:].reshape(-1, e)),
            jnp.tile(jnp.arange(1, factor, dtype=x.dtype) / factor, n * (m - 1)),
            factor,
            jnp.repeat(z, (m - 1) * (factor - 1), axis=0),
        ).reshape(n, m - 1, factor - 1, e)
        filled = jnp.concatenate([x[:, :-1, None], inner], axis=2)
        filled = jnp.concatenate([filled.reshape(n, -1, e), x[:, -1:]], axis=1)
        return StateBlock(*jnp.split(filled, 2, axis=-1))

    def losses(
        self,
        windows: tuple[StateBlock, ...],
        codes: tuple[Code, ...],
        key: Key[Array, ""],
        part: Int[Array, ""] | int = 0,
    ) -> dict[str, Float[Array, ""]]:
        """One place in every gap, drawn anew at each step: cheaper than all, and no less varied."""
        total = jnp.zeros((), codes[0].dtype)
        keys = jr.split(jr.fold_in(key, part), len(windows))
        for window, z, (parts, spacing), key in zip(
            windows, codes, self.config.gaps, keys, strict=True
        ):
            x = jnp.concatenate(window, axis=-1)
            place = jr.randint(key, (x.shape[0],), 1, parts)
            truth = jnp.take_along_axis(x, place[:, None, None], axis=1)[:, 0]
            fraction = place.astype(x.dtype) / parts
            error = self._error(x, truth, fraction, parts * spacing, z)
            total += 2 * jnp.mean(error**2)
        return {"interpolation": total / len(windows)}

    def stage_residuals(self, stage: int, window: StateBlock, z: Code) -> Float[Array, "n m"]:
        """Every place of every gap."""
        parts, spacing = self.config.gaps[stage]
        x = jnp.concatenate(window, axis=-1)
        rows = []
        for place in range(1, parts):
            fraction = jnp.full(x.shape[0], place / parts, x.dtype)
            rows.append(self._error(x, x[:, place], fraction, parts * spacing, z))
        return jnp.concatenate(rows, axis=1)

    def _error(self, x, truth, fraction, gap, z):
        predicted = self._between(x[:, 0], x[:, -1], fraction, gap, z)
        return (predicted - truth) / bend(self.context, gap)
