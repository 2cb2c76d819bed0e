"""`dhn infer`: a system's parameter from its trajectories."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import Data, Json, RunFolder, Seed
from dhn.cli.outputs import check_output
from dhn.cli.result import Console, Result
from dhn.errors import UserError


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Infer a parameter of new trajectories from their latent codes.

    Example: dhn infer runs/dp new.npz --target l2
    """

    run: RunFolder
    data: Data
    target: str
    """A parameter that the training data carry."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = None
    """Write one line a trajectory into this .csv file."""
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Autodecode, then apply the probe fitted on the training codes."""
    if args.output is not None:
        check_output(args.output, inputs=(args.data,), endings=(".csv",))

    import numpy as np

    from dhn.cli.compilation import open_run
    from dhn.cli.waiting import waiting

    opened, data = open_run(args.run, args.data)
    model = opened.network
    if model is None:
        raise UserError(
            f"{args.run} holds mechanics, which have no latent code to infer parameters from; "
            f"their coefficients are printed by `dhn train` and stand in `dhn report`."
        )
    probe = model.probe(args.target)
    with waiting("fitting codes", enabled=not args.json):
        found = model.reconstruct(data)
    estimate, errors = found.parameters[args.target]
    truth = data.params.get(args.target)
    values: dict[str, Any] = {
        "target": args.target,
        "trajectories": len(data),
        "estimates": dict(zip(data.ids, estimate.tolist(), strict=True)),
        "standard_errors": dict(zip(data.ids, errors.tolist(), strict=True)),
        "probe_error": probe.error,
        "warning": found.warning(),
    }
    if truth is not None and np.isfinite(truth).any():
        error, spread = np.nanmean((estimate - truth) ** 2), np.nanvar(truth)
        values["mse"] = float(error)
        values["r2"] = float(1 - error / spread) if spread > 0 else None
    if args.output is not None:
        import csv

        from dhn.files.atomic import atomic_path
        from dhn.files.formats.csv import guarded

        with (
            atomic_path(args.output) as temporary,
            open(temporary, "w", newline="", encoding="utf-8") as file,
        ):
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["trajectory", guarded(args.target), "standard_error"])
            for name, value in values["estimates"].items():
                table.writerow([guarded(name), value, values["standard_errors"][name]])
        values["output"] = str(args.output)
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("trajectory", values["target"], "standard error", box=None, pad_edge=False)
    for name, value in list(values["estimates"].items())[:10]:
        table.add_row(name, f"{value:.6g}", f"{values['standard_errors'][name]:.2g}")
    console.print(table)
    if len(values["estimates"]) > 10:
        console.print(f"... {len(values['estimates']) - 10} more (--json or -o shows all)")
    console.print(
        f"of which the probe's own (cross-validated on the training codes): "
        f"{values['probe_error']:.2g}"
    )
    if values["warning"] is not None:
        console.print(f"warning: {values['warning']}", soft_wrap=True)
    if "mse" in values:
        share = "" if values["r2"] is None else f", R2 {values['r2']:.6f}"
        console.print(f"against the file: MSE {values['mse']:.3g}{share}")
