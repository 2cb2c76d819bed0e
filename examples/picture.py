"""Draw the picture of the README: `python examples/picture.py [FILE]`."""

import sys
from pathlib import Path

import dhn
from dhn.reports.inspect import figure
from dhn.reports.style import save


def main(path: Path) -> None:
    """Double pendulums, let go at different angles."""
    data = dhn.simulate(
        "double_pendulum",
        trajectories=25,
        seed=3,
        initial={"theta1": (0.5, 2.0), "theta2": (0.5, 2.0)},
        time_step=0.05,
        steps=300,
    )
    save(figure(data, seed=0), path, dpi=100)


if __name__ == "__main__":
    here = Path(__file__).parent.parent
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here / "docs" / "double_pendulum.png")
