"""Whether data fit a trained model, said in one line if they do not."""

import numpy as np

from dhn.errors import UserError
from dhn.estimator.artifact import Artifact
from dhn.trajectories.container import Trajectories


def check_data(made: Artifact, data: Trajectories, factor: int = 1) -> None:
    """The same coordinates, with momenta, on the grid of training (or one `factor` coarser)."""
    if data.dim != made.context.dim:
        raise UserError(
            f"the model was trained on {made.context.dim} coordinates "
            f"({', '.join(made.names)}), but these data have {data.dim} "
            f"({', '.join(data.names)}). Use data of the same system."
        )
    if data.momenta is None:
        raise UserError(
            "these data have neither momenta p nor velocities v, which the model needs; add "
            "them (`dhn import` can derive velocities)."
        )
    if data.q.shape[1] > 1:
        step = data.time_step / factor
        if not np.isclose(step, made.context.time_step, rtol=1e-4):
            grid = f"{data.time_step:.6g}" + (f" / {factor}" if factor > 1 else "")
            raise UserError(
                f"the model was trained with time step {made.context.time_step:.6g}, but "
                f"these data have {grid}. Resample them, or train a model on this grid."
            )


def check_context(length: int, known: np.ndarray) -> None:
    """The last `length` observed states must be there."""
    if known.shape[1] < length:
        raise UserError(
            f"a forecast starts from {length} observed states; got {known.shape[1]}. "
            f"Observe at least {length}."
        )
    broken = ~known[:, -length:].all(1)
    if broken.any():
        raise UserError(
            f"a forecast starts from the last {length} observed states, but trajectory "
            f"{int(np.argmax(broken))} has a gap there. Fill the gap or observe fewer states."
        )
