"""A trained model on disk: one file, no pickle, self-describing."""

import dataclasses
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dhn.checks import as_path
from dhn.codes.autodecode import CodePrior
from dhn.errors import UserError, os_errors
from dhn.estimator.code_size import FOLDER
from dhn.estimator.trained import TrainedModel
from dhn.models.contract import ModelContext
from dhn.models.registry import read_config, skeleton
from dhn.reconstruct.bands import Bands
from dhn.reconstruct.guess import Examples
from dhn.reconstruct.sections import Sections
from dhn.training.config import TrainingConfig
from dhn.training.storage import (
    check_numbers,
    fill_tree,
    load_arrays,
    read_record,
    record_arrays,
    save_arrays,
    tree_arrays,
    understanding,
)
from dhn.trajectories.scaling import Scaler

FILE = "model.safetensors"
PLAIN = ("ids", "names", "units", "system", "momenta", "summary")
"""Fields of a trained model that are JSON values."""


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder `path`, made if it is not there; a `UserError` if that is impossible."""
    path = as_path(path)
    if path.is_file():
        raise UserError(f"{path} is a file; name a folder for the model.")
    with os_errors(f"the folder {path} cannot be made"):
        path.mkdir(parents=True, exist_ok=True)
    return path


def check_run_folder(path: str | os.PathLike[str], resume: bool = False) -> Path:
    """The folder of a training to come, if it can be made and holds no finished model."""
    path = as_path(path)
    if not resume and any((path / name).exists() for name in (FILE, "mechanics.safetensors")):
        raise UserError(f"{path} holds a trained model already; choose another folder.")
    with os_errors(f"the folder {path} cannot be made"):
        nearest = next(x for x in (path, *path.absolute().parents) if x.exists())
        if not nearest.is_dir():
            raise UserError(f"{nearest} is a file; name a folder for the model.")
        with tempfile.TemporaryDirectory(dir=nearest, prefix=".dhn"):
            pass  # permissions alone do not show whether a folder can be made
    return path


def has_begun(path: Path) -> bool:
    """Whether a training began in this folder."""
    return any((path / name).exists() for name in ("metrics.jsonl", "turn0", FOLDER))


def check_begun(path: Path) -> None:
    """A `UserError` unless a training began in this folder; a warning if it saved nothing yet."""
    if not has_begun(path):
        raise UserError(f"no training has begun in {path}; check its name, or do not resume.")
    if not any(path.rglob("*.safetensors")):
        warnings.warn(f"nothing was saved in {path} yet; training begins anew.", stacklevel=2)


def save(trained: TrainedModel, path: str | os.PathLike[str]) -> None:
    """Write a trained model into a folder, whole or not at all."""
    path = make_folder(path)
    metadata = {
        "kind": "model",
        "config": trained.config.model_dump(mode="json"),
        "training": trained.training.model_dump(mode="json"),
        "context": dataclasses.asdict(trained.context),
        "scaler": trained.scaler.to_dict(),
        **{name: getattr(trained, name) for name in PLAIN},
    }
    arrays = {
        **tree_arrays(eqx.filter(trained.model, eqx.is_inexact_array), "weights"),
        **record_arrays(trained.prior, "prior"),
        "codes": trained.codes,
        **{f"params/{name}": value for name, value in trained.params.items()},
        **record_arrays(trained.examples, "examples"),
        **record_arrays(trained.examples.sections, "sections"),
        **trained.bands.to_arrays(),
        "noise": trained.noise,
    }
    save_arrays(path / FILE, metadata, arrays)


def load_trained(path: str | os.PathLike[str]) -> TrainedModel:
    """What `save` wrote; the folder of a training run, or a folder saved by hand."""
    path = as_path(path)
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
    check_numbers(arrays, path / FILE, partly=("examples/states", "params/"))
    with understanding(path / FILE):
        return _read(header, arrays, path / FILE)


def _read(header: dict[str, Any], arrays: dict[str, np.ndarray], path: Path) -> TrainedModel:
    """The model that a verified file describes."""
    config = read_config(header["config"])
    training = TrainingConfig.model_validate(header["training"])
    context = ModelContext.from_dict(header["context"])
    empty = skeleton(config, context)
    shapes, rest = eqx.partition(empty, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    weights = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, np.dtype(training.precision)), shapes
    )
    model = eqx.combine(fill_tree(weights, arrays, path, "weights"), rest)

    params = [name for name in arrays if name.startswith("params/")]
    plain: dict[str, Any] = {name: header[name] for name in PLAIN}
    plain |= {name: tuple(plain[name]) for name in ("ids", "names")}
    return TrainedModel(
        model=model,
        config=config,
        training=training,
        context=context,
        scaler=Scaler.from_dict(header["scaler"]),
        codes=arrays["codes"],
        prior=read_record(CodePrior, arrays, "prior"),
        params={name.removeprefix("params/"): arrays[name] for name in params},
        examples=read_record(
            Examples, arrays, "examples", sections=read_record(Sections, arrays, "sections")
        ),
        bands=Bands.from_arrays(arrays),
        noise=arrays["noise"],
        **plain,
    )
