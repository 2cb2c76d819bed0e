"""The forms of models that the page runs, and waiting for a page."""

import dhn

FORMS = {
    "one network": ("single_pendulum", dhn.DHN, {}),
    "two degrees of freedom": ("double_pendulum", dhn.DHN, {}),
    "one network, blocks of two": ("mass_spring", lambda **o: dhn.DHN(block_size=2, **o), {}),
    "two networks": ("single_pendulum", lambda **o: dhn.DHN("blocks", **o), {}),
    "longer blocks": (
        "mass_spring",
        lambda **o: dhn.DHN("blocks", block_size=4, stride=2, activation="silu", **o),
        {},
    ),
    "damped, with a quadratic form": (
        "mass_spring",
        lambda **o: dhn.DHN(damping="learned", quadratic=True, activation="gelu", **o),
        {"damping": (0.02, 0.1)},
    ),
}
"""Name -> (system, estimator, options of the simulation)."""


def until(page, condition: str) -> None:
    """Wait for a condition; playwright's own waiting needs `eval`, which the page forbids."""
    for _ in range(1500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never came true: {condition}")
