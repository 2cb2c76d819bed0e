import io

from dhn.training.history import History
from dhn.training.progress import Bar, PlainLines, figures

RECORD = {"step": 50, "loss": 1.234e-3, "steps_per_second": 10.0, "windows_per_second": 5120.0}


def test_figures():
    assert figures(RECORD, 900) == "loss 1.23e-03  10 steps/s  5.12k windows/s  1:25 left"
    assert figures({**RECORD, "validation": 0.5}, 50).split("  ")[1] == "validation 5.00e-01"
    assert figures(RECORD, 100_050).endswith("2:46:40 left")
    assert figures(RECORD, 36_650).endswith("1:01:00 left")


def test_plain_lines_are_few():
    file = io.StringIO()
    lines = PlainLines(file)
    for step in (1, 2, 3, 100):
        lines.show({**RECORD, "step": step}, 100)
    lines.say("done")
    said = file.getvalue().splitlines()
    assert [line.split("  ")[0] for line in said] == ["step 1/100", "step 100/100", "done"]


def test_bar_shows_the_figures():
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120)
    with Progress(TextColumn("{task.fields[figures]}"), console=console) as progress:
        bar = Bar(progress)
        bar.show(RECORD, 900)
        bar.say("resuming")
    assert "loss 1.23e-03" in file.getvalue() and "resuming" in file.getvalue()


def test_history_drops_what_a_killed_run_lost(tmp_path):
    path = tmp_path / "metrics.jsonl"
    history = History(path)
    for step in (10, 20, 30):
        history.add({"step": step, "loss": 1.0 / step})
    path.write_text(path.read_text() + '{"step": 40, "lo')
    again = History(path)
    again.restore(20)
    again.add({"step": 25, "loss": 0.0})
    assert [record["step"] for record in again.records] == [10, 20, 25]
    third = History(path)
    third.restore(100)
    assert third.records == again.records
    third.clear()
    assert path.read_text() == ""
