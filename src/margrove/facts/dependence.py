"""Partial dependence of any model: what it says if all rows had the same value of a column.

    average(g)   the mean over the rows of  f(row with the column set to g)

f are probabilities of classes, or decision values where there are none, or numbers. Values g are
some that the column has, so that a table of any type (labels, dates, categories) is asked about in
its own terms, before any step of a pipeline. `margrove.partial_dependence` is exact and fast, for
trees.
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
from margrove.facts.plain_values import Plain, frozen
from margrove.grove.read import shown

__all__ = ["DependenceCurve", "PartialDependenceFacts", "partial_dependence_facts"]

_MOST_LABELS = 12  # of a column that is asked about
_MOST_CANDIDATES = 400  # columns among which the ones that matter are looked for
_ENDS = (0.05, 0.95)  # quantiles that a grid of numbers lies between, as scikit-learn's
_FEW_ROWS, _FEW_VALUES = 60, 6  # for a first look at a column


@dataclass(frozen=True, kw_only=True, eq=False)
class DependenceCurve(Plain):
    """Predictions of a model as one column changes.

    Attributes
    ----------
    name : str
    column : int
    kind : {"number", "label"}
        Dates are told as labels, in their order.
    grid : ndarray of float or of str
        Values of the column; of labels, the most frequent.
    average : ndarray of shape (n_outputs, n_grid)
    low, high : ndarray of shape (n_outputs, n_grid)
        The 10 % and 90 % quantiles of what is said of single rows.
    n_left_out : int
        Labels that are not asked about.
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
        """The range of the average, of the output for which it is largest."""
        return float((self.average.max(axis=1) - self.average.min(axis=1)).max())


@dataclass(frozen=True, kw_only=True, eq=False)
class PartialDependenceFacts(Plain):
    """Curves of some columns.

    Attributes
    ----------
    curves : tuple of DependenceCurve
        In the order asked for; else the column that moves the answer most comes first.
    outputs : tuple of str
        What the answers are of: the second of two classes, all of more, or "prediction".
    response : {"probability", "score", "prediction"}
    n_rows : int
        How many rows averages are over.
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
    """Predictions of a model as one column of a table changes and the others stay as they are.

    Parameters
    ----------
    model : fitted classifier or regressor
        Any under scikit-learn's API, or a pipeline, whose X is the table before its first step.
    X : array-like, sparse matrix or dataframe of shape (n, n_features)
        As for `predict`.
    features : list of int or str, optional
        Columns by number or name. By default those that move the answer most.
    n_grid : int, default=20
        Values of a column of numbers, at most: all that it has, or some that are spread evenly
        between its 5 % and its 95 % quantile. Of labels, the twelve most frequent.
    n_features : int, default=4
        How many columns, where `features` does not say which.
    max_rows : int, default=500
        Rows to average over; of more, so many spread evenly over X.

    Returns
    -------
    PartialDependenceFacts

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0, 7], [0, 8], [1, 7], [1, 8]], [1.0, 1.0, 2.0, 4.0]
    >>> model = margrove.DecisionTreeRegressor().fit(X, y)
    >>> told = margrove.facts.partial_dependence_facts(model, X, [0])
    >>> told.curves[0].grid.tolist(), told.curves[0].average.tolist()
    ([0.0, 1.0], [[1.0, 3.0]])
    """
    for name, value, least in (("n_grid", n_grid, 2), ("n_features", n_features, 1),
                               ("max_rows", max_rows, 1)):  # fmt: skip
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number, at least {least}. Got {value!r}.")
    rows = _some_rows(_table(X), int(max_rows))
    table = code_table(rows)
    if not table.n_rows:
        raise InvalidDataError("X of partial_dependence_facts has no rows. Give at least one.")
    ask, outputs, response = _question(model)
    if features is None:
        columns = _columns_that_matter(rows, table, ask, int(n_features))
    else:
        columns = _columns_asked(features, table)
    return PartialDependenceFacts(
        curves=tuple(_curve(rows, table, j, int(n_grid), ask) for j in columns),
        outputs=outputs,
        response=response,
        n_rows=table.n_rows,
    )


# -- what is asked -------------------------------------------------------------------------------

_Ask = Callable[[Any], np.ndarray]


def _question(model: Any) -> tuple[_Ask, tuple[str, ...], str]:
    """A function from rows to predictions (n, n_outputs), names of the outputs, and their kind."""
    if not hasattr(model, "classes_"):
        return lambda rows: _numbers(model, rows), ("prediction",), "prediction"
    names = tuple(str(label) for label in classes_of(model).tolist())
    first = 1 if len(names) == 2 else 0  # of two classes, the second says all

    def ask(rows: Any) -> np.ndarray:
        scores = class_scores(model, rows)
        if scores is None:
            said = np.asarray(model.predict(rows))
            return np.asarray(said[:, None] == classes_of(model)[None, first:], dtype=np.float64)
        return scores.values[:, first:]

    has_scores = hasattr(model, "decision_function") and not hasattr(model, "predict_proba")
    return ask, names[first:], "score" if has_scores else "probability"


def _numbers(model: Any, rows: Any) -> np.ndarray:
    answers = np.asarray(model.predict(rows), dtype=np.float64)
    if answers.ndim == 2 and answers.shape[1] > 1:
        raise TypeError(
            f"This {type(model).__name__} has {answers.shape[1]} outputs, and one is needed."
        )
    return answers.reshape(len(answers), 1)


def _columns_asked(features: Any, table: CodedTable) -> list[int]:
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
                f"features holds {one!r}, but X has {table.n_columns} columns: {known}"
                f"{', ...' if table.n_columns > 5 else ''}."
            )
    return columns


def _columns_that_matter(rows: Any, table: CodedTable, ask: _Ask, n: int) -> list[int]:
    """The columns that move the average prediction most; among equals, the first."""
    if table.n_columns > _MOST_CANDIDATES:
        raise ValueError(
            f"X has {table.n_columns:,} columns, too many to try each of them (the limit is "
            f"{_MOST_CANDIDATES}). Name some in features."
        )
    few = _some_rows(rows, _FEW_ROWS)
    looked_at = code_table(few)
    moves = []
    for j in range(table.n_columns):
        curve = _curve(few, looked_at, j, _FEW_VALUES, ask)
        moves.append(curve.range if len(curve.grid) > 1 else -1.0)
    order = np.argsort(-np.nan_to_num(np.array(moves), nan=-1.0), kind="stable")
    return [int(j) for j in order[:n] if moves[j] > 0.0]


# -- curves --------------------------------------------------------------------------------------


def _curve(rows: Any, table: CodedTable, j: int, n_grid: int, ask: _Ask) -> DependenceCurve:
    holders, n_left_out = _holders(table, j, n_grid)
    n, is_number = table.n_rows, table.kinds[j] == "number"
    answers = ask(replace_cells(rows, j, np.tile(np.arange(n), len(holders)),
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
    """Rows that hold the values to ask about, and how many labels are left out."""
    values = table.column(j)
    there = np.flatnonzero(np.isfinite(values))
    if not len(there):
        return np.zeros(1, np.int64), 0  # the column is empty, or holds what cannot be read
    distinct, first, counts = np.unique(values[there], return_index=True, return_counts=True)
    if table.kinds[j] == "number":
        chosen = _spread(distinct, values[there], n_grid)
    elif table.kinds[j] == "date":
        chosen = np.unique(np.linspace(0, len(distinct) - 1, _MOST_LABELS).round().astype(int))
    else:
        chosen = np.argsort(-counts, kind="stable")[:_MOST_LABELS]
    n_left_out = 0 if table.kinds[j] == "number" else len(distinct) - len(chosen)
    return there[first[chosen]], n_left_out


def _spread(distinct: np.ndarray, values: np.ndarray, n_grid: int) -> np.ndarray:
    """Positions of at most n_grid values, the nearest ones to an even grid."""
    if len(distinct) <= n_grid:
        return np.arange(len(distinct))
    low, high = np.quantile(values, _ENDS)
    if not low < high:
        low, high = distinct[0], distinct[-1]
    part = np.linspace(0.0, 1.0, n_grid)
    wanted = (1.0 - part) * low + part * high  # the range itself may overflow
    above = np.clip(np.searchsorted(distinct, wanted), 1, len(distinct) - 1)
    nearer_below = wanted - distinct[above - 1] <= distinct[above] - wanted
    return np.unique(np.where(nearer_below, above - 1, above))


def _words_of(rows: Any, table: CodedTable, j: int, holders: np.ndarray) -> list[str]:
    """Cells of the table as text."""
    labels = table.labels.get(j)
    if labels is not None:
        codes = table.column(j)[holders]
        return [str(labels[int(code)]) if np.isfinite(code) else "missing" for code in codes]
    cells = column_to_list(take_rows(rows, holders), j)
    return [str(cell) for cell in cells]


# -- tables of any kind --------------------------------------------------------------------------


def _table(X: Any) -> Any:
    """A frame, a CSR matrix or an array of two dimensions."""
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
