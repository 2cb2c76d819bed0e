"""The watchdog ends what does not end, and only that."""

import pytest

from watchdog import assert_ends, run_snippet


def test_a_program_that_ends_is_let_be():
    assert assert_ends("import os; print(os.environ['NPROC'])", seconds=20, times=2) == ["2\n"] * 2


def test_a_program_that_waits_for_ever_is_ended():
    run = run_snippet("import threading; threading.Event().wait()", seconds=0.5)
    assert not run.ended and run.code == -9
    with pytest.raises(AssertionError, match=r"run 1 of 3 did not end in 0.5 s"):
        assert_ends("while True: pass", seconds=0.5, times=3)


def test_a_failure_is_shown():
    with pytest.raises(AssertionError, match=r"(?s)ended with 1: .*ZeroDivisionError"):
        assert_ends("1 / 0", seconds=20, times=1)
