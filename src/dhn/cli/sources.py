"""Which files a run was trained on: written down by `train`, found again by other commands."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.estimator.answers import AbstractAnswers
    from dhn.files import StoredTrajectories
    from dhn.trajectories import Trajectories

TRAIN = "-train"


def sibling(path: Path, part: str) -> Path | None:
    """The file that `dhn import --split` wrote beside `NAME-train.npz`, if it is there."""
    if not path.stem.endswith(TRAIN):
        return None
    other = path.with_name(f"{path.stem.removesuffix(TRAIN)}-{part}{path.suffix}")
    return other if other.is_file() else None


def describe(
    run: Path, **files: "tuple[Path, Trajectories | StoredTrajectories] | None"
) -> dict[str, Any]:
    """Part -> where its file is, as given and as seen from the run's folder, and what is in it."""
    return {
        part: {
            "path": str(file[0]),
            "from_run": os.path.relpath(file[0], run),
            "fingerprint": file[1].fingerprint(),
            "trajectories": len(file[1]),
            "states": file[1].states,
        }
        for part, file in files.items()
        if file is not None
    }


def find(model: "AbstractAnswers", run: Path, part: str) -> Path | None:
    """The file of this part, if the run records one and it is still in its place."""
    known = model.record.get("data", {})
    if part == "test":
        train = find(model, run, "train")
        return None if train is None else sibling(train, "test")
    if part not in known:
        return None
    for path in (Path(known[part]["path"]), run / known[part]["from_run"]):
        if path.is_file():
            return path
    return None


def recall(model: "AbstractAnswers", run: Path, part: str) -> "Trajectories | None":
    """The data of this part, if their file is still there and unchanged."""
    from dhn.files import read

    path = find(model, run, part)
    if path is None:
        return None
    try:
        data = read(path)
    except UserError:
        return None
    kept = model.record["data"].get(part)
    return data if kept is None or data.fingerprint() == kept["fingerprint"] else None


DRAWN = 100
"""Simulated trajectories that show where a model of the package was trained."""


def training_states(model: "AbstractAnswers", run: Path) -> "Trajectories | None":
    """The training data, or trajectories from the ranges of a model of the package."""
    if "pretrained" not in model.record:
        return recall(model, run, "train")
    from dhn.estimator.pretrained import draw

    return draw(model.record["pretrained"]["system"], DRAWN)
