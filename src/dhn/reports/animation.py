"""A pendulum's predicted motion over the true one: a small player, and frames for paper."""

import dataclasses
import json
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float

from dhn.reports.html import Html, asset, element, picture, text
from dhn.reports.style import COLOURS, INK, QUIET, new_figure, style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

FRAMES = 6  # on paper
PREDICTED = COLOURS[1]
TRAIL = 40  # states


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Film:
    """Joints of a chain of rods, the pivot first, in metres."""

    label: str
    t: Float[np.ndarray, " T"]
    truth: Float[np.ndarray, "T joints 2"]
    predicted: Float[np.ndarray, "T joints 2"]

    @property
    def reach(self) -> float:
        return float(np.nanmax(np.abs(self.truth))) * 1.12


def film(
    label: str,
    t: "Sequence[float] | np.ndarray",
    truth: Any,
    predicted: Any,
    lengths: "Sequence[float]",
) -> Film:
    """From angles `(T, d)` against the vertical and the lengths of the `d` rods."""
    times = np.asarray(t, np.float64)
    return Film(label, times, joints(_angles(truth), lengths), joints(_angles(predicted), lengths))


def joints(
    angles: Float[np.ndarray, "T d"], lengths: "Sequence[float]"
) -> Float[np.ndarray, "T joints 2"]:
    """Where the pivot and the ends of the rods are; y points up."""
    steps = np.stack([np.sin(angles), -np.cos(angles)], axis=-1) * np.reshape(lengths, (1, -1, 1))
    return np.concatenate([np.zeros((len(angles), 1, 2)), np.cumsum(steps, axis=1)], axis=1)


def rod_lengths(system: str | None, params: "Mapping[str, float]") -> list[float] | None:
    """The rods of the systems that are pendulums, where their lengths are known."""
    names = {"single_pendulum": ["l"], "double_pendulum": ["l1", "l2"]}.get(system or "")
    if names is None or not set(names) <= set(params):
        return None
    return [float(params[name]) for name in names]


def player(films: "Sequence[Film]", caption: str) -> Html:
    """The player on screen, frames of the first film on paper."""
    data = [
        {
            "label": each.label,
            "t": _rounded(each.t),
            "truth": _rounded(each.truth),
            "predicted": _rounded(each.predicted),
            "reach": each.reach,
        }
        for each in films
    ]
    # `<` would let a label end the script.
    coded = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    choices = [element("option", each.label, value=str(i)) for i, each in enumerate(films)]
    controls = element(
        "div",
        element("button", "Play", type="button", class_="play"),
        Html('<input type="range" class="at" min="0" value="0" step="1" aria-label="time">'),
        element("span", class_="clock"),
        element("label", "model ", element("select", *choices, class_="which")),
        class_="controls",
    )
    canvas = Html('<canvas width="880" height="880" style="width:400px"></canvas>')
    screen = element(
        "div",
        canvas,
        controls,
        Html(f'<script type="application/json">{coded}</script>'),
        Html(f"<script>{asset('player.js')}</script>"),
        class_="screen film",
    )
    paper = picture(frames(films[0]), text(""), alt="frames of the animation")
    return element(
        "figure",
        screen,
        element("div", paper, class_="paper"),
        element("figcaption", caption),
    )


def frames(shown: Film) -> "Figure":
    """A few moments side by side."""
    moments = np.linspace(0, len(shown.t) - 1, FRAMES).round().astype(int)
    with style():
        fig = new_figure(10.5, 2.2)
        for ax, k in zip(fig.subplots(1, FRAMES), moments, strict=True):
            past = slice(max(0, k - TRAIL), k + 1)
            for chain, colour, width in (
                (shown.truth, QUIET, 3.5),
                (shown.predicted, PREDICTED, 1.6),
            ):
                ax.plot(*chain[past, -1].T, color=colour, linewidth=0.8, alpha=0.7)
                ax.plot(
                    *chain[k].T, color=colour, linewidth=width, marker="o", markersize=width + 1
                )
            reach = shown.reach
            ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
            ax.set_title(f"t = {shown.t[k]:.2f} s", color=INK)
    return fig


def _angles(values: Any) -> Float[np.ndarray, "T d"]:
    angles = np.asarray(values, np.float64)  # a missing number is None in JSON, NaN here
    return angles.reshape(len(angles), -1)


def _rounded(values: np.ndarray) -> Any:
    """A tenth of a millimetre is enough, and NaN has no place in JSON."""
    cut = np.round(values, 4).astype(object)
    cut[~np.isfinite(values)] = None
    return cut.tolist()
