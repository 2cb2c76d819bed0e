"""Draw the figures of docs/reconstruct.md: `python examples/reconstruct.py [FOLDER]`.

FOLDER is docs/ by default. A model of the package reconstructs one double pendulum that it was not
trained on, from different known numbers. Left: known numbers, the reconstruction with its 90 %
bands, and the truth. Right: the error of the reconstruction and half the width of the bands.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dhn
from dhn.reports.style import COLOURS, INK, style
from dhn.trajectories import Trajectories

SEED = 5
"""Of the pendulum that is shown."""
NOISE = 0.02
"""Of the noisy tasks, as a share of each coordinate's spread."""


def first(shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to((np.arange(shape[1]) < 16)[:, None], shape)


def every_16th(shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to((np.arange(shape[1]) % 16 == 0)[:, None], shape)


def random_tenth(shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.random.default_rng(0).random(shape[:2])[..., None] < 0.1, shape)


def ends(shape: tuple[int, ...]) -> np.ndarray:
    quarter = shape[1] // 4
    time = np.arange(shape[1])
    kept = (time < quarter) | (time >= 3 * quarter)
    return np.broadcast_to(kept[:, None], shape)


def everything(shape: tuple[int, ...]) -> np.ndarray:
    return np.ones(shape, bool)


def one_angle(shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.arange(shape[2]) == 0, shape)


TASKS: dict[str, tuple[Callable[[tuple[int, ...]], np.ndarray], bool, bool]] = {
    "forecast": (first, True, False),
    "forecast-noisy": (first, True, True),
    "interpolation": (every_16th, True, False),
    "denoising": (everything, True, True),
    "positions": (everything, False, True),
    "one-angle": (one_angle, False, False),
    "random-tenth": (random_tenth, True, False),
    "middle-lost": (ends, True, False),
}
"""Task -> which coordinates are known, whether their momenta are, too, and whether with noise."""


def question(task: str, clean: Trajectories, noisy: Trajectories) -> Trajectories:
    """The pendulum with everything hidden that the task does not show."""
    pattern, momenta, with_noise = TASKS[task]
    data = noisy if with_noise else clean
    known = pattern(data.q.shape)
    assert data.p is not None
    return data.replace(
        q=np.where(known, data.q, np.nan),
        p=np.where(known, data.p, np.nan) if momenta else None,
        known=known.any(-1),
        noise=data.noise if with_noise else None,
    )


def draw(asked: Trajectories, found: Trajectories, truth: Trajectories, path: Path) -> float:
    """One figure; returns the root mean square error of the coordinates."""
    low, high = found.q_quantiles[0.05][0], found.q_quantiles[0.95][0]
    t, error = truth.t, np.abs(found.q - truth.q)[0]
    with style():
        figure = Figure(figsize=(9, 2.3), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
        for k, (name, colour) in enumerate(zip(truth.names, COLOURS, strict=False)):
            left.plot(t, truth.q[0, :, k], color=INK, linewidth=0.8, linestyle=":")
            left.fill_between(t, low[:, k], high[:, k], color=colour, alpha=0.25, linewidth=0)
            left.plot(t, found.q[0, :, k], color=colour, linewidth=1.1, label=name)
            left.plot(t, asked.q[0, :, k], ".", color=colour, markersize=4)
            right.semilogy(t, error[:, k] + 1e-12, color=colour)
            half = (high - low)[:, k] / 2 + 1e-12
            right.semilogy(t, half, color=colour, linestyle="--", linewidth=0.9)
        left.set(xlabel="t in s", ylabel="angle in rad")
        left.set_title("known numbers (dots), reconstruction with 90 % band, truth (dotted)")
        left.legend(loc="lower left")
        right.set(xlabel="t in s", ylabel="rad")
        right.set_title("error, half of the 90 % band (dashed)")
        figure.savefig(path, dpi=110, pil_kwargs={"quality": 80})
    return float(np.sqrt(np.mean(error**2)))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs"
    model = dhn.load("pretrained:double_pendulum")
    clean, noisy = (
        dhn.simulate("double_pendulum", 1, seed=SEED, steps=128, noise=noise)
        for noise in (0.0, NOISE)
    )
    for task in TASKS:
        asked = question(task, clean, noisy)
        found = model.reconstruct(asked)
        path = folder / f"reconstruct-{task}.webp"
        error = draw(asked, found.trajectories, clean, path)
        length, deviation = (float(x[0]) for x in found.parameters["l2"])
        print(
            f"{task:15s} error {error:.1e} rad, l2 {length:.5f} ± {deviation:.5f} "
            f"(true {clean.params['l2'][0]:.5f})"
        )


if __name__ == "__main__":
    main()
