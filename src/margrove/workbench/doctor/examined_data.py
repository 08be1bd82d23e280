"""What the doctor's checks look at: table, target, and needs of the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import CodedTable, ColumnName
from margrove.workbench.doctor.column_figures import ColumnFigures
from margrove.workbench.doctor.examined_target import ExaminedTarget

__all__ = ["Needs", "Patient", "final_step", "needs_of"]

_MOST_ROWS_NAMED = 100


@dataclass(frozen=True)
class Needs:
    """What an estimator asks of a table; without one, what any of them may ask.

    who             its name, "" without one
    like_scales     whether columns of larger spread weigh more
    no_gaps         whether it refuses missing values
    only_numbers    whether it refuses labels
    """

    who: str = ""
    like_scales: bool = True
    no_gaps: bool = False
    only_numbers: bool = False


@dataclass(frozen=True)
class Patient:
    """A table, its target, and what is asked of them.

    table, figures       as given, or a sample of the rows
    prepared             what the estimator gets of it, after the steps before it; and its figures
    rows                 int64 (n,)  the numbers that the rows had when given
    """

    table: CodedTable
    figures: ColumnFigures
    target: ExaminedTarget | None
    prepared: CodedTable
    prepared_figures: ColumnFigures
    needs: Needs
    folds: int
    rows: np.ndarray

    def names(self, columns: Sequence[int] | np.ndarray) -> tuple[ColumnName, ...]:
        return tuple(self.table.names[j] for j in columns)

    def prepared_names(self, columns: Sequence[int] | np.ndarray) -> tuple[ColumnName, ...]:
        return tuple(self.prepared.names[j] for j in columns)

    def row_numbers(self, rows: np.ndarray) -> tuple[int, ...]:
        """Some rows by the numbers they had when given."""
        return tuple(int(i) for i in self.rows[rows[:_MOST_ROWS_NAMED]])


def final_step(estimator: Any) -> Any:
    """The estimator that learns: the last step of a pipeline, the estimator of a search."""
    while True:
        if hasattr(estimator, "steps") and estimator.steps:
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "refit") and hasattr(estimator, "estimator"):
            estimator = estimator.estimator
        else:
            return estimator


_TREES = ("Tree", "Forest", "GradientBoosting", "LGBM", "XGB", "CatBoost")
_OF_TREES_BY_DEFAULT = ("AdaBoost", "Bagging")


def needs_of(estimator: Any) -> Needs:
    """What an estimator, or the last step of a pipeline, asks of its table."""
    if estimator is None:
        return Needs()
    final = final_step(estimator)
    who = type(final).__name__
    takes_gaps, takes_labels = _by_tags(final)
    return Needs(
        who=who,
        like_scales=not _is_of_trees(final),
        no_gaps=not takes_gaps,
        only_numbers=not takes_labels,
    )


def _is_of_trees(estimator: Any) -> bool:
    who = type(estimator).__name__
    if any(word in who for word in _TREES):
        return True
    if any(word in who for word in _OF_TREES_BY_DEFAULT):
        inner = getattr(estimator, "estimator", None)
        return inner is None or _is_of_trees(inner)
    return False


def _by_tags(estimator: Any) -> tuple[bool, bool]:
    """Whether it takes missing values, and labels; estimators without tags take both."""
    from sklearn.utils import get_tags

    try:
        tags = get_tags(estimator)
    except Exception:
        return True, True
    takes_labels = bool(tags.input_tags.categorical) or bool(tags.input_tags.string)
    return bool(tags.input_tags.allow_nan), takes_labels or _hands_labels_to_trees(estimator)


def _hands_labels_to_trees(estimator: Any) -> bool:
    if hasattr(estimator, "categorical_features"):
        return True
    is_ours = type(estimator).__module__.startswith("margrove.")
    if not is_ours or not hasattr(estimator, "estimator"):
        return False
    return estimator.estimator is None or _hands_labels_to_trees(estimator.estimator)
