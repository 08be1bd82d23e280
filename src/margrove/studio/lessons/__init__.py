"""Lessons: the ideas of the lectures, one each, with a question whose answer is computed live.

Each has a small file with a `LESSON`. What is right is never written down: the library computes it
from the points that are on the page.
"""

from __future__ import annotations

from margrove.studio.lessons import (
    bagging_and_forests,
    bootstrap_of_a_median,
    impurity,
    kernels_and_gamma,
    margin_and_hulls,
    mistakes_of_the_perceptron,
    overfitting_and_pruning,
    restaurant,
    slack_and_price,
    smo_in_boxes,
    ten_points,
    tennis,
    the_bound,
)
from margrove.studio.lessons.lesson import Lesson

__all__ = ["LESSONS", "Lesson"]

LESSONS: dict[str, Lesson] = {
    module.LESSON.name: module.LESSON
    for module in (
        mistakes_of_the_perceptron,
        margin_and_hulls,
        slack_and_price,
        kernels_and_gamma,
        smo_in_boxes,
        tennis,
        restaurant,
        impurity,
        overfitting_and_pruning,
        bootstrap_of_a_median,
        bagging_and_forests,
        ten_points,
        the_bound,
    )
}
