"""Intervals of compared scores that allow for the number of rows.

Scores of folds can be nearly equal by design: folds have equal shares of the classes, so always
predicting the most frequent class has nearly the same accuracy in each fold, however few rows there
are. So the interval of an accuracy on n rows is never narrower than Wilson's interval of n rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from margrove.ensemble.bootstrap import ConfidenceInterval
from margrove.select.calibrate import wilson_interval

__all__ = ["meaning_of_intervals", "with_intervals_of_rows"]

_OF_FOLDS = "corrected_t"


def with_intervals_of_rows(comparison: Any) -> Any:
    """The comparison with intervals of accuracies widened to Wilson's; others are not changed."""
    if not _is_widened(comparison):
        return comparison
    level, n = comparison.confidence_level, comparison.n_rows
    models = []
    for model in comparison.models:
        low, high = wilson_interval(model.score, n, level)
        interval = ConfidenceInterval(min(low, model.interval.low), max(high, model.interval.high))
        models.append(replace(model, interval=interval))
    return replace(comparison, models=tuple(models))


def _is_widened(comparison: Any) -> bool:
    return comparison.scoring == "accuracy" and comparison.test_used == _OF_FOLDS


def meaning_of_intervals(comparison: Any) -> str:
    """The meaning of the intervals, in words."""
    level, same = f"{100 * comparison.confidence_level:g} %", "in the same folds"
    if comparison.test_used != _OF_FOLDS:
        what = f"Intervals say where the score would lie on other rows ({level} sure)"
        same = "on the same rows"
    elif _is_widened(comparison):
        what = (
            f"Intervals say where the score would lie with other data of this size ({level} sure), "
            "by how much it varies from fold to fold and by the number of rows"
        )
    else:
        what = (
            f"Intervals say where the mean score would lie with other data of this size ({level} "
            "sure), by how much it varies from fold to fold"
        )
    return (
        f"{what}. Whether two learners differ is judged by their differences {same}, not "
        "by whether intervals overlap."
    )
