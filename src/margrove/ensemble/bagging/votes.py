"""What the members of an ensemble say, put together: averages, votes, figures out of bag.

Members that have not seen a class say nothing of it; columns are always those of all classes. Sums
are taken in the order of the members, so that they do not depend on who computed what.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from margrove.exceptions import DataWarning

__all__ = ["LogTally", "Tally", "onto_all_classes", "votes", "warn_of_rows_in_every_bag"]


def onto_all_classes(
    values: np.ndarray, known: np.ndarray, n_classes: int, unknown: float = 0.0
) -> np.ndarray:
    """Columns (n, k) of the `known` classes, int64 (k,), as columns (n, n_classes) of all."""
    if len(known) == n_classes:
        return values
    spread = np.full((len(values), n_classes), unknown)
    spread[:, known] = values
    return spread


def votes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """One vote a row: 1 in the column of its class, (n, n_classes)."""
    ballots = np.zeros((len(codes), n_classes))
    ballots[np.arange(len(codes)), codes] = 1.0
    return ballots


class Tally:
    """Averages of what members say of rows; not all members need to speak of all rows.

    sums (n, ...) float64 and counts (n,) int64 grow with each `add`.
    """

    def __init__(self, n_rows: int) -> None:
        self.counts = np.zeros(n_rows, np.int64)
        self.sums: np.ndarray | None = None

    def add(self, values: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Count what one member says of all rows, or of some, without repeats."""
        if self.sums is None:
            self.sums = np.zeros((len(self.counts), *values.shape[1:]))
        if rows is None:
            self.sums += values
            self.counts += 1
        else:
            self.sums[rows] += values
            self.counts[rows] += 1

    def mean(self) -> np.ndarray:
        """The averages; NaN for rows of which nobody spoke."""
        if self.sums is None:
            return np.full(len(self.counts), np.nan)
        counts = self.counts.reshape(-1, *([1] * (self.sums.ndim - 1)))
        with np.errstate(invalid="ignore"):
            return np.asarray(self.sums / counts)


class LogTally:
    """The logarithm of an average of which only logarithms are known."""

    def __init__(self) -> None:
        self.n_added = 0
        self.total: Any = -np.inf

    def add(self, logarithms: np.ndarray) -> None:
        """Count what one member says of all rows."""
        self.total = np.logaddexp(self.total, logarithms)
        self.n_added += 1

    def mean(self) -> np.ndarray:
        """The logarithms of the averages."""
        return np.asarray(self.total - np.log(self.n_added))


def warn_of_rows_in_every_bag(counts: np.ndarray, name: str, n_members: int) -> None:
    """Say how many rows have no figure out of bag, if there are any."""
    n_without = int((counts == 0).sum())
    if n_without:
        warnings.warn(
            "Some inputs do not have OOB scores. This probably means too few estimators were used "
            f"to compute any reliable oob estimates. {n_without} of {len(counts)} rows are in the "
            f"sample of every estimator of {name}, and their out-of-bag figures are NaN. Raise "
            f"n_estimators={n_members}, or lower max_samples.",
            DataWarning,
            stacklevel=4,
        )
