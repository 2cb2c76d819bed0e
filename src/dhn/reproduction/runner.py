"""Runs the cells of the grid that have no result yet, and measures each of them."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dhn.jobs import cells as files
from dhn.jobs.cells import Task, environment, lay_out
from dhn.jobs.executor import AbstractExecutor, Outcome, run_tasks
from dhn.reproduction.cell import Cell
from dhn.reproduction.grid import MEASURES, groups
from dhn.reproduction.lab import Lab, Stopwatch


def place(cell: Cell, folder: Path) -> Path:
    """The folder of a cell, below the folder of the results."""
    return folder / "cells" / cell.name


def finished(cell: Cell, folder: Path) -> bool:
    """Whether this cell has its result."""
    return files.finished(place(cell, folder))


def run_grid(
    cells: Sequence[Cell],
    folder: Path,
    executor: AbstractExecutor,
    *,
    xla_flags: str = "",
    show: bool = True,
) -> Outcome:
    """Run what is not finished, cells that share a trained model in one process."""
    lay_out({place(c, folder): c.model_dump(mode="json") for c in cells if not finished(c, folder)})
    variables = environment(folder, xla_flags)
    tasks = [
        Task(f"{__name__}:measure", tuple(place(cell, folder) for cell in group), variables)
        for group in groups(cells)
    ]
    return run_tasks(tasks, executor, show)


def measure(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The result of one cell, in its own folder below the results."""
    cell, watch = Cell.model_validate(values), Stopwatch()
    measured = MEASURES[cell.experiment](cell, Lab(cell, folder.parent.parent))
    made = None if measured.model is None else measured.model.trained
    return {
        "name": cell.name,
        "experiment": cell.experiment,
        "task": cell.task,
        "system": cell.data.system,
        "model": cell.model,
        "kind": cell.kind,
        "block_size": cell.block_size,
        "stride": cell.stride,
        "seed": cell.seed,
        "config": {
            **cell.model_dump(mode="json"),
            "model_config": None if made is None else made.config.model_dump(mode="json"),
        },
        "training": {} if made is None else made.training.model_dump(mode="json"),
        "parameters": 0 if measured.model is None else measured.model.parameters,
        "train_seconds": 0.0 if made is None else float(made.summary["seconds"]),
        "steps": 0 if made is None else int(made.summary["steps"]),
        "seconds": watch.seconds,
        "metrics": measured.metrics,
        "curves": measured.curves,
    }


def timestamp() -> str:
    """Now, in universal time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
