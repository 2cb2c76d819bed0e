"""Training from disk: the steps of a training in memory, on one pool after the other."""

import numpy as np
import pytest
from small import oscillators, problem, recipe

import dhn
from dhn.errors import UserError
from dhn.files.storing import writing
from dhn.training.fit import fit
from dhn.training.pools import FILE, Pooling, Pools
from dhn.training.session import Session
from dhn.training.storage import load_arrays

pytest.importorskip("zarr")


@pytest.fixture
def stored(tmp_path):
    """44 trajectories in 6 chunks, the last of which is short."""
    with writing(tmp_path / "x.zarr", chunk=8) as store:
        store.append(oscillators(44))
    return dhn.open(tmp_path / "x.zarr")


def pools_of(stored, tmp_path, pooling, **changes):
    model, _, scaler = problem(stored.read())
    shapes = tuple(model.training_shapes)
    return Pools(stored, scaler, shapes, recipe(**changes), tmp_path, model.latent_size, pooling)


def losses(found):
    return [x["loss"] for x in found.history]


def test_a_pool_is_trained_on_as_the_same_trajectories_in_memory(stored, tmp_path):
    model, some, scaler = problem(stored.read())
    pooling = Pooling(trajectories=24, steps=1000)
    first = pools_of(stored, tmp_path, pooling).chunks(0)
    options = {"progress": False, "chunk_seconds": 1e-6}
    memory = fit(model, stored.chunks(first), scaler, recipe(), **options)
    disk = fit(model, some, scaler, recipe(), stored=stored, pooling=pooling, **options)
    assert losses(disk) == losses(memory) and len(losses(disk)) > 3
    np.testing.assert_array_equal(disk.codes, memory.codes)
    assert disk.chunks == first


def test_every_chunk_comes_once_before_any_comes_again(stored, tmp_path):
    pools = pools_of(stored, tmp_path, Pooling(trajectories=24), validation=0.1)
    assert len(pools.held) == 1
    train = sorted(set(range(6)) - set(pools.held))
    for number in range(9):  # two training chunks a pool, five chunks: the third pool is filled up
        assert len(set(pools.chunks(number))) == 2
        assert not set(pools.chunks(number)) & set(pools.held)
    orders = [[x for k in range(3) for x in pools.chunks(3 * epoch + k)] for epoch in range(3)]
    assert all(sorted(order[:5]) == train for order in orders)
    assert orders[0] != orders[1]
    pools.close()


def test_codes_of_all_trajectories_are_kept(stored, tmp_path):
    model, some, scaler = problem(stored.read())
    run = tmp_path / "run"
    found = fit(
        model, some, scaler, recipe(steps=30), directory=run, progress=False,
        stored=stored, pooling=Pooling(trajectories=16, steps=10),
    )  # fmt: skip
    table = np.fromfile(run / FILE, np.float32).reshape(44, 7)
    assert (table[:, -1] > 0).all()  # three pools of two chunks each
    rows = [int(x) for x in stored.chunks(found.chunks).ids]
    np.testing.assert_array_equal(table[rows, :2], found.codes)


class Killed(Exception):
    """The process ended here."""


@pytest.mark.parametrize("moment", [1, 2, 3, 5])
@pytest.mark.parametrize("where", ["_chunk", "_take_codes", "_save"])
def test_a_killed_run_goes_on_exactly(stored, tmp_path, monkeypatch, moment, where):
    model, some, scaler = problem(stored.read())

    def train(folder):
        return fit(
            model, some, scaler, recipe(steps=50, validation=0.1, code_start=0.1),
            directory=folder, resume=True, progress=False, chunk_seconds=1e-6,
            checkpoint_seconds=1e9, stored=stored, pooling=Pooling(trajectories=16, steps=7),
        )  # fmt: skip

    whole = train(tmp_path / "whole")
    original, calls = getattr(Session, where), []

    def dies(self, *given):
        calls.append(None)
        if len(calls) == moment + 2:
            raise Killed
        return original(self, *given)

    monkeypatch.setattr(Session, where, dies)
    with pytest.raises(Killed):
        train(tmp_path / "again")
    monkeypatch.setattr(Session, where, original)
    again = train(tmp_path / "again")
    np.testing.assert_array_equal(again.codes, whole.codes)
    assert again.chunks == whole.chunks
    for name in ("step-000000050.safetensors", "best.safetensors"):
        states = [
            load_arrays(tmp_path / x / name, "training checkpoint")[1] for x in ("whole", "again")
        ]
        for key in states[0]:
            np.testing.assert_array_equal(states[0][key], states[1][key], err_msg=key)
    assert (tmp_path / "whole" / FILE).read_bytes() == (tmp_path / "again" / FILE).read_bytes()


def test_a_run_is_not_resumed_with_other_pools(stored, tmp_path):
    model, some, scaler = problem(stored.read())
    options = {"directory": tmp_path / "run", "progress": False, "stored": stored}
    fit(model, some, scaler, recipe(), **options, pooling=Pooling(16, 10))
    with pytest.raises(UserError, match=r"training.pools.steps = 10, now it is 20"):
        fit(model, some, scaler, recipe(), **options, pooling=Pooling(16, 20), resume=True)


@pytest.fixture
def large(tmp_path, monkeypatch):
    """Trajectories in memory and on disk, where they count as too many for memory."""
    monkeypatch.setattr("dhn.estimator.kinds.Pooling", lambda: Pooling(48, 50))
    monkeypatch.setattr("dhn.estimator.streaming.Pooling", lambda: Pooling(48, 50))
    data = oscillators(64, 40, params={"w": np.linspace(1, 2, 64)})
    with writing(tmp_path / "x.zarr", chunk=16) as store:
        store.append(data)
    return data, dhn.open(tmp_path / "x.zarr")


def test_noisy_trajectories_on_disk_are_refused(large, tmp_path):
    noisy = large[0].replace(noise=np.full((2, 1), 0.1))
    with writing(tmp_path / "noisy.zarr", chunk=16) as store:
        store.append(noisy)
    with pytest.raises(UserError, match="are noisy"):
        dhn.DHN().fit(dhn.open(tmp_path / "noisy.zarr"), steps=1)


def test_the_estimator_keeps_a_part_of_what_is_on_disk(large, tmp_path):
    data, stored = large
    model = dhn.DHN(width=16, batch_size=64, latent_size=2, seed=1)
    model.fit(stored, steps=2, directory=tmp_path / "run")
    summary = model.trained.summary
    assert summary["trajectories"] == 64 and summary["kept"] == 48
    assert summary["fingerprint"] == data.fingerprint()
    assert len(dhn.load(tmp_path / "run").trained.codes) == 48


@pytest.mark.slow
def test_the_estimator_learns_from_disk(large, tmp_path):
    data, stored = large
    model = dhn.DHN(width=16, batch_size=64, latent_size=2, seed=1)
    model.fit(stored, steps=300, directory=tmp_path / "run", calibrate=True)
    summary = model.trained.summary
    found = model.forecast(data[:4, :16], steps=8)
    error = np.abs(found.q[:, 16:] - data.q[:4, 16:24]).max()
    assert error < 0.1  # amplitude 1
    warm = dhn.DHN(model.config).fit(stored, steps=1, start=model).trained
    assert warm.scaler == model.trained.scaler and warm.summary["kept"] == 48
    assert warm.summary["validation"] < 2 * summary["validation"]
