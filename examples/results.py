"""The tables of docs/results/index.md, filled from the results of `dhn reproduce`.

    dhn reproduce --preset quick -o results
    python examples/results.py results

copies the results into docs/results without curves and configurations, with the figures of the
report, and fills each table between its marks. Without a folder the tables are filled from the
results that are there. `a – b` is the smallest and the largest of several seeds.
"""

import argparse
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pictures import shrink

HERE = Path(__file__).parent.parent / "docs" / "results"
PAGE, RESULTS = HERE / "index.md", HERE / "results.json"
LARGE = ("config", "training", "curves")
"""Parts of a cell that are left out: 90 % of the bytes."""
LARGEST = 200_000
"""Bytes of a drawing; larger ones are converted by rsvg-convert (Debian's librsvg2-bin)."""
SYSTEMS = {"single": "single_pendulum", "double": "double_pendulum"}
BLOCK_METRICS = {
    "probe": "probe_mse", "summed energy": "summed_energy", "single states": "single_energy",
    "overlap": "overlap",
}  # fmt: skip
STRESS = {
    "noise": ("a noise 1%", "a noise 5%", "a noise 5%, unannounced"),
    "few": ("b 30 trajectories",),
    "starts": ("c random starts",),
    "long": ("d long horizon",),
    "gaps": tuple(f"e {k}x {starts} starts" for starts in ("fixed", "random") for k in (8, 16, 32)),
    "chaos": ("f chaos",),
}
STRESS_METRICS = {
    "noise": {"median": "median", "mean": "mse"},
    "few": {"median": "median", "mean": "mse"},
    "starts": {"median": "median", "mean": "mse", "probe of l2": "probe_mse"},
    "long": {"median": "median", "energy, median": "energy_mse_median", "blow-ups": "blow_ups"},
    "gaps": {"": "mse"},
    "chaos": {"valid steps": "valid_time", "median": "median", "probe of l2": "probe_mse"},
}
JUDGED = re.compile(r"(.+ against .+) \((.+)\)")
"""What was compared, and the verdict."""
Cell = dict[str, Any]
Column = tuple[str, dict[str, str], str]
"""Title, what a cell must be (experiment, system, task), and its metric."""


def number(value: float) -> str:
    if not math.isfinite(value):
        return "∞"
    if value == 0 or (abs(value) >= 1 and float(value).is_integer()):
        return f"{value:.0f}"
    return f"{value:.1e}" if abs(value) < 0.01 or abs(value) >= 1e4 else f"{value:.2g}"


def spread(values: Iterable[float | None]) -> str:
    """One number, or the smallest and the largest; JSON's null was too large for a number."""
    found = sorted(math.inf if x is None else float(x) for x in values)
    if not found:
        return ""
    ends = number(found[0]), number(found[-1])
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} – {ends[1]}"


def table(cells: list[Cell], columns: list[Column]) -> str:
    """A row a model that has a number in any column, in the order of the grid."""
    lines = [f"| model | {' | '.join(title for title, _, _ in columns)} |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for model in dict.fromkeys(cell["model"] for cell in cells):
        texts = [
            spread(
                cell["metrics"][metric]
                for cell in cells
                if cell["model"] == model and metric in cell["metrics"]
                and all(cell[key] == value for key, value in where.items())
            )
            for _, where, metric in columns
        ]  # fmt: skip
        if any(texts):
            lines.append(f"| {model} | {' | '.join(texts)} |")
    return "\n".join(lines)


def forward(cells: list[Cell], experiment: str) -> str:
    metrics = {"mean": "mse", "median": "median", "energy": "energy_mse"}
    return table(cells, [
        (f"{short}, {title}", {"experiment": experiment, "system": system}, metric)
        for short, system in SYSTEMS.items() for title, metric in metrics.items()
    ])  # fmt: skip


def interpolation(cells: list[Cell]) -> str:
    return table(cells, [
        (f"{short}, {task}", {"experiment": "interpolation", "system": system, "task": task}, "mse")
        for short, system in SYSTEMS.items() for task in ("same start", "unseen start")
    ])  # fmt: skip


def stress(cells: list[Cell], letter: str) -> str:
    return table(cells, [
        (", ".join(x for x in (task[2:], title) if x), {"experiment": "stress", "task": task}, name)
        for task in STRESS[letter] for title, name in STRESS_METRICS[letter].items()
    ])  # fmt: skip


def verdicts(rows: list[dict[str, Any]]) -> str:
    """A row a claim, a column a form."""
    forms = list(dict.fromkeys(row["form"] for row in rows))
    lines = [f"| claim | {' | '.join(forms)} |", "|---" * (len(forms) + 1) + "|"]
    for name in dict.fromkeys(row["id"] for row in rows):
        mine = {row["form"]: row for row in rows if row["id"] == name}
        statement = next(iter(mine.values()))["statement"]
        found = " | ".join(mine[form]["verdict"] for form in forms)
        lines.append(f"| **{name}** {statement} | {found} |")
    return "\n".join(lines)


def comparisons(rows: list[dict[str, Any]]) -> str:
    """A row a comparison that a verdict rests on."""
    lines = ["| claim | compared | verdict |", "|---|---|---|"]
    for row in rows:
        for text in row["why"].removesuffix(".").split("; "):
            if found := JUDGED.fullmatch(text):
                lines.append(f"| {row['id']} | {found[1]} | {found[2]} |")
    return "\n".join(lines)


def steps(cells: list[Cell]) -> str:
    """Size and steps of the trainings of one experiment."""
    some = [c for c in cells if c["experiment"] == "completion" and c["steps"]]
    lines = ["| model | parameters | steps, single | steps, double |", "|---|---|---|---|"]
    for model in dict.fromkeys(c["model"] for c in some):
        mine = [c for c in some if c["model"] == model]
        counts = [
            spread(c["steps"] for c in mine if c["system"] == system) for system in SYSTEMS.values()
        ]
        size = spread(c["parameters"] for c in mine)
        lines.append(f"| {model} | {size} | {' | '.join(counts)} |")
    return "\n".join(lines)


def tables(results: dict[str, Any]) -> dict[str, str]:
    """Name of a table on the page -> its lines."""
    cells = results["cells"]
    blocks = {"experiment": "representation"}
    paper = [row for row in results["claims"] if row["id"].startswith("C")]
    contests = [row for row in results["claims"] if row["id"].startswith("S")]
    found = {
        "fit": forward(cells, "fit"),
        "completion": forward(cells, "completion"),
        "steps": steps(cells),
        "probe": table(cells, [(title, blocks, name) for title, name in BLOCK_METRICS.items()]),
        "interpolation": interpolation(cells),
        "claims": verdicts(paper),
        "comparisons": comparisons(paper),
        "contests": verdicts(contests),
        "contests-compared": comparisons(contests),
    }
    return found | {f"stress-{name}": stress(cells, name) for name in STRESS}


def filled(page: str, results: dict[str, Any]) -> str:
    """The page with every table between its marks written anew."""
    for name, text in tables(results).items():
        mark = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = mark.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    return page


def adopt(folder: Path) -> None:
    """Copy results and figures of a run into the documentation; large drawings become pictures."""
    from dhn.reports.html import save_pictures

    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for cell in results["cells"]:
        for name in LARGE:
            cell.pop(name, None)
    RESULTS.write_text(json.dumps(results, separators=(",", ":")) + "\n", encoding="utf-8")
    shutil.copy(folder / "tables.csv", HERE / "tables.csv")
    for old in (*HERE.glob("[0-9]*.svg"), *HERE.glob("[0-9]*.png")):
        old.unlink()
    for path in save_pictures((folder / "report.html").read_text(encoding="utf-8"), HERE):
        if path.stat().st_size > LARGEST:
            picture = path.with_suffix(".png")
            subprocess.run(["rsvg-convert", "-w", "720", path, "-o", picture], check=True)
            shrink(picture)
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", help="folder of `dhn reproduce`")
    args = parser.parse_args()
    if args.results:
        adopt(args.results)
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
