"""The data of the doctor's checks: table, target, and the needs of the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import CodedTable, ColumnName
from margrove.workbench.doctor.column_figures import ColumnFigures
from margrove.workbench.doctor.examined_target import ExaminedTarget

__all__ = ["ExaminedData", "Needs", "final_step", "needs_of"]

_MAX_ROWS_NAMED = 100


@dataclass(frozen=True)
class Needs:
    """What an estimator needs of a table; without one, what any estimator may need.

    who             name of the estimator, "" without one
    like_scales     whether columns of larger spread have more influence
    no_gaps         whether it refuses missing values
    only_numbers    whether it refuses labels
    """

    who: str = ""
    like_scales: bool = True
    no_gaps: bool = False
    only_numbers: bool = False


@dataclass(frozen=True)
class ExaminedData:
    """What the checks get.

    table, figures       the table as given, or a sample of its rows
    target               of these rows, or None
    prepared             the table after the steps of the pipeline before the estimator
    prepared_figures     figures of that table
    needs                of the estimator
    folds                number of folds of a cross-validation
    rows                 int64 (n,)  the original numbers of the rows
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
        """The original numbers of some rows, at most a hundred."""
        return tuple(int(i) for i in self.rows[rows[:_MAX_ROWS_NAMED]])


def final_step(estimator: Any) -> Any:
    """The last step of a pipeline, the estimator of a search, or the estimator itself."""
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
    """The needs of an estimator, or of the last step of a pipeline."""
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
    """Whether it accepts missing values, and labels; both if it has no tags."""
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
