"""What was measured during a training: in memory and in metrics.jsonl."""

import json
from pathlib import Path
from typing import Any, final

from dhn.checks import from_json, whole
from dhn.errors import os_errors
from dhn.files.atomic import write_text

Record = dict[str, Any]


def read_history(path: Path) -> list[Record]:
    """The records of a file, up to a line at which a killed run was cut off, or damage.

    Arguments:
        path: The file; it need not exist.

    Returns:
        Records in order; each has its `step`, a whole number.
    """
    records: list[Record] = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            record = from_json(line)
            whole("step", record["step"], 0)
        except (ValueError, TypeError, KeyError):
            break
        records.append(record)
    return records


@final
class History:
    """Records in order of steps. One JSON object a line in the file, appended as they come.

    Of several processes one writes the file.
    """

    def __init__(self, path: Path | None = None, writes: bool = True):
        self.records: list[Record] = []
        self.path, self._written = path, path if writes else None

    def restore(self, step: int) -> None:
        """Take up the file's records up to `step`; later ones, of a lost end, are dropped."""
        if self.path is None or not self.path.exists():
            return
        self.records = [record for record in read_history(self.path) if record["step"] <= step]
        self._rewrite()

    def clear(self) -> None:
        """Begin anew."""
        self.records = []
        self._rewrite()

    def add(self, record: Record) -> None:
        self.records.append(record)
        if self._written is not None:
            with (
                os_errors(f"{self._written} cannot be written", ". Mend that and resume."),
                self._written.open("a", encoding="utf-8") as file,
            ):
                file.write(json.dumps(record) + "\n")

    def _rewrite(self) -> None:
        if self._written is not None:
            write_text(self._written, "".join(json.dumps(x) + "\n" for x in self.records))
