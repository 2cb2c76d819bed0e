"""The grid: one generated table of cells, and how to choose among them."""

import fnmatch
from collections.abc import Callable, Sequence

from dhn.errors import UserError
from dhn.reproduction import completion, curves, fit, interpolation, representation, stress
from dhn.reproduction.cell import Cell
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.peers import experiment as peers
from dhn.reproduction.presets import EXPERIMENTS, ON_REQUEST, get_preset

TABLES: dict[str, Callable[..., list[Cell]]] = {
    "fit": fit.cells,
    "completion": completion.cells,
    "representation": representation.cells,
    "interpolation": interpolation.cells,
    "stress": stress.cells,
    "curves": curves.cells,
    "peers": peers.cells,
}
MEASURES: dict[str, Callable[[Cell, Lab], Measured]] = {
    "fit": fit.measure,
    "completion": completion.measure,
    "representation": representation.measure,
    "interpolation": interpolation.measure,
    "stress": stress.measure,
    "curves": curves.measure,
    "peers": peers.measure,
}


def make_grid(preset: str, experiments: Sequence[str] = (), seed: int = 0) -> list[Cell]:
    """All cells of these experiments (default: `EXPERIMENTS`), in the order of the report."""
    for name in experiments:
        if name not in TABLES:
            raise UserError(f"unknown experiment {name!r}; expected one of {', '.join(TABLES)}.")
    chosen = [x for x in (*EXPERIMENTS, *ON_REQUEST) if x in (experiments or EXPERIMENTS)]
    scale = get_preset(preset)
    return [cell for name in chosen for cell in TABLES[name](scale, seed)]


def only(cells: Sequence[Cell], pattern: str | None) -> list[Cell]:
    """The cells whose name contains the pattern, or matches it where it has wildcards."""
    if pattern is None:
        return list(cells)
    wild = pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"
    found = [cell for cell in cells if fnmatch.fnmatchcase(cell.name, wild)]
    if not found:
        raise UserError(f"no cell matches {pattern!r}; list the cells to see their names.")
    return found


def groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Work for one process: cells that share a trained model or differ from it in the seed.

    A model is trained once for all its cells, and compiled once for all its seeds.
    """
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.recipe_key, []).append(cell)
    return list(found.values())


def shard(cells: Sequence[Cell], text: str | None) -> list[Cell]:
    """Part `i/n` of the grid, counted from 1; a model is never trained by two shards."""
    if text is None:
        return list(cells)
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second)):
        raise UserError(f"a shard is i/n with 1 <= i <= n, such as 1/4; got {text!r}.")
    chosen = groups(cells)[int(first) - 1 :: int(second)]
    return [cell for group in chosen for cell in group]
