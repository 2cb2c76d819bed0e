"""Phase space of pretrained models beside the true one: a table, and two figures for the docs.

    python examples/phase_space.py

For each model of one or two degrees of freedom, 20 new trajectories with parameters and starts from
its ranges.
"""

import warnings
from pathlib import Path

import dhn
from dhn.estimator.pretrained import draw
from dhn.evaluation.phase_space import PeriodCurve, PoincareSection, phase_space
from dhn.reports.phase_figures import period_figure, section_figure
from dhn.reports.style import save
from pictures import shrink

DOCS = Path(__file__).parents[1] / "docs" / "results"
MODELS = (
    "single_pendulum", "mass_spring", "double_pendulum", "elastic_pendulum", "coupled_oscillators",
    "henon_heiles",
)  # fmt: skip
SEED, TRAJECTORIES = 2000, 20


def compared(name: str) -> PeriodCurve | PoincareSection:
    model = dhn.pretrained(name)
    data = draw(name, TRAJECTORIES, SEED)
    found = phase_space(model.trained, data, model.posterior(data).codes)
    assert found is not None
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    for name in MODELS:
        found = compared(name)
        print(f"{name}: {found.describe()}", flush=True)
        path = DOCS / f"phase-space-{name.replace('_', '-')}.png"
        if name == "single_pendulum" and isinstance(found, PeriodCurve):
            save(period_figure(found, "s"), path)
            shrink(path)
        if name == "double_pendulum" and isinstance(found, PoincareSection):
            save(section_figure(found), path)
            shrink(path)


if __name__ == "__main__":
    main()
