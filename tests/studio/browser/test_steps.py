"""Step mode: forwards and backwards, what is shown is what the solver did."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from tests.studio.browser import readings
from tests.studio.browser.visits import expect
from tests.studio.content.scene_cases import given

import margrove
from margrove.studio.content.scenes import scene_from
from margrove.studio.learners.registry import LEARNERS
from margrove.studio.steps import STEPS, steps_of

PERCEPTRON = given("separable_clouds", "Perceptron", size=24, noise=0.1, test_share=0.2)
MACHINE = given("moons", "SVC", {"kernel": "rbf", "C": 1.0, "gamma": 1.0, "solver": "smo"}, size=16)


def heard_steps(scene):
    heard = []
    with margrove.watch(on_step=heard.append):
        model = scene.estimator().fit(*scene.training())
    return heard, model


def figures_of_the_perceptron(scene):
    """From what the solver says of its mistakes, by the rule of the lecture: w += y x, b += y."""
    X, y = scene.training()
    signs = np.where(y == y.max(), 1.0, -1.0)
    heard, model = heard_steps(scene)
    w, b, rows = np.zeros(2), 0.0, []
    for step in heard:
        w = w + step.step * signs[step.row] * X[step.row]
        b += step.step * signs[step.row]
        wrong = int(np.sum(signs * (X @ w + b) <= 0))
        point = int(scene.training_rows[step.row]) + 1
        rows.append(
            {"epoch": step.epoch + 1, "point": point, "y f": step.value, "w1": w[0], "w2": w[1],
             "b": b, "wrong": wrong}
        )  # fmt: skip
    np.testing.assert_allclose([*w, b], [*model.coef_[0], model.intercept_[0]], rtol=1e-12)
    return rows


def figures_of_smo(scene):
    """A step moves y_i alpha_i by its change, and y_j alpha_j by as much the other way."""
    _, y = scene.training()
    signs = np.where(y == y.max(), 1.0, -1.0)
    heard, model = heard_steps(scene)
    alpha, rows = np.zeros(len(y)), []
    for step in heard:
        i, j = step.first, step.second
        alpha[i] += signs[i] * step.change
        alpha[j] -= signs[j] * step.change
        rows.append({"first": i + 1, "second": j + 1, "alpha 1": alpha[i], "alpha 2": alpha[j]})
    found = np.zeros(len(y))
    found[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(alpha, found, atol=1e-9)
    return rows


class Player:
    """The player of the steps, by its buttons."""

    def __init__(self, visit):
        self._visit = visit

    def press(self, button):
        self._visit.at(f"step-{button}").click()

    def stands_at(self, number, last):
        expect(self._visit.at("step-number")).to_have_text(f"{number} / {last}")

    def told(self):
        """The sentence, and the figures of the row that is marked."""
        sentence = self._visit.at("step-text").text_content()
        table = self._visit.at("step-figures")
        names = table.locator("thead th").all_inner_texts()[1:]
        row = table.locator("tr[aria-current=step]")
        cells = row.locator("td").all_inner_texts() if row.count() else []
        return sentence, dict(zip(names, cells, strict=False))

    def scrub(self, number):
        self._visit.slide("step-slider", number)


def same(shown, figure):
    """Four digits are shown; a value halfway between two of them may be either."""
    if shown == readings.cell(figure):
        return True
    return math.isclose(float(shown.replace(",", "")), figure, rel_tol=6e-4, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("kind", "start", "figures_of"),
    [
        ("perceptron", PERCEPTRON, figures_of_the_perceptron),
        ("smo", MACHINE, figures_of_smo),
    ],
)
def test_steps_are_those_of_the_solver(visit, kind, start, figures_of):
    scene = visit.load(start)
    rows, texts = figures_of(scene), [own["text"] for own in steps_of(kind, scene)["steps"]]
    last = len(rows)
    assert last == len(texts) > 5
    visit.open_mode("steps")
    player = Player(visit)
    player.stands_at(0, last)
    walked = [player.told()]
    for number, (row, text) in enumerate(zip(rows, texts, strict=True), start=1):
        player.press("next")
        player.stands_at(number, last)
        expect(visit.at("step-text")).to_have_text(f"Step {number}. {text}")
        walked.append(player.told())
        for name, figure in row.items():
            assert same(walked[-1][1][name], figure), (number, name)
    visit.page.keyboard.press("ArrowRight")  # there is no further
    player.stands_at(last, last)
    for number in reversed(range(last)):
        visit.page.keyboard.press("ArrowLeft")
        player.stands_at(number, last)
        assert player.told() == walked[number]
    for number in (last // 2, 1, last, 3):
        player.scrub(number)
        player.stands_at(number, last)
        assert player.told() == walked[number]
    expect(visit.at("steps-plane")).to_have_attribute("data-fitted", "yes")


def test_play_and_pause(visit):
    scene = visit.load(PERCEPTRON)
    last = len(steps_of("perceptron", scene)["steps"])
    visit.open_mode("steps")
    player = Player(visit)
    player.stands_at(0, last)
    visit.at("step-speed").select_option("4")
    player.press("play")
    expect(visit.at("step-play")).to_have_attribute("aria-label", "Pause")
    expect(visit.at("step-number")).to_have_text(re.compile(r"^[2-9] / "))
    player.press("play")
    expect(visit.at("step-play")).to_have_attribute("aria-label", "Play")
    stands = visit.at("step-number").text_content()
    visit.page.wait_for_timeout(600)  # two steps and more, if it went on
    assert visit.at("step-number").text_content() == stands
    visit.at("step-speed").select_option("16")
    player.press("play")
    player.stands_at(last, last)
    expect(visit.at("step-play")).to_have_attribute("aria-label", "Play")
    visit.page.keyboard.press("Home")
    player.stands_at(0, last)


def learners_with(kind):
    return [own for own in STEPS[kind].learners if LEARNERS[own].task == "classification"]


def test_all_kinds_of_steps_open(visit):
    kinds = {own for learner in LEARNERS.values() for own in learner.steps}
    assert kinds == set(STEPS)
    visit.load(given("separable_clouds", "SVC", size=30))
    visit.open_mode("steps")
    for kind in STEPS:
        learner = learners_with(kind)[0]
        parameters = {"kernel": "linear"} if kind in ("hull", "subgradient") else {}
        open_steps(visit, given("separable_clouds", learner, parameters, size=30), kind)


def open_steps(visit, start, kind):
    """To the end, where the page says the last sentence of the library."""
    visit.open_mode("playground")
    visit.load(start)
    visit.open_mode("steps")
    learner = LEARNERS[start["learner"]]
    if len(learner.steps) > 1:
        visit.at(f"step-kind-{kind}").check()
    steps = steps_of(kind, scene_from(start))
    player = Player(visit)
    n = len(steps["steps"])
    player.stands_at(0, n)
    player.press("last")
    player.stands_at(n, n)
    text = steps["steps"][-1]["text"].replace(" <= ", " ≤ ")
    expect(visit.at("step-text")).to_have_text(f"Step {n}. {text}")
    expect(visit.at("steps-plane")).to_have_attribute("data-fitted", "yes")
    expect(visit.at("error")).to_have_count(0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("learner", "kind"),
    [(name, kind) for name, own in LEARNERS.items() for kind in own.steps],
)
def test_every_learner_with_steps_can_be_watched(visit, learner, kind):
    preset = "gaussians" if LEARNERS[learner].task == "classification" else "sine"
    parameters = {"kernel": "linear"} if kind in ("hull", "subgradient") else {}
    open_steps(visit, given(preset, learner, parameters, size=40), kind)
