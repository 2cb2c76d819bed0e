"""The paper's claims C1-C8 and the stress suite's contests, judged by measured numbers alone."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, final

HOLDS, FAILS, NOISE, NOT_RUN = "holds", "does not hold", "within noise", "not run"
FACTOR = 3.0
"""Two single runs must differ by more than this to be told apart; seeds alone differ so much."""
SYSTEMS = ("single_pendulum", "double_pendulum")
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


def together(verdicts: Sequence[str]) -> str:
    """A claim of several parts holds if all do, and fails with any."""
    if not verdicts:
        return NOT_RUN
    if FAILS in verdicts:
        return FAILS
    return HOLDS if all(v == HOLDS for v in verdicts) else NOISE


@final
@dataclasses.dataclass
class Judgement:
    """Collects the parts of one claim."""

    id: str
    statement: str
    verdicts: list[str] = dataclasses.field(default_factory=list)
    parts: list[str] = dataclasses.field(default_factory=list)
    measured: dict[str, float] = dataclasses.field(default_factory=dict)

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
        verdict = together(self.verdicts)
        why = "; ".join(f"{part} ({v})" for part, v in zip(self.parts, self.verdicts, strict=True))
        return {
            "id": self.id,
            "statement": self.statement,
            "measured": self.measured,
            "verdict": verdict,
            "why": f"{why}." if why else "No finished cells to judge by.",
        }


def claims(cells: Cells) -> list[Judgement]:
    """C1 to C8, filled from the results."""
    return [claim(cells) for claim in (_c1, _c2, _c3, _c4, _c5, _c6, _c7, _c8)]


def _c1(cells: Cells) -> Judgement:
    found = Judgement(
        "C1",
        "Fit: DHN b=2 keeps the energy without drift, larger blocks fluctuate; HNN with forward "
        "integrators drifts.",
    )
    for system in SYSTEMS:
        where = {"experiment": "fit", "system": system}
        drift = sample(cells, "energy_drift", "DHN b=2", **where)
        for rule in ("HNN Euler loss euler", "HNN euler"):
            found.beats(f"drift, {system}", drift, sample(cells, "energy_drift", rule, **where))
        found.beats(
            f"energy MSE, {system}",
            sample(cells, "energy_mse", "DHN b=2", **where),
            sample(cells, "energy_mse", "DHN b=8", **where),
        )
        if (linked := sample(cells, "energy_drift", "DHN", **where)) is not None:
            found.note(f"drift, {system}", linked)
    return found


def _against(found: Judgement, cells: Cells, experiments, kinds, factor: float = 1.0) -> Judgement:
    """The paper's DHN with small blocks against the best of other kinds, in q MSE."""
    for experiment in experiments:
        for system in SYSTEMS:
            where = {"experiment": experiment, "system": system}
            small = [sample(cells, "mse", m, **where) for m in ("DHN b=2", "DHN b=4")]
            small = [x for x in small if x is not None]
            others = samples(cells, "mse", kinds, **where)
            if small and others:
                found.beats(f"{experiment}, {system}", best(small), best(others), factor)
            if (linked := sample(cells, "mse", "DHN", **where)) is not None:
                found.note(f"{experiment}, {system}", linked)
    return found


def _c2(cells: Cells) -> Judgement:
    statement = "Fit and completion: DHN with small blocks beats HNN with every integrator."
    return _against(Judgement("C2", statement), cells, ("fit", "completion"), ("hnn",))


def _c3(cells: Cells) -> Judgement:
    statement = "Completion: DHN beats the vanilla networks."
    return _against(Judgement("C3", statement), cells, ("completion",), ("vanilla",))


def _c4(cells: Cells) -> Judgement:
    found = Judgement("C4", "Large blocks blow up late in long rollouts.")
    for experiment in ("fit", "completion"):
        for system in SYSTEMS:
            where = {"experiment": experiment, "system": system}
            found.beats(
                f"last 16 states, {experiment}, {system}",
                sample(cells, "mse_late", "DHN b=2", **where),
                sample(cells, "mse_late", "DHN b=8", **where),
            )
    return found


def _c5(cells: Cells) -> Judgement:
    found = Judgement("C5", "Probe: DHN beats HNN and vanilla by far; b=4 is best.")
    where = {"experiment": "representation"}
    four = sample(cells, "probe_mse", "DHN b=4", **where)
    for kind in ("hnn", "vanilla"):
        others = samples(cells, "probe_mse", (kind,), **where)
        found.beats("probe", four, best(others) if others else None, FACTOR)
    for model in ("DHN b=2", "DHN b=8"):
        found.beats("probe", four, sample(cells, "probe_mse", model, **where))
    return found


def _c6(cells: Cells) -> Judgement:
    found = Judgement("C6", "Probe: a stride of half the block is best.")
    for b in (4, 8):
        where = {"experiment": "representation", "block_size": b}
        half = sample(cells, "probe_mse", f"DHN b={b}", **where)
        for other in samples(cells, "probe_mse", ("dhn",), **where):
            if other.model.startswith(f"DHN b={b} s="):
                found.beats("probe", half, other)
    return found


def _interpolation(found: Judgement, cells: Cells, task: str, swap: bool, factor: float):
    for system in SYSTEMS:
        where = {"experiment": "interpolation", "system": system, "task": task}
        dhn = sample(cells, "mse", "DHN b=2", **where)
        rivals = samples(cells, "mse", ("cnn",), **where)
        cnn = best(rivals) if rivals else None
        found.beats(system, *((cnn, dhn) if swap else (dhn, cnn)), factor)
        rest = [sample(cells, "mse", m, **where) for m in ("DHN", "Cubic spline")]
        found.note(system, *(x for x in rest if x is not None))
    return found


def _c7(cells: Cells) -> Judgement:
    """`CNN better or equal`: a tie counts for the claim as well."""
    found = Judgement("C7", "Interpolation, same start: CNN slightly better or equal.")
    found = _interpolation(found, cells, "same start", True, 1.0)
    found.verdicts = [HOLDS if v == NOISE else v for v in found.verdicts]
    return found


def _c8(cells: Cells) -> Judgement:
    found = Judgement("C8", "Interpolation, unseen start: DHN much better than CNN.")
    return _interpolation(found, cells, "unseen start", False, FACTOR)
