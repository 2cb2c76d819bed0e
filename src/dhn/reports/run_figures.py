"""Figures of a trained model on a person's own data."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dhn.evaluation.metrics import Metrics, energy
from dhn.evaluation.rivals import Rival
from dhn.evaluation.uncertainty import BANDS
from dhn.reports.style import COLOURS, INK, QUIET, axis, new_figure, style, symbol
from dhn.trajectories.container import Trajectories

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OPACITY = {"90 %": 0.18, "50 %": 0.32}
"""Of each band."""
OWN = COLOURS[1]
SHOWN_COORDINATES = 4  # panels that fit on one page


def training_figure(records: Sequence[Mapping[str, Any]]) -> "Figure":
    """Training and validation loss, and the learning rate, over the steps."""
    with style():
        fig = new_figure(9.0, 2.9)
        losses, rates = fig.subplots(1, 2, width_ratios=(2, 1))
        for name, colour, look in (("loss", COLOURS[0], "-"), ("validation", COLOURS[1], "o-")):
            found = [(r["step"], r[name]) for r in records if _positive(r.get(name))]
            if found:
                losses.plot(*zip(*found, strict=True), look, color=colour, markersize=3, label=name)
        found = [
            (r["step"], r["learning_rate"]) for r in records if _positive(r.get("learning_rate"))
        ]
        if found:
            rates.plot(*zip(*found, strict=True), color=COLOURS[2])
        losses.set(xlabel="optimiser step", ylabel="loss (normalised units)", yscale="log")
        rates.set(xlabel="optimiser step", ylabel="learning rate", yscale="log")
        losses.legend()
    return fig


def forecast_figure(
    prediction: Trajectories, truth: Trajectories, rows: Mapping[str, int]
) -> "Figure":
    """A column a trajectory, a row a coordinate: truth, forecast and its bands."""
    shown = min(truth.dim, SHOWN_COORDINATES)
    with style():
        fig = new_figure(10.5, 0.7 + 2.1 * shown)
        grid = fig.subplots(shown, len(rows), squeeze=False, sharex="col")
        for column, (title, row) in enumerate(rows.items()):
            t = truth.times[row]
            for i in range(shown):
                ax = grid[i, column]
                _bands(ax, prediction, t, row, i, color=OWN)
                ax.plot(t, _known(truth, row, truth.q[row, :, i]), **_TRUTH)
                ax.plot(t, prediction.q[row, :, i], color=OWN, label="forecast")
                _seen(ax, prediction, t, row)
                name = truth.names[i]
                unit = truth.units.get(name, "rad" if truth.angles[i] else None)
                ax.set_ylabel(axis(name, unit))
                _limits(ax, truth.q[row, :, i])
            grid[0, column].set_title(f"{title}: id {truth.ids[row]}")
            grid[-1, column].set_xlabel(axis("t", truth.units.get("t")))
        handles, labels = grid[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return fig


_TRUTH: dict[str, Any] = {"color": INK, "linewidth": 3.2, "alpha": 0.35, "label": "measured"}


def error_figure(
    own: Metrics, others: Sequence[Rival], observe: int, step: float, unit: str
) -> "Figure":
    """Root mean square error over the time ahead, beside the rivals."""
    with style():
        fig = new_figure(9.0, 3.3)
        ax = fig.subplots()
        for k, rival in enumerate(others):
            ahead = (rival.metrics.steps - observe + 1) * step
            look: dict[str, Any] = {
                "color": (QUIET, COLOURS[0])[k % 2],
                "linestyle": ("--", "-.")[k % 2],
            }
            ax.plot(ahead, np.sqrt(rival.metrics.mse_normalised), label=rival.name, **look)
        ax.plot(
            (own.steps - observe + 1) * step,
            np.sqrt(own.mse_normalised),
            color=OWN,
            linewidth=2,
            label="forecast",
        )
        ax.set(
            xlabel=f"time ahead [{unit}]" if unit else "time ahead",
            ylabel="RMS error (normalised)",
            yscale="log",
        )
        everything = np.sqrt(np.concatenate([own.mse_normalised, others[0].metrics.mse_normalised]))
        positive = everything[np.isfinite(everything) & (everything > 0)]
        if positive.size:
            ax.set_ylim(positive.min() / 2, positive.max() * 10)
        ax.legend()
    return fig


def energy_figure(
    prediction: Trajectories, truth: Trajectories, rows: Mapping[str, int]
) -> "tuple[Figure, bool]":
    """Energy along the same trajectories; whether it is the system's own or a stand-in."""
    own, got, want = energies(prediction, truth)
    with style():
        fig = new_figure(10.5, 2.7)
        for ax, (title, row) in zip(
            fig.subplots(1, len(rows), squeeze=False)[0], rows.items(), strict=True
        ):
            t = truth.times[row]
            ax.plot(t, _known(truth, row, want[row]), **_TRUTH)
            ax.plot(t, got[row], color=OWN, label="forecast")
            _seen(ax, prediction, t, row)
            usual = np.nanquantile(got[row], [0.02, 0.98])
            _limits(ax, np.append(want[row], usual), 0.5)
            time = axis("t", truth.units.get("t"))
            ax.set(title=title, xlabel=time, ylabel=_energy_label(own))
        fig.axes[0].legend()
    return fig, own


def smoothed_energy_figure(
    times: Float[np.ndarray, "n T"], energy: Float[np.ndarray, "n T"], ids: Sequence[str], unit: str
) -> "Figure":
    """Energy of the identified mechanics along measured runs.

    Arguments:
        times: (n, T) of the states.
        energy: (n, T) of the smoothed states, NaN beyond the end of a run.
        ids: Names of the runs.
        unit: Of the times.

    Returns:
        A panel for each run.
    """
    with style():
        fig = new_figure(10.5, 2.7)
        for k, ax in enumerate(fig.subplots(1, len(ids), squeeze=False)[0]):
            ax.plot(times[k], energy[k], color=OWN)
            ax.set(title=ids[k], xlabel=axis("t", unit or None))
        fig.axes[0].set_ylabel("energy per inertia")
    return fig


def energies(
    prediction: Trajectories, truth: Trajectories
) -> tuple[bool, Float[np.ndarray, "n T"], Float[np.ndarray, "n T"]]:
    """Energy of prediction and truth; without a known system, the oscillator's quadratic form.

    The form is the sum of q²/var(q) + p²/var(p) about the mean: exactly the energy of a linear
    oscillator, and for other systems a size of the motion that should follow the truth.
    """
    got, want = energy(prediction, dict(truth.params)), energy(truth)
    if got is not None and want is not None:
        return True, got, want
    known = np.asarray(truth.known)
    total = [np.zeros(truth.q.shape[:2]), np.zeros(truth.q.shape[:2])]
    for got_x, want_x in ((prediction.q, truth.q), (prediction.momenta, truth.momenta)):
        if got_x is None or want_x is None:
            continue
        centre, spread = np.nanmean(want_x[known], 0), np.nanstd(want_x[known], 0)
        spread = np.where(spread > 0, spread, 1.0)
        for k, x in enumerate((got_x, want_x)):
            total[k] += (((x - centre) / spread) ** 2).sum(-1) / 2
    return False, total[0], total[1]


def median_figure(
    prediction: Trajectories, truth: Trajectories, metrics: Metrics, title: str
) -> "Figure":
    """The trajectory of median error as series, phase portrait and energy; error per state."""
    length = min(prediction.states, truth.states)
    prediction, truth = prediction[:, :length], truth[:, :length]
    row = int(np.argsort(metrics.per_trajectory)[len(metrics.per_trajectory) // 2])
    t, time = prediction.times[row], axis("t", prediction.units.get("t"))
    with style():
        fig = new_figure(10.5, 6.2)
        fig.suptitle(f"{title}; the trajectory of median error is shown", fontsize=10)
        series, portrait, total, errors = fig.subplots(2, 2).flat
        for i, name in enumerate(prediction.names):
            look: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)]}
            _bands(series, prediction, t, row, i, label=None, **look)
            series.plot(t, truth.q[row, :, i], **(_TRUTH | {"label": None if i else "truth"}))
            series.plot(t, prediction.q[row, :, i], label=symbol(name), **look)
            if prediction.momenta is not None and truth.momenta is not None:
                for data, drawn in ((truth, _TRUTH | {"label": None}), (prediction, look)):
                    portrait.plot(data.q[row, :, i], data.momenta[row, :, i], **drawn)  # type: ignore[index]
        _seen(series, prediction, t, row)
        series.set(xlabel=time, ylabel="coordinates", title="Prediction over truth")
        second = "p" if prediction.p is not None else "v"
        portrait.set(xlabel="coordinate", ylabel=second, title="Phase portrait")
        own, got, want = energies(prediction, truth)
        total.plot(t, want[row], **(_TRUTH | {"label": "truth"}))
        total.plot(t, got[row], color=OWN, label="prediction")
        _limits(total, np.append(want[row], got[row]))
        total.set(xlabel=time, ylabel=_energy_label(own), title="Energy")
        errors.semilogy(
            metrics.steps, metrics.mse_normalised, color=COLOURS[0], label="coordinates"
        )
        if metrics.energy_mse is not None:
            errors.semilogy(metrics.steps, metrics.energy_mse, color=COLOURS[1], label="energy")
        errors.set(xlabel="state", ylabel="mean squared error", title="Error of all trajectories")
        for ax in (series, total, errors):
            ax.legend(ncols=4)
    return fig


def parameter_figure(
    name: str, estimate: np.ndarray, truth: np.ndarray, errors: np.ndarray
) -> "Figure":
    """Inferred against stated values of one parameter, with standard errors."""
    with style():
        fig = new_figure(3.6, 3.4)
        ax = fig.subplots()
        ends = [float(min(truth.min(), estimate.min())), float(max(truth.max(), estimate.max()))]
        ax.plot(ends, ends, color=QUIET, linewidth=1)
        bars = errors if np.isfinite(errors).all() else None
        ax.errorbar(truth, estimate, yerr=bars, fmt=".", color=COLOURS[0], elinewidth=0.6)
        ax.set(xlabel=f"{symbol(name)} in the data", ylabel=f"{symbol(name)} inferred")
    return fig


def _bands(
    ax: "Axes", prediction: Trajectories, t: np.ndarray, row: int, i: int, **look: Any
) -> None:
    for name, alpha in OPACITY.items():
        low, high = BANDS[name]
        if low in prediction.q_quantiles and high in prediction.q_quantiles:
            below, above = (prediction.q_quantiles[level][row, :, i] for level in (low, high))
            named: dict[str, Any] = {"label": f"{name} band", **look}
            ax.fill_between(t, below, above, alpha=alpha, linewidth=0, **named)


def _seen(ax: "Axes", prediction: Trajectories, t: np.ndarray, row: int) -> None:
    given = np.flatnonzero(np.asarray(prediction.known)[row])
    if given.size:
        ax.axvline(float(t[given[-1]]), color=QUIET, linestyle=":", linewidth=1)


def _known(truth: Trajectories, row: int, values: np.ndarray) -> np.ndarray:
    return np.where(np.asarray(truth.known)[row], values, np.nan)


def _limits(ax: "Axes", truth: np.ndarray, room: float = 0.35) -> None:
    """The range of the truth: a forecast that leaves it has failed."""
    low, high = float(np.nanmin(truth)), float(np.nanmax(truth))
    if not np.isfinite(low):  # nothing was measured
        return
    pad = max(room * (high - low), 0.02 * max(abs(low), abs(high)), 1e-12)
    ax.set_ylim(low - pad, high + pad)


def _energy_label(own: bool) -> str:
    return "total energy" if own else "stand-in for the energy"


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0
