"""A worker process: takes groups of cells as lines of JSON, leaves a result in each cell's folder.

Run by the runner as `python -m dhn.reproduction.worker`, in an environment made for it.
"""

import contextlib
import json
import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from dhn.files.atomic import atomic_path
from dhn.reproduction.cell import Cell

RESULT = "result.json"
ERROR = "error.txt"


def plain(value: Any) -> Any:
    """For JSON: six significant digits are enough, and a missing number is null."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def write_json(values: Any, path: Path, indent: int | None = None) -> None:
    """Whole or not at all."""
    with atomic_path(path) as temporary:
        text = json.dumps(plain(values), indent=indent, allow_nan=False)
        temporary.write_text(text, encoding="utf-8")


def run_cell(cell: Cell, folder: Path) -> None:
    """Measure one cell and write its result."""
    from dhn.reproduction.grid import MEASURES
    from dhn.reproduction.lab import Lab, Stopwatch

    watch = Stopwatch()
    place = folder / "cells" / cell.name
    place.mkdir(parents=True, exist_ok=True)
    (place / ERROR).unlink(missing_ok=True)
    measured = MEASURES[cell.experiment](cell, Lab(cell, folder))
    made = None if measured.model is None else measured.model.trained
    result = {
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
    write_json(result, place / RESULT)


def run_group(cells: list[Cell], folder: Path, say: Any) -> None:
    """One cell after the other; what goes wrong in one is written down and the next one begins."""
    for cell in cells:
        try:
            run_cell(cell, folder)
            say({"cell": cell.name})
        except Exception as error:
            place = folder / "cells" / cell.name
            place.mkdir(parents=True, exist_ok=True)
            with atomic_path(place / ERROR) as temporary:
                temporary.write_text(traceback.format_exc(), encoding="utf-8")
            say({"cell": cell.name, "error": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Groups come on standard input, reports go to standard output, all else to standard error."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        for line in sys.stdin:
            task = json.loads(line)
            cells = [Cell.model_validate(values) for values in task["cells"]]
            run_group(cells, Path(task["folder"]), say)
            say({"idle": True})


if __name__ == "__main__":
    main()
