"""Each lesson: its picture is there, a wrong answer is refused and the right one accepted."""

from __future__ import annotations

import re

from tests.studio.browser.visits import expect

from margrove.studio.content.scenes import scene_from
from margrove.studio.lessons import LESSONS
from margrove.studio.lessons.lesson import Choice

FITTED = {
    "playground": "lesson-plane",
    "steps": "steps-plane",
    "compare": "contender-a-stage",
    "map": "map-plane",
}
DRAWN = {"tree": "tree-canvas", "impurity": "impurity-chart", "bootstrap": "bootstrap-chart"}


def answers_to(lesson):
    """A wrong one and the right one, as the library has it for the points of the lesson."""
    right = lesson.right(lesson.scene)
    if isinstance(right, Choice):
        return next(own for own in lesson.choices if own not in right.right), right.right[0]
    return f"{right.value + 1:.6g}", f"{right.value:.6g}"


def require_its_picture(visit, lesson):
    if lesson.stage in DRAWN:
        expect(visit.at(DRAWN[lesson.stage])).to_be_visible()
        return
    plane = visit.at(FITTED[lesson.stage])
    expect(plane).to_have_attribute("data-points", str(len(lesson.scene.x)))
    if lesson.stage == "steps":
        visit.at("step-last").click()
    expect(plane).to_have_attribute("data-fitted", "yes")


def give(visit, lesson, answer):
    if lesson.choices:
        visit.at(f"choice-{lesson.choices.index(answer)}").check()
    else:
        visit.at("answer").fill(answer)
    visit.at("check").click()


def test_all_lessons_can_be_done(visit):
    visit.open_mode("lessons")
    total = len(LESSONS)
    for done, (name, lesson) in enumerate(LESSONS.items()):
        visit.at(f"lesson-{name}").click()
        expect(visit.at("lesson").get_by_role("heading", name=lesson.title)).to_be_focused()
        for paragraph in lesson.paragraphs:
            expect(visit.at("lesson")).to_contain_text(paragraph)
        require_its_picture(visit, lesson)
        wrong, right = answers_to(lesson)
        feedback = visit.at("feedback").locator("p")
        give(visit, lesson, wrong)
        expect(feedback).to_have_class(re.compile("is-wrong"))
        expect(feedback).to_contain_text(lesson.check(wrong)["text"])
        expect(visit.at("lessons-done")).to_have_text(f"{done} of {total} done")
        give(visit, lesson, right)
        expect(feedback).to_have_class(re.compile("is-right"))
        expect(feedback).to_contain_text(lesson.check(right)["text"])
        expect(visit.at("lessons-done")).to_have_text(f"{done + 1} of {total} done")
    visit.page.reload()  # what was done is kept in the tab
    expect(visit.at("lessons-done")).to_have_text(f"{total} of {total} done")


def test_what_is_right_follows_the_points_of_the_lesson(visit):
    """A point is erased in the picture beside the text, and the answer is that of the others."""
    name, lesson = "slack", LESSONS["slack"]
    assert lesson.stage == "playground"
    visit.open_mode("lessons")
    visit.at(f"lesson-{name}").click()
    require_its_picture(visit, lesson)
    visit.at("lesson-plane").focus()
    visit.page.keyboard.press("Enter")
    visit.page.keyboard.press("Delete")
    n = len(lesson.scene.x)
    expect(visit.at("lesson-plane")).to_have_attribute("data-points", str(n - 1))
    left = lesson.scene.as_dict()
    left = left | {"x": left["x"][1:], "y": left["y"][1:]}
    right = lesson.right(scene_from(left)).right[0]
    give(visit, lesson, right)
    text = lesson.check(right, scene_from(left))["text"]
    assert text != lesson.check(right)["text"]
    expect(visit.at("feedback")).to_contain_text(text)
