"""Every learner is drawn, and what the page says of it is what the library says."""

from __future__ import annotations

import contextlib
import io
import re
import warnings

import numpy as np
import pytest
from tests.studio.browser import readings
from tests.studio.browser.visits import expect
from tests.studio.content.scene_cases import given

from margrove.studio.learners.registry import LEARNERS
from margrove.studio.pictures import picture_of

GRID = 120  # cells along each side of the playground's picture
STARTS = {
    "classification": given("moons", "SVC", size=80, test_share=0.25),
    "regression": given("sine", "SVR", size=60, test_share=0.25),
}


def fitted(scene):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not separable is told in the page
        return scene.estimator().fit(*scene.training())


def error_of(model, scene, X, y):
    wrong = model.predict(X) - y
    if scene.task == "classification":
        return readings.share(float(np.mean(wrong != 0)))
    error = float(np.sqrt(np.mean(wrong**2)))
    return readings.number(error) if error > 1e-12 else readings.rounding_error()


class Plot:
    """Where the plane of the playground is on the screen."""

    def __init__(self, visit, scene):
        self._visit, self._view = visit, scene.view
        self.look()
        pixels = np.array([self.pixel(*own) for own in scene.x])
        rows = range(5, GRID, 10)
        self.cells = [
            (a, b) for a in rows for b in rows
            if np.hypot(*(pixels - self.pixel(*self.middle(a, b))).T).min() > 25
        ]  # fmt: skip

    def look(self):
        """Again, after the page may have been scrolled."""
        stage = self._visit.at("stage")
        stage.scroll_into_view_if_needed()
        self._box = stage.bounding_box()

    def pixel(self, x, y):
        box, view = self._box, self._view
        right, up = ((own - low) / (high - low)
                     for own, (low, high) in ((x, view.x), (y, view.y)))  # fmt: skip
        left, top, width, height = 48, 12, box["width"] - 62, box["height"] - 54
        return box["x"] + left + right * width, box["y"] + top + (1 - up) * height

    def middle(self, a, b):
        """Of a cell, counted from the left and from the bottom."""
        (left, right), (low, high) = self._view.x, self._view.y
        shares = (a + 0.5) / GRID, (b + 0.5) / GRID
        return left + shares[0] * (right - left), low + shares[1] * (high - low)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_learner_is_drawn(visit, task):
    start = visit.load(STARTS[task])
    plot = Plot(visit, start) if task == "classification" else None
    drawn = []
    for name in (own for own in LEARNERS if LEARNERS[own].task == task):
        visit.at("learner").select_option(name)
        visit.at("defaults").click()
        scene = start.with_learner(name)
        model = fitted(scene)
        expect(visit.at("train-error")).to_have_text(error_of(model, scene, *scene.training()))
        expect(visit.at("test-error")).to_have_text(error_of(model, scene, *scene.testing()))
        visit.settle()
        for count in picture_of(scene, (4, 4))["figures"]["counts"]:
            shown = visit.at(f"count-{count['name'].replace(' ', '-')}")
            expect(shown).to_have_text(readings.number(count["value"]))
        if plot is not None:
            require_the_predicted_class(visit, plot, scene, model, name)
        drawn.append(tuple(visit.pixels("stage-back")[:50]))
        assert len(drawn[-1]) > 10, name
    assert len(set(drawn)) == len(drawn)


def require_the_predicted_class(visit, plot, scene, model, name):
    """Beside the pointer, at a place that is different for each learner."""
    cell = plot.cells[(7 * len(name)) % len(plot.cells)]
    place = plot.middle(*cell)
    visit.page.mouse.move(0, 0)  # who stays where he is moves nothing
    plot.look()
    visit.page.mouse.move(*plot.pixel(*place))
    label = scene.classes[int(model.predict([place])[0])]
    expect(visit.at("readout")).to_contain_text(f"predicts {label}")


def test_all_menus_of_the_page_come_from_the_catalogue(visit):
    for task, start in STARTS.items():
        visit.load(start)
        shown = (
            visit.at("learner")
            .locator("option")
            .evaluate_all("(all) => all.map((own) => own.value)")
        )
        assert sorted(shown) == sorted(own for own in LEARNERS if LEARNERS[own].task == task)


@pytest.mark.parametrize(
    ("task", "learner", "parameters"),
    [
        ("classification", "SVC", {"C": 3.0, "gamma": 0.7}),
        ("regression", "GradientBoostingRegressor", {"n_estimators": 30}),
    ],
)
def test_copied_code_does_what_the_page_shows(tabs, task, learner, parameters):
    visit = tabs.open(permissions=["clipboard-read", "clipboard-write"])
    scene = visit.load(STARTS[task] | {"learner": learner, "parameters": parameters})
    visit.at("show-code").click()
    expect(visit.at("code")).to_contain_text(f"margrove.{learner}(")
    code = visit.at("code").text_content()
    visit.at("copy-code").click()
    expect(visit.at("copy-code")).to_have_text("Copied")
    assert visit.page.evaluate("() => navigator.clipboard.readText()") == code
    visit.at("close-code").click()
    names = {}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code, names)
    errors = [float(own) for own in re.findall(r"error: (\S+)", said.getvalue())]
    text = readings.share if task == "classification" else readings.number
    rows = names["is_test"]
    for where, printed, own in (("train", errors[0], ~rows), ("test", errors[1], rows)):
        exact = float(names["error_of"](own))
        assert abs(exact - printed) <= 5e-7
        expect(visit.at(f"{where}-error")).to_have_text(text(exact))
    np.testing.assert_array_equal(rows, scene.is_test)
    np.testing.assert_array_equal(names["model"].predict(scene.x), fitted(scene).predict(scene.x))
