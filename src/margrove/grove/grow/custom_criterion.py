"""Splits by a user's own criterion.

The function is compiled once a process, with the loop that calls it. Nodes are searched from
Python, one by one: slower than the built-in criteria, and open to any measure of impurity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime.jit import compiled_for_user

__all__ = ["CustomSearch", "CustomSplit"]


@dataclass(frozen=True)
class CustomSplit:
    """The best split of a node by one feature: so much less of weight times impurity.

    left: the codes that go left.
    """

    gain: float
    left: np.ndarray
    missing_left: bool


class CustomSearch:
    """Sums and searches for one criterion; `impurity(sums, weight)` is the user's function.

    sums are the weights of the classes, or the sum and the sum of squares of the targets.
    """

    def __init__(self, impurity: Callable[[np.ndarray, float], float], is_class: bool) -> None:
        self._compiled = compiled_for_user(impurity)
        self._is_class = is_class
        self._scan = _scan_for(self._compiled)

    def impurity_of(self, sums: np.ndarray, weight: float) -> float:
        return float(self._compiled(sums, weight))

    def statistics(self, labels: np.ndarray, y: np.ndarray, n_classes: int) -> np.ndarray:
        """(rows, statistics), before weights."""
        if self._is_class:
            return np.eye(n_classes)[labels]
        return np.column_stack([y, y * y])

    def best(
        self,
        codes: np.ndarray,
        stats: np.ndarray,
        weight: np.ndarray,
        samples: np.ndarray,
        *,
        missing: int,
        categorical: bool,
        min_samples: int,
        min_weight: float,
    ) -> CustomSplit | None:
        """The best split of rows by their codes; `missing` is the code of missing values."""
        present, groups = np.unique(codes, return_inverse=True)
        if len(present) < 2:
            return None
        total = np.bincount(groups, weights=weight)
        counts = np.bincount(groups, weights=samples)
        sums = np.stack([np.bincount(groups, weights=weight * own) for own in stats.T], axis=1)
        found: CustomSplit | None = None
        for order in self._orders(present, sums, total, missing, categorical):
            gain, position = self._scan(
                sums[order], total[order], counts[order], float(min_samples), min_weight
            )
            if position > 0 and (found is None or gain > found.gain + 1e-12 * abs(gain)):
                left, right = order[:position], order[position:]
                if categorical and counts[left].sum() > counts[right].sum():
                    left = right  # the heavier side is the one of "all others"
                left = present[left]
                found = CustomSplit(
                    float(gain), left[left != missing], bool((left == missing).any())
                )
        return found

    def _orders(
        self,
        present: np.ndarray,
        sums: np.ndarray,
        total: np.ndarray,
        missing: int,
        categorical: bool,
    ) -> list[np.ndarray]:
        """Orders of the groups in which prefixes are tried."""
        everything = np.arange(len(present))
        if categorical:
            by = (
                sums
                if self._is_class and sums.shape[1] > 2
                else sums[:, [1 if self._is_class else 0]]
            )
            return [np.argsort(own / total, kind="stable") for own in by.T]
        if present[-1] != missing:
            return [everything]
        return [everything, np.roll(everything, 1)]  # missing values right, then left


def _scan_for(impurity: Any) -> Any:
    @compiled_for_user
    def scan(sums: Any, weights: Any, samples: Any, min_samples: Any, min_weight: Any) -> Any:
        left = np.zeros(sums.shape[1])
        right = np.zeros(sums.shape[1])
        n_left, weight_left, n_right, weight_right = 0.0, 0.0, 0.0, 0.0
        for g in range(len(sums)):
            right += sums[g]
            weight_right += weights[g]
            n_right += samples[g]
        whole = weight_right * impurity(right, weight_right)
        best, position = -np.inf, 0
        for g in range(len(sums) - 1):
            left += sums[g]
            right -= sums[g]
            weight_left += weights[g]
            weight_right -= weights[g]
            n_left += samples[g]
            n_right -= samples[g]
            if min(n_left, n_right) < min_samples or min(weight_left, weight_right) < min_weight:
                continue
            gain = whole - weight_left * impurity(left, weight_left)
            gain -= weight_right * impurity(right, weight_right)
            if gain > best + 1e-12 * abs(whole):
                best, position = gain, g + 1
        return best, position

    return scan
