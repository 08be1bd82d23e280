"""Partial dependence of any model: its predictions if all rows had the same value of a column.

    average(g)   the mean over the rows of  f(row with the column set to g)

f are class probabilities, or decision values if there are none, or numbers. The values g occur in
the column, so the table may have any types (labels, dates, categories), as it is before the first
step of a pipeline. For trees, `margrove.partial_dependence` is exact and fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import (
    CodedTable,
    as_matrix,
    code_table,
    collected,
    column_to_list,
    data_frame,
    is_frame,
    replace_cells,
    take_rows,
)
from margrove.exceptions import InvalidDataError
from margrove.facts.classification_scores import class_scores, classes_of
from margrove.facts.plain_values import Plain, frozen, require_whole
from margrove.grove.read import shown

__all__ = ["DependenceCurve", "PartialDependenceFacts", "partial_dependence_facts"]

_MOST_LABELS = 12  # of a column
_MOST_CANDIDATES = 400  # columns that are searched for those with the largest effect
_ENDS = (0.05, 0.95)  # a grid of numbers lies between these quantiles, as in scikit-learn
_FEW_ROWS, _FEW_VALUES = 60, 6  # for the search


@dataclass(frozen=True, kw_only=True, eq=False)
class DependenceCurve(Plain):
    """Predictions of a model as one column changes.

    Attributes
    ----------
    name : str
    column : int
    kind : {"number", "label"}
        Dates are labels, in their order.
    grid : ndarray of float or of str
        Values of the column; the most frequent ones if they are labels.
    average : ndarray of shape (n_outputs, n_grid)
    low, high : ndarray of shape (n_outputs, n_grid)
        The 10 % and 90 % quantiles of the predictions for single rows.
    n_left_out : int
        The number of labels that are not in the grid.
    """

    name: str
    column: int
    kind: str
    grid: np.ndarray
    average: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_left_out: int

    @property
    def range(self) -> float:
        """The range of the average, for the output for which it is largest."""
        return float((self.average.max(axis=1) - self.average.min(axis=1)).max())


@dataclass(frozen=True, kw_only=True, eq=False)
class PartialDependenceFacts(Plain):
    """Curves of some columns.

    Attributes
    ----------
    curves : tuple of DependenceCurve
        In the order of `features`; without it, the column with the largest effect comes first.
    outputs : tuple of str
        The second of two classes, all of more classes, or "prediction".
    response : {"probability", "score", "prediction"}
    n_rows : int
        The number of rows that are averaged over.
    """

    curves: tuple[DependenceCurve, ...]
    outputs: tuple[str, ...]
    response: str
    n_rows: int

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each value of each column and output."""
        columns: dict[str, list[Any]] = {
            name: [] for name in ("column", "output", "value", "average", "low", "high")
        }
        for curve in self.curves:
            for k, output in enumerate(self.outputs):
                n = len(curve.grid)
                columns["column"] += [curve.name] * n
                columns["output"] += [output] * n
                columns["value"] += curve.grid.tolist()
                for name in ("average", "low", "high"):
                    columns[name] += getattr(curve, name)[k].tolist()
        return data_frame(columns)


def partial_dependence_facts(
    model: Any,
    X: Any,
    features: Any = None,
    *,
    n_grid: int = 20,
    n_features: int = 4,
    max_rows: int = 500,
) -> PartialDependenceFacts:
    """Predictions of a model if one column of a table changes and the others do not.

    Parameters
    ----------
    model : fitted classifier or regressor
        Any under scikit-learn's API, or a pipeline, whose X is the table before its first step.
    X : array-like, sparse matrix or dataframe of shape (n, n_features)
        As for `predict`.
    features : list of int or str, optional
        Columns by number or name. By default those with the largest effect.
    n_grid : int, default=20
        Largest number of values of a column of numbers: all that it has, or some that are spread
        evenly between its 5 % and its 95 % quantile. Of labels, the twelve most frequent.
    n_features : int, default=4
        The number of columns, if `features` is not given.
    max_rows : int, default=500
        Largest number of rows to average over, spread evenly over X.

    Returns
    -------
    PartialDependenceFacts

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0, 7], [0, 8], [1, 7], [1, 8]], [1.0, 1.0, 2.0, 4.0]
    >>> model = margrove.DecisionTreeRegressor().fit(X, y)
    >>> found = margrove.facts.partial_dependence_facts(model, X, [0])
    >>> found.curves[0].grid.tolist(), found.curves[0].average.tolist()
    ([0.0, 1.0], [[1.0, 3.0]])
    """
    n_grid = require_whole("n_grid", n_grid, 2)
    n_features = require_whole("n_features", n_features, 1)
    rows = _some_rows(_table(X), require_whole("max_rows", max_rows, 1))
    table = code_table(rows)
    if not table.n_rows:
        raise InvalidDataError("X of partial_dependence_facts has no rows. Give at least one.")
    predict, outputs, response = _predictor(model)
    if features is None:
        columns = _columns_that_matter(rows, table, predict, n_features)
    else:
        columns = _chosen_columns(features, table)
    return PartialDependenceFacts(
        curves=tuple(_curve(rows, table, j, n_grid, predict) for j in columns),
        outputs=outputs,
        response=response,
        n_rows=table.n_rows,
    )


# -- predictions and columns ---------------------------------------------------------------------

_Predict = Callable[[Any], np.ndarray]


def _predictor(model: Any) -> tuple[_Predict, tuple[str, ...], str]:
    """A function from rows to predictions (n, n_outputs), names of the outputs, and their kind."""
    if not hasattr(model, "classes_"):
        return lambda rows: _numbers(model, rows), ("prediction",), "prediction"
    names = tuple(str(label) for label in classes_of(model).tolist())
    first = 1 if len(names) == 2 else 0  # of two classes, the second is enough

    def predict(rows: Any) -> np.ndarray:
        scores = class_scores(model, rows)
        if scores is None:
            labels = np.asarray(model.predict(rows))
            return np.asarray(labels[:, None] == classes_of(model)[None, first:], dtype=np.float64)
        return scores.values[:, first:]

    has_scores = hasattr(model, "decision_function") and not hasattr(model, "predict_proba")
    return predict, names[first:], "score" if has_scores else "probability"


def _numbers(model: Any, rows: Any) -> np.ndarray:
    answers = np.asarray(model.predict(rows), dtype=np.float64)
    if answers.ndim == 2 and answers.shape[1] > 1:
        raise TypeError(
            f"This {type(model).__name__} has {answers.shape[1]} outputs, and one is needed. Fit a "
            "model to one column of y."
        )
    return answers.reshape(len(answers), 1)


def _chosen_columns(features: Any, table: CodedTable) -> list[int]:
    given = [features] if isinstance(features, (str, Integral)) else list(features)
    columns = []
    for one in given:
        if isinstance(one, str) and one in table.names:
            columns.append(table.names.index(one))
        elif (
            isinstance(one, Integral)
            and not isinstance(one, bool)
            and 0 <= int(one) < len(table.names)
        ):
            columns.append(int(one))
        else:
            known = ", ".join(shown(name) for name in table.names[:5])
            raise ValueError(
                f"features contains {one!r}, but X has {table.n_columns} columns: {known}"
                f"{', ...' if table.n_columns > 5 else ''}."
            )
    return columns


def _columns_that_matter(rows: Any, table: CodedTable, predict: _Predict, n: int) -> list[int]:
    """The columns with the largest effect on the average prediction; if tied, the first."""
    if table.n_columns > _MOST_CANDIDATES:
        raise ValueError(
            f"X has {table.n_columns:,} columns, too many to try each of them (the limit is "
            f"{_MOST_CANDIDATES}). Name some in features."
        )
    few = _some_rows(rows, _FEW_ROWS)
    few_coded = code_table(few)
    effects = []
    for j in range(table.n_columns):
        curve = _curve(few, few_coded, j, _FEW_VALUES, predict)
        effects.append(curve.range if len(curve.grid) > 1 else -1.0)
    order = np.argsort(-np.nan_to_num(np.array(effects), nan=-1.0), kind="stable")
    return [int(j) for j in order[:n] if effects[j] > 0.0]


# -- curves --------------------------------------------------------------------------------------


def _curve(rows: Any, table: CodedTable, j: int, n_grid: int, predict: _Predict) -> DependenceCurve:
    """The curve of column j; rows with the values of the grid provide the cells."""
    holders, n_left_out = _holders(table, j, n_grid)
    n, is_number = table.n_rows, table.kinds[j] == "number"
    answers = predict(replace_cells(rows, j, np.tile(np.arange(n), len(holders)),
                                    np.repeat(holders, n)))  # fmt: skip
    by_value = answers.reshape(len(holders), n, -1)
    low, high = np.quantile(by_value, [0.1, 0.9], axis=1)
    values = table.column(j)[holders]
    grid = values if is_number else np.array(_words_of(rows, table, j, holders), dtype=object)
    name = table.names[j]
    return DependenceCurve(
        name=f"x{name}" if isinstance(name, int) else name,
        column=j,
        kind="number" if is_number else "label",
        grid=frozen(grid),
        average=frozen(by_value.mean(axis=1).T),
        low=frozen(low.T),
        high=frozen(high.T),
        n_left_out=n_left_out,
    )


def _holders(table: CodedTable, j: int, n_grid: int) -> tuple[np.ndarray, int]:
    """Rows that have the values of the grid, and the number of labels that are left out."""
    values = table.column(j)
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return np.zeros(1, np.int64), 0  # the column is empty, or cannot be read
    distinct, first, counts = np.unique(values[known], return_index=True, return_counts=True)
    if table.kinds[j] == "number":
        chosen = _spread(distinct, values[known], n_grid)
    elif table.kinds[j] == "date":
        chosen = np.unique(np.linspace(0, len(distinct) - 1, _MOST_LABELS).round().astype(int))
    else:
        chosen = np.argsort(-counts, kind="stable")[:_MOST_LABELS]
    n_left_out = 0 if table.kinds[j] == "number" else len(distinct) - len(chosen)
    return known[first[chosen]], n_left_out


def _spread(distinct: np.ndarray, values: np.ndarray, n_grid: int) -> np.ndarray:
    """Places of at most n_grid values, those nearest to an even grid."""
    if len(distinct) <= n_grid:
        return np.arange(len(distinct))
    low, high = np.quantile(values, _ENDS)
    if not low < high:
        low, high = distinct[0], distinct[-1]
    steps = np.linspace(0.0, 1.0, n_grid)
    wanted = (1.0 - steps) * low + steps * high  # high - low may overflow
    above = np.clip(np.searchsorted(distinct, wanted), 1, len(distinct) - 1)
    nearer_below = wanted - distinct[above - 1] <= distinct[above] - wanted
    return np.unique(np.where(nearer_below, above - 1, above))


def _words_of(rows: Any, table: CodedTable, j: int, holders: np.ndarray) -> list[str]:
    """The cells of a column in some rows, as text."""
    labels = table.labels.get(j)
    if labels is not None:
        codes = table.column(j)[holders]
        return [str(labels[int(code)]) if np.isfinite(code) else "missing" for code in codes]
    cells = column_to_list(take_rows(rows, holders), j)
    return [str(cell) for cell in cells]


# -- tables of any kind --------------------------------------------------------------------------


def _table(X: Any) -> Any:
    """X as a dataframe, a CSR matrix or a two-dimensional array."""
    X = collected(X)
    if sp.issparse(X):
        return X.tocsr()
    return X if is_frame(X) else as_matrix(X)


def _some_rows(X: Any, most: int) -> Any:
    """All rows, or `most` of them, spread evenly."""
    n = X.shape[0]
    if n <= most:
        return X
    return take_rows(X, np.linspace(0, n - 1, most).round().astype(np.int64))
