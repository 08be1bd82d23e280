"""Checks of X for boosting, and checks which trees the fast learners support."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime import region
from margrove.ensemble.bagging import MixedTable, read_mixed, read_mixed_like_fitted
from margrove.grove import CRITERIA, DecisionTree, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.table import TreeTable, read_table, read_table_like_fitted

__all__ = [
    "BoostingRows",
    "has_infinity",
    "has_nan",
    "is_plain_tree",
    "is_simple_tree",
    "is_small_tree",
    "read_rows",
    "read_rows_like_fitted",
]

_OF_PLAIN_TREES = {  # parameters of trees that can be grown on one table for all rounds
    "split": ("binary",),
    "splitter": ("best", "random"),
    "class_weight": (None,),
    "early_stopping": (False,),
}
_OF_SIMPLE_TREES = {
    "splitter": ("best",),
    "min_weight_fraction_leaf": (0.0,),
    "max_features": (None,),
    "min_impurity_decrease": (0.0,),
    "ccp_alpha": (0.0,),
    "monotonic_cst": (None,),
    "significance": (None,),
    "max_error": (None,),
}
_OF_SMALL_TREES = {
    "min_samples_split": (2,),
    "min_samples_leaf": (1,),
    "max_leaf_nodes": (None,),
    "max_bins": (None,),
}
_CELLS_OF_A_TILE = 1 << 16


@dataclass(frozen=True)
class BoostingRows:
    """Checked X: for trees of this library with `table`, otherwise for any estimator.

    is_by_column: X was given as CSC, and members get CSC
    """

    X: Any
    table: TreeTable | None
    attributes: dict[str, Any]
    is_by_column: bool = False

    def of_rows(self, rows: np.ndarray | slice) -> BoostingRows:
        if isinstance(rows, slice):
            return self
        table = None if self.table is None else self.table.of_rows(rows)
        return replace(self, X=self.X[rows] if table is None else table.X, table=table)

    @property
    def mixed(self) -> MixedTable:
        """X for members that are not trees of this library."""
        return MixedTable(self.X, self.attributes, self.is_by_column)


def is_plain_tree(base: Any) -> bool:
    """Whether `base` is a tree that can be grown on one binned table for all rounds."""
    if type(base) not in (DecisionTreeClassifier, DecisionTreeRegressor):
        return False
    return CRITERIA[base.criterion].impurity is None and _is_among(base, _OF_PLAIN_TREES)


def is_small_tree(base: Any, rows: BoostingRows, deepest: int, n_threads: int = 1) -> bool:
    """Whether `base` is a simple tree of at most `deepest` levels, without other size limits."""
    if getattr(base, "max_depth", None) is None or base.max_depth > deepest:
        return False
    return _is_among(base, _OF_SMALL_TREES) and is_simple_tree(base, rows, n_threads)


def is_simple_tree(base: Any, rows: BoostingRows, n_threads: int = 1) -> bool:
    """Whether `base` is a classification tree that has only size limits, on numeric columns
    without missing values."""
    table = rows.table
    if table is None or not isinstance(base, DecisionTreeClassifier) or table.categories:
        return False
    criterion = CRITERIA[base.criterion]
    if criterion.impurity is not None or not criterion.in_forests:
        return False
    if not _is_among(base, _OF_SIMPLE_TREES):
        return False
    return not has_nan(table.X, n_threads)


def has_nan(X: Any, n_threads: int = 1) -> bool:
    """Whether a value is missing."""
    values = X.data if sp.issparse(X) else X
    if not _is_large_and_plain(values):
        return bool(np.isnan(values).any())
    return bool(_kinds_of(values, n_threads)[:, 0].any())


def has_infinity(X: Any, n_threads: int = 1) -> bool:
    """Whether a value is infinite."""
    values = X.data if sp.issparse(X) else X
    if not _is_large_and_plain(values):
        return bool(np.isinf(values).any())
    return bool(_kinds_of(values, n_threads)[:, 1].any())


def _is_large_and_plain(values: Any) -> bool:
    """Whether it is an array of the one type for which the kernel is compiled."""
    flags = values.flags
    return bool(
        values.size > _CELLS_OF_A_TILE
        and values.dtype == np.float64
        and flags.c_contiguous
        and flags.writeable
    )


def _kinds_of(values: np.ndarray, n_threads: int) -> np.ndarray:
    """Whether each tile has NaN, and infinity: bool (tiles, 2)."""
    n_tiles = -(-values.size // _CELLS_OF_A_TILE)
    found = np.zeros((n_tiles, 2), np.bool_)
    _find_special_values(n_tiles, n_threads, values.reshape(-1), found)
    return found


@region(bare=True, fast_sums=True)
def _find_special_values(tile, values, found):
    part = values[tile * _CELLS_OF_A_TILE : (tile + 1) * _CELLS_OF_A_TILE]
    total = 0.0
    for k in range(len(part)):
        total += part[k] * 0.0
    if total == 0.0:
        return
    for k in range(len(part)):
        found[tile, 0] |= part[k] != part[k]
        found[tile, 1] |= abs(part[k]) == np.inf


def _is_among(base: DecisionTree, allowed: dict[str, tuple[Any, ...]]) -> bool:
    params = {name: getattr(base, name) for name in allowed if hasattr(base, name)}
    return all(np.ndim(value) == 0 and value in allowed[name] for name, value in params.items())


def read_rows(X: Any, estimator: Any, base: Any, *, as_table: bool) -> BoostingRows:
    """Check X as given to `fit`; the estimator is not changed."""
    if as_table:
        table = read_table(X, estimator, base.categorical_features)
        return BoostingRows(table.X, table, table.attributes)
    mixed = read_mixed(X, estimator, base, rows_of_any_shape=True)
    return BoostingRows(mixed.X, None, mixed.attributes, mixed.is_by_column)


def read_rows_like_fitted(X: Any, estimator: Any) -> Any:
    """Check X as given to `predict`: it must have the columns of the fit."""
    if hasattr(estimator, "categories_"):
        return read_table_like_fitted(X, estimator)
    return read_mixed_like_fitted(X, estimator)
