"""Draw the parameters and the initial states of simulated trajectories, on the host."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dhn.checks import mapping
from dhn.errors import UserError, did_you_mean
from dhn.systems.system import System

LARGEST = 1e100
"""No quantity is larger, whatever its unit; squares of larger numbers overflow."""


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A stream of its own for every purpose.

    So no quantity's draws depend on which others are drawn, and the first trajectories are the
    same however many are asked for.
    """
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def draw_params(system: System, given: Any, count: int, seed: int) -> dict[str, np.ndarray]:
    """Name -> `(count,)`: the system's defaults, overridden by what is given."""
    given = mapping("params", {} if given is None else given)
    _refuse_unknown(given, system.params, f"system '{system.name}' has no parameter")
    specs = {**system.params, **given}
    return {name: draw(spec, count, seed, name) for name, spec in specs.items()}


def draw_initial(
    system: System,
    given: Any,
    params: Mapping[str, np.ndarray],
    count: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Initial `q` and `p`, each `(count, d)`: the defaults, overridden by what is given.

    Velocities are turned into momenta. Momenta given replace the default velocities altogether
    and the other way round, for a mixture of the two would not determine the state.
    """
    given = mapping("initial", {} if given is None else given)
    velocities = [f"v_{name}" for name in system.coordinates]
    momenta = [f"p_{name}" for name in system.coordinates]
    known = [*system.coordinates, *velocities, *momenta]
    message = f"system '{system.name}' has no coordinate, velocity or momentum"
    _refuse_unknown(given, known, message)
    default = dict(system.initial)
    _refuse_unknown(default, known, message)
    if any(name in given for name in velocities):
        default = {name: spec for name, spec in default.items() if name not in momenta}
    if any(name in given for name in momenta):
        default = {name: spec for name, spec in default.items() if name not in velocities}
    specs = {**default, **given}
    use_momenta = any(name in specs for name in momenta)
    if use_momenta and any(name in specs for name in velocities):
        raise UserError(
            f"initial has both velocities and momenta ({', '.join(specs)}); give one kind."
        )
    columns = lambda names: np.stack(  # noqa: E731
        [draw(specs.get(name, 0.0), count, seed, name) for name in names], axis=-1
    )
    q = columns(system.coordinates)
    if use_momenta:
        return q, columns(momenta)
    p = system.momenta(q, columns(velocities), params)
    if not np.isfinite(p).all():
        raise UserError(
            f"the velocities of system '{system.name}' determine no momenta: its energy must be a "
            f"finite function of q and p that grows with every momentum, like p**2 / 2."
        )
    return q, p


def draw(spec: Any, count: int, seed: int, name: str) -> np.ndarray:
    """`(count,)` values: a number repeated, a `(low, high)` tuple drawn from, or an array taken."""
    try:
        value = np.asarray(spec, dtype=np.float64)
    except (TypeError, ValueError):
        value = np.array(np.nan)
    if not np.isfinite(value).all():
        raise UserError(
            f"'{name}' must be a finite number, a (low, high) pair or an array; got {spec!r}."
        )
    if np.abs(value).max(initial=0.0) > LARGEST:
        raise UserError(f"'{name}' must be between -{LARGEST:g} and {LARGEST:g}; got {spec!r}.")
    if value.ndim == 0:
        return np.full(count, value)
    if isinstance(spec, tuple):
        if value.shape != (2,) or value[0] > value[1]:
            raise UserError(f"the range of '{name}' must be (low, high), low <= high; got {spec}.")
        return generator(seed, name).uniform(value[0], value[1], count)
    if value.shape != (count,):
        raise UserError(
            f"'{name}' must have one value for each of the {count} trajectories; "
            f"got an array of shape {value.shape}. A range is a tuple (low, high)."
        )
    return value


def _refuse_unknown(given: Iterable[str], known: Iterable[str], message: str) -> None:
    names = list(known)
    for name in given:
        if name not in names:
            there = ", ".join(names) or "none"
            hint = did_you_mean(name, names)
            raise UserError(f"{message} '{name}'; known are {there}.{hint}")
