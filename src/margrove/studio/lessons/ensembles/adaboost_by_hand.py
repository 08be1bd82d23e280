"""Ten points: AdaBoost by hand."""

from __future__ import annotations

from functools import partial

from margrove.studio.content import Scene, StudioError
from margrove.studio.lessons.lesson import Lesson, Measure, fitted_to, preset_scene

__all__ = ["LESSON"]

_ROUND = 3
_MEMBERS = {"n_estimators": _ROUND, "max_depth": 1, "criterion": "error"}


def _right(scene: Scene) -> Measure:
    model = fitted_to(scene, "AdaBoostClassifier", **_MEMBERS, algorithm="samme", learning_rate=1.0)
    if len(model) < _ROUND:
        raise StudioError(
            f"On these points there are only {len(model)} rounds: {model.history_.outcome}. Move "
            "them back, or open the lesson again."
        )
    error, beta = (
        float(values[_ROUND - 1]) for values in (model.history_.error, model.history_.beta)
    )
    mistakes = round(len(scene.training_rows) * float(model.history_.training_error[_ROUND - 1]))
    return Measure(
        beta,
        0.01,
        f"Its mistakes weigh {error:.3f}, and beta is half the logarithm of (1 - {error:.3f}) / "
        f"{error:.3f}. All {_ROUND} rules together make {mistakes or 'no'} mistakes.",
    )


LESSON = Lesson(
    name="ten-points",
    title="Ten points: AdaBoost",
    text="""
    Five points of each class, and a learner that can only draw one straight line along an axis.
    Whatever line it draws, three points or more are wrong. What can one do with such weak rules?

    AdaBoost asks for one rule after the other. In each round, the points that the last rule got
    wrong weigh more, until right and wrong weigh the same: so the next rule has to find
    something new. A rule whose mistakes weigh epsilon gets the weight
    beta = 1/2 ln((1 - epsilon) / epsilon) in the vote.

    Go through the three rounds. Each rule alone gets three points wrong, and each time others.
    The vote of all three, each with its beta, gets all ten right.
    """,
    stage="steps",
    steps="adaboost",
    make_scene=partial(preset_scene, "boosting_points", "AdaBoostClassifier", _MEMBERS, size=10),
    question="What is beta of the third rule?",
    hint="It is among the figures of step 3, and follows from epsilon.",
    right=_right,
)
