"""Extended Kalman filter and iterated smoother of the state (q, v, β), β the slow error."""

from typing import NamedTuple, final

import jax
import jax.numpy as jnp
from jaxtyping import Float

from dhn.mechanics.layout import Layout, Numbers
from dhn.mechanics.motion import advance
from dhn.mechanics.sensor import reading

GATE = 5.0
"""Innovations beyond this many standard deviations are outliers and are left out."""
TURN = 6.283185307179586  # 2π


@final
class Rows(NamedTuple):
    """Measurements of one stretch of a run, in scaled units; every leaf may have leading axes."""

    step: Float[Numbers, "*b L"]
    """Time since the row before; 0 for the first row and for padding."""
    y: Float[Numbers, "*b L d"]
    """Readings; any number where `seen` is 0."""
    seen: Float[Numbers, "*b L d"]
    """1 for a measurement, 0 for a lost or future one."""
    mean: Float[Numbers, "*b n"]
    """State before the first row; n = 3d."""
    spread: Float[Numbers, "*b m"]
    """Standard deviations of its q and v; those of the slow error are a coefficient."""


@final
class Filtered(NamedTuple):
    """What a pass over the rows gives, L rows of n = 3d numbers."""

    innovation: Float[Numbers, "*b L d"]
    """Measurement minus prediction, 0 where nothing was seen or the gate closed."""
    variance: Float[Numbers, "*b L d"]
    """Its predicted variance, 1 where nothing was seen."""
    used: Float[Numbers, "*b L d"]
    gated: Float[Numbers, "*b L d"]
    mean: Float[Numbers, "*b L n"]
    covariance: Float[Numbers, "*b L n n"]
    mean_before: Float[Numbers, "*b L n"]
    """Predicted from the row before."""
    covariance_before: Float[Numbers, "*b L n n"]
    transition: Float[Numbers, "*b L n n"]


def run_filter(
    layout: Layout,
    theta: Float[Numbers, " P"],
    rows: Rows,
    width: Float[Numbers, " d"],
    substeps: int,
    about: Float[Numbers, "L n"] | None = None,
) -> Filtered:
    """One pass over a stretch. Rows without measurements are predictions: forecasts, too.

    Arguments: layout; theta: (P,) coefficients; rows; width: (d,) of dry friction; substeps of
        the integrator; about: (L, n) path to linearise about up to the last measurement, by
        default the filter's own.
    Returns: innovations and states (see `Filtered`).
    """
    d = layout.dim
    part = {name: theta[place] for name, place in layout.slices.items()}
    white = jnp.exp(2 * part["log_white"])
    kick = jnp.exp(2 * part["log_kick"])
    slow = jnp.exp(2 * part["log_slow"])
    rate = jnp.exp(-part["log_slow_time"])
    eye = jnp.eye(2 * d)

    def one(carry, row):
        x, cov, before = carry
        h, y, seen, centre, ahead = row
        at = x if about is None else jnp.where(ahead, x, before)

        def move(z):
            return advance(layout, theta, z, h, width, substeps)

        def along(e):
            return jax.jvp(move, (at[: 2 * d],), (e,))

        moved, tangents = jax.vmap(along, out_axes=(None, 1))(eye)
        keep = jnp.exp(-h * rate)
        f = jnp.zeros((3 * d, 3 * d)).at[: 2 * d, : 2 * d].set(tangents)
        f = f.at[2 * d :, 2 * d :].set(jnp.diag(keep))
        moved = moved + (tangents * (x - at)[None, : 2 * d]).sum(-1)
        x = jnp.concatenate([moved, keep * x[2 * d :]])
        noise = jnp.zeros((3 * d, 3 * d))
        i = jnp.arange(d)
        noise = noise.at[i, i].set(kick * h**3 / 3).at[i + d, i + d].set(kick * h)
        noise = noise.at[i, i + d].set(kick * h**2 / 2).at[i + d, i].set(kick * h**2 / 2)
        noise = noise.at[i + 2 * d, i + 2 * d].set(slow * (1 - keep**2))
        half = (f[:, :, None] * cov[None, :, :]).sum(1)
        cov = (half[:, None, :] * f[None, :, :]).sum(-1) + noise
        x_before, cov_before = x, cov

        innovations, variances, uses, gates = [], [], [], []
        for k in range(d):
            here = x if about is None else centre

            def read(q, k=k):
                return reading(layout, theta, q)[k]

            value, slope = jax.value_and_grad(read)(here[:d])
            gradient = jnp.zeros(3 * d).at[:d].set(slope).at[2 * d + k].set(1.0)
            value = value + (slope * (x - here)[:d]).sum() + x[2 * d + k]
            e = y[k] - value
            if layout.angles[k]:
                e = e - TURN * jnp.round(e / TURN)
            column = (cov * gradient[None, :]).sum(-1)
            s = (gradient * column).sum() + white[k]
            inside = (e**2 <= GATE**2 * s) * 1.0
            use = seen[k] * inside
            gain = use * column / s
            x = x + gain * e
            cov = cov - gain[:, None] * column[None, :]
            innovations.append(use * e)
            variances.append(jnp.where(use > 0, s, 1.0))
            uses.append(use)
            gates.append(seen[k] * (1 - inside))
        marks = tuple(jnp.stack(z) for z in (innovations, variances, uses, gates))
        out = Filtered(marks[0], marks[1], marks[2], marks[3], x, cov, x_before, cov_before, f)
        return (x, cov, centre), out

    first = rows.mean if about is None else about[0]
    path = jnp.broadcast_to(rows.mean, (*rows.step.shape, 3 * d)) if about is None else about
    variances = jnp.concatenate([rows.spread**2, slow])
    start = (rows.mean, jnp.diag(variances), first)
    later = jnp.cumsum(rows.seen.sum(-1)[::-1])[::-1]
    return jax.lax.scan(one, start, (rows.step, rows.y, rows.seen, path, later == 0))[1]


def smooth(
    found: Filtered,
) -> tuple[Float[Numbers, "L n"], Float[Numbers, "L n n"]]:
    """Rauch-Tung-Striebel smoother.

    Arguments: found: a pass of the filter.
    Returns: means (L, n) and covariances (L, n, n) given all measurements of the stretch.
    """

    def back(carry, row):
        later, later_cov = carry
        mean, cov, before, before_cov, f = row
        # Scaled to unit diagonal: coordinates and slow errors differ by orders of magnitude.
        size = jnp.sqrt(jnp.diagonal(before_cov)) + 1e-300
        scaled = before_cov / size[:, None] / size[None, :] + 1e-13 * jnp.eye(len(size))
        half = (f @ cov) / size[:, None]
        gain = (jnp.linalg.solve(scaled, half) / size[:, None]).T
        mean = mean + gain @ (later - before)
        cov = cov + gain @ (later_cov - before_cov) @ gain.T
        return (mean, cov), (mean, cov)

    last = (found.mean[-1], found.covariance[-1])
    rows = (
        found.mean[:-1], found.covariance[:-1], found.mean_before[1:],
        found.covariance_before[1:], found.transition[1:],
    )  # fmt: skip
    _, (mean, cov) = jax.lax.scan(back, last, rows, reverse=True)
    return jnp.concatenate([mean, last[0][None]]), jnp.concatenate([cov, last[1][None]])


def iterate(
    layout: Layout,
    theta: Float[Numbers, " P"],
    rows: Rows,
    width: Float[Numbers, " d"],
    substeps: int,
    passes: int,
) -> tuple[Filtered, Float[Numbers, "L n"], Float[Numbers, "L n n"]]:
    """Filter and smooth, each pass linearised about the smoothed path of the one before.

    Arguments: as `run_filter`; passes: how many times after the first.
    Returns: the last filter's pass, smoothed means (L, n) and covariances (L, n, n).
    """

    def again(_, path):
        # The first pass is an ordinary extended filter, wherever it is linearised.
        return smooth(run_filter(layout, theta, rows, width, substeps, path))[0]

    path = smooth(run_filter(layout, theta, rows, width, substeps))[0]
    path = jax.lax.fori_loop(0, passes - 1, again, path) if passes > 1 else path
    found = run_filter(layout, theta, rows, width, substeps, path)
    return (found, *smooth(found))
