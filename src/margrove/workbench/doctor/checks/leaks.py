"""Columns that tell the target by themselves.

A column is suspected on a sample of the rows, where sorting all columns is quick, and convicted on
all of them. What a few rows do by chance is no proof: a column is accused only if the target, laid
out by chance, would hardly ever fit it so well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margrove.workbench.doctor.examined_data import Patient
from margrove.workbench.doctor.examined_target import ExaminedTarget
from margrove.workbench.doctor.findings import Finding, Severity, as_options, named, share

__all__ = ["LEAK_CHECKS", "how_column_tells_class", "how_column_tells_number"]

_SURE = np.log(1e4)
_SAMPLE_CELLS = 2_000_000
_NEARLY_ONE = 0.9999
_VALUES_A_ROW = 0.1  # of a column of few values
_NEARLY_ALL = 0.999  # of the rows

Verdict = tuple[Severity, str]


def _leaks(patient: Patient) -> Iterator[Finding]:
    target = patient.target
    if target is None or not patient.table.n_columns:
        return
    there = np.flatnonzero(target.is_there)
    if len(there) < 3:
        return
    tell = how_column_tells_class if target.task == "classification" else how_column_tells_number
    own = target.of_rows(there)
    for j in _suspects(patient, there):
        verdict = tell(patient.table.column(j)[there], own, patient.table.n_columns)
        if verdict is not None:
            severity, how = verdict
            name = patient.names([j])
            yield Finding(
                "leak",
                severity,
                f"{named(name)} {how}.",
                "Find out whether it is known before the target is. If it is made from the "
                "target or written down after it, drop it.",
                name,
                command_way_out="Find out whether it is known before the target is. If it is made "
                "from the target or written down after it, leave it out: "
                f"{as_options('--ignore', name)}.",
            )


def _suspects(patient: Patient, there: np.ndarray) -> list[int]:
    """Columns in whose order the target of some rows is in order, too, and those of few values."""
    table, target = patient.table, patient.target
    assert target is not None
    size = int(np.clip(_SAMPLE_CELLS // table.n_columns, 200, 4000))
    rows = there
    if len(there) > size:
        rows = np.sort(np.random.default_rng(0).choice(there, size, replace=False))
    y = target.codes[rows]
    # Ranks of numbers tell as much as they do, whatever their tails.
    suspected: set[int] = set()
    if table.is_sparse:
        return _sparse_suspects(patient, rows, y)
    few = patient.figures.distinct <= max(2.0, _VALUES_A_ROW * len(there))
    sample = table.of_rows(rows)
    for first, block in sample.blocks():
        order = np.argsort(block, axis=1, kind="stable")
        sorted_y = y[order]
        rises, falls = sorted_y[:, 1:] > sorted_y[:, :-1], sorted_y[:, 1:] < sorted_y[:, :-1]
        if target.task == "classification":
            n_classes = len(np.unique(y))
            in_order = (rises | falls).sum(axis=1) <= n_classes
        else:
            ascending = (rises.sum(axis=1) - falls.sum(axis=1)) / max(1, len(rows) - 1)
            in_order = np.abs(ascending) > 0.9
            in_order |= _correlations(block, target.values[rows]) > 0.99
        suspected.update((first + np.flatnonzero(in_order)).tolist())
    if _may_be_told_by_few(target, len(there)):
        suspected.update(_pure_in_sample(patient, np.flatnonzero(few), rows, y))
    return sorted(j for j in suspected if table.kinds[j] != "unusable")


def _may_be_told_by_few(target: ExaminedTarget, n: int) -> bool:
    return target.task == "classification" or len(target.classes) <= _VALUES_A_ROW * n


def _pure_in_sample(
    patient: Patient, columns: np.ndarray, rows: np.ndarray, y: np.ndarray
) -> list[int]:
    """Columns of few values each of which has one target nearly always."""
    found = []
    for j in columns.tolist():
        values = patient.table.X[rows, j].astype(np.float64)
        if _errors(values, y) <= 0.005 * len(rows):
            found.append(j)
    return found


def _errors(values: np.ndarray, codes: np.ndarray) -> int:
    """Rows whose target is not the commonest among those of their value."""
    place = np.unique(values, return_inverse=True)[1]
    K = int(codes.max()) + 1
    pairs, counts = np.unique(place * K + codes, return_counts=True)
    most = np.zeros(int(place.max()) + 1, np.int64)
    np.maximum.at(most, pairs // K, counts)
    return len(values) - int(most.sum())


def _sparse_suspects(patient: Patient, rows: np.ndarray, y: np.ndarray) -> list[int]:
    """Columns whose correlation with a class, or with the number, is nearly one."""
    table, target, figures = patient.table, patient.target, patient.figures
    assert target is not None
    X = table.X[rows]
    with np.errstate(all="ignore"):
        if target.task == "regression":
            wanted = target.values[rows][:, None]
        else:
            wanted = (y[:, None] == np.unique(y)[None, :]).astype(float)
        mean = np.asarray(X.mean(axis=0)).ravel()
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(squares - mean**2, 0.0))
        centred = wanted - wanted.mean(axis=0)
        products = np.asarray(X.T @ centred) / len(rows)
        r = np.abs(products / (spread[:, None] * wanted.std(axis=0)))
    usable = (figures.distinct > 1) & (figures.infinite == 0)
    return np.flatnonzero(usable & (np.nan_to_num(r).max(axis=1) > 0.98)).tolist()


def _correlations(block: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Absolute correlation of each row of the block with y, over what is not missing."""
    with np.errstate(all="ignore"):
        there = np.isfinite(block)
        counts = np.maximum(there.sum(axis=1), 1)
        unit = np.nanmax(np.where(there, np.abs(block), 0.0), axis=1)
        V = np.where(there, block / np.where(unit > 0, unit, 1.0)[:, None], 0.0)
        y = y / (np.abs(y).max() or 1.0)
        Y = np.where(there, y, 0.0)
        mean_v, mean_y = V.sum(axis=1) / counts, Y.sum(axis=1) / counts
        cov = (V * Y).sum(axis=1) / counts - mean_v * mean_y
        var_v = (V * V).sum(axis=1) / counts - mean_v**2
        var_y = (Y * Y).sum(axis=1) / counts - mean_y**2
        return np.nan_to_num(np.abs(cov) / np.sqrt(var_v * var_y), posinf=0.0)


def how_column_tells_class(
    values: np.ndarray, target: ExaminedTarget, n_columns: int = 1
) -> Verdict | None:
    """How a column (n,), NaN where missing, tells the class of each row; None if it does not."""
    codes = np.unique(target.codes, return_inverse=True)[1]
    n, K = len(codes), int(codes.max()) + 1 if len(codes) else 0
    if K < 2:
        return None
    counts = np.bincount(codes)
    found, place = np.unique(values, return_inverse=True)
    pairs, pair_counts = np.unique(place * K + codes, return_counts=True)
    most = np.zeros(len(found), np.int64)
    np.maximum.at(most, pairs // K, pair_counts)
    errors = n - int(most.sum())
    shares = counts / n
    surprise = float(-n * (shares * np.log(shares)).sum()) - np.log(n_columns)
    has_few = len(found) <= max(2.0, _VALUES_A_ROW * n)
    if has_few and surprise - len(found) * np.log(K) > _SURE:
        if errors == 0 and len(found) == K:
            return "critical", f"is the target under other names: {K} values, one for each class"
        if errors == 0:
            return "warning", (
                f"tells the class of all {n:,} rows: each of its {len(found):,} values goes with "
                "one class only"
            )
        if errors <= (1 - _NEARLY_ALL) * n and 10 * errors <= n - int(counts.max()):
            return "warning", f"tells the class of {share(n - errors, n)} of the rows by itself"
    if errors == 0 and surprise - (K - 1) * np.log(n) - K * np.log(K) > _SURE:
        order = np.argsort(place, kind="stable")
        if np.count_nonzero(np.diff(codes[order])) == K - 1:
            cuts = "one threshold" if K == 2 else f"{K - 1} thresholds"
            return "warning", f"tells the class of all {n:,} rows by {cuts}"
    return None


def how_column_tells_number(
    values: np.ndarray, target: ExaminedTarget, n_columns: int = 1
) -> Verdict | None:
    """How a column (n,), NaN where missing, tells the number of each row; None if it does not."""
    y = target.values
    there = np.isfinite(values)
    n = int(there.sum())
    if n < max(10, 0.5 * len(y)) or n * np.log(n) - np.log(n_columns) < _SURE:
        return None
    x, y = values[there], y[there]
    if np.ptp(y) == 0 or np.ptp(x) == 0:
        return None
    if np.array_equal(x, y):
        return "critical", "is the target"
    r = float(_correlations(x[None, :], y)[0])
    if r > _NEARLY_ONE:
        return "critical", f"is the target up to units: its correlation with it is {r:.6f}"
    order = np.argsort(x, kind="stable")
    steps, same = np.diff(y[order]), np.diff(x[order]) == 0
    is_function = bool(np.all(steps[same] == 0))
    if is_function and (np.all(steps >= 0) or np.all(steps <= 0)):
        direction = "same" if steps.sum() > 0 else "opposite"
        return "warning", f"puts all {n:,} rows in the {direction} order as the target does"
    if is_function and len(np.unique(x)) <= _VALUES_A_ROW * n:
        return "warning", (
            f"tells the target of all {n:,} rows: each of its {len(np.unique(x)):,} values goes "
            "with one number only"
        )
    return None


LEAK_CHECKS = (_leaks,)
