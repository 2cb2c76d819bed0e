"""What commands on trained models share: compiled programs, the model, and answers in parts."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

from dhn.cli.arguments import Common
from dhn.cli.outputs import TRAJECTORIES, ZARR, check_output, save_pieces
from dhn.cli.result import Console

if TYPE_CHECKING:
    from dhn.cli.waiting import Report
    from dhn.estimator import AbstractEstimator, Mechanics
    from dhn.estimator.reconstruction import Reconstruction
    from dhn.evaluation.metrics import Metrics
    from dhn.files.source import AbstractSource
    from dhn.trajectories import Trajectories

PART = 2048
"""Trajectories asked about at once: 1 GB at most for the answer of a few hundred states."""
Answer = TypeVar("Answer")


def use_cache() -> None:
    """Keep compiled programs between commands, unless the environment names a place already.

    Called before Equinox is imported: programs that may call back into Python, to raise an error,
    cannot be kept, so that failures inside them become NaN. Those are looked for where they may
    arise (`simulate`).
    """
    from dhn.kept import keep

    keep()
    import jax

    if jax.config.values.get("jax_compilation_cache_dir") is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "dhn" / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)


def open_model(run: Path) -> "AbstractEstimator | Mechanics":
    """The trained model of a run folder, with compiled programs kept for the next command.

    A user's own system in it is looked for in `DHN_SYSTEM`: no model makes a command run code.
    """
    use_cache()

    from dhn.estimator import load

    if own := os.environ.get("DHN_SYSTEM"):
        from dhn.cli.user_system import resolve_system
        from dhn.systems import register

        register(resolve_system(own))
    return load(run)


def open_run(run: Path, data: Path) -> "tuple[AbstractEstimator | Mechanics, Trajectories]":
    """The trained model of a run folder and a file of trajectories to use it on."""
    from dhn.files import read

    return open_model(run), read(data)


def in_parts(
    source: "AbstractSource", ask: "Callable[[Trajectories, int], Answer]", report: "Report"
) -> Iterator[Answer]:
    """`ask(part, number)` of every part of the source, in order, one at a time."""
    done = 0
    for number, part in enumerate(source.pieces(PART)):
        yield ask(part, number)
        done += len(part)
        report(done, len(source))


@final
class Answers:
    """The answers about a file of trajectories, written part after part, and how good they are."""

    def __init__(self, args: Any, common: Common, what: str):
        self.args, self.common, self.what, self.count = args, common, what, 0
        self.ids: list[str] = []
        self.fit: list[float] = []
        self.result: list[Any] = []
        self.metrics: list[Metrics] = []
        check_output(args.output, inputs=(args.data,), endings=(*TRAJECTORIES, ZARR))
        use_cache()

    @contextlib.contextmanager
    def opened(self) -> "Iterator[tuple[AbstractEstimator | Mechanics, AbstractSource]]":
        """The model, and the trajectories to ask about."""
        from dhn.files.pieces import open_pieces

        with open_pieces(self.args.data) as data:
            model = open_model(self.args.run)
            self.start = time.perf_counter()
            yield model, data

    def write(self, data: "AbstractSource", ask: "Callable[[Trajectories, int], Trajectories]"):
        """Ask about every part, and write the answers to the output file."""
        from dhn.cli.waiting import waiting

        self.count = len(data)
        with waiting(self.what, enabled=not self.common.json) as report:
            save_pieces(in_parts(data, ask, report), self.args.output, len(data))

    def add(self, part: "Trajectories", found: "Reconstruction") -> None:
        """Remember how well the model explains what is known of a part."""
        self.ids.extend(part.ids)
        self.fit.extend(found.fit.tolist())
        self.result.extend(found.result)

    def values(self) -> dict[str, Any]:
        """What all commands report."""
        import numpy as np

        from dhn.estimator.reconstruction import warning
        from dhn.evaluation.metrics import joined

        values: dict[str, Any] = {
            "output": str(self.args.output),
            "trajectories": self.count,
            "seconds": time.perf_counter() - self.start,
            "warning": warning(self.result, tuple(self.ids)),
        }
        if self.fit:
            values["fit"] = {"median": float(np.median(self.fit)), "worst": max(self.fit)}
            values["results"] = {id: x.name for id, x in zip(self.ids, self.result, strict=True)}
        if self.metrics:
            values["against_data"] = joined(self.metrics).summary()
        return values


def draw_warning(console: Console, values: dict[str, Any]) -> None:
    """The line about answers that should not be trusted, if there are any."""
    if values["warning"] is not None:
        console.print(f"warning: {values['warning']}")
