"""Gathers finished cells into one document, and writes it as JSON and as a table."""

import csv
import io
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dhn.checks import from_json
from dhn.files.atomic import write_text
from dhn.jobs.cells import results as results_of
from dhn.jobs.cells import write_json
from dhn.reproduction.cell import Cell
from dhn.reproduction.claims import claims
from dhn.reproduction.contests import contests
from dhn.reproduction.runner import place

SCHEMA = 1  # version of the file
FILE = "results.json"
COLUMNS = (
    "experiment", "task", "system", "model", "kind", "block_size", "stride", "seed", "parameters",
    "train_seconds", "steps", "seconds",
)  # fmt: skip


def collect(cells: Sequence[Cell], folder: Path) -> list[dict[str, Any]]:
    """The results there are, in the order of the grid."""
    return results_of([place(cell, folder) for cell in cells])


def machine() -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("jax", "equinox", "optax", "numpy")},
    }


def assemble(
    cells: Sequence[Cell], folder: Path, preset: str, command: str, started: str, finished: str
) -> dict[str, Any]:
    """The document that a report is made of."""
    found = collect(cells, folder)
    # Tiny networks and few steps say nothing about a claim.
    judged = [] if preset == "smoke" else found
    return {
        "schema": SCHEMA,
        "preset": preset,
        "version": version("dhn"),
        "command": command,
        "started": started,
        "finished": finished,
        "machine": machine(),
        "cells": found,
        "claims": [row.row() for row in (*claims(judged), *contests(judged))],
    }


def write_results(results: dict[str, Any], folder: Path) -> None:
    """results.json and tables.csv."""
    write_json(results, folder / FILE)
    names: dict[str, None] = {}
    for cell in results["cells"]:
        names |= dict.fromkeys(cell["metrics"])
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*COLUMNS, *names, "name"])
    for cell in results["cells"]:
        metrics = [cell["metrics"].get(name, "") for name in names]
        table.writerow([*(cell[column] for column in COLUMNS), *metrics, cell["name"]])
    write_text(folder / "tables.csv", text.getvalue())


def started_before(folder: Path) -> str | None:
    """When the first run into this folder began."""
    try:
        return from_json((folder / FILE).read_bytes())["started"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
