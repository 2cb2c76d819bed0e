"""Draw the figures of docs/method.md: `python examples/method.py [FOLDER]`, docs/ by default.

Masks and noise are drawn from the package's own functions, so that the figures show what runs.
"""

import sys
from pathlib import Path

import jax.random as jr
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

import dhn
from dhn.blocks.masks import get_mask
from dhn.blocks.spec import BlockSpec

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "dhn"  # the same bytes every time
BLUE, ORANGE, GREY, GREEN = "#0072b2", "#d55e00", "#b8bcc4", "#009e73"


def blocks(path: Path) -> None:
    """Source and target block of a window, for three sizes and strides."""
    cases = ((1, 1), (4, 2), (4, 1))
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.2), layout="constrained")
    for axis, (size, stride) in zip(axes, cases, strict=True):
        states = size + stride
        for row, first, colour, name in (
            (1, 0, BLUE, "source"),
            (0, stride, ORANGE, "target"),
        ):
            for k in range(size):
                axis.add_patch(Rectangle((first + k + 0.06, row + 0.12), 0.88, 0.7, color=colour))
            axis.text(-0.25, row + 0.47, name, ha="right", va="center", color=colour)
        for k in range(states):
            axis.text(k + 0.5, -0.3, f"$x_{k}$", ha="center", va="center")
        axis.set(xlim=(-2.6, 6.2), ylim=(-0.6, 2), title=f"b = {size}, s = {stride}")
        axis.axis("off")
    _save(figure, path)


def masks(path: Path) -> None:
    """Which tokens of a window each pattern hides, as the package draws them."""
    spec = BlockSpec(block_size=4, stride=2)
    names = ("autoregressive", "superresolution", "random")
    specs = (spec, BlockSpec(block_size=2, stride=1), spec)
    figure, axes = plt.subplots(1, 3, figsize=(9, 1.9), layout="constrained")
    for axis, name, spec in zip(axes, names, specs, strict=True):
        known = get_mask(name)(jr.key(3), spec)
        for row, part, letter in ((1, known.q, "q"), (0, known.p, "p")):
            for k, seen in enumerate(np.asarray(part)):
                axis.add_patch(
                    Rectangle(
                        (k + 0.06, row + 0.1), 0.88, 0.8, facecolor=BLUE if seen else "none",
                        edgecolor=BLUE if seen else ORANGE, hatch=None if seen else "////",
                    )
                )  # fmt: skip
            axis.text(-0.2, row + 0.5, f"${letter}$", ha="right", va="center")
        axis.set(xlim=(-0.6, 6.2), ylim=(-0.1, 2.1))
        axis.set_title(f"{name} (b = {spec.block_size}, s = {spec.stride})", fontsize=9)
        axis.axis("off")
    _save(figure, path)


def noise(path: Path) -> None:
    """A trajectory whose unknown half is noised at falling levels."""
    data = dhn.simulate("single_pendulum", trajectories=1, seed=0, steps=40)
    q = data.q[0, :, 0] / data.q.std()
    unknown = np.arange(len(q)) >= 20
    drawn = np.random.default_rng(0).normal(size=len(q))
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.1), sharey=True, layout="constrained")
    for axis, level in zip(axes, (1.0, 0.6, 0.2, 0.0), strict=True):
        noised = np.where(unknown, (1 - level) * q + level * drawn, q)
        axis.plot(q, color=GREY)
        axis.plot(np.flatnonzero(~unknown), q[~unknown], ".", color=BLUE, ms=4)
        axis.plot(np.flatnonzero(unknown), noised[unknown], ".", color=ORANGE, ms=4)
        axis.set(title=f"α = {level:g}", xticks=[], yticks=[])
    _save(figure, path)


def _save(figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main(folder: Path) -> None:
    blocks(folder / "method-blocks.svg")
    masks(folder / "method-masks.svg")
    noise(folder / "method-noise.svg")


if __name__ == "__main__":
    here = Path(__file__).parent.parent
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here / "docs")
