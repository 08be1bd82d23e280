"""Columns that determine the target.

Candidates are found on a sample of the rows, where sorting all columns is fast, and then checked on
all rows. A column is reported only if a target in random order would hardly ever fit it so well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margrove.workbench.doctor.examined_data import ExaminedData
from margrove.workbench.doctor.examined_target import ExaminedTarget
from margrove.workbench.doctor.findings import Finding, Severity, as_options, named, share

__all__ = ["LEAK_CHECKS", "how_column_tells_class", "how_column_tells_number"]

_SURE = np.log(1e4)
_SAMPLE_CELLS = 2_000_000
_NEARLY_ONE = 0.9999
_FEW_VALUES = 0.1  # a column of few values has at most this share of the rows as values
_NEARLY_ALL = 0.999  # share of the rows

_CHECK_TIME = (
    "Check whether its value is known before the target. If it is computed from the target or "
    "recorded after it,"
)

Verdict = tuple[Severity, str]


def _leaks(data: ExaminedData) -> Iterator[Finding]:
    target = data.target
    if target is None or not data.table.n_columns:
        return
    known = np.flatnonzero(target.is_known)
    if len(known) < 3:
        return
    is_classes = target.task == "classification"
    check = how_column_tells_class if is_classes else how_column_tells_number
    known_target = target.of_rows(known)
    for j in _candidates(data, known):
        verdict = check(data.table.column(j)[known], known_target, data.table.n_columns)
        if verdict is not None:
            severity, how = verdict
            name = data.names([j])
            yield Finding(
                "leak",
                severity,
                f"{named(name)} {how}.",
                f"{_CHECK_TIME} drop it.",
                name,
                command_way_out=f"{_CHECK_TIME} leave it out: {as_options('--ignore', name)}.",
            )


def _candidates(data: ExaminedData, known: np.ndarray) -> list[int]:
    """Columns whose order, or whose few values, nearly determine the target in a sample."""
    table, target = data.table, data.target
    assert target is not None
    size = int(np.clip(_SAMPLE_CELLS // table.n_columns, 200, 4000))
    rows = known
    if len(known) > size:
        rows = np.sort(np.random.default_rng(0).choice(known, size, replace=False))
    y = target.codes[rows]  # of numbers, their ranks
    found: set[int] = set()
    if table.is_sparse:
        return _sparse_candidates(data, rows, y)
    few = data.figures.distinct <= max(2.0, _FEW_VALUES * len(known))
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
        found.update((first + np.flatnonzero(in_order)).tolist())
    if target.task == "classification" or len(target.classes) <= _FEW_VALUES * len(known):
        found.update(_pure_in_sample(data, np.flatnonzero(few), rows, y))
    return sorted(j for j in found if table.kinds[j] != "unusable")


def _pure_in_sample(
    data: ExaminedData, columns: np.ndarray, rows: np.ndarray, y: np.ndarray
) -> list[int]:
    """Columns whose values nearly always have one target each."""
    found = []
    for j in columns.tolist():
        values = data.table.X[rows, j].astype(np.float64)
        if _errors(values, y) <= 0.005 * len(rows):
            found.append(j)
    return found


def _errors(values: np.ndarray, codes: np.ndarray) -> int:
    """The number of rows whose target is not the most frequent one of their value."""
    place = np.unique(values, return_inverse=True)[1]
    K = int(codes.max()) + 1
    pairs, counts = np.unique(place * K + codes, return_counts=True)
    most = np.zeros(int(place.max()) + 1, np.int64)
    np.maximum.at(most, pairs // K, counts)
    return len(values) - int(most.sum())


def _sparse_candidates(data: ExaminedData, rows: np.ndarray, y: np.ndarray) -> list[int]:
    """Columns whose correlation with a class, or with the number, is nearly one."""
    table, target, figures = data.table, data.target, data.figures
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
    """Absolute correlation of each row of the block with y, over the finite values."""
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(block)
        counts = np.maximum(is_finite.sum(axis=1), 1)
        unit = np.nanmax(np.where(is_finite, np.abs(block), 0.0), axis=1)
        V = np.where(is_finite, block / np.where(unit > 0, unit, 1.0)[:, None], 0.0)
        y = y / (np.abs(y).max() or 1.0)
        Y = np.where(is_finite, y, 0.0)
        mean_v, mean_y = V.sum(axis=1) / counts, Y.sum(axis=1) / counts
        cov = (V * Y).sum(axis=1) / counts - mean_v * mean_y
        var_v = (V * V).sum(axis=1) / counts - mean_v**2
        var_y = (Y * Y).sum(axis=1) / counts - mean_y**2
        return np.nan_to_num(np.abs(cov) / np.sqrt(var_v * var_y), posinf=0.0)


def how_column_tells_class(
    values: np.ndarray, target: ExaminedTarget, n_columns: int = 1
) -> Verdict | None:
    """How a column (n,), NaN where missing, determines the class; None if it does not."""
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
    has_few = len(found) <= max(2.0, _FEW_VALUES * n)
    if has_few and surprise - len(found) * np.log(K) > _SURE:
        if errors == 0 and len(found) == K:
            return "critical", f"is the target under other names: {K} values, one for each class"
        if errors == 0:
            return "warning", (
                f"determines the class of all {n:,} rows: each of its {len(found):,} values goes "
                "with one class only"
            )
        if errors <= (1 - _NEARLY_ALL) * n and 10 * errors <= n - int(counts.max()):
            return "warning", f"alone determines the class of {share(n - errors, n)} of the rows"
    if errors == 0 and surprise - (K - 1) * np.log(n) - K * np.log(K) > _SURE:
        order = np.argsort(place, kind="stable")
        if np.count_nonzero(np.diff(codes[order])) == K - 1:
            cuts = "one threshold" if K == 2 else f"{K - 1} thresholds"
            return "warning", f"determines the class of all {n:,} rows by {cuts}"
    return None


def how_column_tells_number(
    values: np.ndarray, target: ExaminedTarget, n_columns: int = 1
) -> Verdict | None:
    """How a column (n,), NaN where missing, determines the number; None if it does not."""
    y = target.values
    is_finite = np.isfinite(values)
    n = int(is_finite.sum())
    if n < max(10, 0.5 * len(y)) or n * np.log(n) - np.log(n_columns) < _SURE:
        return None
    x, y = values[is_finite], y[is_finite]
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
        return "warning", f"puts all {n:,} rows in the {direction} order as the target"
    if is_function and len(np.unique(x)) <= _FEW_VALUES * n:
        return "warning", (
            f"determines the target of all {n:,} rows: each of its {len(np.unique(x)):,} values "
            "goes with one number only"
        )
    return None


LEAK_CHECKS = (_leaks,)
