"""Extended Kalman filter and iterated smoother of the state (q, v, β), β the slow error."""

from typing import NamedTuple, final

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

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
    transition: Float[Numbers, "*b L n n"]
    """From the row before."""
    slope: Float[Numbers, "*b L d n"]
    """Of each used reading in the state, else 0."""
    gain: Float[Numbers, "*b L d n"]


def run_filter(
    layout: Layout,
    theta: Float[Numbers, " P"],
    rows: Rows,
    width: Float[Numbers, " d"],
    substeps: int,
    about: Float[Numbers, "L n"] | None = None,
    own: Bool[Numbers, ""] | bool = False,
) -> Filtered:
    """One pass over a stretch. Rows without measurements are predictions: forecasts, too.

    Derivatives in the coefficients treat the linearisation (transition and slope of the reading)
    as constant. The terms left out have mean zero at the true coefficients, since innovations are
    white there with the predicted variance; second derivatives of the motion would take five times
    as long.

    Arguments: layout; theta: (P,) coefficients; rows; width: (d,) of dry friction; substeps of
        the integrator; about: (L, n) path to linearise about up to the last measurement, by
        default the filter's own; own: whether to disregard `about`, so that one compiled program
        serves both.
    Returns: innovations and states (see `Filtered`).
    """
    if about is None:
        about, own = jnp.broadcast_to(rows.mean, (*rows.step.shape, 3 * layout.dim)), True
    d = layout.dim
    part = {name: theta[place] for name, place in layout.slices.items()}
    white = jnp.exp(2 * part["log_white"])
    kick = jnp.exp(2 * part["log_kick"])
    slow = jnp.exp(2 * part["log_slow"])
    rate = jnp.exp(-part["log_slow_time"])
    eye, fixed = jnp.eye(2 * d), jax.lax.stop_gradient

    def one(carry, row):
        x, cov, before = carry
        h, y, seen, centre, ahead = row
        at = jnp.where(ahead | own, x, before)

        def along(e):
            def move(z):
                return advance(layout, fixed(theta), z, h, width, substeps)

            return jax.jvp(move, (fixed(at[: 2 * d]),), (e,))[1]

        moved = advance(layout, theta, at[: 2 * d], h, width, substeps)
        tangents = jax.vmap(along, out_axes=1)(eye)
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

        here = jnp.where(own, x, centre)[:d]
        values = reading(layout, theta, here)
        slopes = jax.jacfwd(lambda q: reading(layout, fixed(theta), q))(fixed(here))
        innovations, variances, uses, gates, gains, gradients = [], [], [], [], [], []
        for k in range(d):
            gradient = jnp.zeros(3 * d).at[:d].set(slopes[k]).at[2 * d + k].set(1.0)
            e = y[k] - values[k] - (slopes[k] * (x[:d] - here)).sum() - x[2 * d + k]
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
            gains.append(gain)
            gradients.append(use * gradient)
        out = Filtered(
            innovation=jnp.stack(innovations), variance=jnp.stack(variances),
            used=jnp.stack(uses), gated=jnp.stack(gates), mean=x, covariance=cov, transition=f,
            slope=jnp.stack(gradients), gain=jnp.stack(gains),
        )  # fmt: skip
        return (x, cov, centre), out

    variances = jnp.concatenate([rows.spread**2, slow])
    start = (rows.mean, jnp.diag(variances), about[0])
    later = jnp.cumsum(rows.seen.sum(-1)[::-1])[::-1]
    return jax.lax.scan(one, start, (rows.step, rows.y, rows.seen, about, later == 0))[1]


def smooth(
    found: Filtered,
) -> tuple[Float[Numbers, "L n"], Float[Numbers, "L n n"]]:
    """Smoother of Bryson and Frazier: the innovations' gradients backwards, no matrix inverted.

    Arguments: found: a pass of the filter.
    Returns: means (L, n) and covariances (L, n, n) given all measurements of the stretch.
    """
    count, n = found.slope.shape[-2:]

    def back(carry, row):
        score, information = carry  # of the later innovations in the state after this row
        mean = row.mean - (row.covariance * score[None, :]).sum(-1)
        half = (information[:, :, None] * row.covariance[None, :, :]).sum(1)
        cov = row.covariance - (row.covariance[:, :, None] * half[None, :, :]).sum(1)
        for k in reversed(range(count)):
            slope, gain, s = row.slope[k], row.gain[k], row.variance[k]
            score = score - slope * ((gain * score).sum() + row.innovation[k] / s)
            side = (information * gain[None, :]).sum(-1)
            curve = (gain * side).sum() + 1 / s
            information = information + curve * slope[:, None] * slope[None, :]
            information -= slope[:, None] * side[None, :] + side[:, None] * slope[None, :]
        f = row.transition
        score = (f * score[:, None]).sum(0)
        information = (information[:, :, None] * f[None, :, :]).sum(1)
        information = (f[:, :, None] * information[:, None, :]).sum(0)
        return (score, information), (mean, cov)

    none = (jnp.zeros(n), jnp.zeros((n, n)))
    return jax.lax.scan(back, none, found, reverse=True)[1]


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

    def again(carry, first):
        found = run_filter(layout, theta, rows, width, substeps, carry[1], first)
        return (found, *smooth(found)), None

    shape = (*rows.step.shape, 3 * layout.dim)
    path = jnp.broadcast_to(rows.mean, shape)
    none = jax.eval_shape(lambda: again((None, path, None), True)[0])
    start = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), none)
    # The first pass is an ordinary extended filter, wherever it is linearised.
    first = jnp.arange(passes + 1) == 0
    return jax.lax.scan(again, start, first)[0]
