"""`dhn evaluate`: how good a model is on trajectories whose future is known."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import tyro

from dhn.cli.arguments import Data, Json, PositiveInt, RunFolder, Seed
from dhn.cli.result import Result
from dhn.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

HORIZONS = (1, 2, 4, 8, 16, 32, 64, 112, 256, 512, 1024)


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Compare completions with the truth: error per horizon, energy, drift, time.

    Example: dhn evaluate runs/dp test.npz --observe 16 --plot evaluation.png
    """

    run: RunFolder
    data: Data
    observe: PositiveInt = 16
    """States of each trajectory that the model may see."""
    samples: PositiveInt = 1
    """More than one: an ensemble, whose bands are drawn and whose coverage is counted."""
    plot: Annotated[Path | None, tyro.conf.arg(metavar="PICTURE")] = None
    """Draw prediction over truth, phase portrait, energy and errors into this file."""
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Complete every trajectory from its first states and measure the rest."""
    import time

    from dhn.baselines.extrapolation import persistence
    from dhn.cli.compilation import open_run
    from dhn.evaluation.metrics import compare
    from dhn.evaluation.uncertainty import coverage, crps

    if args.plot is not None:
        from dhn.reports.style import check_format

        check_format(args.plot)
    model, data = open_run(args.run, args.data)
    if data.q.shape[1] <= args.observe:
        raise UserError(
            f"--observe {args.observe} leaves nothing to predict: the trajectories of "
            f"{args.data} have {data.q.shape[1]} states. Observe fewer."
        )
    start = time.perf_counter()
    fits = model.fit_codes(data[:, : args.observe])
    found = model.forecast(
        data[:, : args.observe],
        data.q.shape[1] - args.observe,
        samples=args.samples,
        seed=args.seed,
        fits=fits,
    )
    elapsed = time.perf_counter() - start
    metrics = compare(found, data)
    still = compare(persistence(data[:, : args.observe], data.q.shape[1] - args.observe), data)
    ahead = metrics.steps - args.observe + 1
    values: dict[str, Any] = {
        "run": str(args.run),
        "data": str(args.data),
        "observed": args.observe,
        **metrics.summary(),
        "persistence": still.summary()["mse"],
        "poorly_explained": int(model.poorly_explained(fits).sum()),
        "seconds": elapsed,
        "training_seconds": model.trained.summary["seconds"],
        "horizons": {
            int(h): {
                "mse": float(metrics.mse_normalised[ahead == h][0]),
                "persistence": float(still.mse_normalised[ahead == h][0]),
                "energy_mse": None
                if metrics.energy_mse is None
                else float(metrics.energy_mse[ahead == h][0]),
            }
            for h in HORIZONS
            if (ahead == h).any()
        },
    }
    if args.samples > 1:
        values["coverage"] = coverage(found, data)
        values["crps"] = crps(found, data)
    if args.plot is not None:
        from dhn.reports.forecast import figure
        from dhn.reports.style import save

        title = f"{args.run}: {args.observe} states seen, {len(metrics.steps)} predicted"
        save(figure(found, data, metrics, title), args.plot)
        values["plot"] = str(args.plot)
    return Result(values, lambda console: _draw(console, values))


def _draw(console: "Console", values: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("states ahead", "MSE of q", "persistence", "MSE of energy", box=None)
    for horizon, row in values["horizons"].items():
        energy = row["energy_mse"]
        table.add_row(
            str(horizon),
            f"{row['mse']:.3g}",
            f"{row['persistence']:.3g}",
            "" if energy is None else f"{energy:.3g}",
        )
    console.print(table)
    console.print(
        f"mean {values['mse']:.3g}, median trajectory {values['median']:.3g}, worst "
        f"{values['worst']:.3g} (normalised: angles in units of pi/2); persistence "
        f"{values['persistence']:.3g}",
        soft_wrap=True,
    )
    if values.get("energy_mse") is not None:
        console.print(
            f"energy: MSE {values['energy_mse']:.3g}, median relative drift over the second half "
            f"{values['energy_drift']:.2g}"
        )
    if "coverage" in values:
        shares = ", ".join(f"{k} band {v:.0%}" for k, v in values["coverage"].items())
        console.print(f"coverage: {shares}; CRPS {values['crps']:.3g}")
    console.print(f"{values['seconds']:.1f} s (training took {values['training_seconds']:.0f} s)")
    if values.get("plot"):
        console.print(f"picture: {values['plot']}")
