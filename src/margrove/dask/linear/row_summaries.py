"""Summaries of the rows of each worker, and of all rows, from which the plan is made.

A local fit reads all rows to find classes, scales and prices. Here each worker reads its own rows
and sends a few numbers for each column or class, from which the client computes the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import (
    TrainingLabels,
    check_labels,
    check_targets,
    check_training_labels,
    check_weights,
    scan_rows,
)
from margrove.dask.linear.plan import LinearPlan
from margrove.exceptions import InvalidDataError
from margrove.margin.svm import TargetScale, sampling_step, warn_of_unequal_scales

__all__ = [
    "MergedSummary",
    "class_table",
    "codes_and_prices",
    "merged_classes",
    "merged_summary",
    "prices_of_classes",
    "sampling_step",
    "summary_of_rows",
    "targets_and_prices",
]

_TINY, _LARGEST_WEIGHT = 1e-150, 1e290  # as `margrove._data.moderate` has them


# -- on a worker ---------------------------------------------------------------------------------


def summary_of_rows(
    X: Any, y: Any, weight: Any, start: int, *, of_classes: bool, step: int
) -> dict[str, Any]:
    """A summary of the rows of a worker, the first of which is row `start`.

    longest     the largest squared norm
    bad         None, or of a value that is not finite: row, column, value, how many there are
    low, high   of each column, over every `step`-th row of the table
    labels      (classes,) and `totals`, `largest` (classes,): their summed and largest weight; or
    targets     least and largest over the rows of weight > 0
    """
    n = X.shape[0]
    weights = _checked_weights(weight, n, start)
    facts: dict[str, Any] = {"n": n, "largest_weight": float(weights.max(initial=0.0))}
    norms = scan_rows(X).squared_norms
    facts["longest"] = float(norms.max(initial=0.0))
    facts["bad"] = None if np.isfinite(norms.sum()) else _first_bad(X, start)
    facts["low"], facts["high"] = _ranges(X[(-start) % step :: step])
    if of_classes:
        facts |= class_table(y, weights)
    else:
        targets = _checked_targets(y, n, start)[weights > 0]
        facts["targets"] = (
            np.array([targets.min(), targets.max()])
            if len(targets)
            else np.array([np.inf, -np.inf])
        )
    return facts


def class_table(y: Any, weight: np.ndarray) -> dict[str, Any]:
    """The classes of some rows, with the sum of their weights and the largest one."""
    if not len(weight):
        return {"labels": None, "totals": np.empty(0), "largest": np.empty(0)}
    labels = check_labels(y, len(weight))
    largest = np.zeros(len(labels.classes))
    np.maximum.at(largest, labels.codes, weight)
    totals = np.bincount(labels.codes, weights=weight, minlength=len(labels.classes))
    return {"labels": labels.classes, "totals": totals, "largest": largest}


def _checked_weights(weight: Any, n: int, start: int) -> np.ndarray:
    if n == 0:
        return np.empty(0)
    with _counting_from(start):
        return check_weights(weight, n, allow_all_zero=True)


def _checked_targets(y: Any, n: int, start: int) -> np.ndarray:
    if n == 0:
        return np.empty(0)
    with _counting_from(start):
        return check_targets(y, n)


class _counting_from:  # noqa: N801
    """Adds to errors about rows the number of the first row of the worker."""

    def __init__(self, start: int) -> None:
        self._start = start

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError) and self._start:
            raise InvalidDataError(
                f"{error} (Rows are counted from row {self._start} of the table on.)"
            ) from error


def _first_bad(X: Any, start: int) -> tuple[int, int, float, int] | None:
    values = X.data if sp.issparse(X) else X
    bad = ~np.isfinite(values)
    if not bad.any():
        return None
    if sp.issparse(X):
        position = int(np.argmax(bad))
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        column, value = int(X.indices[position]), float(X.data[position])
    else:
        row, column = (int(i) for i in np.unravel_index(int(np.argmax(bad)), X.shape))
        value = float(X[row, column])
    return row + start, column, value, int(bad.sum())


def _ranges(sample: Any) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each column; of no rows, infinities."""
    if sample.shape[0] == 0:
        return np.full(sample.shape[1], np.inf), np.full(sample.shape[1], -np.inf)
    if sp.issparse(sample):
        return (
            np.asarray(sample.min(axis=0).todense()).ravel(),
            np.asarray(sample.max(axis=0).todense()).ravel(),
        )
    return sample.min(axis=0), sample.max(axis=0)


def codes_and_prices(
    y: Any, weight: Any, plan: LinearPlan
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of weight > 0, their classes, and the price of an error of each."""
    assert plan.classes is not None
    assert plan.factors is not None
    if not len(y):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    given = check_weights(weight, len(y), allow_all_zero=True)
    rows = np.flatnonzero(given > 0)
    codes = check_labels(y, len(y)).codes_among(plan.classes)[rows]
    return rows, codes, _prices(given[rows], plan.factors[codes], plan)


def prices_of_classes(plan: LinearPlan) -> np.ndarray:
    """The price of an error of each class, of a row of weight one."""
    assert plan.factors is not None
    return _prices(np.ones(len(plan.factors)), plan.factors, plan)


def _prices(weight: np.ndarray, factors: np.ndarray, plan: LinearPlan) -> np.ndarray:
    moderated = _moderated(weight, plan.exponents[0])
    counted = _moderated(moderated * factors, plan.exponents[1])
    power = 1 if plan.kind == "l1" else 2
    prices: np.ndarray = plan.model._prices(counted, *[plan.scale] * power)
    return prices


def targets_and_prices(
    y: Any, weight: Any, plan: LinearPlan
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of weight > 0, their targets in the units of the solver, and their prices."""
    if not len(y):
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    given = check_weights(weight, len(y), allow_all_zero=True)
    rows = np.flatnonzero(given > 0)
    targets = TargetScale(plan.centre, plan.factor).apply(check_targets(y, len(y))[rows])
    of_target = () if plan.is_smooth else (1.0 / plan.factor,)
    moderated = _moderated(given[rows], plan.exponents[0])
    return rows, targets, plan.model._prices(moderated, plan.scale, plan.scale, *of_target)


def _moderated(weight: np.ndarray, exponent: int) -> np.ndarray:
    """`margrove._data.moderate` with a given exponent, as the largest weight may be elsewhere."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.minimum(np.ldexp(weight, exponent) if exponent else weight, _LARGEST_WEIGHT)


# -- at the client -------------------------------------------------------------------------------


@dataclass(frozen=True)
class MergedSummary:
    """The summary of all rows.

    classes, factors   for classification, else None
    targets            for regression: the least and the largest target, else None
    exponents          see `LinearPlan`
    longest            the largest norm
    """

    longest: float
    exponents: tuple[int, int]
    classes: np.ndarray | None = None
    factors: np.ndarray | None = None
    targets: np.ndarray | None = None


def merged_summary(facts: Sequence[dict[str, Any]], model: Any, names: Any) -> MergedSummary:
    """Check and merge the summaries of workers; raises and warns as a local fit does."""
    _require_finite([fact["bad"] for fact in facts], names, model)
    low = np.min([fact["low"] for fact in facts], axis=0)
    high = np.max([fact["high"] for fact in facts], axis=0)
    with np.errstate(over="ignore"):
        warn_of_unequal_scales(np.stack([low, high]))
    largest = max(fact["largest_weight"] for fact in facts)
    if largest == 0.0:
        check_weights(np.zeros(1), 1)  # raises the error
    longest = float(np.sqrt(max(fact["longest"] for fact in facts)))
    exponent = _exponent(largest)
    if "targets" in facts[0]:
        ends = np.array([fact["targets"] for fact in facts])
        targets = np.array([ends[:, 0].min(), ends[:, 1].max()])
        return MergedSummary(longest, (exponent, 0), targets=targets)
    classes, factors, counted = _merged_classes(facts, model.class_weight, exponent)
    return MergedSummary(longest, (exponent, _exponent(counted)), classes, factors)


def _require_finite(bad: list[Any], names: Any, model: Any) -> None:
    found = [cell for cell in bad if cell is not None]
    if not found:
        return
    row, column, value, _ = min(found)
    where = f"column {column}" if names is None else f"column {names[column]!r}"
    raise InvalidDataError(
        f"Input X contains {'NaN' if np.isnan(value) else 'infinity'} (first at row {row}, "
        f"{where}; {sum(cell[3] for cell in found)} such values). {type(model).__name__} needs "
        "finite numbers: drop these rows, or replace the values before the fit, for example with "
        "X.fillna(0) or X.clip(low, high)."
    )


def _merged_classes(
    facts: Sequence[dict[str, Any]], class_weight: Any, exponent: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """The classes, their factors, and the largest product of a row's weight and its factor."""
    tables = [fact for fact in facts if fact["labels"] is not None]
    moderated = [table | {"totals": _moderated(table["totals"], exponent)} for table in tables]
    found = merged_classes(moderated, class_weight)
    largest = _moderated(np.concatenate([table["largest"] for table in tables]), exponent)
    with np.errstate(over="ignore"):
        counted = float((largest * found.factors[found.codes]).max())
    return found.classes, found.factors, counted


def merged_classes(tables: list[dict[str, Any]], class_weight: Any) -> TrainingLabels:
    """The classes of all tables of `class_table`, and the factors of `class_weight`.

    A class of a table counts as one row with the sum of its weights.
    """
    kinds = {np.asarray(table["labels"]).dtype.kind for table in tables}
    kind = None if kinds <= set("biuf") else object
    labels = np.concatenate([np.asarray(table["labels"], dtype=kind) for table in tables])
    totals = np.concatenate([table["totals"] for table in tables])
    with warnings.catch_warnings():
        # Each class occurs once in each table.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        return check_training_labels(labels, totals, class_weight, len(totals))


def _exponent(largest: float) -> int:
    return 1 - int(np.frexp(largest)[1]) if largest < _TINY else 0
