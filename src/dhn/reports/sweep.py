"""The figure of a sweep: the score against each swept option."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dhn.reports.style import COLOURS, QUIET, new_figure, save, style


def sweep_figure(
    rows: Sequence[dict[str, Any]], score: Callable[[dict[str, Any]], float], label: str, path: Path
) -> None:
    """One panel an option: every cell a point, and the median of the cells that share a value.

    Arguments:
        rows: Results of the cells.
        score: What a cell is judged by; less is better.
        label: What that is.
        path: Where the picture goes.
    """
    names = rows[0]["swept"]
    values = np.array([score(row) for row in rows])
    with style():
        figure = new_figure(1.2 + 2.6 * len(names), 2.9)
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for panel, name in zip(panels, names, strict=True):
            chosen = [row["options"][name] for row in rows]
            numeric = all(isinstance(x, int | float) for x in chosen)
            levels = sorted(set(chosen), key=None if numeric else str)
            spread = numeric and levels[0] > 0 and levels[-1] / levels[0] >= 8
            place = chosen if numeric else [levels.index(x) for x in chosen]
            panel.plot(place, values, "o", color=QUIET, markersize=4, alpha=0.7)
            # With a value a cell (a random sweep) medians would be the points themselves.
            if len(levels) < len(rows):
                middle = [np.median(values[[x == level for x in chosen]]) for level in levels]
                panel.plot(
                    levels if numeric else range(len(levels)), middle, "-o", color=COLOURS[0]
                )
            if spread:
                panel.set_xscale("log")
            if not numeric or len(levels) <= 6:
                ticks = levels if numeric else range(len(levels))
                panel.set_xticks(list(ticks), [str(x) for x in levels])
                panel.minorticks_off()
            panel.set_xlabel(name)
        if np.all(values > 0):
            panels[0].set_yscale("log")
        panels[0].set_ylabel(label)
        save(figure, path)
