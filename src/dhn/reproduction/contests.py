"""The stress suite's question: is a DHN first, tied for the first place, or behind?"""

from dhn.reproduction.claims import NOISE, Cells, Judgement, Sample, best, sample

CEILING = ("parametric",)
"""Knows the true equations, which no other method does."""
STILL = "persistence"
"""What does not move keeps its energy, which is no merit."""
CONTESTS = {
    "a": ("Measurement noise of 1 % and 5 %, random starts", {"median": False}),
    "b": ("30 training trajectories, random starts", {"median": False}),
    "c": ("Random starts: completion and probe", {"median": False, "probe_mse": False}),
    "d": ("Ten times the training horizon", {"median": False, "energy_mse_median": False}),
    "e": ("Interpolation at 8x, 16x and 32x", {"mse": False}),
    "f": ("Chaos: valid prediction time and probe", {"valid_time": True, "probe_mse": False}),
}
"""Letter -> what is tried, and the numbers that decide with whether larger ones are better."""


def contests(cells: Cells) -> list[Judgement]:
    """One row a letter: the best DHN against the best of everybody else."""
    stressed = [c for c in cells if c["experiment"] == "stress" and c["kind"] not in CEILING]
    found = []
    for letter, (title, metrics) in CONTESTS.items():
        row = Judgement(f"S{letter}", f"{title}: DHN is first.", "best of all")
        tasks = dict.fromkeys(c["task"] for c in stressed if c["task"].startswith(f"{letter} "))
        for task in tasks:
            here = [c for c in stressed if c["task"] == task]
            for metric, larger in metrics.items():
                _contest(row, here, task[2:], metric, larger)
        if row.verdicts and all(v != "does not hold" for v in row.verdicts):
            ties = row.verdicts.count(NOISE)
            row.statement += f" (tied in {ties} of {len(row.verdicts)})" if ties else ""
        found.append(row)
    return found


def _contest(row: Judgement, cells: Cells, task: str, metric: str, larger: bool) -> None:
    ours, theirs = [], []
    for model, kind in dict.fromkeys((c["model"], c["kind"]) for c in cells):
        x = sample(cells, metric, model)
        if x is not None and not (kind == STILL and metric.startswith("energy")):
            (ours if kind == "dhn" else theirs).append(_upturned(x) if larger else x)
    if ours and theirs:
        name = "1/steps" if larger else metric
        row.beats(f"{task}, {name}", best(ours), best(theirs))


def _upturned(x: Sample) -> Sample:
    """For numbers of which larger ones are better."""
    return Sample(x.model, tuple(1.0 / max(value, 1e-3) for value in x.values))
