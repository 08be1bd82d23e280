"""What boosting is given: X as its learner takes it, labels or numbers, weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.ensemble.mixed_tables import read_mixed, read_mixed_like_fitted
from margrove.grove.criteria import CRITERIA
from margrove.grove.decision_tree import DecisionTree
from margrove.grove.encoding import TreeTable, read_table, read_table_like_fitted
from margrove.grove.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["BoostingRows", "is_plain_stump", "is_plain_tree", "read_rows", "read_rows_like_fitted"]

_AS_THEY_ARE = {  # of trees that are grown on one table for all rounds
    "split": ("binary",),
    "splitter": ("best", "random"),
    "class_weight": (None,),
    "early_stopping": (False,),
}
_OF_STUMPS = {
    "splitter": ("best",),
    "max_depth": (1,),
    "criterion": ("gini", "entropy", "log_loss", "error"),
    "min_samples_split": (2,),
    "min_samples_leaf": (1,),
    "min_weight_fraction_leaf": (0.0,),
    "max_features": (None,),
    "max_leaf_nodes": (None,),
    "min_impurity_decrease": (0.0,),
    "ccp_alpha": (0.0,),
    "monotonic_cst": (None,),
    "significance": (None,),
    "max_error": (None,),
    "max_bins": (None,),
}


@dataclass(frozen=True)
class BoostingRows:
    """X: as trees take it (`table`), or as any estimator does."""

    X: Any
    table: TreeTable | None
    attributes: dict[str, Any]

    def of_rows(self, rows: np.ndarray | slice) -> BoostingRows:
        if isinstance(rows, slice):
            return self
        table = None if self.table is None else self.table.of_rows(rows)
        return BoostingRows(self.X[rows] if table is None else table.X, table, self.attributes)


def is_plain_tree(base: Any) -> bool:
    """Whether it can be grown on a table of codes that is made once."""
    if type(base) not in (DecisionTreeClassifier, DecisionTreeRegressor):
        return False
    return CRITERIA[base.criterion].own is None and _is_among(base, _AS_THEY_ARE)


def is_plain_stump(base: Any, rows: BoostingRows) -> bool:
    """Whether it is a stump of classes, on numbers that are all there."""
    table = rows.table
    if table is None or not isinstance(base, DecisionTreeClassifier) or table.categories:
        return False
    if not _is_among(base, _OF_STUMPS):
        return False
    values = table.X.data if sp.issparse(table.X) else table.X
    return not np.isnan(values).any()


def _is_among(base: DecisionTree, allowed: dict[str, tuple[Any, ...]]) -> bool:
    return all(
        getattr(base, name) in values for name, values in allowed.items() if hasattr(base, name)
    )


def read_rows(X: Any, estimator: Any, base: Any, *, as_table: bool) -> BoostingRows:
    """Check X as given to `fit`; nothing is stored on the estimator."""
    if as_table:
        table = read_table(X, estimator, base.categorical_features)
        return BoostingRows(table.X, table, table.attributes)
    mixed = read_mixed(X, estimator, base)
    return BoostingRows(mixed.X, None, mixed.attributes)


def read_rows_like_fitted(X: Any, estimator: Any) -> Any:
    """Check X as given to `predict`."""
    if hasattr(estimator, "categories_"):
        return read_table_like_fitted(X, estimator)
    return read_mixed_like_fitted(X, estimator)
