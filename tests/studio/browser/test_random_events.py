"""Clicks, drags, keys and choices at random: nothing breaks, and memory does not grow."""

from __future__ import annotations

import random

import pytest
from tests.studio.browser.conftest import WINDOW
from tests.studio.browser.visits import MODES, expect
from tests.studio.content.scene_cases import given

from margrove.studio.content.scenes import scene_from

_KEYS = (
    "Tab", "Shift+Tab", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Enter", "Space",
    "Delete", "Escape", "1", "2", "3", "n", "Home", "End", "Control+z", "Control+Shift+z", "+", "-",
)  # fmt: skip
_KINDS = ("button", "select", "input[type=range]", "input[type=checkbox]", "input[type=radio]")
# Files are for other tests, and thousands of points would only make this one slow.
_LEFT_OUT = "[data-testid^=save-], [data-testid=load-scene], [data-testid=size]"
_USE = """([wanted, leftOut, place, value]) => {
    const all = [...document.querySelectorAll(wanted)].filter((own) => {
        const { width, height } = own.getBoundingClientRect();
        const isOff = own.disabled || own.getAttribute("aria-disabled") === "true";
        return width > 0 && height > 0 && !isOff && !own.matches(leftOut);
    });
    const own = all[Math.floor(place * all.length)];
    if (!own) return;
    const tell = (name) => own.dispatchEvent(new Event(name, { bubbles: true }));
    if (own.matches("select")) {
        const free = [...own.options].filter((option) => !option.disabled);
        own.value = free[Math.floor(value * free.length)]?.value ?? own.value;
        tell("change");
    } else if (own.matches("[type=range]")) {
        own.value = String(Number(own.min) + value * (Number(own.max) - Number(own.min)));
        tell("input");
        tell("change");
    } else {
        own.click();
    }
}"""


class Somebody:
    """Who has never seen the page and tries everything."""

    def __init__(self, visit, seed):
        self._page = visit.page
        self._visit = visit
        self._lot = random.Random(seed)
        self._deeds = [self._use] * 5 + [self._click] * 3 + [self._drag] * 3 + [self._press] * 4
        self._deeds += [self._switch]

    def act(self, times):
        for _ in range(times):
            self._lot.choice(self._deeds)()

    def _place(self):
        return self._lot.uniform(0, WINDOW["width"]), self._lot.uniform(0, WINDOW["height"])

    def _use(self):
        lot = self._lot
        self._page.evaluate(_USE, [lot.choice(_KINDS), _LEFT_OUT, lot.random(), lot.random()])

    def _click(self):
        self._page.mouse.click(*self._place(), button=self._lot.choice(("left", "left", "right")))

    def _drag(self):
        mouse = self._page.mouse
        mouse.move(*self._place())
        mouse.down()
        mouse.move(*self._place(), steps=3)
        mouse.up()

    def _press(self):
        self._page.keyboard.press(self._lot.choice(_KEYS))

    def _switch(self):
        if self._visit.at("code-dialog").count():
            self._page.keyboard.press("Escape")
        self._page.evaluate(_USE, [f"[data-testid=tab-{self._lot.choice(MODES)}]", "a", 0, 0])


def opened(tabs):
    visit = tabs.open()
    visit.page.on("filechooser", lambda chooser: chooser.set_files([]))  # cancelled: no file
    visit.load(given("moons", "SVC", size=60))
    return visit


def require_a_working_page(visit):
    """Whatever was done to it, a picture can be had."""
    for _ in range(2):
        visit.page.keyboard.press("Escape")
    visit.open_mode("playground")
    expect(visit.at("fence")).to_have_count(0)
    visit.at("preset").select_option("iris_petals")
    expect(visit.at("stage")).to_have_attribute("data-points", "150")
    visit.type_number("test-share", 0)
    visit.at("learner").select_option("DecisionTreeClassifier")
    visit.at("defaults").click()
    scene = scene_from(given("iris_petals", "DecisionTreeClassifier"))
    leaves = scene.estimator().fit(*scene.training()).get_n_leaves()
    expect(visit.at("count-leaves")).to_have_text(str(leaves))
    visit.settle()


def memory(visit, session):
    """Bytes that JavaScript holds after a collection, and the number of nodes of the page."""
    require_a_working_page(visit)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    found = session.send("Performance.getMetrics")["metrics"]
    figures = {own["name"]: own["value"] for own in found}
    return figures["JSHeapUsedSize"], figures["Nodes"]


def test_a_hundred_and_fifty_random_events(tabs):
    visit = opened(tabs)
    Somebody(visit, seed=1).act(150)
    require_a_working_page(visit)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 4))
def test_two_thousand_random_events_leave_nothing_behind(tabs, seed):
    visit = opened(tabs)
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("Performance.enable")
    person = Somebody(visit, seed)
    person.act(500)
    bytes_then, nodes_then = memory(visit, session)
    # What the last views keep goes up and down; what is never given back only goes up.
    later = []
    for _ in range(3):
        person.act(500)
        later.append(memory(visit, session))
    bytes_now, nodes_now = (min(figures) for figures in zip(*later, strict=True))
    assert bytes_now < 1.25 * bytes_then + 3e6
    assert nodes_now < 1.5 * nodes_then + 1000
