"""What can be wrong with a target: what its classes or numbers are like, and who tells it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from margrove.workbench.doctor.examined_data import Patient
from margrove.workbench.doctor.examined_target import ExaminedTarget
from margrove.workbench.doctor.findings import Finding, as_options, named, share

__all__ = ["TARGET_CHECKS"]

_IMBALANCE = 10.0
_LARGE_IMBALANCE = 100.0
_MOST_ROWS = 0.8  # of one class, from which on accuracy says little
_TAIL = 0.01  # of the rows
_HEAVY = 0.5  # of the variance
_FEW_VALUES = 10
_FEWEST_ROWS = 50
_MANY_CLASSES = 20


def _rows_without(patient: Patient) -> Iterator[Finding]:
    target = patient.target
    if target is None:
        return
    if target.note:
        yield Finding(
            "unusable_target",
            "critical",
            f"The target cannot be used as it is. {target.note}",
            "Give numbers, or labels of one type.",
        )
    missing = np.flatnonzero(~target.is_there)
    if len(missing) and "infinity" not in target.note:
        n = len(target.is_there)
        yield Finding(
            "missing_targets",
            "critical",
            f"{len(missing):,} of {n:,} rows ({share(len(missing), n)}) have no target.",
            "Drop these rows: nothing can be learnt from them.",
            rows=patient.row_numbers(missing),
            command_way_out="The commands leave these rows out by themselves."
            if len(missing) < n
            else "Name another column with --target.",
            is_prepared=len(missing) < n,
        )


def _classes(patient: Patient) -> Iterator[Finding]:
    target = patient.target
    if target is None or target.task != "classification" or not target.is_there.any():
        return
    counts = target.class_counts
    present = np.flatnonzero(counts)
    if len(present) == 1:
        yield Finding(
            "single_class",
            "critical",
            f"All rows with a target are of class {_label(target, present[0])}.",
            "Classifiers need two classes: look at how the table was filtered.",
        )
        return
    yield from _small_classes(patient, target, counts, present)
    large, small = present[np.argmax(counts[present])], present[np.argmin(counts[present])]
    ratio = counts[large] / counts[small]
    scores = ("scoring='balanced_accuracy'", "")
    if len(present) == 2:  # more classes have no one area under a curve
        scores = ("scoring='balanced_accuracy' or 'roc_auc'", " (or roc_auc)")
    if ratio >= _IMBALANCE or counts[large] >= _MOST_ROWS * counts.sum():
        yield Finding(
            "imbalanced_classes",
            "warning" if ratio >= _LARGE_IMBALANCE else "notice",
            f"Class {_label(target, large)} has {counts[large]:,} rows and class "
            f"{_label(target, small)} {counts[small]:,}; always answering the first is right in "
            f"{share(counts[large], counts.sum())} of the rows.",
            f"Judge by {scores[0]} rather than by accuracy, stratify folds, and consider "
            "class_weight='balanced'.",
            command_way_out=f"Judge by `margrove compare --score balanced_accuracy`{scores[1]} "
            "rather than by accuracy, and consider `margrove fit --learner forest --param "
            "class_weight=balanced`.",
        )


def _small_classes(
    patient: Patient, target: ExaminedTarget, counts: np.ndarray, present: np.ndarray
) -> Iterator[Finding]:
    small = present[counts[present] < patient.folds]
    if len(small):
        shown = ", ".join(f"{_label(target, k)} ({counts[k]})" for k in small[:3])
        rest = f" and {len(small) - 3:,} more" if len(small) > 3 else ""
        yield Finding(
            "small_classes",
            "warning",
            f"{len(small):,} of {len(present):,} classes have fewer rows than the "
            f"{patient.folds} folds of a cross-validation: {shown}{rest}.",
            "Use fewer folds, join classes, or collect more of them.",
            rows=patient.row_numbers(np.flatnonzero(np.isin(target.codes, small))),
        )
    n = int(counts.sum())
    if len(present) > _MANY_CLASSES and n < 10 * len(present):
        yield Finding(
            "many_classes",
            "warning",
            f"There are {len(present):,} classes in {n:,} rows, fewer than 10 rows a class.",
            "If the target is a quantity or a name of rows, it is none of classes: use "
            "task='regression' or another column.",
            command_way_out="If the target is a quantity or a name of rows, it is none of classes: "
            "use --task regression or another --target.",
        )


def _numbers(patient: Patient) -> Iterator[Finding]:
    target = patient.target
    if target is None or target.task != "regression" or not target.is_there.any():
        return
    y = target.values[target.is_there]
    y = y / (np.abs(y).max() or 1.0)
    distinct = len(np.unique(y))
    if distinct == 1:
        yield Finding(
            "constant_target",
            "critical",
            f"The target is {_number(target.values[target.is_there][0])} in all "
            f"{len(y):,} rows that have one.",
            "There is nothing to predict: look at how the table was filtered.",
        )
        return
    if len(y) < _FEWEST_ROWS:
        return
    if distinct <= _FEW_VALUES:
        yield Finding(
            "few_target_values",
            "notice",
            f"The target has {distinct} different values in {len(y):,} rows.",
            "If they are classes rather than amounts, use a classifier and task='classification'.",
            command_way_out="If they are classes rather than amounts, say --task classification.",
        )
    yield from _tails(patient, y)


def _tails(patient: Patient, y: np.ndarray) -> Iterator[Finding]:
    squares = (y - y.mean()) ** 2
    n_tail = max(1, int(_TAIL * len(y)))
    order = np.argpartition(squares, len(y) - n_tail)[len(y) - n_tail :]
    held = float(squares[order].sum() / squares.sum())
    if held < _HEAVY:
        return
    there = np.flatnonzero(patient.target.is_there)  # type: ignore[union-attr]
    remedy = "predict its logarithm (TransformedTargetRegressor), or " if y.min() > 0 else ""
    yield Finding(
        "heavy_tails",
        "warning",
        f"{n_tail:,} of {len(y):,} rows hold {share(held, 1)} of the target's variance: squared "
        "errors will be about little else.",
        f"Look for wrong values, {remedy}use a loss that minds outliers less ('absolute_error', "
        "'huber').",
        rows=patient.row_numbers(there[np.sort(order)]),
        command_way_out="Look for wrong values, or use a loss that minds outliers less: --learner "
        "boosting --param loss=absolute_error.",
    )


def _telling_gaps(patient: Patient) -> Iterator[Finding]:
    """Columns whose missing values go with the target; a leak where they tell it."""
    table, target, figures = patient.table, patient.target, patient.figures
    if target is None or table.is_sparse or target.is_there.sum() < _FEWEST_ROWS:
        return
    there = target.is_there
    n = int(there.sum())
    usable = ~table.of_kind("unusable") & (figures.missing >= 10)
    usable &= table.n_rows - figures.missing >= 10
    found: list[tuple[float, int, str]] = []
    for j in np.flatnonzero(usable).tolist():
        gap = np.isnan(table.X[there, j])
        if not 10 <= gap.sum() <= n - 10:
            continue
        association = _association(gap, target)
        # 0.1 is a small effect; by chance it is below 4 / sqrt(n) even among thousands.
        if association > max(0.1, 4.0 / np.sqrt(n)):
            found.append((association, j, _contrast(gap, target)))
    if found:
        found.sort(reverse=True)
        columns = [j for _, j, _ in found]
        names = patient.names(columns)
        yield Finding(
            "telling_gaps",
            "warning" if found[0][0] > 0.5 else "notice",
            f"Whether {named(names).replace('C', 'c', 1)} "
            f"{'is' if len(columns) == 1 else 'are'} missing goes with the target: {found[0][2]}.",
            "If that is also so when predicting, keep the gaps (trees use them; SimpleImputer has "
            "add_indicator=True). If values are missing because of the target, it is a leak.",
            names,
            command_way_out="If that is also so when predicting, nothing is to be done: all "
            "learners are told of gaps. If values are missing because of the target, it is a leak: "
            f"{as_options('--ignore', names)}.",
        )


def _association(gap: np.ndarray, target: ExaminedTarget) -> float:
    """Cramer's V of gaps and classes, or the correlation of gaps and numbers."""
    there = target.is_there
    if target.task == "regression":
        y = target.values[there]
        y = y / (np.abs(y).max() or 1.0)
        if y.std() == 0:
            return 0.0
        return float(abs(np.corrcoef(gap, y)[0, 1]))
    codes, K = target.codes[there], len(target.classes)
    table = np.bincount(codes + K * gap, minlength=2 * K).reshape(2, K).astype(float)
    table = table[:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    chi_squared = float(((table - expected) ** 2 / expected).sum())
    excess = max(0.0, chi_squared - (table.shape[1] - 1))  # what chance contributes
    return float(np.sqrt(excess / table.sum()))


def _contrast(gap: np.ndarray, target: ExaminedTarget) -> str:
    there = target.is_there
    if target.task == "regression":
        y = target.values[there]
        return f"its mean is {y[gap].mean():.4g} where missing and {y[~gap].mean():.4g} elsewhere"
    codes, K = target.codes[there], len(target.classes)
    shares = [np.bincount(codes[own], minlength=K) / own.sum() for own in (gap, ~gap)]
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
