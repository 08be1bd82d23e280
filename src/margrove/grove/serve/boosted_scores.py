"""Scores of boosting: sums over rounds of small trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import read_only
from margrove.grove.serve.boosted_walk import features_of, join_trees, walk_tile
from margrove.grove.serve.leaf_bits import BLOCK, LeafBits, leaf_bits_of, look_up_tile
from margrove.grove.serve.packed_trees import PackedTree
from margrove.grove.serve.row_blocks import dense_blocks

__all__ = ["TreeScores", "add_round", "is_flat"]

# Measured: one walk of a row through a tree takes as long as
_SPLITS_OF_A_WALK = 4  # comparing a vector of rows with so many splits
_COLUMNS_OF_A_WALK = 4  # turning so many cells into codes
_ROWS_FOR_TABLES = 512  # tables are made once so many rows have been asked for in all
_WORK_OF_A_TILE = 1e9  # rows times nodes, about 50 milliseconds
_WORK_FOR_THREADS = 5e6  # rows times nodes; with less, one thread is faster
_MOST_BLOCKS = 8  # of a tile
_ROWS_OF_A_WALK = 1024  # of a tile
_MOST_CELLS = 1 << 20  # of a tile of rows that are copied


class TreeScores:
    """The scores of rows, from rounds of trees whose leaves are numbers.

    trees          rounds of K trees, one for each score
    n_categories   int64 (d,)  of each categorical column, 0 elsewhere
    start          float64 (K,)  the scores before the first round

    Few rows walk through the trees. For many rows, in one call or in several, the trees are turned
    into tables (`leaf_bits`).
    """

    def __init__(
        self, trees: list[list[PackedTree]], n_categories: np.ndarray, start: np.ndarray
    ) -> None:
        self.start = np.asarray(start, dtype=np.float64)
        self._rounds = [list(trees_of_round) for trees_of_round in trees]
        self._joined = join_trees([tree for group in trees for tree in group], n_categories)
        self._bits: LeafBits | None = None
        self._n_asked = 0  # rows for which tables would have been faster
        self._n_used = np.count_nonzero(np.bincount(features_of(self._joined.links[1::2])))

    def __reduce__(self) -> Any:
        return TreeScores, (self._rounds, self._joined.n_categories, self.start)

    @property
    def n_rounds(self) -> int:
        return len(self._rounds)

    @property
    def n_features(self) -> int:
        return len(self._joined.n_categories)

    @property
    def n_scores(self) -> int:
        return len(self.start)

    def is_worth_sharing(
        self, n_rows: int, first_round: int = 0, last_round: int | None = None
    ) -> bool:
        """Whether several threads are faster; asking how many there are takes longer than a row."""
        n_nodes = self._n_nodes(*self._range_of_trees(first_round, last_round))
        return n_rows * n_nodes >= _WORK_FOR_THREADS

    def scores(self, X: Any, *, n_threads: int = 1) -> np.ndarray:
        """float64 (K, n): the scores after all rounds."""
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
        """Add the trees of rounds first_round .. last_round - 1 to raw, float64 (K, n).

        X is dense (NaN is missing, categories are numbers) or CSR. Trees are added one after the
        other, so the result does not depend on the other rows or on threads.
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
        """int32 (n, rounds * K): the leaf of each row in each tree."""
        first, last = self._range_of_trees(first_round, last_round)
        found = np.empty((X.shape[0], last - first), np.int32)
        self._visit(X, first, last, np.empty((0, 0)), found, n_threads)
        return found

    def _range_of_trees(self, first_round: int, last_round: int | None) -> tuple[int, int]:
        """First and last (excluded) number of the trees of these rounds."""
        first, last, _ = slice(first_round, last_round).indices(self.n_rounds)
        return first * self.n_scores, max(first, last) * self.n_scores

    def _n_nodes(self, first: int, last: int) -> int:
        return int(self._joined.roots[last] - self._joined.roots[first])

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
        n, joined = X.shape[0], self._joined
        if n == 0 or first == last:
            return
        n_nodes = self._n_nodes(first, last)
        n_threads = n_threads if n * n_nodes >= _WORK_FOR_THREADS else 1
        if is_flat(X):
            n_blocks = min(_WORK_OF_A_TILE / n_nodes, n / (2 * n_threads)) / BLOCK
            size, at_once = BLOCK * int(min(max(n_blocks, 1), _MOST_BLOCKS)), n
        else:
            size = max(1, min(BLOCK, _MOST_CELLS // X.shape[1]))
            at_once = 2 * n_threads * size
        bits = self._bits_for(n, min(n, size), last - first, n_nodes)
        for begin, rows in dense_blocks(X, at_once, n_threads):
            given = -(-len(rows) // size), n_threads, size, rows.reshape(-1), joined
            if bits is None:
                walk_tile(*given, first, last, raw, found, begin)
            else:
                look_up_tile(*given, bits, first, last, raw, found, begin)

    def _bits_for(self, n: int, at_once: int, n_trees: int, n_nodes: int) -> LeafBits | None:
        """Tables if they are faster than walks for n rows, so many at once; else None."""
        is_few = _SPLITS_OF_A_WALK * at_once * n_trees < n_nodes
        if is_few or _COLUMNS_OF_A_WALK * n_trees < self._n_used:
            return None
        if self._bits is None:
            self._n_asked += n
            if self._n_asked >= _ROWS_FOR_TABLES:
                self._bits = leaf_bits_of(self._joined)
        return self._bits


def add_round(
    trees: list[PackedTree],
    X: Any,
    n_categories: np.ndarray,
    raw: np.ndarray,
    *,
    n_threads: int = 1,
) -> None:
    """raw[k, i] += the value of tree k for row i, of dense rows that lie in one piece of memory."""
    joined = join_trees(trees, n_categories)
    nothing = np.empty((0, 0), np.int32)
    n_tiles = -(-len(X) // _ROWS_OF_A_WALK)
    walk_tile(n_tiles, n_threads, _ROWS_OF_A_WALK, read_only(X.reshape(-1)), joined, 0, len(trees),
              raw, nothing, 0)  # fmt: skip


def is_flat(X: Any) -> bool:
    """Whether regions can read a table: dense float64 in one piece of memory."""
    return isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous
