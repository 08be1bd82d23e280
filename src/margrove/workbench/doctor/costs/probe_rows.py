"""The rows of probes: the table as it was given, or as a family of learners needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import CodedTable
from margrove.workbench.doctor.costs.families import Family
from margrove.workbench.doctor.examined_data import final_step
from margrove.workbench.doctor.examined_target import ExaminedTarget

__all__ = ["GivenRows", "PreparedRows", "RowSource"]

_MAX_LABELS = 100  # of a column that get an indicator each


@dataclass(frozen=True)
class RowSource:
    """Gives rows for probes, from rows in random order."""

    def sample(self, size: int, family: Family, learner: Any) -> tuple[Any, Any, Any]:
        """X and y of the first `size` rows, and the learner, which may get categorical_features."""
        raise NotImplementedError

    @property
    def n_rows(self) -> int:
        raise NotImplementedError


@dataclass(frozen=True)
class GivenRows(RowSource):
    """Rows of X and y as given, for a given estimator."""

    X: Any
    y: Any
    rows: np.ndarray

    def sample(self, size: int, family: Family, learner: Any) -> tuple[Any, Any, Any]:
        from sklearn.utils import _safe_indexing

        rows = np.sort(self.rows[:size])
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), learner

    @property
    def n_rows(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class PreparedRows(RowSource):
    """Rows of the coded table, prepared for each family of learners."""

    table: CodedTable
    target: ExaminedTarget
    rows: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def sample(self, size: int, family: Family, learner: Any) -> tuple[Any, Any, Any]:
        rows = np.sort(self.rows[:size])
        table = self.table.of_rows(rows)
        is_regression = self.target.task == "regression"
        y = self.target.values[rows] if is_regression else self.target.codes[rows]
        if table.is_sparse:
            return _finite_sparse(table.X, family), y, learner
        X = np.array(table.X, dtype=np.float64)
        X[np.isinf(X)] = np.nan
        if family.table_form == "codes":
            labels = np.flatnonzero(self.table.of_kind("label", "mixed")).tolist()
            if labels:
                learner = final_step(learner).set_params(categorical_features=labels)
            return X, y, learner
        filled = _filled(X)
        if family.table_form == "filled":
            return filled, y, learner
        return _scaled(filled, table), y, learner


def _filled(X: np.ndarray) -> np.ndarray:
    gaps = np.isnan(X)
    if not gaps.any():
        return X
    counts = np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, np.where(gaps, 0.0, X).sum(axis=0) / counts, X)


def _finite_sparse(X: Any, family: Family) -> Any:
    data = np.where(np.isfinite(X.data), X.data, 0.0)
    X = sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
    if family.table_form != "scaled":
        return X
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel()
    return (X @ sp.diags_array(1.0 / np.where(largest > 0, largest, 1.0))).tocsr()


def _scaled(X: np.ndarray, table: CodedTable) -> np.ndarray:
    """Standardised numbers, followed by indicators of labels."""
    is_label = table.of_kind("label", "mixed")
    with np.errstate(all="ignore"):
        numbers = X[:, ~is_label]
        spread = numbers.std(axis=0)
        good = np.isfinite(spread) & (spread > 0)
        numbers = (numbers - numbers.mean(axis=0)) / np.where(good, spread, 1.0)
        blocks = [np.where(good, numbers, 0.0)]
    for j in np.flatnonzero(is_label).tolist():
        n_labels = min(len(table.labels.get(j, ())), _MAX_LABELS)
        blocks.append((X[:, [j]] == np.arange(n_labels)).astype(np.float64))
    return np.ascontiguousarray(np.concatenate(blocks, axis=1))
