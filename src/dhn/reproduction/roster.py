"""The models that are compared, each once, with the settings that all experiments share.

A DHN comes in three forms, judged separately: "Paper", the preset `paper`; "Blocks", the same
blocks and masks with residual MLPs inside; and "Default", what `dhn.DHN()` trains.
"""

import dataclasses
from typing import Any, final

from dhn.models.presets import PAPER_TRAINING
from dhn.reproduction.cell import Cell, DataSpec, Training
from dhn.reproduction.presets import Preset

INTEGRATORS = ("euler", "leapfrog", "rk4", "midpoint", "dopri5")


@final
@dataclasses.dataclass(frozen=True)
class Entry:
    """A model by its label; `ranked` ones have several seeds."""

    model: str
    kind: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    preset: str = "default"
    block_size: int = 0
    stride: int = 0
    ranked: bool = True
    transformer: bool = False
    """Sized by the grid's `transformer` options instead of those of an MLP."""
    matched: bool = True
    """Width chosen so that the parameter count equals the reference's."""


DEFAULT = Entry("Default", "dhn", block_size=1, stride=1, matched=False)
"""One linked H⁺ with b = s = 1, which also is a single generating function solved implicitly."""


def label(form: str, block_size: int, stride: int) -> str:
    """The stride is named where it is not half the block."""
    return f"{form} b={block_size}" + ("" if stride * 2 == block_size else f" s={stride}")


def _with_blocks(form: str, preset: str, block_size: int, stride: int, options) -> Entry:
    return Entry(
        label(form, block_size, stride),
        "dhn",
        {"block_size": block_size, "stride": stride, **options},
        preset=preset,
        block_size=block_size,
        stride=stride,
    )


def blocks(block_size: int, stride: int, **options: Any) -> Entry:
    """The paper's two networks with residual MLPs inside."""
    return _with_blocks("Blocks", "blocks", block_size, stride, options)


def paper(block_size: int, stride: int, preset: str = "paper", **options: Any) -> Entry:
    """The paper's own recipe: its transformer, masks, losses and rounds of denoising."""
    return _with_blocks("Paper", preset, block_size, stride, options)


HAMILTONIAN = (DEFAULT, blocks(2, 1))
HNN = Entry("HNN", "hnn", {"training": "midpoint"})
HNN_EULER = Entry("HNN Euler loss", "hnn", {"training": "euler"}, ranked=False)
HNN_TRANSFORMER = Entry(
    "HNN transformer", "hnn", {"training": "midpoint", "network": "transformer"},
    ranked=False, transformer=True,
)  # fmt: skip
RESNET1 = Entry("ResNet 1", "vanilla", {"depth": 1}, ranked=False)
RESNET2 = Entry("ResNet 2", "vanilla", {"depth": 2})
WINDOWED = Entry("ResNet 8 states", "vanilla", {"depth": 2, "context": 8}, ranked=False)
VANILLA_TRANSFORMER = Entry(
    "Vanilla transformer", "vanilla", {"network": "transformer"}, ranked=False, transformer=True
)


def make_cells(
    entry: Entry,
    preset: Preset,
    data: DataSpec,
    experiment: Any,
    *,
    seed: int,
    seeds: int | None = None,
    label: str = "",
    task: str = "",
    options: dict[str, Any] | None = None,
    **evaluation: Any,
) -> list[Cell]:
    """A cell for each seed of this model on this task."""
    original = entry.preset.startswith("paper")
    sizes = preset.transformer if entry.transformer else preset.network
    settings = {**preset.options, **(preset.paper if original else sizes)}
    training, seeded = preset.training, preset.seeds
    if original and preset.exact:
        # Hours a training: one seed, for as many steps as the authors take.
        settings, seeded = {}, 1
        training = Training(steps=PAPER_TRAINING["steps"])
    settings |= {**entry.options, **(options or {})}
    if entry.kind == "cnn":  # no code, and two convolutions at least
        settings = {k: v for k, v in settings.items() if k not in ("latent_size", "depth")}
    matched = entry.matched and preset.full and not original
    count = (seeded if seeds is None else min(seeds, seeded)) if entry.ranked else 1
    return [
        Cell(
            experiment=experiment,
            task=task,
            model=entry.model + label,
            kind=entry.kind,
            block_size=entry.block_size,
            stride=entry.stride,
            seed=seed + i,
            preset=entry.preset,
            options=settings,
            match=reference(preset) if matched else None,
            data=data,
            training=training,
            evaluation=evaluation,
        )
        for i in range(count)
    ]


def reference(preset: Preset) -> dict[str, Any]:
    """Options of the DHN whose size is everybody's."""
    return {"preset": "paper"} if preset.exact else {"preset": "default", **preset.network}


def classical(
    kind: str, label: str, data: DataSpec, experiment: Any, task: str = "", **evaluation: Any
) -> Cell:
    """A method without training; its seed has no effect."""
    return Cell(
        experiment=experiment, task=task, model=label, kind=kind, data=data, evaluation=evaluation
    )
