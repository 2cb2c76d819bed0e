"""Draw the animation of the README: `python examples/animation.py [FILE]`, docs/forecast.webp.

The pretrained double pendulum sees 16 states of three new pendulums and predicts the rest.
"""

import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import dhn
from dhn.estimator.answers import hidden
from dhn.estimator.pretrained import draw

matplotlib.use("Agg")
OBSERVED, FRAMES = 16, 129
BLUE, GREY = "#0072b2", "#9aa0aa"


def main(path: Path) -> None:
    truth = draw("double_pendulum", 40, seed=5)
    answer = dhn.pretrained("double_pendulum").reconstruct(hidden(truth, OBSERVED))
    found = answer.trajectories
    frames = [frame(truth, found, (0, 1, 2), k) for k in range(0, FRAMES, 2)]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=110, loop=0, quality=60, method=6
    )
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB, {len(frames)} frames")


def frame(truth: dhn.Trajectories, found: dhn.Trajectories, rows, k: int) -> Image.Image:
    """The pendulums above their second angle over time, at state `k`."""
    figure, axes = plt.subplots(2, 3, figsize=(7.2, 4), height_ratios=(2, 1), layout="constrained")
    for (above, below), row in zip(axes.T, rows, strict=True):
        length = float(truth.params["l2"][row])
        for data, style in ((truth, {"color": GREY, "lw": 5}), (found, {"color": BLUE, "lw": 2})):
            path = points(data.q[row], length)
            above.plot(*path[max(0, k - 14) : k + 1, 2].T, color=style["color"], lw=1, alpha=0.7)
            above.plot(*path[k].T, "-o", ms=2 * style["lw"] + 2, **style)
        above.set(xlim=(-2.6, 2.6), ylim=(-2.7, 1.6), aspect="equal")
        above.set_title(f"l₂ = {length:.2f} m, unknown to the model", fontsize=9)
        above.axis("off")
        t, levels = truth.times[row], found.q_quantiles
        below.plot(t[: k + 1], truth.q[row, : k + 1, 1], color=GREY, lw=4)
        band = (levels[0.05][row, :, 1], levels[0.95][row, :, 1])
        below.fill_between(t, *band, color=BLUE, alpha=0.2, lw=0)
        below.plot(t, found.q[row, :, 1], color=BLUE, lw=1.5)
        below.axvspan(t[0], t[OBSERVED - 1], color="k", alpha=0.1, lw=0)
        below.set(xlim=(t[0], t[-1]), xticks=[], yticks=[])
    axes[1, 0].set_ylabel("θ₂", rotation=0)
    words = "grey: truth    blue: predicted from the 16 shaded states"
    figure.supxlabel(words, fontsize=9)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    plt.close(figure)
    return image


def points(q: np.ndarray, length: float) -> np.ndarray:
    """(T, 3, 2) pivot and bobs."""
    steps = np.stack([np.sin(q), -np.cos(q)], -1) * np.array([1.0, length])[:, None]
    return np.concatenate([np.zeros((len(q), 1, 2)), np.cumsum(steps, axis=1)], axis=1)


if __name__ == "__main__":
    here = Path(__file__).parent.parent
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here / "docs" / "forecast.webp")
