"""The tables of docs/results/peers.md, filled from the results of `dhn reproduce peers`.

    dhn reproduce peers -o peers
    python examples/peers.py peers

copies the numbers into docs/results/peers.json and fills each table between its marks; without a
folder the tables are filled from the numbers that are there.
"""

import argparse
import json
import re
from pathlib import Path

from results import HERE, Cell, Column, table

PAGE, NUMBERS = HERE / "peers.md", HERE / "peers.json"
KEPT = ("model", "system", "task", "seed", "metrics", "steps", "parameters", "train_seconds")


def columns(cells: list[Cell], system: str) -> list[Column]:
    """Mean, median run and share that diverged at each time of a setting."""
    times = list(dict.fromkeys(
        name for cell in cells if cell["system"] == system for name in cell["metrics"]
        if ", " not in name
    ))  # fmt: skip
    where = {"system": system}
    return [
        (f"{time}{part}", where, f"{time}{part}")
        for time in times for part in ("", ", median run", ", diverged")
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", help="folder of `dhn reproduce peers`")
    args = parser.parse_args()
    if args.results:
        found = json.loads((args.results / "results.json").read_text(encoding="utf-8"))["cells"]
        rows = [{key: cell[key] for key in KEPT if key in cell} for cell in found]
        lines = ",\n".join(json.dumps(row) for row in rows)
        NUMBERS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    cells = json.loads(NUMBERS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    for system in dict.fromkeys(cell["system"] for cell in cells):
        mark = re.compile(rf"(<!-- table {system} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = table(cells, columns(cells, system))
        page = mark.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
