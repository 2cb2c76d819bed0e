"""The trajectories of a cell: simulated once, kept in the results folder for every other cell."""

import functools
import math
from pathlib import Path

from dhn.files.files import read, write
from dhn.reproduction.cell import DataSpec
from dhn.reproduction.peers.settings import SETTINGS
from dhn.systems import get_system, simulate
from dhn.trajectories.container import Trajectories

ANGLE = math.pi / 2
VELOCITY = 0.5  # rad/s


_read = functools.lru_cache(maxsize=8)(read)


def dataset(
    folder: Path, spec: DataSpec, part: str, noisy: bool, states: int | None = None
) -> Trajectories:
    """The `train` or `test` part; without noise unless `noisy`, with the same underlying truth."""
    count = spec.train if part == "train" else spec.test
    states = states or 129
    noise = spec.noise if noisy else 0.0
    gravity = "own" if spec.g is None else f"{spec.g:g}"
    name = (
        f"{spec.system}-{part}-{count}x{states}-{spec.starts}-g{gravity}-noise{noise:g}"
        f"-seed{spec.seed}.npz"
    )
    path = folder / "data" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(_simulate(spec, part, count, states, noise), path)
    data = _read(path)
    return data if spec.announced else data.replace(noise=None)


def training_set(folder: Path, spec: DataSpec) -> Trajectories:
    """What models may train on."""
    if spec.system in SETTINGS:
        return SETTINGS[spec.system].make(spec.seed).train
    return dataset(folder, spec, "train", True)[:, : spec.train_states]


def unseen_set(folder: Path, spec: DataSpec, noisy: bool = False) -> Trajectories:
    """The truth, or what was measured of it."""
    return dataset(folder, spec, "test", noisy, spec.test_states)


def _simulate(spec: DataSpec, part: str, count: int, states: int, noise: float) -> Trajectories:
    system = get_system(spec.system)
    initial = {}
    if spec.starts == "random":
        for angle in system.coordinates:
            initial[angle] = (-ANGLE, ANGLE)
            initial[f"v_{angle}"] = (-VELOCITY, VELOCITY)
    return simulate(
        system,
        count,
        seed=2 * spec.seed + (part == "test"),
        params={} if spec.g is None else {"g": spec.g},
        initial=initial,
        steps=states - 1,
        noise=noise,
    )
