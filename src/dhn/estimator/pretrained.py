"""Models that come with the package, one for each built-in system."""

from pathlib import Path
from typing import Any

from dhn.errors import UserError, did_you_mean
from dhn.estimator.kinds import AbstractEstimator, restored
from dhn.estimator.storage import FILE, load_trained
from dhn.systems import SYSTEMS, simulate
from dhn.training.storage import load_arrays
from dhn.trajectories.container import Trajectories

FOLDER = Path(__file__).parent / "models"
PREFIX = "pretrained:"
"""Before a name, wherever the folder of a trained model is expected."""


def names() -> tuple[str, ...]:
    """Names of the pretrained models, in the order of the systems."""
    return tuple(name for name in SYSTEMS if (FOLDER / name / FILE).is_file())


def folder(name: str) -> Path:
    """Where the model of this name is kept; a `UserError` if there is none."""
    if name not in names():
        raise UserError(
            f"there is no pretrained model {name!r}; there are {', '.join(names())}."
            f"{did_you_mean(name, names())}"
        )
    return FOLDER / name


def pretrained(name: str) -> AbstractEstimator:
    """A model of the package, which answers without training.

    Arguments:
        name: A built-in system, such as "double_pendulum".

    Returns:
        A fitted `DHN`. `record["pretrained"]` has the ranges of parameters and starts that it was
        trained on, the command that made it, and its errors on fresh trajectories.
    """
    return restored(load_trained(folder(name)))


def facts(name: str) -> dict[str, Any]:
    """Ranges, time step, command and measured errors of a pretrained model.

    Arguments:
        name: Of the model.

    Returns:
        JSON-able values, as they stand in the file.
    """
    header, _ = load_arrays(folder(name) / FILE, "model")
    summary = header["summary"]
    return {
        "names": header["names"],
        "time_step": header["context"]["time_step"],
        "seconds": summary["seconds"],
        "trajectories": summary["trajectories"],
        "bytes": (folder(name) / FILE).stat().st_size,
        **summary["pretrained"],
    }


def draw(name: str, trajectories: int, seed: int = 0) -> Trajectories:
    """New trajectories with starts and parameters in the ranges that a model was trained on.

    Arguments:
        name: Of the pretrained model.
        trajectories: How many.
        seed: Of parameters and starts; 0 are the training trajectories.

    Returns:
        Exact solutions on the model's time grid.
    """
    known = facts(name)
    params, initial = (
        {key: tuple(x) for key, x in known[part].items()} for part in ("params", "initial")
    )
    steps = known["states"] - 1
    return simulate(name, trajectories, seed=seed, steps=steps, params=params, initial=initial)
