"""Checks of rows: copies, contradictions, rows without any value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from margrove._data import CodedTable, scan_rows
from margrove.workbench.doctor.examined_data import ExaminedData
from margrove.workbench.doctor.examined_target import ExaminedTarget
from margrove.workbench.doctor.findings import Finding, Severity, share

__all__ = ["ROW_CHECKS", "ceiling_of", "groups_of_rows"]

_MIN_COPIES = 0.01  # share of the rows
_SERIOUS = 0.05


@dataclass(frozen=True)
class Ceiling:
    """The best possible score if equal rows have different targets.

    score   the accuracy, or the coefficient of determination, that no model can exceed
    rows    int64  rows of groups with different targets
    """

    score: float
    rows: np.ndarray


def groups_of_rows(table: CodedTable) -> np.ndarray:
    """int64 (n,): a number for each row, from 0; equal rows have the same number."""
    if not table.n_columns:
        return np.zeros(table.n_rows, np.int64)
    X = table.X
    if not table.is_sparse and np.isnan(X).any():
        X = np.where(np.isnan(X), np.nan, X)  # one bit pattern for all NaN
    return np.unique(scan_rows(X).hashes, return_inverse=True)[1].astype(np.int64)


def ceiling_of(groups: np.ndarray, target: ExaminedTarget) -> Ceiling:
    """The best score that equal rows with different targets allow."""
    known = np.flatnonzero(target.is_known)
    groups = np.unique(groups[known], return_inverse=True)[1]
    if target.task == "classification":
        K = max(1, len(target.classes))
        pairs, counts = np.unique(groups * K + target.codes[known], return_counts=True)
        most = np.zeros(groups.max() + 1, np.int64)
        np.maximum.at(most, pairs // K, counts)
        classes_of = np.bincount(pairs // K)
        return Ceiling(float(most.sum() / len(known)), known[classes_of[groups] > 1])
    y = target.values[known]
    unit = np.abs(y).max() or 1.0
    y = y / unit
    means = np.bincount(groups, weights=y) / np.bincount(groups)
    lows, highs = np.full(len(means), np.inf), np.full(len(means), -np.inf)
    np.minimum.at(lows, groups, y)
    np.maximum.at(highs, groups, y)
    within, total = np.sum((y - means[groups]) ** 2), np.sum((y - y.mean()) ** 2)
    score = 1.0 - float(within / total) if total > 0 else 1.0
    return Ceiling(score, known[(highs > lows)[groups]])


def _copies_and_contradictions(data: ExaminedData) -> Iterator[Finding]:
    table, target = data.table, data.target
    if table.n_rows < 2 or not (data.figures.distinct > 1).any():
        return  # all rows are equal
    groups = groups_of_rows(table)
    if target is None:
        yield from _copies(data, groups, "")
        return
    if not target.is_known.any():
        return
    with_target = np.unique(groups * (int(target.codes.max()) + 2) + target.codes + 1,
                            return_inverse=True)[1]  # fmt: skip
    yield from _copies(data, with_target, " with the same target")
    ceiling = ceiling_of(groups, target)
    n = int(target.is_known.sum())
    if len(ceiling.rows) < max(2, 0.001 * n):
        return
    lost = 1.0 - ceiling.score
    severity: Severity = "warning" if lost >= _SERIOUS else "notice"
    bound = (
        f"no model can be right on more than {share(ceiling.score, 1)} of these rows"
        if target.task == "classification"
        else f"no model can explain more than {share(ceiling.score, 1)} of the target's variance"
    )
    yield Finding(
        "contradicting_rows",
        severity,
        f"{len(ceiling.rows):,} of {n:,} rows have the same features as another row but a "
        f"different target: {bound}.",
        "Add columns that distinguish them, or look for wrong targets.",
        rows=data.row_numbers(ceiling.rows),
    )


def _copies(data: ExaminedData, groups: np.ndarray, how: str) -> Iterator[Finding]:
    first = np.unique(groups, return_index=True)[1]
    n, extra = len(groups), len(groups) - len(first)
    if extra < max(2, _MIN_COPIES * n):
        return
    is_copy = np.ones(n, dtype=bool)
    is_copy[first] = False
    yield Finding(
        "duplicated_rows",
        "warning" if extra >= _SERIOUS * n else "notice",
        f"{extra:,} of {n:,} rows ({share(extra, n)}) are copies of another one{how}: copies in "
        "other folds make cross-validation too optimistic.",
        "Drop them if they are the same observation twice; otherwise keep copies in the same fold "
        "(GroupKFold).",
        rows=data.row_numbers(np.flatnonzero(is_copy)),
        command_way_out="Drop them if they are the same observation twice; the folds of the "
        "commands do not keep copies together.",
    )


def _empty_rows(data: ExaminedData) -> Iterator[Finding]:
    table = data.table
    if table.is_sparse or table.n_columns < 2 or not table.n_rows:
        return
    usable = np.flatnonzero(~table.of_kind("unusable") & (data.figures.missing < table.n_rows))
    if len(usable) < 2:
        return
    rows = np.flatnonzero(np.isnan(table.X[:, usable]).all(axis=1))
    if len(rows):
        yield Finding(
            "empty_rows",
            "warning",
            f"{len(rows):,} of {table.n_rows:,} rows have no value in any column.",
            "Drop them.",
            rows=data.row_numbers(rows),
        )


ROW_CHECKS = (_copies_and_contradictions, _empty_rows)
