"""Systems by name: those built in, and those a user registers."""

from dhn.errors import UserError, did_you_mean
from dhn.systems.library import BUILT_IN
from dhn.systems.system import System, in_words

_BY_NAME: dict[str, System] = {system.name: system for system in BUILT_IN}

SYSTEMS: list[str] = list(_BY_NAME)
"""Names that `get_system` knows, in order; `register` appends to it."""


def get_system(system: "str | System") -> System:
    """The system of that name.

    Arguments:
        system: A name of `SYSTEMS`, or a `System`, which is returned as it is.

    Returns:
        The system.
    """
    if isinstance(system, System):
        return system
    if isinstance(system, str) and system in _BY_NAME:
        return _BY_NAME[system]
    raise UserError(
        f"there is no system '{system}'; known are {', '.join(SYSTEMS)}."
        f"{did_you_mean(system, SYSTEMS)}"
    )


def system_title(name: str) -> str:
    """What headings call a system, whether it is known here or not.

    Arguments:
        name: Its name, as data have it.

    Returns:
        The system's own title, else the name in words.
    """
    return _BY_NAME[name].title if name in _BY_NAME else in_words(name)


def register(system: System) -> System:
    """Let `get_system`, and so every function that takes a name, find a system by its name.

    Arguments:
        system: A system with a name of its own.

    Returns:
        The same system.
    """
    if not isinstance(system, System):
        raise UserError(f"only a dhn.System can be registered; got {type(system).__name__}.")
    if system.name in _BY_NAME and _BY_NAME[system.name] is not system:
        raise UserError(f"a system named '{system.name}' exists already; give yours another name.")
    if system.name not in _BY_NAME:
        _BY_NAME[system.name] = system
        SYSTEMS.append(system.name)
    return system
