"""Lessons: one idea of the lectures each, with a question whose answer is computed.

Each has a small file with a `LESSON`. Right answers are not written down: the library computes them
from the points on the page.

ensembles/   lessons about the bootstrap, bagging, forests and boosting
lesson       a lesson: some text, a picture beside it, and a question whose answer the library
             computes
margin/      lessons about the perceptron and support vector machines
trees/       lessons about decision trees
"""

from __future__ import annotations

from margrove.studio.lessons.ensembles import (
    adaboost_bound,
    adaboost_by_hand,
    bagging_and_forests,
    bootstrap_of_a_median,
)
from margrove.studio.lessons.lesson import Lesson
from margrove.studio.lessons.margin import (
    kernels_and_gamma,
    margin_and_hulls,
    perceptron_mistakes,
    slack_and_price,
    smo_in_boxes,
)
from margrove.studio.lessons.trees import impurity, overfitting_and_pruning, restaurant, tennis

__all__ = ["LESSONS", "Lesson"]

LESSONS: dict[str, Lesson] = {
    module.LESSON.name: module.LESSON
    for module in (
        perceptron_mistakes,
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
        adaboost_by_hand,
        adaboost_bound,
    )
}
