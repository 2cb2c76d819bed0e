"""A trained model with all that is needed to use it: one file, no pickle, self-describing."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dhn.codes.autodecode import CodePrior
from dhn.errors import UserError
from dhn.models.contract import AbstractModel, ModelContext
from dhn.models.registry import read_config, skeleton
from dhn.training.config import TrainingConfig
from dhn.training.storage import fill_tree, load_arrays, save_arrays, tree_arrays
from dhn.trajectories.scaling import Scaler

FILE = "model.safetensors"


def member_folder(path: str | os.PathLike[str], number: int) -> Path:
    """Where the other models of an ensemble lie in its run folder."""
    return Path(path) / f"member{number}"


@dataclasses.dataclass(frozen=True, eq=False)
class Artifact:
    """Weights, codes, scaling and where they came from."""

    model: AbstractModel
    config: Any
    training: TrainingConfig
    context: ModelContext
    scaler: Scaler
    codes: np.ndarray
    """(n, k) codes of the training trajectories."""
    prior: CodePrior
    ids: tuple[str, ...]
    params: dict[str, np.ndarray]
    """The training trajectories' constants, for probes."""
    names: tuple[str, ...]
    units: dict[str, str]
    system: str | None
    summary: dict[str, Any]
    """Steps, seconds, final losses, data fingerprint, options of the run."""
    extra: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Further arrays, e.g. the calibration of error bands."""

    def save(self, path: str | os.PathLike[str]) -> None:
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        metadata = {
            "kind": "model",
            "config": self.config.model_dump(mode="json"),
            "training": self.training.model_dump(mode="json"),
            "context": dataclasses.asdict(self.context),
            "scaler": self.scaler.to_dict(),
            "ids": self.ids,
            "names": self.names,
            "units": self.units,
            "system": self.system,
            "summary": self.summary,
        }
        arrays = {
            **tree_arrays(eqx.filter(self.model, eqx.is_inexact_array), "weights"),
            **self.prior.to_arrays(),
            "codes": self.codes,
            **{f"params/{name}": value for name, value in self.params.items()},
            **{f"extra/{name}": value for name, value in self.extra.items()},
        }
        save_arrays(path / FILE, metadata, arrays)


def load_artifact(path: str | os.PathLike[str]) -> Artifact:
    """What `save` wrote; the folder of a training run, or a folder saved by hand."""
    path = Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is not a folder; expected one made by `dhn train` or model.save.")
    if not (path / FILE).is_file():
        hint = (
            "the training there is not finished: continue it with --resume"
            if (path / "metrics.jsonl").exists()
            else "expected a folder made by `dhn train` or model.save"
        )
        raise UserError(f"{path} has no {FILE}; {hint}.")
    header, arrays = load_arrays(path / FILE, "model")
    config = read_config(header["config"])
    training = TrainingConfig.model_validate(header["training"])
    values: dict[str, Any] = header["context"]
    listed: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    context = ModelContext(**listed)
    empty = skeleton(config, context)
    dtype = jnp.dtype(training.precision)
    weights = jax.tree.map(
        lambda x: jnp.zeros(x.shape, dtype), eqx.filter(empty, eqx.is_inexact_array)
    )
    filled = fill_tree(weights, arrays, path / FILE, "weights")
    model = eqx.combine(filled, eqx.filter(empty, eqx.is_inexact_array, inverse=True))

    def named(prefix):
        return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

    return Artifact(
        model=model,
        config=config,
        training=training,
        context=context,
        scaler=Scaler.from_dict(header["scaler"]),
        codes=arrays["codes"],
        prior=CodePrior.from_arrays(arrays),
        ids=tuple(header["ids"]),
        params=named("params/"),
        names=tuple(header["names"]),
        units=dict(header["units"]),
        system=header["system"],
        summary=header["summary"],
        extra=named("extra/"),
    )
