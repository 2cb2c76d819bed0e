"""Trajectories in words: one line for `repr`, a few lines for a person."""

from typing import TYPE_CHECKING

import numpy as np

from dhn.trajectories.labels import state_labels

if TYPE_CHECKING:
    from dhn.trajectories.container import Trajectories


def headline(data: "Trajectories") -> str:
    """Counts and what is there, on one line."""
    n, states, _ = data.q.shape
    what = ["q", *(k for k in ("p", "v") if getattr(data, k) is not None)]
    system = f" of {data.system}" if data.system else ""
    return (
        f"{n} {_plural(n, 'trajectory', 'trajectories')}{system}, {states} "
        f"{_plural(states, 'state', 'states')}, {', '.join(what)} of {', '.join(data.names)}"
    )


def summarise(data: "Trajectories") -> str:
    """Counts, lengths, times, gaps, ranges, parameters and noise: one fact a line."""
    lines = [("time", _time(data)), ("lengths", _lengths(data)), ("states", _states(data))]
    labels = state_labels(data.names)
    for k in range(data.dim):
        for key, array in (("q", data.q), ("p", data.p), ("v", data.v)):
            if array is not None:
                label = labels[key][k]
                kind = "angle, " if key == "q" and data.angles[k] else ""
                lines.append((label, kind + _range(array[..., k], data.units.get(label))))
    for name, values in data.params.items():
        lines.append((f"param {name}", _range(values, data.units.get(name))))
    lines.append(("noise", _noise(data)))
    if data.code_group:
        groups = len(set(data.code_group))
        lines.append(("codes", f"shared in {groups} {_plural(groups, 'group', 'groups')}"))
    levels = sorted({*data.q_quantiles, *data.p_quantiles})
    if levels:
        lines.append(("quantiles", ", ".join(f"{x:g}" for x in levels)))
    for key, value in data.meta.items():
        lines.append((f"meta {key}", str(value).replace("\n", " ")))
    width = max(len(label) for label, _ in lines)
    return "\n".join([headline(data), *(f"  {a.ljust(width)}  {b}" for a, b in lines)])


def _time(data: "Trajectories") -> str:
    own = "" if data.t.ndim == 1 else ", each trajectory has its own"
    text = _range(data.t, data.units.get("t"))
    if data.states < 2 or not np.isfinite(np.diff(data.t)).any():
        return text + own
    if data.is_uniform:
        return f"{text}, even step {data.time_step:.6g}{own}"
    steps = np.diff(data.t)
    return f"{text}, uneven steps {np.nanmin(steps):.6g} to {np.nanmax(steps):.6g}{own}"


def _lengths(data: "Trajectories") -> str:
    low, high = int(data.lengths.min()), int(data.lengths.max())
    if low == high:
        return f"{low} states each" if len(data) > 1 else f"{low} states"
    return f"{low} to {high} states (mean {data.lengths.mean():.1f})"


def _states(data: "Trajectories") -> str:
    inside = np.arange(data.states) < data.lengths[:, None]
    known = np.asarray(data.known)
    total, gaps = int(inside.sum()), inside & ~data.has_value
    parts = [f"{int(known.sum())} of {total} known"]
    predicted = int((data.has_value & ~known).sum())
    if predicted:
        parts.append(f"{predicted} with a value but not known")
    affected = int(gaps.any(1).sum())
    parts.append(
        f"{int(gaps.sum())} missing in gaps ({affected} "
        f"{_plural(affected, 'trajectory', 'trajectories')})"
        if gaps.any()
        else "no gaps"
    )
    return ", ".join(parts)


def _noise(data: "Trajectories") -> str:
    noise = data.typical_noise
    if data.noise is None or noise is None:
        return "not stated"
    labels = state_labels(data.names)
    rows = list(zip(labels["q"], noise[0], strict=True))
    if data.momenta is not None:
        rows += zip(labels["v" if data.p is None else "p"], noise[1], strict=True)
    kind = "std " if data.noise.ndim == 2 else "std of each number, typically "
    return kind + ", ".join(f"{name} {value:.4g}" for name, value in rows)


def _range(values: np.ndarray, unit: str | None) -> str:
    finite = values[np.isfinite(values)]
    suffix = f" {unit}" if unit else ""
    if finite.size == 0:
        return "no value"
    low, high = finite.min(), finite.max()
    text = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
    return text + suffix


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
