"""Tables of a reproduction: a row a model, with size and training time beside its numbers."""

import math
from collections.abc import Sequence
from typing import Any

from dhn.reports.html import Html, duration, element, join, number, paragraph, table
from dhn.reproduction.report_results import Cell, Series, metric_names, series, tasks

METRICS = {
    "mse": "MSE of q",
    "mse_physical": "MSE of q, physical units",
    "median": "median trajectory",
    "worst": "worst trajectory",
    "blow_ups": "diverged",
    "energy_mse": "MSE of energy",
    "energy_drift": "relative drift of energy",
    "probe_mse": "MSE of l2/l1",
    "probe_r2": "R²",
    "probe_median": "median of squares",
    "mse_early": "MSE, first 16",
    "mse_late": "MSE, last 16",
    "valid_time": "steps valid, median",
    "valid_time_mean": "steps valid, mean",
    "energy_mse_median": "MSE of energy, median trajectory",
    "phase_steps": "steps out of phase",
}
UNSHOWN = ("states",)
"""How many states a metric counts is the same for all models of a table."""


def tables_by_task(cells: Sequence[Cell], experiment: str, system: str) -> list[Html]:
    """A table a task."""
    parts = []
    for task in tasks(cells, experiment, system):
        parts += [paragraph(element("b", task))] if task else []
        parts.append(model_table(series(cells, experiment, system, task)))
    return parts


def model_table(shown: Sequence[Series]) -> Html:
    """A row a model: the numbers behind the figure, with size and time beside them."""
    names = [name for name in metric_names(shown) if name not in UNSHOWN]
    header = ["model", "parameters", *(METRICS.get(n, n.replace("_", " ")) for n in names)]
    rows = [
        [
            one.label,
            _count(one.first.get("parameters")),
            *(_spread(one, name) for name in names),
            ", ".join(str(cell.get("seed", "–")) for cell in one.cells),
            duration(_mean_seconds(one)),
        ]
        for one in shown
    ]
    return table([*header, "seeds", "training"], rows)


def _spread(one: Series, name: str) -> Html | None:
    """Mean over the seeds, and their range where there are several."""
    values = one.values(name)
    if not values.size:
        return None
    mean = element("span", number(one.mean(name)), class_="x")
    if len(values) < 2 or values.min() == values.max():
        return mean
    ends = f"{number(float(values.min()))} to {number(float(values.max()))}"
    return join([mean, Html("<br>"), element("small", ends)], "")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> Any:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else value


def training_seconds(cell: Cell) -> float | None:
    value = cell.get("train_seconds")
    return float(value) if is_number(value) and value is not None else None


def _mean_seconds(one: Series) -> float:
    values = [s for cell in one.cells if (s := training_seconds(cell)) is not None]
    return sum(values) / len(values) if values else math.nan
