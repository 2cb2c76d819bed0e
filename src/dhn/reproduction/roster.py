"""The models that are compared, each once, with the settings that all experiments share."""

import dataclasses
from typing import Any, final

from dhn.reproduction.cell import Cell, DataSpec
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
    matched: bool = True
    """Width chosen so that the parameter count equals the reference's."""


DEFAULT = Entry("DHN", "dhn", block_size=1, stride=1, matched=False)
"""The product's default: one linked H⁺ with b = s = 1, which also is a single generating function
solved implicitly."""


def paired(block_size: int, stride: int, ranked: bool = True, **options: Any) -> Entry:
    """The paper's two networks with residual MLPs inside."""
    return Entry(
        f"DHN b={block_size}" + ("" if stride * 2 == block_size else f" s={stride}"),
        "dhn",
        {"block_size": block_size, "stride": stride, **options},
        preset="blocks",
        block_size=block_size,
        stride=stride,
        ranked=ranked,
    )


def transformer(block_size: int, stride: int) -> Entry:
    return Entry(
        f"DHN transformer b={block_size}",
        "dhn",
        {"block_size": block_size, "stride": stride, "network": "transformer"},
        preset="blocks",
        block_size=block_size,
        stride=stride,
        ranked=False,
        transformer=True,
    )


HAMILTONIAN = (DEFAULT, paired(2, 1))
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
    sizes = preset.transformer if entry.transformer else preset.network
    settings = {**preset.options, **sizes, **entry.options, **(options or {})}
    if entry.kind == "cnn":  # no code, and two convolutions at least
        settings = {k: v for k, v in settings.items() if k not in ("latent_size", "depth")}
    matched = entry.matched and preset.full
    original = entry.kind == "dhn" and entry.transformer and preset.reference == "paper"
    count = (preset.seeds if seeds is None else seeds) if entry.ranked else 1
    return [
        Cell(
            experiment=experiment,
            task=task,
            model=entry.model + label,
            kind=entry.kind,
            block_size=entry.block_size,
            stride=entry.stride,
            seed=seed + i,
            preset="paper" if original else entry.preset,
            options=settings,
            match=reference(preset) if matched else None,
            data=data,
            training=preset.training,
            evaluation=evaluation,
        )
        for i in range(count)
    ]


def reference(preset: Preset) -> dict[str, Any]:
    """Options of the DHN whose size is everybody's."""
    return {"preset": preset.reference, **(preset.network if preset.reference != "paper" else {})}


def classical(
    kind: str, label: str, data: DataSpec, experiment: Any, task: str = "", **evaluation: Any
) -> Cell:
    """A method without training; its seed has no effect."""
    return Cell(
        experiment=experiment, task=task, model=label, kind=kind, data=data, evaluation=evaluation
    )
