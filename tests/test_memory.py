import pytest

from dhn import memory
from dhn.errors import UserError
from dhn.memory import available_memory, check_memory, size_text


def test_what_fits_passes_and_what_does_not_is_one_line(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 8_000_000_000)
    check_memory(7e9, "this", "ask for less")
    with pytest.raises(UserError) as caught:
        check_memory(2.4e10, "a forecast of 9 trajectories", "ask for less")
    assert str(caught.value) == (
        "a forecast of 9 trajectories would need about 24 GB of memory, and 8 GB are free here; "
        "ask for less."
    )


def test_the_machine_has_some():
    found = available_memory()
    assert found is None or 1e6 < found < 1e15


def test_a_container_lowers_the_limit(tmp_path):
    assert memory._container(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert memory._container(tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._container(tmp_path) is None


def test_sizes_read_well():
    assert [size_text(x) for x in (2e3, 5.25e6, 2.4e10, 3.2e19)] == [
        "2 kB", "5.25 MB", "24 GB", "32 EB",
    ]  # fmt: skip
