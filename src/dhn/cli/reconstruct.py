"""`dhn reconstruct`: whatever is known goes in, the rest comes out."""

import dataclasses
from typing import Any, final

from dhn.cli.arguments import Common, Data, Output, RunFolder
from dhn.cli.asking import Answers, draw_warning
from dhn.cli.result import Console, Result


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Reconstruct every unknown number of trajectories, with error bands.

    Example: dhn reconstruct runs/dp holes.csv -o filled.csv

    An empty cell (or NaN) is an unknown number: lost rows, one of two angles, no momenta at all,
    or rows with nothing but a later time. Measurements at uneven times keep their times.
    """

    run: RunFolder
    data: Data
    output: Output


def run(args: Arguments, common: Common) -> Result:
    """Ask the model and write all states with quantiles."""
    answers = Answers(args, common, "reconstructing")
    parameters: dict[str, dict[str, dict[str, float]]] = {}
    known = [0, 0]
    with answers.opened() as (model, data):

        def ask(part, _):
            found = model.reconstruct(part)
            answers.add(part, found)
            for name, pair in found.parameters.items():
                rows = parameters.setdefault(name, {})
                for id, value, error in zip(part.ids, *pair, strict=True):
                    rows[id] = {"estimate": float(value), "standard_error": float(error)}
            known[0] += int(part.known_q.sum())
            known[1] += int((~part.known_q).sum())
            return found.trajectories

        answers.write(data, ask)
    values = answers.values() | {
        "known": known[0],
        "reconstructed": known[1],
        "parameters": parameters,
    }
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories, {values['known']} known "
        f"coordinates, {values['reconstructed']} unknown ones estimated, {values['seconds']:.1f} s"
    )
    for name, rows in values["parameters"].items():
        id, first = next(iter(rows.items()))
        console.print(
            f"{name}: {first['estimate']:.6g} ± {first['standard_error']:.2g} (trajectory {id})"
        )
    draw_warning(console, values)
