"""The trees of boosting one after the other in one array, and rows that walk through them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel
from margrove.grove.grow.search import SQUARED
from margrove.grove.serve.packed_trees import FEATURE_AT, MISSING_AT, SET_AT, Kind, PackedTree

__all__ = ["Arena", "arena_of", "features_of", "have_sets", "new_ways", "starts_of", "walk"]

_ABREAST = 8
_LOW_WORD = np.int64(0xFFFFFFFF)
_FEATURE_BITS = np.int64(0xFFFFFFF)
_ONE = np.uint32(1)


class Arena(NamedTuple):
    """Nodes as in `packed`, but numbered throughout.

    numbers        float64 (2N,)  at 2k: the threshold, the value of a leaf, or where its set is
    links          int64 (2N,)  at 2k + 1; of the same memory
    words          uint32  sets of categories, as bits
    n_categories   int64 (d,)
    roots          int64 (trees + 1,)  the last one is N
    """

    numbers: np.ndarray
    links: np.ndarray
    words: np.ndarray
    n_categories: np.ndarray
    roots: np.ndarray

    @property
    def left(self) -> np.ndarray:
        """The left child of each node; a leaf's is itself."""
        left: np.ndarray = self.links[1::2] & _LOW_WORD
        return left


def arena_of(trees: list[PackedTree], n_categories: np.ndarray) -> Arena:
    """Trees whose leaves are single numbers; an error where one of them is not sound."""
    n_categories = np.ascontiguousarray(n_categories, dtype=np.int64)
    if not _look_sound(trees, n_categories):
        kind = Kind(SQUARED, (), 1, n_categories)
        for tree in trees:  # whichever it is says what is wrong
            tree.require_sound(kind, len(n_categories))
    sizes, nodes, words = _joined(trees)
    roots = starts_of(sizes)
    nodes[1::2] += np.repeat(roots[:-1], sizes)
    n_words = np.array([len(tree.words) for tree in trees], np.int64)
    numbers = nodes.view(np.float64)
    numbers[0::2] += np.where(have_sets(nodes[1::2]), np.repeat(starts_of(n_words)[:-1], sizes), 0)
    arrays = (numbers, nodes, words, n_categories, roots)
    return Arena(*(read_only(own) for own in arrays))


def starts_of(counts: np.ndarray) -> np.ndarray:
    """Where each part begins, and in the end where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def have_sets(links: np.ndarray) -> np.ndarray:
    found: np.ndarray = (links >> SET_AT) & 1 == 1
    return found


def features_of(links: np.ndarray) -> np.ndarray:
    found: np.ndarray = (links >> FEATURE_AT) & _FEATURE_BITS
    return found


def _joined(trees: list[PackedTree]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many nodes each tree has, all nodes, and all words."""
    return (
        np.array([len(tree) for tree in trees], np.int64),
        np.concatenate([np.empty(0, np.int64), *(tree.nodes for tree in trees)]),
        np.concatenate([np.empty(0, np.uint32), *(tree.words for tree in trees)]),
    )


def _look_sound(trees: list[PackedTree], n_categories: np.ndarray) -> bool:
    """What `PackedTree.require_sound` asks for, of all trees at once: fifty times faster."""
    if any(tree.nodes.shape != (2 * len(tree),) or len(tree) % 2 == 0 for tree in trees):
        return False
    sizes, nodes, _ = _joined(trees)
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


def new_ways() -> np.ndarray:
    """Room for `walk`: where the rows begin, and the nodes they have come to."""
    return np.empty((2, _ABREAST), np.int64)


@kernel(bare=True)
def walk(cells, arena, first, last, origin, ways, raw, found, begin):
    """All rows through trees first ... last - 1, in eight ways at a time, so that none waits for
    memory: of one row through eight trees, or of eight rows through one.

    cells   float64 (n d,)  the rows, one after the other
    raw     float64 (K, rows)  gets values added: tree t's to score t mod K
    found   int32 (rows, trees)  gets the numbers of leaves, if raw is empty
    begin, origin: the first row, and the tree of the first column, there.
    """
    n_features, n_scores = len(arena.n_categories), raw.shape[0]
    n_ways = len(cells) // n_features * (last - first)
    row, tree = 0, first  # of the next way
    done_row, done_tree = 0, first
    for start in range(0, n_ways, _ABREAST):
        count = min(_ABREAST, n_ways - start)
        for k in range(_ABREAST):  # in the end some may stand still
            ways[0, k], ways[1, k] = row * n_features, arena.roots[tree]
            if k < count - 1:
                row, tree = _next_way(row, tree, first, last)
        row, tree = _next_way(row, tree, first, last)
        _go_to_leaves(cells, arena, ways)
        for k in range(count):
            leaf = ways[1, k]
            if n_scores:
                raw[done_tree % n_scores, begin + done_row] += arena.numbers[2 * leaf]
            else:
                found[begin + done_row, done_tree - origin] = leaf - arena.roots[done_tree]
            done_row, done_tree = _next_way(done_row, done_tree, first, last)


@kernel(inner=True)
def _next_way(row, tree, first, last):
    return (row, tree + 1) if tree + 1 < last else (row + 1, first)


@kernel(inner=True)
def _go_to_leaves(cells, arena, ways):
    on_the_way = np.int64(1)
    while on_the_way:
        on_the_way = np.int64(0)
        for k in range(_ABREAST):  # a constant, so that the compiler writes out all eight
            node = ways[1, k]
            link = arena.links[np.uint64(2 * node + 1)]
            left = link & _LOW_WORD
            feature = (link >> FEATURE_AT) & _FEATURE_BITS
            value = cells[np.uint64(ways[0, k] + feature)]
            threshold = arena.numbers[np.uint64(2 * node)]
            missing_right = ~(link >> MISSING_AT) & np.int64(1)
            is_missing = np.int64(value != value)  # noqa: PLR0124
            is_right = np.int64(value > threshold) | (is_missing & missing_right)
            if (link >> SET_AT) & 1:
                is_right = missing_right
                if 0 <= value < arena.n_categories[feature]:
                    category = np.int64(value)
                    word = arena.words[np.int64(threshold) + category // 32]
                    is_right = np.int64(~(word >> np.uint32(category % 32)) & _ONE)
            is_inner = np.int64(left != node)
            ways[1, k] = left + (is_inner & is_right)
            on_the_way |= is_inner
