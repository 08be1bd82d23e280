"""Impurity: three ways to measure a mixture."""

from __future__ import annotations

from margrove.studio.content import impurities_at
from margrove.studio.lessons.lesson import Lesson, Measure

__all__ = ["LESSON"]

_SHARE = 3 / 8


def _right(scene: None) -> Measure:
    found = impurities_at(_SHARE)
    return Measure(
        found["gini"],
        0.003,
        "Draw two of the eight points, with replacement: that is how often their classes differ, "
        f"2 x 3/8 x 5/8. The entropy is {found['entropy']:.3f} bits, and the error of the better "
        f"guess {found['error']:.3f}.",
    )


LESSON = Lesson(
    name="impurity",
    title="Impurity: how mixed is a leaf",
    text="""
    A leaf of a tree should be pure. Until it is, one needs a number that says how mixed it is:
    0 for one class only, largest where all classes are equally frequent.

    Three are in use. The error says how often the more frequent class would be the wrong guess.
    The Gini index says how often two points drawn from the leaf differ. The entropy says how
    many bits it takes, on average, to tell the class of a point.

    Move the share of one of two classes. The error is made of two straight lines, while the
    others bend. That matters: a split that makes one side purer without changing any guess
    gains nothing by the error, and something by the others.
    """,
    stage="impurity",
    question="A leaf holds 3 points of one class and 5 of the other. What is its Gini index?",
    hint="The share of one class is 3/8. One minus the sum of the squared shares.",
    right=_right,
)
