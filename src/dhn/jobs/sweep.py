"""A sweep: one training a cell, over options as lists or ranges, in a grid or at random."""

import dataclasses
import hashlib
import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from dhn.checks import from_json
from dhn.errors import UserError
from dhn.jobs.cells import (
    CELL,
    Task,
    computed_now,
    environment,
    failure,
    finished,
    lay_out,
    results,
    write_json,
)
from dhn.jobs.executor import AbstractExecutor, Outcome, run_tasks
from dhn.jobs.slurm import job_of, queue

RANGE = re.compile(r"(log:)?([^,/]+?)\.\.([^,/]+?)(?:/(\d+))?")
MOST_CELLS = 10_000
"""Each cell is a folder and a training; a larger number is more likely a slip than a plan."""


@final
@dataclasses.dataclass(frozen=True)
class Axis:
    """The values of one option: those of a list, or a range of numbers."""

    name: str
    values: tuple[Any, ...] = ()
    low: float | int = 0.0
    high: float | int = 0.0
    log: bool = False

    @classmethod
    def parse(cls, text: str) -> "Axis":
        """`width=32,64`, `learning_rate=log:1e-3..1e-1` or `width=16..64/4` (four of them)."""
        name, equals, given = text.partition("=")
        if not (name and equals and given):
            raise UserError(
                f"an option is swept as NAME=VALUES, such as width=32,64; got {text!r}."
            )
        found = RANGE.fullmatch(given)
        if found is None:
            return cls(name, tuple(_value(x) for x in given.split(",")))
        low, high = _value(found[2]), _value(found[3])
        log, count = found[1] is not None, int(found[4] or 0)
        numbers = all(isinstance(x, int | float) and math.isfinite(x) for x in (low, high))
        if not numbers or low >= high or (log and low <= 0):
            raise UserError(
                f"a range is LOW..HIGH with LOW < HIGH, and above 0 after log:; got {given!r}."
            )
        _check_count(count)
        axis = cls(name, (), low, high, log)
        spaced = tuple(axis.at(x) for x in np.linspace(0, 1, count)) if count else ()
        return dataclasses.replace(axis, values=tuple(dict.fromkeys(spaced)))

    def at(self, share: float | int) -> float | int:
        """The number at this share of the range; a whole one if both ends are whole."""
        if self.log:
            found = self.low * (self.high / self.low) ** float(share)
        else:
            found = self.low + float(share) * (self.high - self.low)
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return round(found) if whole else float(f"{found:.6g}")

    def draw(self, rng: np.random.Generator) -> Any:
        """One value at random."""
        if self.values:
            return self.values[int(rng.integers(len(self.values)))]
        return self.at(rng.uniform())


def _check_count(cells: int) -> None:
    if cells > MOST_CELLS:
        raise UserError(f"a sweep has at most {MOST_CELLS} cells; got {cells}.")


def _value(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return text


def combinations(axes: Sequence[Axis], random: int | None, seed: int) -> list[dict[str, Any]]:
    """Options of every cell.

    Arguments:
        axes: The swept options.
        random: How many cells are drawn at random; None is the whole grid.
        seed: Of the draws.

    Returns:
        Name -> value for each cell, all different.
    """
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names) or not names:
        raise UserError(f"every swept option is named once; got {', '.join(names) or 'none'}.")
    if random is None:
        for axis in axes:
            if not axis.values:
                raise UserError(
                    f"a grid needs the number of values of {axis.name}: "
                    f"{axis.name}={axis.low}..{axis.high}/5. A random sweep does not."
                )
        _check_count(math.prod(len(axis.values) for axis in axes))
        grid = itertools.product(*(axis.values for axis in axes))
        return [dict(zip(names, values, strict=True)) for values in grid]
    _check_count(random)
    rng = np.random.default_rng(seed)
    drawn = [{axis.name: axis.draw(rng) for axis in axes} for _ in range(random)]
    return list({json.dumps(cell): cell for cell in drawn}.values())


def cell_name(values: dict[str, Any], swept: Sequence[str]) -> str:
    """Readable, unique, and other as soon as the cell is."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
    parts = [f"{name}-{values['options'].get(name, values['seed'])}" for name in swept]
    return ".".join(re.sub(r"[^A-Za-z0-9%._-]+", "-", part) for part in (*parts, digest))


def plan(
    data: Path,
    axes: Sequence[Axis],
    *,
    options: dict[str, Any],
    preset: str = "default",
    steps: int | None = None,
    validation: Path | None = None,
    random: int | None = None,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Name -> what is to be computed, for every cell; a `UserError` if an option is wrong."""
    from dhn.estimator import DHN
    from dhn.estimator.learning import check_held_out, check_learnable
    from dhn.files import read

    both = [axis.name for axis in axes if axis.name in options]
    if both:
        raise UserError(f"{both[0]} is swept and set for all cells at once; give it one way.")
    alike = {"steps", "budget", "preset"} & {*options, *(axis.name for axis in axes)}
    if alike:
        raise UserError(f"{min(alike)} is the same for all cells; it is no option that is swept.")
    named = {"data": data, "validation": validation}
    contents = {part: read(path) for part, path in named.items() if path is not None}
    if "validation" in contents:
        check_held_out(contents["data"], contents["validation"])
    files = {
        part: {"path": str(path.absolute()), "fingerprint": contents[part].fingerprint()}
        for part, path in named.items() if path is not None
    }  # fmt: skip
    found: dict[str, dict[str, Any]] = {}
    for chosen in combinations(axes, random, seed):
        merged = {"seed": seed, **options, **chosen}
        model = DHN(preset, **merged)
        if not found:  # the data; options that do not suit them fail in their own cell
            check_learnable(contents["data"], model.config, model.training)
        values = {
            **files,
            "preset": preset,
            "steps": steps,
            "seed": merged.pop("seed"),
            "options": merged,
            "swept": [axis.name for axis in axes],
        }
        found[cell_name(values, values["swept"])] = values
    return found


def run_sweep(
    cells: dict[str, dict[str, Any]], folder: Path, executor: AbstractExecutor, show: bool = True
) -> Outcome:
    """Train every cell that has no result, and gather the table in `folder`/sweep.json."""
    places = {folder / "cells" / name: values for name, values in cells.items()}
    lay_out({place: values for place, values in places.items() if not finished(place)})
    variables = environment(folder)
    outcome = run_tasks(
        [Task(f"{__name__}:train", (place,), variables) for place in places], executor, show
    )
    write_json(results(list(places)), folder / "sweep.json", indent=1)
    return outcome


def train(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Train one cell, resuming it, and measure it on data kept from training."""
    from dhn.estimator import DHN
    from dhn.estimator.answers import hidden, keep_known
    from dhn.estimator.learning import OBSERVED
    from dhn.estimator.storage import has_begun
    from dhn.evaluation.metrics import compare
    from dhn.files import read

    model = DHN(values["preset"], **values["options"], seed=values["seed"])
    data = _unchanged(values["data"], read)
    run = folder / "run"
    model.fit(data, steps=values["steps"], directory=run, resume=has_begun(run))
    summary = model.trained.summary
    found = {
        "name": folder.name,
        "options": {**values["options"], "seed": values["seed"]},
        "swept": values["swept"],
        "steps": summary["steps"],
        "parameters": model.parameters,
        "validation": summary["validation"],
    }
    if "validation" in values:
        truth = _unchanged(values["validation"], read)
        asked = hidden(truth, min(OBSERVED, truth.states // 2))
        metrics = compare(keep_known(asked, model.reconstruct(asked).trajectories), truth)
        found |= {name: metrics.summary()[name] for name in ("mse", "median", "blow_ups")}
    return found


def _unchanged(file: dict[str, str], read: Any) -> Any:
    data = read(file["path"])
    if data.fingerprint() != file["fingerprint"]:
        raise UserError(
            f"{file['path']} has changed since the sweep began; sweep into a new folder."
        )
    return data


def status(folder: Path) -> list[dict[str, Any]]:
    """For every cell its name, state (done, running, pending, failed, waiting) and the reason."""
    places = sorted(path.parent for path in (folder / "cells").glob(f"*/{CELL}"))
    if not places:
        raise UserError(f"{folder} holds no cells; name the folder of a sweep or reproduction.")
    queued = queue() if any(job_of(place) for place in places) else {}
    rows = []
    for place in places:
        why, job = failure(place), job_of(place)
        if finished(place):
            state, reason = "done", ""
        elif why is not None:
            state, reason = "failed", why
        elif job in queued:
            state, reason = queued[job], f"job {job}"
        elif computed_now(place):
            state, reason = "running", ""
        else:
            state, reason = "waiting", "" if job is None else f"job {job} has ended"
        rows.append({"name": place.name, "state": state, "reason": reason})
    return rows


def score(row: dict[str, Any]) -> float:
    """Median error on the validation file, else training's own validation loss; less is better."""
    found = row["median"] if "median" in row else row["validation"]
    return math.inf if found is None else found
