"""`dhn evaluate`: how good a model is on trajectories whose future is known."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import tyro

from dhn.cli.arguments import Common, Data, PositiveInt, RunFolder
from dhn.cli.outputs import PICTURES, check_output
from dhn.cli.result import Console, Result, draw_table
from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.evaluation.blocks import BlockDiagnostics

MOST = 1000
"""Forecasts that are measured."""
NOT_RIVALS = ("ahead", "states", "time", "forecast")
HORIZONS = (1, 2, 4, 8, 16, 32, 64, 112, 256, 512, 1024)  # states ahead


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Compare completions with the truth: error per horizon, energy, drift, time.

    Example: dhn evaluate runs/dp test.npz --observe 16 --plot evaluation.png

    Example: dhn evaluate runs/track track-test.npz --observe 32 --ahead 80 --samples 16

    Long measured runs are forecast two periods ahead from many starting points, other trajectories
    to their end from their beginning.
    """

    run: RunFolder
    data: Data
    observe: PositiveInt = 16
    """States of each trajectory that the model may see."""
    ahead: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """States to forecast from many starting points."""
    plot: Annotated[Path | None, tyro.conf.arg(metavar="PICTURE")] = None
    """Draw prediction over truth, phase portrait, energy and errors into this file."""


def run(args: Arguments, common: Common) -> Result:
    """Complete every trajectory from its first states and measure the rest."""
    import time

    from dhn.cli.asking import open_run, use_cache

    use_cache()

    from dhn.cli.sources import recall
    from dhn.cli.waiting import waiting
    from dhn.evaluation.trial import horizons, try_out, with_past
    from dhn.evaluation.uncertainty import coverage, crps
    from dhn.reports.verdict import warning

    if args.plot is not None:
        check_output(args.plot, inputs=(args.data,), endings=PICTURES)
    model, data = open_run(args.run, args.data)
    train, validation = (recall(model, args.run, part) for part in ("train", "validation"))
    data = with_past(data, train, validation, args.observe)
    if data.q.shape[1] <= args.observe:
        raise UserError(
            f"--observe {args.observe} leaves nothing to predict: the trajectories of "
            f"{args.data} have {data.q.shape[1]} states. Observe fewer."
        )
    start = time.perf_counter()
    with waiting("forecasting, beside rivals", enabled=not common.json):
        trial = try_out(
            model, data, train=train, validation=validation, observe=args.observe,
            ahead=args.ahead, most=MOST,
        )  # fmt: skip
    elapsed = time.perf_counter() - start
    found, metrics, still = trial.prediction, trial.metrics, trial.others[0].metrics
    ahead = metrics.steps - args.observe + 1
    values: dict[str, Any] = {
        "run": str(args.run),
        "data": str(args.data),
        "observed": args.observe,
        "forecasts": len(trial.truth),
        **metrics.summary(),
        **{rival.name: rival.metrics.summary()["mse"] for rival in trial.others},
        "period": trial.period,
        "periods": horizons(trial),
        "poorly_explained": trial.poor,
        "seconds": elapsed,
        "training_seconds": model.record["seconds"],
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
    values["coverage"] = coverage(found, trial.truth)
    values["crps"] = crps(found, trial.truth)
    values["valid_until"] = trial.valid_until()
    values["warning"] = warning(trial)
    values["blocks"] = None if trial.blocks is None else trial.blocks.summary()
    if args.plot is not None:
        from dhn.reports.run_figures import median_figure
        from dhn.reports.style import save

        title = f"{args.run}: {args.observe} states seen, {len(metrics.steps)} predicted"
        save(median_figure(found, trial.truth, metrics, title), args.plot)
        values["plot"] = str(args.plot)
    return Result(values, lambda console: _draw(console, values, trial.blocks))


def _draw(console: Console, values: dict[str, Any], blocks: "BlockDiagnostics | None") -> None:
    if values["warning"] is not None:
        console.print(values["warning"])
    rows = [
        (str(horizon), *(f"{x:.3g}" for x in row.values() if x is not None))
        for horizon, row in values["horizons"].items()
    ]
    names = ("states ahead", "MSE of q", "persistence", "MSE of energy")
    draw_table(console, names[: len(rows[0])] if rows else names, rows)
    _draw_periods(console, values)
    console.print(
        f"mean {values['mse']:.3g}, median trajectory {values['median']:.3g}, worst "
        f"{values['worst']:.3g} (normalised: angles in units of pi/2); persistence "
        f"{values['persistence']:.3g}"
    )
    if values.get("energy_mse") is not None:
        drift = values["energy_drift"]
        console.print(
            f"energy: MSE {values['energy_mse']:.3g}"
            + ("" if drift is None else f", median relative drift over the second half {drift:.2g}")
        )
    if "coverage" in values:
        shares = ", ".join(f"{k} band {v:.0%}" for k, v in values["coverage"].items())
        console.print(f"coverage: {shares}; CRPS {values['crps']:.3g}")
    if values["valid_until"] is not None:
        console.print(values["valid_until"]["sentence"])
    if blocks is not None:
        console.print(blocks.describe())
    console.print(f"{values['seconds']:.1f} s (training took {values['training_seconds']:.0f} s)")
    if values.get("plot"):
        console.print(f"picture: {values['plot']}")


def _draw_periods(console: Console, values: dict[str, Any]) -> None:
    """Root mean square errors in the data's units, beside the rivals'."""
    rivals = [name for name in values["periods"][0] if name not in NOT_RIVALS]
    rows = [
        (row["ahead"], str(row["states"]), *(f"{row[name]:.3g}" for name in ("forecast", *rivals)))
        for row in values["periods"]
    ]
    draw_table(console, ("ahead", "states", "RMS of q", *rivals), rows)
    if values["period"] is not None:
        console.print(f"{values['forecasts']} forecasts; period {values['period']:.3g}")
