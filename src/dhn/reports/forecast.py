"""Figures of a forecast against the truth."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from dhn.evaluation.metrics import Metrics, energy
from dhn.reports.style import COLOURS, INK, QUIET, style, symbol
from dhn.trajectories.container import Trajectories

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.3))  # lower and upper quantile, opacity


def figure(prediction: Trajectories, truth: Trajectories, metrics: Metrics, title: str) -> Figure:
    """Prediction over truth with bands, phase portrait, energy, error per step."""
    length = min(prediction.q.shape[1], truth.q.shape[1])
    prediction, truth = prediction[:, :length], truth[:, :length]
    middle = int(np.argsort(metrics.per_trajectory)[len(metrics.per_trajectory) // 2])
    with style():
        drawn = Figure(figsize=(10.5, 6.2), layout="constrained")
        drawn.suptitle(f"{title}; the trajectory of median error is shown", fontsize=10)
        series, portrait, energies, errors = drawn.subplots(2, 2).flat
        _series(series, prediction, truth, middle)
        _portrait(portrait, prediction, truth, middle)
        _energy(energies, prediction, truth, middle)
        _errors(errors, metrics, prediction)
    return drawn


def _times(data: Trajectories, row: int) -> np.ndarray:
    return data.t if data.t.ndim == 1 else data.t[row]


def _series(axes: "Axes", prediction: Trajectories, truth: Trajectories, row: int) -> None:
    t = _times(prediction, row)
    for i, name in enumerate(prediction.names):
        colour = COLOURS[i % len(COLOURS)]
        for low, high, alpha in BANDS:
            if low in prediction.q_quantiles:
                axes.fill_between(
                    t,
                    prediction.q_quantiles[low][row, :, i],
                    prediction.q_quantiles[high][row, :, i],
                    color=colour,
                    alpha=alpha,
                    linewidth=0,
                )
        axes.plot(t, truth.q[row, :, i], color=INK, linewidth=2.6, alpha=0.35)
        axes.plot(t, prediction.q[row, :, i], color=colour, label=symbol(name))
    seen = t[np.asarray(prediction.known)[row]]
    if len(seen):
        axes.axvline(seen[-1], color=QUIET, linestyle=":", linewidth=1)
    axes.plot([], [], color=INK, linewidth=2.6, alpha=0.35, label="truth")
    axes.set(xlabel=_label("t", prediction), ylabel="coordinates", title="Prediction over truth")
    axes.legend(ncols=4)


def _portrait(axes: "Axes", prediction: Trajectories, truth: Trajectories, row: int) -> None:
    kind = "p" if prediction.p is not None else "v"
    got, want = prediction.momenta, truth.momenta
    if got is None or want is None:
        axes.set_axis_off()
        return
    for i, name in enumerate(prediction.names):
        axes.plot(truth.q[row, :, i], want[row, :, i], color=INK, linewidth=2.6, alpha=0.35)
        axes.plot(
            prediction.q[row, :, i],
            got[row, :, i],
            color=COLOURS[i % len(COLOURS)],
            label=symbol(name),
        )
    axes.set(xlabel="coordinate", ylabel=f"{kind}", title="Phase portrait")
    axes.legend()


def _energy(axes: "Axes", prediction: Trajectories, truth: Trajectories, row: int) -> None:
    got, want = energy(prediction, dict(truth.params)), energy(truth)
    if got is None or want is None:
        axes.text(
            0.5, 0.5, "energy unknown: no system named", ha="center", transform=axes.transAxes
        )
        axes.set_axis_off()
        return
    t = _times(prediction, row)
    axes.plot(t, want[row], color=INK, linewidth=2.6, alpha=0.35, label="truth")
    axes.plot(t, got[row], color=COLOURS[1], label="prediction")
    centre = float(np.nanmean(want[row]))
    reach = max(float(np.nanmax(np.abs(got[row] - centre))), 1e-3 * abs(centre), 1e-6)
    axes.set_ylim(centre - 1.5 * reach, centre + 1.5 * reach)
    axes.set(xlabel=_label("t", prediction), ylabel="total energy", title="Energy")
    axes.legend()


def _errors(axes: "Axes", metrics: Metrics, prediction: Trajectories) -> None:
    axes.semilogy(metrics.steps, metrics.mse_normalised, color=COLOURS[0], label="coordinates")
    if metrics.energy_mse is not None:
        axes.semilogy(metrics.steps, metrics.energy_mse, color=COLOURS[1], label="energy")
    axes.set(
        xlabel="state", ylabel="mean squared error", title="Error over all trajectories, per state"
    )
    axes.legend()


def _label(name: str, data: Trajectories) -> str:
    unit = data.units.get(name)
    return f"{name} [{unit}]" if unit else name
