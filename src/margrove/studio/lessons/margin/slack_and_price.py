"""Slack, and what it costs."""

from __future__ import annotations

from functools import partial

import numpy as np

from margrove.studio.content import Scene
from margrove.studio.lessons.lesson import Choice, Lesson, fitted_to, preset_scene

__all__ = ["LESSON"]

_CHOICES = ("wider", "narrower", "as wide as before")
_SAME = 1e-3  # relative: a change that cannot be seen


def _right(scene: Scene) -> Choice:
    before, after = (_width(scene, price) for price in (0.01, 10.0))
    change = after / before - 1.0
    answer = _CHOICES[2] if abs(change) < _SAME else _CHOICES[0] if change > 0 else _CHOICES[1]
    return Choice(
        (answer,),
        f"With C = 0.01 it is {before:.3g} wide, with C = 10 it is {after:.3g}. Where slack is "
        "cheap, a wide margin with many points in it costs least. Where it is expensive, few "
        "points may be in the margin, so it has to be narrow.",
    )


def _width(scene: Scene, price: float) -> float:
    machine = fitted_to(scene, "SVC", kernel="linear", C=price, solver="auto")
    return float(2.0 / np.linalg.norm(machine.coef_))


LESSON = Lesson(
    name="slack",
    title="Slack and C",
    text="""
    These two clouds overlap, and no line separates them. So points get some slack: a point may
    be inside the margin, or even on the wrong side, and how far it is beyond its margin is its
    slack.

    Slack has a price, C for each unit. The machine looks for the best compromise between a wide
    margin, which is good for new points, and little slack on the training points.

    Move C from one end to the other. Points on the margin, inside it and on the wrong side are
    marked differently. All others could be removed, and nothing would change.
    """,
    stage="playground",
    make_scene=partial(
        preset_scene, "gaussians", "SVC", {"kernel": "linear", "C": 1.0}, size=80, noise=0.8
    ),
    question="Turn C up from 0.01 to 10. What does the margin become?",
    choices=_CHOICES,
    hint="The margin lies between the two lines where the score is -1 and 1.",
    right=_right,
)
