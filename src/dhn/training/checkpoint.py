"""Checkpoints of a run: the last two and the best, each written whole and self-describing."""

import dataclasses
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from dhn.errors import UserError
from dhn.models.contract import AbstractModel, ModelContext
from dhn.training.config import TrainingConfig
from dhn.training.step import TrainState
from dhn.training.storage import (
    DamagedFile,
    Fields,
    fill_tree,
    load_arrays,
    save_arrays,
    tree_arrays,
)
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

KIND = "training checkpoint"
KEPT = 2  # checkpoints
FIELDS: Fields = {
    **dict.fromkeys(("model", "training", "context", "scaler"), dict),
    "data": str,
    "step": int,
    "schedule": list,
    "budget": (int, float, type(None)),
    "seconds": (int, float),
    "best": (dict, type(None)),
    "validations": int,
}
"""What a training needs from a checkpoint to go on."""


def describe(
    model: AbstractModel,
    data: Trajectories,
    scaler: Scaler,
    context: ModelContext,
    config: TrainingConfig,
) -> dict[str, Any]:
    """The description that a saved model carries, as JSON values."""
    return {
        "model": {
            "class": type(model).__name__,
            "config": model.config.model_dump(mode="json"),
        },
        "training": config.model_dump(mode="json"),
        "context": dataclasses.asdict(context),
        "scaler": scaler.to_dict(),
        "system": data.system,
        "names": list(data.names),
        "angles": [bool(angle) for angle in data.angles],
        "units": dict(data.units),
        "momenta": "p" if data.p is not None else "v",
        "trajectories": len(data),
        "data": data.fingerprint(),
    }


def has_checkpoint(directory: str | Path | None) -> bool:
    """Whether a training left a checkpoint in this folder."""
    return directory is not None and bool(Checkpoints(Path(directory)).paths())


@final
class Checkpoints:
    """The checkpoint files of one run folder, which is locked; of several processes one writes."""

    def __init__(self, directory: Path, writes: bool = True):
        self.directory, self.writes = directory, writes

    @property
    def best(self) -> Path:
        return self.directory / "best.safetensors"

    def paths(self) -> list[Path]:
        """The rolling checkpoints, oldest first."""
        found = self.directory.glob("step-*.safetensors")
        return sorted(path for path in found if re.fullmatch(r"step-\d{9}", path.stem))

    def discard_unfinished(self) -> None:
        """Remove what a killed run was just writing."""
        if not self.writes:
            return
        for kind in ("step-*", "best", "metrics"):
            for path in self.directory.glob(f".{kind}.????????.*"):
                path.unlink(missing_ok=True)

    def save(self, state: TrainState, metadata: Mapping[str, Any]) -> Path:
        path = self.directory / f"step-{int(state.step):09d}.safetensors"
        self._write(path, state, metadata)
        for old in self.paths()[:-KEPT] if self.writes else ():
            old.unlink()
        return path

    def save_best(self, state: TrainState, metadata: Mapping[str, Any]) -> None:
        self._write(self.best, state, metadata)

    def _write(self, path: Path, state: TrainState, metadata: Mapping[str, Any]) -> None:
        if not self.writes:
            return
        header = {"kind": KIND, **metadata, "step": int(state.step)}
        try:
            save_arrays(path, header, tree_arrays(state))
        except UserError as error:  # a full disk, above all
            kept = self.paths()
            good = f" The last good checkpoint is {kept[-1]}." if kept else ""
            raise UserError(f"{error} Make room and resume.{good}") from error

    def load(self, path: Path, template: TrainState) -> tuple[TrainState, dict[str, Any]]:
        """State and metadata of a checkpoint; `template` gives the structure of the state."""
        metadata, arrays = load_arrays(path, KIND, FIELDS)
        return fill_tree(template, arrays, path), metadata

    def load_last(
        self, template: TrainState, description: Mapping[str, Any]
    ) -> tuple[TrainState, dict[str, Any]]:
        """The newest checkpoint that is whole, if it is of a run like this one.

        A damaged one is renamed and named in a warning. A damaged best one is forgotten.
        """
        for path in reversed(self.paths()):
            try:
                metadata, arrays = load_arrays(path, KIND, FIELDS)
            except DamagedFile as error:
                self._set_aside(path, error)
                continue
            if description:  # else another process compares
                check_same_run(metadata, description, path)
            if metadata["best"] is not None and not self._best_is_whole():
                metadata["best"] = None
            return fill_tree(template, arrays, path), metadata
        raise UserError(f"no checkpoint in {self.directory} can be read; train into a new folder.")

    def _best_is_whole(self) -> bool:
        try:
            load_arrays(self.best, KIND, FIELDS)
        except DamagedFile as error:
            self._set_aside(self.best, error)
            return False
        return True

    def _set_aside(self, path: Path, error: DamagedFile) -> None:
        if not self.writes:  # another process does
            return
        aside = path.with_name(f"damaged-{path.name}")
        os.replace(path, aside)
        warnings.warn(
            f"{path} is damaged ({error.reason}); it is now {aside.name}, and the training goes on "
            f"without it.",
            stacklevel=3,
        )


def check_same_run(stored: Mapping[str, Any], current: Mapping[str, Any], path: str | Path) -> None:
    """A `UserError` that names the first thing that has changed since the checkpoint."""
    if stored["data"] != current["data"]:
        raise UserError(
            f"{path} was trained on other data (fingerprint {stored['data'][:12]}, now "
            f"{current['data'][:12]}); resume with the same data, or train into a new folder."
        )
    for part in ("model", "training", "scaler", "context"):
        change = _first_change(stored[part], current[part], part)
        if change is not None:
            name, before, now = change
            raise UserError(
                f"{path} was trained with {name} = {before!r}, now it is {now!r}; resume with "
                f"the old value, or train into a new folder."
            )


def _first_change(stored: Any, current: Any, name: str) -> tuple[str, Any, Any] | None:
    if isinstance(stored, Mapping) and isinstance(current, Mapping):
        for key in [*stored, *(key for key in current if key not in stored)]:
            change = _first_change(stored.get(key), current.get(key), f"{name}.{key}")
            if change is not None:
                return change
        return None
    same = _plain(stored) == _plain(current)
    return None if same else (name, stored, current)


def _plain(value: Any) -> Any:
    return [_plain(x) for x in value] if isinstance(value, list | tuple) else value
