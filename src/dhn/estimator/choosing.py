"""Which model fits some data, and which one a folder holds."""

import os

from dhn.checks import as_path
from dhn.estimator.kinds import DHN, AbstractEstimator, restored
from dhn.estimator.mechanical import FILE as MECHANICS
from dhn.estimator.mechanical import Mechanics
from dhn.estimator.pretrained import PREFIX, pretrained
from dhn.estimator.storage import load_trained
from dhn.files.accepting import TrajectoriesLike, as_trajectories
from dhn.trajectories.container import Trajectories


def wants_mechanics(train: Trajectories) -> bool:
    """Whether mechanics are to be fitted to positions: the data have no momenta.

    Velocities do not count: for coupled coordinates they are not proportional to momenta.
    """
    return train.p is None


def fit(
    train: TrajectoriesLike, *, budget: float | int | str | None = None, progress: bool = False
):
    """Fit whichever model the data ask for, as the command `dhn train` does.

    Arguments:
        train: Trajectories with momenta for a network, or with positions for mechanics.
        budget: Seconds, or text such as "5m".
        progress: Show progress.

    Returns:
        A fitted `DHN` or `Mechanics`.
    """
    train = as_trajectories(train)
    if wants_mechanics(train):
        return Mechanics().fit(train, budget=budget, progress=progress)
    return DHN().fit(train, budget=budget, progress=progress, calibrate=True)


def load(path: str | os.PathLike[str]) -> AbstractEstimator | Mechanics:
    """A model saved by `save` or by a training run.

    Arguments:
        path: The folder it was saved in, or `pretrained:` and the name of a model of the package.

    Returns:
        The fitted estimator, of the class that was saved; nothing needs to be repeated.
    """
    if str(path).startswith(PREFIX):
        return pretrained(str(path).removeprefix(PREFIX))
    path = as_path(path)
    if (path / MECHANICS).is_file():
        return Mechanics.load(path)
    return restored(load_trained(path))
