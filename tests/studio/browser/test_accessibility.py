"""axe-core finds nothing serious in any mode, light or dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.studio.browser.test_lessons import answers_to, give, require_its_picture
from tests.studio.browser.test_own_table import flowers, upload
from tests.studio.browser.visits import MODES, expect
from tests.studio.content.scene_cases import given

from margrove.studio.lessons import LESSONS

ROOT = Path(__file__).parents[3]
AXE = ROOT / "studio-ui" / "node_modules" / "axe-core" / "axe.min.js"
READY = {
    "playground": "figures",
    "steps": "step-figures",
    "compare": "compare-stage",
    "tree": "tree-viewer",
    "map": "map-plane",
    "lessons": "lesson",
    "table": "columns",
}
SCENE = given("gaussians", "DecisionTreeClassifier", {"max_depth": 3}, size=40, test_share=0.2)


@pytest.fixture(scope="module")
def axe():
    if not AXE.exists():
        pytest.skip("needs axe-core: npm ci in studio-ui")
    return AXE.read_text()


def serious(visit, axe):
    """What is wrong, for whom, and where."""
    if not visit.page.evaluate("() => 'axe' in window"):
        visit.page.evaluate(axe)
    found = visit.page.evaluate(
        "async () => (await axe.run(document, { resultTypes: ['violations'] })).violations"
    )
    return [
        f"{own['id']} ({own['impact']}): {node['html'][:160]} {node['failureSummary'][:200]}"
        for own in found if own["impact"] in ("serious", "critical")
        for node in own["nodes"]
    ]  # fmt: skip


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_nothing_serious_is_found(tabs, axe, colours):
    visit = tabs.open(color_scheme=colours)
    visit.load(SCENE)
    faults = {}
    for mode in MODES:
        if mode == "table":
            upload(visit, flowers()[0])
        else:
            visit.open_mode(mode)
        if mode == "steps":
            visit.at("step-last").click()
        expect(visit.at(READY[mode]).first).to_be_visible()
        faults[mode] = serious(visit, axe)
    assert faults == {mode: [] for mode in MODES}


@pytest.mark.nightly
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_nothing_serious_is_found_in_any_lesson(tabs, axe, colours):
    visit = tabs.open(color_scheme=colours)
    visit.open_mode("lessons")
    faults = {}
    for name, lesson in LESSONS.items():
        visit.at(f"lesson-{name}").click()
        require_its_picture(visit, lesson)
        give(visit, lesson, answers_to(lesson)[0])
        expect(visit.at("feedback").locator("p")).to_be_visible()
        faults[name] = serious(visit, axe)
    assert faults == {name: [] for name in LESSONS}


def test_dialogs_and_banners(tabs, axe):
    visit = tabs.open()
    visit.at("show-code").click()
    expect(visit.at("code")).to_contain_text("import margrove")
    assert serious(visit, axe) == []
    stranger = tabs.blank()
    stranger.page.goto(visit.page.url)
    expect(stranger.at("connection-refused")).to_be_visible()
    assert serious(stranger, axe) == []
