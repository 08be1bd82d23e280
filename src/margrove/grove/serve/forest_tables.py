"""Rows walk through all trees of a forest in one region, and leave their sums or labels.

A tile is a run of rows: it copies them, checks them, and walks them through one tree after the
other. Trees stay where they are; compiled code gets the addresses of their arrays. What a tile
computes for a row depends on that row only. Many rows find their leaves in small trees with tables
of bits instead of walks; see `leaf_bits`.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import carray, fetch, kernel, pointer_to, region
from margrove.grove.serve.boosted_walk import join_sound_trees
from margrove.grove.serve.forest_walk import (
    add_numbers,
    add_rows,
    add_votes_of_rows,
    starts_of_outputs,
    walk,
    walk_any,
)
from margrove.grove.serve.leaf_bits import (
    BLOCK,
    BlockBuffers,
    LeafBits,
    find_places,
    leaf_bits_of,
    write_codes,
)
from margrove.grove.serve.packed_trees import Kind, PackedTree

__all__ = ["ForestTables"]

_MEANS, _VOTES, _EACH = range(3)
_WALKS_AT_ONCE = 8
_MANY_TREES = 10  # from here on, rows are sorted
_FEW_ROWS = 2048
_SMALLEST_TILE, _LARGEST_TILE = 512, 2048
_CELLS_OF_A_TILE = 1 << 16
_TILES_OF_A_THREAD = 4  # where there are several threads
_WORDS_OF_A_LINE = 8  # 64 bytes
_SMALLEST_FETCHED, _NODES_OF_A_ROW = 2048, 32  # measured
# Measured: tables are faster for trees of up to so many nodes on average, and where the time that
# they save, for each row and tree, exceeds the time to make them.
_NODES_FOR_TABLES = 320
_LEAST_FOR_TABLES, _ROWS_OF_A_NODE = 200_000, 40  # rows times trees; and for each node
_FEATURES_OF_A_TREE = 2
_TYPES = {np.dtype(np.int32): 0, np.dtype(np.int64): 1, np.dtype(np.float64): 2}


class _Trees(NamedTuple):
    """Addresses and lengths of the arrays of all trees, int64 (trees, 8): nodes, words, values,
    and the type of the values; and `keep` the rest that is the same for all."""

    table: np.ndarray
    n_categories: np.ndarray
    n_pure: int
    has_rows: bool
    starts: np.ndarray


class ForestTables:
    """The sound trees of a forest, to be read by compiled code while this object lives."""

    def __init__(self, trees: list[PackedTree], kind: Kind, n_threads: int) -> None:
        self._kept = list(trees)
        self._n_threads = n_threads
        self._n_values = kind.n_values
        self._trees = _Trees(
            np.frombuffer(b"".join(map(_addresses, trees)), dtype=np.int64).reshape(-1, 8),
            read_only(np.ascontiguousarray(kind.n_categories, dtype=np.int64)),
            kind.n_pure,
            kind.has_rows,
            starts_of_outputs(kind.n_classes),
        )

    def means(self, X: np.ndarray, *, hard: bool) -> np.ndarray | None:
        """The mean of the trees' values or votes, (n, n_values); None if X has infinity."""
        found = np.empty((len(X), self._n_values))
        is_finite = self._walk(X, _VOTES if hard else _MEANS, found, np.empty(0, np.intp))
        return found if is_finite else None

    def winners(self, X: np.ndarray, *, hard: bool) -> np.ndarray | None:
        """The number of the largest mean of each row, the first of equal ones, for one output."""
        labels = np.empty(len(X), np.intp)
        none = np.empty((0, self._n_values))
        return labels if self._walk(X, _VOTES if hard else _MEANS, none, labels) else None

    def values_of_trees(self, X: np.ndarray) -> np.ndarray | None:
        """The values of each tree, (n, n_trees * n_values)."""
        found = np.empty((len(X), len(self._kept) * self._n_values))
        return found if self._walk(X, _EACH, found, np.empty(0, np.intp)) else None

    def leaves(self, X: np.ndarray) -> np.ndarray | None:
        """The leaf of each row in each tree, int32 (n, n_trees), those of a tree side by side."""
        found = np.zeros((len(self._kept), len(X)), np.int32)
        return found.T if self._find_leaves(X, self._order(X), found) else None

    def _find_leaves(self, X: np.ndarray, order: np.ndarray, found: np.ndarray) -> bool:
        """Fill found (trees, n) for the first trees; False if X has infinity."""
        size = self._rows_of_a_tile(*X.shape)
        finite = np.ones(-(-len(X) // size), dtype=bool)
        _find_leaves(len(finite), self._n_threads, size, read_only(X), order, self._trees, found,
                     finite)  # fmt: skip
        return bool(finite.all())

    def _walk(self, X: np.ndarray, what: int, found: np.ndarray, labels: np.ndarray) -> bool:
        """Fill `found` or `labels`; False if X has infinity."""
        has_bits = self._is_worth_tables(*X.shape)
        bits = self._bits() if has_bits else _no_bits()
        order = np.empty(0, np.int64) if has_bits else self._order(X)
        size = BLOCK if has_bits else self._rows_of_a_tile(*X.shape)
        finite = np.ones(-(-len(X) // size), dtype=bool)
        _walk_tile(len(finite), self._n_threads, size, read_only(X), order, self._trees, bits, what,
                   found, labels, finite)  # fmt: skip
        return bool(finite.all())

    def _is_worth_tables(self, n: int, d: int) -> bool:
        """Whether tables of bits are faster than walks, with the time to make them."""
        n_trees, n_nodes = len(self._kept), sum(map(len, self._kept))
        return (
            n * n_trees >= _LEAST_FOR_TABLES + _ROWS_OF_A_NODE * n_nodes
            and n_nodes <= _NODES_FOR_TABLES * n_trees
            and min(d, n_nodes // 2) <= _FEATURES_OF_A_TREE * n_trees
        )

    def _bits(self) -> LeafBits:
        return leaf_bits_of(join_sound_trees(self._kept, self._trees.n_categories))

    def _rows_of_a_tile(self, n: int, d: int) -> int:
        """Many, as all trees are read for each tile, but as many as stay in the cache."""
        n_tiles = 1 if self._n_threads == 1 else _TILES_OF_A_THREAD * self._n_threads
        wanted = min(max(_SMALLEST_TILE, -(-n // n_tiles)), _LARGEST_TILE)
        return max(min(wanted, _CELLS_OF_A_TILE // max(d, 1)), 2 * _WALKS_AT_ONCE)

    def _order(self, X: np.ndarray) -> np.ndarray:
        """The order in which rows are predicted fastest; empty if it is theirs.

        Many rows are sorted by their leaf in one tree. Rows of one leaf are similar, so they also
        pass mostly the same nodes in the other trees.
        """
        none = np.empty(0, np.int64)
        if len(X) <= _FEW_ROWS or len(self._kept) < _MANY_TREES:
            return none
        leaves = np.zeros((1, len(X)), np.int32)
        self._find_leaves(X, none, leaves)
        return np.asarray(_sorted_by_leaf(leaves[0], len(self._kept[0])))


@functools.cache
def _no_bits() -> LeafBits:
    """Tables of no trees, for rows that walk."""
    return leaf_bits_of(join_sound_trees([], read_only(np.empty(0, np.int64))))


def _addresses(tree: PackedTree) -> bytes:
    """A row of the table; it is kept with the tree, as asking NumPy for addresses is slow."""
    arrays = (tree.nodes, tree.words, tree.values)
    known: tuple[bytes, tuple[np.ndarray, ...]] | None = tree.__dict__.get("_addresses")
    if known is not None and all(map(operator.is_, known[1], arrays)):
        return known[0]
    values = tree.values
    if not values.flags.c_contiguous or values.dtype not in _TYPES:
        raise ValueError("The values of a tree are not in C order. Fit the model again.")
    row = [
        tree.nodes.ctypes.data, len(tree.nodes), tree.words.ctypes.data, len(tree.words),
        values.ctypes.data, len(values), values.shape[1], _TYPES[values.dtype],
    ]  # fmt: skip
    found = np.array(row, dtype=np.int64).tobytes()
    object.__setattr__(tree, "_addresses", (found, arrays))
    return found


@kernel(hidden=True)
def _links(trees, k):
    return carray(pointer_to(trees.table[k, 0]), (trees.table[k, 1],), np.int64)


@kernel(hidden=True)
def _thresholds(trees, k):
    return carray(pointer_to(trees.table[k, 0]), (trees.table[k, 1],), np.float64)


@kernel(hidden=True)
def _words(trees, k):
    return carray(pointer_to(trees.table[k, 2]), (trees.table[k, 3],), np.uint32)


@kernel(inner=True)
def _fetch_tree(links, n_rows):
    """Prefetch a large tree from its beginning to its end, if rows will visit most of it.

    Walks ask for one node after the other, and wait for each that is not in the cache yet.
    """
    if _SMALLEST_FETCHED <= len(links) // 2 <= _NODES_OF_A_ROW * n_rows:
        for word in range(0, len(links), _WORDS_OF_A_LINE):
            fetch(links, word)


@kernel(hidden=True)
def _walk_tree(trees, k, cells, n_features, has_nan, leaves):
    """The leaves of some rows, which lie one after the other, in tree k."""
    thresholds, links = _thresholds(trees, k), _links(trees, k)
    n = len(leaves)
    if has_nan or trees.table[k, 3] > 0 or n < _WALKS_AT_ONCE:
        rows = cells.reshape((n, n_features))
        walk_any(rows, thresholds, links, _words(trees, k), trees.n_categories, leaves)
    else:
        _fetch_tree(links, n)
        walk(cells, n_features, thresholds, links, leaves)


@kernel(hidden=True)
def _add_tree(trees, k, leaves, is_vote, sums):
    """Add the values or votes of the leaves in tree k."""
    thresholds = _thresholds(trees, k)
    if not trees.has_rows:
        add_numbers(thresholds, leaves, None, sums)
        return
    at, shape = pointer_to(trees.table[k, 4]), (trees.table[k, 5], trees.table[k, 6])
    if trees.table[k, 7] == 0:
        _add(thresholds, leaves, carray(at, shape, np.int32), trees, is_vote, sums)
    elif trees.table[k, 7] == 1:
        _add(thresholds, leaves, carray(at, shape, np.int64), trees, is_vote, sums)
    else:
        _add(thresholds, leaves, carray(at, shape, np.float64), trees, is_vote, sums)


@kernel(hidden=True)
def _add(thresholds, leaves, values, trees, is_vote, sums):
    if is_vote:
        add_votes_of_rows(thresholds, leaves, values, trees.n_pure, trees.starts, None, sums)
    else:
        add_rows(thresholds, leaves, values, trees.n_pure, trees.starts, None, sums)


@kernel(hidden=True)
def _copy_rows(X, order, begin, cells):
    """Copy rows to `cells`; whether they have NaN, and whether all else is finite."""
    d = X.shape[1]
    has_nan, is_finite = False, True
    for i in range(len(cells) // d if d else 0):
        row = X[order[begin + i]] if len(order) > 0 else X[begin + i]
        at = i * d
        n_odd = 0
        for j in range(d):
            cells[at + j] = row[j]
            n_odd += row[j] - row[j] != 0.0
        for j in range(d if n_odd > 0 else 0):
            is_nan = row[j] != row[j]
            has_nan |= is_nan
            is_finite &= is_nan or row[j] - row[j] == 0.0
    return has_nan, is_finite


@region
def _walk_tile(tile, size, X, order, trees, bits, what, found, labels, finite):
    """All trees for some rows."""
    begin = tile * size
    n, d, n_trees = min(size, X.shape[0] - begin), X.shape[1], len(trees.table)
    cells, leaves = np.empty(n * d, X.dtype), np.empty(n, np.int32)
    has_nan, finite[tile] = _copy_rows(X, order, begin, cells)
    if not finite[tile]:
        return
    n_values = found.shape[1]
    if what == _EACH:
        n_values //= n_trees
    sums = np.zeros((n, n_values))
    buffers = _buffers_of(bits)
    write_codes(cells, d, bits.columns, buffers)
    for k in range(n_trees):
        if len(bits.first) > 1 and bits.first[k] < bits.first[k + 1]:
            find_places(bits, k, n, buffers)
            for i in range(n):
                leaves[i] = bits.leaves[buffers.places[i]]
        else:
            _walk_tree(trees, k, cells, d, has_nan, leaves)
        _add_tree(trees, k, leaves, what == _VOTES, sums)
        if what == _EACH:
            for i in range(n):
                row = order[begin + i] if len(order) > 0 else begin + i
                for v in range(n_values):
                    found[row, k * n_values + v] = sums[i, v]
                    sums[i, v] = 0.0
    if what in (_MEANS, _VOTES):
        _write(sums, n_trees, order, begin, found, labels)


@kernel(hidden=True)
def _buffers_of(bits):
    n = BLOCK if len(bits.columns.feature) > 0 else 0
    return BlockBuffers(
        np.empty(len(bits.columns.feature) * BLOCK, np.uint8),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n, np.uint32),
        np.empty(n, np.uint32),
        np.empty((2, 0), np.int64),
    )


@kernel(inner=True)
def _write(sums, n_trees, order, begin, found, labels):
    """The means of a tile, or the number of the largest one in each row."""
    for i in range(sums.shape[0]):
        row = order[begin + i] if len(order) > 0 else begin + i
        winner, largest = 0, -np.inf
        for v in range(sums.shape[1]):
            mean = sums[i, v] / n_trees
            if len(labels) == 0:
                found[row, v] = mean
            elif mean > largest:
                winner, largest = v, mean
        if len(labels) > 0:
            labels[row] = winner


@region
def _find_leaves(tile, size, X, order, trees, leaves, finite):
    """The leaves of some rows in the first trees, int32 (trees, n); none if X has infinity."""
    begin = tile * size
    n, d = min(size, X.shape[0] - begin), X.shape[1]
    cells, found = np.empty(n * d, X.dtype), np.empty(n, np.int32)
    has_nan, finite[tile] = _copy_rows(X, order, begin, cells)
    for k in range(leaves.shape[0] if finite[tile] else 0):
        _walk_tree(trees, k, cells, d, has_nan, found)
        for i in range(n):
            leaves[k, order[begin + i] if len(order) > 0 else begin + i] = found[i]


@kernel
def _sorted_by_leaf(leaves, n_nodes):
    """The rows in the order of their leaves, those of one leaf in their order."""
    counts = np.zeros(n_nodes + 1, np.int64)
    for i in range(len(leaves)):
        counts[leaves[i] + 1] += 1
    for node in range(n_nodes):
        counts[node + 1] += counts[node]
    order = np.empty(len(leaves), np.int64)
    for i in range(len(leaves)):
        order[counts[leaves[i]]] = i
        counts[leaves[i]] += 1
    return order
