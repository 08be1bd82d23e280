"""The bound on the training error of AdaBoost."""

from __future__ import annotations

from functools import partial

import numpy as np

from margrove.studio.content import Scene, StudioError
from margrove.studio.lessons.lesson import Count, Lesson, fitted_to, preset_scene

__all__ = ["LESSON"]

_ROUNDS = 40
_MEMBERS = {"n_estimators": _ROUNDS, "max_depth": 1, "criterion": "error"}


def _right(scene: Scene) -> Count:
    model = fitted_to(scene, "AdaBoostClassifier", **_MEMBERS, algorithm="samme", learning_rate=1.0)
    history, n = model.history_, len(scene.training_rows)
    below = np.flatnonzero(history.bound < 1.0 / n)
    if not len(below):
        raise StudioError(
            f"In {len(history)} rounds the bound does not fall below 1/{n} on these points. Move "
            "them back, or open the lesson again."
        )
    first = int(below[0])
    first_right = int(np.argmax(history.training_error == 0.0)) + 1
    return Count(
        first + 1,
        f"Then the bound is {history.bound[first]:.4f}, below 1/{n}, and less than one mistake in "
        f"{n} points is none. In fact there was none from round {first_right} on: a bound is an "
        "upper limit, not a forecast.",
    )


LESSON = Lesson(
    name="bound",
    title="The bound: why boosting must succeed",
    text="""
    Each round of AdaBoost divides the weights by a number Z, so that they sum to 1 again.
    Multiply the Z of all rounds so far: the share of points that the vote gets wrong is never
    larger than this product.

    Z is below 1 as soon as a rule is better than guessing, even if only by a little. A rule whose
    mistakes weigh 1/2 - gamma has a Z of at most exp(-2 gamma squared). So rules that are just
    a bit better than chance, round after round, must end with no mistake at all.

    These are the ten points again, with more rounds. Compare the curves: the training error
    jumps from one tenth to another, and the bound stays above it. A share of mistakes is a
    number of tenths. When the bound is below one tenth, there cannot be a mistake left.
    """,
    stage="steps",
    steps="adaboost",
    make_scene=partial(preset_scene, "boosting_points", "AdaBoostClassifier", _MEMBERS, size=10),
    question="After how many rounds does the bound, the product of Z, first rule out any mistake?",
    hint="Look for the first round whose bound is below 1/10.",
    right=_right,
)
