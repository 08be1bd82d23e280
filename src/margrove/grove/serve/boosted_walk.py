"""The trees of boosting joined in one array, and rows that walk through them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, region
from margrove.grove.grow.search import SQUARED
from margrove.grove.serve.packed_trees import FEATURE_AT, MISSING_AT, SET_AT, Kind, PackedTree

__all__ = ["WALKS_AT_ONCE", "JoinedTrees", "features_of", "have_sets", "join_sound_trees",
           "join_trees", "starts_of", "walk", "walk_tile"]  # fmt: skip

WALKS_AT_ONCE = 8
_CELLS_AT_ONCE = 4096  # of rows
_LOW_WORD = np.int64(0xFFFFFFFF)
_FEATURE_BITS = np.int64(0xFFFFFFF)
_ONE = np.uint32(1)


class JoinedTrees(NamedTuple):
    """The nodes of all trees as in `packed_trees`, numbered from the first tree to the last.

    numbers        float64 (2N,)  at 2k: the threshold, the start of the set, or the leaf's value
    links          int64 (2N,)  at 2k + 1: the link; the same memory as `numbers`
    words          uint32  sets of categories, as bits
    n_categories   int64 (d,)
    roots          int64 (trees + 1,)  the root of each tree; the last entry is N
    """

    numbers: np.ndarray
    links: np.ndarray
    words: np.ndarray
    n_categories: np.ndarray
    roots: np.ndarray

    @property
    def left(self) -> np.ndarray:
        """int64 (N,): the left child of each node; for a leaf the leaf itself."""
        left: np.ndarray = self.links[1::2] & _LOW_WORD
        return left


def join_trees(trees: list[PackedTree], n_categories: np.ndarray) -> JoinedTrees:
    """Join trees whose leaves are single numbers; raise if one of them is not sound."""
    n_categories = np.ascontiguousarray(n_categories, dtype=np.int64)
    if not _look_sound(trees, n_categories):
        kind = Kind(SQUARED, (), 1, n_categories)
        for tree in trees:  # the one that is not sound raises
            tree.require_sound(kind, len(n_categories))
    return join_sound_trees(trees, n_categories)


def join_sound_trees(trees: list[PackedTree], n_categories: np.ndarray) -> JoinedTrees:
    """Join trees that have been checked; the number of a leaf may be the index of its value."""
    sizes, nodes, words = _concatenated(trees)
    roots = starts_of(sizes)
    nodes[1::2] += np.repeat(roots[:-1], sizes)
    n_words = np.array([len(tree.words) for tree in trees], np.int64)
    numbers = nodes.view(np.float64)
    numbers[0::2] += np.where(have_sets(nodes[1::2]), np.repeat(starts_of(n_words)[:-1], sizes), 0)
    arrays = (numbers, nodes, words, n_categories, roots)
    return JoinedTrees(*map(read_only, arrays))


def starts_of(counts: np.ndarray) -> np.ndarray:
    """Where each of several runs of these lengths begins, and last where all end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def have_sets(links: np.ndarray) -> np.ndarray:
    """bool: whether nodes split by a set of categories."""
    found: np.ndarray = (links >> SET_AT) & 1 == 1
    return found


def features_of(links: np.ndarray) -> np.ndarray:
    """int64: the features of nodes."""
    found: np.ndarray = (links >> FEATURE_AT) & _FEATURE_BITS
    return found


def _concatenated(trees: list[PackedTree]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of nodes of each tree, all nodes, and all words of sets."""
    return (
        np.array([len(tree) for tree in trees], np.int64),
        np.concatenate([np.empty(0, np.int64), *(tree.nodes for tree in trees)]),
        np.concatenate([np.empty(0, np.uint32), *(tree.words for tree in trees)]),
    )


def _look_sound(trees: list[PackedTree], n_categories: np.ndarray) -> bool:
    """The checks of `PackedTree.require_sound` for all trees at once: fifty times faster."""
    if any(tree.nodes.shape != (2 * len(tree),) or len(tree) % 2 == 0 for tree in trees):
        return False
    sizes, nodes, _ = _concatenated(trees)
    link, first = nodes[1::2], nodes.view(np.float64)[0::2]
    root = np.repeat(starts_of(sizes)[:-1], sizes)
    number = np.arange(len(link)) - root
    left = link & _LOW_WORD
    inner, leaf = np.flatnonzero(left != number), np.flatnonzero(left == number)
    parents = np.bincount(np.minimum(root + left, len(link))[inner], minlength=len(link))
    feature = features_of(link[inner])
    if (
        np.any(link < 0)
        or np.any(link[leaf] != left[leaf])
        or np.any(left[inner] <= number[inner])
        or np.any(left[inner] + 1 >= np.repeat(sizes, sizes)[inner])
        or not np.array_equal(parents, number % 2)
        or np.any(feature >= len(n_categories))
        or np.isnan(first[inner]).any()
        or not np.isfinite(first[leaf]).all()
    ):
        return False
    has_set = have_sets(link[inner])
    begins = first[inner][has_set]
    ends = begins + n_categories[feature[has_set]] // 32 + 1
    n_words = np.repeat([len(tree.words) for tree in trees], sizes)[inner][has_set]
    return not (np.any(begins < 0) or np.any(ends > n_words))


@kernel(bare=True)
def walk(cells, joined, first, last, origin, walks, raw, found, begin):
    """All rows walk through trees first ... last - 1, some rows at a time, which stay in the cache.

    cells   float64 (n d,)  the rows, one after the other
    walks   int64 (2, WALKS_AT_ONCE)  buffer: where the rows begin, and the nodes they have reached
    raw     float64 (K, rows)  the value of tree t is added to score t mod K
    found   int32 (rows, trees)  gets the numbers of leaves, if raw is empty
    begin   the place of the first row in raw and found
    origin  the tree of the first column of found
    """
    d = len(joined.n_categories)
    n, size = len(cells) // d, max(WALKS_AT_ONCE, _CELLS_AT_ONCE // d)
    for start in range(0, n, size):
        count = min(size, n - start)
        own = cells[start * d : (start + count) * d]
        _walk_together(own, count, joined, first, last, origin, walks, raw, found, begin + start)


@kernel(inner=True)
def _walk_together(cells, n, joined, first, last, origin, walks, raw, found, begin):
    """The n rows walk through one tree after the other.

    Eight walks go on at a time: while one waits for memory, the others go on.
    """
    n_features, n_scores, n_walks = len(joined.n_categories), raw.shape[0], n * (last - first)
    row, tree = 0, first  # of the next walk
    done_row, done_tree, score = 0, first, first % max(n_scores, 1)
    for start in range(0, n_walks, WALKS_AT_ONCE):
        count = min(WALKS_AT_ONCE, n_walks - start)
        for k in range(WALKS_AT_ONCE):  # at the end, some repeat the last walk
            walks[0, k], walks[1, k] = row * n_features, joined.roots[tree]
            if k < count - 1:
                row, tree = (row + 1, tree) if row + 1 < n else (0, tree + 1)
        row, tree = (row + 1, tree) if row + 1 < n else (0, tree + 1)
        _go_to_leaves(cells, joined, walks)
        for k in range(count):
            leaf = walks[1, k]
            if n_scores:
                raw[score, begin + done_row] += joined.numbers[2 * leaf]
            else:
                found[begin + done_row, done_tree - origin] = leaf - joined.roots[done_tree]
            done_row += 1
            if done_row == n:
                done_row, done_tree, score = 0, done_tree + 1, score + 1
                score = score if score < n_scores else 0


@region
def walk_tile(tile, size, cells, joined, first, last, raw, found, begin):
    """`walk` for `size` of all rows."""
    d, row = len(joined.n_categories), tile * size
    own = cells[row * d : min((row + size) * d, len(cells))]
    walks = np.empty((2, WALKS_AT_ONCE), np.int64)
    walk(own, joined, first, last, first, walks, raw, found, begin + row)


@kernel(inner=True)
def _go_to_leaves(cells, joined, walks):
    is_walking = np.int64(1)
    while is_walking:
        is_walking = np.int64(0)
        for k in range(WALKS_AT_ONCE):  # a constant, so that the compiler unrolls the loop
            node = walks[1, k]
            link = joined.links[np.uint64(2 * node + 1)]
            left = link & _LOW_WORD
            feature = (link >> FEATURE_AT) & _FEATURE_BITS
            value = cells[np.uint64(walks[0, k] + feature)]
            threshold = joined.numbers[np.uint64(2 * node)]
            missing_right = ~(link >> MISSING_AT) & np.int64(1)
            is_missing = np.int64(value != value)  # noqa: PLR0124
            is_right = np.int64(value > threshold) | (is_missing & missing_right)
            if (link >> SET_AT) & 1:
                is_right = missing_right
                if 0 <= value < joined.n_categories[feature]:
                    category = np.int64(value)
                    word = joined.words[np.int64(threshold) + category // 32]
                    is_right = np.int64(~(word >> np.uint32(category % 32)) & _ONE)
            is_inner = np.int64(left != node)
            walks[1, k] = left + (is_inner & is_right)
            is_walking |= is_inner
