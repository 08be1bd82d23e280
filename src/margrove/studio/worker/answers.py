"""For each kind of request, the function that answers it, of the request and its job.

Requests come from a browser and are not trusted: an invalid one raises a `StudioError`. Each
function returns the type of `protocol.ts` that its docstring names. Steps, lessons and lectures are
imported when they are first requested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from margrove.studio.content import Scene, StudioError, scene_from

__all__ = ["ANSWERS"]

Answer = dict[str, Any]
_ENVELOPE = ("kind", "id", "channel")


def _fields(request: Any, *names: str) -> list[Any]:
    """The named fields of a request; other fields are an error."""
    if not isinstance(request, dict):
        raise StudioError("A request has to be an object.")
    unknown = [name for name in request if name not in names and name not in _ENVELOPE]
    if unknown:
        raise StudioError(f"This request has an unknown field {ascii(unknown[0])[:60]}.")
    lacking = [name for name in names if name not in request]
    if lacking:
        raise StudioError(f"This request lacks {', '.join(lacking)}.")
    return [request[name] for name in names]


def _scene(request: Any) -> Scene:
    return scene_from(_fields(request, "scene")[0])


# -- menus and points ------------------------------------------------------------------------------


def answer_catalogue(request: Any, job: Any) -> Answer:
    """`Catalogue`."""
    from margrove.studio.content import LECTURE_TABLES, PRESETS
    from margrove.studio.learners import LEARNERS
    from margrove.studio.lessons import LESSONS

    _fields(request)
    return {
        "learners": [learner.as_dict() for learner in LEARNERS.values()],
        "presets": [preset.as_dict() for preset in PRESETS.values()],
        "lessons": [lesson.as_dict() for lesson in LESSONS.values()],
        "tables": [{"name": table.name, "title": table.title} for table in LECTURE_TABLES.values()],
    }


def answer_points(request: Any, job: Any) -> Answer:
    """`Points`."""
    from margrove.studio.content import points_of

    preset, size, noise, seed = _fields(request, "preset", "size", "noise", "seed")
    return points_of(preset, size=size, noise=noise, seed=seed)


# -- pictures --------------------------------------------------------------------------------------


def answer_picture(request: Any, job: Any) -> Answer:
    """`Picture`."""
    from margrove.studio.pictures import picture_of

    scene, grid, surface = _fields(request, "scene", "grid", "surface")
    return picture_of(scene_from(scene), grid, surface)


def answer_map(request: Any, job: Any) -> Answer:
    """`TuningMap`."""
    from margrove.studio.content import map_of

    return map_of(_scene(request))


def answer_code(request: Any, job: Any) -> Answer:
    """`Code`."""
    from margrove.studio.content import python_of

    return {"python": python_of(_scene(request))}


def answer_tree(request: Any, job: Any) -> Answer:
    """`Tree`."""
    from margrove.studio.content import tree_views

    source, member = _fields(request, "source", "member")
    return tree_views.answer_tree(source, member)


def answer_follow(request: Any, job: Any) -> Answer:
    """`Followed`."""
    from margrove.studio.content import tree_views

    source, member, row = _fields(request, "source", "member", "row")
    return tree_views.answer_follow(source, member, row)


# -- steps and lessons -----------------------------------------------------------------------------


def answer_steps(request: Any, job: Any) -> Answer:
    """`Steps`."""
    from margrove.studio.steps import steps_of

    kind, scene = _fields(request, "steps", "scene")
    return steps_of(kind, _stepped(scene))


def answer_step(request: Any, job: Any) -> Answer:
    """`Step`."""
    from margrove.studio.steps import step_of

    kind, scene, number, grid = _fields(request, "steps", "scene", "number", "grid")
    return step_of(kind, _stepped(scene), number, grid)


def _stepped(given: Any) -> Any:
    """A scene, or a table of the lectures."""
    from margrove.studio.content import lecture_table

    if isinstance(given, dict) and "lecture" in given:
        return lecture_table(given["lecture"])
    return scene_from(given)


def answer_check(request: Any, job: Any) -> Answer:
    """`Checked`."""
    from margrove.studio.lessons import LESSONS

    lesson, answer, scene = _fields(request, "lesson", "answer", "scene")
    if not isinstance(lesson, str) or lesson not in LESSONS:
        raise StudioError(f"There is no lesson {ascii(lesson)[:60]}.")
    if not isinstance(answer, str):
        raise StudioError("An answer has to be text.")
    found: Answer = LESSONS[lesson].check(answer, None if scene is None else scene_from(scene))
    return found


def answer_impurity(request: Any, job: Any) -> Answer:
    """`Impurity`."""
    from margrove.studio.content import lectures

    _fields(request, "share")
    return lectures.answer_impurity(request, job)


def answer_bootstrap(request: Any, job: Any) -> Answer:
    """`Bootstrap`."""
    from margrove.studio.content import lectures

    _fields(request, "values", "statistic", "resamples", "seed")
    return lectures.answer_bootstrap(request, job)


# -- tables of the user ----------------------------------------------------------------------------


def answer_table(request: Any, job: Any) -> Answer:
    """`Table`."""
    from margrove.studio.content import describe_table

    return describe_table(job, *_fields(request, "table"))


def answer_table_scene(request: Any, job: Any) -> Answer:
    """`Scene`."""
    from margrove.studio.content import scene_of_table

    return scene_of_table(job, *_fields(request, "table", "target", "features", "rows", "seed"))


def answer_table_compare(request: Any, job: Any) -> Answer:
    """`Leaderboard`."""
    from margrove.studio.content import compare_table

    return compare_table(job, *_fields(request, "table", "target", "seconds"))


def answer_table_report(request: Any, job: Any) -> Answer:
    """`Report`."""
    from margrove.studio.content import report_table

    return report_table(job, *_fields(request, "table", "target", "learner"))


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
