"""The options that say where independent cells run, alike for `dhn reproduce` and `dhn sweep`."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from annotated_types import Le

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


def make_executor(
    folder: Path, kind: str, workers: int, partition: str | None, time: str, array_limit: int
) -> "AbstractExecutor":
    """What these options name; those of the other executor must be left at their defaults."""
    minutes = math.ceil(seconds("--time", time) / 60)
    if kind == "slurm":
        if workers != 2:
            raise UserError("--workers belongs to local processes; with SLURM use --array-limit.")
        from dhn.jobs.slurm import SlurmExecutor

        return SlurmExecutor(folder, minutes=minutes, partition=partition, array_limit=array_limit)
    if partition is not None or time != "1h" or array_limit != 256:
        raise UserError("--partition, --time and --array-limit belong to --executor slurm.")
    from dhn.jobs.local import LocalExecutor

    return LocalExecutor(folder, workers)
