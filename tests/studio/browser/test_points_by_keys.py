"""Points by keyboard alone and by pointer, and the way back."""

from __future__ import annotations

import numpy as np
from tests.studio.browser.visits import expect
from tests.studio.content.scene_cases import given

from margrove.studio.content.scenes import scene_from

SCENE = given("separable_clouds", "SVC", {"kernel": "linear"}, size=12)


def test_a_point_is_found_moved_and_erased_by_keys_alone(visit):
    scene = visit.load(SCENE)
    keys = visit.page.keyboard
    visit.page.evaluate("() => document.activeElement?.blur()")
    for _ in range(80):
        if visit.active() == "stage":
            break
        keys.press("Tab")
    assert visit.active() == "stage"
    stage = visit.at("stage")
    expect(stage).to_have_attribute("data-focused", "-1")
    keys.press("Enter")
    keys.press("Tab")
    keys.press("Tab")
    expect(stage).to_have_attribute("data-focused", "2")
    label = scene.classes[int(scene.y[2])]
    expect(visit.at("stage-said")).to_contain_text(f"Point 3 of 12: {scene.target} {label}")
    for _ in range(3):
        keys.press("ArrowRight")
    keys.press("ArrowUp")
    keys.press("Shift+ArrowUp")
    visit.settle()
    width, height = (high - low for low, high in (scene.view.x, scene.view.y))
    moved = visit.scene()
    expected = scene.x.copy()
    expected[2] += [0.03 * width, 0.06 * height]
    np.testing.assert_allclose(moved["x"], expected, rtol=1e-12)
    assert moved["y"] == scene.y.tolist()
    visit.at("stage").focus()
    for key in ("Enter", "Tab", "Tab", "Delete"):
        keys.press(key)
    expect(stage).to_have_attribute("data-points", "11")
    assert visit.scene()["x"] == moved["x"][:2] + moved["x"][3:]
    keys.press("Control+z")
    expect(stage).to_have_attribute("data-points", "12")
    assert visit.scene()["x"] == moved["x"]
    keys.press("Control+z")  # all moves of one point are one step
    assert visit.scene()["x"] == scene.x.tolist()
    keys.press("Control+Shift+z")
    assert visit.scene()["x"] == moved["x"]


def test_a_point_is_drawn_and_classed_by_keys(visit):
    visit.load(SCENE)
    visit.at("stage").focus()
    visit.page.keyboard.press("2")
    visit.page.keyboard.press("n")
    expect(visit.at("stage")).to_have_attribute("data-points", "13")
    expect(visit.at("stage")).to_have_attribute("data-focused", "12")
    view = SCENE["view"]
    drawn = visit.scene()
    assert drawn["x"][-1] == [sum(view["x"]) / 2, sum(view["y"]) / 2]
    assert drawn["y"][-1] == 1
    visit.at("stage").focus()
    for key in ("Enter", "1"):
        visit.page.keyboard.press(key)
    assert visit.scene()["y"][0] == 0


def test_a_dragged_point_takes_the_margin_along(visit):
    """A point is drawn between the classes, and the support vectors are those of the library."""
    scene = visit.load(SCENE)
    box = visit.at("stage").bounding_box()
    width, height = box["width"] - 62, box["height"] - 54

    def pixel(x, y):
        right = (x - scene.view.x[0]) / (scene.view.x[1] - scene.view.x[0])
        up = (y - scene.view.y[0]) / (scene.view.y[1] - scene.view.y[0])
        return box["x"] + 48 + right * width, box["y"] + 12 + (1 - up) * height

    start = scene.x[0]
    goal = np.array([np.mean(scene.view.x), np.mean(scene.view.y)])
    mouse = visit.page.mouse
    mouse.move(*pixel(*start))
    mouse.down()
    mouse.move(*pixel(*(start + goal) / 2), steps=4)
    mouse.move(*pixel(*goal), steps=4)
    mouse.up()
    visit.settle()
    dragged = visit.scene()
    cell = np.array([scene.view.x[1] - scene.view.x[0], scene.view.y[1] - scene.view.y[0]])
    assert (np.abs(dragged["x"][0] - goal) <= 2 * cell / [width, height]).all()
    assert dragged["x"][1:] == scene.x[1:].tolist()
    now = scene_from(dragged)
    model = now.estimator().fit(*now.training())
    expect(visit.at("count-support-vectors")).to_have_text(str(len(model.support_)))
    visit.at("undo").click()
    assert visit.scene() == scene.as_dict()
