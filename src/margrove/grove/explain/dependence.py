"""Partial dependence: what trees predict if all rows have the same value of one feature, or of two.

    average(g)     the mean over the rows of  f(row with the features set to g)
    individual(g)  f(row with the features set to g), row by row (ICE curves)

For trees, f need not be computed for every row and point; see `partial_dependence_kernels`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.stats.mstats import mquantiles
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from margrove._data import is_missing
from margrove._runtime import require_memory, resolve_n_jobs, run_tiles
from margrove.exceptions import InvalidDataError
from margrove.grove.explain.partial_dependence_kernels import (
    ROWS_OF_A_TILE,
    add_answers,
    add_arrivals,
    add_dependence,
    branches_of_values,
    expected_arrivals,
)
from margrove.grove.read import shown
from margrove.grove.serve import (
    TreeArrays,
    TreeSum,
    dense_blocks,
    questions_of,
    shares_of_branches,
    tree_sum_of,
)

__all__ = ["PartialDependence", "partial_dependence"]

_ROWS_AT_ONCE = 4096
_ENDS = (0.05, 0.95)  # a grid lies between these quantiles, as in scikit-learn
_ARGUMENTS: dict[str, list[Any]] = {
    "kind": [StrOptions({"average", "individual", "both"})],
    "n_grid": [Interval(Integral, 2, None, closed="left")],
    "method": [StrOptions({"exact", "recursion"})],
    "n_jobs": [Integral, None],
}


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """The predictions of a model as functions of one or two features.

    feature_names   of the one or two features
    grid            the values of each of them: numbers or labels
    average         float64 (points,) or (points, points of the second), with a last axis of outputs
                    if the model predicts several numbers for a row; None if not requested
    individual      the same for each row, (n, ...); None if not requested
    """

    feature_names: tuple[str, ...]
    grid: tuple[np.ndarray, ...]
    average: np.ndarray | None
    individual: np.ndarray | None


def partial_dependence(
    model: Any,
    X: Any,
    features: Any,
    *,
    kind: Literal["average", "individual", "both"] = "average",
    grid: Any = None,
    n_grid: int = 100,
    method: Literal["exact", "recursion"] = "exact",
    n_jobs: int | None = None,
) -> PartialDependence:
    """Predictions of a model of trees if one or two features are set to values of a grid.

    Parameters
    ----------
    model : fitted decision tree, random forest, extremely randomised trees, AdaBoostClassifier or \
            gradient boosting
        Its prediction is here: class shares (`predict_proba`), numbers (`predict`), the
        `decision_function` of AdaBoost, or the raw scores of gradient boosting, which are its
        `decision_function`, or numbers before the inverse link of the loss, such as logarithms.
    X : array-like, sparse matrix or dataframe of shape (n, n_features)
        The rows to average over, as for `predict`.
    features : int, str, or a list of one or two of these
        Columns by number or name.
    kind : {"average", "individual", "both"}, default="average"
        "individual" keeps a curve for each row.
    grid : array-like, or a list of two for two features, optional
        Values, or labels of a categorical column; NaN is missing.
    n_grid : int, default=100
        Without `grid`: all distinct values of a column that has fewer, else this many numbers from
        its 5 % to its 95 % quantile. For a categorical column, all labels.
    method : {"exact", "recursion"}, default="exact"
        "exact" averages over the rows of X. "recursion" uses the shares of the training rows in the
        branches, and needs X for the grid only. The two differ if features are correlated.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. Results do not depend on it.

    Returns
    -------
    PartialDependence

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0, 7], [0, 8], [1, 7], [1, 8]], [1.0, 1.0, 2.0, 4.0]
    >>> model = margrove.DecisionTreeRegressor().fit(X, y)
    >>> found = margrove.partial_dependence(model, X, 0, kind="both")
    >>> found.grid[0].tolist(), found.average.tolist()
    ([0.0, 1.0], [1.0, 3.0])
    >>> found.individual[3].tolist()
    [1.0, 4.0]
    """
    given = {"kind": kind, "n_grid": n_grid, "method": method, "n_jobs": n_jobs}
    validate_parameter_constraints(_ARGUMENTS, given, "partial_dependence")
    if method == "recursion" and kind != "average":
        raise ValueError(
            f"method='recursion' has no curves of single rows: kind={kind!r} needs method='exact'."
        )
    n_threads = resolve_n_jobs(n_jobs, unset="all")
    summed = tree_sum_of(model, "partial_dependence")
    columns = _columns(features, summed)
    rows = summed.rows(X)
    if not rows.shape[0]:
        raise InvalidDataError("X of partial_dependence has no rows. Give at least one.")
    axes = _axes(summed, rows, columns, grid, n_grid)
    points = np.array(list(itertools.product(*(axis.numbers for axis in axes))))
    shape = tuple(len(axis.numbers) for axis in axes)
    average = individual = None
    if kind != "individual":
        found = _average(summed, rows, columns, points, method == "exact", n_threads)
        average = summed.shaped(found.reshape(*shape, -1))
    if kind != "average":
        found = _individual(summed, rows, columns, axes, n_threads)
        individual = summed.shaped(found.reshape(len(found), *shape, -1))
    names = tuple(summed.feature_names[column] for column in columns)
    return PartialDependence(names, tuple(axis.shown for axis in axes), average, individual)


# -- features and grids --


@dataclass(frozen=True)
class _Axis:
    """The values of a feature on the grid: as trees read them, and as they are returned."""

    numbers: np.ndarray
    shown: np.ndarray


def _columns(features: Any, summed: TreeSum) -> np.ndarray:
    """The numbers of the one or two columns, checked."""
    is_one = isinstance(features, (str, Integral))
    given = [features] if is_one else list(features) if np.iterable(features) else []
    if len(given) not in (1, 2):
        raise InvalidParameterError(
            "features of partial_dependence is a column, by number or name, or a list of one or "
            f"two of them. Got {features!r} instead."
        )
    names = list(summed.feature_names)
    d = len(names)
    columns = []
    for one in given:
        if isinstance(one, str) and one in names:
            columns.append(names.index(one))
        elif isinstance(one, Integral) and not isinstance(one, bool) and 0 <= int(one) < d:
            columns.append(int(one))
        else:
            raise InvalidParameterError(
                f"features of partial_dependence holds {one!r}, but the model has {d} features: "
                f"{', '.join(map(shown, names[:5]))}{', ...' if d > 5 else ''}."
            )
    if len(set(columns)) < len(columns):
        raise InvalidParameterError(
            f"features of partial_dependence names {shown(names[columns[0]])} twice."
        )
    return np.array(columns, np.int64)


def _axes(summed: TreeSum, rows: Any, columns: np.ndarray, grid: Any, n_grid: int) -> list[_Axis]:
    given = [None] * len(columns) if grid is None else [grid] if len(columns) == 1 else list(grid)
    if len(given) != len(columns):
        raise InvalidParameterError(
            f"grid of partial_dependence needs a list of values for each of {len(columns)} "
            f"features. Got {len(given)}."
        )
    if len(columns) == 1 and grid is not None and len(grid) == 1 and np.ndim(grid[0]) == 1:
        given = list(grid)
    axes = []
    for column, values in zip(columns.tolist(), given, strict=True):
        labels = getattr(summed.model, "categories_", {}).get(column)
        name = summed.feature_names[column]
        if labels is not None:
            axes.append(_axis_of_labels(labels, values, name))
        elif values is not None:
            axes.append(_axis_of_numbers(values, name))
        else:
            axes.append(_axis_of_column(rows[:, [column]], n_grid))
    return axes


def _axis_of_labels(labels: np.ndarray, values: Any, name: str) -> _Axis:
    if values is None:
        return _Axis(np.arange(len(labels), dtype=np.float64), labels)
    number = {label: float(k) for k, label in enumerate(labels.tolist())}
    wanted = _one_axis(values, name).tolist()
    unknown = [label for label in wanted if label not in number and not is_missing(label)]
    if unknown:
        raise InvalidDataError(
            f"grid of partial_dependence contains {unknown[0]!r}, which is not a label of "
            f"{shown(name)}."
        )
    shown_labels = np.empty(len(wanted), dtype=object)
    shown_labels[:] = wanted
    return _Axis(np.array([number.get(label, np.nan) for label in wanted]), shown_labels)


def _axis_of_numbers(values: Any, name: str) -> _Axis:
    try:
        numbers = _one_axis(values, name).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(
            f"grid of partial_dependence must contain numbers for {shown(name)}: {error}."
        ) from error
    if np.isinf(numbers).any():
        raise InvalidDataError(f"grid of partial_dependence contains infinity for {shown(name)}.")
    return _Axis(numbers, numbers)


def _one_axis(values: Any, name: str) -> np.ndarray:
    given = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
    if given.ndim != 1 or not len(given):
        raise InvalidDataError(
            f"grid of partial_dependence needs a list of values for {shown(name)}. Got shape "
            f"{given.shape}."
        )
    return given


def _axis_of_column(column: Any, n_grid: int) -> _Axis:
    cells = np.asarray(column.toarray() if sp.issparse(column) else column, np.float64)[:, 0]
    cells = cells[np.isfinite(cells)]
    values = np.unique(cells)
    if len(values) >= n_grid:
        low, high = mquantiles(cells, prob=_ENDS)
        low, high = (low, high) if low < high else (values[0], values[-1])
        values = np.linspace(low, high, n_grid)
    elif not len(values):
        values = np.array([np.nan])
    return _Axis(values, values)


# -- averages --


def _average(
    summed: TreeSum,
    rows: Any,
    columns: np.ndarray,
    points: np.ndarray,
    is_exact: bool,
    n_threads: int,
) -> np.ndarray:
    """float64 (points, outputs): the mean prediction at each point."""
    n, d = rows.shape
    is_set = np.zeros(d, dtype=bool)
    is_set[columns] = True
    trees, per_round = summed.trees, summed.trees_per_round
    shares = [shares_of_branches(tree) for tree in trees]
    if is_exact:
        arrivals = [np.zeros(len(tree)) for tree in trees]
        for _, block in dense_blocks(rows, _ROWS_AT_ONCE, n_threads):

            def walk(k: int, block: np.ndarray = block) -> None:
                add_arrivals(block, is_set, questions_of(trees[k]), shares[k], arrivals[k])

            run_tiles(walk, len(trees), n_threads)
        arrivals = [counts / n for counts in arrivals]
    else:
        arrivals = [
            expected_arrivals(is_set, tree.feature, tree.parent, share)
            for tree, share in zip(trees, shares, strict=True)
        ]
    found = np.zeros((per_round, len(points), summed.width))
    size = max(1024, -(-len(points) // 16))
    for k, tree in enumerate(trees):
        add_dependence(
            -(-len(points) // size), n_threads, size, points, columns, is_set, questions_of(tree),
            shares[k], tree.parent, arrivals[k], tree.value, found[k % per_round],
        )  # fmt: skip
    return summed.start + summed.joined(found)


# -- single rows --


def _individual(
    summed: TreeSum, rows: Any, columns: np.ndarray, axes: list[_Axis], n_threads: int
) -> np.ndarray:
    """float64 (n, points, outputs): the prediction for each row at each point."""
    n, n_points = rows.shape[0], int(np.prod([len(axis.numbers) for axis in axes]))
    require_memory(
        8.0 * n * n_points * summed.n_outputs,
        f"Curves of {n} rows at {n_points} points",
        "Use fewer rows, a smaller n_grid, or kind='average'.",
    )
    found = np.zeros((n, n_points, summed.n_outputs))
    prepared = [
        (questions_of(tree), shares_of_branches(tree), tree.value, *_cells(tree, columns, axes))
        for tree in summed.trees
    ]
    at_once = max(ROWS_OF_A_TILE, min(_ROWS_AT_ONCE, _ROWS_AT_ONCE * 16 // n_points)) * n_threads
    for begin, X in dense_blocks(rows, at_once, n_threads):
        answers = found[begin : begin + len(X)]
        for k, (questions, share, value, points, cells) in enumerate(prepared):
            add_answers(-(-len(X) // ROWS_OF_A_TILE), n_threads, X, points, columns, cells,
                        questions, share, value, k % summed.trees_per_round * summed.width,
                        answers)  # fmt: skip
    found += summed.start
    return found


def _cells(
    tree: TreeArrays, columns: np.ndarray, axes: list[_Axis]
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct points for a tree, and for each point of the grid which of these it equals."""
    values, places = [], []
    for column, axis in zip(columns.tolist(), axes, strict=True):
        answers = branches_of_values(axis.numbers, column, questions_of(tree))
        _, first, place = np.unique(answers, axis=0, return_index=True, return_inverse=True)
        values.append(axis.numbers[first])
        places.append(place.ravel())
    points = np.array(list(itertools.product(*values)))
    cells = places[0]
    for place, distinct in zip(places[1:], values[1:], strict=True):
        cells = (cells[:, None] * len(distinct) + place).ravel()
    return points, cells.astype(np.int64)
