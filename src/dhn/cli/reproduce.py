"""`dhn reproduce`: the paper's experiments and the stress suite, with a report."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import (
    ArrayLimit,
    Common,
    Executor,
    JobTime,
    Partition,
    Results,
    Workers,
    make_executor,
)
from dhn.cli.outputs import refuse_other_results
from dhn.cli.result import Console, Result, draw_table


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Run the paper's experiments, fairly, and write one report.

    Example: dhn reproduce --preset quick -o results

    Example: dhn reproduce completion stress --preset quick -o results --only double-pendulum

    Every cell of the grid is a run of its own; the same command again does what is missing.
    """

    experiments: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="EXPERIMENT")
    ] = ()
    """fit, completion, representation, interpolation, stress (by default); curves, peers."""
    output: Results = Path("results")
    preset: str = "quick"
    """smoke (a trial of the whole grid), quick (a laptop), paper (the paper's sizes)."""
    list: tyro.conf.FlagCreatePairsOff[bool] = False
    """Show the cells and which of them are finished; run nothing."""
    only: Annotated[str | None, tyro.conf.arg(metavar="PATTERN")] = None
    """Only cells whose name contains this, or matches it (`*` and `?`)."""
    shard: Annotated[str | None, tyro.conf.arg(metavar="i/n")] = None
    """Part i of n, for several machines; run it once more without, in one folder, to join them."""
    executor: Executor = "local"
    workers: Workers = 2
    partition: Partition = None
    time: JobTime = "1h"
    array_limit: ArrayLimit = 256


def run(args: Arguments, common: Common) -> Result:
    """Run the cells that are missing, then judge the claims and draw the report."""
    refuse_other_results(args.output)

    from dhn.reproduction.grid import make_grid, only, shard
    from dhn.reproduction.presets import get_preset
    from dhn.reproduction.results import assemble, started_before, write_results
    from dhn.reproduction.runner import finished, run_grid, timestamp

    grid = make_grid(args.preset, args.experiments, common.seed)
    chosen = shard(only(grid, args.only), args.shard)
    if args.list:
        rows = [{"name": cell.name, "finished": finished(cell, args.output)} for cell in chosen]
        return Result({"cells": rows}, lambda console: _draw_list(console, rows))
    started = started_before(args.output) or timestamp()
    executor = make_executor(args)
    outcome = run_grid(
        chosen, args.output, executor,
        xla_flags=get_preset(args.preset).xla_flags, show=not common.json,
    )  # fmt: skip
    results = assemble(
        grid, args.output, args.preset, " ".join(["dhn", *sys.argv[1:]]), started, timestamp()
    )
    write_results(results, args.output)

    from dhn.reproduction.report import write_report

    report = write_report(results, args.output)
    values = {
        "folder": str(args.output),
        "report": str(report),
        "cells": len(results["cells"]),
        "of": len(grid),
        "run": len(outcome.done),
        "finished_before": len(outcome.skipped),
        "failed": outcome.failed,
        "claims": results["claims"],
    }
    return Result(values, lambda console: _draw(console, values))


def _draw_list(console: Console, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        console.print(f"{'done' if row['finished'] else '    '}  {row['name']}")
    done = sum(row["finished"] for row in rows)
    console.print(f"{len(rows)} cells, {done} finished")


def _draw(console: Console, values: dict[str, Any]) -> None:
    header = ("claim", "form", "verdict", "statement")
    rows = [(claim["id"], *(claim[name] for name in header[1:])) for claim in values["claims"]]
    draw_table(console, header, rows)
    console.print(
        f"{values['cells']} of {values['of']} cells have results "
        f"({values['run']} run now, {values['finished_before']} before)"
    )
    for name, why in values["failed"].items():
        console.print(f"failed: {name}: {why}")
    if values["failed"]:
        console.print("run the same command again to try the failed cells once more")
    console.print(f"report: {values['report']}")
