"""`simulate`: trajectories of a system, accurate to about 1e-10, many at a time, also in pieces."""

import functools
import math
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dhn.checks import whole
from dhn.errors import UserError
from dhn.memory import check_memory
from dhn.systems.faults import check_faults, holes, noise_levels, thin
from dhn.systems.library import BUILT_IN
from dhn.systems.probe import check_functions
from dhn.systems.programs import compiled
from dhn.systems.registry import get_system
from dhn.systems.sampling import LARGEST, draw, draw_initial, draw_params, generator
from dhn.systems.system import System
from dhn.trajectories.container import Trajectories

_CHUNK = 512  # trajectories in one compiled solve: wide enough for SIMD, small enough for cache
_MAX_STEPS = 1_000_000  # of the solver; ends a simulation that cannot finish
_LONG = 100_000
"""Time steps of the system beyond which the solver's work is estimated before it begins."""
_TRIED = 1_000  # time steps of the system that the estimate is made from
_BYTES = 8  # of a float64
_COPIES = 4
"""Arrays of all numbers at the peak: the parts, their whole, a copy with faults, one to spare."""


def simulate(
    system: str | System,
    trajectories: int = 1000,
    seed: int = 0,
    *,
    params: Any = None,
    initial: Any = None,
    times: Any = None,
    time_step: float | int | None = None,
    steps: int | None = None,
    damping: Any = 0.0,
    noise: Any = 0.0,
    gaps: float | int = 0.0,
    subsample: float | int = 1.0,
    rtol: float = 1e-12,
    atol: float = 1e-12,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectories:
    """Simulate trajectories of a built-in, registered or given system.

    In `params`, `initial` and `damping` a number is fixed, a tuple `(low, high)` is a range
    drawn from uniformly for each trajectory, and an array has one value a trajectory. What is not
    named keeps the system's default. Computed in float64 whatever JAX's default precision; the same
    seed gives the same bytes.

    Arguments:
        system: A `System`, or its name.
        trajectories: How many.
        seed: Of every random choice.
        params: Name -> constants of the system.
        initial: Coordinates (`theta1`) and velocities (`v_theta1`) or momenta (`p_theta1`).
        times: (T,) or (trajectories, T), strictly increasing; the initial state is at the first.
        time_step: Spacing of a uniform grid, instead of `times`.
        steps: Steps of that grid, which has `steps + 1` states.
        damping: A rate gamma in `dp/dt = -∂H/∂q - gamma p`, recorded as parameter `gamma`.
        noise: Measurement noise of q and p as a fraction of each one's standard deviation; or
            standard deviations as a mapping of names or an array (2, d).
        gaps: Fraction of states missing (NaN and not known), at random.
        subsample: Fraction of states kept, at random, so that times are uneven.
        rtol: Relative tolerance of the solver.
        atol: Absolute tolerance of the solver.
        progress: Called with the trajectories done and all of them, now and then.

    Returns:
        The trajectories, with momenta and parameters.
    """
    system = get_system(system)
    count = whole("trajectories", trajectories)
    seed = whole("seed", seed, 0)
    check_size(system, count, np.shape(times)[-1] if np.ndim(times) else _length(system, steps))
    check_faults(noise, gaps, subsample, tuple(system.coordinates))
    if system not in BUILT_IN:
        check_functions(system)
    rtol, atol = _number("rtol", rtol, 0.0), _number("atol", atol, 0.0)
    grid = _grid(system, times, time_step, steps, count)
    values = draw_params(system, params, count, seed)
    gamma = draw(damping, count, seed, "gamma")
    if (gamma < 0).any():
        raise UserError(f"damping must not be negative; got {damping!r}.")
    q0, p0 = draw_initial(system, initial, values, count, seed)
    q, p = _solve(system, q0, p0, values, gamma, grid, rtol, atol, progress)

    if subsample != 1:
        per_trajectory = np.broadcast_to(grid, (count, grid.shape[-1]))
        index = thin(subsample, per_trajectory, seed)
        grid = np.take_along_axis(per_trajectory, index, axis=1)
        q, p = (np.take_along_axis(x, index[..., None], axis=1) for x in (q, p))
    levels = None
    if np.any(list(noise.values()) if isinstance(noise, Mapping) else noise):
        levels = noise_levels(noise, tuple(system.coordinates), q, p)
        error = generator(seed, "noise").normal(size=(count, 2, q.shape[1], system.dim))
        q, p = q + levels[0] * error[:, 0], p + levels[1] * error[:, 1]
    if gaps != 0:
        missing = holes(gaps, q.shape[:2], seed)
        q, p = (np.where(missing[..., None], np.nan, x) for x in (q, p))

    if np.any(gamma):
        if "gamma" in system.params:
            raise UserError(
                f"system '{system.name}' has a parameter 'gamma' already, which is the name of "
                "the damping rate; rename the parameter to simulate with damping."
            )
        values = {**values, "gamma": gamma}
    return Trajectories(
        q=q,
        p=p,
        t=grid,
        params=values,
        names=tuple(system.coordinates),
        angles=system.angle_flags,
        units=system.units,
        system=system.name,
        noise=levels,
        meta={"seed": seed, "rtol": float(rtol), "atol": float(atol)},
    )


def check_size(system: System, trajectories: int, states: int) -> None:
    """A `UserError` if the states do not fit into this machine's memory."""
    check_memory(
        _COPIES * _BYTES * trajectories * states * (system.dim + 1),
        f"simulating {trajectories} trajectories of {states} states of '{system.name}'",
        "simulate fewer or shorter trajectories",
    )


def _length(system: System, steps: Any) -> int:
    return 1 + (system.steps if steps is None else whole("steps", steps, 0))


def _number(name: str, value: Any, least: float = -math.inf) -> float:
    """`value` as a float, if it is a finite number above `least`."""
    if not isinstance(value, float | int | np.number) or isinstance(value, bool):
        raise UserError(f"{name} must be a number; got {value!r}.")
    if not (math.isfinite(value) and value > least):
        raise UserError(f"{name} must be finite and above {least:g}; got {value!r}.")
    return float(value)


def _grid(system: System, times, time_step, steps, count: int) -> np.ndarray:
    if times is None:
        step = system.time_step if time_step is None else _number("time_step", time_step)
        if not 1 / LARGEST < step < LARGEST:
            raise UserError(
                f"time_step must be between {1 / LARGEST:g} and {LARGEST:g}; got {step}."
            )
        return np.arange(_length(system, steps)) * np.float64(step)
    if time_step is not None or steps is not None:
        raise UserError("give times, or time_step and steps; not both.")
    try:
        grid = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"times must be numbers; got {times!r}.") from None
    if grid.size == 0 or (grid.ndim != 1 and (grid.ndim != 2 or grid.shape[0] != count)):
        raise UserError(
            f"times must have shape (T,) or ({count}, T), one row a trajectory; got {grid.shape}."
        )
    if not (np.isfinite(grid).all() and (np.diff(grid) > 0).all()):
        where = np.argwhere(~(np.diff(grid) > 0))
        at = f" at position {where[0][-1] + 1}" if len(where) else ""
        raise UserError(f"times must be finite and strictly increasing; they are not{at}.")
    return grid


def _solve(system, q0, p0, params, gamma, grid, rtol, atol, progress):
    """Cut into chunks of one shape (so one compilation serves all) and run them on all cores."""
    count, length = len(q0), grid.shape[-1]
    if length == 1:
        return q0[:, None], p0[:, None]
    # The size must not depend on the machine's cores, or the bytes might.
    size = min(_CHUNK, 1 << (count - 1).bit_length())
    chunks = -(-count // size)
    # The last chunk is filled up by repeating the last trajectory.
    index = np.minimum(np.arange(chunks * size), count - 1).reshape(chunks, size)
    everything = (q0, p0, dict(params), gamma, np.broadcast_to(grid, (count, length)))
    compiled = _compile(system, size, length)

    def run(rows, times=everything[-1]):
        # Whether JAX computes in float64 is a setting of each thread.
        with jax.enable_x64(True):
            chosen = jax.tree.map(lambda x: x[rows], (*everything[:-1], times))
            out = compiled(*chosen, np.float64(rtol), np.float64(atol))
            return jax.tree.map(np.asarray, out)

    span = np.max(grid[..., -1] - grid[..., 0]) / system.time_step
    if span > _LONG:
        short = everything[-1] * (_TRIED / span)
        ((*_, tried),) = _on_all_cores(lambda rows: run(rows, short), index[:1])
        needed = int(tried.max() * (span / _TRIED))
        if needed > _MAX_STEPS:
            raise UserError(
                f"simulating '{system.name}' over a time of {span * system.time_step:.6g} would "
                f"need about {needed:.1g} steps of the solver, and at most {_MAX_STEPS} are made; "
                f"choose a shorter time (its own time step is {system.time_step:g})."
            )
    parts = []
    for part in _on_all_cores(run, index):
        parts.append(part)
        if progress is not None:
            progress(min(len(parts) * size, count), count)
    q, p, good, _ = (np.concatenate(x)[:count] for x in zip(*parts, strict=True))
    if not good.all():
        bad = int(np.flatnonzero(~good)[0])
        constants = ", ".join(f"{name}={value[bad]:.6g}" for name, value in params.items())
        raise UserError(
            f"{np.sum(~good)} of {count} trajectories of '{system.name}' could not be solved, "
            f"first number {bad} (q={q0[bad]}, p={p0[bad]}, {constants}): the state blows up or "
            "meets a singularity. Choose other initial states, parameters or shorter times."
        )
    return q, p


def _on_all_cores(run: Callable, tasks: np.ndarray) -> Iterator[Any]:
    """`run` of every task, in order.

    A compiled solve cannot be stopped. Its threads are daemons, so that Ctrl-C need not wait for
    them, as a thread pool would; they take no further task.
    """
    slots = [queue.SimpleQueue() for _ in tasks]
    todo, ended = iter(enumerate(tasks)), threading.Event()
    lock = threading.Lock()

    def work() -> None:
        while not ended.is_set():
            with lock:
                number, task = next(todo, (None, None))
            if number is None:
                return
            try:
                slots[number].put((run(task), None))
            except Exception as error:  # raised where the result is waited for
                slots[number].put((None, error))

    for _ in range(min(os.cpu_count() or 1, len(tasks))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for slot in slots:
            result, error = slot.get()
            if error is not None:
                raise error
            yield result
    finally:
        ended.set()


@functools.lru_cache(maxsize=64)
def _compile(system: System, size: int, length: int):
    """One compiled solve of `size` trajectories of `length` states, ready for several threads."""
    array = lambda *shape: jax.ShapeDtypeStruct(shape, np.float64)  # noqa: E731
    state = array(size, system.dim)
    params = {name: array(size) for name in system.params}
    shapes = (state, state, params, array(size), array(size, length), array(), array())
    return compiled(system, _solve_chunk, shapes, "simulation")


def _solve_chunk(system: System, q0, p0, params, gamma, times, rtol, atol):
    import diffrax  # slow to import, and only a simulation needs it

    d = system.dim

    def field(t, y, args):
        return jnp.concatenate(system.vector_field(y[:d], y[d:], *args))

    def single(q0, p0, params, gamma, times):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Dopri8(),
            times[0],
            times[-1],
            None,
            # One array, not a pair: half the operations in every stage.
            jnp.concatenate([q0, p0]),
            args=(params, gamma),
            saveat=diffrax.SaveAt(ts=times),
            # Safety 0.8 halves the rejected steps against 0.9 at equal accuracy. The least step
            # ends a solution that blows up.
            stepsize_controller=diffrax.PIDController(
                rtol=rtol,
                atol=atol,
                safety=0.8,
                dtmin=1e-13 * (times[-1] - times[0]),
                force_dtmin=False,
            ),
            adjoint=diffrax.ForwardMode(),
            max_steps=_MAX_STEPS,
            throw=False,
        )
        assert solution.ys is not None
        good = solution.result == diffrax.RESULTS.successful
        good &= jnp.isfinite(solution.ys).all()
        return solution.ys[:, :d], solution.ys[:, d:], good, solution.stats["num_steps"]

    return jax.vmap(single)(q0, p0, params, gamma, times)


PIECE = 4096
"""Trajectories of a piece. It decides which random numbers are drawn, so it is not an option."""


def simulate_pieces(
    system: str | System,
    trajectories: int,
    seed: int = 0,
    *,
    noise: Any = 0.0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Iterator[Trajectories]:
    """`simulate`, piece by piece: the first is its result for as many trajectories, bit for bit.

    Every later piece has a seed of its own that follows from `seed`. Noise that is given as a
    fraction is taken of the standard deviations of the first piece.

    Arguments:
        system: A `System`, or its name.
        trajectories: How many in all.
        seed: Of every random choice.
        noise: As for `simulate`.
        progress: Called with the trajectories done and all of them.
        options: As for `simulate`, numbers and ranges only.

    Returns:
        Pieces of up to 4096 trajectories, each computed when it is asked for.
    """
    count = whole("trajectories", trajectories)
    for number, first in enumerate(range(0, count, PIECE)):
        own = seed if number == 0 else int(_seed(seed, number))

        def shown(done: int, _: int, first: int = first) -> None:
            if progress is not None:
                progress(first + done, count)

        size = min(PIECE, count - first)
        piece = simulate(
            system, trajectories=size, seed=own, noise=noise, progress=shown, **options
        )
        noise = noise if piece.noise is None else piece.noise
        yield piece.replace(meta={**piece.meta, "seed": seed})


def _seed(seed: int, number: int) -> np.uint64:
    """63 bits, so that pieces do not repeat each other or the simulations of nearby seeds."""
    return np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1)
