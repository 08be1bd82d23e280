"""What can be wrong with rows: copies, contradictions, rows without any value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from margrove._data import CodedTable, scan_rows
from margrove.workbench.doctor.examined_data import Patient
from margrove.workbench.doctor.examined_target import ExaminedTarget
from margrove.workbench.doctor.findings import Finding, Severity, share

__all__ = ["ROW_CHECKS", "ceiling_of", "groups_of_rows"]

_WORTH_SAYING = 0.01  # of the rows
_SERIOUS = 0.05


@dataclass(frozen=True)
class Ceiling:
    """The best that can be done where equal rows have different targets.

    score   the accuracy, or the coefficient of determination, that no model can exceed
    rows    int64  rows in groups whose targets differ
    """

    score: float
    rows: np.ndarray


def groups_of_rows(table: CodedTable) -> np.ndarray:
    """int64 (n,): rows of equal content have the same number, counted from 0."""
    if not table.n_columns:
        return np.zeros(table.n_rows, np.int64)
    X = table.X
    if not table.is_sparse and np.isnan(X).any():
        X = np.where(np.isnan(X), np.nan, X)  # one kind of NaN
    return np.unique(scan_rows(X).hashes, return_inverse=True)[1].astype(np.int64)


def ceiling_of(groups: np.ndarray, target: ExaminedTarget) -> Ceiling:
    """What equal rows with different targets leave possible."""
    there = np.flatnonzero(target.is_there)
    groups = np.unique(groups[there], return_inverse=True)[1]
    if target.task == "classification":
        K = max(1, len(target.classes))
        pairs, counts = np.unique(groups * K + target.codes[there], return_counts=True)
        most = np.zeros(groups.max() + 1, np.int64)
        np.maximum.at(most, pairs // K, counts)
        classes_of = np.bincount(pairs // K)
        return Ceiling(float(most.sum() / len(there)), there[classes_of[groups] > 1])
    y = target.values[there]
    unit = np.abs(y).max() or 1.0
    y = y / unit
    means = np.bincount(groups, weights=y) / np.bincount(groups)
    lows, highs = np.full(len(means), np.inf), np.full(len(means), -np.inf)
    np.minimum.at(lows, groups, y)
    np.maximum.at(highs, groups, y)
    within, total = np.sum((y - means[groups]) ** 2), np.sum((y - y.mean()) ** 2)
    score = 1.0 - float(within / total) if total > 0 else 1.0
    return Ceiling(score, there[(highs > lows)[groups]])


def _copies_and_contradictions(patient: Patient) -> Iterator[Finding]:
    table, target = patient.table, patient.target
    if table.n_rows < 2 or not (patient.figures.distinct > 1).any():
        return  # there is nothing in which rows could differ
    groups = groups_of_rows(table)
    if target is None:
        yield from _copies(patient, groups, "")
        return
    if not target.is_there.any():
        return
    with_target = np.unique(groups * (int(target.codes.max()) + 2) + target.codes + 1,
                            return_inverse=True)[1]  # fmt: skip
    yield from _copies(patient, with_target, " with the same target")
    ceiling = ceiling_of(groups, target)
    n = int(target.is_there.sum())
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
        "Add columns that tell them apart, or look for wrong targets.",
        rows=patient.row_numbers(ceiling.rows),
    )


def _copies(patient: Patient, groups: np.ndarray, how: str) -> Iterator[Finding]:
    first = np.unique(groups, return_index=True)[1]
    n, extra = len(groups), len(groups) - len(first)
    if extra < max(2, _WORTH_SAYING * n):
        return
    is_copy = np.ones(n, dtype=bool)
    is_copy[first] = False
    yield Finding(
        "duplicated_rows",
        "warning" if extra >= _SERIOUS * n else "notice",
        f"{extra:,} of {n:,} rows ({share(extra, n)}) are copies of another one{how}: what was "
        "learnt in one fold is asked in another, which flatters cross-validation.",
        "Drop them if they are the same observation twice; else keep copies in the same fold "
        "(GroupKFold).",
        rows=patient.row_numbers(np.flatnonzero(is_copy)),
        command_way_out="Drop them if they are the same observation twice; the folds of the "
        "commands do not keep copies together.",
    )


def _empty_rows(patient: Patient) -> Iterator[Finding]:
    table = patient.table
    if table.is_sparse or table.n_columns < 2 or not table.n_rows:
        return
    usable = np.flatnonzero(~table.of_kind("unusable") & (patient.figures.missing < table.n_rows))
    if len(usable) < 2:
        return
    rows = np.flatnonzero(np.isnan(table.X[:, usable]).all(axis=1))
    if len(rows):
        yield Finding(
            "empty_rows",
            "warning",
            f"{len(rows):,} of {table.n_rows:,} rows have no value in any column.",
            "Drop them.",
            rows=patient.row_numbers(rows),
        )


ROW_CHECKS = (_copies_and_contradictions, _empty_rows)
