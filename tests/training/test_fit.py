import json
import os
import signal
import threading
import time

import equinox as eqx
import jax
import numpy as np
import pytest
from small import SMALL, oscillators, problem, recipe

from dhn.errors import UserError
from dhn.files.atomic import atomic_path
from dhn.training import session as session_module
from dhn.training.fit import TrainingDiverged, fit
from dhn.training.interrupt import TrainingInterrupted
from dhn.training.lock import lock_run
from dhn.training.pace import take_steps
from dhn.training.progress import Silent
from dhn.training.session import Options, Session
from dhn.training.step import run_steps
from dhn.training.storage import load_arrays, save_arrays

QUIET = {"progress": False, "chunk_seconds": 0.02}


def weights(result) -> list[np.ndarray]:
    arrays = jax.tree.leaves(eqx.filter(result.model, eqx.is_inexact_array))
    return [np.asarray(x) for x in arrays] + [result.codes]


def assert_same(a, b):
    assert len(weights(a)) == len(weights(b))
    for x, y in zip(weights(a), weights(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.fixture(scope="module")
def whole():
    """Forty steps at once, without a folder."""
    return fit(*problem(), recipe(), progress=False)


def test_training_learns_and_reports():
    result = fit(*problem(), recipe(steps=400, batch_size=64), progress=False)
    assert result.history[0]["loss"] > 30 * result.history[-1]["loss"]
    assert result.steps == 400 and result.chosen == "last" and result.validation is None
    assert result.codes.shape == (12, 2)
    assert 0 < result.noise < 0.5
    assert result.history[-1]["step"] == 400
    assert result.history[-1]["learning_rate"] < 1e-5 < result.history[-2]["learning_rate"]


def test_same_seed_same_weights_whatever_the_chunks(whole):
    assert_same(whole, fit(*problem(), recipe(), progress=False, chunk_seconds=1e-6))
    other = fit(*problem(), recipe(seed=1), **QUIET)
    assert not np.array_equal(weights(whole)[0], weights(other)[0])


def test_neither_steps_nor_trajectories_recompile():
    problem_of_ten = problem(oscillators(10))
    fit(*problem_of_ten, recipe(steps=3), **QUIET)
    compiled = run_steps._cached._cache_size()
    fit(*problem_of_ten, recipe(steps=7, seed=5), **QUIET)
    model, _, scaler = problem_of_ten
    fit(model, oscillators(30, seed=1), scaler, recipe(steps=2), **QUIET)
    assert run_steps._cached._cache_size() == compiled


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_interrupted_run_resumes_bit_for_bit(whole, tmp_path, monkeypatch, number):
    """A signal in the middle saves; another call with the same arguments goes on."""
    handler = signal.getsignal(number)
    take = session_module.take_steps
    calls = []

    def signalled(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            signal.raise_signal(number)
        return take(*arguments)

    monkeypatch.setattr(session_module, "take_steps", signalled)
    with pytest.raises(TrainingInterrupted, match=r"stopped at step .* resume to go on") as caught:
        fit(*problem(), recipe(), directory=tmp_path, progress=False, chunk_seconds=1e-6)
    assert caught.value.exit_code == 128 + number
    assert signal.getsignal(number) is handler
    (checkpoint,) = tmp_path.glob("step-*.safetensors")
    assert 0 < load_arrays(checkpoint, "training checkpoint")[0]["step"] < 40
    result = fit(*problem(), recipe(), directory=tmp_path, resume=True, **QUIET)
    assert_same(whole, result)
    steps = [record["step"] for record in result.history]
    assert steps == sorted(set(steps)) and steps[-1] == 40
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.history
    # A finished run gives the same result again at once.
    assert_same(whole, fit(*problem(), recipe(), directory=tmp_path, resume=True, **QUIET))


def test_second_sigint_aborts_at_once(tmp_path, monkeypatch):
    take = session_module.take_steps

    def signalled(run, state, steps):
        if steps:
            # To this thread and handled at once; `os.kill` may be handled later, anywhere.
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return take(run, state, steps)

    monkeypatch.setattr(session_module, "take_steps", signalled)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(*problem(), recipe(), directory=tmp_path, progress=False)
    assert not isinstance(caught.value, TrainingInterrupted)
    assert not list(tmp_path.glob("*.safetensors"))


def test_python_hears_signals_while_steps_run():
    """The handler of a signal runs during a long chunk, not after it."""
    model, data, scaler = problem()
    session = Session(model, data, scaler, recipe(), Options(chunk_seconds=1.0), Silent())
    state, _, _ = take_steps(session.run, session.state, 0)
    state, _, seconds = take_steps(session.run, state, 500)
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(time.monotonic()))
    try:
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        take_steps(session.run, state, int(500 * 2.0 / seconds))
        ended = time.monotonic()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(heard) == 1 and ended - heard[0] > 0.3


def test_threads_may_train(whole, tmp_path):
    results = []
    thread = threading.Thread(
        target=lambda: results.append(fit(*problem(), recipe(), directory=tmp_path, **QUIET))
    )
    thread.start()
    thread.join()
    assert_same(whole, results[0])


def test_rolling_checkpoints_explain_themselves(tmp_path):
    data = oscillators(system="oscillator", units={"q": "m"})
    fit(*problem(data), recipe(), directory=tmp_path, checkpoint_seconds=0.0, **QUIET)
    kept = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(kept) == 2 and kept[-1] == "step-000000040.safetensors"
    metadata, arrays = load_arrays(tmp_path / kept[-1], "training checkpoint")
    assert metadata["data"] == data.fingerprint()
    assert metadata["model"]["config"] == SMALL.model_dump(mode="json")
    assert metadata["training"] == recipe().model_dump(mode="json")
    assert metadata["system"] == "oscillator" and metadata["units"] == {"q": "m"}
    assert metadata["names"] == ["q"] and metadata["total_steps"] == 40 and metadata["seed"] == 0
    assert metadata["context"]["dim"] == 1 and metadata["scaler"]["q_scale"]
    assert arrays[".codebook.rows"].shape == (1024, 2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    fit(*problem(), recipe(), directory=folder, checkpoint_seconds=0.0, **QUIET)
    return folder


CHANGES = {
    "data": (
        lambda: (problem(oscillators(seed=3)), recipe()),
        "was trained on other data .* resume with the same data",
    ),
    "training": (
        lambda: (problem(), recipe(learning_rate=1e-3)),
        "training.learning_rate = 0.008, now it is 0.001; resume with the old value",
    ),
    "model": (
        lambda: (problem(config=SMALL.model_copy(update={"latent_size": 3})), recipe()),
        "model.config.latent_size = 2, now it is 3",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_resuming_something_else_is_refused(case, finished):
    make, message = CHANGES[case]
    arguments, config = make()
    with pytest.raises(UserError, match=message):
        fit(*arguments, config, directory=finished, resume=True, **QUIET)


def test_a_run_is_not_overwritten_and_a_budget_not_changed(finished):
    with pytest.raises(UserError, match="already holds a run; resume it"):
        fit(*problem(), recipe(), directory=finished, **QUIET)
    with pytest.raises(UserError, match=r"budget = None, now it is 5.0"):
        fit(*problem(), recipe(), directory=finished, resume=True, budget=5.0, **QUIET)
    with pytest.raises(UserError, match=r"budget must be a positive duration.*got -1.0"):
        fit(*problem(), recipe(), budget=-1.0, **QUIET)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, whole):
    fit(*problem(), recipe(), directory=tmp_path, checkpoint_seconds=0.0, **QUIET)
    _, newest = sorted(tmp_path.glob("step-*.safetensors"))
    flip(newest, -100)
    (tmp_path / ".step-000000050.0123abcd.safetensors").write_bytes(b"half")
    with pytest.warns(UserWarning, match="checksum is wrong.* goes on without it"):
        again = fit(*problem(), recipe(), directory=tmp_path, resume=True, **QUIET)
    assert_same(whole, again)
    assert (tmp_path / f"damaged-{newest.name}").exists()
    assert not list(tmp_path.glob(".step*"))
    for path in tmp_path.glob("step-*.safetensors"):
        flip(path, -100)
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(UserError, match=r"no checkpoint in .* can be read; train into a new folder"),
    ):
        fit(*problem(), recipe(), directory=tmp_path, resume=True, **QUIET)


def test_a_damaged_best_checkpoint_is_forgotten(tmp_path):
    config = recipe(validation=0.2)
    fit(*problem(), config, directory=tmp_path, **QUIET)
    flip(tmp_path / "best.safetensors", -100)
    with pytest.warns(UserWarning, match=r"best.safetensors is damaged"):
        again = fit(*problem(), config, directory=tmp_path, resume=True, **QUIET)
    assert again.chosen == "last"


def flip(path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


HEADERS = {
    "missing": (lambda header: header.pop("schedule"), "lacks 'schedule' in its header"),
    "mistyped": (
        lambda header: header.update(step="ten"),
        "'step' in its header must be an integer, got 'ten'",
    ),
    "new": (
        lambda header: header["training"].update(novelty=1),
        "training.novelty = 1, now it is None",
    ),
}


@pytest.mark.parametrize("case", HEADERS)
def test_foreign_metadata_is_one_line(case, finished, tmp_path):
    change, message = HEADERS[case]
    newest = sorted(finished.glob("step-*.safetensors"))[-1]
    header, arrays = load_arrays(newest, "training checkpoint")
    change(header)
    save_arrays(tmp_path / newest.name, header, arrays)
    with pytest.raises(UserError, match=message):
        fit(*problem(), recipe(), directory=tmp_path, resume=True, **QUIET)


def test_a_folder_in_use_is_refused(tmp_path, whole):
    with lock_run(tmp_path), pytest.raises(UserError) as caught:
        fit(*problem(), recipe(), directory=tmp_path, **QUIET)
    assert str(caught.value) == (
        f"{tmp_path} is in use by another training (process {os.getpid()}); wait for its end, or "
        f"train into another folder."
    )
    assert_same(whole, fit(*problem(), recipe(), directory=tmp_path, **QUIET))


def test_folder_that_cannot_be(tmp_path):
    with atomic_path(tmp_path / "file") as path:
        path.write_text("x")
    with pytest.raises(UserError, match="file is a file; give a folder"):
        fit(*problem(), recipe(), directory=tmp_path / "file", **QUIET)


def test_divergence_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    """A learning rate beyond all reason must overflow; the finite state before it stays."""
    config = recipe(learning_rate=1e30, warmup=0, steps=500)
    with pytest.raises(
        TrainingDiverged, match=r"not a number at step \d+, learning rate 1e\+30. Lower"
    ) as caught:
        fit(
            *problem(), config, directory=tmp_path, checkpoint_seconds=0.0,
            progress=False, chunk_seconds=1e-6,
        )  # fmt: skip
    assert isinstance(caught.value, UserError)
    kept = sorted(tmp_path.glob("step-*.safetensors"))
    assert str(kept[-1]) in str(caught.value)
    _, arrays = load_arrays(kept[-1], "training checkpoint")
    assert all(np.isfinite(x).all() for name, x in arrays.items() if name.startswith(".weights"))


def test_average_is_returned_and_follows_the_weights():
    plain = fit(*problem(), recipe(), **QUIET)
    slow = fit(*problem(), recipe(average=0.999), **QUIET)
    first = problem()[0]
    start = [np.asarray(x) for x in jax.tree.leaves(eqx.filter(first, eqx.is_inexact_array))]
    moved = sum(np.abs(a - b).sum() for a, b in zip(weights(plain), start, strict=False))
    lagged = sum(np.abs(a - b).sum() for a, b in zip(weights(slow), start, strict=False))
    assert 0 < lagged < 0.1 * moved
    # The average does not act back on the training itself.
    np.testing.assert_array_equal(plain.codes, slow.codes)


def test_double_precision():
    result = fit(*problem(), recipe(steps=5, precision="float64"), **QUIET)
    assert all(x.dtype == np.float64 for x in weights(result))
    assert jax.numpy.zeros(1).dtype == np.float32


@pytest.mark.slow
def test_stages_share_one_codebook_and_denoise(tmp_path):
    """Two resolutions, two Hamiltonians, noise: trained, interrupted and resumed all the same."""
    config = SMALL.model_copy(
        update={
            "block_size": 2, "spacings": (1, 3), "linked": False,
            "denoising_weight": 1.0,
        }
    )  # fmt: skip
    arguments = problem(oscillators(6, 40), config)
    result = fit(*arguments, recipe(steps=12, validation=0.3), directory=tmp_path, **QUIET)
    assert {"equation", "denoising", "validation"} <= result.history[-1].keys()
    assert result.codes.shape == (6, 2) and np.all(result.codes != 0)
    last = result.history[-1]
    assert last["loss"] == pytest.approx(last["equation"] + last["denoising"])
    per_step = last["windows_per_second"] / last["steps_per_second"]
    assert per_step == pytest.approx(2 * 16)
