"""The role of each column of a table, or of each variable of a file.

A user gives them by `columns={foreign name: role}`, with the roles

    "t"  "trajectory"  "known"     times, label of the trajectory, measured or not
    "q"  "q:theta"                 a coordinate, keeping its name or called theta
    "p"  "p:theta"  "v"  "v:theta" its momentum, its velocity (without a name: in the order of q)
    "param"  "param:length"        a constant of each trajectory
    "noise:theta"  "noise:v_theta" standard deviation of each number of theta, of its velocity
    None                           leave it out

Once a mapping names coordinates, columns it does not mention are left out, except t, trajectory
and known. Without one, names decide: `theta` with `p_theta` or `v_theta`, or q, q1, q2, ... with
p, p1, ... and v, v1, ...; `noise_theta` is the noise of `theta`; what remains is a parameter.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import final

from dhn.checks import mapping
from dhn.errors import NEAR, UserError, did_you_mean
from dhn.trajectories.labels import (
    KNOWN,
    TIME,
    TRAJECTORY,
    momentum_label,
    noise_label,
    parse_quantile_label,
    state_labels,
    velocity_label,
)

_KINDS = ("q", "p", "v", "param", "noise")
_PLAIN = ("t", "trajectory", "known")
_LISTED = 20  # names that a message of one line has room for
_LONG = 60  # characters of a name
_DEFAULT_NAME = re.compile(r"q\d*")


@final
@dataclasses.dataclass
class Roles:
    """Labels in the file by what they mean; pairs are (our name, label in the file)."""

    t: str | None = None
    trajectory: str | None = None
    known: str | None = None
    q: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    p: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    v: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    params: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    quantiles: list[tuple[str, float, str]] = dataclasses.field(default_factory=list)
    """(stem, level, label): the stem is the label of a coordinate or of its momentum."""
    noise: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    """(column that it belongs to, as we name it: `theta`, `p_theta` or `v_theta`; label)."""

    def noise_places(self) -> list[tuple[str, int, int]]:
        """(label, row, column) of the standard deviations in an array (..., 2, d)."""
        labels = state_labels([name for name, _ in self.q])
        rows = (labels["q"], labels["p" if self.p else "v"])
        places = {x: (row, k) for row, found in enumerate(rows) for k, x in enumerate(found)}
        for of, label in self.noise:
            if of not in places:
                raise UserError(
                    f"{label!r} is the noise of {of!r}, which is not there; it has "
                    f"{listing(list(places))}."
                )
        return [(label, *places[of]) for of, label in self.noise]


def find_roles(
    labels: Sequence[str], columns: Mapping[str, str | None] | None, what: str = "column"
) -> Roles:
    """Roles of all `labels`, given by the user or recognised by name."""
    roles = Roles()
    columns = None if columns is None else mapping("columns", columns)
    rest, there = [x for x in labels if x not in (columns or {})], set(labels)
    for label, role in (columns or {}).items():
        if label not in there:
            raise UserError(
                f"there is no {what} {label!r}{did_you_mean(label, labels, NEAR)}; it has "
                f"{listing(labels)}."
            )
        _assign(roles, label, role)
    for key, default in (("t", TIME), ("trajectory", TRAJECTORY), ("known", KNOWN)):
        if getattr(roles, key) is None and default in rest:
            setattr(roles, key, default)
    rest = [x for x in rest if x not in (TIME, TRAJECTORY, KNOWN)]
    if not roles.q:
        _recognise(roles, rest, what)
    _pair(roles, what)
    return roles


def _assign(roles: Roles, label: str, role: str | None) -> None:
    if role is None:
        return
    kind, _, name = role.partition(":") if isinstance(role, str) else ("", "", "")
    if kind in _KINDS and not (":" in role and not name) and role != "noise":
        # An empty name of a momentum is filled by `_pair` in the order of the coordinates.
        default = "" if kind in ("p", "v") else label
        getattr(roles, "params" if kind == "param" else kind).append((name or default, label))
    elif role in _PLAIN:
        if getattr(roles, role) is not None:
            raise UserError(f"columns names two of them {role!r}; only one can be.")
        setattr(roles, role, label)
    else:
        raise UserError(
            f"columns maps {label!r} to {role!r}; a role is 't', 'trajectory', 'known', 'q', "
            f"'p', 'v', 'param' (with a name: 'q:theta'), 'noise:theta' or None."
        )


def _recognise(roles: Roles, labels: list[str], what: str) -> None:
    """Coordinates by their partner or by the names q, q1, ...; the remaining are parameters."""
    taken, there = set[str](), set(labels)
    for name in labels:
        plain = _DEFAULT_NAME.fullmatch(name)
        partners = [(k, f(name)) for k, f in (("p", momentum_label), ("v", velocity_label))]
        partners += [(k, k + name[1:]) for k in ("p", "v") if plain]
        found = {k: x for k, x in reversed(partners) if x in there}
        if plain or found:
            roles.q.append((name, name))
            taken |= {name, *found.values()}
            for key, label in found.items():
                getattr(roles, key).append((name, label))
    if not roles.q:
        rest = listing(labels) or "nothing else"
        raise UserError(
            f"no {what} is recognised as a coordinate; map them, e.g. "
            f"columns={{'theta': 'q', 'omega': 'v'}}; it has {rest}."
        )
    stems = {label for pairs in (roles.q, roles.p, roles.v) for _, label in pairs}
    noises = {}
    for of, pairs in ((str, roles.q), (momentum_label, roles.p), (velocity_label, roles.v)):
        for name, label in pairs:
            noises |= {noise_label(x): of(name) for x in (label, of(name))}
    for label in labels:
        quantile = parse_quantile_label(label)
        if label in taken:
            continue
        if quantile and quantile[0] in stems:
            roles.quantiles.append((*quantile, label))
        elif label in noises:
            roles.noise.append((noises[label], label))
        else:
            roles.params.append((label, label))


def _pair(roles: Roles, what: str) -> None:
    """Momenta and velocities in the order of their coordinates, one for each or none."""
    names = [name for name, _ in roles.q]
    if len(set(names)) < len(names):
        raise UserError(f"two coordinates would have the same name among {listing(names)}.")
    for key, word in (("p", "momentum"), ("v", "velocity")):
        given = dict(getattr(roles, key))
        pairs = getattr(roles, key)
        if not pairs:
            continue
        if all(not name for name, _ in pairs) and len(pairs) == len(names):
            pairs = list(zip(names, [label for _, label in pairs], strict=True))
        elif set(given) == set(names) and len(pairs) == len(names):
            pairs = [(name, given[name]) for name in names]
        else:
            missing = [x for x in names if x not in given]
            raise UserError(
                f"every coordinate ({listing(names)}) needs its {word} {what} or none; "
                + (
                    f"missing: {listing([f'{key}_{x}' for x in missing])}."
                    if missing and "" not in given
                    else f"{len(pairs)} given for {len(names)} coordinates."
                )
            )
        setattr(roles, key, pairs)


def listing(names: Sequence[str]) -> str:
    """Names for a message, the first ones only if there are many."""
    more = f", ... ({len(names)} in all)" if len(names) > _LISTED else ""
    return ", ".join(x if len(x) <= _LONG else f"{x[:_LONG]}..." for x in names[:_LISTED]) + more
