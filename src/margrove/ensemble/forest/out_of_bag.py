"""Out-of-bag predictions: each row is predicted by the trees that have not seen it."""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime import kernel
from margrove.grove.serve import Kind, PackedTree, add_values, add_votes
from margrove.grove.table import Targets

__all__ = ["OutOfBag", "is_flat"]

_FEWEST, _EVERY = 50, 25  # trees: `is_flat` decides from 2 * _FEWEST on, after each _EVERY
_WORTH_IT = 0.01  # relative decrease of the error that justifies twice as many trees


class OutOfBag:
    """Sums of out-of-bag predictions, tree after tree; rows are in the order of the training data.

    `curve` is the error after each tree, over the rows that some tree has not seen: the share of
    misclassified rows, or the mean squared error.
    """

    def __init__(
        self, kind: Kind, targets: Targets, weight: np.ndarray, *, hard: bool, scale: float = 1.0
    ) -> None:
        n_outputs = len(targets.starts) - 1
        self._kind, self._hard = kind, hard
        self._starts = targets.starts
        self._labels = targets.labels.reshape(-1, n_outputs)
        self._numbers, self._scale = targets.raw.reshape(-1, n_outputs), scale
        self._weight = weight
        self.sums = np.zeros((len(weight), kind.n_values))
        self.squares = np.zeros_like(self.sums) if not kind.n_classes else self.sums[:0]
        self.counts = np.zeros(len(weight), np.int64)
        self.curve: list[float] = []

    def reset(self) -> None:
        """Remove all trees."""
        for array in (self.sums, self.squares, self.counts):
            array[:] = 0
        self.curve = []

    def add(self, tree: PackedTree, leaves: np.ndarray, left_out: np.ndarray) -> None:
        """Add a tree; `leaves` int32 (m,) of the rows and `left_out` int32 (m,), unseen units."""
        if self._hard and self._kind.n_classes:
            add_votes(tree, leaves, self._kind, left_out, self.sums)
        else:
            add_values(tree, leaves, self._kind, left_out, self.sums)
        if not self._kind.n_classes:
            values = np.zeros_like(self.sums)
            add_values(tree, leaves, self._kind, None, values)
            self.squares += (values / self._scale) ** 2 * left_out[:, None]
        self.counts += left_out
        self.curve.append(self._error())

    @property
    def is_for_classes(self) -> bool:
        return bool(self._kind.n_classes)

    def error(self) -> float:
        return self.curve[-1]

    def predictions(self) -> np.ndarray:
        """Class probabilities, or means, (m, n_values); NaN for rows that every tree has seen."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.sums / np.where(self.counts > 0, self.counts, np.nan)[:, None])

    def spreads(self) -> np.ndarray:
        """The standard deviation of the out-of-bag predictions of each row, (m, n_values)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            counts = np.where(self.counts > 0, self.counts, np.nan)[:, None]
            means = self.sums / counts / self._scale
            squares = np.maximum(self.squares / counts - means**2, 0.0)
            return np.asarray(np.sqrt(squares) * self._scale)

    def _error(self) -> float:
        if self._kind.n_classes:
            return float(
                _share_wrong(self.sums, self.counts, self._labels, self._starts, self._weight)
            )
        known = self.counts > 0
        if not known.any():
            return float("nan")
        means = self.sums[known] / self.counts[known][:, None] / self._scale
        squares = ((means - self._numbers[known]) ** 2).mean(axis=1)
        error = float(np.average(squares, weights=self._weight[known]))
        return min(error * self._scale * self._scale, float(np.finfo(float).max))


def is_flat(out_of_bag: OutOfBag) -> bool:
    """Whether the second half of the trees has lowered the error by less than 1 %.

    The error is averaged over neighbouring numbers of trees, so that a single tree does not decide.
    A decrease by less than half a row also counts as flat.
    """
    curve = out_of_bag.curve
    n = len(curve)
    if n < 2 * _FEWEST or n % _EVERY:
        return False
    if not all(map(math.isfinite, curve[n // 3 :])):
        return True  # no row is ever out of bag, or errors overflow
    width = n // 10
    now = sum(curve[-width:]) / width
    before = sum(curve[n // 2 - width : n // 2]) / width
    least = 0.5 / len(out_of_bag.counts) if out_of_bag.is_for_classes else 0.0
    return before - now <= max(_WORTH_IT * abs(now), least)


@kernel
def _share_wrong(sums, counts, labels, starts, weight):
    """The weighted share of wrong labels among out-of-bag rows; the mean over the outputs."""
    wrong, total = 0.0, 0.0
    n_outputs = len(starts) - 1
    for i in range(len(counts)):
        if counts[i] == 0:
            continue
        total += weight[i]
        for o in range(n_outputs):
            winner = starts[o]
            for k in range(starts[o], starts[o + 1]):
                if sums[i, k] > sums[i, winner]:
                    winner = k
            if winner != labels[i, o]:
                wrong += weight[i] / n_outputs
    return wrong / total if total > 0.0 else np.nan
