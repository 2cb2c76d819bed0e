"""What commands on trained models share: the compilation cache, the model and the data."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from dhn.estimator import AbstractEstimator, Mechanics
    from dhn.files import StoredTrajectories
    from dhn.trajectories import Trajectories


def use_cache() -> None:
    """Keep compiled programs between commands, unless the environment names a place already.

    Called before Equinox is imported: programs that may call back into Python, to raise an error,
    cannot be kept, so that failures inside them become NaN. Those are looked for where they may
    arise (`simulate`).
    """
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    import jax

    if jax.config.values.get("jax_compilation_cache_dir") is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "dhn" / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)


@overload
def open_run(
    run: Path, data: Path, in_pieces: Literal[False] = False
) -> "tuple[AbstractEstimator | Mechanics, Trajectories]": ...


@overload
def open_run(
    run: Path, data: Path, in_pieces: Literal[True]
) -> "tuple[AbstractEstimator | Mechanics, Trajectories | StoredTrajectories]": ...


def open_run(run: Path, data: Path, in_pieces: bool = False) -> Any:
    """The trained model of a run folder and trajectories to use it on.

    Arguments:
        run: Folder of a trained model.
        data: File of trajectories.
        in_pieces: Whether a .zarr folder is opened, not read.

    Returns:
        Both.
    """
    from dhn.estimator import load
    from dhn.files import open, read
    from dhn.files.stored import is_store

    use_cache()
    return load(run), open(data) if in_pieces and is_store(data) else read(data)
