"""Facts and pictures of trajectories, on data made by hand."""

import dataclasses

import numpy as np
import pytest

from dhn.errors import UserError
from dhn.reports.inspect import energies, facts, figure
from dhn.reports.style import COLOURS, save, symbol
from dhn.trajectories.container import Trajectories

T = np.linspace(0, 10, 51)
MASS, K, AMPLITUDE = 2.0, 0.5, 3.0
RATE = np.sqrt(K / MASS)


@pytest.fixture
def oscillators():
    """Exact oscillators of mass 2 and stiffness 1/2, so that the energy is k A² / 2."""
    phases = np.array([0.0, 1.0, 2.0])[:, None, None]
    angle = RATE * T[None, :, None] + phases
    return Trajectories(
        q=AMPLITUDE * np.cos(angle),
        p=-MASS * RATE * AMPLITUDE * np.sin(angle),
        t=T,
        params={"m": np.full(3, MASS), "k": np.full(3, K)},
        names=("x",),
        system="mass_spring",
    )


def test_energy_is_that_of_the_closed_form(oscillators):
    found = energies(oscillators)
    assert found is not None
    energy, size = found
    np.testing.assert_allclose(energy, K * AMPLITUDE**2 / 2, rtol=1e-14)
    np.testing.assert_allclose(size, K * AMPLITUDE**2 / 2, rtol=1e-14)
    assert facts(oscillators)["energy"]["relative_change"]["max"] < 1e-14


def test_energy_follows_from_velocities_too(oscillators):
    moving = dataclasses.replace(oscillators, p=None, v=oscillators.p / MASS)
    np.testing.assert_allclose(energies(moving)[0], K * AMPLITUDE**2 / 2, rtol=1e-12)


@pytest.mark.parametrize(
    "change",
    [{"system": None}, {"system": "nobody_knows"}, {"params": {}}, {"p": None}],
    ids=str,
)
def test_no_energy_where_something_is_not_known(oscillators, change):
    data = dataclasses.replace(oscillators, **change)
    assert energies(data) is None
    assert facts(data)["energy"] is None
    figure(data)  # and still a picture


def test_facts_tell_measured_from_predicted_from_missing(oscillators):
    known = np.ones((3, 51), dtype=bool)
    known[:, 40:] = False
    q, p = oscillators.q.copy(), oscillators.p.copy()
    q[:, 46:], p[:, 46:] = np.nan, np.nan
    found = facts(dataclasses.replace(oscillators, q=q, p=p, known=known))
    assert found["known"] == pytest.approx(40 / 51)
    assert found["predicted"] == pytest.approx(6 / 51)
    assert found["time"]["step"] == pytest.approx(0.2)


def test_uneven_times_have_no_step(oscillators):
    found = facts(dataclasses.replace(oscillators, t=T**1.1))
    assert found["time"]["step"] is None


def test_a_forecast_is_dashed_and_has_a_band(oscillators):
    known = np.tile(np.arange(51) < 20, (3, 1))
    quantiles = {0.1: oscillators.q - 0.1, 0.5: oscillators.q, 0.9: oscillators.q + 0.1}
    forecast = dataclasses.replace(oscillators, known=known, q_quantiles=quantiles)
    series = figure(forecast).axes[0]
    dashed = [line for line in series.lines if line.get_linestyle() == "--"]
    assert len(dashed) == 3
    # The dashes start at the last measured state: no hole between the two parts.
    first = np.flatnonzero(np.isfinite(dashed[0].get_ydata()))[0]
    assert first == 19
    assert len(series.collections) == 3
    plain = figure(oscillators).axes[0]
    assert len(plain.lines) == 3 and not plain.collections


def test_angles_go_round_without_a_line_across():
    winding = np.linspace(0, 20, 200)[None, :, None]
    data = Trajectories(
        q=winding, p=np.ones_like(winding), t=np.arange(200.0), names=("theta",), angles=(True,)
    )
    (line,) = figure(data).axes[1].lines
    drawn = line.get_xdata()
    assert np.nanmax(np.abs(drawn)) <= np.pi
    assert np.nanmax(np.abs(np.diff(drawn))) < 1
    assert np.isnan(drawn).sum() == 3  # 20 rad pass pi, 3 pi and 5 pi


def test_colours_differ():
    assert len(set(COLOURS)) == len(COLOURS)


@pytest.mark.parametrize(
    "name, text",
    [
        ("theta1", r"$\theta_{1}$"),
        ("p_theta1", r"$p_{\theta_{1}}$"),
        ("v_x", r"$\dot {x}$"),
        ("l2", "$l_{2}$"),
        ("strength", "strength"),
    ],
)
def test_symbols(name, text):
    assert symbol(name) == text


def test_a_picture_is_whole_or_not_there(oscillators, tmp_path, monkeypatch):
    save(figure(oscillators), tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
    with pytest.raises(UserError, match=r"pictures end in .png, .svg, .pdf; got 'a.bmp'"):
        save(figure(oscillators), tmp_path / "a.bmp")

    def half(file, **_):
        file.write_bytes(b"half")
        raise OSError("disk full")

    broken = figure(oscillators)
    monkeypatch.setattr(broken, "savefig", half)
    with pytest.raises(UserError, match=r"b\.png cannot be written: disk full"):
        save(broken, tmp_path / "b.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
