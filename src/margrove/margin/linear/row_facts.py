"""What the fit of a linear machine must know about all rows before it can use some of them.

A local fit sees all rows at once. If rows are in several places, each place describes its own
(`RowFacts.of`), and these facts together (`LinearFacts.of`) are what a local fit would find, with
the same errors and warnings. Then the problem of some rows can be made.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from margrove._data import (
    BadCell,
    ClassTable,
    bad_cell,
    check_labels,
    check_targets,
    check_weights,
    merged_classes,
    message_about,
    moderate,
    scan_rows,
)
from margrove.exceptions import DataWarning, InvalidDataError
from margrove.margin.svm import TargetScale, warn_of_unequal_scales

__all__ = ["LinearFacts", "RowFacts", "exact_scale", "weights_of_rows"]


@dataclass(frozen=True)
class RowFacts:
    """Facts about some rows of a table.

    longest           the largest norm of a row
    largest           the largest absolute value
    bad               the first value that is not finite
    low, high         (d,)  of each column, in a sample of the rows
    largest_weight    0 if no row has a positive weight
    negative          how many weights are negative, and the first such row
    labels            the classes; None for regression
    targets           least and greatest of the rows of positive weight; None for classes
    """

    longest: float
    largest: float
    bad: BadCell | None
    low: np.ndarray
    high: np.ndarray
    largest_weight: float
    negative: tuple[int, int]
    labels: ClassTable | None
    targets: tuple[float, float] | None

    @classmethod
    def of(cls, X: Any, y: Any, weight: Any, start: int, step: int, *, of_classes: bool) -> Self:
        """Of checked rows, the first of which is row `start`; every step-th row is a sample."""
        values = X.data if sp.issparse(X) else X
        norms = scan_rows(X).squared_norms
        bad = None if np.isfinite(norms.sum()) else bad_cell(X)
        low, high = _ranges(X[(-start) % step :: step])
        with _counting_from(start):
            given, negative = _checked_weights(weight, X.shape[0])
            labels = ClassTable.of(y, given) if of_classes else None
            targets = None if of_classes or not len(given) else check_targets(y, len(given))
        used = np.empty(0) if targets is None else targets[given > 0]
        return cls(
            longest=float(np.sqrt(norms.max(initial=0.0))),
            largest=max(float(values.max()), -float(values.min())) if values.size else 0.0,
            bad=None if bad is None else bad._replace(row=bad.row + start),
            low=low,
            high=high,
            largest_weight=float(given.max(initial=0.0)),
            negative=(negative[0], negative[1] + start),
            labels=labels,
            targets=(float(used.min()), float(used.max())) if len(used) else None,
        )


@dataclass(frozen=True)
class LinearFacts:
    """Facts about all rows of a fit.

    scale            of the features, a power of two
    largest_weight   see `moderate`
    classes, factors, largest   see `TrainingLabels`; None for regression
    target_scale     for regression
    """

    n_features: int
    scale: float
    largest_weight: float
    classes: np.ndarray | None = None
    factors: np.ndarray | None = None
    largest: float | None = None
    target_scale: TargetScale = field(default_factory=lambda: TargetScale(0.0, 1.0))

    @classmethod
    def of(cls, parts: Sequence[RowFacts], model: Any, names: np.ndarray | None) -> Self:
        """Of all rows, from the facts of parts; raises and warns as a local fit does."""
        _require_finite([part.bad for part in parts], names, model)
        low = np.min([part.low for part in parts], axis=0)
        high = np.max([part.high for part in parts], axis=0)
        with np.errstate(over="ignore"):
            warn_of_unequal_scales(np.stack([low, high]))
        largest_weight = max(part.largest_weight for part in parts)
        _report_negative(parts, largest_weight)
        longest, largest = (
            max(getattr(part, name) for part in parts) for name in ("longest", "largest")
        )
        known: dict[str, Any] = {
            "n_features": len(low),
            "scale": exact_scale(longest, lambda: largest),
            "largest_weight": largest_weight,
        }
        tables = [part.labels for part in parts if part.labels is not None]
        if tables:
            labels = merged_classes(tables, model.class_weight)
            return cls(
                **known, classes=labels.classes, factors=labels.factors, largest=labels.largest
            )
        ends = np.array([part.targets for part in parts if part.targets is not None])
        is_free = model.fit_intercept and model.intercept_scaling is None
        return cls(**known, target_scale=TargetScale.of(ends, centred=is_free))

    def targets_of(self, y: Any) -> np.ndarray:
        """Codes of classes, in few bytes, or float64 targets, of some rows."""
        if self.classes is None:
            return check_targets(y, len(y)) if len(y) else np.empty(0)
        codes = check_labels(y, len(y)).codes_among(self.classes) if len(y) else np.empty(0)
        # Classes of rows of weight zero only are left out: their codes mean nothing.
        return np.maximum(codes, 0).astype(np.min_scalar_type(len(self.classes)))

    def weights_of(self, weight: Any, n_rows: int) -> np.ndarray:
        """The weights of some rows, moderated like those of all rows."""
        return moderate(weights_of_rows(weight, n_rows), self.largest_weight)


def weights_of_rows(weight: Any, n_rows: int) -> np.ndarray:
    """Weights that were checked before; negative ones become zero."""
    return np.ones(n_rows) if weight is None else np.maximum(weight, 0.0)


def exact_scale(longest: float, largest: Any) -> float:
    """The scale of the features: 1 for ordinary sizes, else a power of two.

    It scales the largest value, that `largest()` computes, to about one.
    """
    if 1e-9 < longest < 1e9:
        return 1.0
    value = largest()
    if value == 0.0:
        return 1.0
    return float(np.ldexp(1.0, max(-1000, min(1000, -int(np.frexp(value)[1])))))


def _checked_weights(weight: Any, n_rows: int) -> tuple[np.ndarray, tuple[int, int]]:
    """Checked weights, and how many are negative and the first of these; they become zero."""
    if weight is None or n_rows == 0:
        return np.ones(n_rows), (0, 0)
    below = weight < 0
    negative = (int(below.sum()), int(np.argmax(below)))
    return check_weights(np.where(below, 0.0, weight), n_rows, allow_all_zero=True), negative


@contextmanager
def _counting_from(start: int) -> Iterator[None]:
    """Add to errors about rows the number of the first one."""
    try:
        yield
    except ValueError as error:
        if not start:
            raise
        raise InvalidDataError(
            f"{error} (Rows are counted from row {start} of the table on.)"
        ) from error


def _ranges(sample: Any) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each column; of no rows, infinities."""
    if sample.shape[0] == 0:
        return np.full(sample.shape[1], np.inf), np.full(sample.shape[1], -np.inf)
    low, high = sample.min(axis=0), sample.max(axis=0)
    if sp.issparse(sample):
        return np.asarray(low.todense()).ravel(), np.asarray(high.todense()).ravel()
    return low, high


def _require_finite(cells: Sequence[BadCell | None], names: Any, model: Any) -> None:
    found = [cell for cell in cells if cell is not None]
    if found:
        first = min(found)._replace(n_cells=sum(cell.n_cells for cell in found))
        raise InvalidDataError(message_about(first, names, model))


def _report_negative(parts: Sequence[RowFacts], largest_weight: float) -> None:
    """Errors and warnings about weights that are not positive."""
    count = sum(part.negative[0] for part in parts)
    if largest_weight == 0.0:
        check_weights(np.full(1, -1.0 if count else 0.0), 1, leave_out_negative=True)
    if count:
        first = min(part.negative[1] for part in parts if part.negative[0])
        warnings.warn(
            f"{count} rows have a negative sample_weight and are left out (first: row {first}).",
            DataWarning,
            stacklevel=5,
        )
