"""Compiled programs are kept between commands: the second `dhn` call starts at once."""

import os
from pathlib import Path


def use_cache() -> None:
    """Point JAX at a per-user cache, unless the environment names one already."""
    import jax

    if jax.config.values.get("jax_compilation_cache_dir") is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "dhn" / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
