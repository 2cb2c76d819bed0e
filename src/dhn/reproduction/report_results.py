"""Reading `results.json`: cells, seeds joined to one series, families of models."""

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from dhn.checks import from_json
from dhn.errors import UserError
from dhn.reproduction.results import FILE, SCHEMA

Cell = Mapping[str, Any]

FAMILIES = ("dhn", "hnn", "vanilla", "cnn", "reference")


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """One model in one experiment on one system: the cells that differ in their seed alone."""

    label: str
    family: str
    cells: tuple[Cell, ...]

    @property
    def first(self) -> Cell:
        return self.cells[0]

    def values(self, metric: str) -> np.ndarray:
        """The metric of every seed that has it; JSON's null was too large for a number."""
        have = [cell["metrics"][metric] for cell in self.cells if metric in cell.get("metrics", {})]
        return np.array([math.inf if x is None else float(x) for x in have])

    def mean(self, metric: str) -> float:
        """Geometric for errors, which differ by orders of magnitude."""
        found = self.values(metric)
        if not found.size:
            return math.nan
        return float(_geometric(found) if "mse" in metric else found.mean())

    def curve(self, name: str) -> "Curve | None":
        """Mean and range over the seeds, at the time steps that all of them have."""
        have = [c["curves"] for c in self.cells if (c.get("curves") or {}).get(name)]
        have = [c for c in have if c.get("step") and len(c["step"]) == len(c[name])]
        if not have:
            return None
        steps = sorted(set.intersection(*(set(c["step"]) for c in have)))
        rows = [dict(zip(c["step"], numbers(c[name]), strict=True)) for c in have]
        values = np.array([[row[step] for step in steps] for row in rows])
        return Curve(np.array(steps), values)

    @property
    def example(self) -> Mapping[str, Any] | None:
        """One trajectory and its prediction, of the first seed that kept one."""
        return next((e for c in self.cells if (e := (c.get("curves") or {}).get("example"))), None)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """Values per time step, one row a seed."""

    steps: Int[np.ndarray, " h"]
    values: Float[np.ndarray, "seeds h"]

    @property
    def mean(self) -> Float[np.ndarray, " h"]:
        """Geometric, as errors differ by orders of magnitude."""
        return _geometric(self.values)

    @property
    def low(self) -> Float[np.ndarray, " h"]:
        return self.values.min(0)

    @property
    def high(self) -> Float[np.ndarray, " h"]:
        return self.values.max(0)


def read_results(directory: Path) -> dict[str, Any]:
    """What `dhn reproduce` wrote into that folder."""
    path = directory / FILE
    try:
        results = from_json(path.read_bytes())
    except FileNotFoundError:
        raise UserError(
            f"{directory} has no {FILE}; expected the folder of a reproduction."
        ) from None
    except (ValueError, OSError) as error:
        raise UserError(f"{path} cannot be read: {error}; run `dhn reproduce` again.") from error
    check(results, str(path))
    return results


def check(results: Any, where: str = FILE) -> None:
    """Complain about a file of another kind, or from another version."""
    if not isinstance(results, dict) or not isinstance(results.get("cells"), list):
        raise UserError(f"{where} is not a file of results: expected an object with `cells`.")
    if results.get("schema") != SCHEMA:
        raise UserError(
            f"{where} has schema {results.get('schema')!r}, but this version reads {SCHEMA}; "
            f"run `dhn reproduce` again."
        )


def family(cell: Cell) -> str:
    """Which of `FAMILIES` a model belongs to."""
    kind = str(cell.get("kind", "")).lower()
    if kind == "neighbour":
        return "cnn"
    return kind if kind in FAMILIES else "reference"


def task(cell: Cell) -> str:
    """Which of the experiment's measurements a cell is, where it has several."""
    return str(cell.get("task") or (cell.get("config") or {}).get("task") or "")


def tasks(cells: Iterable[Cell], experiment: str, system: str) -> list[str]:
    """The tasks of an experiment in the order in which they come."""
    chosen = (c for c in cells if (c.get("experiment"), c.get("system")) == (experiment, system))
    return list(dict.fromkeys(task(cell) for cell in chosen))


def series(
    cells: Iterable[Cell], experiment: str, system: str, of_task: str | None = None
) -> list[Series]:
    """Cells of one experiment with the seeds joined, families in their order."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        here = (cell.get("experiment"), cell.get("system")) == (experiment, system)
        if here and of_task in (None, task(cell)):
            groups.setdefault(str(cell.get("model", cell.get("name"))), []).append(cell)
    made = [Series(label, family(group[0]), tuple(group)) for label, group in groups.items()]
    return sorted(made, key=lambda one: (FAMILIES.index(one.family), _natural(one.label)))


def systems(cells: Iterable[Cell], experiment: str) -> list[str]:
    """The systems of an experiment, the single pendulum before the double."""
    found = {str(c["system"]) for c in cells if c.get("experiment") == experiment}
    return sorted(found, key=lambda name: (name != "single_pendulum", name))


def without_block(label: str) -> str:
    """The model's label without its block size and stride."""
    return re.sub(r"[\s,(]*\b[bs]\s*=?\s*\d+\)?", "", label).strip() or label


def metric_names(shown: Sequence[Series]) -> list[str]:
    """All numbers that the cells carry, in the order in which they come."""
    names: dict[str, None] = {}
    for one in shown:
        for cell in one.cells:
            names.update(dict.fromkeys(cell.get("metrics", {})))
    return list(names)


def numbers(values: Iterable[Any]) -> np.ndarray:
    """Floats; what JSON could not hold is NaN."""
    return np.array([math.nan if x is None else float(x) for x in values])


def _geometric(values: np.ndarray) -> Any:
    """Over the first axis; as seen from a logarithmic axis, the middle."""
    return np.exp(np.log(np.maximum(values, 1e-300)).mean(0))


def _natural(label: str) -> list[Any]:
    """`b=8` before `b=16`."""
    parts = re.split(r"(\d+)", label)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
