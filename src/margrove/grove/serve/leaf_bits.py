"""The leaves of many rows in small trees, found with bit masks instead of walks.

Each row has a bit for every leaf of a tree, in order from left to right. Every split that the row
answers with *right* clears the bits of the leaves in its left subtree, whether or not the row
reaches the split; the lowest bit that remains is the row's leaf (QuickScorer, Lucchese et al.
2015). Splits are applied to a block of rows one after the other, to sixteen or more rows in an
instruction (2016). For that, values become codes of one byte, in columns:

    numbers       0 for missing, else 1 + the number of thresholds below the value
    categories    their number; the number of all categories for missing

A feature has several columns if it has more thresholds than a byte can count. Bits are kept in
words of 32; large trees have several words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, region
from margrove.grove.serve.boosted_walk import (
    WALKS_AT_ONCE,
    JoinedTrees,
    features_of,
    have_sets,
    starts_of,
    walk,
)
from margrove.grove.serve.packed_trees import MISSING_AT

__all__ = [
    "BLOCK",
    "BlockBuffers",
    "LeafBits",
    "find_places",
    "leaf_bits_of",
    "look_up_tile",
    "write_codes",
]

BLOCK = 1024  # rows whose codes stay in the cache
_MOST_LEAVES = 512  # walks are faster for larger trees
_MOST_CUTS = 254  # of a column: 255 codes of values, and one of missing values, fit into a byte
_MOST_CATEGORIES = 255
_WORD = 32
_AT_ONCE = 4  # splits: with fewer, most of the time would go into reading and writing bits
_ALL = np.uint32(0xFFFFFFFF)
_ONE = np.uint32(1)
_FIVE, _LAST_FIVE = np.uint32(5), np.uint32(31)
_SPREAD, _SPREAD_AT = np.uint32(0x077CB531), np.uint32(27)  # see `_place_of`
_PLACE_OF_BIT = ((_ONE << np.arange(32, dtype=np.uint32)) * _SPREAD >> _SPREAD_AT).astype(np.int64)


class _Columns(NamedTuple):
    """How values become codes; all arrays but the cuts are (columns,).

    feature   int64
    n_steps   int64  steps of the binary search for numbers; -1 for categories
    start     int64  first cut of the column; for categories, their number
    cuts      float64  for each column of numbers 2^n_steps - 1: its thresholds, then infinity
    """

    feature: np.ndarray
    n_steps: np.ndarray
    start: np.ndarray
    cuts: np.ndarray


class _ThresholdSplits(NamedTuple):
    """Splits by thresholds, in groups of four: a row goes right if code - shift > limit.

    first    int64 (words + 1,)  the first split of each word
    column   uint64 (splits,)  where the codes of its column begin
    shift    uint8  0 if missing values go left, being the smallest code; 1 if they go right, being
             the largest: 0 - 1 = 255
    limit    uint8
    keeps    uint32  bits that remain for rows that go right
    """

    first: np.ndarray
    column: np.ndarray
    shift: np.ndarray
    limit: np.ndarray
    keeps: np.ndarray


class _SetSplits(NamedTuple):
    """Splits by sets, an entry for 32 categories: those of them outside the set go right.

    first, column, keeps   as in `_ThresholdSplits`
    word_number            uint32  which word of the set: category // 32
    members                uint32  that word
    """

    first: np.ndarray
    column: np.ndarray
    word_number: np.ndarray
    members: np.ndarray
    keeps: np.ndarray


class LeafBits(NamedTuple):
    """The splits of all trees as tables.

    first    int64 (trees + 1,)  the first word of each tree; trees without words are walked
    values   float64 (32 words,)  values of the leaves, see `_place_of`
    leaves   int32 (32 words,)  their numbers
    """

    first: np.ndarray
    values: np.ndarray
    leaves: np.ndarray
    columns: _Columns
    thresholds: _ThresholdSplits
    sets: _SetSplits


class BlockBuffers(NamedTuple):
    """The buffers for a block of rows.

    codes    uint8 (columns times 1024,)
    cells    float64 (1024,)  of one feature
    search   int64 (1024,)  state of the binary search for codes
    bits     uint32 (1024,)
    places   uint32 (1024,)  of leaves in `LeafBits.values`
    walks    for trees that are walked
    """

    codes: np.ndarray
    cells: np.ndarray
    search: np.ndarray
    bits: np.ndarray
    places: np.ndarray
    walks: np.ndarray


@kernel(bare=True)
def _look_up(cells, joined, tables, first, last, buffers, raw, found, begin):
    """Does what `walk` does, block by block, with the tables of `LeafBits`."""
    n_features, n_scores = len(joined.n_categories), raw.shape[0]
    n = len(cells) // n_features
    for start in range(0, n, BLOCK):
        count, at = min(BLOCK, n - start), begin + start
        block = cells[start * n_features : (start + count) * n_features]
        write_codes(block, n_features, tables.columns, buffers)
        for tree in range(first, last):
            if tables.first[tree] == tables.first[tree + 1]:
                walk(block, joined, tree, tree + 1, first, buffers.walks, raw, found, at)
                continue
            find_places(tables, tree, count, buffers)
            if n_scores:
                sums = raw[tree % n_scores]
                for i in range(count):
                    sums[at + i] += tables.values[buffers.places[i]]
            else:
                for i in range(count):
                    found[at + i, tree - first] = tables.leaves[buffers.places[i]]


@region
def look_up_tile(tile, size, cells, joined, tables, first, last, raw, found, begin):
    """What `walk_tile` does, with the tables of `LeafBits`."""
    d, row = len(joined.n_categories), tile * size
    own = cells[row * d : min((row + size) * d, len(cells))]
    buffers = BlockBuffers(
        np.empty(len(tables.columns.feature) * BLOCK, np.uint8),
        np.empty(BLOCK),
        np.empty(BLOCK, np.int64),
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.uint32),
        np.empty((2, WALKS_AT_ONCE), np.int64),
    )
    _look_up(own, joined, tables, first, last, buffers, raw, found, begin + row)


@kernel(inner=True)
def write_codes(block, n_features, columns, buffers):
    """The codes of a block of rows, which lie one after the other."""
    n = len(block) // n_features
    cells, search = buffers.cells, buffers.search
    for column in range(len(columns.feature)):
        codes = buffers.codes[column * BLOCK : (column + 1) * BLOCK]
        start, n_steps = columns.start[column], columns.n_steps[column]
        for i in range(n):
            cells[i] = block[np.uint64(i * n_features + columns.feature[column])]
            search[i] = start
        if n_steps < 0:
            for i in range(n):
                codes[i] = np.uint8(cells[i] if 0 <= cells[i] < start else start)
            continue
        half = np.int64(1) << n_steps
        for _ in range(n_steps):
            half >>= 1
            for i in range(n):
                is_above = cells[i] > columns.cuts[np.uint64(search[i] + half - 1)]
                search[i] += half if is_above else 0
        for i in range(n):
            is_known = cells[i] == cells[i]
            codes[i] = np.uint8(search[i] - start + 1 if is_known else 0)


@kernel(inner=True)
def find_places(tables, tree, n, buffers):
    """Write the place of each row's leaf in `LeafBits.values`."""
    splits, sets, bits = tables.thresholds, tables.sets, buffers.bits
    for word in range(tables.first[tree + 1] - 1, tables.first[tree] - 1, -1):
        for i in range(n):
            bits[i] = _ALL
        for q in range(splits.first[word], splits.first[word + 1], _AT_ONCE):
            _apply_thresholds(buffers.codes, splits, q, n, bits)
        for q in range(sets.first[word], sets.first[word + 1]):
            _apply_set(buffers.codes, sets, q, n, bits)
        for i in range(n):
            place = np.uint32(_WORD * word + _place_of(bits[i] & (~bits[i] + _ONE)))
            buffers.places[i] = place if bits[i] else buffers.places[i]


@kernel(inner=True)
def _place_of(bit):
    """0 to 31, different for each word with one bit: the top bits of its product with de Bruijn's
    number.

    The places are not in the order of the bits, but most machines have no vector instruction that
    counts zeros.
    """
    return np.uint32(np.uint32(bit) * _SPREAD) >> _SPREAD_AT


@kernel(inner=True)
def _apply_thresholds(codes, splits, q, n, bits):
    """Apply splits q .. q + 3."""
    column, shift, limit, keeps = splits.column, splits.shift, splits.limit, splits.keeps
    a, b, c, d = column[q], column[q + 1], column[q + 2], column[q + 3]
    shift_a, shift_b, shift_c, shift_d = shift[q], shift[q + 1], shift[q + 2], shift[q + 3]
    limit_a, limit_b, limit_c, limit_d = limit[q], limit[q + 1], limit[q + 2], limit[q + 3]
    keeps_a, keeps_b, keeps_c, keeps_d = keeps[q], keeps[q + 1], keeps[q + 2], keeps[q + 3]
    for row in range(n):
        i = np.uint64(row)
        bits[i] &= (
            (keeps_a if np.uint8(codes[a + i] - shift_a) > limit_a else _ALL)
            & (keeps_b if np.uint8(codes[b + i] - shift_b) > limit_b else _ALL)
            & (keeps_c if np.uint8(codes[c + i] - shift_c) > limit_c else _ALL)
            & (keeps_d if np.uint8(codes[d + i] - shift_d) > limit_d else _ALL)
        )


@kernel(inner=True)
def _apply_set(codes, sets, q, n, bits):
    column, number, members, keeps = (
        sets.column[q], sets.word_number[q], sets.members[q], sets.keeps[q],
    )  # fmt: skip
    for row in range(n):
        i = np.uint64(row)
        code = np.uint32(codes[column + i])
        is_outside = ((members >> (code & _LAST_FIVE)) & _ONE) == 0
        bits[i] &= keeps if ((code >> _FIVE) == number) & is_outside else _ALL


# -- making the tables --


class _Outline(NamedTuple):
    """Where the leaves of all trees are.

    first         int64 (trees + 1,)  the first word of each tree; no words if it is walked
    tree          int64 (N,)  of each node
    first_leaf    int64 (N,)  the leftmost leaf below each node, numbered within its tree
    n_leaves      int64 (N,)  below each node
    leaves, thresholds, sets    numbers of these nodes, of trees that have words
    """

    first: np.ndarray
    tree: np.ndarray
    first_leaf: np.ndarray
    n_leaves: np.ndarray
    leaves: np.ndarray
    thresholds: np.ndarray
    sets: np.ndarray

    @property
    def n_words(self) -> int:
        return int(self.first[-1])


def leaf_bits_of(joined: JoinedTrees) -> LeafBits:
    """The tables of all trees."""
    outline = _outline_of(joined)
    column, limit, columns = _columns_of(joined, outline)
    place = _places_of(outline)
    values, leaves = np.zeros(_WORD * outline.n_words), np.zeros(_WORD * outline.n_words, np.int32)
    values[place] = joined.numbers[2 * outline.leaves]
    leaves[place] = outline.leaves - joined.roots[outline.tree[outline.leaves]]
    return LeafBits(
        read_only(outline.first),
        read_only(values),
        read_only(leaves),
        _Columns(*map(read_only, columns)),
        _ThresholdSplits(*map(read_only, _threshold_splits(joined, outline, column, limit))),
        _SetSplits(*map(read_only, _set_splits(joined, outline, column))),
    )


def _outline_of(joined: JoinedTrees) -> _Outline:
    link, left, roots = joined.links[1::2], joined.left, joined.roots[:-1]
    tree = np.repeat(np.arange(len(roots)), np.diff(joined.roots))
    first_leaf, n_leaves = np.zeros(len(link), np.int64), np.ones(len(link), np.int64)
    _number_leaves(left, first_leaf, n_leaves)
    has_set, is_leaf = have_sets(link), left == np.arange(len(link))
    has_words = n_leaves[roots] <= _MOST_LEAVES
    has_words[tree[has_set & (joined.n_categories[features_of(link)] > _MOST_CATEGORIES)]] = False
    return _Outline(
        starts_of(np.where(has_words, -(-n_leaves[roots] // _WORD), 0)),
        tree,
        first_leaf,
        n_leaves,
        np.flatnonzero(has_words[tree] & is_leaf),
        np.flatnonzero(has_words[tree] & ~is_leaf & ~has_set),
        np.flatnonzero(has_words[tree] & has_set),
    )


@kernel
def _number_leaves(left, first_leaf, n_leaves):
    """Number the leaves of each tree from left to right, and count those below each node.

    At the start, `n_leaves` is all ones and `first_leaf` all zeros.
    """
    for node in range(len(left) - 1, -1, -1):
        if left[node] != node:
            n_leaves[node] = n_leaves[left[node]] + n_leaves[left[node] + 1]
    for node in range(len(left)):
        if left[node] != node:
            first_leaf[left[node]] = first_leaf[node]
            first_leaf[left[node] + 1] = first_leaf[node] + n_leaves[left[node]]


def _places_of(outline: _Outline) -> np.ndarray:
    """int64: the place of each leaf in `LeafBits.values`."""
    leaf = outline.first_leaf[outline.leaves]
    word = outline.first[outline.tree[outline.leaves]] + leaf // _WORD
    place: np.ndarray = _WORD * word + _PLACE_OF_BIT[leaf % _WORD]
    return place


def _columns_of(joined: JoinedTrees, outline: _Outline) -> tuple[np.ndarray, np.ndarray, _Columns]:
    """The column that each node reads (N,), for thresholds the largest code that goes left (N,),
    and all columns."""
    feature = features_of(joined.links[1::2])
    column, limit = np.zeros(len(feature), np.int64), np.zeros(len(feature), np.int64)

    order = outline.thresholds[
        np.lexsort((joined.numbers[2 * outline.thresholds], feature[outline.thresholds]))
    ]
    ordered, threshold = feature[order], joined.numbers[2 * order]
    is_first, is_new = np.ones(len(order), bool), np.ones(len(order), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    is_new[1:] = is_first[1:] | (threshold[1:] != threshold[:-1])
    rank = np.cumsum(is_new) - 1
    rank -= np.maximum.accumulate(np.where(is_first, rank, 0))
    opens_column = is_new & (rank % _MOST_CUTS == 0)
    column[order] = np.cumsum(opens_column) - 1
    limit[order] = rank % _MOST_CUTS

    counts = np.bincount(column[order][is_new])
    n_steps = np.frexp(counts)[1].astype(np.int64)
    start = starts_of(2**n_steps - 1)
    cuts = np.full(start[-1], np.inf)
    cuts[start[column[order]] + limit[order]] = threshold

    categorical, which = np.unique(feature[outline.sets], return_inverse=True)
    column[outline.sets] = len(counts) + which
    return (
        column,
        limit,
        _Columns(
            np.concatenate([ordered[opens_column], categorical]),
            np.concatenate([n_steps, np.full(len(categorical), -1)]),
            np.concatenate([start[:-1], joined.n_categories[categorical]]),
            cuts,
        ),
    )


def _threshold_splits(
    joined: JoinedTrees, outline: _Outline, column: np.ndarray, limit: np.ndarray
) -> _ThresholdSplits:
    node, word, keeps = _by_words(joined, outline, outline.thresholds)
    counts = np.bincount(word, minlength=outline.n_words)
    first = starts_of(-(-counts // _AT_ONCE) * _AT_ONCE)
    place = first[word] + np.arange(len(word)) - starts_of(counts)[word]
    n = int(first[-1])
    found = _ThresholdSplits(  # those that only fill up a group of four clear no bits
        first,
        np.zeros(n, np.uint64),
        np.zeros(n, np.uint8),
        np.full(n, 255, np.uint8),
        np.full(n, _ALL),
    )
    shift = 1 - ((joined.links[1::2][node] >> MISSING_AT) & 1)
    found.column[place] = BLOCK * column[node]
    found.shift[place] = shift
    found.limit[place] = limit[node] + 1 - shift
    found.keeps[place] = keeps
    return found


def _set_splits(joined: JoinedTrees, outline: _Outline, column: np.ndarray) -> _SetSplits:
    node, word, keeps = _by_words(joined, outline, outline.sets)
    n_categories = joined.n_categories[features_of(joined.links[1::2])[node]]
    which, number = _repeated(n_categories // 32 + 1)
    members = joined.words[joined.numbers[2 * node[which]].astype(np.int64) + number]
    missing = n_categories[which] // 32 == number
    at = (n_categories[which] % 32).astype(np.uint32)
    goes_left = ((joined.links[1::2][node[which]] >> MISSING_AT) & 1).astype(np.uint32)
    members = np.where(missing, members & ~(_ONE << at) | goes_left << at, members)
    return _SetSplits(
        starts_of(np.bincount(word[which], minlength=outline.n_words)),
        (BLOCK * column[node[which]]).astype(np.uint64),
        number.astype(np.uint32),
        members,
        keeps[which],
    )


def _by_words(
    joined: JoinedTrees, outline: _Outline, nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An entry for each node and each word that has leaves of its left subtree, sorted by words:
    the node, the word, and a mask that clears the bits of these leaves."""
    begin = outline.first_leaf[nodes]
    end = begin + outline.n_leaves[joined.left[nodes]]
    which, number = _repeated((end - 1) // _WORD - begin // _WORD + 1)
    number += begin[which] // _WORD
    low = np.maximum(begin[which] - _WORD * number, 0)
    high = np.minimum(end[which] - _WORD * number, _WORD)
    keeps = ~((1 << high) - (1 << low)).astype(np.uint32)
    word = outline.first[outline.tree[nodes[which]]] + number
    order = np.argsort(word, kind="stable")
    return nodes[which][order], word[order], keeps[order]


def _repeated(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For counts 2, 1, 3: 0 0 1 2 2 2 and 0 1 0 0 1 2."""
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - starts_of(counts)[which]
