"""Splits by a criterion that is a function of a node's sums; see `register_criterion`.

The function is compiled once a process, with the loop that calls it. Nodes are searched from
Python, one by one: slower than the criteria of `scores`, and open to any measure of impurity.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from margrove._runtime import compiled_for_user, kernel
from margrove.grove.grow.nodes import random_below
from margrove.grove.table import Columns, code_of

__all__ = ["CustomSearch", "CustomSplit", "NodeRows"]

_NEARLY = 1e-12  # of a node's impurity: gains that differ by less are equal


class NodeRows(NamedTuple):
    """The rows of a node, m of them.

    rows      int64 (m,)  their numbers in the columns
    stats     float64 (m, statistics)  what they add to the sums, before weights
    weight    float64 (m,)
    samples   int64 (m,)
    """

    rows: np.ndarray
    stats: np.ndarray
    weight: np.ndarray
    samples: np.ndarray


@dataclass(frozen=True)
class CustomSplit:
    """The best split of a node: so much less of weight times impurity.

    left           int64: the codes that go left
    missing_left   whether missing values do
    following      the smallest code that does not, for features that are not categorical
    drawn          the threshold, where it was drawn at random, else NaN
    """

    gain: float
    feature: int
    left: np.ndarray
    missing_left: bool
    following: int
    drawn: float


class CustomSearch:
    """Sums and searches for one criterion; `impurity(sums, weight, *parameters)` is the function.

    sums are the weights of the classes, or the sum and the sum of squares of the targets.
    """

    def __init__(
        self, impurity: Callable[..., float], parameters: tuple[float, ...], is_class: bool
    ) -> None:
        self._impurity, self._parameters, self._is_class = impurity, parameters, is_class
        self._compiled, self._scan = _compiled(impurity, parameters)

    def __reduce__(self) -> Any:  # compiled code stays in its process
        return CustomSearch, (self._impurity, self._parameters, self._is_class)

    def impurity_of(self, sums: np.ndarray, weight: float) -> float:
        return float(self._compiled(sums, weight))

    def statistics(self, labels: np.ndarray, y: np.ndarray, n_classes: int) -> np.ndarray:
        """(rows, statistics), before weights."""
        if self._is_class:
            return np.eye(n_classes)[labels]
        return np.column_stack([y, y * y])

    def best(
        self,
        node: NodeRows,
        columns: Columns,
        features: np.ndarray,
        *,
        n_features: int,
        key: int | None,
        min_samples: int,
        min_weight: float,
    ) -> CustomSplit | None:
        """The best split of a node; of equally good ones, that by the lowest feature.

        features are looked at in this order, until `n_features` of them have several values and
        one of these can split the node. key: what the random numbers of the node derive from, where
        thresholds are drawn, else None.
        """
        found: list[CustomSplit] = []
        looked_at = 0
        for feature in features.tolist():
            groups = _grouped(node, columns, feature)
            if len(groups[0]) < 2:
                continue
            looked_at += 1
            found += self._best_of_feature(
                groups, columns, feature, key, float(min_samples), min_weight
            )
            if looked_at >= n_features and found:
                break
        total = float(node.weight.sum())
        nearly = _NEARLY * total * abs(self.impurity_of(node.weight @ node.stats, total))
        best: CustomSplit | None = None
        for one in sorted(found, key=lambda one: one.feature):
            if best is None or one.gain > best.gain + nearly:
                best = one
        return best

    def _best_of_feature(
        self,
        groups: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        columns: Columns,
        feature: int,
        key: int | None,
        min_samples: float,
        min_weight: float,
    ) -> list[CustomSplit]:
        """The best split between groups of rows with the same code, or none."""
        present, sums, total, counts = groups
        missing = int(columns.n_codes[feature])
        categorical = bool(columns.categorical[feature])
        has_missing = present[-1] == missing
        only, drawn = -1, np.nan
        if key is not None and not categorical:
            only, drawn = _draw(columns, feature, present[: len(present) - has_missing], key)
        found: CustomSplit | None = None
        for k, order in enumerate(self._orders(present, sums, total, missing, categorical)):
            wanted = only + k if only >= 0 else -1  # missing values come first in the second order
            gain, position = self._scan(
                sums[order], total[order], counts[order], min_samples, min_weight, wanted
            )
            if position > 0 and (found is None or gain > found.gain + _NEARLY * abs(gain)):
                left, right = order[:position], order[position:]
                if categorical and counts[left].sum() > counts[right].sum():
                    left, right = right, left  # the heavier side is the one of "all others"
                codes = present[left]
                found = CustomSplit(
                    float(gain),
                    feature,
                    codes[codes != missing],
                    bool((codes == missing).any()),
                    int(present[right].min()) if not categorical else -1,
                    drawn,
                )
        return [] if found is None else [found]

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
            return [np.argsort(sums / total, kind="stable") for sums in by.T]
        if present[-1] != missing:
            return [everything]
        return [everything, np.roll(everything, 1)]  # missing values right, then left


@kernel
def _grouped(node, columns, feature):
    """(codes that are there, sums, weights, samples of each), by ascending code."""
    m, n_stats = len(node.rows), node.stats.shape[1]
    codes = np.empty(m, np.int64)
    for i in range(m):
        codes[i] = code_of(columns, feature, node.rows[i])
    present = np.unique(codes)
    sums = np.zeros((len(present), n_stats))
    weights, samples = np.zeros(len(present)), np.zeros(len(present))
    for i in range(m):
        g = np.searchsorted(present, codes[i])
        weights[g] += node.weight[i]
        samples[g] += node.samples[i]
        for k in range(n_stats):
            sums[g, k] += node.weight[i] * node.stats[i, k]
    return present, sums, weights, samples


@kernel
def _draw(columns, feature, present, key):
    """A threshold between the extremes, as `node_search` draws it, and how many codes are below."""
    base = columns.first[feature]
    low, high = columns.values[base + present[0]], columns.values[base + present[-1]]
    if not low < high:
        return -1, np.nan
    state = np.uint64(key) ^ (np.uint64(feature + 1) * np.uint64(0xD1342543DE82EF95))
    _, bits = random_below(state, 1 << 52)
    share = bits / float(1 << 52)
    drawn = low * (1.0 - share) + high * share
    if not low <= drawn < high:
        drawn = low
    below = 1
    while columns.values[base + present[below]] <= drawn:
        below += 1
    return below, drawn


@functools.lru_cache(maxsize=64)
def _compiled(impurity: Callable[..., float], parameters: tuple[float, ...]) -> tuple[Any, Any]:
    """The function with its parameters, and the scan that calls it."""
    function = compiled_for_user(impurity)
    if parameters:
        with_all = function

        @compiled_for_user
        def function(sums: Any, weight: Any) -> Any:
            return with_all(sums, weight, *parameters)

    return function, _scan_for(function)


def _scan_for(impurity: Any) -> Any:
    @compiled_for_user
    def scan(
        sums: Any, weights: Any, samples: Any, min_samples: Any, min_weight: Any, only: Any
    ) -> Any:
        """The gain of the best split between groups in this order, and how many go left.

        only: how many go left, if that is given already; else -1.
        """
        left = np.zeros(sums.shape[1])
        right = np.zeros(sums.shape[1])
        n_left, weight_left, n_right, weight_right = 0.0, 0.0, 0.0, 0.0
        for g in range(len(sums)):
            right += sums[g]
            weight_right += weights[g]
            n_right += samples[g]
        before = weight_right * impurity(right, weight_right)
        best, position = -np.inf, 0
        for g in range(len(sums) - 1):
            left += sums[g]
            right -= sums[g]
            weight_left += weights[g]
            weight_right -= weights[g]
            n_left += samples[g]
            n_right -= samples[g]
            if only >= 0 and g + 1 != only:
                continue
            if min(n_left, n_right) < min_samples or min(weight_left, weight_right) < min_weight:
                continue
            gain = before - weight_left * impurity(left, weight_left)
            gain -= weight_right * impurity(right, weight_right)
            if gain > best + 1e-12 * abs(before):
                best, position = gain, g + 1
        return best, position

    return scan
