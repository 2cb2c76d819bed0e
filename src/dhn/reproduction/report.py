"""`report.html` of a reproduction: claims first, then each experiment, then what was run."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dhn.reports.animation import Film, film, player, rod_lengths
from dhn.reports.html import (
    Html,
    bullets,
    duration,
    element,
    folded,
    join,
    number,
    page,
    paragraph,
    picture,
    section,
    table,
    write_page,
)
from dhn.reproduction.report_figures import (
    bars,
    block_figure,
    block_tables,
    completion_figure,
    fit_figure,
)
from dhn.reproduction.report_results import (
    EXPERIMENTS,
    Cell,
    Series,
    check,
    metric_names,
    series,
    system_title,
    systems,
    tasks,
)
from dhn.reproduction.results import FILE

REPORT = "report.html"
Section = tuple[str, str, Html]

TITLES = {
    "fit": "Fit: training trajectories from their first states",
    "completion": "Completion: new trajectories from their first states",
    "representation": "Representation: a parameter read off the latent codes",
    "interpolation": "Interpolation: the states between every fourth",
    "stress": "Stress: beyond the paper's settings",
}
METRICS = {
    "mse": "MSE of q",
    "mse_physical": "MSE of q, physical units",
    "median": "median trajectory",
    "worst": "worst trajectory",
    "blow_ups": "diverged",
    "energy_mse": "MSE of energy",
    "energy_drift": "relative drift of energy",
    "probe_mse": "MSE of l2/l1",
    "probe_r2": "R²",
    "probe_median": "median of squares",
    "mse_early": "MSE, first 16",
    "mse_late": "MSE, last 16",
    "valid_time": "steps valid, median",
    "valid_time_mean": "steps valid, mean",
    "energy_mse_median": "MSE of energy, median trajectory",
    "phase_steps": "steps out of phase",
}
UNSHOWN = ("states",)
"""How many states a metric counts is the same for all models of a table."""
LEGEND = (
    "Lines are geometric means over seeds, bands span the seeds. Each family of models has its "
    "hue; "
    "curves that leave the top of a panel have diverged."
)


def write_report(results: dict[str, Any], directory: Path) -> Path:
    """Draw `report.html` in the folder from the results alone; nothing is run again."""
    path = Path(directory) / REPORT
    write_page(path, document(results))
    return path


def document(results: dict[str, Any]) -> str:
    """The whole page. Experiments without results are named, and left out."""
    check(results)
    cells: list[Cell] = results["cells"]
    draw = {
        "fit": _fit,
        "completion": _completion,
        "representation": _representation,
        "interpolation": _interpolation,
        "stress": _stress,
    }
    present = {str(cell.get("experiment")) for cell in cells}
    sections = [_claims(results)]
    sections += [
        section(TITLES[name], *draw[name](cells), anchor=name)
        for name in EXPERIMENTS
        if name in present
    ]
    sections += [_runs(results)]
    missing = [name for name in EXPERIMENTS if name not in present]
    opening = [paragraph(f"Not in these results: {', '.join(missing)}.")] if missing else []
    title = "Denoising Hamiltonian Network: the paper's experiments"
    return page(title, _lead(results), opening, sections)


def _lead(results: Mapping[str, Any]) -> str:
    cells = results["cells"]
    seconds = [float(c["train_seconds"]) for c in cells if _real(c.get("train_seconds"))]
    trained = f", {duration(sum(seconds))} of training" if seconds else ""
    return (
        f"dhn {results.get('version', '')}, preset {results.get('preset', '')}: "
        f"{len(cells)} runs{trained}. Started {results.get('started', '–')}, "
        f"finished {results.get('finished', '–')}."
    )


def _claims(results: Mapping[str, Any]) -> Section:
    claims = results.get("claims") or []
    if not claims:
        return section("Claims of the paper", paragraph("None was judged here."), anchor="claims")
    rows = [
        (
            claim.get("id"),
            claim.get("statement"),
            _measured(claim.get("measured")),
            _verdict(str(claim.get("verdict", "not judged"))),
            claim.get("why"),
        )
        for claim in claims
    ]
    header = ("claim", "the paper says", "measured", "verdict", "why")
    return section("Claims of the paper", table(header, rows), anchor="claims")


def _verdict(verdict: str) -> Html:
    """Told by a sign as well as by a colour."""
    plain = verdict.lower()
    sign, kind = "○", "unsure"
    if plain.startswith("holds"):
        sign, kind = "✓", "holds"
    elif "not hold" in plain:
        sign, kind = "✗", "fails"
    elif "noise" in plain:
        sign = "≈"
    return element("span", f"{sign} {verdict}", class_=f"verdict {kind}")


def _measured(value: Any) -> Any:
    if isinstance(value, Mapping):
        parts = (f"{name}: {number(v) if _real(v) else v}" for name, v in value.items())
        return "; ".join(parts)
    return value


def _fit(cells: Sequence[Cell]) -> list[Html]:
    by_system = {name: series(cells, "fit", name) for name in systems(cells, "fit")}
    caption = (
        "Given the first 8 states of the training trajectories, the later ones are predicted. "
        "Left: mean squared error of q per time step. Middle: of the total energy. Right: the "
        f"energy along one trajectory. {LEGEND}"
    )
    parts = [picture(fit_figure(by_system), caption, alt="errors per time step, fit")]
    for name, shown in by_system.items():
        parts += [element("h3", system_title(name)), _table(shown)]
    # The same motion again would say less than that of trajectories never seen.
    seen = not systems(cells, "completion")
    return parts + (_animation(cells, "fit") if seen else [])


def _completion(cells: Sequence[Cell]) -> list[Html]:
    parts = []
    for name in systems(cells, "completion"):
        shown = series(cells, "completion", name)
        caption = (
            f"{system_title(name).capitalize()}: given the first 16 states of new trajectories "
            "(the code is fitted on them), the later ones are predicted. DHN is compared with HNN "
            f"and its integrators, then with vanilla networks. {LEGEND}"
        )
        drawn = completion_figure(name, shown)
        parts += [
            element("h3", system_title(name)),
            picture(drawn, caption, alt=f"errors per time step, completion, {name}"),
            _table(shown),
        ]
    return parts + _animation(cells, "completion")


def _representation(cells: Sequence[Cell]) -> list[Html]:
    parts = []
    for name in systems(cells, "representation"):
        shown = series(cells, "representation", name)
        metric = _first_of(shown, "probe_mse", "mse")
        if metric is None:
            continue
        axis = r"MSE of $l_2/l_1$ on test trajectories"
        caption = (
            "A linear probe (ridge regression on frozen codes, its penalty chosen on training "
            "codes) predicts the length ratio of test trajectories; shorter is better. Dots are "
            "seeds."
        )
        drawn = bars({"": shown}, metric, axis, "linear probe on the latent codes")
        parts.append(picture(drawn, caption, alt="error of the linear probe per model"))
        tables = block_tables(shown, metric)
        if tables:
            caption = (
                "Error of the probe for blocks of b states shifted by s; darker is worse. Input "
                "and output share b - s states."
            )
            drawn = block_figure(tables, "MSE")
            parts.append(picture(drawn, caption, alt="error of the probe, block size and stride"))
        parts.append(_table(shown))
    return parts


def _interpolation(cells: Sequence[Cell]) -> list[Html]:
    parts = []
    for name in systems(cells, "interpolation"):
        by_task = {
            task: series(cells, "interpolation", name, task)
            for task in tasks(cells, "interpolation", name)
        }
        caption = (
            "Every fourth of 65 states is given, the 48 between are predicted; shorter is better. "
            "Same start: states 0 to 64, which begin like the training trajectories. Unseen "
            "start: states 64 to 128. Dots are seeds."
        )
        drawn = bars(by_task, "mse", r"MSE of $q$ [$(\pi/2)^2$]", "4x super-resolution")
        parts += [
            element("h3", system_title(name)),
            picture(drawn, caption, alt=f"error of interpolation, {name}"),
            *_tables(cells, "interpolation", name),
        ]
    return parts


def _stress(cells: Sequence[Cell]) -> list[Html]:
    parts = []
    for name in systems(cells, "stress"):
        parts += [element("h3", system_title(name)), *_tables(cells, "stress", name)]
    return parts


def _tables(cells: Sequence[Cell], experiment: str, system: str) -> list[Html]:
    """A table a task."""
    parts = []
    for task in tasks(cells, experiment, system):
        parts += [paragraph(element("b", task))] if task else []
        parts.append(_table(series(cells, experiment, system, task)))
    return parts


def _table(shown: Sequence[Series]) -> Html:
    """A row a model: the numbers behind the figure, with size and time beside them."""
    names = [name for name in metric_names(shown) if name not in UNSHOWN]
    header = ["model", "parameters", *(METRICS.get(n, n.replace("_", " ")) for n in names)]
    rows = [
        [
            one.label,
            _count(one.first.get("parameters")),
            *(_spread(one, name) for name in names),
            ", ".join(str(cell.get("seed", "–")) for cell in one.cells),
            duration(_mean_seconds(one)),
        ]
        for one in shown
    ]
    return table([*header, "seeds", "training"], rows)


def _spread(one: Series, name: str) -> Html | None:
    """Mean over the seeds, and their range where there are several."""
    values = one.values(name)
    if not values.size:
        return None
    mean = element("span", number(one.mean(name)), class_="x")
    if len(values) < 2 or values.min() == values.max():
        return mean
    ends = f"{number(float(values.min()))} to {number(float(values.max()))}"
    return join([mean, Html("<br>"), element("small", ends)], "")


def _animation(cells: Sequence[Cell], experiment: str) -> list[Html]:
    """The double pendulum, a film a model that kept an example."""
    films: list[Film] = []
    for one in series(cells, experiment, "double_pendulum"):
        example = one.example
        if example is None or not example.get("predicted_q"):
            continue
        # Lengths of the paper where the example does not tell its own.
        params = {"l1": 1.0, "l2": 1.0, **(example.get("params") or {})}
        lengths = rod_lengths("double_pendulum", params)
        assert lengths is not None
        truth, predicted = example["truth_q"], example["predicted_q"]
        length = min(len(truth), len(predicted))
        films.append(
            film(one.label, example["t"][:length], truth[:length], predicted[:length], lengths)
        )
    if not films:
        return []
    caption = "One test trajectory: the prediction over the truth, in real time."
    if experiment == "fit":
        caption = "One training trajectory: the prediction over the truth, in real time."
    return [element("h3", "The double pendulum in motion"), player(films, caption)]


def _runs(results: Mapping[str, Any]) -> Section:
    cells: list[Cell] = results["cells"]
    machine = results.get("machine") or {}
    rows = [
        (
            cell.get("name"),
            cell.get("kind"),
            cell.get("block_size"),
            cell.get("stride"),
            cell.get("seed"),
            cell.get("parameters"),
            cell.get("steps"),
            duration(_seconds(cell)),
        )
        for cell in cells
    ]
    header = ("run", "kind", "b", "s", "seed", "parameters", "steps", "training")
    configurations = [element("pre", f"{cell.get('name')}\n" + _plain(cell)) for cell in cells]
    facts = [
        f"command: {results.get('command', '–')}",
        *(f"{name.replace('_', ' ')}: {value}" for name, value in machine.items()),
    ]
    return section(
        "What was run",
        bullets(facts),
        paragraph(f"Everything here is drawn from {FILE}, which stands beside this page."),
        folded(f"{len(cells)} runs with their times", table(header, rows)),
        element("div", folded("their configurations", *configurations), class_="screen"),
        anchor="runs",
    )


def _plain(cell: Cell) -> str:
    chosen = {name: cell.get(name) for name in ("config", "training")}
    return json.dumps(chosen, indent=1, default=str)


def _first_of(shown: Sequence[Series], *names: str) -> str | None:
    have = set(metric_names(shown))
    return next((name for name in names if name in have), None)


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> Any:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else value


def _seconds(cell: Cell) -> float | None:
    value = cell.get("train_seconds")
    return float(value) if _real(value) and value is not None else None


def _mean_seconds(one: Series) -> float:
    values = [s for cell in one.cells if (s := _seconds(cell)) is not None]
    return sum(values) / len(values) if values else math.nan
