"""`MechanicalModel`: fitted mechanics, and what they answer."""

import dataclasses
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from dhn.errors import UserError
from dhn.mechanics.bands import Bands
from dhn.mechanics.classical import Classical, Parameter
from dhn.mechanics.describe import describe
from dhn.mechanics.layout import Layout
from dhn.mechanics.predicting import Mechanics, likely_systems, predict
from dhn.mechanics.rows import Scale, measured, stacked
from dhn.mechanics.windows import Windows, forecasts, windows_from
from dhn.systems import SYSTEMS, get_system
from dhn.trajectories import Trajectories
from dhn.trajectories.segments import run_of

FORMAT = 4
"""Version of the saved form."""


@final
@dataclasses.dataclass(frozen=True)
class Stage:
    """One step of the fit: what was tried and whether it was kept."""

    name: str
    error: float | None
    """Of forecasts up to half a period on validation, scaled; none where the likelihood of the
    training data was expected to gain too little for a trial."""
    before: float | None
    """The same error without it."""
    log_density: float
    iterations: int
    kept: bool

    def line(self) -> str:
        """A sentence for a person."""
        if self.error is None:
            return f"{self.name}: the training data do not call for it; left out"
        if not np.isfinite(self.error):
            return f"{self.name}: diverged, left out"
        change = "" if self.before is None else f", without it {self.before:.4g}"
        return f"{self.name}: error {self.error:.4g}{change}; {'kept' if self.kept else 'left out'}"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Forecast:
    """Positions to come, in the data's units."""

    mean: Float[np.ndarray, "n H d"]
    sd: Float[np.ndarray, "n H d"]
    """Of a new measurement, calibrated on the validation part (half-width of the 68 % band)."""
    bands: Mapping[float, tuple[Float[np.ndarray, "n H d"], Float[np.ndarray, "n H d"]]]
    """Level -> lower and upper end."""
    velocity: Float[np.ndarray, "n H d"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Smoothed:
    """Positions given all measurements of a run, in the data's units; gaps are filled."""

    q: Float[np.ndarray, "n T d"]
    """The sensor's slow error and noise removed."""
    v: Float[np.ndarray, "n T d"]
    q_sd: Float[np.ndarray, "n T d"]
    v_sd: Float[np.ndarray, "n T d"]
    reading: Float[np.ndarray, "n T d"]
    """What the sensor would read there without white noise."""
    energy: Float[np.ndarray, "n T"]
    """Kinetic and potential, in units of the first coordinate's inertia."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class MechanicalModel:
    """Mass matrix, potential, friction, sensor and noise, fitted to positions."""

    mechanics: Mechanics
    systems: tuple[str, ...]
    """Runs with coefficients of their own; empty if all share one set."""
    standard_errors: Float[np.ndarray, "R P"]
    """Of the coefficients, 0 where one was not fitted."""
    bands: Bands
    groups: tuple[str, ...]
    """Groups of `GROUPS` that were kept."""
    stages: tuple[Stage, ...]
    gated: int
    """Measurements of the training part treated as outliers."""
    measured: int
    seconds: float
    observed: int
    valid_until: Mapping[str, Any]
    """As `Validity.summary` gives it for the windows of the validation part."""

    def forecast(
        self, observed: Trajectories, steps: int | None = None,
        times: Float[np.ndarray, "*n H"] | None = None, levels: tuple[float, ...] = (0.5, 0.9),
    ) -> Forecast:  # fmt: skip
        """Positions after the last observed ones, from the iterated smoother's last state.

        Arguments: observed: runs with positions, NaN where lost; steps: how many states of the
            usual step; or times: (H,) or (n, H) at which to forecast; levels: shares of bands.
        Returns: mean, spread and bands, each (n, H, d).
        """
        if (steps is None) == (times is None):
            raise UserError("a forecast needs either steps or times; give one of them.")
        self._check(observed)
        end = np.array(
            [row[n - 1] for row, n in zip(observed.times, observed.lengths, strict=True)]
        )
        if times is None:
            assert steps is not None
            step = self.mechanics.scale.step * self.mechanics.scale.time
            times = end[:, None] + step * np.arange(1, steps + 1)
        times = np.broadcast_to(times, (len(observed), np.shape(times)[-1]))
        if (times[:, 0] <= end).any() or (np.diff(times, axis=1) <= 0).any():
            raise UserError(
                "the times of a forecast must increase and lie after the observed ones."
            )
        windows = _extended(observed, times, self.mechanics.scale)
        systems = self.systems_of(observed)
        found = forecasts(self.mechanics, windows, systems)
        scale = self.mechanics.scale
        mean = scale.unscaled(found.mean)
        sd = self._unscaled_sd(self.bands.spread(found))
        ahead = (times - end[:, None]) / scale.time
        bands = {}
        for level in levels:
            half = self.bands.half_width(sd, ahead, level)
            bands[level] = (mean - half, mean + half)
        return Forecast(
            mean=mean,
            sd=self.bands.half_width(sd, ahead, 0.6827),
            bands=bands,
            velocity=self._velocity(found.velocity),
        )

    def smooth(self, data: Trajectories) -> Smoothed:
        """Denoise runs and fill their gaps.

        Arguments: data: runs with positions, NaN where lost, at their own times.
        Returns: positions, velocities, their standard deviations and the energy.
        """
        self._check(data)
        windows = windows_from(data, self.mechanics.scale, data.states)
        systems = self.systems_of(data)
        found = predict(self.mechanics, windows.pieces, systems, forecast=False)
        d, scale = self.mechanics.layout.dim, self.mechanics.scale
        shape = data.q.shape
        q, v, reading = (np.full(shape, np.nan) for _ in range(3))
        q_sd, v_sd = np.full(shape, np.nan), np.full(shape, np.nan)
        energy = np.full(shape[:2], np.nan)
        for i, piece in enumerate(windows.pieces):
            real = np.flatnonzero(piece.row >= 0)
            to = piece.row[real]
            state, spread = found.state[i, real], np.sqrt(found.state_variance[i, real])
            q[i, to] = scale.unscaled(state[:, :d])
            v[i, to] = self._velocity(state[:, d : 2 * d])
            q_sd[i, to] = self._unscaled_sd(spread[:, :d])
            v_sd[i, to] = self._unscaled_sd(spread[:, d : 2 * d]) / scale.time
            reading[i, to] = scale.unscaled(found.mean[i, real])
            energy[i, to] = self.mechanics.energy(
                state[:, :d], state[:, d : 2 * d], int(systems[i])
            )
        return Smoothed(q, v, q_sd, v_sd, reading, energy)

    def describe(self) -> dict[str, Any]:
        """The identified physics as plain JSON values, with standard errors.

        Arguments: none.
        Returns: mass matrix, potential, friction, frequencies, sensor, noise, stages.
        """
        found = describe(self.mechanics, self.standard_errors, self.systems)
        return found | {
            "groups": list(self.groups),
            "stages": [dataclasses.asdict(x) for x in self.stages],
            "outliers": self.gated,
            "measurements": self.measured,
            "seconds": self.seconds,
            "valid_until": dict(self.valid_until),
        }

    def systems_of(self, data: Trajectories) -> Int[np.ndarray, " n"]:
        """Which trained system each run belongs to: by its name, else by its likelihood."""
        if not self.systems:
            return np.zeros(len(data), int)
        names = [run_of(x.rpartition("@")[0] or x) for x in data.ids]
        if all(x in self.systems for x in names):
            return np.array([self.systems.index(x) for x in names])
        windows = windows_from(data, self.mechanics.scale, data.states)
        rows = stacked(windows.pieces, self.mechanics.scale, self.mechanics.layout.angles)
        likely = likely_systems(self.mechanics, rows, len(data))
        return np.array(
            [
                self.systems.index(x) if x in self.systems else k
                for x, k in zip(names, likely, strict=True)
            ]
        )

    def _check(self, data: Trajectories) -> None:
        if data.angles != self.mechanics.layout.angles:
            raise UserError(
                f"this model has {self.mechanics.layout.dim} coordinates with angles "
                f"{self.mechanics.layout.angles}; the data have {data.dim} with {data.angles}."
            )
        if (measured(data)[1].any(-1).sum(1) < 2).any():
            raise UserError("a run has fewer than two measured positions; leave it out.")

    def _unscaled_sd(self, sd: np.ndarray) -> np.ndarray:
        scale = self.mechanics.scale
        if scale.relative:  # of a difference of two angles, as if independent
            sd = np.sqrt(sd**2 + np.concatenate([0 * sd[..., :1], sd[..., :-1]], -1) ** 2)
        return sd * scale.size

    def _velocity(self, v: np.ndarray) -> np.ndarray:
        scale = self.mechanics.scale
        v = np.diff(v, axis=-1, prepend=0.0) if scale.relative else v
        return v * scale.size / scale.time

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything that is numbers.

        Arguments: none.
        Returns: name -> float64 array, C-contiguous.
        """
        scale = self.mechanics.scale
        found = {
            "theta": self.mechanics.theta, "standard_errors": self.standard_errors,
            "width": self.mechanics.width, "offset": scale.offset, "size": scale.size,
            "rate": scale.rate, "band_ahead": self.bands.ahead,
            "band_factors": self.bands.factors, "band_windows": self.bands.windows,
        }  # fmt: skip
        return {k: np.ascontiguousarray(x, np.float64) for k, x in found.items()}

    def metadata(self) -> dict[str, Any]:
        """Everything else, as JSON values.

        Arguments: none.
        Returns: a dictionary that `from_arrays` takes.
        """
        scale, own = self.mechanics.scale, self.mechanics.layout.classical
        return {
            "format": FORMAT, "angles": list(self.mechanics.layout.angles),
            "rest": self.mechanics.layout.rest, "time": scale.time,
            "step": scale.step, "relative": scale.relative, "systems": list(self.systems),
            "groups": list(self.groups), "stages": [dataclasses.asdict(x) for x in self.stages],
            "gated": self.gated, "measured": self.measured, "seconds": self.seconds,
            "observed": self.observed, "band_power": self.bands.power,
            "wander": self.mechanics.wander,
            "valid_until": dict(self.valid_until),
            "classical": None if own is None else {
                "system": own.system.name, "held": dict(own.held), "inertia": own.inertia,
                "free": [[x.name, *map(str, (x.start, x.low, x.high))] for x in own.free],
            },
        }  # fmt: skip

    @staticmethod
    def from_arrays(
        arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
    ) -> "MechanicalModel":
        """The model that was saved.

        Arguments: arrays: from `to_arrays`; metadata: from `metadata`.
        Returns: an equal model.
        """
        if metadata.get("format") != FORMAT:
            raise UserError(
                f"a mechanical model of format {FORMAT} was expected; got "
                f"{metadata.get('format')!r}. Fit it again with this version."
            )
        scale = Scale(
            metadata["time"], arrays["offset"], arrays["size"], arrays["rate"], metadata["step"],
            metadata["relative"],
        )  # fmt: skip
        own = None
        if (made := metadata["classical"]) is not None:
            free = tuple(Parameter(name, *map(float, rest)) for name, *rest in made["free"])
            if made["system"] not in SYSTEMS:
                raise UserError(
                    f"this model has the equations of '{made['system']}', which is no built-in "
                    f"system; make it known first: dhn.systems.register(system) in Python, "
                    f"DHN_SYSTEM=file.py:name for commands."
                )
            own = Classical(get_system(made["system"]), made["held"], free, scale, made["inertia"])
        layout = Layout(tuple(metadata["angles"]), metadata["rest"], own)
        return MechanicalModel(
            mechanics=Mechanics(
                layout, scale, arrays["theta"], arrays["width"], metadata["wander"]
            ),
            systems=tuple(metadata["systems"]),
            standard_errors=arrays["standard_errors"],
            bands=Bands(
                arrays["band_ahead"],
                arrays["band_factors"],
                arrays["band_windows"],
                metadata["band_power"],
            ),
            groups=tuple(metadata["groups"]),
            stages=tuple(Stage(**x) for x in metadata["stages"]),
            valid_until=metadata["valid_until"],
            **{k: metadata[k] for k in ("gated", "measured", "seconds", "observed")},
        )


def _extended(observed: Trajectories, times: np.ndarray, scale: Scale) -> Windows:
    """Observed runs with empty rows at the asked times behind each."""
    lengths = observed.lengths
    states, (n, ahead) = int(lengths.max()), times.shape
    q = np.full((n, states + ahead, observed.dim), np.nan)
    t = np.full((n, states + ahead), np.nan)
    known = np.zeros((n, states + ahead), bool)
    for i, length in enumerate(lengths):  # shorter runs are moved to the right
        head = slice(states - length, states)
        q[i, head], t[i, head] = observed.q[i, :length], observed.times[i, :length]
        known[i, head] = np.asarray(observed.known)[i, :length]
        t[i, : states - length] = t[i, states - length] - 1.0 - np.arange(states - length)[::-1]
    t[:, states:] = times
    data = Trajectories(q=q, t=t, known=known, angles=observed.angles, ids=observed.ids)
    return windows_from(data, scale, states)
