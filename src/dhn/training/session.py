"""One training, from the first step or a checkpoint to the result."""

import dataclasses
import math
import signal
import time
from pathlib import Path
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dhn.blocks import Codes
from dhn.errors import UserError
from dhn.files.source import AbstractSource, InMemory
from dhn.models.contract import AbstractModel
from dhn.training.checkpoint import Checkpoints, describe
from dhn.training.config import TrainingConfig
from dhn.training.devices import Devices, replicated
from dhn.training.history import History, Record
from dhn.training.interrupt import Interruption, TrainingInterrupted
from dhn.training.pace import CLOCKS, MARGIN, Chunks, Plan, measure_speed, take_steps
from dhn.training.pools import Pool, Pools, whole_pool
from dhn.training.prepare import make_context
from dhn.training.progress import AbstractProgress
from dhn.training.result import FitResult, Options, TrainingDiverged
from dhn.training.schedule import learning_rate
from dhn.training.step import (
    Run,
    StepLog,
    TrainState,
    count_pieces,
    default_chunk_size,
    initial_state,
    windows_per_step,
)
from dhn.training.validation import Validator
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

UNREAD = {"steps": 1, "seed": 0, "validation": 0.0, "scaling": "spread"}
"""Fields that compiled steps do not read, fixed so that they do not make them compile again."""
VALIDATIONS = 5
"""How often a run is validated, if that takes no more than a tenth of its budget."""
MEASURE_SECONDS = 2.5
"""How long the speed is measured before a budget is turned into steps."""
CLEARLY_BETTER = 0.5
"""The best checkpoint replaces the last one if its validation loss is below this share of it."""


@final
class Session:
    """One call of `fit`: what it was given, and the state that moves on."""

    def __init__(
        self,
        model: AbstractModel,
        data: Trajectories,
        scaler: Scaler,
        config: TrainingConfig,
        options: Options,
        shown: AbstractProgress,
        codes: Codes | None = None,
        pools: Pools | None = None,
        source: AbstractSource | None = None,
    ):
        self.clock = CLOCKS[config.clock]
        self.started = self.clock()
        self.config, self.shown, self.options = config, shown, options
        shapes = tuple(model.training_shapes)
        self.pools, self.devices = pools, Devices()
        if pools is None:
            given = InMemory(data) if source is None else source
            self.pool = whole_pool(data, given, scaler, shapes, config, self.devices)
        else:
            self.pool = pools.load(0)
        arrays = self.pool.arrays
        self.static = eqx.filter(model, eqx.is_inexact_array, inverse=True)
        mesh = self.devices.mesh
        sizes, rows = windows_per_step(arrays, config), arrays.states.q.shape[0]
        pieces = count_pieces(sizes, config.chunk_size or default_chunk_size(model))
        self.devices.check(sizes, pieces, rows)
        self.run = Run(
            static=replicated(mesh, self.static),
            data=arrays,
            config=config.model_copy(update=UNREAD),
            seed=replicated(mesh, jnp.asarray(config.seed % 2**32, jnp.uint32)),
            total_steps=replicated(mesh, jnp.asarray(config.steps, jnp.int32)),
            mesh=mesh,
        )
        self.state = initial_state(model, rows, config, codes)
        self.plan = Plan(config.steps, options.budget)
        self.planned = options.budget is None
        self.chunks = Chunks(1, options.chunk_seconds)
        self.best: dict[str, Any] | None = None
        self.best_state: TrainState | None = None
        self.seconds_before = 0.0
        self.validations, self.validation_seconds = VALIDATIONS, 0.0
        self.saved, self.stopping = time.monotonic(), False

        writes = self.devices.first
        folder = None if options.directory is None else Path(options.directory)
        self.checkpoints = None if folder is None else Checkpoints(folder, writes)
        self.history = History(None if folder is None else folder / "metrics.jsonl", writes)
        self.description: dict[str, Any] = {}
        if folder is not None and writes:
            context = make_context(data, scaler)
            self.description = describe(model, data, scaler, context, config)
        if self.description and pools is not None:
            self.description |= {
                "trajectories": len(pools.stored),
                "data": pools.stored.fingerprint(),
                "training": {
                    **config.model_dump(mode="json"), "pools": dataclasses.asdict(pools.pooling)
                },
            }  # fmt: skip
        pool = None
        if self.checkpoints is not None:
            if not writes:
                self.devices.wait_for_first()
            pool = self._open_run(self.checkpoints)
            if writes:
                self.devices.wait_for_first()
        if pools is not None and pool is not None:
            self._use(pools.load(pool))
        elif pools is not None:
            self._take_codes()
        self.state = self.devices.placed(self.state)

    def _open_run(self, checkpoints: Checkpoints) -> int | None:
        """Take up the last checkpoint, if there is one; its pool.

        The first process does so before the others, so nothing here is an exchange.
        """
        checkpoints.discard_unfinished()
        if not checkpoints.paths():
            self.history.clear()
            if self.pools is not None:
                self.pools.clear()
            return None
        if not self.options.resume:
            raise UserError(
                f"{checkpoints.directory} already holds a run; resume it "
                f"(resume) or train into a new folder."
            )
        self.state, metadata = checkpoints.load_last(self.state, self.description)
        budget = metadata["budget"]
        if self.plan.budget is not None and self.plan.budget != budget:
            raise UserError(
                f"{checkpoints.directory} was trained with budget = {budget!r}, now it is "
                f"{self.plan.budget!r}; resume without a budget, or train into a new folder."
            )
        self.plan = Plan(self.config.steps, budget, metadata["schedule"])
        self.planned = True
        self.best, self.seconds_before = metadata["best"], metadata["seconds"]
        self.validations = metadata["validations"]
        self.history.restore(self.step)
        self.shown.say(f"resuming at step {self.step} of {self.plan.total_steps}")
        return metadata.get("pool", 0)

    @property
    def validator(self) -> Validator:
        return self.pool.validator

    def _use(self, pool: Pool) -> None:
        self.pool = pool
        self.run = self.run._replace(data=pool.arrays)

    def _take_codes(self) -> None:
        assert self.pools is not None
        book = self.pools.codes(self.pool)
        self.state = eqx.tree_at(lambda state: state.codebook, self.state, book)

    def _pool_end(self) -> int:
        """The step after which another pool follows."""
        if self.pools is None:
            return self.plan.total_steps
        return (self.pool.number + 1) * self.pools.pooling.steps

    def _next_pool(self) -> None:
        """Keep the codes of this pool (the checkpoint first, see `pools`) and take the next one."""
        assert self.pools is not None
        self._save()
        self.pools.keep(self.pool, self.devices.gathered(self.state).codebook)
        self._use(self.pools.load(self.pool.number + 1))
        self._take_codes()
        self.state = self.devices.placed(self.state)

    @property
    def step(self) -> int:
        return int(self.state.step)

    @property
    def elapsed(self) -> float:
        """Seconds of this run by the first process's clock, earlier sessions included."""
        return self.devices.agree(self.seconds_before + self.clock() - self.started)

    def model(self, state: TrainState) -> AbstractModel:
        weights = state.weights if state.average is None else state.average
        return eqx.combine(weights, self.static)

    def train(self, interruption: Interruption) -> None:
        if self.planned and self.step >= self.plan.total_steps:
            return
        self.state, _, _ = take_steps(self.run, self.state, 0)  # compiles
        if not self.planned:
            self._make_plan()
        self.stopping = self.devices.any(bool(interruption))
        while self.step < self.plan.total_steps:
            if self.stopping or (interruption and self.devices.processes == 1):
                self._stop(interruption)
            if self.pools is not None and self.step >= self._pool_end():
                self._next_pool()
            self._chunk(interruption)

    def _reserve(self) -> float:
        """Seconds of validation still to come, and of the codes at the end."""
        left = self.validations * (1 - self.step / self.plan.total_steps)
        return self.validation_seconds * (math.ceil(left) + self.validator.code_batches)

    def _make_plan(self) -> None:
        budget = self.plan.budget
        assert budget is not None
        speed = self.options.speed
        if self.validator.enabled:
            if speed is None:
                self._validation_loss()  # compiles
            started = self.clock()
            self._validation_loss()
            self.validation_seconds = self.devices.agree(self.clock() - started)
            affordable = int(0.1 * (budget - self.elapsed) / self.validation_seconds)
            self.validations = max(1, min(VALIDATIONS, affordable))
        if speed is None:
            speed, chunk = measure_speed(
                self.run, self.state, min(MEASURE_SECONDS, 0.05 * budget), self.devices.agree
            )
        else:
            chunk = max(1, int(self.options.chunk_seconds * speed))
        left = MARGIN * (budget - self.elapsed) - self._reserve()
        self.plan = Plan(max(1, int(speed * max(left, 0.1 * budget))), budget)
        self.chunks, self.planned = Chunks(chunk, self.options.chunk_seconds), True
        self.shown.say(
            f"{speed:.3g} steps/s: {self.plan.total_steps} steps fit the budget of {budget:g} s"
        )

    def _next_validation(self) -> int:
        total = self.plan.total_steps
        points = [round(total * (i + 1) / self.validations) for i in range(self.validations)]
        return next((point for point in points if point > self.step), total)

    def _chunk(self, interruption: Interruption) -> None:
        stop = self._next_validation() if self.validator.enabled else self.plan.total_steps
        steps = self.chunks.length(min(stop, self._pool_end()) - self.step)
        total = jnp.asarray(self.plan.total_steps, jnp.int32)
        run = self.run._replace(total_steps=replicated(self.devices.mesh, total))
        self.state, log, seconds = take_steps(run, self.state, steps)
        due = self.devices.agree(time.monotonic() - self.saved) >= self.options.checkpoint_seconds
        seconds = self.devices.agree(seconds)
        self.stopping = self.devices.any(bool(interruption))
        if not bool(log.finite):
            self._diverged()
        self.chunks.took(steps, seconds)
        validate = self.validator.enabled and self.step == stop
        record = self._record(log, steps, seconds)
        if validate:
            record["validation"] = self._validation_loss()
            self._consider(record["validation"])
        self.history.add(record)
        self.shown.show(record, self.plan.total_steps)
        if self.plan.compare(self.step, self.elapsed, self._reserve()):
            self.shown.say(
                f"the speed has changed; the schedule now ends at {self.plan.total_steps} steps"
            )
        if validate or due or self.step >= self.plan.total_steps:
            self._save()

    def _record(self, log: StepLog, steps: int, seconds: float) -> Record:
        losses = {name: float(value) for name, value in log.losses.items()}
        windows = sum(windows_per_step(self.pool.arrays, self.config))
        return {
            "step": self.step,
            "loss": sum(losses.values()),
            **losses,
            "gradient_norm": float(log.gradient_norm),
            "learning_rate": self._rate(self.step - 1),
            "seconds": round(self.elapsed, 3),
            "steps_per_second": steps / seconds,
            "windows_per_second": steps * windows / seconds,
        }  # fmt: skip

    def _rate(self, step: int) -> float:
        """The learning rate of the weights at this step."""
        now, total = (jnp.asarray(x, jnp.int32) for x in (step, self.plan.total_steps))
        return self.config.learning_rate * float(learning_rate(self.config, now, total))

    def _validation_loss(self) -> float:
        state = self.devices.gathered(self.state)
        value = self.validator.loss(self.model(state), self._codes(state))
        assert value is not None
        return value

    def _codes(self, state: TrainState) -> Float[Array, "N k"]:
        """One code a trajectory; those that share a row of the codebook have the same."""
        rows = state.codebook.rows
        shared = np.zeros(len(rows), np.int32)
        shared[: len(self.pool.code_rows)] = self.pool.code_rows
        return rows[shared]

    def _consider(self, validation: float) -> None:
        """Keep this state if it is the best so far."""
        if self.best is not None and not validation < self.best["validation"]:
            return
        self.best = {"step": self.step, "validation": validation, "pool": self.pool.number}
        state = self.devices.gathered(self.state)
        if self.checkpoints is None:
            self.best_state = jax.tree.map(np.asarray, state)
        else:
            self.checkpoints.save_best(state, self._metadata())

    def _metadata(self) -> dict[str, Any]:
        return {
            **self.description,
            "seed": self.config.seed,
            "total_steps": self.plan.total_steps,
            "schedule": self.plan.changes,
            "budget": self.plan.budget,
            "seconds": self.elapsed,
            "best": self.best,
            "validations": self.validations,
            "pool": self.pool.number,
        }

    def _save(self) -> Path | None:
        if self.checkpoints is None:
            return None
        self.saved = time.monotonic()
        return self.checkpoints.save(self.devices.gathered(self.state), self._metadata())

    def _stop(self, interruption: Interruption) -> None:
        path = self._save()
        number = interruption.signal_number or signal.SIGTERM  # of another process
        raise TrainingInterrupted(
            f"stopped at step {self.step} of {self.plan.total_steps} and saved {path}; "
            f"resume to go on.",
            number,
        )

    def _diverged(self) -> None:
        rate = self._rate(self.step)
        kept = self.checkpoints.paths() if self.checkpoints is not None else []
        raise TrainingDiverged(
            f"training diverged: the loss or its gradient is not a number at step {self.step}, "
            f"learning rate {rate:.3g}. Lower learning_rate or clip, raise warmup, or look for "
            f"outliers in the data." + (f" The last good checkpoint is {kept[-1]}." if kept else "")
        )

    def result(self) -> FitResult:
        self.state = self.devices.gathered(self.state)
        state, chosen = self.state, "last"
        if self.pools is not None:
            self.pools.keep(self.pool, state.codebook)
        validation = self.history.records[-1].get("validation") if self.history.records else None
        if (
            self.best is not None
            and validation is not None
            and not self.best["validation"] >= CLEARLY_BETTER * validation
        ):
            state, chosen = self._best_state(), "best"
            validation = self.best["validation"]
            if self.pools is not None:
                self._use(self.pools.load(self.best["pool"]))
        model, book = self.model(state), self._codes(state)
        return FitResult(
            model=model,
            codes=self.validator.all_codes(model, book),
            noise=self.validator.noise(model, book),
            steps=int(state.step),
            seconds=self.elapsed,
            history=self.history.records,
            validation=validation,
            chosen=chosen,
            chunks=() if self.pools is None else (*self.pool.chunks, *self.pools.held),
            held_out=self.validator.split.held_out,
        )

    def _best_state(self) -> TrainState:
        if self.best_state is not None:
            return jax.tree.map(jnp.asarray, self.best_state)
        assert self.checkpoints is not None
        return self.checkpoints.load(self.checkpoints.best, self.state)[0]
