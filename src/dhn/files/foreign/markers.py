"""Cartesian markers on a chain of links to the links' angles."""

import numpy as np
from jaxtyping import Bool, Float

from dhn.errors import UserError
from dhn.files.foreign.names import resolve
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.pivot import fit_pivot
from dhn.files.table import Table

_VARYING = 0.05  # of its length: a rigid link does not change by more


def link_angles(
    points: Float[np.ndarray, "N points 2"], y_down: bool = False
) -> tuple[Float[np.ndarray, "N links"], Float[np.ndarray, "N links"]]:
    """Angle and length of every link of a planar chain, pivot first and tip last.

    An angle is that of its own link against the downward vertical, counterclockwise positive, as
    in the built-in pendulums: a link of length l ends at `(l sin θ, -l cos θ)` from where it
    begins, with y upwards. Angles are in (-π, π]; unwrapping is another step.
    """
    link = np.diff(points, axis=1)
    x, up = link[..., 0], (-link[..., 1] if y_down else link[..., 1])
    return np.arctan2(x, -up), np.hypot(x, up)


def marker_columns(table: Table, options: ImportOptions) -> list[str]:
    """x and y columns of all markers; a marker's name stands for its two columns."""
    lower = {x.casefold(): x for x in table.columns}
    refs: list[str] = []
    for marker in options.markers:
        pairs = [pair for pair in _pairs(marker.casefold()) if set(pair) <= lower.keys()]
        named = marker not in table.columns and pairs
        refs += [lower[x] for x in pairs[0]] if named else [marker]
    fewest = 1 if options.pivot or options.fit_pivot else 2
    if len(refs) < 2 * fewest or len(refs) % 2:
        raise UserError(
            f"markers needs x and y of at least {fewest} marker{'s' if fewest > 1 else ''}, pivot "
            f"first unless pivot is given or fitted: x0,y0,x1,y1,...; got {len(refs)} columns."
        )
    return [resolve(x, table.columns) for x in refs]


def _pairs(name: str) -> list[tuple[str, str]]:
    joints = [(f"{{}}{gap}{name}", f"{name}{gap}{{}}") for gap in ("_", ".", " ", "")]
    return [(form.format("x"), form.format("y")) for pair in joints for form in pair]


def with_pivot(
    points: Float[np.ndarray, "N points 2"],
    rows: Bool[np.ndarray, " N"],
    options: ImportOptions,
) -> tuple[Float[np.ndarray, "N more 2"], list[str], list[str]]:
    """The points with the pivot before them if it is given or fitted on `rows`; notes, warnings."""
    if options.pivot:
        centre, notes, warnings = np.array(options.pivot), [], []
    elif options.fit_pivot:
        found = fit_pivot(points[rows, 0])
        centre, notes, warnings = found.centre, [found.describe()], found.warnings()
    else:
        return points, [], []
    first = np.broadcast_to(centre, (len(points), 1, 2))
    return np.concatenate([first, points], axis=1), notes, warnings


def length_notes(lengths: Float[np.ndarray, "N links"]) -> list[str]:
    """A note for every link whose length varies."""
    spread = np.nanstd(lengths, axis=0) / np.nanmean(lengths, axis=0)
    return [
        f"link {k + 1} changes its length by {x:.0%}: are the markers in the order pivot to tip, "
        f"x before y, and in one plane?"
        for k, x in enumerate(spread)
        if x > _VARYING
    ]
