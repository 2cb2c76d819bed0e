"""`dhn import`: measured files to trajectories."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal, final

import tyro

from dhn.cli.arguments import Common, Output
from dhn.cli.outputs import check_output, refuse_twice
from dhn.cli.result import Console, Result, draw_lines

Columns = Annotated[str | None, tyro.conf.arg(metavar="COLUMN,...")]
Column = Annotated[str | None, tyro.conf.arg(metavar="COLUMN")]
Numbers = Annotated[str | None, tyro.conf.arg(metavar="NUMBER,...")]
Time = Annotated[float | None, tyro.conf.arg(metavar="SECONDS")]
Number = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]
Count = Annotated[int | None, tyro.conf.arg(metavar="INT")]
Pattern = Annotated[str | None, tyro.conf.arg(metavar="PATTERN")]
Flag = tyro.conf.FlagCreatePairsOff[bool]


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Turn measured files (text, CSV, .mat, ...) into trajectories.

    Columns go by name or by position from 1; in .mat files by variable, `Y:2` being the second
    row of Y and `Y_*` all variables that begin so. Several files are several trials. Nothing is
    computed from the measurements: velocities and momenta are there only if they were measured.

    Example: dhn import run1.csv run2.csv --time t --q theta1,theta2 --angles all -o data.npz

    Example: dhn import film.csv --markers 1,2,3,4,5,6 --y-down --rate 400 --dt 0.01
    --split 0.7,0.15,0.15 -o film.npz
    """

    files: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILE...")]
    """Measured files, each one trial or (see --trial) several."""
    output: Output
    time: Column = None
    """Column of the times; found by its name if it is called t or time."""
    q: Columns = None
    """Columns of the coordinates; NAME=COLUMN renames."""
    v: Columns = None
    """Columns of the velocities, where they are measured."""
    p: Columns = None
    """Columns of the momenta, where they are measured."""
    trial: Column = None
    """Column that labels trials; `restart`: a new trial begins where time goes back."""
    rate: Number = None
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
    dt: Number = None
    """Resample to this time step; by default rows keep the times at which they were measured."""
    gap: Number = None
    """A hole in the times longer than this begins a new trial."""
    segment: Count = None
    """Cut runs into trajectories of this many states."""
    hop: Count = None
    """States from the start of one segment to the next; no overlap by default."""
    codes: Literal["own", "run", "all"] = "run"
    """Which trajectories share a latent code: none, the segments of a run, or all."""
    split: Numbers = None
    """Fractions of each run in time: train,test or train,validation,test, a file for each."""
    test_trials: Pattern = None
    """Trials that go to the test file as a whole, such as vad*."""
    validation_trials: Pattern = None
    """Trials that go to the validation file as a whole, beside --test-trials."""


def run(args: Arguments, common: Common) -> Result:
    """Read, clean, write one file or one a part, and report every change."""
    from dhn.files import write_all
    from dhn.files.files import format_of
    from dhn.files.foreign import PARTS, WHOLE, ImportOptions, run_import

    check_output(args.output)
    format_of(args.output).implementation()
    refuse_twice(args.files)
    split = args.split is not None or args.test_trials is not None
    for part in PARTS if split else (WHOLE,):
        check_output(_part_path(args.output, part), inputs=args.files)
    options = {k: x for k, x in vars(args).items() if k in ImportOptions.model_fields}
    imported = run_import(list(args.files), ImportOptions.of(**options))
    paths = {part: _part_path(args.output, part) for part in imported.parts}
    write_all({paths[part]: data for part, data in imported.parts.items()})
    written = {part: str(path) for part, path in paths.items()}
    found = {"written": written, **imported.report.to_dict()}

    def draw(console: Console) -> None:
        draw_lines(console, imported.report.lines())
        names = list(written.values())
        console.print(f"written: {', '.join(names)}. Look: dhn inspect {names[0]}")

    return Result(found, draw)


def _part_path(output: Path, part: str) -> Path:
    return output if part == "all" else output.with_name(f"{output.stem}-{part}{output.suffix}")
