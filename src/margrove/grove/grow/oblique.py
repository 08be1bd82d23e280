"""Oblique trees: a node may ask a linear machine instead of one feature.

Each node finds a direction (see `oblique_directions`), and the projections of its rows on it take
part in the search as one more feature. The split is the best threshold on any of them, by the
criterion, so an oblique split is made only where it beats all others.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.grove.grow.assembly import assemble
from margrove.grove.grow.oblique_directions import direction_of, two_groups
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.tree_builder import TreeBuilder, columns_of
from margrove.grove.serve import LEAF, OBLIQUE, SUBSET, THRESHOLD, TreeArrays, leaves_of
from margrove.grove.table import Targets, bin_columns

__all__ = ["ObliqueTreeBuilder"]


@dataclass
class _Node:
    """stump: a tree of this node and its children, over the features and the direction."""

    parent: int
    rows: np.ndarray
    depth: int
    stump: TreeArrays
    direction: np.ndarray | None
    children: tuple[int, int] | None = None

    @property
    def can_split(self) -> bool:
        return len(self.stump) > 1


class ObliqueTreeBuilder:
    """Builds one oblique tree; a process for `slices.drive`."""

    unit = "node"
    total: int | None = None

    def __init__(
        self,
        X: np.ndarray,
        targets: Targets,
        rules: Rules,
        rows: np.ndarray,
        *,
        learner: str,
        categorical: np.ndarray,
        n_categories: np.ndarray,
        max_leaves: int = 0,
    ) -> None:
        self._X, self._targets, self._rules = np.asarray(X, dtype=np.float64), targets, rules
        self._learner = learner
        self._categorical, self._n_categories = categorical, n_categories
        self._max_leaves = max_leaves
        self._nodes: list[_Node] = []
        self._frontier: list[tuple[float, int]] = []
        self._n_leaves = 1
        self._add(-1, rows, 0)

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
        """Split one node."""
        _, number = heapq.heappop(self._frontier)
        node = self._nodes[number]
        if self._max_leaves and self._n_leaves >= self._max_leaves:
            return 1.0
        self._n_leaves += 1
        left = leaves_of(node.stump, self._with_projection(node.rows, node.direction)) == 1
        node.children = (
            self._add(number, node.rows[left], node.depth + 1),
            self._add(number, node.rows[~left], node.depth + 1),
        )
        return 100.0 * self._X.shape[1] * len(node.rows)

    def result(self) -> TreeArrays:
        return _joined(self._nodes, self._X.shape[1])

    def _add(self, parent: int, rows: np.ndarray, depth: int) -> int:
        direction = self._direction(rows) if depth < self._rules.max_depth else None
        node = _Node(parent, rows, depth, self._stump(rows, direction, depth), direction)
        self._nodes.append(node)
        number = len(self._nodes) - 1
        if node.can_split:
            key = -float(node.stump.decrease[0]) if self._max_leaves else 0.0
            heapq.heappush(self._frontier, (key, number))
        return number

    def _direction(self, rows: np.ndarray) -> np.ndarray | None:
        X = np.where(self._categorical, 0.0, self._X[rows])
        weight = self._targets.real[rows]
        if len(self._targets.labels):
            labels = self._targets.labels[rows]
            if labels.min() == labels.max():
                return None
            with np.errstate(all="ignore"):
                signs = two_groups(X, labels, weight)
        else:
            y = self._targets.raw[rows]
            signs = y > np.average(y, weights=weight)
        with np.errstate(all="ignore"):  # what leaves floating point is no direction
            return direction_of(self._learner, X, signs, weight)

    def _with_projection(self, rows: np.ndarray, direction: np.ndarray | None) -> np.ndarray:
        X = self._X[rows]
        if direction is None:
            return X
        return np.column_stack([X, projected(X, direction)])

    def _stump(self, rows: np.ndarray, direction: np.ndarray | None, depth: int) -> TreeArrays:
        table = self._with_projection(rows, direction)
        more = table.shape[1] - self._X.shape[1]
        categorical = np.concatenate([self._categorical, np.zeros(more, dtype=bool)])
        data = bin_columns(table, categorical=categorical)
        labels, raw = self._targets.labels, self._targets.raw
        targets = self._targets._replace(
            labels=labels[rows] if len(labels) else labels,
            numbers=np.zeros(len(rows) if len(raw) else 0, np.int64),
            raw=raw[rows] if len(raw) else raw,
            weight=self._targets.weight[rows],
            real=self._targets.real[rows],
            samples=self._targets.samples[rows],
        )
        shallow = self._rules._replace(
            max_depth=min(1, self._rules.max_depth - depth), max_features=table.shape[1]
        )
        builder = TreeBuilder(columns_of(data), targets, shallow, np.arange(len(rows)))
        while not builder.finished:
            builder.advance(np.inf)
        n_categories = np.concatenate([self._n_categories, np.zeros(more, np.int64)])
        return assemble(builder.result(), data, targets, shallow, n_categories)


def projected(X: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Summed feature by feature, as a row is when the tree is asked: equal to the last bit."""
    total = np.zeros(len(X))
    for j in np.flatnonzero(direction):
        total += direction[j] * X[:, j]
    return total


def _joined(nodes: list[_Node], d: int) -> TreeArrays:
    """All nodes in preorder; each is the root of its stump."""
    order: list[int] = []
    stack = [0]
    while stack:
        number = stack.pop()
        order.append(number)
        children = nodes[number].children
        if children is not None:
            stack.extend(reversed(children))
    place = {number: k for k, number in enumerate(order)}
    kept = [nodes[number] for number in order]
    n = len(kept)
    inner = np.array([node.children is not None for node in kept])
    roots = {
        name: np.array([getattr(node.stump, name)[0] for node in kept])
        for name in ("feature", "threshold", "missing_child", "weight", "n_samples", "value",
                     "impurity", "decrease")
    }  # fmt: skip
    kind = np.where(inner, [node.stump.kind[0] for node in kept], LEAF).astype(np.int8)
    kind[(kind == THRESHOLD) & (roots["feature"] == d)] = OBLIQUE
    set_start, set_size = np.zeros(n, np.int64), np.zeros(n, np.int64)
    words: list[np.ndarray] = [np.empty(0, np.uint32)]
    coef: list[np.ndarray] = []
    for k, node in enumerate(kept):
        if kind[k] == OBLIQUE and node.direction is not None:
            set_start[k] = len(coef)
            coef.append(node.direction)
        elif kind[k] == SUBSET:
            set_start[k] = sum(len(one) for one in words)
            set_size[k] = node.stump.set_size[0]
            words.append(node.stump.words)
    n_children = np.where(inner, 2, 0).astype(np.int32)
    pairs = [
        [place[child] for child in node.children] for node in kept if node.children is not None
    ]
    return TreeArrays(
        kind=kind,
        feature=np.where(inner & (kind != OBLIQUE), roots["feature"], -1).astype(np.int32),
        threshold=np.where(inner, roots["threshold"], np.nan),
        first_child=(np.cumsum(n_children) - n_children).astype(np.int64),
        n_children=n_children,
        children=np.array(pairs, dtype=np.int64).ravel(),
        parent=np.array(
            [place[node.parent] if node.parent >= 0 else -1 for node in kept], np.int64
        ),
        missing_child=np.where(inner, roots["missing_child"], 0).astype(np.int32),
        set_start=set_start,
        set_size=set_size,
        words=np.concatenate(words),
        branches=np.empty(0, np.int32),
        coef=np.array(coef) if coef else np.empty((0, d)),
        weight=roots["weight"],
        n_samples=roots["n_samples"].astype(np.int64),
        value=roots["value"],
        impurity=roots["impurity"],
        decrease=np.where(inner, roots["decrease"], 0.0),
    )
