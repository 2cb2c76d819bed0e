"""Learn the physics of a system from its trajectories: Denoising Hamiltonian Networks in JAX.

The public names are loaded on first use, so that `import dhn` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dhn.errors import UserError as UserError

if TYPE_CHECKING:
    from dhn.estimator import DHN as DHN
    from dhn.estimator import Mechanics as Mechanics
    from dhn.estimator import fit as fit
    from dhn.estimator import load as load
    from dhn.estimator import pretrained as pretrained
    from dhn.files import as_trajectories as as_trajectories
    from dhn.files import from_dataframe as from_dataframe
    from dhn.files import open as open
    from dhn.files import read as read
    from dhn.files import write as write
    from dhn.systems import SYSTEMS as SYSTEMS
    from dhn.systems import System as System
    from dhn.systems import get_system as get_system
    from dhn.systems import register as register
    from dhn.systems import simulate as simulate
    from dhn.trajectories import Trajectories as Trajectories
    from dhn.trajectories import from_xarray as from_xarray

# Module -> its public names. A new name goes here, above, and into __all__; tests/test_public.py
# compares the three.
_NAMES = {
    "dhn.systems": ("SYSTEMS", "System", "get_system", "register", "simulate"),
    "dhn.trajectories": ("Trajectories", "from_xarray"),
    "dhn.files": ("as_trajectories", "from_dataframe", "open", "read", "write"),
    "dhn.estimator": ("DHN", "Mechanics", "fit", "load", "pretrained"),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "DHN",
    "SYSTEMS",
    "Mechanics",
    "System",
    "Trajectories",
    "UserError",
    "as_trajectories",
    "fit",
    "from_dataframe",
    "from_xarray",
    "get_system",
    "load",
    "open",
    "pretrained",
    "read",
    "register",
    "simulate",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("dhn")
    if name not in _WHERE:
        raise AttributeError(f"module 'dhn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
