"""What the studio answers: for each kind of request, a function of the request and its job.

Requests come from a browser and are not trusted: whatever is wrong with one is told in a
`StudioError`. Steps, lessons and lectures are imported when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from margrove.studio.content.scenes import Scene, StudioError, scene_from

__all__ = ["ANSWERS"]

Answer = dict[str, Any]
_ENVELOPE = ("kind", "id", "channel")


def _fields(ask: Any, *names: str) -> list[Any]:
    """The named fields of a request, which has no others."""
    if not isinstance(ask, dict):
        raise StudioError("A request is an object.")
    unknown = [name for name in ask if name not in names and name not in _ENVELOPE]
    if unknown:
        raise StudioError(f"This request has an unknown field {ascii(unknown[0])[:60]}.")
    lacking = [name for name in names if name not in ask]
    if lacking:
        raise StudioError(f"This request lacks {', '.join(lacking)}.")
    return [ask[name] for name in names]


def _scene(ask: Any) -> Scene:
    return scene_from(_fields(ask, "scene")[0])


# -- menus and points ------------------------------------------------------------------------------


def answer_catalogue(ask: Any, job: Any) -> Answer:
    """`Catalogue`."""
    from margrove.studio.content.lectures import LECTURE_TABLES
    from margrove.studio.content.presets import PRESETS
    from margrove.studio.learners.registry import LEARNERS
    from margrove.studio.lessons import LESSONS

    _fields(ask)
    return {
        "learners": [own.as_dict() for own in LEARNERS.values()],
        "presets": [own.as_dict() for own in PRESETS.values()],
        "lessons": [own.as_dict() for own in LESSONS.values()],
        "tables": [{"name": own.name, "title": own.title} for own in LECTURE_TABLES.values()],
    }


def answer_points(ask: Any, job: Any) -> Answer:
    """`Points`."""
    from margrove.studio.content.presets import points_of

    preset, size, noise, seed = _fields(ask, "preset", "size", "noise", "seed")
    return points_of(preset, size=size, noise=noise, seed=seed)


# -- pictures --------------------------------------------------------------------------------------


def answer_picture(ask: Any, job: Any) -> Answer:
    """`Picture`."""
    from margrove.studio.pictures import picture_of

    scene, grid, surface = _fields(ask, "scene", "grid", "surface")
    return picture_of(scene_from(scene), grid, surface)


def answer_map(ask: Any, job: Any) -> Answer:
    """`TuningMap`."""
    from margrove.studio.content.maps import map_of

    return map_of(_scene(ask))


def answer_code(ask: Any, job: Any) -> Answer:
    """`Code`."""
    from margrove.studio.content.takeaway import python_of

    return {"python": python_of(_scene(ask))}


def answer_tree(ask: Any, job: Any) -> Answer:
    """`Tree`."""
    from margrove.studio.content import tree_views

    source, member = _fields(ask, "source", "member")
    return tree_views.answer_tree(source, member)


def answer_follow(ask: Any, job: Any) -> Answer:
    """`Followed`."""
    from margrove.studio.content import tree_views

    source, member, row = _fields(ask, "source", "member", "row")
    return tree_views.answer_follow(source, member, row)


# -- steps and lessons -----------------------------------------------------------------------------


def answer_steps(ask: Any, job: Any) -> Answer:
    """`Steps`."""
    from margrove.studio.steps import steps_of

    kind, scene = _fields(ask, "steps", "scene")
    return steps_of(kind, _stepped(scene))


def answer_step(ask: Any, job: Any) -> Answer:
    """`Step`."""
    from margrove.studio.steps import step_of

    kind, scene, number, grid = _fields(ask, "steps", "scene", "number", "grid")
    return step_of(kind, _stepped(scene), number, grid)


def _stepped(given: Any) -> Any:
    """A scene, or a table of the lectures."""
    from margrove.studio.content.lectures import lecture_table

    if isinstance(given, dict) and "lecture" in given:
        return lecture_table(given["lecture"])
    return scene_from(given)


def answer_check(ask: Any, job: Any) -> Answer:
    """`Checked`."""
    from margrove.studio.lessons import LESSONS

    lesson, answer, scene = _fields(ask, "lesson", "answer", "scene")
    if not isinstance(lesson, str) or lesson not in LESSONS:
        raise StudioError(f"There is no lesson {ascii(lesson)[:60]}.")
    if not isinstance(answer, str):
        raise StudioError("An answer is text.")
    found: Answer = LESSONS[lesson].check(answer, None if scene is None else scene_from(scene))
    return found


def answer_impurity(ask: Any, job: Any) -> Answer:
    """`Impurity`."""
    from margrove.studio.content import lectures

    _fields(ask, "share")
    return lectures.answer_impurity(ask, job)


def answer_bootstrap(ask: Any, job: Any) -> Answer:
    """`Bootstrap`."""
    from margrove.studio.content import lectures

    _fields(ask, "values", "statistic", "resamples", "seed")
    return lectures.answer_bootstrap(ask, job)


# -- tables of the user's --------------------------------------------------------------------------


def answer_table(ask: Any, job: Any) -> Answer:
    """`Table`."""
    from margrove.studio.content.own_tables import describe_table

    return describe_table(job, *_fields(ask, "table"))


def answer_table_scene(ask: Any, job: Any) -> Answer:
    """`Scene`."""
    from margrove.studio.content.table_points import scene_of_table

    return scene_of_table(job, *_fields(ask, "table", "target", "features", "rows", "seed"))


def answer_table_compare(ask: Any, job: Any) -> Answer:
    """`Leaderboard`."""
    from margrove.studio.content.own_tables import compare_table

    return compare_table(job, *_fields(ask, "table", "target", "seconds"))


def answer_table_report(ask: Any, job: Any) -> Answer:
    """`Report`."""
    from margrove.studio.content.own_tables import report_table

    return report_table(job, *_fields(ask, "table", "target", "learner"))


ANSWERS: dict[str, Callable[[Any, Any], Answer]] = {
    "catalogue": answer_catalogue,
    "points": answer_points,
    "picture": answer_picture,
    "steps": answer_steps,
    "step": answer_step,
    "map": answer_map,
    "tree": answer_tree,
    "follow": answer_follow,
    "impurity": answer_impurity,
    "bootstrap": answer_bootstrap,
    "check": answer_check,
    "code": answer_code,
    "table": answer_table,
    "table-scene": answer_table_scene,
    "table-compare": answer_table_compare,
    "table-report": answer_table_report,
}
