"""The same training on 1, 2 and 4 devices: the same losses, to rounding."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dhn.errors import UserError
from dhn.training.devices import Devices

SCRIPT = Path(__file__).parent / "on_devices.py"
RECIPES = {
    "windows": {"batch_size": 256, "average": 0.9, "validation": 0.1},
    "trajectories": {"batch_size": 8, "batch_of": "trajectories", "code_updates": "all"},
}
ROUNDING = 2e-4
"""Relative; sums of float32 in another order, over 60 steps that magnify them."""


def train(devices: int, folder: Path, options: dict, check: bool = True):
    """In a process of its own, since the number of devices is fixed when JAX begins."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    found = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), json.dumps(options)],
        env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, text=True,
    )  # fmt: skip
    if not check:
        return found
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout.splitlines()[-1])


def assert_same(found, expected):
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=ROUNDING)
    np.testing.assert_allclose(found["codes"], expected["codes"], rtol=1e-2, atol=1e-3)
    if expected["validation"] is not None:
        assert found["validation"] == pytest.approx(expected["validation"], rel=ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_the_number_of_devices_changes_only_rounding(tmp_path, name):
    found = {n: train(n, tmp_path / str(n), RECIPES[name]) for n in (1, 2, 4)}
    assert [x["devices"] for x in found.values()] == [1, 2, 4]
    assert len(found[1]["losses"]) > 3
    for devices in (2, 4):
        assert_same(found[devices], found[1])


@pytest.mark.slow
def test_a_checkpoint_of_two_devices_is_resumed_on_one_and_on_four(tmp_path):
    whole = train(2, tmp_path / "whole", RECIPES["windows"])
    paths = sorted((tmp_path / "whole").glob("step-*.safetensors"))
    assert paths[-1].name == "step-000000060.safetensors" and len(paths) == 2
    for devices in (1, 4):
        folder = tmp_path / f"resumed{devices}"
        shutil.copytree(tmp_path / "whole", folder)
        (folder / paths[-1].name).unlink()  # as if killed after the checkpoint before
        assert_same(train(devices, folder, RECIPES["windows"]), whole)


@pytest.mark.slow
def test_devices_that_cannot_share_a_batch_are_refused_in_one_line(tmp_path):
    found = train(2, tmp_path / "run", {"batch_size": 15}, check=False)
    last = found.stderr.strip().splitlines()[-1]
    assert found.returncode and "2 devices cannot share 15 windows" in last


def test_one_device_places_nothing():
    devices = Devices()
    state = {"x": np.ones(3)}
    assert devices.mesh is None and devices.placed(state) is state
    assert devices.gathered(state) is state and devices.rows(1024) == (0, 1024)
    assert devices.agree(1.5) == 1.5 and devices.text_from_first("a") == "a"
    assert devices.any(True) and not devices.any(False)
    assert devices.take(state, np.array([0, 2]))["x"].shape == (2,)
    devices.check((15,), 1, 1024)
    devices.count = 2
    with pytest.raises(UserError, match="2 devices cannot share 15 windows"):
        devices.check((15,), 1, 1024)
