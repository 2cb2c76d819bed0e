"""One small world that every mistake is made in: data, damaged files, two trained models."""

import os
import shutil
from pathlib import Path

import pytest
from small_world import damaged, oscillator_runs, pendulums, write_data

import dhn
from dhn.mechanics import fit_mechanics


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    """A folder with `run`, a network trained for one step, and `mech`, mechanics."""
    folder = tmp_path_factory.mktemp("models")
    network = dhn.DHN(width=8, depth=1, latent_size=2, validation=0.0)
    network.fit(pendulums(), steps=1).save(folder / "run")
    runs = oscillator_runs()
    mechanics = dhn.Mechanics()
    mechanics.fitted = fit_mechanics(runs, systems="one", groups=())
    mechanics.labels = {
        "names": list(runs.names), "units": {}, "system": None,
        "summary": {"seconds": 0.0, "trajectories": len(runs), "fingerprint": ""},
    }  # fmt: skip
    mechanics.save(folder / "mech")
    return folder


@pytest.fixture(scope="session")
def world(models) -> Path:
    """The folder that commands run in; no mistake may change it."""
    folder = models
    write_data(folder)
    for name in ("run", "mech"):
        for how in ("cut", "flipped", "junk", "empty"):
            shutil.copytree(folder / name, folder / f"{name}-{how}")
            file = next((folder / f"{name}-{how}").glob("*.safetensors"))
            file.write_bytes(damaged(file.read_bytes(), how))
    results = {"none": "{}", "cut": "[1, 2", "odd": '{"cells": [{}], "claims": 5}', "list": "[]"}
    results["deep"] = 100_000 * "["
    for name, text in results.items():
        (folder / f"results-{name}").mkdir()
        (folder / f"results-{name}" / "results.json").write_text(text)
    (folder / "empty-folder").mkdir()
    (folder / "folder.npz").mkdir()
    (folder / "foreign.zarr").mkdir()
    (folder / "foreign.zarr" / "zarr.json").write_text("{}")
    os.mkfifo(folder / "pipe.npz")
    (folder / "read-only").mkdir()
    return folder


@pytest.fixture(autouse=True)
def no_work(world, monkeypatch):
    """Every mistake is found before a simulation, a training or a solve begins."""

    def work(*args, **options):
        raise AssertionError("work began before the mistake was found")

    for place in (
        "dhn.systems.simulation._solve",
        "dhn.training.session.Session.train",
        "dhn.mechanics.searching.Search.forward",
        "dhn.mechanics.model.MechanicalModel.smooth",
        "dhn.estimator.asking.reconstruct",
        "dhn.estimator.asking.reconstruct_by_denoising",
        "dhn.cli.doctor._self_test",
        "dhn.reproduction.runner.run_grid",
    ):
        monkeypatch.setattr(place, work)
    # Messages name the free memory, which other programs change.
    monkeypatch.setattr("dhn.memory.available_memory", lambda: 16 * 10**9)


@pytest.fixture
def unchanged(world, monkeypatch):
    """Run in the world, and see afterwards that nothing in it has changed."""
    monkeypatch.chdir(world)
    before = contents(world)
    yield world
    assert contents(world) == before


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Path -> size and time of the last change of every file; folders by name alone."""
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        found[str(path)] = (stat.st_size, stat.st_mtime_ns) if path.is_file() else (0, 0)
    return found


@pytest.fixture(scope="session")
def network(world):
    return dhn.load(world / "run")


@pytest.fixture(scope="session")
def mechanics(world):
    return dhn.load(world / "mech")


@pytest.fixture(scope="session")
def data(world):
    return dhn.read(world / "d.npz")


@pytest.fixture(scope="session")
def runs(world):
    return dhn.read(world / "pos.npz")
