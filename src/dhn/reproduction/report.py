"""`report.html` of a reproduction: claims first, then each experiment, then what was run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dhn.files.atomic import write_text
from dhn.reports.animation import Film, film, player, rod_lengths
from dhn.reports.html import (
    Html,
    bullets,
    duration,
    element,
    folded,
    number,
    page,
    paragraph,
    picture,
    section,
    table,
)
from dhn.reproduction.peers.settings import SETTINGS
from dhn.reproduction.presets import EXPERIMENTS, ON_REQUEST
from dhn.reproduction.report_figures import (
    bars,
    block_figure,
    block_tables,
    budget_figure,
    completion_figure,
    fit_figure,
)
from dhn.reproduction.report_results import (
    Cell,
    Series,
    check,
    metric_names,
    series,
    systems,
    tasks,
)
from dhn.reproduction.report_tables import is_number, model_table, tables_by_task, training_seconds
from dhn.reproduction.results import FILE
from dhn.systems.registry import system_title

REPORT = "report.html"
Section = tuple[str, str, Html]

TITLES = {
    "fit": "Fit: training trajectories from their first states",
    "completion": "Completion: new trajectories from their first states",
    "representation": "Representation: a parameter read off the latent codes",
    "interpolation": "Interpolation: the states between every fourth",
    "stress": "Stress: beyond the paper's settings",
    "curves": "Learning curves: errors against the time of training",
    "peers": "Peers: the settings of other papers",
}
LEGEND = (
    "Lines are geometric means over seeds, bands span the seeds. Each family of models has its "
    "hue; "
    "curves that leave the top of a panel have diverged."
)


def write_report(results: dict[str, Any], directory: Path) -> Path:
    """Draw `report.html` in the folder from the results alone; nothing is run again."""
    path = Path(directory) / REPORT
    write_text(path, document(results))
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
        "curves": _curves,
        "peers": _peers,
    }
    present = {str(cell.get("experiment")) for cell in cells}
    sections = [_claims(results)]
    sections += [
        section(TITLES[name], *draw[name](cells), anchor=name)
        for name in (*EXPERIMENTS, *ON_REQUEST)
        if name in present
    ]
    sections += [_runs(results)]
    missing = [name for name in EXPERIMENTS if name not in present]
    opening = [paragraph(f"Not in these results: {', '.join(missing)}.")] if missing else []
    title = "Denoising Hamiltonian Network: the paper's experiments"
    return page(title, _lead(results), opening, sections)


def _lead(results: Mapping[str, Any]) -> str:
    cells = results["cells"]
    seconds = [float(c["train_seconds"]) for c in cells if is_number(c.get("train_seconds"))]
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
            claim.get("form"),
            claim.get("statement"),
            _measured(claim.get("measured")),
            _verdict(str(claim.get("verdict", "not judged"))),
            claim.get("why"),
        )
        for claim in claims
    ]
    header = ("claim", "model", "the paper says", "measured", "verdict", "why")
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
        parts = (f"{name}: {number(v) if is_number(v) else v}" for name, v in value.items())
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
        parts += [element("h3", system_title(name)), model_table(shown)]
    # The same motion again would say less than that of trajectories never seen.
    seen = not systems(cells, "completion")
    return parts + (_animation(cells, "fit") if seen else [])


def _completion(cells: Sequence[Cell]) -> list[Html]:
    parts = []
    for name in systems(cells, "completion"):
        shown = series(cells, "completion", name)
        caption = (
            f"{system_title(name)}: given the first 16 states of new trajectories "
            "(the code is fitted on them), the later ones are predicted. DHN is compared with HNN "
            f"and its integrators, then with vanilla networks. {LEGEND}"
        )
        drawn = completion_figure(name, shown)
        parts += [
            element("h3", system_title(name)),
            picture(drawn, caption, alt=f"errors per time step, completion, {name}"),
            model_table(shown),
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
        parts.append(model_table(shown))
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
            *tables_by_task(cells, "interpolation", name),
        ]
    return parts


def _stress(cells: Sequence[Cell]) -> list[Html]:
    parts = []
    for name in systems(cells, "stress"):
        parts += [element("h3", system_title(name)), *tables_by_task(cells, "stress", name)]
    return parts


def _curves(cells: Sequence[Cell]) -> list[Html]:
    caption = (
        "Every dot is a training of its own with that much processor time, lines are geometric "
        "means over seeds. Left: completion from 16 states. Middle: energy. Right: the length read "
        "off the codes."
    )
    parts = []
    for name in systems(cells, "curves"):
        by_task = {t: series(cells, "curves", name, t) for t in tasks(cells, "curves", name)}
        drawn = budget_figure(by_task)
        parts += [
            element("h3", system_title(name)),
            picture(drawn, caption, alt=f"errors against the time of training, {name}"),
            *tables_by_task(cells, "curves", name),
        ]
    return parts


def _peers(cells: Sequence[Cell]) -> list[Html]:
    parts = []
    for name in systems(cells, "peers"):
        parts += [
            *tables_by_task(cells, "peers", name),
            paragraph(f"{SETTINGS[name].metric}. {SETTINGS[name].note}"),
        ]
    return parts


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
            duration(training_seconds(cell)),
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
