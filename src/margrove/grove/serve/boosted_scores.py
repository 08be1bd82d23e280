"""Scores of boosting: sums over rounds of small trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import read_only
from margrove._runtime import run_tiles
from margrove.grove.serve.boosted_walk import arena_of, features_of, new_ways, walk
from margrove.grove.serve.leaf_bits import BLOCK, LeafBits, answer, leaf_bits_of, new_room
from margrove.grove.serve.packed_trees import PackedTree
from margrove.grove.serve.tree_sums import dense_rows

__all__ = ["TreeScores"]

# A walk through a tree takes as long as
_QUESTIONS_OF_A_WALK = 4  # so many questions put to a handful of rows
_COLUMNS_OF_A_WALK = 4  # so many cells turned into codes
_ROWS_FOR_TABLES = 512  # for fewer, tables are not made, but used where they are there
_AT_ONCE = 1e9  # rows times nodes of a tile, some 50 milliseconds
_SHARED = 1e8  # rows times nodes that threads share
_MOST_BLOCKS = 8  # of a tile
_MOST_CELLS = 1 << 22  # of rows that have to be made dense


class TreeScores:
    """The scores of rows, from rounds of trees whose leaves are numbers.

    trees          rounds of K trees, one for each score
    n_categories   int64 (d,)  of each categorical column, 0 elsewhere
    start          float64 (K,)  the scores before the first round

    Few rows walk through the trees; for many, the trees become tables, when they are needed first.
    """

    def __init__(
        self, trees: list[list[PackedTree]], n_categories: np.ndarray, start: np.ndarray
    ) -> None:
        self.start = np.asarray(start, dtype=np.float64)
        self._rounds = [list(own) for own in trees]
        self._arena = arena_of([tree for own in trees for tree in own], n_categories)
        self._bits: LeafBits | None = None
        self._n_features = np.count_nonzero(np.bincount(features_of(self._arena.links[1::2])))

    def __reduce__(self) -> Any:
        return TreeScores, (self._rounds, self._arena.n_categories, self.start)

    @property
    def n_rounds(self) -> int:
        return len(self._rounds)

    @property
    def n_features(self) -> int:
        return len(self._arena.n_categories)

    @property
    def n_scores(self) -> int:
        return len(self.start)

    def is_worth_sharing(
        self, n_rows: int, first_round: int = 0, last_round: int | None = None
    ) -> bool:
        """Whether threads help; to find out how many there may be takes longer than a row does."""
        return n_rows * self._n_nodes(*self._range_of_trees(first_round, last_round)) >= _SHARED

    def scores(self, X: Any, *, n_threads: int = 1) -> np.ndarray:
        """float64 (K, n): where all rounds lead to from the start."""
        raw = np.repeat(self.start[:, None], X.shape[0], axis=1)
        self.add(X, raw, n_threads=n_threads)
        return raw

    def add(
        self,
        X: Any,
        raw: np.ndarray,
        first_round: int = 0,
        last_round: int | None = None,
        *,
        n_threads: int = 1,
    ) -> None:
        """Add what the trees say, from the first round up to, but not including, the last one.

        X is dense (NaN is missing, categories are numbers) or CSR, raw float64 (K, n). Trees are
        added one after the other: no bit depends on how rows come together, or on threads.
        """
        first, last = self._range_of_trees(first_round, last_round)
        self._visit(X, first, last, raw, np.empty((0, 0), np.int32), n_threads)

    def leaves(
        self,
        X: Any,
        first_round: int = 0,
        last_round: int | None = None,
        *,
        n_threads: int = 1,
    ) -> np.ndarray:
        """int32 (n, rounds times K): the number of each row's leaf in each tree."""
        first, last = self._range_of_trees(first_round, last_round)
        found = np.empty((X.shape[0], last - first), np.int32)
        self._visit(X, first, last, np.empty((0, 0)), found, n_threads)
        return found

    def _range_of_trees(self, first_round: int, last_round: int | None) -> tuple[int, int]:
        """Those of a round stand side by side."""
        first, last, _ = slice(first_round, last_round).indices(self.n_rounds)
        return first * self.n_scores, max(first, last) * self.n_scores

    def _n_nodes(self, first: int, last: int) -> int:
        return int(self._arena.roots[last] - self._arena.roots[first])

    def _visit(
        self,
        X: Any,
        first: int,
        last: int,
        raw: np.ndarray,
        found: np.ndarray,
        n_threads: int,
    ) -> None:
        """Add to `raw`, or write to `found`; the other one is empty."""
        n, arena = X.shape[0], self._arena
        if n == 0 or first == last:
            return
        n_nodes = self._n_nodes(first, last)
        n_threads = n_threads if n * n_nodes >= _SHARED else 1
        n_blocks = min(_AT_ONCE / n_nodes, n / (2 * n_threads)) / BLOCK
        size = BLOCK * int(min(max(n_blocks, 1), _MOST_BLOCKS))
        if sp.issparse(X):
            size = max(1, min(size, _MOST_CELLS // X.shape[1]))
        bits = self._bits_for(min(n, size), last - first, n_nodes)

        def visit(tile: int) -> None:
            begin = tile * size
            cells = read_only(dense_rows(X, slice(begin, begin + size)).ravel())
            if bits is None:
                walk(cells, arena, first, last, first, new_ways(), raw, found, begin)
            else:
                answer(cells, arena, bits, first, last, new_room(bits), raw, found, begin)

        run_tiles(visit, -(-n // size), n_threads)

    def _bits_for(self, n_rows: int, n_trees: int, n_nodes: int) -> LeafBits | None:
        """Tables, where they save time."""
        is_few = _QUESTIONS_OF_A_WALK * n_rows * n_trees < n_nodes
        if is_few or _COLUMNS_OF_A_WALK * n_trees < self._n_features:
            return None
        if self._bits is None and n_rows >= _ROWS_FOR_TABLES:
            self._bits = leaf_bits_of(self._arena)
        return self._bits
