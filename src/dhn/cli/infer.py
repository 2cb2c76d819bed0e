"""`dhn infer`: a system's parameter from its trajectories."""

import contextlib
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import Common, Data, RunFolder
from dhn.cli.asking import draw_warning, in_parts, open_model, use_cache
from dhn.cli.outputs import ZARR, check_output, is_zarr
from dhn.cli.result import Console, Result, draw_table
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
    """Write one line a trajectory into this .csv file, or the trajectories with the parameter and
    its standard error into a .zarr folder."""


def run(args: Arguments, common: Common) -> Result:
    """Autodecode, then apply the probe fitted on the training codes."""
    if args.output is not None:
        check_output(args.output, inputs=(args.data,), endings=(".csv", ZARR))

    use_cache()

    import numpy as np

    from dhn.cli.waiting import waiting
    from dhn.estimator.reconstruction import warning
    from dhn.files.pieces import open_pieces
    from dhn.files.storing import writing

    with open_pieces(args.data) as data:
        model = open_model(args.run).network
        if model is None:
            raise UserError(
                f"{args.run} holds mechanics, which have no latent code to infer parameters from; "
                f"their coefficients are printed by `dhn train` and stand in `dhn report`."
            )
        probe = model.probe(args.target)

        def ask(part, _):
            found = model.reconstruct(part)
            value, error = found.parameters[args.target]
            if store is not None:
                own = {args.target: value, f"{args.target}_error": error}
                store.append(part.replace(params={**part.params, **own}))
            truth = part.params.get(args.target, np.full(len(part), np.nan))
            return value, error, truth, found.result, part.ids

        folder = args.output if args.output is not None and is_zarr(args.output) else None
        with (
            waiting("fitting codes", enabled=not common.json) as report,
            contextlib.nullcontext() if folder is None else writing(folder) as store,
        ):
            parts = list(in_parts(data, ask, report))
    estimate, errors, truth = (np.concatenate([part[k] for part in parts]) for k in range(3))
    result = [x for part in parts for x in part[3]]
    ids = [x for part in parts for x in part[4]]
    values: dict[str, Any] = {
        "target": args.target,
        "trajectories": len(ids),
        "estimates": dict(zip(ids, estimate.tolist(), strict=True)),
        "standard_errors": dict(zip(ids, errors.tolist(), strict=True)),
        "probe_error": probe.error,
        "warning": warning(result, tuple(ids)),
    }
    if np.isfinite(truth).any():
        error, spread = np.nanmean((estimate - truth) ** 2), np.nanvar(truth)
        values["mse"] = float(error)
        values["r2"] = float(1 - error / spread) if spread > 0 else None
    if args.output is not None:
        values["output"] = str(args.output)
        if folder is None:
            rows = zip(ids, estimate.tolist(), errors.tolist(), strict=True)
            _write_table(args.output, args.target, rows)
    return Result(values, lambda console: _draw(console, values))


def _write_table(path: Path, target: str, rows: Iterable[tuple[str, float, float]]) -> None:
    import csv

    from dhn.files.atomic import atomic_path
    from dhn.files.formats.csv import guarded

    with atomic_path(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["trajectory", guarded(target), "standard_error"])
        table.writerows((guarded(name), value, error) for name, value, error in rows)


def _draw(console: Console, values: dict[str, Any]) -> None:
    rows = [
        (name, f"{value:.6g}", f"{values['standard_errors'][name]:.2g}")
        for name, value in list(values["estimates"].items())[:10]
    ]
    draw_table(console, ("trajectory", values["target"], "standard error"), rows)
    if len(values["estimates"]) > 10:
        console.print(f"... {len(values['estimates']) - 10} more (--json or -o shows all)")
    console.print(
        f"of which the probe's own (cross-validated on the training codes): "
        f"{values['probe_error']:.2g}"
    )
    draw_warning(console, values)
    if "mse" in values:
        share = "" if values["r2"] is None else f", R2 {values['r2']:.6f}"
        console.print(f"against the file: MSE {values['mse']:.3g}{share}")
