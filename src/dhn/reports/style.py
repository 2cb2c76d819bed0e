"""The style of all figures: colours that colour-blind readers can distinguish, plain axes."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dhn.errors import UserError
from dhn.files.atomic import atomic_path

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

# Okabe and Ito's palette without its yellow (too faint on white) and black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
QUIET = "#9A9A9A"
INK = "#333333"

FORMATS = (".png", ".svg", ".pdf")
DPI = 150  # dots an inch, of PNG


def style() -> "AbstractContextManager[None]":
    """Within it, figures look like this project's."""
    return rc_context(
        {
            "font.size": 9,
            "axes.titlesize": 9.5,
            "axes.titlelocation": "left",
            "axes.labelsize": 9,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.7,
            "axes.grid": True,
            "grid.color": "#E6E6E6",
            "grid.linewidth": 0.6,
            "lines.linewidth": 1.4,
            "lines.solid_capstyle": "round",
            "legend.frameon": False,
            "legend.fontsize": 8,
            "figure.facecolor": "white",
            # The same figure gives the same bytes: no random ids in SVG.
            "svg.hashsalt": "dhn",
            "svg.fonttype": "path",
        }
    )


GREEK = ("alpha", "beta", "gamma", "theta", "lambda", "mu", "omega", "phi", "psi")


def symbol(name: str) -> str:
    """A name as it is written in mathematics: `p_theta1` gives p with the index theta 1."""
    if name.startswith(("p_", "v_")) and len(name) > 2:
        head = "p" if name[0] == "p" else r"\dot "
        inner = symbol(name[2:]).strip("$")
        return f"${head}_{{{inner}}}$" if head == "p" else f"${head}{{{inner}}}$"
    found = re.fullmatch(r"([a-zA-Z]+)_?(\d*)", name)
    if not found or (len(found[1]) > 1 and found[1] not in GREEK):
        return name
    letter = f"\\{found[1]}" if found[1] in GREEK else found[1]
    return f"${letter}_{{{found[2]}}}$" if found[2] else f"${letter}$"


def new_figure(width: float, height: float) -> Figure:
    """A figure that belongs to no window and to no global list."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axis(name: str, unit: str | None) -> str:
    """The label of an axis."""
    return f"{symbol(name)} [{unit}]" if unit else symbol(name)


def save(figure: Figure, path: Path) -> None:
    """Write the picture whole or not at all, with no date in it."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(
            f"pictures end in {', '.join(FORMATS)}; got {path.name!r}. "
            f"Try {path.with_suffix('.png').name}."
        )
    ending = path.suffix.lower().removeprefix(".")
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=ending, dpi=DPI, metadata=undated[ending])
