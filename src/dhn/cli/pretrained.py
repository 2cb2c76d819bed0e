"""`dhn pretrained`: which models come with the package."""

import dataclasses
from typing import Annotated, Any, Literal, final

import tyro

from dhn.cli.arguments import Common
from dhn.cli.result import Console, Result, draw_table


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """List the models that come with the package: they answer without training.

    Example: dhn pretrained list

    Example: dhn forecast pretrained:double_pendulum new.npz --observe 16 -o forecast.npz

    `pretrained:NAME` stands wherever the folder of a trained model does.
    """

    what: Annotated[
        tyro.conf.Positional[Literal["list"]], tyro.conf.arg(help="What to do; list is all.")
    ] = "list"


def run(args: Arguments, common: Common) -> Result:
    """Read what each model records about itself."""
    from dhn.estimator.pretrained import facts, names

    found = {name: facts(name) for name in names()}
    return Result(found, lambda console: _draw(console, found))


def _draw(console: Console, found: dict[str, Any]) -> None:
    rows = []
    for name, model in found.items():
        ranges = (
            "  ".join(f"{key}={low:.3g}:{high:.3g}" for key, (low, high) in model[part].items())
            for part in ("params", "initial")
        )
        error = f"{model['errors']['median']:.1e}"
        rows.append((name, f"{model['time_step']:.4g}", *ranges, error))
    draw_table(console, ("model", "time step", "parameter ranges", "start ranges", "error"), rows)
    console.print(
        "error: median over fresh trajectories of the mean squared error of 112 states predicted "
        "from 16, angles in units of pi/2, other coordinates in standard deviations"
    )
