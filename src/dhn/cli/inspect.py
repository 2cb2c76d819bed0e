"""`dhn inspect`: what is in a file of trajectories."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import Common, Data
from dhn.cli.outputs import PICTURES, check_output
from dhn.cli.result import Console, Result, draw_table


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Show what is in a file of trajectories, as a table and as a picture.

    Example: dhn inspect dp.npz --plot dp.png
    """

    file: Data
    plot: Annotated[Path | None, tyro.conf.arg(metavar="PICTURE")] = None
    """Draw time series, phase portraits and energy into this .png, .svg or .pdf."""


def run(args: Arguments, common: Common) -> Result:
    """Read the file, gather its facts and draw it if asked."""
    if args.plot is not None:
        check_output(args.plot, inputs=(args.file,), endings=PICTURES)

    from dhn.files import read
    from dhn.reports.inspect import facts, figure
    from dhn.reports.style import save

    data = read(args.file)
    found = {"file": str(args.file), **facts(data), "plot": args.plot and str(args.plot)}
    if args.plot is not None:
        save(figure(data, seed=common.seed), args.plot)
    return Result(found, lambda console: _draw(console, found))


def _draw(console: Console, found: dict[str, Any]) -> None:
    time = found["time"]
    unit = f" {time['unit']}" if time["unit"] else ""
    step = f"every {time['step']:.6g}{unit}" if time["step"] else "at uneven times"
    console.print(
        f"{found['file']}: {found['trajectories']} trajectories of {found['system'] or 'unnamed'}, "
        f"{found['states']} states each, t = {time['start']:.6g} to {time['end']:.6g}{unit} {step}"
    )
    console.print(f"measured: {found['known']:.2%} of the states", end="")
    console.print(f"; predicted: {found['predicted']:.2%}" if found["predicted"] else "")

    rows = []
    for row in found["coordinates"]:
        name = row["name"]
        kind = "angle" if row["angle"] else "coordinate"
        rows.append((name, kind + (f" [{row['unit']}]" if row["unit"] else ""), *_ends(row["q"])))
        for letter, kind in (("p", "momentum"), ("v", "velocity")):
            if row[letter]:
                rows.append((f"{letter}_{name}", kind, *_ends(row[letter])))
    for name, values in found["params"].items():
        rows.append((name, "parameter", *_ends(values)))
    if found["energy"]:
        rows.append(("H", "energy", *_ends(found["energy"]["range"])))
    draw_table(console, ("quantity", "kind", "smallest", "largest"), rows)
    if found["energy"]:
        change = found["energy"]["relative_change"]
        console.print(
            f"relative change of energy along a trajectory: "
            f"median {change['median']:.2g}, largest {change['max']:.2g}"
        )
    if found["plot"]:
        console.print(f"picture: {found['plot']}")


def _ends(values: dict[str, float]) -> tuple[str, str]:
    return f"{values['min']:.6g}", f"{values['max']:.6g}"
