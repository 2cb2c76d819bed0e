"""`dhn report`: a page about a trained model, or about a reproduction, drawn anew."""

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import Common, PositiveInt, page_of
from dhn.cli.outputs import PAGES, check_output, refuse_twice
from dhn.cli.result import Console, Result
from dhn.errors import UserError

ALIKE = 1e-2
"""Share by which the time steps of measured data may differ."""


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Write one HTML page about a trained model, or about the results of a reproduction.

    Example: dhn report runs/dp test.npz -o report.html

    Example: dhn report results

    The page is a single file: it can be sent, printed and read without a network.
    """

    folder: Annotated[
        tyro.conf.Positional[Path],
        tyro.conf.arg(metavar="DIR", help="Folder made by `dhn train` or `dhn reproduce`."),
    ]
    data: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="FILE")] = None
    """Trajectories that the model has not seen: forecasts are compared with them. By default
    NAME-test beside NAME-train, where the run was trained on that."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="PAGE")] = None
    """The page; report.html in the folder by default."""
    pictures: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Write every picture of the page into this folder too, as SVG."""
    train: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The training data, from which the linear model to beat learns too; the run's by default."""
    observe: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """States of each trajectory that the model may see; 16, or half of a shorter one."""
    ahead: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """States to forecast from many starting points; as in `dhn evaluate` by default."""


def run(args: Arguments, common: Common) -> Result:
    """The kind of folder follows from its contents."""
    output = args.output or page_of(args.folder, "report.html")
    if output.parent == args.folder and not args.folder.is_dir():
        raise UserError(
            f"{args.folder} is not a folder; expected one of `dhn train` or `reproduce`."
        )
    check_output(output, endings=PAGES)
    if args.pictures is not None and args.pictures.exists() and not args.pictures.is_dir():
        raise UserError(f"{args.pictures} is a file; name a folder for the pictures.")
    if args.pictures is not None and not args.pictures.is_dir():
        check_output(args.pictures)
    if (args.folder / "results.json").is_file():
        return _with_pictures(args, output, _reproduction(args, output))

    from dhn.cli.asking import open_model, use_cache

    use_cache()

    from dhn.cli.sources import find, recall, training_states
    from dhn.cli.waiting import waiting
    from dhn.files import read
    from dhn.reports.run import write_run_report

    model = open_model(args.folder)
    tested = args.data or find(model, args.folder, "test")
    data = None if tested is None else read(tested)
    train = training_states(model, args.folder) if args.train is None else read(args.train)
    if args.train is not None and tested is not None and data is not None:
        refuse_twice((args.train, tested))
        if train is None or train.dim != data.dim:
            raise UserError(f"{args.train} and {tested} have other coordinates; name data alike.")
        if not math.isclose(train.usual_step, data.usual_step, rel_tol=ALIKE):
            raise UserError(
                f"{args.train} has time step {train.usual_step:.6g}, {tested} has "
                f"{data.usual_step:.6g}; name data alike."
            )
    with waiting("writing the report", enabled=not common.json):
        values = write_run_report(
            args.folder,
            data,
            output,
            train=train,
            validation=recall(model, args.folder, "validation"),
            observe=args.observe,
            ahead=args.ahead,
            tested="" if tested is None else str(tested),
        )
    return _with_pictures(args, output, values)


def _with_pictures(args: Arguments, page: Path, values: dict[str, Any]) -> Result:
    if args.pictures is not None:
        from dhn.reports.html import save_pictures

        saved = save_pictures(page.read_text(encoding="utf-8"), args.pictures)
        values = {**values, "pictures": [str(path) for path in saved]}
    return Result(values, lambda console: _draw(console, values))


def _reproduction(args: Arguments, output: Path) -> dict[str, Any]:
    if args.data is not None:
        raise UserError(
            f"{args.folder} holds the results of a reproduction, which take no data; "
            f"leave {args.data} out."
        )
    from dhn.files.atomic import write_text
    from dhn.reproduction.report import document
    from dhn.reproduction.report_results import read_results

    results = read_results(args.folder)
    write_text(output, document(results))
    return {
        "report": str(output),
        "cells": len(results["cells"]),
        "verdict": [f"{c['id']} {c['form']}: {c['verdict']}" for c in results.get("claims") or []],
    }


def _draw(console: Console, values: dict[str, Any]) -> None:
    for sentence in values["verdict"]:
        console.print(sentence)
    console.print(f"report: {values['report']}")
