"""How exactly the training set obeys a trained model."""

import jax
import jax.numpy as jnp
import numpy as np

from dhn.blocks import cut_windows
from dhn.data.scaling import Scaler
from dhn.data.trajectories import Trajectories
from dhn.models.contract import AbstractModel
from dhn.training.config import TrainingConfig
from dhn.training.prepare import prepare


def training_residual(
    model: AbstractModel,
    codes: np.ndarray,
    data: Trajectories,
    scaler: Scaler,
    training: TrainingConfig,
    windows: int = 4096,
) -> float:
    """Root mean square residual of training windows under their own codes."""
    with jax.enable_x64(training.precision == "float64"):
        prepared = prepare(data, scaler, model.window_shapes, training.precision)
        rows = jnp.asarray(codes)
        squares, count = 0.0, 0
        for i, shape in enumerate(model.window_shapes):
            total = int(prepared.counts[i])
            chosen = np.random.default_rng(training.seed).integers(0, total, windows)
            pick = prepared.starts[i][chosen]
            window = cut_windows(prepared.states, pick[:, 0], pick[:, 1], *shape)
            error = model.stage_residuals(i, window, rows[pick[:, 0]])
            squares, count = squares + float((error**2).sum()), count + error.size
    return float(np.sqrt(squares / count))
