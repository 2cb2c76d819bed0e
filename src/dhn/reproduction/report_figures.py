"""Figures with the content of the paper's: fit, completion, probing, blocks, interpolation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import NullFormatter

from dhn.reports.html import number
from dhn.reports.style import INK, QUIET, new_figure, style
from dhn.reproduction.report_results import Series, numbers, without_block
from dhn.systems.registry import system_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One hue a family, dark to light within it: the families stay apart for colour-blind readers, and
# the lines of one family differ in lightness and dashes as well.
SHADES = {
    "dhn": ("#8A3D00", "#D55E00", "#F0914A", "#B5651D", "#F6B48A", "#5C2900"),
    "hnn": ("#003F63", "#0072B2", "#56B4E9", "#2E5E8C", "#9CCFEF", "#00283F"),
    "vanilla": ("#006B4F", "#009E73", "#5CC9A7", "#2F6F5C"),
    "cnn": ("#AA4480", "#CC79A7"),
    "reference": ("#777777", "#A5A5A5", "#555555", "#BBBBBB"),
}
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2)), (0, (2, 2)))
HIGHEST = 1e2  # normalised; what lies above has long left the picture
LOWEST = 1e-14  # below the axis; a logarithm needs a positive number
Q_ERROR = r"MSE of $q$ [$(\pi/2)^2$]"
E_ERROR = r"MSE of energy [J$^2$]"

Look = dict[str, Any]


def looks(shown: Sequence[Series]) -> dict[str, Look]:
    """Colour and dashes of every label, the same in all panels of a figure.

    One HNN with several integrators (the last word of its label) keeps its dashes, and one
    integrator its colour.
    """
    found: dict[str, Look] = {}
    for family, shades in SHADES.items():
        labels = [one.label for one in shown if one.family == family]
        ends = list(dict.fromkeys(label.split()[-1] for label in labels))
        begins = list(dict.fromkeys(label.rpartition(" ")[0] for label in labels))
        for k, label in enumerate(labels):
            colour = dash = k
            if family == "hnn" and len(ends) * len(begins) >= len(labels) > 1:
                colour = ends.index(label.split()[-1])
                dash = begins.index(label.rpartition(" ")[0])
            found[label] = {
                "color": shades[colour % len(shades)],
                "linestyle": DASHES[(dash + dash // len(shades)) % len(DASHES)],
                "label": label,
            }
    return found


def fit_figure(by_system: dict[str, list[Series]]) -> "Figure":
    """A row a system: error of q and of the energy per time step, energy of one example."""
    everyone = _distinct(by_system)
    with style():
        fig = new_figure(10.5, 2.8 * len(by_system) + 0.2 * (2 + len(everyone) / 4))
        grid = fig.subplots(len(by_system), 3, squeeze=False)
        for row, (system, shown) in zip(grid, by_system.items(), strict=True):
            _row(row, shown, looks(everyone), system_title(system))
        _legend(fig, everyone)
    return fig


def completion_figure(system: str, shown: Sequence[Series]) -> "Figure":
    """DHN against HNN with its integrators above, against vanilla networks below."""
    rows = [
        (f"{system_title(system)}, DHN and {title}", chosen)
        for title, rivals in (("HNN", "hnn"), ("vanilla networks", "vanilla"))
        if any(one.family == rivals for one in shown)
        and (chosen := [one for one in shown if one.family in ("dhn", rivals, "reference")])
    ] or [(system_title(system), list(shown))]
    with style():
        fig = new_figure(10.5, 2.8 * len(rows) + 0.2 * (2 + len(shown) / 4))
        grid = fig.subplots(len(rows), 3, squeeze=False)
        for row, (title, chosen) in zip(grid, rows, strict=True):
            _row(row, chosen, looks(shown), title)
        _legend(fig, shown)
    return fig


def _row(row: "Sequence[Axes]", shown: Sequence[Series], look: dict[str, Look], title: str) -> None:
    errors, energy_errors, energies = row
    _curves(errors, shown, look, "mse")
    _curves(energy_errors, shown, look, "energy_mse")
    _example_energy(energies, shown, look)
    errors.set(xlabel="time step", ylabel=Q_ERROR, title=title)
    energy_errors.set(xlabel="time step", ylabel=E_ERROR, title="energy")
    energies.set(title="energy of one example")


def _curves(ax: "Axes", shown: Sequence[Series], look: dict[str, Look], name: str) -> None:
    top, bottom = 0.0, np.inf
    # Persistence keeps the energy to the last bit: that must not stretch the axis for the others.
    leading = {one.family for one in shown} - {"reference"} or {"reference"}
    for one in shown:
        curve = one.curve(name)
        if curve is None:
            continue
        # Exactly zero, as after no step at all, has no place on a logarithmic axis.
        mean = np.where(curve.mean > 0, curve.mean, np.nan)
        ax.plot(curve.steps, mean, **look[one.label])
        if len(curve.values) > 1:
            low = np.maximum(curve.low, LOWEST)
            colour = look[one.label]["color"]
            ax.fill_between(curve.steps, low, curve.high, color=colour, alpha=0.15, linewidth=0)
        finite = mean[np.isfinite(mean)]
        if one.family in leading:
            top, bottom = max(top, finite.max(initial=0)), min(bottom, finite.min(initial=np.inf))
    if top <= 0:
        _nothing(ax, "not measured")
        return
    ax.set_yscale("log")
    ax.set_ylim(max(bottom, LOWEST) / 2, min(top, HIGHEST) * 2)


def _example_energy(ax: "Axes", shown: Sequence[Series], look: dict[str, Look]) -> None:
    drawn = [(one, e) for one in shown if (e := one.example) and e.get("predicted_energy")]
    if not drawn:
        _nothing(ax, "not measured")
        return
    times, truth = numbers(drawn[0][1]["t"]), numbers(drawn[0][1]["truth_energy"])
    ax.plot(times, truth, color=INK, linewidth=4, alpha=0.25, label="truth")
    spread = []
    for one, example in drawn:
        energy = numbers(example["predicted_energy"])
        ax.plot(numbers(example["t"])[: len(energy)], energy, **look[one.label])
        spread.append(np.nanmax(np.abs(energy - truth[: len(energy)])))
    # The median prediction fills half of the panel; a diverging one leaves it.
    finite = [x for x in spread if np.isfinite(x)]
    reach = max(2 * float(np.median(finite)) if finite else 0.0, 1e-3 * float(np.ptp(truth)), 1e-9)
    middle = float(np.nanmean(truth))
    ax.set_ylim(middle - reach, middle + reach)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set(xlabel="$t$ [s]", ylabel="total energy [J]")


def budget_figure(by_task: dict[str, list[Series]]) -> "Figure":
    """Errors against seconds of training: a dot a seed, a line through their means."""
    everyone = _distinct(by_task)
    panels = {"mse": Q_ERROR, "energy_mse": E_ERROR, "probe_mse": "MSE of the probe"}
    look = looks(everyone)
    with style():
        fig = new_figure(10.5, 3.0 + 0.2 * (2 + len(everyone) / 4))
        for ax, (metric, axis) in zip(fig.subplots(1, 3), panels.items(), strict=True):
            for label, drawn in look.items():
                mine = [one for shown in by_task.values() for one in shown if one.label == label]
                points = [(one.first["train_seconds"], one.mean(metric)) for one in mine]
                points = sorted(p for p in points if np.isfinite(p[1]))
                ax.plot(*np.array(points).reshape(-1, 2).T, marker="o", markersize=3, **drawn)
                for one in mine:
                    times = [cell["train_seconds"] for cell in one.cells]
                    values = one.values(metric)
                    ax.plot(times[: len(values)], values, ".", color=drawn["color"], alpha=0.4)
            ax.set(xscale="log", yscale="log", xlabel="training [s]", ylabel=axis)
        _legend(fig, everyone)
    return fig


def bars(by_task: dict[str, list[Series]], metric: str, axis: str, title: str) -> "Figure":
    """A bar a model and task, a dot a seed, on a logarithmic axis."""
    everyone = [one for one in _distinct(by_task) if one.values(metric).size]
    rows = {one.label: row for row, one in enumerate(everyone)}
    look, thick = looks(everyone), 0.8 / len(by_task)
    positive = [
        value
        for shown in by_task.values()
        for one in shown
        for value in one.values(metric)
        if 0 < value < np.inf
    ]
    with style():
        fig = new_figure(9.0, 1.0 + (0.14 + 0.17 * len(by_task)) * len(everyone))
        ax = fig.subplots()
        for k, shown in enumerate(by_task.values()):
            for one in shown:
                values = one.values(metric)
                if not values.size:
                    continue
                at = rows[one.label] + (k - (len(by_task) - 1) / 2) * thick
                colour = look[one.label]["color"]
                ax.barh(at, one.mean(metric), 0.9 * thick, color=colour, **_kind(k))
                if len(values) > 1:
                    ax.plot(values, np.full(len(values), at), ".", color=INK, markersize=4)
                ax.annotate(
                    number(one.mean(metric)),
                    (float(values.max()), at),
                    (4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7.5,
                )
        ax.set_xscale("log")
        if positive:
            left = 10 ** np.floor(np.log10(min(positive) / 1.5))  # a labelled tick at least
            ax.set_xlim(left, max(positive) * (max(positive) / left) ** 0.12)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_yticks(range(len(rows)), list(rows))
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.set(xlabel=axis, title=title)
        if len(by_task) > 1:
            for k, name in enumerate(by_task):
                ax.barh([np.nan], [1], color=QUIET, label=name, **_kind(k))
            fig.legend(loc="outside lower center", ncols=len(by_task))
    return fig


def _kind(k: int) -> dict[str, Any]:
    """The first bar is full, the second striped."""
    return {"edgecolor": "white", "alpha": (0.95, 0.6)[k % 2], "hatch": (None, "////")[k % 2]}


def block_tables(shown: Sequence[Series], metric: str) -> dict[str, dict[tuple[int, int], float]]:
    """Per network, (block size, stride) -> mean of the metric, where strides were compared."""
    found: dict[str, dict[tuple[int, int], list[float]]] = {}
    for one in shown:
        block, stride = one.first.get("block_size"), one.first.get("stride")
        base = without_block(one.label)
        # A label that names no block is another kind of model, not a point of this grid.
        if one.family == "dhn" and block and stride and base != one.label:
            cells = found.setdefault(base, {})
            cells.setdefault((int(block), int(stride)), []).extend(one.values(metric))
    tables = {
        label: {at: float(np.mean(values)) for at, values in cells.items() if values}
        for label, cells in found.items()
        if any(cells.values())
    }
    return {
        label: cells
        for label, cells in tables.items()
        if len({s for _, s in cells}) > 1 and len({b for b, _ in cells}) < len(cells)
    }


def block_figure(tables: dict[str, dict[tuple[int, int], float]], metric: str) -> "Figure":
    """The heat map of block size and stride; squares with stride above the block do not exist."""
    with style():
        fig = new_figure(max(6.0, 5.2 * len(tables)), 3.0)
        for ax, (label, cells) in zip(
            fig.subplots(1, len(tables), squeeze=False)[0], tables.items(), strict=True
        ):
            blocks = sorted({b for b, _ in cells})
            strides = sorted({s for _, s in cells})
            grid = np.full((len(blocks), len(strides)), np.nan)
            for (b, s), value in cells.items():
                grid[blocks.index(b), strides.index(s)] = value
            low, high = np.nanmin(grid), np.nanmax(grid)
            scale = LogNorm(low, high) if 0 < low < high else None
            image = ax.imshow(grid, cmap="cividis_r", norm=scale, aspect="auto")
            for (i, j), value in np.ndenumerate(grid):
                if np.isfinite(value):
                    share = float(image.norm(value))
                    colour = "white" if share > 0.5 else "black"
                    ax.text(j, i, number(value), ha="center", va="center", color=colour)
            ax.set_xticks(range(len(strides)), [str(s) for s in strides])
            ax.set_yticks(range(len(blocks)), [str(b) for b in blocks])
            ax.grid(visible=False)
            ax.set(xlabel="stride $s$ [states]", ylabel="block size $b$ [states]", title=label)
            fig.colorbar(image, ax=ax, label=metric)
    return fig


def _distinct(by_system: dict[str, list[Series]]) -> list[Series]:
    found = {one.label: one for shown in by_system.values() for one in shown}
    return list(found.values())


def _legend(fig: "Figure", shown: Sequence[Series]) -> None:
    """Below the panels, once; a model that is in no panel is left out."""
    handles: dict[str, Any] = {}
    for ax in fig.axes:
        handles.update(
            {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        )
    order = [one.label for one in shown if one.label in handles]
    order += [label for label in handles if label not in order]
    columns = max(1, min(4, len(order)))
    if order:
        fig.legend([handles[x] for x in order], order, loc="outside lower center", ncols=columns)


def _nothing(ax: "Axes", words: str) -> None:
    ax.text(0.5, 0.5, words, ha="center", va="center", color=QUIET, transform=ax.transAxes)
    ax.set(xticks=[], yticks=[])
