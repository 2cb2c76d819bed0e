"""The arguments that commands share, so that they are named and explained alike everywhere."""

import contextlib
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import tyro
from annotated_types import Ge, Gt, Le, Lt

from dhn.checks import from_json, seconds
from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.jobs.executor import AbstractExecutor

# Ranges are stated by `annotated_types`, which pydantic checks: importing pydantic itself would
# take a third of the time in which `dhn --help` answers.
PositiveInt = Annotated[int, Ge(1)]
Positive = Annotated[float, Gt(0), Lt(math.inf)]
NotNegative = Annotated[float, Ge(0), Lt(math.inf)]

Output = Annotated[
    Path,
    tyro.conf.arg(
        aliases=["-o"],
        metavar="FILE",
        help="File to write; the ending chooses the format (.npz, .csv, .mat, ...).",
    ),
]
Data = Annotated[
    tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE", help="File of trajectories.")
]


RunFolder = Annotated[
    tyro.conf.Positional[Path],
    tyro.conf.arg(
        metavar="RUN",
        help="Folder of a trained model, as made by `dhn train`; or pretrained:NAME.",
    ),
]


@final
@dataclasses.dataclass(frozen=True)
class Common:
    """The options of every command."""

    seed: Annotated[
        int, Ge(0), Lt(2**63), tyro.conf.arg(metavar="INT", help="Seed of every random choice.")
    ] = 0
    json: Annotated[
        tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(help="Print the result as JSON.")
    ] = False
    config: Annotated[
        Path | None,
        tyro.conf.arg(metavar="FILE", help="TOML file of options; those given here win."),
    ] = None
    verbose: Annotated[
        tyro.conf.FlagCreatePairsOff[bool],
        tyro.conf.arg(help="Show versions, the time taken and the memory used."),
    ] = False
    log: Annotated[
        Path | None,
        tyro.conf.arg(metavar="FILE", help="Add what happens, errors in full, to this file."),
    ] = None


def named(words: Sequence[str], flag: str, rule: str = "expects NAME=VALUE,") -> dict[str, str]:
    """The texts of options such as `--set width=64`, by name; the last of the same name wins."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, found[name] = word.partition("=")
        if not name or not equals:
            raise UserError(f"{flag} {rule} got {word!r}.")
    return found


def named_values(words: Sequence[str], flag: str) -> dict[str, Any]:
    """`named`, with values that are JSON where they can be, else text."""
    rule = "takes NAME=VALUE, such as width=64;"
    found: dict[str, Any] = dict(named(words, flag, rule))
    for name, text in found.items():
        with contextlib.suppress(ValueError):
            found[name] = from_json(text)
    for name in ("seed", "preset"):
        if name in found:
            raise UserError(
                f"the {name} has an option of its own: use --{name} instead of {flag} {name}=..."
            )
    return found


def page_of(run: Path, name: str) -> Path:
    """Where a page about a run goes: into its folder, or here for a model of the package."""
    package, _, model = str(run).partition("pretrained:")
    return Path(f"{model}-{name}") if model and not package else run / name


Results = Annotated[
    Path, tyro.conf.arg(aliases=["-o"], metavar="DIR", help="Folder for the results.")
]
Pairs = Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME=VALUE")]
Executor = Annotated[
    Literal["local", "slurm"],
    tyro.conf.arg(help="Processes of this machine, or job arrays of a SLURM cluster."),
]
Workers = Annotated[
    PositiveInt,
    Le(4096),
    tyro.conf.arg(metavar="INT", help="Local processes, of one thread each."),
]
Partition = Annotated[
    str | None, tyro.conf.arg(metavar="NAME", help="Partition of the SLURM jobs.")
]
JobTime = Annotated[
    str,
    tyro.conf.arg(
        metavar="TIME",
        help="Limit of a SLURM job (30m, 4h); a job near it saves itself and queues again.",
    ),
]
ArrayLimit = Annotated[
    PositiveInt, tyro.conf.arg(metavar="INT", help="Jobs of a SLURM array that run at a time.")
]


def make_executor(args: Any) -> "AbstractExecutor":
    """What these options name; those of the other executor must be left at their defaults."""
    minutes = math.ceil(seconds("--time", args.time) / 60)
    if args.executor == "slurm":
        if args.workers != 2:
            raise UserError("--workers belongs to local processes; with SLURM use --array-limit.")
        from dhn.jobs.slurm import SlurmExecutor

        return SlurmExecutor(
            args.output, minutes=minutes, partition=args.partition, array_limit=args.array_limit
        )
    if args.partition is not None or args.time != "1h" or args.array_limit != 256:
        raise UserError("--partition, --time and --array-limit belong to --executor slurm.")
    from dhn.jobs.local import LocalExecutor

    return LocalExecutor(args.output, args.workers)
