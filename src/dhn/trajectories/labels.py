"""Names of the columns that trajectories have, in a table and in messages: one rule for all."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from dhn.errors import UserError

TRAJECTORY, TIME, KNOWN = RESERVED = ("trajectory", "t", "known")
_QUANTILE = re.compile(r"(.+)_q(\d{2,})")


def momentum_label(name: str) -> str:
    """Column of the momentum conjugate to the coordinate `name`."""
    return f"p_{name}"


def velocity_label(name: str) -> str:
    """Column of the velocity of the coordinate `name`."""
    return f"v_{name}"


def default_names(dim: int) -> tuple[str, ...]:
    """Names of coordinates that have none: q, or q1, q2, ..."""
    return ("q",) if dim == 1 else tuple(f"q{k + 1}" for k in range(dim))


def state_labels(names: Sequence[str]) -> dict[str, list[str]]:
    """Columns of the coordinates, of the momenta and of the velocities, by field."""
    momenta = [momentum_label(x) for x in names]
    return {"q": list(names), "p": momenta, "v": [velocity_label(x) for x in names]}


def noise_label(label: str) -> str:
    """Column of the standard deviations of the measurements in the column `label`."""
    return f"noise_{label}"


def quantile_label(label: str, level: float) -> str:
    """`theta` and 0.05 -> `theta_q05`: the decimals of the level, at least two of them."""
    decimals = np.format_float_positional(level, trim="-").removeprefix("0.")
    return f"{label}_q{decimals.ljust(2, '0')}"


def parse_quantile_label(label: str) -> tuple[str, float] | None:
    """The exact inverse of `quantile_label`, or None for any other label."""
    match = _QUANTILE.fullmatch(label)
    level = float(f"0.{match[2]}") if match else 0.0
    return (match[1], level) if match and 0 < level < 1 else None


def all_labels(
    names: Sequence[str],
    params: Iterable[str],
    levels: tuple[Sequence[float], Sequence[float]] = ((), ()),
    each_noise: bool = False,
) -> tuple[str, ...]:
    """Every label in use; a `UserError` if two things would have the same."""
    found = state_labels(names)
    momenta = [*found["p"], *found["v"]]
    labels = [*RESERVED, *names, *momenta]
    labels += [noise_label(x) for x in (*names, *momenta)] if each_noise else []
    for stems, part in ((names, levels[0]), (momenta, levels[1])):
        labels += [quantile_label(x, level) for level in part for x in stems]
    for name in params:
        check_label("params", name)
        labels.append(name)
    counts = Counter(labels)
    for label in names:
        if counts[label] > 1:
            raise UserError(
                f"the coordinate name {label!r} is also the name of something else (t, known, "
                f"trajectory, p_<name>, v_<name>, noise_<name>, a quantile or a parameter); "
                f"rename it."
            )
    for label in params:
        if counts[label] > 1:
            raise UserError(
                f"the parameter name {label!r} is also the name of a column (t, known, trajectory, "
                f"a coordinate, p_<name>, v_<name>, noise_<name> or a quantile); rename it."
            )
    return tuple(labels)


def check_label(field: str, label: object) -> None:
    """Labels fit on one line of any file, so that every format keeps them exactly."""
    if not isinstance(label, str) or not label or not label.isprintable() or label != label.strip():
        raise UserError(
            f"{field} must be names of printable characters without spaces around them; "
            f"got {label!r}."
        )


def unique(labels: Sequence[str]) -> tuple[str, ...]:
    """`a, a, b` -> `a, a-2, b`: the labels with repetitions made different."""
    taken, seen, result = set(labels), set[str](), []
    for label in labels:
        new, k = label, 1
        while new in seen or (k > 1 and new in taken):
            k += 1
            new = f"{label}-{k}"
        seen.add(new)
        result.append(new)
    return tuple(result)
