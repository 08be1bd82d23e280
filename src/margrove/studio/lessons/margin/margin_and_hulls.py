"""Why the middle: the margin, and the hulls of the classes."""

from __future__ import annotations

from functools import partial

import numpy as np

from margrove.studio.content import Scene
from margrove.studio.lessons.lesson import Lesson, Measure, fitted_to, preset_scene

__all__ = ["LESSON"]


def _right(scene: Scene) -> Measure:
    machine = fitted_to(scene, "SVC", kernel="linear", C=None, solver="hull")
    width = float(2.0 / np.linalg.norm(machine.coef_))
    return Measure(
        width,
        0.02 * width,
        f"The margin on each side is half of that, {width / 2:.4g}. The two nearest points are "
        f"averages of {len(machine.support_)} points: these are the support vectors.",
    )


LESSON = Lesson(
    name="margin",
    title="Why the middle: margin and hulls",
    text="""
    Many lines separate these two clouds, and on these points all of them are equally right. On
    new points they will not be. A line that passes close to a point will be on the wrong side of
    some new point beside it. So the safest line is the one with the widest margin.

    Stretch a rubber band around each class: that is its convex hull. Of all pairs of points,
    one in each hull, two are closest to each other. The line with the widest margin crosses the
    segment between these two in the middle, at a right angle.

    Each step moves both points towards each other. At the start each is the centre of its
    class, and all points have a weight. At the end, points deep inside have none.
    """,
    stage="steps",
    steps="hull",
    make_scene=partial(
        preset_scene,
        "separable_clouds",
        "SVC",
        {"kernel": "linear", "C": None, "solver": "hull"},
        size=30,
    ),
    question="How far apart are the two hulls at the end?",
    hint="Look at the figure called distance, in the last step.",
    right=_right,
)
