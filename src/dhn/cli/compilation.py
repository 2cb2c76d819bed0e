"""What commands on trained models share: the compilation cache, the model and the data."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dhn.estimator import AbstractEstimator, Mechanics
    from dhn.trajectories import Trajectories


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
    """The trained model of a run folder, with compiled programs kept for the next command."""
    use_cache()

    from dhn.estimator import load

    return load(run)


def open_run(run: Path, data: Path) -> "tuple[AbstractEstimator | Mechanics, Trajectories]":
    """The trained model of a run folder and a file of trajectories to use it on."""
    from dhn.files import read

    return open_model(run), read(data)
