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

    from dhn.cli.compilation import open_model
    from dhn.cli.parts import in_parts
    from dhn.cli.waiting import waiting
    from dhn.estimator import Mechanics
    from dhn.estimator.reconstruction import warning
    from dhn.files.pieces import open_pieces

    with open_pieces(args.data) as data:
        model = open_model(args.run)
        if isinstance(model, Mechanics):
            raise UserError(
                f"{args.run} holds mechanics, which have no latent code to infer parameters from; "
                f"their coefficients are printed by `dhn train` and stand in `dhn report`."
            )
        probe = model.probe(args.target)

        def ask(part, _):
            found = model.reconstruct(part)
            truth = part.params.get(args.target, np.full(len(part), np.nan))
            return *found.parameters[args.target], truth, found.result

        with waiting("fitting codes", enabled=not args.json) as report:
            parts = zip(*in_parts(data, ask, report), strict=True)
            *arrays, result = (list(x) for x in parts)
            estimate, errors, truth = (np.concatenate(x) for x in arrays)
        ids = data.ids
    values: dict[str, Any] = {
        "target": args.target,
        "trajectories": len(ids),
        "estimates": dict(zip(ids, estimate.tolist(), strict=True)),
        "standard_errors": dict(zip(ids, errors.tolist(), strict=True)),
        "probe_error": probe.error,
        "warning": warning([x for part in result for x in part], ids),
    }
    if np.isfinite(truth).any():
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
