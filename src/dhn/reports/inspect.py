"""What is in a set of trajectories: its facts as plain values, and a picture of the motion."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dhn.evaluation.metrics import known_system
from dhn.reports.style import COLOURS, QUIET, axis, new_figure, style, symbol
from dhn.systems.registry import system_title
from dhn.trajectories.container import Trajectories

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = 5  # in colour; more lines than that cannot be distinguished
BACKGROUND = 60  # in grey, behind them
SHOWN_COORDINATES = 4  # panels that fit on one page


def energies(data: Trajectories) -> tuple[Float[np.ndarray, "n T"], Float[np.ndarray, " n"]] | None:
    """Total energy of every state, and the size of energies in each trajectory to compare with.

    The size is the larger of the first energy and the greatest kinetic term <p, dq/dt>/2: an
    energy alone may be zero, as it is for a pendulum let go at 90 degrees. `None` where the
    system, its parameters or the momenta are not known.
    """
    found = known_system(data.system, data.params)
    if found is None or data.momenta is None:
        return None
    system, params = found
    p = data.p if data.p is not None else np.asarray(system.momenta(data.q, data.v, params))
    energy = np.asarray(system.energy(data.q, p, params))
    kinetic = np.abs((p * np.asarray(system.velocities(data.q, p, params))).sum(-1)) / 2
    with _no_values_is_nan():
        size = np.fmax(np.abs(_first(energy)), np.nanmax(kinetic, axis=1))
    return energy, size


def facts(data: Trajectories) -> dict[str, Any]:
    """The numbers behind `dhn inspect`."""
    n, states, _ = data.q.shape
    known = np.asarray(data.known)
    found: dict[str, Any] = {
        "system": data.system,
        "trajectories": n,
        "states": states,
        "time": {
            "start": np.nanmin(data.t),
            "end": np.nanmax(data.t),
            "step": data.time_step if data.is_uniform else None,
            "unit": data.units.get("t"),
        },
        "known": float(np.mean(known)),
        "predicted": float(np.mean(data.has_value & ~known)),
        "coordinates": [
            {
                "name": name,
                "angle": bool(data.angles[i]),
                "unit": data.units.get(name),
                "q": _range(data.q[..., i]),
                "p": None if data.p is None else _range(data.p[..., i]),
                "v": None if data.v is None else _range(data.v[..., i]),
            }
            for i, name in enumerate(data.names)
        ],
        "params": {name: _range(values) for name, values in data.params.items()},
        "energy": None,
        "meta": dict(data.meta),
    }
    known_energies = energies(data)
    if known_energies is not None:
        energy, size = known_energies
        with _no_values_is_nan():
            change = np.nanmax(np.abs(energy - _first(energy)[:, None]), axis=1) / size
            found["energy"] = {
                "range": _range(energy),
                "relative_change": {
                    "median": float(np.nanmedian(change)),
                    "max": float(np.nanmax(change)),
                },
            }
    return found


def figure(data: Trajectories, *, seed: int = 0) -> "Figure":
    """Time series, phase portraits and energy; `seed` chooses which trajectories have colour."""
    n, _, d = data.q.shape
    order = np.random.default_rng(seed).permutation(n).tolist()
    chosen, background = sorted(order[:DRAWN]), order[DRAWN : DRAWN + BACKGROUND]
    shown = min(d, SHOWN_COORDINATES)
    known_energies = energies(data)
    with style():
        fig, axes = _layout(shown, data.momenta is not None, known_energies is not None)
        for i in range(shown):
            _time_series(axes[f"q{i}"], data, i, chosen)
            if data.momenta is not None:
                _phase_portrait(axes[f"p{i}"], data, i, chosen, background)
        if known_energies is not None:
            _energy(axes["E"], axes["dE"], data, *known_energies, chosen)
        handles, labels = axes["q0"].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        own = system_title(data.system) if data.system else "Trajectories"
        title = f"{own}: {len(chosen)} of {n} in colour"
        fig.suptitle(title + (f", first {shown} of {d} coordinates" if shown < d else ""))
    return fig


def _layout(shown: int, momenta: bool, energy: bool) -> "tuple[Figure, dict[str, Axes]]":
    """A column a coordinate and the energy below; a single coordinate lies down in one row."""
    if shown == 1:
        row: list[Any] = ["q0"] + ["p0"] * momenta + ["E", "dE"] * energy
        fig = new_figure(3.2 * max(len(row), 2), 3.4)
        return fig, fig.subplot_mosaic([row])
    rows: list[Any] = [[f"q{i}" for i in range(shown) for _ in "ab"]]
    rows += [[f"p{i}" for i in range(shown) for _ in "ab"]] * momenta
    rows += [["E"] * shown + ["dE"] * shown] * energy
    fig = new_figure(max(3.3 * shown, 7.0), 2.7 * len(rows) + 0.5)
    return fig, fig.subplot_mosaic(rows)


def _time_series(ax: "Axes", data: Trajectories, i: int, chosen: Sequence[int]) -> None:
    for k, colour in zip(chosen, COLOURS, strict=False):
        t, q = data.times[k], data.q[k, :, i]
        levels = sorted(data.q_quantiles)
        for low, high in zip(levels, reversed(levels), strict=True):
            if low < high:
                band = data.q_quantiles[low][k, :, i], data.q_quantiles[high][k, :, i]
                ax.fill_between(t, *band, color=colour, alpha=0.15, linewidth=0)
        _line(ax, t, q, data.known[k], colour, _label(data, k))
    ax.set(xlabel=axis("t", data.units.get("t")), ylabel=axis(data.names[i], _unit(data, i)))


def _phase_portrait(
    ax: "Axes", data: Trajectories, i: int, chosen: Sequence[int], background: Sequence[int]
) -> None:
    momenta = data.momenta
    assert momenta is not None
    for k in background:
        ax.plot(*_around(data.q[k, :, i], momenta[k, :, i], data.angles[i]), color=QUIET, alpha=0.2)
    for k, colour in zip(chosen, COLOURS, strict=False):
        q, p = _around(data.q[k, :, i], momenta[k, :, i], data.angles[i])
        ax.plot(q, p, color=colour, **_dots(data.known[k]))
    name = data.names[i]
    rate = f"p_{name}" if data.p is not None else f"v_{name}"
    ax.set(xlabel=axis(name, _unit(data, i)), ylabel=axis(rate, data.units.get(rate)))


def _energy(
    ax: "Axes",
    change_ax: "Axes",
    data: Trajectories,
    energy: np.ndarray,
    size: np.ndarray,
    chosen: Sequence[int],
) -> None:
    for k, colour in zip(chosen, COLOURS, strict=False):
        t, change = data.times[k], np.abs(energy[k] - _first(energy)[k]) / size[k]
        _line(ax, t, energy[k], data.known[k], colour)
        # Exactly no change, as at the start, has no place on a logarithmic axis.
        _line(change_ax, t, np.where(change > 0, change, np.nan), data.known[k], colour)
    pad = 0.05 * float(np.max(size[list(chosen)], initial=1e-300))
    ax.set_ylim(np.nanmin(energy[chosen]) - pad, np.nanmax(energy[chosen]) + pad)
    change_ax.set_yscale("log")
    time = axis("t", data.units.get("t"))
    ax.set(xlabel=time, ylabel="energy $H$")
    change_ax.set(xlabel=time, ylabel=r"relative change $|H - H_0|$")


def _line(
    ax: "Axes", t: np.ndarray, x: np.ndarray, known: np.ndarray, colour: str, label: str = ""
) -> None:
    """Measured states as a line, with dots where it is broken; predicted states dashed."""
    measured = np.where(known, x, np.nan)
    ax.plot(t, measured, color=colour, label=label, **_dots(known))
    if (~known & np.isfinite(x)).any():
        # The dashes begin at the last measured state, so that the two parts meet.
        beside = known & (np.append(~known[1:], False) | np.append(False, ~known[:-1]))
        ax.plot(t, np.where(~known | beside, x, np.nan), color=colour, linestyle="--")


def _dots(known: np.ndarray) -> dict[str, Any]:
    """Marks for the states, needed where a line alone would hide those between two gaps."""
    return {} if known.all() else {"marker": ".", "markersize": 3}


def _around(q: np.ndarray, p: np.ndarray, angle: bool) -> tuple[np.ndarray, np.ndarray]:
    """Angles brought to (-pi, pi], the line broken where they go round."""
    if not angle:
        return q, p
    turned = np.pi - np.mod(np.pi - q, 2 * np.pi)
    jumps = np.flatnonzero(np.abs(np.diff(turned)) > np.pi) + 1
    return np.insert(turned, jumps, np.nan), np.insert(p, jumps, np.nan)


def _label(data: Trajectories, k: int) -> str:
    varying = [name for name, values in data.params.items() if np.ptp(values) > 0]
    values = ", ".join(f"{symbol(name)} = {data.params[name][k]:.3g}" for name in varying[:2])
    return values or f"id {data.ids[k]}"


def _unit(data: Trajectories, i: int) -> str | None:
    return data.units.get(data.names[i], "rad" if data.angles[i] else None)


def _first(values: Float[np.ndarray, "n T"]) -> Float[np.ndarray, " n"]:
    """Each trajectory's first number."""
    return values[np.arange(len(values)), np.argmax(np.isfinite(values), axis=1)]


def _range(values: np.ndarray) -> dict[str, float]:
    with _no_values_is_nan():
        return {"min": float(np.nanmin(values)), "max": float(np.nanmax(values))}


def _no_values_is_nan() -> warnings.catch_warnings:
    return warnings.catch_warnings(action="ignore", category=RuntimeWarning)
