"""The page in a real browser: its numbers are Python's, and everything can be touched."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from explorer_models import FORMS, until

from dhn.blocks import StateBlock
from dhn.explorer import build_page
from dhn.explorer.arrays import encode
from dhn.explorer.page import build_payload, fill_template
from dhn.reconstruct.forecast import forecast
from dhn.reports.run import write_run_report
from dhn.systems.library import BUILT_IN

pytestmark = pytest.mark.browser
STEPS = 200


def python_path(trained, q, p, z, states):
    """The model's own rollout in float64, physical."""
    with jax.enable_x64(True):
        model = jax.tree.map(
            lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x, trained.model
        )
        start = StateBlock(
            jnp.asarray(trained.scaler.transform_q(q))[None],
            jnp.asarray(trained.scaler.transform_p(p))[None],
        )
        steps = states - start.q.shape[1]
        tail = forecast(model, start, np.asarray(z, float)[None], steps, jax.random.key(0))
        path = [np.concatenate([a[0], b[0]]) for a, b in zip(start, tail, strict=True)]
        return trained.scaler.inverse(*path)


@pytest.mark.parametrize("form", FORMS)
def test_the_page_computes_what_python_computes(trained, opened, form):
    model, data = trained(form)
    page = opened(build_page(model, data[:3], train=data))
    made = model.trained
    length, stride = made.model.context_length, made.model.step_length
    q, p, z = data.q[0, :length], data.momenta[0, :length], made.codes[0]
    found = page.evaluate(
        "([q, p, z, n]) => explorer.rollOut(q, p, z, n)",
        [q.tolist(), p.tolist(), z.tolist(), STEPS // stride],
    )
    expected = python_path(made, q, p, z, STEPS + length)
    for part, reference in zip((found["q"], found["p"]), expected, strict=True):
        reference = reference[length:]
        assert np.ptp(reference) > 0.1  # it does move
        np.testing.assert_allclose(part, reference, atol=1e-5 * np.abs(reference).max())


@pytest.mark.parametrize("form", ["one network", "two networks"])
def test_probe_readings_are_pythons(trained, opened, form):
    model, data = trained(form)
    page = opened(build_page(model, data[:3], train=data))
    codes = model.trained.codes[:5].astype(float)
    found = page.evaluate(
        "(zs) => zs.map((z) => explorer.app.codes.read(explorer.app.codes.probes[0], z))",
        codes.tolist(),
    )
    np.testing.assert_allclose(found, model.probe("l")(codes), rtol=1e-6)


def test_an_exact_oscillator_moves_and_keeps_its_energy_exactly(trained, opened):
    """A generating function in closed form, laid into the network's quadratic form."""
    model, _ = trained("damped, with a quadratic form")
    payload = build_payload(model, None)
    form = payload["form"]
    network = form["networks"][0]
    for name in ("embed", "embed_bias", "weights", "biases", "readout"):
        network[name] = encode(np.zeros(network[name]["shape"]))
    # Unit mass and spring, lag D: h = q p (1/cos D - 1) + tan D / 2 (q² + p²).
    lag = payload["time_step"]
    mixed, square = (1 / np.cos(lag) - 1) / 2, np.tan(lag) / 2
    network["form"] = {
        "matrix": encode(np.array([[square, mixed], [mixed, square]]) / form["scale"]),
        "slope": encode(np.zeros(2)),
    }
    form["damping"] = None
    payload["scaler"] = {"q_shift": [0.0], "q_scale": [1.0], "p_scale": [1.0]}
    page = opened(fill_template(payload, "oscillator"))
    page.evaluate("explorer.app.begin([0.8], [0.0])")
    until(page, "explorer.app.motion.path.length > 220")
    path = page.evaluate("(({q, p, energy}) => ({q, p, energy}))(explorer.app.motion.path)")
    t = lag * np.arange(len(path["q"]))
    np.testing.assert_allclose(np.ravel(path["q"]), 0.8 * np.cos(t), atol=1e-10)
    np.testing.assert_allclose(np.ravel(path["p"]), -0.8 * np.sin(t), atol=1e-10)
    energy = np.array(path["energy"][4:])
    np.testing.assert_allclose(energy, 0.32, rtol=1e-9)
    # Read off the network alone, as the level curves are: an error of order lag².
    at_rest = page.evaluate(
        "(({model: m, motion}) => m.energy(m.scaleState([0.8], [0]), motion.code))(explorer.app)"
    )
    assert abs(at_rest - 0.32) < 0.32 * lag**2


def test_true_equations_are_those_of_the_library(trained, opened):
    model, data = trained("one network")
    page = opened(build_page(model, data[:1]))
    rng = np.random.default_rng(0)
    for system in BUILT_IN:
        q, p = rng.uniform(0.3, 0.9, (2, system.dim))
        constants = {name: rng.uniform(0.5, 1.5) for name in system.params}
        found = page.evaluate(
            "([s, q, p, c]) => [...explorer.velocityOf(explorer.SYSTEMS[s].H, "
            "Float64Array.from([...q, ...p]), c)]",
            [system.name, q.tolist(), p.tolist(), {**constants, "gamma": 0.1}],
        )
        with jax.enable_x64(True):
            exact = np.concatenate(
                system.vector_field(jnp.asarray(q), jnp.asarray(p), constants, 0.1)
            )
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-7, err_msg=system.name)


def test_true_motion_is_that_of_simulate(trained, opened):
    model, data = trained("two degrees of freedom")
    page = opened(build_page(model, data[:1]))
    page.evaluate("explorer.app.chooseRun(0)")
    until(page, "explorer.app.motion.truth.length > 128")
    found = page.evaluate(
        "(({q, p}) => [q.slice(0, 129), p.slice(0, 129)])(explorer.app.motion.truth)"
    )
    # The page keeps data in float32.
    np.testing.assert_allclose(found, [data.q[0], data.p[0]], atol=1e-4)


def start_of(page):
    return page.evaluate("[...explorer.app.motion.path.q[0], ...explorer.app.motion.path.p[0]]")


def centre(page, canvas, x, y):
    """Page coordinates of a point that a plot draws."""
    box = page.locator(f"#{canvas}").bounding_box()
    name = {"scene": "scene", "portrait": "portrait", "map": "map"}[canvas]
    at = page.evaluate(
        f"([x, y]) => [explorer.app.{name}.plot.x(x), explorer.app.{name}.plot.y(y)]", [x, y]
    )
    return box["x"] + at[0], box["y"] + at[1]


def drag(page, canvas, start, end):
    page.mouse.move(*centre(page, canvas, *start))
    page.mouse.down()
    page.mouse.move(*centre(page, canvas, *end), steps=5)
    page.mouse.up()


def test_dragging_changes_the_path(trained, opened):
    model, data = trained("one network")
    page = opened(build_page(model, data[:3], train=data))
    q, _ = start_of(page)
    before = page.evaluate("explorer.app.motion.path.q.slice(0, 100)")
    # The bob, to the left of its pivot: let go there at rest.
    length = page.evaluate("explorer.app.constants.l")
    bob = (length * np.sin(q), -length * np.cos(q))
    drag(page, "scene", bob, (length * np.sin(-0.7), -length * np.cos(-0.7)))
    np.testing.assert_allclose(start_of(page), [-0.7, 0.0], atol=0.02)
    until(page, "explorer.app.motion.path.length > 100")
    after = page.evaluate("explorer.app.motion.path.q.slice(0, 100)")
    assert np.abs(np.subtract(before, after)).max() > 0.5
    # The state in the portrait.
    drag(page, "portrait", (-0.7, 0.0), (0.5, 0.1))
    np.testing.assert_allclose(start_of(page), [0.5, 0.1], atol=0.02)
    # The handle on the map of codes: another system, the same start.
    u = page.evaluate("[...explorer.app.u]")
    drag(page, "map", u[:2], (u[0] + 0.5, u[1] + 0.3))
    moved = page.evaluate("[...explorer.app.u]")
    np.testing.assert_allclose(moved[:2], [u[0] + 0.5, u[1] + 0.3], atol=0.05)
    np.testing.assert_allclose(start_of(page), [0.5, 0.1], atol=0.02)


def test_a_slider_moves_the_code_to_where_the_probe_reads_its_value(trained, opened):
    model, data = trained("one network")
    page = opened(build_page(model, data[:3], train=data))
    page.locator("#param-l").fill("0.8")
    read = page.evaluate("explorer.app.constants.l")
    # Codes after a few steps of training tell the length only roughly.
    assert abs(read - 0.8) < 3 * model.probe("l").error + 0.01


def test_buttons_and_keys(trained, opened):
    model, data = trained("one network")
    page = opened(build_page(model, data[:3], train=data))
    page.click("#step")
    page.keyboard.press(".")
    assert page.evaluate("explorer.app.cursor") == 2
    page.keyboard.press("r")
    assert page.evaluate("explorer.app.cursor") == 0
    page.locator("body").press("Space")
    until(page, "explorer.app.cursor > 1")
    page.locator("body").press("Space")
    assert page.evaluate("explorer.app.playing") is False
    before = start_of(page)
    page.keyboard.press("r")
    page.keyboard.press("ArrowRight")
    assert start_of(page)[0] > before[0]
    page.keyboard.press("+")
    assert page.locator("#speed").text_content() == "×2"
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_address_holds_the_state(trained, opened):
    model, data = trained("two degrees of freedom")
    document = build_page(model, data[:3], train=data)
    page = opened(document)
    page.click("text=Poincaré section")
    page.evaluate("explorer.app.begin([0.3, -0.2], [0.1, 0.05]); explorer.app.step()")
    address = page.evaluate("location.hash")
    again = opened(document, hash=address)
    assert start_of(again) == start_of(page) == [0.3, -0.2, 0.1, 0.05]
    state = "[explorer.app.cursor, explorer.app.view, ...explorer.app.u]"
    np.testing.assert_equal(again.evaluate(state)[:2], [1, "section"])
    np.testing.assert_allclose(again.evaluate(state)[2:], page.evaluate(state)[2:], rtol=1e-9)
    # An address of another model is no harm.
    opened(document, hash="#q=1&p=2&u=x&view=nothing")


def test_a_phone_shows_everything_without_scrolling_sideways(trained, opened):
    model, data = trained("two degrees of freedom")
    page = opened(build_page(model, data[:3], train=data), width=360, height=740, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for button in ("play", "step", "reset", "slower", "faster"):
        box = page.locator(f"#{button}").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["height"] >= 32
    x, y = centre(page, "portrait", 0.6, 0.2)
    page.touchscreen.tap(x, y)
    np.testing.assert_allclose(np.array(start_of(page))[[0, 2]], [0.6, 0.2], atol=0.05)


def test_without_data_the_page_starts_from_what_the_model_keeps(trained, opened):
    model, _ = trained("two networks")
    page = opened(build_page(model))
    assert page.locator("#inside").is_hidden()
    assert page.locator("#run").is_visible()
    assert "grey" not in page.locator("#portrait-note").text_content()


def test_the_report_holds_the_model_itself(trained, opened, tmp_path):
    model, data = trained("one network")
    model.save(tmp_path / "run")
    write_run_report(tmp_path / "run", data[:4], tmp_path / "report.html", train=data)
    page = opened((tmp_path / "report.html").read_text(encoding="utf-8"), ready="true")
    page.locator("iframe.explorer").scroll_into_view_if_needed()
    frame = page.frames[1]
    until(frame, "window.explorer && explorer.app.motion.path.length > 100")
    before = frame.evaluate("explorer.app.motion.path.q[100]")
    box = page.locator("iframe.explorer").content_frame.locator("#portrait").bounding_box()
    plot = "explorer.app.portrait.plot"
    at = frame.evaluate(f"[{plot}.x(0.4), {plot}.y(0.1)]")
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    np.testing.assert_allclose(start_of(frame), [0.4, 0.1], atol=0.05)
    until(frame, "explorer.app.motion.path.length > 100")
    assert frame.evaluate("explorer.app.motion.path.q[100]") != before
    # The small form fits into its frame; the larger plots are left out.
    assert frame.locator("#energy").is_hidden() and frame.locator("#play").is_visible()
    assert frame.evaluate("document.documentElement.scrollHeight <= innerHeight + 1")


def test_level_curves_have_one_energy_in_the_section_through_the_start(trained, opened):
    model, data = trained("two degrees of freedom")
    page = opened(build_page(model, data[:3], train=data))
    page.click("#tabs button >> nth=1")
    until(page, "explorer.app.portrait.levels")
    start, points, energies = page.evaluate(
        """(() => {
          const { app } = explorer, { path, code } = app.motion;
          const q = [...path.q[0]], p = [...path.p[0]];
          const points = app.portrait.levels[7].flat();
          return [[...q, ...p], points, points.map(([x, y]) => {
            q[1] = x; p[1] = y;
            return app.model.energy(app.model.scaleState(q, p), code);
          })];
        })()"""
    )
    assert len(start) == 4 and len(points) > 40
    spread = page.evaluate("explorer.app.energyScale")
    assert np.std(energies) < 0.01 * spread  # the grid's interpolation
    assert np.ptp(np.array(points)[:, 0]) > 0.5
