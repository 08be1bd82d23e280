"""The large nodes of trees whose rows lie on many workers: several trees at once, level by level.

Members are asked for sums; what is made of these is decided here, by the functions that decide it
on one machine. A node of few rows is left to one worker, with all below it. `grow` is a generator
that comes back after each round trip, so that whoever runs it can look at the clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from margrove.dask.forest_frames import Parting
from margrove.dask.forest_ground import Ground, Place, Trunk
from margrove.dask.forest_guests import Heritage
from margrove.dask.forest_leaves import end_leaves
from margrove.dask.forest_searches import search_nodes
from margrove.dask.forest_sums import sum_up_nodes
from margrove.ensemble.forest.grower import key_of
from margrove.grove.grow.nodes import (
    CODE,
    DECREASE,
    DEPTH,
    FEATURE,
    HIGH,
    KEY,
    LEFT,
    LOW,
    MISSING_LEFT,
    SUBSET,
    Nodes,
    begin_child,
    new_nodes,
)
from margrove.grove.grow.subtree import plant

__all__ = ["Trunks", "whole_tree"]


class Trunks:
    """Trees of these numbers, from their samples to their last nodes."""

    def __init__(self, ground: Ground, numbers: list[int]) -> None:
        self._ground, self._numbers = ground, numbers
        self._most_leaves = ground.frame.max_leaves
        self.trees: list[Trunk] = []

    def grow(self) -> Iterator[None]:
        yield from self._plant()
        while any(tree.new for tree in self.trees):
            yield from self._place()
            if self._most_leaves:
                yield from self._end_full_trees()
            yield from self._split()
        yield from self._grow_guests()
        self._ground.gang.ask("forget", combine="none")

    def _plant(self) -> Iterator[None]:
        gang, frame, numbers = self._ground.gang, self._ground.frame, self._numbers
        counts = gang.ask("draw", numbers)
        yield
        found = gang.ask("weigh", numbers, counts)
        n_numbers = 0 if frame.is_class else frame.n_outputs
        for number, (n_rows, weight) in zip(numbers, found.tolist(), strict=True):
            nodes = new_nodes(64, frame.n_stats, n_numbers, 0)
            key: Any = np.uint64(key_of(frame.seed, number)).view(np.int64)
            plant(nodes, n_rows, key)
            self.trees.append(Trunk(number, self._ground.rules_of(weight), nodes, {0: n_rows}))
        yield

    def _place(self) -> Iterator[None]:
        """New nodes are leaves, large nodes to be split, or guests of somebody."""
        large: list[Place] = []
        for tree in self.trees:
            for node in tree.new:
                is_small = tree.rows[node] <= self._ground.small
                # A tree of so many leaves at most wants to know of all its nodes which is best.
                if is_small and (node == 0 or not self._most_leaves):
                    tree.guests.append(node)
                else:
                    large.append((tree, node))
            tree.new = []
        if not large:
            return
        bases = yield from sum_up_nodes(self._ground, large)
        yield from search_nodes(self._ground, large, bases)
        leaves = []
        for tree, node in large:
            if tree.nodes.whole[node, FEATURE] < 0:
                leaves.append((tree, node))
            else:
                heapq.heappush(tree.ready, (-float(tree.nodes.real[node, DECREASE]), node))
        yield from end_leaves(self._ground, leaves, is_quick=self._ground.is_quick)

    def _end_full_trees(self) -> Iterator[None]:
        full = [tree for tree in self.trees if tree.n_leaves >= self._most_leaves]
        leaves = [(tree, node) for tree in full for _, node in tree.ready]
        for tree, node in leaves:
            tree.nodes.whole[node, FEATURE] = -1
        for tree in full:
            tree.ready = []
        yield from end_leaves(self._ground, leaves, is_quick=False)

    def _split(self) -> Iterator[None]:
        """All that can be split; best first, the best of each tree."""
        chosen, partings = [], []
        for tree in self.trees:
            count = min(1, len(tree.ready)) if self._most_leaves else len(tree.ready)
            for _ in range(count):
                _, node = heapq.heappop(tree.ready)
                tree.make_room(2, 0)
                chosen.append((tree, node, tree.used))
                partings.append(self._parting(tree, node))
                tree.used, tree.n_leaves = tree.used + 2, tree.n_leaves + 1
        if not chosen:
            return
        found = self._ground.gang.ask("part", partings)
        for (tree, node, first), counts in zip(chosen, found.tolist(), strict=True):
            for branch, n_rows in enumerate(counts):
                begin_child(tree.nodes, first + branch, node, 0, n_rows, branch)
                tree.rows[first + branch] = n_rows
            tree.nodes.whole[node, LEFT] = first
            tree.new += [first, first + 1]
        yield

    def _parting(self, tree: Trunk, node: int) -> Parting:
        """The node's numbers for those who have its rows."""
        whole = tree.nodes.whole[node]
        feature, begin = int(whole[FEATURE]), int(whole[SUBSET])
        words = None
        if begin >= 0:
            end = begin + int(self._ground.columns.n_codes[feature]) // 32 + 1
            words = tree.nodes.subsets[begin:end].copy()
        code, missing_left = int(whole[CODE]), int(whole[MISSING_LEFT])
        return Parting(tree.number, node, tree.used, feature, code, missing_left, words)

    # -- small nodes --

    def _grow_guests(self) -> Iterator[None]:
        """Subtrees go to whoever has fewest rows to grow, in turns that fit the memory."""
        gang = self._ground.gang
        waiting = [(tree, node) for tree in self.trees for node in tree.guests]
        waiting.sort(key=lambda own: -own[0].rows[own[1]])
        while waiting:
            journeys, waiting = self._journeys(waiting, gang.n_members)
            nodes = [[(tree.number, node) for tree, node in own] for own in journeys]
            gang.ask("send_guests", nodes, combine="none")
            yield
            wanted = [([_heritage(*own) for own in some],) for some in journeys]
            found = gang.ask_each("grow_guests", wanted, combine="list")
            for places, subtrees in zip(journeys, found, strict=True):
                for (tree, node), own in zip(places, subtrees, strict=True):
                    tree.grown[node] = own
            yield

    def _journeys(
        self, waiting: list[Place], n_members: int
    ) -> tuple[list[list[Place]], list[Place]]:
        """Who gets what in this turn, and what is left for the next."""
        journeys: list[list[Place]] = [[] for _ in range(n_members)]
        load = [(0, rank) for rank in range(n_members)]
        left = []
        for tree, node in waiting:
            n_rows, rank = load[0]
            if n_rows and n_rows + tree.rows[node] > self._ground.most_guests:
                left.append((tree, node))
                continue
            journeys[rank].append((tree, node))
            heapq.heapreplace(load, (n_rows + tree.rows[node], rank))
        return journeys, left


def _heritage(tree: Trunk, node: int) -> Heritage:
    nodes = tree.nodes
    return Heritage(
        tree.number,
        node,
        node == 0,
        int(nodes.whole[node, KEY]),
        int(nodes.whole[node, DEPTH]),
        float(nodes.real[node, LOW]),
        float(nodes.real[node, HIGH]),
        nodes.centre[node].copy(),
        nodes.exponent[node].copy(),
        (int(tree.rules.min_weight), float(tree.rules.min_decrease)),
    )


def whole_tree(tree: Trunk, *, best_first: bool) -> tuple[Nodes, int]:
    """All nodes, numbered as one machine would have: as they were split, the left ones first."""
    if best_first:
        return (_as_nodes(tree.grown[0]) if 0 in tree.grown else tree.nodes), _size(tree)
    trunk = tree.nodes
    n = _size(tree)
    n_words = tree.words + sum(len(own[-1]) for own in tree.grown.values())
    found = new_nodes(n, trunk.stats.shape[1], trunk.value.shape[1], max(1, n_words))
    found.subsets[: tree.words] = trunk.subsets[: tree.words]
    words, following = tree.words, 1
    stack = [(0, 0)]
    while stack:
        node, place = stack.pop()
        if node in tree.grown:
            own = _as_nodes(tree.grown[node])
            size = len(own.whole)
            own.whole[own.whole[:, LEFT] >= 0, LEFT] += following - 1
            own.whole[own.whole[:, SUBSET] >= 0, SUBSET] += words
            places = np.append(place, np.arange(following, following + size - 1))
            _copy(own, slice(None), found, places)
            found.subsets[words : words + len(own.subsets)] = own.subsets
            words, following = words + len(own.subsets), following + size - 1
            continue
        _copy(trunk, node, found, place)
        left = int(trunk.whole[node, LEFT])
        if left >= 0:
            found.whole[place, LEFT] = following
            stack += [(left + 1, following + 1), (left, following)]
            following += 2
    return found, n


def _size(tree: Trunk) -> int:
    return tree.used + sum(len(own[0]) - 1 for own in tree.grown.values())


def _as_nodes(subtree: tuple[np.ndarray, ...]) -> Nodes:
    whole, real, stats, value, subsets = subtree
    return Nodes(whole, real, stats, np.zeros_like(value), np.zeros_like(value, np.int64), value,
                 subsets)  # fmt: skip


def _copy(own: Nodes, which: Any, other: Nodes, places: Any) -> None:
    for name in ("whole", "real", "stats", "value"):
        getattr(other, name)[places] = getattr(own, name)[which]
