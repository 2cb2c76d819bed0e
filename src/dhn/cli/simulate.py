"""`dhn simulate`: trajectories from a system's equations."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, final

import tyro
from annotated_types import Ge, Gt, Le, Lt

from dhn.cli.arguments import Common, NotNegative, Output, Positive, PositiveInt, named
from dhn.cli.outputs import TRAJECTORIES, ZARR, check_output, is_zarr, save_pieces
from dhn.cli.result import Console, Result
from dhn.errors import UserError
from dhn.memory import disk_size

_BYTES = 8  # of a float64
_LEAST_BYTES = 4
"""Of a number in a file: half of a float64, since some formats compress."""
NamedRanges = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME=VALUE|LOW:HIGH")
]


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Simulate trajectories of a system, exactly or with the faults of measured data.

    Example: dhn simulate double_pendulum --trajectories 1000 --seed 0 -o dp.npz

    Example: dhn simulate double_pendulum --trajectories 1000000 -o dp.zarr

    Example: dhn simulate single_pendulum --param l=0.5:1.0 --initial theta=-1:1
    --noise 0.01 --gaps 0.1 -o measured.csv
    """

    system: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SYSTEM")]
    """A name that `dhn systems` lists, or path/to/file.py:name for a dhn.System of your own."""
    output: Output
    trajectories: PositiveInt = 100
    """How many trajectories."""
    steps: Annotated[PositiveInt | None, tyro.conf.arg(metavar="INT")] = None
    """Time steps, the system's own number by default; there is one state more than steps."""
    dt: Annotated[Positive | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Time between two states, the system's own by default."""
    param: NamedRanges = ()
    """A parameter's value, or the range from which each trajectory draws it."""
    initial: NamedRanges = ()
    """An initial coordinate (theta), velocity (v_theta) or momentum (p_theta), or its range."""
    damping: NotNegative = 0.0
    """Rate gamma of friction, dp/dt = -dH/dq - gamma p."""
    noise: NotNegative = 0.0
    """Measurement noise, as a fraction of each quantity's standard deviation."""
    gaps: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Fraction of the states lost at random."""
    subsample: Annotated[float, Gt(0), Le(1)] = 1.0
    """Fraction of the states kept at random, so that times are uneven."""


def run(args: Arguments, common: Common) -> Result:
    """Draw parameters and initial states, solve Hamilton's equations, write the file."""
    check_output(args.output, endings=(*TRAJECTORIES, ZARR))
    params = named_ranges(args.param, "--param")
    initial = named_ranges(args.initial, "--initial")

    import time

    from dhn.cli.asking import use_cache
    from dhn.cli.user_system import resolve_system
    from dhn.cli.waiting import waiting

    start = time.perf_counter()
    use_cache()

    from dhn.systems import simulate
    from dhn.systems.simulation import simulate_pieces

    system = resolve_system(args.system)
    states = 1 + (args.steps or system.steps)
    numbers = 2 * args.trajectories * states * system.dim * args.subsample
    in_pieces = is_zarr(args.output)
    size = (1 if in_pieces else _LEAST_BYTES / _BYTES) * _BYTES * numbers
    check_output(args.output, endings=(*TRAJECTORIES, ZARR), size=size)
    options: dict[str, Any] = {
        "trajectories": args.trajectories,
        "seed": common.seed,
        "params": params,
        "initial": initial,
        "steps": args.steps,
        "time_step": args.dt,
        "damping": args.damping,
        "noise": args.noise,
        "gaps": args.gaps,
        "subsample": args.subsample,
    }
    with waiting("simulating", enabled=not common.json) as report:
        options["progress"] = report
        lengths: list[int] = []

        def made():
            whole = () if in_pieces else (simulate(system, **options),)
            for data in simulate_pieces(system, **options) if in_pieces else whole:
                lengths.append(data.states)
                yield data

        save_pieces(made(), args.output, args.trajectories)
    n, states, d = args.trajectories, max(lengths), system.dim
    found = {
        "file": str(args.output),
        "system": system.name,
        "trajectories": n,
        "states": states,
        "coordinates": d,
        "seed": common.seed,
        "bytes": disk_size(args.output),
        "seconds": round(time.perf_counter() - start, 3),
    }

    def draw(console: Console) -> None:
        console.print(
            f"{n} trajectories of {states} states of {system.name} in {found['seconds']:.1f} s: "
            f"{args.output} ({found['bytes'] / 1e6:.1f} MB). Look: dhn inspect {args.output}"
        )

    return Result(found, draw)


def named_ranges(words: Sequence[str], flag: str) -> dict[str, float | tuple[float, float]]:
    """`l=0.7` is a value, `l=0.5:1.0` a range."""
    found: dict[str, float | tuple[float, float]] = {}
    rule = "expects NAME=VALUE or NAME=LOW:HIGH,"
    for word in words:
        ((name, text),) = named([word], flag, rule).items()
        if name in found:
            raise UserError(f"{flag} names {name!r} twice; keep one of them.")
        try:
            low, high = (float(x) for x in (text.split(":") if ":" in text else (text, text)))
        except ValueError:
            raise UserError(f"{flag} {rule} got {word!r}.") from None
        if low > high:
            raise UserError(f"{flag} {word}: the range ends before it begins; swap its ends.")
        found[name] = (low, high) if ":" in text else low
    return found
