"""The report of a trained model on a person's own data: a verdict first, then what it rests on."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dhn.estimator import AbstractNetworkAnswers, Mechanics, Reconstruction, load
from dhn.evaluation.phase_space import PeriodCurve, PoincareSection, phase_space
from dhn.evaluation.trial import MOST, Trial, horizons, try_out
from dhn.evaluation.uncertainty import coverage, crps
from dhn.explorer import build_page, can_run
from dhn.files.atomic import write_text
from dhn.reports.animation import film, player, rod_lengths
from dhn.reports.html import (
    Html,
    bullets,
    duration,
    element,
    folded,
    now,
    number,
    page,
    paragraph,
    picture,
    section,
    table,
)
from dhn.reports.inspect import figure as data_figure
from dhn.reports.phase_figures import period_figure, section_figure
from dhn.reports.physics import lines
from dhn.reports.run_figures import (
    energy_figure,
    error_figure,
    forecast_figure,
    parameter_figure,
    smoothed_energy_figure,
    training_figure,
)
from dhn.reports.verdict import sentences
from dhn.training.history import read_history
from dhn.trajectories.container import Trajectories

Section = tuple[str, str, Html]
RUNS = 3  # panels that fit beside each other
STARTS = 20
"""Trajectories whose starts the learned phase space is compared from."""


def write_run_report(
    run: Path,
    data: Trajectories | None,
    output: Path,
    *,
    train: Trajectories | None = None,
    validation: Trajectories | None = None,
    observe: int | None = None,
    ahead: int | None = None,
    tested: str = "",
) -> dict[str, Any]:
    """One self-contained page; returns its numbers. `tested` names the data."""
    model = load(run)
    trial = None
    if data is not None:
        trial = try_out(
            model, data, train=train, validation=validation,
            observe=observe, ahead=ahead,
        )  # fmt: skip
    words = sentences(trial) if trial is not None else []
    opening, space = [], None
    if words:
        box = element("div", element("b", "In short"), bullets(words), class_="box")
        opening.append(box)
    sections = []
    if data is not None:
        sections.append(_data(data))
    if trial is not None:
        sections.append(_forecasts(trial))
        if model.mechanics is None:
            sections.append(_energy(trial))
    lead = ""
    if (fitted := model.mechanics) is not None:
        sections += [] if data is None else [_smoothed_energy(fitted, data)]
        sections += [_physics(fitted), _origin(run, {"summary": model.record})]
        lead = f"mechanics of {', '.join(fitted.labels['names'])}, fitted in "
    if (network := model.network) is not None:
        space = _compared(network, data)
        sections += [] if data is None or space is None else [_phase_space(space, data)]
        sections += [_parameters(network, data), *_explorer(network, data, train)]
        sections += [_training(network, run), _origin(run, _settings(network))]
        lead = f"{network.config.kind} with {network.parameters} parameters, trained for "
    if data is None:
        opening.append(
            paragraph("No data were given: `dhn report RUN DATA` adds forecasts against the truth.")
        )
    if data is not None and tested:
        opening.append(paragraph(f"Test part: {tested}."))
    lead += (
        f"{duration(model.record.get('seconds'))} on {model.record.get('trajectories')} "
        f"trajectories. Written {now()}."
    )
    write_text(output, page(f"Report on {run.name}", lead, opening, sections))
    return {
        "run": str(run),
        "report": str(output),
        "verdict": words,
        "phase_space": None if space is None else space.summary(),
        **({} if trial is None else _numbers(trial)),
    }


def _numbers(trial: Trial) -> dict[str, Any]:
    return {"mse": trial.metrics.summary()["mse"], "valid_until": trial.valid_until()}


def _data(data: Trajectories) -> Section:
    lines = data.summary().splitlines()
    caption = "A few trajectories: coordinates over time, phase portraits and energy if known."
    return section(
        "The data",
        paragraph(lines[0]),
        picture(data_figure(data), caption, alt="the data"),
        folded("all facts", element("pre", "\n".join(lines))),
        anchor="data",
    )


def _forecasts(trial: Trial) -> Section:
    caption = (
        f"The first {trial.observe} states are given (up to the dotted line), the rest is "
        "forecast. Chosen by their error: the best, the median and the worst trajectory."
    )
    drawn = forecast_figure(trial.prediction, trial.truth, trial.rows)
    step = trial.truth.usual_step
    curve = error_figure(trial.metrics, trial.others, trial.observe, step, trial.unit)
    error_caption = (
        "Root mean square error over all trajectories (angles in units of π/2, other coordinates "
        "in standard deviations), by how far ahead. "
        + "; ".join(f"{rival.name}: {rival.how}" for rival in trial.others)
        + "."
    )
    parts = [
        picture(drawn, caption, alt="forecasts over the truth"),
        picture(curve, error_caption, alt="error by time ahead"),
        _horizons(trial),
    ]
    if trial.prediction.q_quantiles:
        shares = coverage(trial.prediction, trial.truth)
        words = ", ".join(f"the {name} band holds {share:.0%}" for name, share in shares.items())
        score = number(crps(trial.prediction, trial.truth))
        parts.append(paragraph(f"Of the measured states, {words}; CRPS {score}."))
    return section("Forecasts against the truth", *parts, *_film(trial), anchor="forecasts")


def _horizons(trial: Trial) -> Html:
    """Errors at a few times ahead, in the units of the data."""
    names = ["forecast", *(rival.name for rival in trial.others)]
    rows = [
        (
            row["ahead"],
            row["states"],
            f"{number(row['time'])} {trial.unit}".strip(),
            *(row[name] for name in names),
        )
        for row in horizons(trial)
    ]
    return table(("ahead", "states", "time", *names), rows)


def _film(trial: Trial) -> list[Html]:
    row = trial.rows.get("median", next(iter(trial.rows.values())))
    params = {name: float(values[row]) for name, values in trial.truth.params.items()}
    lengths = rod_lengths(trial.truth.system, params)
    if lengths is None:
        return []
    t, truth = trial.truth.times[row], trial.truth.q[row]
    shown = film("forecast", t, truth, trial.prediction.q[row], lengths)
    return [player([shown], "The trajectory of median error: the forecast over the truth.")]


def _energy(trial: Trial) -> Section:
    drawn, own = energy_figure(trial.prediction, trial.truth, trial.rows)
    caption = (
        "Total energy of the same trajectories, from the system's formula."
        if own
        else "No system is named, so that the energy is not known. Shown instead is half the sum "
        "of squared coordinates and momenta in standard deviations: the energy of a linear "
        "oscillator. It need not be constant, but the forecast should follow the truth."
    )
    parts = [picture(drawn, caption, alt="energy over time")]
    if trial.blocks is not None:
        parts.append(paragraph(trial.blocks.describe() + "."))
    return section("Energy", *parts, anchor="energy")


def _compared(
    model: AbstractNetworkAnswers, data: Trajectories | None
) -> PeriodCurve | PoincareSection | None:
    """The learned phase space beside the true one, where the data name a known system."""
    if data is None or data.system is None or data.dim > 2 or data.p is None:
        return None
    some = data[:STARTS]
    return phase_space(model.trained, some, model.posterior(some).codes)


def _phase_space(space: PeriodCurve | PoincareSection, data: Trajectories) -> Section:
    if isinstance(space, PeriodCurve):
        drawn = period_figure(space, data.units.get("t", ""))
        caption = (
            "Paths of one system, begun at rest's coordinate with more and more momentum: their "
            "periods, learned and true. Vertical lines: the energy from which an angle turns over."
        )
    else:
        drawn = section_figure(space)
        caption = (
            f"Poincaré sections: a point for each time that {space.names[1]} passes its mean "
            "upwards, over many periods; a panel for each trajectory's start and system."
        )
    parts = (paragraph(space.describe()), picture(drawn, caption, alt="phase space"))
    return section("Phase space", *parts, anchor="phase")


def _smoothed_energy(model: Mechanics, data: Trajectories) -> Section:
    """The identified energy along the longest runs of the data."""
    longest = np.sort(np.argsort(-data.lengths, kind="stable")[:RUNS])
    some = data[longest]
    drawn = smoothed_energy_figure(
        some.times, model.model.smooth(some).energy, some.ids, some.units.get("t", "")
    )
    caption = (
        "Energy of the smoothed motion by the identified mass matrix and potential, up to a "
        "constant: friction lets it fall, and where it rises something else drives the motion."
    )
    return section("Energy", picture(drawn, caption, alt="energy over time"), anchor="energy")


def _parameters(model: AbstractNetworkAnswers, data: Trajectories | None) -> Section:
    """The system's constants as inferred from the codes."""
    made, parts = model.trained, []
    varying = [name for name, values in made.params.items() if np.ptp(values) > 0]
    if not varying:
        parts.append(paragraph("The training data carry no parameter that varies."))
    elif data is None:
        parts.append(paragraph(f"With data, these can be inferred: {', '.join(varying)}."))
    else:
        some = data[: min(len(data), MOST)]
        found = model.reconstruct(some)
        for name in varying:
            parts += _parameter(model, some, found, name)
    return section("Parameters", *parts, anchor="parameters")


def _parameter(
    model: AbstractNetworkAnswers, data: Trajectories, found: Reconstruction, name: str
) -> list[Html]:
    probe = model.probe(name)
    estimate, errors = found.parameters[name]
    truth = data.params.get(name)
    unit = data.units.get(name, "")
    parts = [
        paragraph(
            f"{name}: {number(float(estimate.min()))} to {number(float(estimate.max()))} {unit}, "
            f"typical standard error {number(float(np.median(errors)))}, of which the probe's own, "
            f"cross-validated on the training codes, {number(probe.error)}."
        )
    ]
    if truth is not None and np.ptp(truth) > 0:
        r2 = 1 - float(np.mean((estimate - truth) ** 2) / np.var(truth))
        drawn = parameter_figure(name, estimate, truth, errors)
        caption = f"{name} inferred from the motion against its value in the data: R² = {r2:.5f}."
        parts.append(picture(drawn, caption, alt=f"inferred {name}"))
    rows = [
        (
            data.ids[k],
            float(estimate[k]),
            float(errors[k]),
            None if truth is None else float(truth[k]),
        )
        for k in range(len(data))
    ]
    header = ("trajectory", f"{name} inferred", "standard error", "in the data")
    return [*parts, folded(f"{name} of every trajectory", table(header, rows))]


def _explorer(
    model: AbstractNetworkAnswers, data: Trajectories | None, train: Trajectories | None
) -> list[Section]:
    """The model itself, to be dragged; nothing for a form that the page cannot run."""
    if not can_run(model):
        return []
    shown = build_page(model, data, train=train, small=True)
    frame = element("iframe", srcdoc=shown, title="the model, running", class_="explorer")
    words = paragraph(
        "The trained network runs here. Drag a body or the state in the phase portrait, and the "
        "predicted motion follows. ", element("code", "dhn explore"), " writes the full page.",
    )  # fmt: skip
    parts = (words, frame)
    return [section("Try it", element("div", *parts, class_="screen"), anchor="try")]


def _training(model: AbstractNetworkAnswers, run: Path) -> Section:
    records = read_history(run / "metrics.jsonl")
    summary = model.trained.summary
    validation = summary.get("validation")
    words = (
        f"{summary.get('steps')} steps in {duration(summary.get('seconds'))}"
        + (f", validation loss {number(validation)}" if validation is not None else "")
        + f"; root mean square residual {number(summary.get('residual'))} (normalised)."
    )
    parts = [paragraph(words)]
    if records:
        caption = "Loss on the training windows and on trajectories kept aside; learning rate."
        parts.append(picture(training_figure(records), caption, alt="training curve"))
    else:
        parts.append(paragraph("This folder keeps no history of the training."))
    return section("Training", *parts, anchor="training")


def _settings(model: AbstractNetworkAnswers) -> dict[str, Any]:
    made = model.trained
    return {
        "model": made.config.model_dump(mode="json"),
        "training": made.training.model_dump(mode="json"),
        "summary": made.summary,
    }


def _origin(run: Path, settings: dict[str, Any]) -> Section:
    settings = {"run": str(run), "version": version("dhn"), **settings}
    return section(
        "How it was made",
        folded("configuration", element("pre", json.dumps(settings, indent=1, default=str))),
        anchor="made",
    )


def _physics(model: Mechanics) -> Section:
    """The equations of motion that were identified, and which parts were kept."""
    physics = model.physics()
    stages = [
        (x["name"], x["error"], "" if x["before"] is None else x["before"],
         "kept" if x["kept"] else "left out")
        for x in physics["stages"]
    ]  # fmt: skip
    header = ("part", "validation error with it", "without it", "verdict")
    return section(
        "The physics",
        bullets(lines(physics, model.labels["names"])),
        paragraph(physics["convention"] + "."),
        table(header, stages),
        folded("all coefficients", element("pre", json.dumps(physics, indent=1))),
        anchor="physics",
    )
