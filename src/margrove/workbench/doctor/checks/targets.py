"""Checks of the target: its classes or numbers, and missing values that depend on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margrove.workbench.doctor.examined_data import ExaminedData
from margrove.workbench.doctor.examined_target import ExaminedTarget
from margrove.workbench.doctor.findings import Finding, as_options, named, share

__all__ = ["TARGET_CHECKS"]

_IMBALANCE = 10.0
_LARGE_IMBALANCE = 100.0
_LARGE_CLASS = 0.8  # share of the rows of one class, above which accuracy says little
_TAIL = 0.01  # share of the rows
_HEAVY = 0.5  # share of the variance
_FEW_VALUES = 10
_MIN_ROWS = 50
_MANY_CLASSES = 20


def _rows_without(data: ExaminedData) -> Iterator[Finding]:
    target = data.target
    if target is None:
        return
    if target.note:
        yield Finding(
            "unusable_target",
            "critical",
            f"The target cannot be used. {target.note}",
            "Give numbers, or labels of one type.",
        )
    missing = np.flatnonzero(~target.is_known)
    if len(missing) and "infinity" not in target.note:
        n = len(target.is_known)
        yield Finding(
            "missing_targets",
            "critical",
            f"{len(missing):,} of {n:,} rows ({share(len(missing), n)}) have no target.",
            "Drop these rows: nothing can be learnt from them.",
            rows=data.row_numbers(missing),
            command_way_out="The commands leave these rows out automatically."
            if len(missing) < n
            else "Name another column with --target.",
            is_prepared=len(missing) < n,
        )


def _classes(data: ExaminedData) -> Iterator[Finding]:
    target = data.target
    if target is None or target.task != "classification" or not target.is_known.any():
        return
    counts = target.class_counts
    present = np.flatnonzero(counts)
    if len(present) == 1:
        yield Finding(
            "single_class",
            "critical",
            f"All rows with a target are of class {_label(target, present[0])}.",
            "Classifiers need two classes: check how the table was filtered.",
        )
        return
    yield from _small_classes(data, target, counts, present)
    large, small = present[np.argmax(counts[present])], present[np.argmin(counts[present])]
    ratio = counts[large] / counts[small]
    scores = ("scoring='balanced_accuracy'", "")
    if len(present) == 2:  # roc_auc is for two classes
        scores = ("scoring='balanced_accuracy' or 'roc_auc'", " (or roc_auc)")
    if ratio >= _IMBALANCE or counts[large] >= _LARGE_CLASS * counts.sum():
        yield Finding(
            "imbalanced_classes",
            "warning" if ratio >= _LARGE_IMBALANCE else "notice",
            f"Class {_label(target, large)} has {counts[large]:,} rows and class "
            f"{_label(target, small)} {counts[small]:,}; always predicting the first is right in "
            f"{share(counts[large], counts.sum())} of the rows.",
            f"Judge by {scores[0]} rather than by accuracy, stratify folds, and consider "
            "class_weight='balanced'.",
            command_way_out=f"Judge by `margrove compare --score balanced_accuracy`{scores[1]} "
            "rather than by accuracy, and consider `margrove fit --learner forest --param "
            "class_weight=balanced`.",
        )


def _small_classes(
    data: ExaminedData, target: ExaminedTarget, counts: np.ndarray, present: np.ndarray
) -> Iterator[Finding]:
    small = present[counts[present] < data.folds]
    if len(small):
        shown = ", ".join(f"{_label(target, k)} ({counts[k]})" for k in small[:3])
        rest = f" and {len(small) - 3:,} more" if len(small) > 3 else ""
        yield Finding(
            "small_classes",
            "warning",
            f"{len(small):,} of {len(present):,} classes have fewer rows than the "
            f"{data.folds} folds of a cross-validation: {shown}{rest}.",
            "Use fewer folds, merge classes, or collect more rows of them.",
            rows=data.row_numbers(np.flatnonzero(np.isin(target.codes, small))),
        )
    n = int(counts.sum())
    if len(present) > _MANY_CLASSES and n < 10 * len(present):
        yield Finding(
            "many_classes",
            "warning",
            f"There are {len(present):,} classes in {n:,} rows, fewer than 10 rows per class.",
            "If the target is a quantity, use task='regression'; if it names the rows, use another "
            "column.",
            command_way_out="If the target is a quantity, use --task regression; if it names the "
            "rows, use another --target.",
        )


def _numbers(data: ExaminedData) -> Iterator[Finding]:
    target = data.target
    if target is None or target.task != "regression" or not target.is_known.any():
        return
    y = target.values[target.is_known]
    y = y / (np.abs(y).max() or 1.0)
    distinct = len(np.unique(y))
    if distinct == 1:
        yield Finding(
            "constant_target",
            "critical",
            f"The target is {_number(target.values[target.is_known][0])} in all "
            f"{len(y):,} rows that have one.",
            "There is nothing to predict: check how the table was filtered.",
        )
        return
    if len(y) < _MIN_ROWS:
        return
    if distinct <= _FEW_VALUES:
        yield Finding(
            "few_target_values",
            "notice",
            f"The target has {distinct} different values in {len(y):,} rows.",
            "If they are classes, not quantities, use a classifier and task='classification'.",
            command_way_out="If they are classes, not quantities, use --task classification.",
        )
    yield from _tails(data, y)


def _tails(data: ExaminedData, y: np.ndarray) -> Iterator[Finding]:
    squares = (y - y.mean()) ** 2
    n_tail = max(1, int(_TAIL * len(y)))
    order = np.argpartition(squares, len(y) - n_tail)[len(y) - n_tail :]
    tail_share = float(squares[order].sum() / squares.sum())
    if tail_share < _HEAVY:
        return
    known = np.flatnonzero(data.target.is_known)  # type: ignore[union-attr]
    remedy = "predict its logarithm (TransformedTargetRegressor), or " if y.min() > 0 else ""
    yield Finding(
        "heavy_tails",
        "warning",
        f"{n_tail:,} of {len(y):,} rows have {share(tail_share, 1)} of the variance of the "
        "target: they dominate squared errors.",
        f"Look for wrong values, {remedy}use a loss that is less sensitive to outliers "
        "('absolute_error', 'huber').",
        rows=data.row_numbers(known[np.sort(order)]),
        command_way_out="Look for wrong values, or use a loss that is less sensitive to outliers: "
        "--learner boosting --param loss=absolute_error.",
    )


def _telling_gaps(data: ExaminedData) -> Iterator[Finding]:
    """Columns whose missing values depend on the target."""
    table, target, figures = data.table, data.target, data.figures
    if target is None or table.is_sparse or target.is_known.sum() < _MIN_ROWS:
        return
    known = target.is_known
    n = int(known.sum())
    usable = ~table.of_kind("unusable") & (figures.missing >= 10)
    usable &= table.n_rows - figures.missing >= 10
    found: list[tuple[float, int, str]] = []
    for j in np.flatnonzero(usable).tolist():
        gap = np.isnan(table.X[known, j])
        if not 10 <= gap.sum() <= n - 10:
            continue
        association = _association(gap, target)
        # 0.1 is a small effect; by chance it is below 4 / sqrt(n) even for thousands of columns.
        if association > max(0.1, 4.0 / np.sqrt(n)):
            found.append((association, j, _contrast(gap, target)))
    if found:
        found.sort(reverse=True)
        columns = [j for _, j, _ in found]
        names = data.names(columns)
        yield Finding(
            "telling_gaps",
            "warning" if found[0][0] > 0.5 else "notice",
            f"Whether {named(names).replace('C', 'c', 1)} "
            f"{'is' if len(columns) == 1 else 'are'} missing depends on the target: "
            f"{found[0][2]}.",
            "If this also holds when predicting, keep the missing values (trees use them; "
            "SimpleImputer has add_indicator=True). If values are missing because of the target, "
            "it is a leak.",
            names,
            command_way_out="If this also holds when predicting, there is nothing to do: all "
            "learners get columns that mark missing values. If values are missing because of the "
            f"target, it is a leak: {as_options('--ignore', names)}.",
        )


def _association(gap: np.ndarray, target: ExaminedTarget) -> float:
    """Cramer's V of gaps and classes, or the correlation of gaps and numbers."""
    known = target.is_known
    if target.task == "regression":
        y = target.values[known]
        y = y / (np.abs(y).max() or 1.0)
        if y.std() == 0:
            return 0.0
        return float(abs(np.corrcoef(gap, y)[0, 1]))
    codes, K = target.codes[known], len(target.classes)
    table = np.bincount(codes + K * gap, minlength=2 * K).reshape(2, K).astype(float)
    table = table[:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    chi_squared = float(((table - expected) ** 2 / expected).sum())
    excess = max(0.0, chi_squared - (table.shape[1] - 1))  # minus its expectation by chance
    return float(np.sqrt(excess / table.sum()))


def _contrast(gap: np.ndarray, target: ExaminedTarget) -> str:
    known = target.is_known
    if target.task == "regression":
        y = target.values[known]
        return f"its mean is {y[gap].mean():.4g} where missing and {y[~gap].mean():.4g} elsewhere"
    codes, K = target.codes[known], len(target.classes)
    shares = [np.bincount(codes[rows], minlength=K) / rows.sum() for rows in (gap, ~gap)]
    k = int(np.argmax(np.abs(shares[0] - shares[1])))
    return (
        f"class {_label(target, k)} has {share(shares[0][k], 1)} of the rows where missing and "
        f"{share(shares[1][k], 1)} elsewhere"
    )


def _label(target: ExaminedTarget, k: int) -> str:
    label = target.classes[int(k)]
    text = repr(label)
    return text if len(text) <= 40 else text[:39] + "…"


def _number(value: float) -> str:
    return f"{value:.6g}"


TARGET_CHECKS = (_rows_without, _classes, _numbers, _telling_gaps)
