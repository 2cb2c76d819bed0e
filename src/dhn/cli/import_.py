"""`dhn import`: measured files to trajectories."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import tyro
from pydantic import Field

from dhn.cli.arguments import Json, Output, Seed, check_writable
from dhn.cli.result import Result
from dhn.errors import UserError

WHOLE = "all"
PARTS = ("train", "validation", "test")
"""Parts of a split; each has a file of its own."""

if TYPE_CHECKING:
    from rich.console import Console

Columns = Annotated[str | None, tyro.conf.arg(metavar="COLUMN,...")]
Column = Annotated[str | None, tyro.conf.arg(metavar="COLUMN")]
Numbers = Annotated[str | None, tyro.conf.arg(metavar="NUMBER,...")]
Time = Annotated[
    Annotated[float, Field(allow_inf_nan=False)] | None, tyro.conf.arg(metavar="SECONDS")
]
Flag = tyro.conf.FlagCreatePairsOff[bool]
Positive = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | None, tyro.conf.arg(metavar="FLOAT")
]


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Turn measured files (text, CSV, .mat, ...) into trajectories on a uniform grid.

    Columns go by name or by position from 1; in .mat files by variable, `Y:2` being the second
    row of Y and `Y_*` all variables that begin so. Several files are several trials. Positions at
    their own times, as a mechanical model takes them: --positions-only --keep-times.

    Example: dhn import run1.csv run2.csv --time t --q theta1,theta2 --v w1,w2 -o data.npz

    Example: dhn import film.csv --markers 1,2,3,4,5,6 --y-down --rate 400 --dt 0.01
    --segment 128 --hop 64 --split 0.7,0.15,0.15 -o film.npz
    """

    files: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILE...")]
    """Measured files, each one trial or (see --trial) several."""
    output: Output
    time: Column = None
    """Column of the times; found by its name if it is called t or time."""
    q: Columns = None
    """Columns of the coordinates; NAME=COLUMN renames."""
    v: Columns = None
    """Columns of the velocities; without them they are computed from the coordinates."""
    p: Columns = None
    """Columns of the momenta, where they are measured."""
    trial: Column = None
    """Column that labels trials; `restart`: a new trial begins where time goes back."""
    rate: Positive = None
    """Samples a second, for files without times."""
    time_unit: Annotated[str | None, tyro.conf.arg(metavar="UNIT")] = None
    """Unit of the times (s, ms, us, ns, min, h); the header's, else s, by default."""
    from_: Annotated[Time, tyro.conf.arg(name="from")] = None
    """Leave out earlier rows; seconds, on the clock of the file."""
    to: Time = None
    """Leave out later rows."""
    markers: Columns = None
    """x and y columns (or names) of markers on a chain of links, pivot first: q = its angles."""
    pivot: Annotated[str | None, tyro.conf.arg(metavar="X,Y|fit")] = None
    """Fixed pivot that is not among the markers, or `fit`: the centre of the first one's circle."""
    y_down: Flag = False
    """The markers' y axis points down, as in pixels."""
    angles: Annotated[str | None, tyro.conf.arg(metavar="NAME,...|all")] = None
    """Coordinates that are angles; they are made continuous."""
    degrees: Flag = False
    """Angles and their velocities are in degrees."""
    zero: Numbers = None
    """Reading of each coordinate where it should be zero, such as --zero=180 for a pendulum."""
    wrapped: Flag = False
    """Leave angles as they are instead of making them continuous."""
    missing: Numbers = None
    """Numbers that mean "not measured", such as -9999 (write --missing=-9999)."""
    mass: Annotated[str | None, tyro.conf.arg(metavar="NUMBER,...|fit")] = None
    """Masses, one a coordinate, or a mass matrix row by row: p = M v; `fit` reads the ratios of
    masses that pull on each other off their motion."""
    system: Annotated[str | None, tyro.conf.arg(metavar="SYSTEM")] = None
    """System whose Lagrangian turns velocities into momenta: a name or path/to/file.py:name."""
    param: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME=VALUE")
    ] = ()
    """A constant of that system."""
    positions_only: Flag = False
    """Write coordinates alone: no velocities, no momenta."""
    keep_times: Flag = False
    """Keep the times of the rows instead of a uniform grid; nothing is resampled."""
    dt: Positive = None
    """Time between two states; the sampling step by default."""
    gap: Positive = None
    """A hole in the times longer than this begins a new trial."""
    smooth: Flag = False
    """Smooth the coordinates too, by the fit that gives velocities; of a split, training alone."""
    edges: Literal["mark", "drop", "keep"] = "mark"
    """States with uncertain velocities at the ends of a run: unknown, left out, or kept."""
    segment: Annotated[Annotated[int, Field(ge=2)] | None, tyro.conf.arg(metavar="INT")] = None
    """Cut runs into trajectories of this many states."""
    hop: Annotated[Annotated[int, Field(ge=1)] | None, tyro.conf.arg(metavar="INT")] = None
    """States from the start of one segment to the next; no overlap by default."""
    codes: Literal["own", "run", "all"] = "run"
    """Which trajectories share a latent code: none, the segments of a run, or all."""
    split: Numbers = None
    """Fractions of each run in time: train,test or train,validation,test, a file for each."""
    test_trials: Annotated[str | None, tyro.conf.arg(metavar="PATTERN")] = None
    """Trials that go to the test file as a whole, such as vad*."""
    validation_trials: Annotated[str | None, tyro.conf.arg(metavar="PATTERN")] = None
    """Trials that go to the validation file as a whole, beside --test-trials."""
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Read, clean, bring onto a grid, write one file or one a part, and report every change."""
    from dhn.files import write_all
    from dhn.files.foreign import ImportOptions, run_import
    from dhn.files.loading import format_of

    check_writable(args.output)
    format_of(args.output).implementation()
    split = args.split is not None or args.test_trials is not None
    for path in args.files:
        for part in PARTS if split else (WHOLE,):
            if _same_file(path, _part_path(args.output, part)):
                raise UserError(
                    f"{path} is an input and would be replaced by the output; choose another name."
                )
    options: dict[str, Any] = {
        name: getattr(args, name)
        for name in (
            *("time", "trial", "rate", "time_unit", "y_down", "degrees", "dt", "gap", "smooth"),
            *("edges", "segment", "hop", "codes", "test_trials", "validation_trials"),
            *("from_", "to", "positions_only", "keep_times"),
        )
    }
    for name in ("q", "v", "p", "markers", "angles"):
        options[name] = _words(getattr(args, name), name)
    for name in ("missing", "split", "zero"):
        options[name] = _numbers(getattr(args, name), name)
    for name in ("mass", "pivot"):
        value = getattr(args, name)
        options[f"fit_{name}"] = value == "fit"
        options[name] = () if value == "fit" else _numbers(value, name)
    options["unwrap"] = not args.wrapped
    options["params"] = _params(args.param)
    if args.system is not None:
        from dhn.cli.user_system import resolve_system

        options["system"] = resolve_system(args.system)
    imported = run_import(list(args.files), ImportOptions.of(**options))
    paths = {part: _part_path(args.output, part) for part in imported.parts}
    write_all({paths[part]: data for part, data in imported.parts.items()})
    written = {part: str(path) for part, path in paths.items()}
    found = {"written": written, **imported.report.to_dict()}

    def draw(console: "Console") -> None:
        lines = imported.report.lines()
        width = max(len(label) for label, _ in lines)
        for label, text in lines:
            console.print(f"{label:<{width}}  {text}", soft_wrap=True, markup=False)
        names = list(written.values())
        console.print(f"written: {', '.join(names)}. Look: dhn inspect {names[0]}", soft_wrap=True)

    return Result(found, draw)


def _part_path(output: Path, part: str) -> Path:
    return output if part == WHOLE else output.with_name(f"{output.stem}-{part}{output.suffix}")


def _same_file(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)


def _words(text: str | None, flag: str) -> tuple[str, ...]:
    words = tuple(x.strip() for x in text.split(",")) if text is not None else ()
    if not all(words):
        raise UserError(f"--{flag} expects names separated by commas, got {text!r}.")
    return words


def _numbers(text: str | None, flag: str) -> tuple[float, ...]:
    try:
        return tuple(float(x) for x in text.split(",")) if text is not None else ()
    except ValueError:
        raise UserError(f"--{flag} expects numbers separated by commas, got {text!r}.") from None


def _params(words: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            found[name] = float(text)
        except ValueError:
            raise UserError(f"--param expects NAME=VALUE, got {word!r}.") from None
    return found
