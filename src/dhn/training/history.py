"""What was measured during a training: in memory and in metrics.jsonl."""

import json
from pathlib import Path
from typing import Any, final

from dhn.errors import UserError
from dhn.files.atomic import atomic_path

Record = dict[str, Any]


def read_records(path: Path) -> list[Record]:
    """The records of a file, up to a line at which a killed run was cut off, or damage."""
    found: list[Record] = []
    if path.is_file():
        for line in path.read_bytes().splitlines():
            try:
                record = json.loads(line)
                int(record["step"])
            except (ValueError, TypeError, KeyError, RecursionError):
                break
            found.append(record)
    return found


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
        if self.path is None or not self.path.is_file():
            return
        self.records = [x for x in read_records(self.path) if x["step"] <= step]
        self._rewrite()

    def clear(self) -> None:
        """Begin anew."""
        self.records = []
        self._rewrite()

    def add(self, record: Record) -> None:
        self.records.append(record)
        if self._written is not None:
            try:
                with self._written.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            except OSError as error:
                raise UserError(
                    f"{self._written} cannot be written: {error.strerror}. Mend that and resume."
                ) from error

    def _rewrite(self) -> None:
        if self._written is not None:
            with atomic_path(self._written) as temporary:
                text = "".join(json.dumps(record) + "\n" for record in self.records)
                temporary.write_text(text, encoding="utf-8")
