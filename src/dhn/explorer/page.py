"""One self-contained HTML page: template, style, scripts and the model, nothing from outside."""

import html
import json
import os
import re
from importlib import resources
from typing import Any

import numpy as np

from dhn.estimator import AbstractNetworkAnswers
from dhn.explorer.data import examples, export_region, export_runs, shown
from dhn.explorer.export import export_model
from dhn.files.atomic import write_text
from dhn.systems.registry import system_title
from dhn.trajectories.container import Trajectories

SCRIPTS = (
    "decode", "algebra", "network", "model", "systems", "codes", "tasks", "motion", "canvas",
    "contours", "scene", "portrait", "section", "series", "map", "address", "controls", "app",
)  # fmt: skip
"""In this order: each may use those before it."""


def build_page(
    model: AbstractNetworkAnswers,
    data: Trajectories | None = None,
    *,
    train: Trajectories | None = None,
    title: str | None = None,
    seed: int = 0,
    small: bool = False,
) -> str:
    """The page as text.

    **Arguments:** `model`, trained; `data`, trajectories to start from and to compare with, by
    default those that the model keeps of its training;
    `train`, the training set, whose states are drawn in grey (`data` if it is not given); `title`,
    by default the system's name; `seed`, of the random numbers that make the fan of futures;
    `small`, to be a part of another page: the motion, the portrait and the parameters alone.

    **Returns:** HTML that needs no other file and no network.
    """
    payload = build_payload(model, data, train=train, seed=seed)
    own = system_title(payload["system"]) if payload["system"] else "Trained model"
    return fill_template(payload, title or own, small=small)


def build_payload(
    model: AbstractNetworkAnswers,
    data: Trajectories | None = None,
    *,
    train: Trajectories | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """What the page's scripts compute with: the arguments of `build_page` as JSON-able values."""
    payload = export_model(model.trained)
    seen = data if train is None else train
    payload["region"] = None if seen is None else export_region(seen, model.trained.scaler)
    payload["seed"] = seed
    payload["region_is_training"] = train is not None
    offered = examples(model.trained) if data is None else _fitted(model, data)
    payload["runs"] = export_runs(*offered)
    return payload


def write_explorer(
    path: str | os.PathLike[str],
    model: AbstractNetworkAnswers,
    data: Trajectories | None = None,
    *,
    train: Trajectories | None = None,
    title: str | None = None,
    seed: int = 0,
) -> int:
    """Write `build_page` to `path`, whole or not at all; returns its size in bytes."""
    document = build_page(model, data, train=train, title=title, seed=seed)
    write_text(path, document)
    return len(document.encode())


def _fitted(model: AbstractNetworkAnswers, data: Trajectories) -> tuple[Trajectories, np.ndarray]:
    """Trajectories that the page offers, with codes fitted to their first states."""
    chosen, observed = shown(data)
    return chosen, model.encode(chosen[:, :observed])


def fill_template(payload: dict[str, Any], title: str, *, small: bool = False) -> str:
    """The page's template with style, scripts and this payload inlined."""
    scripts = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    values = {
        "title": html.escape(title),
        "size": "small" if small else "full",
        "style": _read("style.css"),
        # `</` must not end the script element that holds the model.
        "payload": json.dumps(payload, allow_nan=False).replace("</", "<\\/"),
        "script": f'"use strict";\n(() => {{\n{scripts}\n}})();',
    }
    # In one pass: what is filled in is not searched again.
    return re.sub(r"@@(\w+)@@", lambda found: values[found[1]], _read("index.html"))


def _read(name: str) -> str:
    return (resources.files("dhn.explorer") / "web" / name).read_text(encoding="utf-8")
