"""`dhn train`: a model from trajectories."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import tyro

from dhn.cli.arguments import Data, Json, PositiveInt, Seed, seconds
from dhn.cli.result import Result
from dhn.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Train a Denoising Hamiltonian Network on trajectories.

    Example: dhn train dp.npz -o runs/dp --budget 5m

    Example: dhn train dp.npz -o runs/paper --preset paper --steps 20000 --set width=64
    """

    data: Data
    output: Annotated[
        Path, tyro.conf.arg(aliases=["-o"], metavar="RUN", help="Folder for the trained model.")
    ]
    steps: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """Optimiser steps; the recipe's own number by default."""
    budget: Annotated[str | None, tyro.conf.arg(metavar="TIME")] = None
    """Train for so long instead: 90s, 5m, 1h."""
    resume: tyro.conf.FlagCreatePairsOff[bool] = False
    """Go on, bit for bit, where an interrupted training of the same command stopped."""
    model: str = "dhn"
    """dhn, or a baseline: hnn, vanilla."""
    preset: str = "default"
    """default (measured best), paper (the paper's own), paired, transformer."""
    set: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME=VALUE")
    ] = ()
    """Any option of the model or the recipe: block_size=4, width=64, learning_rate=0.002, ..."""
    tensorboard: tyro.conf.FlagCreatePairsOff[bool] = False
    """Write curves for TensorBoard too (needs dhn[tensorboard])."""
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Read, train with checkpoints, leave the model in the folder."""
    if args.steps is not None and args.budget is not None:
        raise UserError("give --steps or --budget, not both.")
    budget = None if args.budget is None else seconds(args.budget)
    options = named_values(args.set, "--set")
    if args.output.exists() and not args.output.is_dir():
        raise UserError(f"{args.output} is a file; name a folder for the run.")

    from dhn.cli.compilation import use_cache
    from dhn.data import read
    from dhn.inference.estimator import make_estimator

    use_cache()
    data = read(args.data)
    finished = args.output / "model.safetensors"
    if finished.exists() and not args.resume:
        raise UserError(
            f"{args.output} holds a trained model already; choose another folder, or remove it."
        )
    model = make_estimator(args.model, args.preset, {**options, "seed": args.seed})
    model.fit(
        data,
        steps=args.steps,
        budget=budget,
        directory=args.output,
        resume=args.resume,
        progress=not args.json,
        tensorboard=args.tensorboard,
        calibrate=True,
    )
    found = {
        "run": str(args.output),
        "model": model.config.kind,
        **model.trained.summary,
        "parameters": model.parameters,
    }
    return Result(found, lambda console: _draw(console, found))


def named_values(items: tuple[str, ...], flag: str) -> dict[str, Any]:
    """`name=value` pairs; values are JSON where they can be, else text."""
    import json

    found = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise UserError(f"{flag} takes NAME=VALUE, such as width=64; got {item!r}.")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _draw(console: "Console", found: dict[str, Any]) -> None:
    validation = found["validation"]
    console.print(
        f"{found['run']}: {found['model']} with {found['parameters']} parameters, "
        f"{found['steps']} steps on {found['trajectories']} trajectories "
        f"in {found['seconds']:.0f} s"
        + (f", validation loss {validation:.3g}" if validation is not None else ""),
        soft_wrap=True,
    )
