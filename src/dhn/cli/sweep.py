"""`dhn sweep`: many trainings over options, on this machine or a cluster."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import (
    ArrayLimit,
    Common,
    Executor,
    JobTime,
    Pairs,
    Partition,
    PositiveInt,
    Results,
    Workers,
    make_executor,
    named_values,
)
from dhn.cli.outputs import refuse_other_results
from dhn.cli.result import Console, Result, draw_table
from dhn.errors import UserError

SHOWN = 20  # rows of the table on a terminal; the file has all


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Train over lists or ranges of options, and compare the results.

    Example: dhn sweep dp.npz -o sweep --over width=32,64 --over seed=0,1,2 --steps 2000

    Example: dhn sweep dp.npz --over learning_rate=log:1e-3..1e-1 --random 20 --executor slurm

    Example: dhn sweep status sweep

    Every cell is a run of its own in DIR/cells; the same command again does what is missing. A
    grid takes lists and ranges of so many values (`width=16..64/4`).
    """

    data: Annotated[
        tyro.conf.Positional[Path],
        tyro.conf.arg(metavar="FILE", help="File of trajectories, or the word status."),
    ]
    folder: Annotated[
        tyro.conf.Positional[Path | None],
        tyro.conf.arg(metavar="DIR", help="After status: the folder of the sweep."),
    ] = None
    output: Results = Path("sweep")
    over: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME=VALUES")
    ] = ()
    """A swept option: a list (32,64,128) or a range ([log:]LOW..HIGH[/COUNT]); `seed`, too."""
    random: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """So many cells drawn at random instead of the whole grid."""
    steps: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """Optimiser steps of every cell; the recipe's own number by default."""
    preset: str = "default"
    """Recipe that the options change."""
    set: Pairs = ()
    """An option that all cells share."""
    validation: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Trajectories that the models are judged by; without, the loss on a part of FILE kept aside,
    which is comparable only between models with the same loss."""
    executor: Executor = "local"
    workers: Workers = 2
    partition: Partition = None
    time: JobTime = "1h"
    array_limit: ArrayLimit = 256


def run(args: Arguments, common: Common) -> Result:
    """Run the cells that are missing, then draw the table and the figure."""
    if str(args.data) == "status":
        return _status(args)
    if args.folder is not None:
        raise UserError(f"one file is swept over; got {args.folder} as well.")
    refuse_other_results(args.output)

    from dhn.jobs.sweep import Axis, plan, run_sweep, score

    cells = plan(
        args.data, [Axis.parse(text) for text in args.over],
        options=named_values(args.set, "--set"), preset=args.preset, steps=args.steps,
        validation=args.validation, random=args.random, seed=common.seed,
    )  # fmt: skip
    executor = make_executor(args)
    outcome = run_sweep(cells, args.output, executor, show=not common.json)

    import json

    rows = sorted(json.loads((args.output / "sweep.json").read_text()), key=score)
    values: dict[str, Any] = {
        "folder": str(args.output),
        "cells": len(cells),
        "run": len(outcome.done),
        "finished_before": len(outcome.skipped),
        "failed": outcome.failed,
        "results": rows,
    }
    if rows:
        from dhn.reports.sweep import sweep_figure

        label = "validation loss" if args.validation is None else "median error on validation"
        values["figure"] = str(args.output / "sweep.png")
        sweep_figure(rows, score, label, args.output / "sweep.png")
    return Result(values, lambda console: _draw(console, values), code=1 if outcome.failed else 0)


def _status(args: Arguments) -> Result:
    if args.folder is None:
        raise UserError("name the folder: dhn sweep status DIR.")
    from dhn.jobs.sweep import status

    rows = status(args.folder)
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["state"]] = counts.get(row["state"], 0) + 1

    def draw(console: Console) -> None:
        for row in rows:
            console.print(f"{row['state']:<10} {row['name']}  {row['reason']}")
        console.print(", ".join(f"{count} {state}" for state, count in counts.items()))

    return Result({"cells": rows, "counts": counts}, draw)


def _draw(console: Console, values: dict[str, Any]) -> None:
    rows = values["results"]
    if rows:
        measures = [name for name in ("median", "mse", "validation") if name in rows[0]]
        shown = [
            (
                *(str(row["options"][name]) for name in row["swept"]),
                *("none" if row[name] is None else f"{row[name]:.3g}" for name in measures),
            )
            for row in rows[:SHOWN]
        ]
        draw_table(console, (*rows[0]["swept"], *measures), shown)
    for name, why in values["failed"].items():
        console.print(f"failed: {name}: {why}")
    if values["failed"]:
        console.print("run the same command again to try the failed cells once more")
    console.print(
        f"{len(rows)} of {values['cells']} cells have results ({values['run']} run now, "
        f"{values['finished_before']} before)"
    )
    if rows:
        console.print(f"figure: {values['figure']}, table: {values['folder']}/sweep.json")
