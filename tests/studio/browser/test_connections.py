"""Connections that are lost and found, a studio that is restarted, and two tabs at once."""

from __future__ import annotations

import re

import numpy as np
from tests.studio.browser import readings
from tests.studio.browser.running import RunningStudio, free_port
from tests.studio.browser.visits import expect
from tests.studio.content.scene_cases import given

SCENE = given("moons", "SVC", {"C": 2.0}, size=30, test_share=0.2)
LOST = r"WebSocket connection to .* failed|ERR_CONNECTION|ERR_EMPTY_RESPONSE"


def state(visit):
    return visit.at("connection")


def training_error(scene):
    X, y = scene.training()
    return readings.share(float(np.mean(scene.estimator().fit(X, y).predict(X) != y)))


def test_a_lost_connection_is_told_and_found_again(tabs, studio, cable):
    host = f"localhost:{studio.port}"
    visit = tabs.blank(host=host)
    visit.watch.expect(LOST)
    visit.arrive(studio.link().replace("127.0.0.1", "localhost"))
    scene = visit.load(SCENE)
    cable.cut()
    try:
        expect(visit.at("connection-lost")).to_be_visible()
        expect(state(visit)).not_to_have_attribute("data-state", "open")
        visit.at("learner").select_option("DecisionTreeClassifier")  # asked as soon as it is back
        visit.at("defaults").click()
        expect(visit.at("stage")).to_have_attribute("data-points", "30")
    finally:
        cable.mend()
    expect(state(visit)).to_have_attribute("data-state", "open")
    expect(visit.at("connection-lost")).to_have_count(0)
    tree = scene.with_learner("DecisionTreeClassifier")
    expect(visit.at("train-error")).to_have_text(training_error(tree))
    visit.settle()
    kept = visit.scene()
    assert kept == tree.as_dict()


def test_a_studio_that_is_started_again_asks_for_its_new_link(tabs):
    port = free_port()
    first = RunningStudio("--port", port)
    try:
        visit = tabs.blank(host=first.host)
        visit.watch.expect(LOST)
        visit.arrive(first.link())
        scene = visit.load(SCENE)
    finally:
        first.close()
    expect(visit.at("connection-lost")).to_be_visible()
    second = RunningStudio("--port", port)
    try:
        expect(visit.at("connection-refused")).to_contain_text("restarted")
        assert visit.scene() == scene.as_dict()
        visit.at("new-link").fill("no link at all")
        visit.at("use-link").click()
        expect(visit.at("wrong-link")).to_be_visible()
        visit.page.goto(second.link())  # in the same tab
        expect(state(visit)).to_have_attribute("data-state", "open")
        expect(visit.at("connection-refused")).to_have_count(0)
        assert "token" not in visit.page.url
        assert visit.scene() == scene.as_dict()
        visit.at("learner").select_option("Perceptron")
        visit.at("learner").select_option("SVC")
        visit.at("test-share").press("ArrowRight")
        expect(visit.at("test-error")).to_have_text(re.compile("%$"))
        visit.page.reload()
        visit.settle()
        expect(visit.at("stage")).to_have_attribute("data-points", "30")
        assert second.complaints() == ""
    finally:
        second.close()


def test_a_link_works_once_and_its_tab_may_be_reloaded(tabs, studio):
    link = studio.link()
    visit = tabs.blank().arrive(link)
    assert "token" not in visit.page.url
    scene = visit.load(SCENE)
    visit.page.reload()
    expect(state(visit)).to_have_attribute("data-state", "open")
    expect(visit.at("train-error")).to_have_text(training_error(scene))
    assert visit.scene() == scene.as_dict()
    other = tabs.blank()
    other.page.goto(link)
    expect(other.at("connection-refused")).to_be_visible()
    other.at("new-link").fill(studio.link())
    other.at("use-link").click()
    expect(state(other)).to_have_attribute("data-state", "open")


def test_two_tabs_have_scenes_of_their_own(tabs):
    one, two = tabs.open(), tabs.open()
    first = one.load(SCENE)
    second = two.load(given("four_clouds", "DecisionTreeClassifier", {"max_depth": 1}, size=40))
    for turn in range(3):  # in turn, and both are answered
        one.at("learner").select_option(["SVC", "Perceptron", "SVC"][turn])
        two.type_number("parameter-max_depth", turn + 1)
        scene = second.with_learner("DecisionTreeClassifier", {"max_depth": turn + 1})
        expect(two.at("train-error")).to_have_text(training_error(scene))
    one.at("defaults").click()
    one.type_number("parameter-C", 2.0)
    expect(one.at("train-error")).to_have_text(training_error(first))
    one.settle()
    assert one.scene() == first.as_dict()
    assert two.scene() == scene.as_dict()


def test_a_newer_wish_replaces_a_long_fit(visit):
    """A forest of thousands of points is left for a tree, and the page shows the tree."""
    visit.at("preset").select_option("narrow_in_wide")
    visit.type_number("size", 5000)
    expect(visit.at("stage")).to_have_attribute("data-points", "5000")
    visit.at("learner").select_option("GradientBoostingClassifier")
    visit.at("learner").select_option("DecisionTreeClassifier")
    expect(visit.at("count-leaves")).to_be_visible()
    visit.settle()
    expect(visit.at("error")).to_have_count(0)
