"""Figures of the learned phase space beside the true one."""

from typing import TYPE_CHECKING

import numpy as np

from dhn.evaluation.phase_space import PeriodCurve, PoincareSection
from dhn.reports.style import COLOURS, INK, QUIET, axis, new_figure, style, symbol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3
"""Panels beside each other."""


def period_figure(found: PeriodCurve, unit: str) -> "Figure":
    """Periods over the energy, and their errors; the separatrix and the energies of the data."""
    with style():
        fig = new_figure(9.0, 3.0)
        periods, errors = fig.subplots(1, 2)
        periods.plot(found.energies, found.true, color=INK, linewidth=3.2, alpha=0.35, label="true")
        periods.plot(found.energies, found.learned, "o", color=COLOURS[1], ms=4, label="learned")
        errors.semilogy(found.energies, found.errors(), "o-", color=COLOURS[1], ms=4)
        for ax in (periods, errors):
            ax.axvspan(0, found.seen, color=COLOURS[0], alpha=0.08, label="energies of the data")
            if found.separatrix is not None:
                ax.axvline(found.separatrix[1], color=INK, alpha=0.35, linewidth=3.2)
                ax.axvline(found.separatrix[0], color=COLOURS[1], linestyle="--", linewidth=1)
            ax.set(xlabel="energy above rest")
        periods.set_ylabel(axis("period", unit or None))
        errors.set_ylabel("relative error of the period")
        periods.legend()
    return fig


def section_figure(found: PoincareSection) -> "Figure":
    """A panel for each orbit: crossings of the true path and of the learned one."""
    first, name = symbol(found.names[0]), found.names[0]
    rows = -(-len(found.true) // COLUMNS)
    with style():
        fig = new_figure(9.5, 0.6 + 2.4 * rows)
        axes = np.ravel(fig.subplots(rows, COLUMNS, squeeze=False))
        for ax in axes[len(found.true) :]:
            ax.set_axis_off()
        for ax, learned, true in zip(axes, found.learned, found.true, strict=False):
            ax.plot(*true.T, "o", color=QUIET, ms=5, alpha=0.6, mew=0, label="true")
            ax.plot(*learned.T, ".", color=COLOURS[1], ms=3, label="learned")
            ax.set(xlabel=first, ylabel=symbol(f"p_{name}"))
        axes[0].legend()
    return fig
