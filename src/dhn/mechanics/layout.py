"""The coefficients of a mechanical model as one vector: which entry is what, and its bounds."""

import dataclasses
import functools
from typing import TYPE_CHECKING, final

import jax
import numpy as np
from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from dhn.mechanics.classical import Classical

Numbers = jax.Array | np.ndarray
"""What the equations take: traced or plain arrays."""
PER_PAIR = ("inertia", "stiffness")
"""Blocks with one entry for each pair i >= j, row by row of a lower triangle."""
PER_COORDINATE = (
    "phase", "sine", "cosine", "sine2", "cosine2", "force", "square", "cube",
    "link_square", "link_cube",
    "viscous", "dry", "drag", "stribeck", "slant", "zero",
    "even", "odd", "even2", "odd2", "even3", "odd3", "even4", "odd4", "marker_even", "marker_odd",
    "log_white", "log_kick", "log_slow", "log_slow_time",
)  # fmt: skip
"""Blocks with one entry for each coordinate."""

NEVER_NEGATIVE = ("viscous", "dry", "drag", "stribeck", "slant")

GROUPS: dict[str, tuple[str, ...]] = {
    "slow error": ("log_slow", "log_slow_time"),
    "dry friction": ("dry",),
    "drag": ("drag",),
    "Stribeck friction": ("stribeck",),
    "friction over the angle": ("slant",),
    "sensor": ("even", "odd"),
    "sensor, second order": ("even2", "odd2"),
    "sensor, fourth order": ("even2", "odd2", "even3", "odd3", "even4", "odd4"),
    "marker": ("marker_even", "marker_odd"),
    "second harmonic": ("sine2", "cosine2"),
    "nonlinear spring": ("square", "cube"),
    "nonlinear coupling": ("link_square", "link_cube"),
}
"""Blocks that are added to the first model only if validation gains by them."""
OF_FEATURES = ("second harmonic", "nonlinear spring", "nonlinear coupling")
"""Groups that belong to the potential of features; a system has its own."""
REST = "learned rest"
"""Name of the weights of `dhn.mechanics.rest` as a group; they are tried last."""
OWN_REST = "learned rest of each run"
"""The same, different for every run."""
MOMENT, WANDER = "friction of the moment", 0.1
"""Friction that every window of observed positions tells anew, and the standard deviation of its
factor: bearings and surfaces are not the same everywhere, nor all the time."""
REST_WIDTH = 0.01
"""Standard deviation of a weight of the learned rest before the data are seen, as share of the
acceleration of a swing by one radian."""

PARAMETER_WIDTH = 2.0
"""Standard deviation of the logarithm of a system's parameter before the data are seen: what they
cannot tell stays where it began."""


@final
@dataclasses.dataclass(frozen=True)
class Layout:
    """Where each block of coefficients lies in the vector, for given coordinates.

    All coefficients are in scaled units: angles in radians, other coordinates over their standard
    deviation, times over the period / 2π, so that all are of order one.
    """

    angles: tuple[bool, ...]
    rest: int = 0
    """Weights of the learned rest for each coordinate; 0 where there is none."""
    classical: "Classical | None" = None
    """A system whose equations and parameters take the place of mass matrix and potential."""

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.angles)

    @functools.cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Index pairs (i, j), i >= j, in the order of a block per pair."""
        return tuple((i, j) for i in range(self.dim) for j in range(i + 1))

    @functools.cached_property
    def slices(self) -> dict[str, slice]:
        """Block name -> its place in the vector."""
        found, start = {}, 0
        for name in (*PER_PAIR, *PER_COORDINATE):
            size = len(self.pairs) if name in PER_PAIR else self.dim
            found[name] = slice(start, start + size)
            start += size
        if self.classical is not None:
            found["params"] = slice(start, start + len(self.classical.free))
            start += len(self.classical.free)
        if self.rest:
            found["rest"] = slice(start, start + self.rest * self.dim)
        return found

    @functools.cached_property
    def size(self) -> int:
        """Length of the vector."""
        return max(x.stop for x in self.slices.values())

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for every entry, such as `viscous[0]` or `inertia[1,0]`."""
        found = []
        for name, place in self.slices.items():
            if name in PER_PAIR:
                found += [f"{name}[{i},{j}]" for i, j in self.pairs]
            else:
                found += [f"{name}[{i}]" for i in range(place.stop - place.start)]
        return tuple(found)

    def base(self) -> Bool[np.ndarray, " P"]:
        """Entries of the first model: mass matrix, potential, viscous friction, white noises.

        With a system of its own: its parameters, and the zero of every coordinate.

        Arguments: none.
        Returns: (P,) which entries are fitted.
        """
        active = np.zeros(self.size, bool)
        for name in ("viscous", "log_white", "log_kick"):
            active[self.slices[name]] = True
        if self.classical is not None:
            active[self.slices["params"]] = active[self.slices["zero"]] = True
            return active
        angle = np.array(self.angles)
        for name in ("sine", "cosine"):
            active[self.slices[name]] = angle
        active[self.slices["force"]] = ~angle
        active[self.slices["phase"]] = angle & (np.arange(self.dim) > np.argmax(angle))
        for name in PER_PAIR:
            for k, (i, j) in enumerate(self.pairs):
                both_angles, neither = angle[i] and angle[j], not (angle[i] or angle[j])
                if name == "stiffness":
                    use = neither
                elif i == j:
                    use = i > 0  # the scale of all masses is fixed by M_11 = 1
                else:
                    use = both_angles or not neither
                active[self.slices[name].start + k] = use
        return active

    def group(self, name: str) -> Bool[np.ndarray, " P"]:
        """Entries that a group adds; none where the coordinates have no use for it.

        Arguments: name: a key of `GROUPS`.
        Returns: (P,) which entries are fitted besides those of the first model.
        """
        active = np.zeros(self.size, bool)
        if self.classical is not None and name in OF_FEATURES:
            return active
        angle = np.array(self.angles)
        chain = angle & np.concatenate([[False], angle[:-1]])
        where = {"marker": chain, "second harmonic": angle, "nonlinear spring": ~angle}
        where["sensor, fourth order"] = where["friction over the angle"] = angle
        where["nonlinear coupling"] = ~angle & np.concatenate([[False], ~angle[:-1]])
        for block in GROUPS[name]:
            active[self.slices[block]] = where.get(name, np.ones(self.dim, bool))
        return active

    def bounds(self) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """Least and greatest value of every coefficient.

        Arguments: none.
        Returns: two arrays (P,).
        """
        low, high = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        for name in NEVER_NEGATIVE:
            low[self.slices[name]] = 0.0
        for name in ("log_white", "log_kick", "log_slow"):
            low[self.slices[name]], high[self.slices[name]] = np.log(1e-7), np.log(10.0)
        if self.classical is not None:
            free = self.classical.free
            low[self.slices["params"]] = [p.inverse(p.low) for p in free]
            high[self.slices["params"]] = [p.inverse(p.high) for p in free]
        low[self.slices["log_slow_time"]] = np.log(0.2)  # below, it is white noise
        high[self.slices["log_slow_time"]] = np.log(200.0)  # thirty periods: an offset
        return low, high

    def prior(self) -> Float[np.ndarray, " P"]:
        """Precision of a Gaussian prior about zero, about the starting value for logarithms.

        Weak: it decides only what the data leave open, such as a lens at small swings.

        Arguments: none.
        Returns: (P,) one over the variance.
        """
        precision = np.zeros(self.size)
        widths = {
            "dry": 0.3,
            "drag": 0.3,
            "stribeck": 0.3,
            "slant": 0.3,
            "sine2": 0.3,
            "cosine2": 0.3,
            "square": 0.5,
            "cube": 0.5,
        }
        widths |= {"link_square": 0.5, "link_cube": 0.5}
        bends = [f"{kind}{order}" for kind in ("even", "odd") for order in ("", 2, 3, 4)]
        widths |= {k: 0.1 for k in (*bends, "marker_even", "marker_odd")}
        widths |= {"params": PARAMETER_WIDTH} if self.classical is not None else {}
        widths |= {
            "log_slow_time": 1.5,
            "log_slow": 3.0,
            "log_kick": 3.0,
            "phase": 0.3,
            "zero": 0.3,
        }
        for name, width in widths.items():
            precision[self.slices[name]] = 1 / width**2
        return precision
