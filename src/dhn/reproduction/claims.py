"""The paper's claims C1-C8, judged by measured numbers alone, for each form of DHN separately."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, final

HOLDS, FAILS, NOISE, NOT_RUN = "holds", "does not hold", "within noise", "not run"
NO_BLOCKS = "has no blocks"
FACTOR = 3.0
"""Two single runs must differ by more than this to be distinguished; seeds alone differ so much."""
SYSTEMS = ("single_pendulum", "double_pendulum")
WITH_BLOCKS = ("Paper", "Blocks")
DEFAULT = "Default"
FORMS = (*WITH_BLOCKS, DEFAULT)
"""As their labels begin; see `roster`."""
Cells = Sequence[dict[str, Any]]


@final
@dataclasses.dataclass(frozen=True)
class Sample:
    """One model's numbers over its seeds; smaller is better."""

    model: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Geometric: errors differ by orders of magnitude."""
        if any(math.isinf(x) for x in self.values):
            return math.inf
        return math.exp(sum(math.log(max(x, 1e-300)) for x in self.values) / len(self.values))

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"{self.model} {self.mean:.2g}"
        return f"{self.model} {self.mean:.2g} ({min(self.values):.2g} to {max(self.values):.2g})"


def sample(cells: Cells, metric: str, model: str, **where: Any) -> Sample | None:
    """The values of this metric over seeds; a missing number counts as infinitely bad."""
    found = [
        c for c in cells
        if c["model"] == model and metric in c["metrics"]
        and all(c.get(key) == value for key, value in where.items())
    ]  # fmt: skip
    values = [c["metrics"][metric] for c in found]
    clean = tuple(math.inf if x is None or math.isnan(x) else float(x) for x in values)
    return Sample(model, clean) if clean else None


def samples(cells: Cells, metric: str, kinds: Sequence[str], **where: Any) -> list[Sample]:
    """One sample for each model of these kinds."""
    chosen = [c for c in cells if c["kind"] in kinds]
    models = dict.fromkeys(c["model"] for c in chosen)
    found = [sample(chosen, metric, model, **where) for model in models]
    return [x for x in found if x is not None]


def best(found: Sequence[Sample]) -> Sample:
    return min(found, key=lambda x: x.mean)


def compare(a: Sample, b: Sample, factor: float = 1.0) -> str:
    """Does `a` beat `b` (by this factor)? Ranges over seeds that overlap are noise.

    A single run has no range; it is given one of `FACTOR`.
    """
    spread = FACTOR if min(len(a.values), len(b.values)) < 2 else 1.0
    if factor * spread * max(a.values) < min(b.values):
        return HOLDS
    if max(b.values) * spread < min(a.values) * factor:
        return FAILS
    return NOISE


def together(verdicts: Sequence[str], without: str = NOT_RUN) -> str:
    """A claim of several parts holds if all do, and fails with any."""
    if not verdicts:
        return without
    if FAILS in verdicts:
        return FAILS
    return HOLDS if all(v == HOLDS for v in verdicts) else NOISE


@final
@dataclasses.dataclass
class Judgement:
    """Collects the parts of one claim."""

    id: str
    statement: str
    form: str = ""
    """The form of DHN that is judged."""
    verdicts: list[str] = dataclasses.field(default_factory=list)
    parts: list[str] = dataclasses.field(default_factory=list)
    measured: dict[str, float] = dataclasses.field(default_factory=dict)
    without: str = NOT_RUN
    """The verdict where nothing could be compared."""

    def beats(self, where: str, a: Sample | None, b: Sample | None, factor: float = 1.0) -> None:
        """One comparison; without both sides it was not run."""
        if a is None or b is None:
            return
        self.note(where, a, b)
        verdict = compare(a, b, factor)
        self.verdicts.append(verdict)
        self.parts.append(f"{where}: {a} against {b}")

    def note(self, where: str, *found: Sample) -> None:
        for x in found:
            self.measured[f"{where}: {x.model}"] = x.mean

    def row(self) -> dict[str, Any]:
        verdict = together(self.verdicts, self.without)
        why = "; ".join(f"{part} ({v})" for part, v in zip(self.parts, self.verdicts, strict=True))
        nothing = "No finished cells to judge by."
        return {
            "id": self.id,
            "form": self.form,
            "statement": self.statement,
            "measured": self.measured,
            "verdict": verdict,
            "why": f"{why}." if why else nothing if self.without == NOT_RUN else "",
        }


def claims(cells: Cells) -> list[Judgement]:
    """C1 to C8 for each form, filled from the results."""
    judges = (_c1, _c2, _c3, _c4, _c5, _c6, _c7, _c8)
    return [claim(cells, form) for claim in judges for form in FORMS]


def _smallest(form: str) -> str:
    """Label of the form's smallest block."""
    return DEFAULT if form == DEFAULT else f"{form} b=2"


def _c1(cells: Cells, form: str) -> Judgement:
    found = Judgement(
        "C1",
        "Fit: DHN b=2 keeps the energy without drift, larger blocks fluctuate; HNN with forward "
        "integrators drifts.",
        form,
    )
    for system in SYSTEMS:
        where = {"experiment": "fit", "system": system}
        drift = sample(cells, "energy_drift", _smallest(form), **where)
        for rule in ("HNN Euler loss euler", "HNN euler"):
            found.beats(f"drift, {system}", drift, sample(cells, "energy_drift", rule, **where))
        found.beats(
            f"energy MSE, {system}",
            sample(cells, "energy_mse", _smallest(form), **where),
            sample(cells, "energy_mse", f"{form} b=8", **where),
        )
    return found


def _against(found: Judgement, cells: Cells, experiments, kinds) -> Judgement:
    """The form with its smallest blocks against the best of other kinds, in q MSE."""
    for experiment in experiments:
        for system in SYSTEMS:
            where = {"experiment": experiment, "system": system}
            labels = (_smallest(found.form), f"{found.form} b=4")
            small = [x for m in labels if (x := sample(cells, "mse", m, **where)) is not None]
            others = samples(cells, "mse", kinds, **where)
            if small and others:
                found.beats(f"{experiment}, {system}", best(small), best(others))
    return found


def _c2(cells: Cells, form: str) -> Judgement:
    statement = "Fit and completion: DHN with small blocks beats HNN with every integrator."
    return _against(Judgement("C2", statement, form), cells, ("fit", "completion"), ("hnn",))


def _c3(cells: Cells, form: str) -> Judgement:
    statement = "Completion: DHN beats the vanilla networks."
    return _against(Judgement("C3", statement, form), cells, ("completion",), ("vanilla",))


def _c4(cells: Cells, form: str) -> Judgement:
    found = _about_blocks("C4", "Large blocks blow up late in long rollouts.", form)
    for experiment in ("fit", "completion"):
        for system in SYSTEMS:
            where = {"experiment": experiment, "system": system}
            found.beats(
                f"last 16 states, {experiment}, {system}",
                sample(cells, "mse_late", f"{form} b=2", **where),
                sample(cells, "mse_late", f"{form} b=8", **where),
            )
    return found


def _about_blocks(name: str, statement: str, form: str) -> Judgement:
    """A claim that a form without blocks has no part in."""
    without = NOT_RUN if form in WITH_BLOCKS else NO_BLOCKS
    return Judgement(name, statement, form, without=without)


def _c5(cells: Cells, form: str) -> Judgement:
    found = Judgement("C5", "Probe: DHN beats HNN and vanilla by far; b=4 is best.", form)
    where = {"experiment": "representation"}
    four = sample(cells, "probe_mse", f"{form} b=4" if form in WITH_BLOCKS else form, **where)
    for kind in ("hnn", "vanilla"):
        others = samples(cells, "probe_mse", (kind,), **where)
        found.beats("probe", four, best(others) if others else None, FACTOR)
    for b in (2, 8):
        found.beats("probe", four, sample(cells, "probe_mse", f"{form} b={b}", **where))
    return found


def _c6(cells: Cells, form: str) -> Judgement:
    found = _about_blocks("C6", "Probe: a stride of half the block is best.", form)
    for b in (4, 8):
        where = {"experiment": "representation", "block_size": b}
        half = sample(cells, "probe_mse", f"{form} b={b}", **where)
        for other in samples(cells, "probe_mse", ("dhn",), **where):
            if other.model.startswith(f"{form} b={b} s="):
                found.beats("probe", half, other)
    return found


def _interpolation(found: Judgement, cells: Cells, task: str, swap: bool, factor: float):
    for system in SYSTEMS:
        where = {"experiment": "interpolation", "system": system, "task": task}
        dhn = sample(cells, "mse", _smallest(found.form), **where)
        rivals = samples(cells, "mse", ("cnn",), **where)
        cnn = best(rivals) if rivals else None
        found.beats(system, *((cnn, dhn) if swap else (dhn, cnn)), factor)
        spline = sample(cells, "mse", "Cubic spline", **where)
        if spline is not None:
            found.note(system, spline)
    return found


def _c7(cells: Cells, form: str) -> Judgement:
    """`CNN better or equal`: a tie counts for the claim as well."""
    found = Judgement("C7", "Interpolation, same start: CNN slightly better or equal.", form)
    found = _interpolation(found, cells, "same start", True, 1.0)
    found.verdicts = [HOLDS if v == NOISE else v for v in found.verdicts]
    return found


def _c8(cells: Cells, form: str) -> Judgement:
    found = Judgement("C8", "Interpolation, unseen start: DHN much better than CNN.", form)
    return _interpolation(found, cells, "unseen start", False, FACTOR)
