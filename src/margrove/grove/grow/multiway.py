"""Multiway trees, as in the lectures: ID3 and C4.5.

A categorical feature gets one branch for each value that is there and is not asked again further
down; a number is compared with a threshold. A row whose value is missing goes down all branches,
with the share of its weight that the rows with a value have there (Quinlan 1993): in training and
in prediction. A gain is that of the rows with a value, times their share.

Nodes are searched one by one in compiled code, from Python: these trees are bushy, not large.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.search import (
    ENTROPY,
    ERROR,
    GAIN_RATIO,
    GINI,
    SQUARED,
    float_log,
    sort_by,
)
from margrove.grove.grow.tree_builder import columns_of
from margrove.grove.serve import LEAF, MULTIWAY, THRESHOLD, TreeArrays
from margrove.grove.table import BinnedDataset, Columns, Targets, code_of

__all__ = ["MULTIWAY_CRITERIA", "MultiwayTreeBuilder"]

MULTIWAY_CRITERIA = (GINI, ENTROPY, ERROR, GAIN_RATIO, SQUARED)
_NEARLY = 1e-12


@dataclass
class _Node:
    """A node that has been summed up and searched.

    rows, weight    those that come by, and how much of each
    used            bool (d,)  categorical features asked above
    stats           sums of the statistics; for numbers: sums, sums of squares
    gain, feature, code, next_code     its best split; feature -1 for none
    """

    parent: int
    branch: int
    depth: int
    rows: np.ndarray
    weight: np.ndarray
    used: np.ndarray
    stats: np.ndarray
    total: float
    samples: float
    impurity: float
    gain: float = 0.0
    feature: int = -1
    code: int = 0
    next_code: int = 0
    n_branches: int = 0
    children: list[int] = field(default_factory=list)
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


class MultiwayTreeBuilder:
    """Builds one multiway tree; a process for `slices.drive`."""

    unit = "node"
    total: int | None = None

    def __init__(
        self,
        data: BinnedDataset,
        targets: Targets,
        rules: Rules,
        rows: np.ndarray,
        *,
        n_categories: np.ndarray,
        max_leaves: int = 0,
    ) -> None:
        self._data, self._targets, self._rules = data, targets, rules
        self._columns: Columns = columns_of(data)
        self._n_categories = n_categories
        self._max_leaves = max_leaves
        self._n_leaves = 1
        self._is_class = len(targets.labels) > 0
        self._nodes: list[_Node] = []
        self._frontier: list[tuple[float, int]] = []
        none = np.zeros(data.n_features, dtype=bool)
        self._add(-1, 0, 0, rows.astype(np.int64), targets.real[rows].copy(), none)

    @property
    def rounds(self) -> int:
        return len(self._nodes)

    @property
    def finished(self) -> bool:
        return not self._frontier

    def figures(self) -> dict[str, float]:
        return {"nodes": float(len(self._nodes))}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Split nodes, in the order of their gains where leaves are counted."""
        done = 0.0
        while self._frontier and done < work:
            _, number = heapq.heappop(self._frontier)
            node = self._nodes[number]
            done += 4.0 * len(node.rows) * self._data.n_features + 1000.0
            if self._max_leaves and self._n_leaves + node.n_branches - 1 > self._max_leaves:
                node.feature = -1
                continue
            self._n_leaves += node.n_branches - 1
            self._split(number)
        return done

    def result(self) -> TreeArrays:
        # An interrupt may have come before a node had all of its children.
        nodes = [
            replace(node, feature=-1) if len(node.children) < node.n_branches else node
            for node in self._nodes
        ]
        return _arrays(nodes, self._data, self._n_categories, self._is_class)

    def _add(
        self, parent: int, branch: int, depth: int, rows: np.ndarray, weight: np.ndarray,
        used: np.ndarray,
    ) -> int:  # fmt: skip
        """A new node: summed up, searched, and put into the frontier if it can be split."""
        stats, total, impurity = self._summed(rows, weight)
        number = len(self._nodes)
        samples = float(self._samples(rows, weight).sum())
        node = _Node(parent, branch, depth, rows, weight, used, stats, total, samples, impurity)
        self._nodes.append(node)
        rules = self._rules
        if (
            impurity > 0.0
            and depth < rules.max_depth
            and samples >= rules.min_samples_split * (1.0 - _NEARLY)
            and not self._is_pure(node)
        ):
            self._search(node)
        if node.feature >= 0:
            key = -node.gain if self._max_leaves else 0.0
            heapq.heappush(self._frontier, (key, number))
        return number

    def _samples(self, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """How many samples each row stands for, in part where it goes down several branches."""
        counts: np.ndarray = self._targets.samples[rows] * (weight / self._targets.real[rows])
        return counts

    def _is_pure(self, node: _Node) -> bool:
        if self._is_class:
            return int((node.stats > 0.0).sum()) == 1
        raw = self._targets.raw[node.rows]
        return bool(raw.min() == raw.max())

    def _summed(self, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float, float]:
        total = float(weight.sum())
        if self._is_class:
            stats = np.bincount(
                self._targets.labels[rows], weights=weight, minlength=int(self._targets.starts[-1])
            )
            return stats, total, float(_impurity(self._rules.criterion, stats, total))
        y = self._targets.raw[rows]
        low = float(y.min())
        above = float(weight @ (y - low)) / total  # of the mean, before it is rounded
        mean = min(max(low + above, low), float(y.max()))
        return np.array([mean]), total, float(weight @ ((y - low) - above) ** 2) / total

    def _search(self, node: _Node) -> None:
        d = self._data.n_features
        found = np.zeros((d, 6))
        rows = _NodeRows(
            node.rows, node.weight, self._samples(node.rows, node.weight), self._targets.labels,
            self._targets.raw, 0.0 if self._is_class else float(node.stats[0]),
            max(len(node.stats), 1), self._rules.criterion, float(self._rules.min_samples_leaf),
        )  # fmt: skip
        _search(self._columns, rows, node.used, found)
        allowed = found[:, 0] >= 0.0
        if not allowed.any():
            return
        merit = np.where(allowed, found[:, 0], -np.inf)
        if self._rules.criterion == GAIN_RATIO:
            average = found[allowed, 0].mean()
            good = allowed & (found[:, 0] >= average * (1.0 - 1e-9)) & (found[:, 1] > 0.0)
            ratios = np.divide(found[:, 0], found[:, 1], out=np.zeros(d), where=found[:, 1] > 0.0)
            merit = np.where(good, ratios, -np.inf)
            if not good.any():
                return
        best = merit.max()
        feature = int(np.argmax(merit >= best - _NEARLY * max(abs(best), node.total)))
        if found[feature, 0] < self._rules.min_decrease * (1.0 - _NEARLY):
            return
        node.feature, node.gain = feature, float(found[feature, 0])
        node.code, node.next_code = int(found[feature, 2]), int(found[feature, 3])
        node.n_branches = int(found[feature, 4])

    def _split(self, number: int) -> None:
        node = self._nodes[number]
        feature = node.feature
        codes = self._data.column(feature)[node.rows].astype(np.int64)
        is_missing = codes == self._data.n_codes[feature]
        used = node.used
        if self._data.categorical[feature]:
            branches = codes
            used = used.copy()
            used[feature] = True
        else:
            branches = (codes > node.code).astype(np.int64)
        present = np.unique(branches[~is_missing])
        node.codes = present
        known = float(node.weight[~is_missing].sum())
        for k, code in enumerate(present):
            own = ~is_missing & (branches == code)
            share = float(node.weight[own].sum()) / known
            weight = np.where(is_missing, node.weight * share, node.weight)
            chosen = own | is_missing
            child = self._add(number, k, node.depth + 1, node.rows[chosen], weight[chosen], used)
            node.children.append(child)
        node.rows = node.weight = np.empty(0, np.int64)  # no longer needed


@kernel
def _impurity(criterion, stats, total):
    """Impurity of a node from the weights of its classes."""
    value = 0.0
    if criterion == GINI:
        for k in range(len(stats)):
            value += (stats[k] / total) * (1.0 - stats[k] / total)
    elif criterion == ERROR:
        value = 1.0 - stats.max() / total
    else:
        for k in range(len(stats)):
            value -= float_log(stats[k] / total)
    return value


class _NodeRows(NamedTuple):
    """The rows of a node for a search.

    rows int64, weight, samples float64 (m,): which rows, and how much of each. labels, raw: targets
    of all rows, one of them empty; centre: of the numbers. n_stats: classes, or 1.
    """

    rows: np.ndarray
    weight: np.ndarray
    samples: np.ndarray
    labels: np.ndarray
    raw: np.ndarray
    centre: float
    n_stats: int
    criterion: int
    min_leaf: float


@kernel
def _search(columns, node, used, found):
    """found[j]: gain times weight (-1: no split), split information, code, next code, branches."""
    m = len(node.rows)
    total = 0.0
    for i in range(m):
        total += node.weight[i]
    keys = np.empty(m)
    order = np.empty(m, np.int64)
    spare = np.empty(m, np.int64)
    for j in range(len(columns.n_codes)):
        found[j, 0] = -1.0
        if used[j]:
            continue
        n_codes = columns.n_codes[j]
        for i in range(m):
            keys[i] = float(code_of(columns, j, node.rows[i]))
        sort_by(keys, m, order, spare)
        if columns.categorical[j]:
            _search_values(node, keys, order, n_codes, total, found[j])
        else:
            _search_thresholds(node, keys, order, n_codes, total, found[j])


@kernel
def _impurity_sum(node, stats, weight):
    """Weight times impurity, less what does not depend on the split."""
    if len(node.labels) > 0:
        return weight * _impurity(node.criterion, stats, weight)
    return -stats[0] * stats[0] / weight


@kernel
def _add(node, stats, i, weight):
    """Add a row to the statistics with some weight."""
    row = node.rows[i]
    if len(node.labels) > 0:
        stats[node.labels[row]] += weight
    else:
        stats[0] += weight * (node.raw[row] - node.centre)


@kernel
def _search_values(node, keys, order, n_codes, total, found):
    """One branch for each value; at least two must have enough samples."""
    m = len(order)
    known_stats = np.zeros(node.n_stats)
    stats = np.zeros(node.n_stats)
    known, branch_weight, after, information = 0.0, 0.0, 0.0, 0.0
    n_branches, n_large, branch_samples = 0, 0, 0.0
    for p in range(m + 1):
        ends = p == m or keys[order[p]] >= n_codes or (p and keys[order[p]] != keys[order[p - 1]])
        if ends and p:
            after += _impurity_sum(node, stats, branch_weight)
            information -= float_log(branch_weight / total) * total
            n_branches += 1
            n_large += branch_samples >= node.min_leaf * (1.0 - 1e-12)
            stats[:] = 0.0
            branch_weight, branch_samples = 0.0, 0.0
        if p == m or keys[order[p]] >= n_codes:
            break
        i = order[p]
        weight = node.weight[i]
        _add(node, stats, i, weight)
        _add(node, known_stats, i, weight)
        branch_weight += weight
        branch_samples += node.samples[i]
        known += weight
    if n_branches < 2 or n_large < 2:
        return
    if known < total:
        information -= float_log((total - known) / total) * total
    found[0] = max(_impurity_sum(node, known_stats, known) - after, 0.0)
    found[1] = information
    found[4] = n_branches


@kernel
def _search_thresholds(node, keys, order, n_codes, total, found):
    """Two branches, at the threshold that gains most."""
    m = len(order)
    left = np.zeros(node.n_stats)
    right = np.zeros(node.n_stats)
    known, stop, samples_right, samples_left = 0.0, 0, 0.0, 0.0
    while stop < m and keys[order[stop]] < n_codes:
        i = order[stop]
        _add(node, right, i, node.weight[i])
        known += node.weight[i]
        samples_right += node.samples[i]
        stop += 1
    if stop == 0:
        return
    before = _impurity_sum(node, right, known)
    left_weight = 0.0
    for p in range(stop - 1):
        i = order[p]
        _add(node, left, i, node.weight[i])
        _add(node, right, i, -node.weight[i])
        left_weight += node.weight[i]
        samples_left += node.samples[i]
        samples_right -= node.samples[i]
        if keys[order[p + 1]] == keys[i]:
            continue
        right_weight = known - left_weight
        if min(samples_left, samples_right) < node.min_leaf * (1.0 - 1e-12):
            continue
        gain = before - _impurity_sum(node, left, left_weight)
        gain = max(gain - _impurity_sum(node, right, right_weight), 0.0)
        if gain > found[0] + 1e-12 * max(total, gain):
            found[0] = gain
            found[1] = -float_log(left_weight / total) - float_log(right_weight / total)
            if known < total * (1.0 - 1e-12):
                found[1] -= float_log((total - known) / total)
            found[1] *= total
            found[2], found[3], found[4] = keys[i], keys[order[p + 1]], 2


def _arrays(
    nodes: list[_Node], data: BinnedDataset, n_categories: np.ndarray, is_class: bool
) -> TreeArrays:
    """In preorder."""
    order: list[int] = []
    stack = [0]
    while stack:
        number = stack.pop()
        order.append(number)
        if nodes[number].feature >= 0:
            stack.extend(reversed(nodes[number].children))
    place = {number: k for k, number in enumerate(order)}
    n = len(order)
    kind = np.zeros(n, np.int8)
    feature, threshold = np.full(n, -1, np.int32), np.full(n, np.nan)
    n_children = np.zeros(n, np.int32)
    children: list[int] = []
    set_start, set_size = np.zeros(n, np.int64), np.zeros(n, np.int64)
    branches: list[np.ndarray] = [np.empty(0, np.int32)]
    used = 0
    for k, number in enumerate(order):
        node = nodes[number]
        if node.feature < 0:
            continue
        feature[k] = node.feature
        n_children[k] = len(node.children)
        children.extend(place[child] for child in node.children)
        if data.categorical[node.feature]:
            kind[k] = MULTIWAY
            own = np.full(n_categories[node.feature], -1, np.int32)
            categories = data.lows[node.feature][node.codes].astype(np.int64)
            own[categories] = np.arange(len(node.codes))
            set_start[k], set_size[k] = used, len(own)
            branches.append(own)
            used += len(own)
        else:
            kind[k] = THRESHOLD
            threshold[k] = data.threshold(node.feature, node.code, node.next_code)
    kept = [nodes[number] for number in order]
    total = np.array([node.total for node in kept])
    stats = np.array([node.stats for node in kept])
    return TreeArrays(
        kind=kind,
        feature=feature,
        threshold=threshold,
        first_child=(np.cumsum(n_children) - n_children).astype(np.int64),
        n_children=n_children,
        children=np.array(children, dtype=np.int64),
        parent=np.array(
            [place[node.parent] if node.parent >= 0 else -1 for node in kept], np.int64
        ),
        missing_child=np.where(kind == LEAF, 0, -1).astype(np.int32),
        set_start=set_start,
        set_size=set_size,
        words=np.empty(0, np.uint32),
        branches=np.concatenate(branches),
        coef=np.empty((0, data.n_features)),
        weight=total,
        n_samples=np.rint([node.samples for node in kept]).astype(np.int64),
        value=stats / total[:, None] if is_class else stats,
        impurity=np.maximum([node.impurity for node in kept], 0.0),
        decrease=np.array([node.gain if node.feature >= 0 else 0.0 for node in kept]),
    )
