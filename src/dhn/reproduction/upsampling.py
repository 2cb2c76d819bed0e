"""Interpolation by any kind of model."""

from dhn.errors import UserError
from dhn.estimator.kinds import AbstractEstimator
from dhn.reproduction.baselines.splines import (
    cubic_spline,
    hermite_spline,
    linear_interpolation,
    system_slopes,
)
from dhn.reproduction.baselines.upsampler import as_upsampler
from dhn.reproduction.lab import Lab
from dhn.reproduction.rolling import superresolve, upsample
from dhn.systems import get_system
from dhn.trajectories.container import Trajectories


def refine(
    lab: Lab, sparse: Trajectories, factor: int
) -> tuple[Trajectories, AbstractEstimator | None]:
    """`factor - 1` states between each two known ones, by whichever method the cell names."""
    cell = lab.cell
    if cell.trained:
        model = lab.model()
        if (upsampler := as_upsampler(model.trained.model)) is not None:
            return upsample(model.trained, upsampler, sparse, factor), model
        if cell.block_size > 1:
            return superresolve(model.trained, sparse, factor, cell.seed), model
        return model.interpolate(sparse, factor), model
    if cell.kind == "linear":
        return linear_interpolation(sparse, factor), None
    if cell.kind == "spline":
        return cubic_spline(sparse, factor), None
    if cell.kind == "hermite":
        # The strongest it can be: slopes from the true equations, which no other method knows.
        slopes = system_slopes(get_system(cell.data.system))
        return hermite_spline(sparse, factor, slopes), None
    raise UserError(f"there is no interpolation by {cell.kind!r}.")
