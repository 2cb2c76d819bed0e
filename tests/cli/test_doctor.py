"""`dhn doctor` states what is here, and does not hide what does not work."""

import json

import pytest

from dhn.cli import main
from dhn.cli.selftest import STEPS


def test_a_self_test_that_hangs_is_ended_and_named(capsys):
    assert main(["doctor", "--timeout", "0.01"]) == 1
    shown = capsys.readouterr().out
    assert "FAILED: did not finish within 0.01 s" in shown
    assert "Something is wrong" in shown
    assert "GPU" in shown and "none that JAX can use" in shown


@pytest.mark.slow
def test_everything_works_here(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] and [x["step"] for x in found["self_test"]] == list(STEPS)
    assert found["versions"]["jax"] and found["devices"] == ["cpu: cpu"] and not found["gpu"]
    assert found["cache"]["folder"]
