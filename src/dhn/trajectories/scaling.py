"""Units in which a network learns, fitted on training data only."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.trajectories.container import Trajectories

Units = Literal["spread", "quarter-turn"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Scaler:
    """`q' = (q - q_shift) / q_scale`, `p' = p / p_scale`, coordinate by coordinate.

    Scaling must not destroy what a Hamiltonian network relies on. `dq' ∧ dp'` is a multiple of
    `dq ∧ dp` only if `q_scale_i · p_scale_i` is one number for all coordinates, the unit of action
    `action_scale`; so one constant is free for all momenta together. It is chosen such that the
    scaled momenta have mean square about 1 over states and coordinates. Then the flow in scaled
    variables is Hamiltonian again, and a generating function `H⁺(q, p)` is `action_scale` times
    the scaled one. Momenta are never shifted, and angles keep their zero, because both zeros mean
    something physical.

    Scales are rounded to powers of two. Then scaling loses no bits, and data sets that differ a
    little share their scales, and with them every compiled program.
    """

    q_shift: np.ndarray
    """(d,) zero for angles, else the mean."""
    q_scale: np.ndarray
    """(d,) about the root mean square of an angle, the standard deviation of other coordinates."""
    p_scale: np.ndarray
    """(d,) `action_scale / q_scale`."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            array = np.array(getattr(self, field.name), dtype=np.float64)
            if array.ndim != 1 or array.shape != np.shape(self.q_shift):
                raise UserError(
                    f"{field.name} must have one number a coordinate; got {array.shape}."
                )
            if not np.isfinite(array).all() or (field.name != "q_shift" and (array <= 0).any()):
                raise UserError(f"{field.name} must be finite and scales positive; got {array}.")
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)

    @classmethod
    def fit(cls, train: Trajectories, units: Units = "spread") -> "Scaler":
        """From the known states of `train`; without momenta the unit of action is 1.

        Arguments:
            train: Training trajectories.
            units: `spread`, root mean squares rounded to powers of two; or `quarter-turn`, the
                paper's: angles over pi/2, and the largest momentum of a trajectory is about 1.

        Returns:
            The scaling of every coordinate.
        """
        known = np.asarray(train.known)
        if not train.known_q.any((0, 1)).all():
            raise UserError(
                "scaling needs known numbers of every coordinate; these data have none of some."
            )
        q = train.q[known]
        shift = np.where(train.angles, 0.0, np.nanmean(q, axis=0))
        scale = _power_of_two(_positive(_rms(q - shift), np.nanmax(np.abs(q), axis=0)))
        if units == "quarter-turn":
            scale = np.where(train.angles, np.pi / 2, scale)
        action = 1.0
        if train.momenta is not None and np.isfinite(train.momenta[known]).any(0).all():
            action = float(np.sqrt(np.mean(np.square(_rms(train.momenta[known]) * scale))))
            if units == "quarter-turn":
                seen = np.where(known[..., None], train.momenta, np.nan) * scale
                action = float(np.nanmean(np.nanmax(np.abs(seen), axis=(1, 2))))
            else:
                action = float(_power_of_two(action)) if action > 0 else action
            action = action if action > 0 else 1.0
        return cls(q_shift=shift, q_scale=scale, p_scale=action / scale)

    @property
    def dim(self) -> int:
        """Number of coordinates `d`."""
        return len(self.q_scale)

    @property
    def action_scale(self) -> float:
        """`q_scale · p_scale`, the same for every coordinate: the unit of `q·p` and of `H⁺`."""
        return float(self.q_scale[0] * self.p_scale[0])

    def transform_q(self, q: Float[Any, "*batch d"]) -> Float[Any, "*batch d"]:
        """Physical to scaled coordinates; NumPy or JAX arrays."""
        return (q - self.q_shift) / self.q_scale

    def transform_p(self, p: Float[Any, "*batch d"]) -> Float[Any, "*batch d"]:
        """Physical to scaled momenta; NumPy or JAX arrays."""
        return p / self.p_scale

    def inverse_q(self, q: Float[Any, "*batch d"]) -> Float[Any, "*batch d"]:
        """Scaled to physical coordinates; NumPy or JAX arrays."""
        return q * self.q_scale + self.q_shift

    def inverse_p(self, p: Float[Any, "*batch d"]) -> Float[Any, "*batch d"]:
        """Scaled to physical momenta; NumPy or JAX arrays."""
        return p * self.p_scale

    def transform(
        self, data: Trajectories
    ) -> tuple[Float[np.ndarray, "n T d"], Float[np.ndarray, "n T d"]]:
        """Scaled `(q, p)` of every state; velocities stand in for momenta that are missing."""
        if data.dim != self.dim:
            raise UserError(
                f"the scaling was fitted on {self.dim} coordinates, but these data have "
                f"{data.dim} ({', '.join(data.names)}); use data of the same system."
            )
        if data.momenta is None:
            raise UserError(
                "these data have neither momenta nor velocities; give p or v (transform_q "
                "scales coordinates alone)."
            )
        return self.transform_q(data.q), self.transform_p(data.momenta)

    def inverse(
        self, q: Float[Any, "*batch d"], p: Float[Any, "*batch d"]
    ) -> tuple[Float[Any, "*batch d"], Float[Any, "*batch d"]]:
        """Scaled to physical `(q, p)`, e.g. to compute energies."""
        return self.inverse_q(q), self.inverse_p(p)

    def scaled_noise(
        self, noise: Float[np.ndarray, "*batch 2 d"]
    ) -> Float[np.ndarray, "*batch 2 d"]:
        """Standard deviations of q and p (`Trajectories.noise`) in scaled units."""
        return noise / np.stack([self.q_scale, self.p_scale])

    def number_noise(
        self, data: Trajectories, otherwise: Float[np.ndarray, "2 d"]
    ) -> Float[np.ndarray, "n T m"]:
        """Scaled noise of every number [q, p]; `otherwise` where the data state none."""
        shape = (len(data), data.states, 2, data.dim)
        stated = np.nan if data.noise is None else self.scaled_noise(data.noise)
        found = np.where(np.isfinite(stated), stated, otherwise)
        return np.broadcast_to(found, shape).reshape(*shape[:2], -1)

    def to_dict(self) -> dict[str, list[float]]:
        """JSON values; `from_dict` restores them exactly."""
        return {f.name: getattr(self, f.name).tolist() for f in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Scaler":
        """The inverse of `to_dict`."""
        names = {f.name for f in dataclasses.fields(cls)}
        if set(values) != names:
            raise UserError(f"a scaling has the fields {sorted(names)}; got {sorted(values)}.")
        return cls(**{name: np.asarray(values[name], dtype=np.float64) for name in names})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaler) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(tuple(x) for x in self.to_dict().values()))


def _rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.nanmean(np.square(x), axis=0))


def _power_of_two(scale: Any) -> Any:
    """The nearest one, by ratio."""
    return np.exp2(np.round(np.log2(scale)))


def _positive(scale: np.ndarray, size: np.ndarray) -> np.ndarray:
    # A coordinate that never moves has no scale of its own; its deviation is rounding.
    return np.where(scale > 1e-12 * size, scale, 1.0)
