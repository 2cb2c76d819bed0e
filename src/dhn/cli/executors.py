"""The options that say where independent cells run, alike for `dhn reproduce` and `dhn sweep`."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dhn.checks import seconds
from dhn.cli.arguments import PositiveInt
from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.jobs.executor import AbstractExecutor

Executor = Annotated[
    Literal["local", "slurm"],
    tyro.conf.arg(help="Processes of this machine, or job arrays of a SLURM cluster."),
]
Workers = Annotated[
    PositiveInt, tyro.conf.arg(metavar="INT", help="Local processes, of one thread each.")
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
