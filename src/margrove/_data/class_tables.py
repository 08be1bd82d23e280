"""The classes of rows that are in several places."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from margrove._data.labels import check_labels
from margrove._data.training import TrainingLabels, check_training_labels
from margrove._data.weights import moderate

__all__ = ["ClassTable", "merged_classes"]


@dataclass(frozen=True)
class ClassTable:
    """The classes of some rows, with the sum of the weights of their rows, and the largest weight.

    classes           (k,)
    totals, largest   float64 (k,)
    """

    classes: np.ndarray
    totals: np.ndarray
    largest: np.ndarray

    @classmethod
    def of(cls, y: Any, weight: np.ndarray) -> Self:
        """Of labels and checked weights (n,); n may be 0."""
        if not len(weight):
            return cls(np.empty(0, np.int64), np.empty(0), np.empty(0))
        labels = check_labels(y, len(weight))
        largest = np.zeros(len(labels.classes))
        np.maximum.at(largest, labels.codes, weight)
        totals = np.bincount(labels.codes, weights=weight, minlength=len(labels.classes))
        return cls(labels.classes, totals, largest)


def merged_classes(
    tables: Sequence[ClassTable], class_weight: Any, **settings: Any
) -> TrainingLabels:
    """The labels of all tables, as if each class of a table was one row with the sum of weights.

    `largest` is that of all rows. Errors and warnings are those of `check_training_labels`.
    """
    tables = [table for table in tables if len(table.classes)]
    kinds = {table.classes.dtype.kind for table in tables}
    kind = None if kinds <= set("biuf") else object
    classes = np.concatenate([np.asarray(table.classes, dtype=kind) for table in tables])
    totals = np.concatenate([table.totals for table in tables])
    largest = np.concatenate([table.largest for table in tables])
    with warnings.catch_warnings():
        # Each class occurs once in each table.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        moderated = moderate(totals, float(largest.max(initial=0.0)) or None)
        found = check_training_labels(classes, moderated, class_weight, len(totals), **settings)
    with np.errstate(over="ignore"):
        counted = moderate(largest, float(largest.max(initial=0.0)) or None)
        counted = counted * found.factors[found.codes]
    return TrainingLabels(
        found.codes, found.classes, found.weight, found.factors, float(counted.max())
    )
