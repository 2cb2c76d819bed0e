"""`dhn train`: a model from trajectories."""

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import tyro

from dhn.checks import seconds
from dhn.cli.arguments import Common, Data, Pairs, PositiveInt, named_values
from dhn.cli.outputs import refuse_twice
from dhn.cli.result import Console, Result
from dhn.cli.simulate import NamedRanges, named_ranges
from dhn.cli.sources import describe, sibling
from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.trajectories import Trajectories


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Train a Denoising Hamiltonian Network on trajectories.

    Example: dhn train dp.npz -o runs/dp --budget 5m

    Example: dhn train dp.npz -o runs/paper --preset paper --steps 20000 --set width=64

    Example: dhn train few.npz -o runs/few --from pretrained:double_pendulum --steps 2000

    If the data were split by `dhn import`, the file NAME-validation beside NAME-train sets the
    error bars; `--validation` names another one, or none.

    A .zarr folder of more than 4096 trajectories is read in pieces while training goes on.
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
    preset: str = "default"
    """default, blocks, transformer, paper (the paper's own) or paper-smooth."""
    set: Pairs = ()
    """Any option of the model or the recipe: block_size=4, width=64, learning_rate=0.002, ..."""
    start: Annotated[Path | None, tyro.conf.arg(name="from", metavar="RUN")] = None
    """Begin with the weights of this trained model, or of pretrained:NAME."""
    system: Annotated[str | None, tyro.conf.arg(metavar="SYSTEM")] = None
    """Positions only: the equations of this system (a name, or file.py:name), parameters fitted."""
    param: NamedRanges = ()
    """Of that system: g=9.81 holds a parameter, l1=0.1:0.5 bounds it."""
    validation: Annotated[Path | None, tyro.conf.arg(metavar="FILE|none")] = None
    """Trajectories kept from training, on which the error bars of forecasts are set."""
    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None
    """Train with several processes: where the first one listens. `srun` needs none of the three."""
    processes: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """How many processes there are."""
    rank: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Number of this process, from 0; the first one writes."""


def run(args: Arguments, common: Common) -> Result:
    """Read, train with checkpoints, leave the model in the folder."""
    from dhn.cli.processes import find_peers, together

    peers = find_peers(args.coordinator, args.processes, args.rank)
    with contextlib.ExitStack() as files:
        if peers is None:
            return _train(args, common, files)
        return together(
            peers, lambda: _train(args, common, files), lambda: _lost(args.output), common.json
        )


def _lost(output: Path) -> str:
    from dhn.estimator.storage import has_begun

    how = (
        f"with --resume, and the training goes on from the last checkpoint in {output}"
        if has_begun(output)
        else "as before; nothing was saved yet"
    )
    return (
        f"another process of this training has ended, or cannot be reached; start all of them "
        f"again {how}"
    )


def _train(args: Arguments, common: Common, files: contextlib.ExitStack) -> Result:
    if args.steps is not None and args.budget is not None:
        raise UserError("give --steps or --budget, not both.")
    if args.output == Path("."):  # also what an empty text becomes
        raise UserError("name a folder of its own for the model, such as -o runs/first.")
    budget = None if args.budget is None else seconds("--budget", args.budget)
    options = named_values(args.set, "--set")

    from dhn.cli.asking import use_cache
    from dhn.estimator import DHN, wants_mechanics
    from dhn.estimator.storage import check_run_folder
    from dhn.files import read
    from dhn.training.devices import is_first_process

    use_cache()
    system = _system(args)
    train, data = _opened(args.data, files)
    check_run_folder(args.output, args.resume)
    held = _validation(args) if is_first_process() else None
    if held is not None:
        refuse_twice((args.data, held))
    kept = None if held is None else read(held)
    named = None if held is None or kept is None else (held, kept)
    notes = []
    if held is not None and args.validation is None:
        notes.append(f"error bars are set on {held}, beside the training file")
    if not common.json:
        for note in notes:
            print(note, flush=True)
    if wants_mechanics(data) and args.preset == "default" and args.start is None:
        if data is not train:
            raise UserError(
                f"{args.data} has no momenta, and mechanics are fitted by one process, in memory; "
                f"start one, with a part of the data, or choose a preset of a network."
            )
        source = describe(args.output, train=(args.data, data), validation=named)
        return _mechanics(args, common, system, data, kept, budget, options, source, notes)
    if args.system is not None or args.param:
        raise UserError(
            "--system and --param belong to mechanics, which are fitted to data without momenta; "
            "leave them out, or leave the momenta out of the data."
        )
    source = None
    if is_first_process():
        known = data if len(data) == len(train) else train
        source = describe(args.output, train=(args.data, known), validation=named)
    start = None if args.start is None else _start(args, args.start)
    preset = args.preset if start is None else start.config
    model = DHN(preset, **{**options, "seed": common.seed}).fit(
        train, steps=args.steps, budget=budget,
        directory=args.output, resume=args.resume, progress=not common.json, calibrate=True,
        validation=kept, source=source, start=start,
    )  # fmt: skip
    if not is_first_process():
        return Result({}, lambda console: None, silent=True)
    found = {
        "run": str(args.output),
        "model": model.config.kind,
        **model.trained.summary,
        "parameters": model.parameters,
        "code_size": model.trained.config.latent_size,
        "notes": notes,
    }
    return Result(found, lambda console: _draw(console, found))


def _opened(path: Path, files: contextlib.ExitStack) -> "tuple[Any, Trajectories]":
    """The training data, and some trajectories of them: all if they are in memory."""
    import jax

    from dhn.files import open, read
    from dhn.files.pieces import open_pieces
    from dhn.files.source import InMemory
    from dhn.files.stored import is_store
    from dhn.training.pools import Pooling

    if is_store(path) and len(stored := open(path)) > Pooling().trajectories:
        return stored, stored[:1]
    if jax.process_index() > 0:
        source = files.enter_context(open_pieces(path, verify=False))
        return source, source.rows(0, 1)
    data = read(path)
    return (InMemory(data) if jax.process_count() > 1 else data), data


def _start(args: Arguments, path: Path):
    """The trained network that `--from` names."""
    from dhn.estimator import load

    if args.preset != "default":
        raise UserError("--from brings its own configuration; leave --preset out.")
    model = load(path).network
    if model is None:
        raise UserError(f"{path} holds mechanics; training can begin with networks only.")
    return model


def _mechanics(args, common, system, data, kept, budget, options, source, notes) -> Result:
    """Mechanics fitted to positions, which have no steps and no options of a network."""
    from dhn.estimator import Mechanics

    networks_only = {"--steps": args.steps is not None, "--set": options, "--resume": args.resume}
    for name, given in networks_only.items():
        if given:
            raise UserError(
                f"{name} belongs to networks, but these data have no momenta, so that mechanics "
                f"are fitted to the positions. Leave it out, or choose a preset of a network."
            )
    model = Mechanics(system, named_ranges(args.param, "--param")).fit(
        data, validation=kept, budget=budget, directory=args.output, progress=not common.json,
        source=source,
    )  # fmt: skip
    physics = model.physics()
    found = {
        "run": str(args.output), "model": "mechanics", **model.record, "physics": physics,
        "notes": notes,
    }  # fmt: skip
    return Result(found, lambda console: _draw_physics(console, found, list(data.names)))


def _system(args: Arguments):
    """The system that is named, made known, so that its models can be opened again."""
    if args.system is None:
        return None
    from dhn.cli.user_system import resolve_system
    from dhn.systems import register

    return register(resolve_system(args.system))


def _draw_physics(console: Console, found: dict[str, Any], names: list[str]) -> None:
    from dhn.reports.physics import lines

    count = found["trajectories"]
    console.print(
        f"{found['run']}: mechanics fitted to {count} run{'s' * (count > 1)} in "
        f"{found['seconds']:.0f} s"
    )
    for line in lines(found["physics"], names):
        console.print(line)


def _validation(args: Arguments) -> Path | None:
    """The file that was named, else the one beside the training file."""
    if args.validation is None:
        return sibling(args.data, "validation")
    return None if str(args.validation) == "none" else args.validation


def _draw(console: Console, found: dict[str, Any]) -> None:
    validation = found["validation"]
    console.print(
        f"{found['run']}: "
        f"{found['model']} with {found['parameters']} parameters, "
        f"codes of {found['code_size']} number{'s' * (found['code_size'] != 1)}, "
        f"{found['steps']} steps on {found['trajectories']} trajectories "
        f"in {found['seconds']:.0f} s"
        + (f", validation loss {validation:.3g}" if validation is not None else "")
    )
