"""The estimator: bring trajectories, fit, forecast, complete, interpolate, infer, save.

A thin face over pure functions; everything it does can be done with `training.fit`,
`training.autodecode`, `inference.forecast` and the models themselves.
"""

import abc
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.random as jr
import numpy as np

from dhn.blocks import StateBlock
from dhn.codes.autodecode import CodeFit, CodePrior, autodecode
from dhn.codes.probe import Probe
from dhn.errors import UserError
from dhn.estimator.artifact import Artifact, load_artifact, member_folder
from dhn.estimator.checks import check_context, check_data
from dhn.estimator.held_out import held_out, rehearsal
from dhn.models.contract import AbstractForecaster
from dhn.models.registry import build_model, count_parameters
from dhn.reconstruct.calibration import Calibration
from dhn.reconstruct.forecast import forecast
from dhn.reconstruct.interpolate import interpolate
from dhn.reconstruct.observation import Observation
from dhn.reconstruct.outputs import joined, stacked, together, with_momenta
from dhn.reconstruct.pieces import cut, join, piece_starts
from dhn.reconstruct.shooting import Shot, shoot
from dhn.training.along_paths import fit_along_paths
from dhn.training.config import TrainingConfig
from dhn.training.fit import fit
from dhn.training.prepare import make_context, usable_states
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

LEAST_NOISE = 1e-5
"""Of a scaled coordinate: the announced noise of clean data is rounding."""
PIECE = 64
"""States of the pieces in which long runs are denoised, if the model has no paths."""
POOR_FIT = 100.0
"""A mean squared residual so many times the training set's calls for a warning."""


class AbstractEstimator(abc.ABC):
    """What every model offers once it stands behind the estimator's face."""

    config: Any
    training: TrainingConfig
    artifact: Artifact | None
    members: "tuple[AbstractEstimator, ...]" = ()
    """More models of the same data, whose forecasts are taken together with this one's."""

    def fit(
        self,
        train: Trajectories,
        *,
        steps: int | None = None,
        budget: float | None = None,
        directory: str | Path | None = None,
        resume: bool = False,
        progress: bool = False,
        tensorboard: bool = False,
        calibrate: bool = False,
        validation: Trajectories | None = None,
        source: dict[str, Any] | None = None,
    ) -> "AbstractEstimator":
        """Train on these trajectories, for `steps` optimiser steps or `budget` seconds.

        With a `directory` the run checkpoints itself there, can be resumed, and leaves the trained
        model in it. `calibrate` measures forecasts on `validation`, else on the trajectories that
        training held out itself, so that the bands of later forecasts cover what they claim.
        `source` says where the data come from and is kept with the model.
        """
        self.adapt(train)
        training = (
            self.training if steps is None else self.training.model_copy(update={"steps": steps})
        )
        scaler = Scaler.fit(train)
        context = make_context(train, scaler)
        with jax.enable_x64(training.precision == "float64"):
            fresh = build_model(self.config, context, jr.key(training.seed))
        train_model = fit_along_paths if getattr(self.config, "path", 0) else fit
        result = train_model(
            fresh, train, scaler, training, budget=budget, directory=directory,
            resume=resume, progress=progress, tensorboard=tensorboard,
        )  # fmt: skip
        self.artifact = Artifact(
            model=result.model,
            config=self.config,
            training=training,
            context=context,
            scaler=scaler,
            codes=np.asarray(result.codes),
            prior=CodePrior.fit(result.codes, result.noise),
            ids=train.ids,
            params=dict(train.params),
            names=train.names,
            units=dict(train.units),
            system=train.system,
            summary={
                "steps": result.steps,
                "seconds": result.seconds,
                "validation": result.validation,
                "chosen": result.chosen,
                "residual": result.noise,
                "trajectories": len(train),
                "fingerprint": train.fingerprint(),
                **({"data": source} if source else {}),
            },
        )
        if calibrate and isinstance(result.model, AbstractForecaster):
            self.calibrate(self.held_out(train) if validation is None else validation)
        if directory is not None:
            self.artifact.save(directory)
        return self

    def held_out(self, train: Trajectories) -> Trajectories | None:
        """The trajectories that training kept aside, if it did."""
        return held_out(self.trained, train)

    def calibrate(
        self, held: Trajectories | None, *, observe: int | None = None, samples: int = 8
    ) -> None:
        """Forecast trajectories that training did not see and keep how wrong that was.

        They are completed from their first `observe` states, by default a quarter, up to 16; long
        measured runs from many starting points.
        """
        made = self.trained
        found = None if held is None else rehearsal(held, made.model.window_shapes, observe)
        if found is None:
            return
        held, observe = found
        paths = self._paths(held[:, :observe], held.states - observe, samples=samples)
        guesses = np.stack([stacked(path) for path in paths])
        truth = stacked(StateBlock(*made.scaler.transform(held)))[:, observe:]
        truth = np.where(usable_states(held)[:, observe:, None, None], truth, np.nan)
        calibration = Calibration.fit(guesses[0] - truth, guesses.std(0))
        self.artifact = dataclasses.replace(made, extra={**made.extra, **calibration.to_arrays()})

    def adapt(self, train: Trajectories) -> str | None:
        """Settle what is left to the training data, and say so if it matters; `fit` begins so."""
        return None

    @property
    def trained(self) -> Artifact:
        if self.artifact is None:
            raise UserError("this model has not been trained; call fit(...) first.")
        return self.artifact

    @property
    def parameters(self) -> int:
        """Trainable numbers, codes not counted."""
        return count_parameters(self.trained.model)

    @property
    def forecaster(self) -> AbstractForecaster:
        """The model, if it can move a trajectory forward."""
        model = self.trained.model
        if not isinstance(model, AbstractForecaster):
            raise UserError(
                f"a model of kind {self.config.kind!r} interpolates, it cannot forecast."
            )
        return model

    def poorly_explained(self, fits: CodeFit) -> np.ndarray:
        """(n,) bool: trajectories whose residual is far above what training left."""
        return fits.loss > POOR_FIT * self.trained.prior.noise**2

    def fit_codes(self, data: Trajectories) -> CodeFit:
        """Autodecode: the code of each new trajectory, from its known states."""
        made = self.trained
        states, known = self._states(data)
        with jax.enable_x64(made.training.precision == "float64"):
            return autodecode(made.model, states, known, made.prior)

    def encode(self, data: Trajectories) -> np.ndarray:
        """(n, k) codes of new trajectories."""
        return self.fit_codes(data).codes

    def forecast(
        self,
        observed: Trajectories,
        steps: int,
        *,
        codes: np.ndarray | None = None,
        fits: CodeFit | None = None,
        method: Literal["auto", "codes", "shooting"] = "auto",
        samples: int = 1,
        seed: int = 0,
    ) -> Trajectories:
        """The observed states followed by `steps` predicted ones.

        The codes are fitted on the observed states unless `codes` (or a `fit_codes` of before)
        are given. Where the measurements' noise is known and matters, start state and code are
        fitted together by `shooting` (see there), unless `method="codes"`. `samples > 1` draws
        codes and start states from their posterior, and denoising noise where the model has it,
        and adds quantiles.
        """
        made = self.trained
        paths = self._paths(observed, steps, codes, fits, method, samples, seed)
        calibration = Calibration.from_arrays(made.extra)
        return joined(observed, paths, made.scaler, made.context.time_step, calibration)

    def _paths(
        self, observed, steps, codes=None, fits=None, method="auto", samples=1, seed=0
    ) -> list[StateBlock]:
        """Scaled forecasts: the deterministic one, then samples of the posterior."""
        made = self.trained
        if self.members and codes is None:
            alone, share = Loaded(made), -(-samples // (len(self.members) + 1))
            each = [
                model._paths(observed, steps, None, None, method, share, seed + k)
                for k, model in enumerate((alone, *self.members))
            ]
            return together(each, samples)
        if steps < 1:
            raise UserError(f"steps must be at least 1; got {steps}.")
        states, known = self._states(observed)
        with jax.enable_x64(made.training.precision == "float64"):
            seen = self._observe(observed, states, known, codes, fits, method)
            key = jr.key(seed)
            paths = [forecast(self.forecaster, seen.start, seen.codes, steps, key)]
            for sample in range(1, samples):
                sample_key, draw_key = jr.split(jr.fold_in(key, sample))
                paths.append(forecast(self.forecaster, *seen.draw(draw_key), steps, sample_key))
        return paths

    def denoise(self, data: Trajectories, *, noise: np.ndarray | None = None) -> Trajectories:
        """The model's own path through noisy measurements, gaps filled.

        Long runs are taken in overlapping pieces, see `pieces`.

        `noise` is (2, d), the standard deviation of q and p; by default what the data carry.
        """
        made = self.trained
        data = data if noise is None else data.replace(noise=np.asarray(noise))
        if self._noise(data) is None:
            raise UserError(
                "denoising needs to know how noisy the measurements are; give noise=(2, d) "
                "standard deviations of q and p, or data that carry them."
            )
        states, known = self._states(data)
        with jax.enable_x64(made.training.precision == "float64"):
            starts, length = piece_starts(known, 2 * getattr(self.config, "path", 0) or PIECE)
            fits = self._noisy_codes(data, states, known)
            fits = jax.tree.map(lambda x: np.repeat(x, len(starts), axis=0), fits)
            pieces = jax.tree.map(lambda x: cut(np.asarray(x), starts, length), states)
            path = self._shot(data, pieces, cut(known, starts, length), fits).path
        whole = [join(np.asarray(x, np.float64), starts, data.states) for x in path]
        q, p = made.scaler.inverse(*whole)
        return with_momenta(data, q, p, data.t, np.zeros(q.shape[:2], bool))

    def _noisy_codes(self, observed, states, known) -> CodeFit:
        made, noise = self.trained, self._noise(observed)
        assert noise is not None
        # One-step residuals of noisy states: the noise of two states over a typical change.
        change = made.context.change(1)
        level = np.sqrt(made.prior.noise**2 + 2 * np.mean(noise**2) / change**2)
        return autodecode(made.model, states, known, made.prior, noise=float(level))

    def _shot(self, observed, states, known, fits) -> Shot:
        made, noise = self.trained, self._noise(observed)
        assert noise is not None
        fits = fits or self._noisy_codes(observed, states, known)
        stepwise = getattr(made.model, "path_noise", None) is None
        return shoot(self.forecaster, states, known, fits, made.prior, noise, trusted=stepwise)

    def _noise(self, observed: Trajectories) -> np.ndarray | None:
        """(2, d) scaled: how far measurements may lie from a path.

        How they compare with each other is told by the data, if they tell anything; how large they
        are at least, by training, which knows what the model has wrong.
        """
        told, seen = observed.noise, getattr(self.trained.model, "path_noise", None)
        if told is None:
            return None if seen is None else np.asarray(seen)
        told = self.trained.scaler.scaled_noise(told)
        if seen is None:
            return told
        told = np.maximum(told, LEAST_NOISE)
        return told * max(1.0, np.sqrt(np.mean((np.asarray(seen) / told) ** 2)))

    def _observe(self, observed, states, known, codes, fits, method) -> Observation:
        made = self.trained
        noise = self._noise(observed)
        noisy = getattr(made.model, "path_noise", None) is not None or (
            noise is not None and np.any(noise > made.prior.noise * made.context.change(1))
        )
        length = self.forecaster.context_length
        if method == "shooting" and noise is None:
            raise UserError(
                "shooting needs the noise of the measurements; use data.replace(noise=...)."
            )
        able = codes is None and observed.q.shape[1] > length and known.any(1).all()
        if method == "shooting" or (method == "auto" and noisy and able):
            shot = self._shot(observed, states, known, fits)
            start = shot.path.at(slice(-length, None))
            return Observation(start, shot.codes, shot.code_root, shot.end_root)
        check_context(length, known)
        start = states.at(slice(-length, None))
        if codes is not None:
            return Observation(start, np.asarray(codes), None, None)
        fits = fits or autodecode(made.model, states, known, made.prior)
        return Observation(start, fits.codes, fits.root, None)

    def complete(
        self, data: Trajectories, observe: int, *, samples: int = 1, seed: int = 0
    ) -> Trajectories:
        """See the first `observe` states, predict the rest of each trajectory."""
        if not 1 <= observe < data.q.shape[1]:
            raise UserError(
                f"observe must lie between 1 and {data.q.shape[1] - 1}, one less than the "
                f"trajectories' {data.q.shape[1]} states; got {observe}."
            )
        rest = data.q.shape[1] - observe
        return self.forecast(data[:, :observe], rest, samples=samples, seed=seed)

    def interpolate(self, sparse: Trajectories, factor: int, *, seed: int = 0) -> Trajectories:
        """`factor - 1` states between each two known ones."""
        made = self.trained
        check_data(made, sparse, factor)
        q, p = made.scaler.transform(sparse)
        if not np.isfinite(q).all() or not np.isfinite(p).all():
            raise UserError("interpolation needs all states of the coarse grid known; found gaps.")
        with jax.enable_x64(made.training.precision == "float64"):
            found = interpolate(
                made.model, StateBlock(q, p), made.prior, factor, made.context, jr.key(seed)
            )
        q, p = made.scaler.inverse(found.q.astype(np.float64), found.p.astype(np.float64))
        fine = (q.shape[1] - 1) // factor
        q[:, ::factor] = sparse.q
        p[:, ::factor] = sparse.momenta
        known = np.zeros(q.shape[:2], bool)
        known[:, ::factor] = sparse.known
        start = sparse.t[0] if sparse.t.ndim == 1 else sparse.t[:, :1]
        t = start + np.arange(fine * factor + 1) * (sparse.time_step / factor)
        return with_momenta(sparse, q, p, t, known)

    def infer(self, data: Trajectories, target: str) -> np.ndarray:
        """A parameter of each trajectory, read off its code by the probe."""
        return self.probe(target)(self.encode(data))

    def probe(self, target: str, *, linear: bool = False) -> Probe:
        """Ridge regression from the training codes to this parameter of the training set.

        The paper's probe is `linear`; otherwise it may bend where that helps.
        """
        made = self.trained
        if target not in made.params:
            have = ", ".join(made.params) or "none"
            raise UserError(
                f"the training data have no parameter {target!r} to learn from; they have: {have}."
            )
        return Probe.fit(made.codes, made.params[target], linear=linear)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Everything needed to use the model, into one folder."""
        self.trained.save(path)
        for number, member in enumerate(self.members, 1):
            member.trained.save(member_folder(path, number))

    def joined_by(self, members: "Sequence[AbstractEstimator]") -> "Loaded":
        """An ensemble: forecasts are means over all models and their spread is in the bands.

        What else a model does (infer, interpolate, denoise) this one does alone.
        """
        made = self.trained
        summary = {**made.summary, "ensemble": 1 + len(members)}
        return Loaded(dataclasses.replace(made, summary=summary), tuple(members))

    def _states(self, data: Trajectories) -> tuple[StateBlock, np.ndarray]:
        check_data(self.trained, data)
        known = usable_states(data)
        q, p = self.trained.scaler.transform(data)
        clean = [np.where(known[..., None], x, 0.0) for x in (q, p)]
        return StateBlock(*clean), known


class Loaded(AbstractEstimator):
    """A trained model from disk, or several of the same data."""

    def __init__(self, artifact: Artifact, members: tuple[AbstractEstimator, ...] = ()):
        self.artifact = artifact
        self.members = members
        self.config = artifact.config
        self.training = artifact.training


def load(path: str | os.PathLike[str]) -> Loaded:
    """A model saved by `save` or by a training run; nothing needs to be repeated."""
    made = load_artifact(Path(path))
    count = made.summary.get("ensemble", 1)
    members = [load_artifact(member_folder(path, number)) for number in range(1, count)]
    return Loaded(made, tuple(Loaded(member) for member in members))
