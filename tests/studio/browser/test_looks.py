"""Narrow windows, light and dark."""

from __future__ import annotations

import pytest
from tests.studio.browser.test_own_table import flowers, upload
from tests.studio.browser.visits import MODES, expect
from tests.studio.content.scene_cases import given

from margrove.studio.lessons import LESSONS

SCENE = given("gaussians", "DecisionTreeClassifier", {"max_depth": 3}, size=40)
_WIDTHS = "() => [document.documentElement.scrollWidth, window.innerWidth]"


def require_no_sideways_scrolling(visit, what):
    visit.page.wait_for_timeout(150)  # widths are measured, and followed a frame later
    needed, there = visit.page.evaluate(_WIDTHS)
    assert needed <= there, what


@pytest.mark.parametrize("width", [400, pytest.param(360, marks=pytest.mark.nightly)])
def test_narrow_windows_need_no_sideways_scrolling(tabs, width):
    visit = tabs.open(viewport={"width": width, "height": 800}, has_touch=True)
    visit.load(SCENE)
    for mode in MODES:
        if mode == "table":
            upload(visit, flowers()[0])
        else:
            visit.open_mode(mode)
        if mode == "steps":
            expect(visit.at("step-figures")).to_be_visible()
            visit.at("step-last").click()
        if mode == "map":
            expect(visit.at("map-plane")).to_be_visible()
        if mode == "tree":
            expect(visit.at("tree-viewer")).to_be_visible()
        require_no_sideways_scrolling(visit, mode)


@pytest.mark.nightly
def test_narrow_lessons_need_no_sideways_scrolling(tabs):
    visit = tabs.open(viewport={"width": 400, "height": 800})
    visit.open_mode("lessons")
    for name in LESSONS:
        visit.at("lesson-menu").select_option(name)
        expect(visit.at("question")).to_be_visible()
        visit.page.wait_for_timeout(600)
        require_no_sideways_scrolling(visit, name)


def brightness(visit):
    colour = visit.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    red, green, blue = (float(own) for own in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return (red + green + blue) / 765


def test_light_and_dark_can_be_chosen_and_are_kept(tabs):
    visit = tabs.open(color_scheme="dark")
    choice = visit.at("theme")
    expect(choice).to_have_attribute("data-theme-choice", "auto")
    assert brightness(visit) < 0.3
    dark = visit.pixels("stage-back")
    choice.click()
    expect(choice).to_have_attribute("data-theme-choice", "light")
    assert brightness(visit) > 0.8
    visit.settle()
    assert visit.pixels("stage-back") != dark  # the picture follows
    choice.click()
    expect(choice).to_have_attribute("data-theme-choice", "dark")
    assert brightness(visit) < 0.3
    visit.page.emulate_media(color_scheme="light")
    assert brightness(visit) < 0.3  # what was chosen goes before what the system has
    visit.page.reload()
    expect(choice).to_have_attribute("data-theme-choice", "dark")
    choice.click()
    expect(choice).to_have_attribute("data-theme-choice", "auto")
    assert brightness(visit) > 0.8


def test_larger_letters_for_a_projector(visit):
    size = "() => parseFloat(getComputedStyle(document.querySelector('main')).fontSize)"
    before = visit.page.evaluate(size)
    visit.at("projector").click()
    assert visit.page.evaluate(size) > 1.1 * before
    visit.settle()
    require_no_sideways_scrolling(visit, "projector")
