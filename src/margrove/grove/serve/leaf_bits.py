"""Many rows at the leaves of small trees, without any walking.

Each row has a bit for every leaf of a tree, in order from left to right. A question that is
answered with *right* takes away the bits of the leaves on its left, whether or not the row ever
comes to it; the lowest bit that stays is the row's leaf (Lucchese et al. 2015). Rows in blocks
answer one question after the other, sixteen or more in an instruction (2016). To that end, values
become codes of one byte, in columns,

    numbers       0 for missing, else 1 + the number of thresholds below the value
    categories    their number; the number of all categories for missing

of which a feature has several where a byte cannot tell its thresholds apart. Bits are kept in
words of 32; large trees have several.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel
from margrove.grove.serve.boosted_walk import (
    Arena,
    features_of,
    have_sets,
    new_ways,
    starts_of,
    walk,
)
from margrove.grove.serve.packed_trees import MISSING_AT

__all__ = ["BLOCK", "LeafBits", "Room", "answer", "leaf_bits_of", "new_room"]

BLOCK = 1024  # rows whose codes stay in the cache
_MOST_LEAVES = 512  # from which on walks are faster
_MOST_CUTS = 254  # of a column: there are the codes above them all, and of missing values
_MOST_CATEGORIES = 255
_WORD = 32
_AT_ONCE = 4  # questions, or most of the time goes into reading and writing bits
_ALL = np.uint32(0xFFFFFFFF)
_ONE = np.uint32(1)
_FIVE, _LAST_FIVE = np.uint32(5), np.uint32(31)
_SPREAD, _SPREAD_AT = np.uint32(0x077CB531), np.uint32(27)  # see `_place_of`
_PLACE_OF_BIT = ((_ONE << np.arange(32, dtype=np.uint32)) * _SPREAD >> _SPREAD_AT).astype(np.int64)


class _Columns(NamedTuple):
    """How codes come about, (columns,) each but the cuts.

    feature   int64
    n_steps   int64  of the search for numbers; -1 for categories
    start     int64  of the search among the cuts; the number of categories
    cuts      float64  of each column of numbers 2^n_steps - 1, infinity after its thresholds
    """

    feature: np.ndarray
    n_steps: np.ndarray
    start: np.ndarray
    cuts: np.ndarray


class _Questions(NamedTuple):
    """About numbers, in fours: right, if code - shift > limit.

    first    int64 (words + 1,)  of each word
    column   uint64 (questions,)  where its codes begin
    shift    uint8  0, if missing values go left, as the smallest; 1, if as the largest: 0 - 1 = 255
    limit    uint8
    keeps    uint32  bits that stay where the answer is right
    """

    first: np.ndarray
    column: np.ndarray
    shift: np.ndarray
    limit: np.ndarray
    keeps: np.ndarray


class _Sets(NamedTuple):
    """About 32 categories each: right, if they are among these, but not in the set.

    first, column, keeps   as of `_Questions`
    part                   uint32  which of the words of the set
    members                uint32  that word
    """

    first: np.ndarray
    column: np.ndarray
    part: np.ndarray
    members: np.ndarray
    keeps: np.ndarray


class LeafBits(NamedTuple):
    """The questions of all trees.

    first    int64 (trees + 1,)  the first word of each; those without words are walked
    values   float64 (32 words,)  of the leaves, each at the place that its bit leads to
    leaves   int32 (32 words,)  their numbers
    """

    first: np.ndarray
    values: np.ndarray
    leaves: np.ndarray
    columns: _Columns
    questions: _Questions
    sets: _Sets


class Room(NamedTuple):
    """What a block of rows needs.

    codes    uint8 (columns times 1024,)
    cells    float64 (1024,)  of one feature
    search   int64 (1024,)  how far they have come in the search for their codes
    bits     uint32 (1024,)
    places   uint32 (1024,)  of leaves
    ways     for those that walk
    """

    codes: np.ndarray
    cells: np.ndarray
    search: np.ndarray
    bits: np.ndarray
    places: np.ndarray
    ways: np.ndarray


def new_room(bits: LeafBits) -> Room:
    return Room(
        np.empty(len(bits.columns.feature) * BLOCK, np.uint8),
        np.empty(BLOCK),
        np.empty(BLOCK, np.int64),
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.uint32),
        new_ways(),
    )


@kernel(bare=True)
def answer(cells, arena, tables, first, last, room, raw, found, begin):
    """What `walk` does, block by block."""
    n_features, n_scores = len(arena.n_categories), raw.shape[0]
    n = len(cells) // n_features
    for start in range(0, n, BLOCK):
        count, at = min(BLOCK, n - start), begin + start
        block = cells[start * n_features : (start + count) * n_features]
        _write_codes(block, n_features, tables.columns, room)
        for tree in range(first, last):
            if tables.first[tree] == tables.first[tree + 1]:
                walk(block, arena, tree, tree + 1, first, room.ways, raw, found, at)
                continue
            _find_places(tables, tree, count, room)
            if n_scores:
                sums = raw[tree % n_scores]
                for i in range(count):
                    sums[at + i] += tables.values[room.places[i]]
            else:
                for i in range(count):
                    found[at + i, tree - first] = tables.leaves[room.places[i]]


@kernel(inner=True)
def _write_codes(block, n_features, columns, room):
    n = len(block) // n_features
    cells, search = room.cells, room.search
    for column in range(len(columns.feature)):
        codes = room.codes[column * BLOCK : (column + 1) * BLOCK]
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
def _find_places(tables, tree, n, room):
    asked, sets, bits = tables.questions, tables.sets, room.bits
    for word in range(tables.first[tree + 1] - 1, tables.first[tree] - 1, -1):
        for i in range(n):
            bits[i] = _ALL
        for q in range(asked.first[word], asked.first[word + 1], _AT_ONCE):
            _ask_four(room.codes, asked, q, n, bits)
        for q in range(sets.first[word], sets.first[word + 1]):
            _ask_for_set(room.codes, sets, q, n, bits)
        for i in range(n):
            place = np.uint32(_WORD * word + _place_of(bits[i] & (~bits[i] + _ONE)))
            room.places[i] = place if bits[i] else room.places[i]


@kernel(inner=True)
def _place_of(bit):
    """0 to 31, for a word with one bit: its product with de Bruijn's number begins with the place.

    Bits are not in order there, but no instruction for vectors counts zeros on most machines.
    """
    return np.uint32(np.uint32(bit) * _SPREAD) >> _SPREAD_AT


@kernel(inner=True)
def _ask_four(codes, asked, q, n, bits):
    column, shift, limit, keeps = asked.column, asked.shift, asked.limit, asked.keeps
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
def _ask_for_set(codes, sets, q, n, bits):
    column, part, members, keeps = sets.column[q], sets.part[q], sets.members[q], sets.keeps[q]
    for row in range(n):
        i = np.uint64(row)
        code = np.uint32(codes[column + i])
        is_outside = ((members >> (code & _LAST_FIVE)) & _ONE) == 0
        bits[i] &= keeps if ((code >> _FIVE) == part) & is_outside else _ALL


# -- how tables come about --


class _Outline(NamedTuple):
    """Where the leaves of all trees are.

    first         int64 (trees + 1,)  words of each tree, none if it is to be walked
    tree          int64 (N,)  of each node
    first_leaf    int64 (N,)  the leftmost one below each node, numbered within its tree
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


def leaf_bits_of(arena: Arena) -> LeafBits:
    outline = _outline_of(arena)
    column, limit, columns = _columns_of(arena, outline)
    place = _places_of(outline)
    values, leaves = np.zeros(_WORD * outline.n_words), np.zeros(_WORD * outline.n_words, np.int32)
    values[place] = arena.numbers[2 * outline.leaves]
    leaves[place] = outline.leaves - arena.roots[outline.tree[outline.leaves]]
    return LeafBits(
        read_only(outline.first),
        read_only(values),
        read_only(leaves),
        _Columns(*map(read_only, columns)),
        _Questions(*map(read_only, _questions_of(arena, outline, column, limit))),
        _Sets(*map(read_only, _sets_of(arena, outline, column))),
    )


def _outline_of(arena: Arena) -> _Outline:
    link, left, roots = arena.links[1::2], arena.left, arena.roots[:-1]
    tree = np.repeat(np.arange(len(roots)), np.diff(arena.roots))
    first_leaf, n_leaves = np.zeros(len(link), np.int64), np.ones(len(link), np.int64)
    _number_leaves(left, first_leaf, n_leaves)
    has_set, is_leaf = have_sets(link), left == np.arange(len(link))
    has_words = n_leaves[roots] <= _MOST_LEAVES
    has_words[tree[has_set & (arena.n_categories[features_of(link)] > _MOST_CATEGORIES)]] = False
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
    """From left to right; `n_leaves` begins with ones and `first_leaf` with zeros."""
    for node in range(len(left) - 1, -1, -1):
        if left[node] != node:
            n_leaves[node] = n_leaves[left[node]] + n_leaves[left[node] + 1]
    for node in range(len(left)):
        if left[node] != node:
            first_leaf[left[node]] = first_leaf[node]
            first_leaf[left[node] + 1] = first_leaf[node] + n_leaves[left[node]]


def _places_of(outline: _Outline) -> np.ndarray:
    """Of the value of each leaf."""
    leaf = outline.first_leaf[outline.leaves]
    word = outline.first[outline.tree[outline.leaves]] + leaf // _WORD
    place: np.ndarray = _WORD * word + _PLACE_OF_BIT[leaf % _WORD]
    return place


def _columns_of(arena: Arena, outline: _Outline) -> tuple[np.ndarray, np.ndarray, _Columns]:
    """The column that each node looks at, (N,); of thresholds, the highest code below (N,)."""
    feature = features_of(arena.links[1::2])
    column, limit = np.zeros(len(feature), np.int64), np.zeros(len(feature), np.int64)

    order = outline.thresholds[
        np.lexsort((arena.numbers[2 * outline.thresholds], feature[outline.thresholds]))
    ]
    asked, threshold = feature[order], arena.numbers[2 * order]
    is_other, is_new = np.ones(len(order), bool), np.ones(len(order), bool)
    is_other[1:] = asked[1:] != asked[:-1]
    is_new[1:] = is_other[1:] | (threshold[1:] != threshold[:-1])
    rank = np.cumsum(is_new) - 1
    rank -= np.maximum.accumulate(np.where(is_other, rank, 0))
    opens_column = is_new & (rank % _MOST_CUTS == 0)
    column[order] = np.cumsum(opens_column) - 1
    limit[order] = rank % _MOST_CUTS

    counts = np.bincount(column[order][is_new])
    n_steps = np.frexp(counts)[1].astype(np.int64)
    start = starts_of(2**n_steps - 1)
    cuts = np.full(start[-1], np.inf)
    cuts[start[column[order]] + limit[order]] = threshold

    categorical, own = np.unique(feature[outline.sets], return_inverse=True)
    column[outline.sets] = len(counts) + own
    return (
        column,
        limit,
        _Columns(
            np.concatenate([asked[opens_column], categorical]),
            np.concatenate([n_steps, np.full(len(categorical), -1)]),
            np.concatenate([start[:-1], arena.n_categories[categorical]]),
            cuts,
        ),
    )


def _questions_of(
    arena: Arena, outline: _Outline, column: np.ndarray, limit: np.ndarray
) -> _Questions:
    node, word, keeps = _by_words(arena, outline, outline.thresholds)
    counts = np.bincount(word, minlength=outline.n_words)
    first = starts_of(-(-counts // _AT_ONCE) * _AT_ONCE)
    place = first[word] + np.arange(len(word)) - starts_of(counts)[word]
    n = int(first[-1])
    found = _Questions(  # those that only fill up take nothing away
        first,
        np.zeros(n, np.uint64),
        np.zeros(n, np.uint8),
        np.full(n, 255, np.uint8),
        np.full(n, _ALL),
    )
    shift = 1 - ((arena.links[1::2][node] >> MISSING_AT) & 1)
    found.column[place] = BLOCK * column[node]
    found.shift[place] = shift
    found.limit[place] = limit[node] + 1 - shift
    found.keeps[place] = keeps
    return found


def _sets_of(arena: Arena, outline: _Outline, column: np.ndarray) -> _Sets:
    node, word, keeps = _by_words(arena, outline, outline.sets)
    n_categories = arena.n_categories[features_of(arena.links[1::2])[node]]
    own, part = _spelled_out(n_categories // 32 + 1)
    members = arena.words[arena.numbers[2 * node[own]].astype(np.int64) + part]
    missing, at = n_categories[own] // 32 == part, (n_categories[own] % 32).astype(np.uint32)
    goes_left = ((arena.links[1::2][node[own]] >> MISSING_AT) & 1).astype(np.uint32)
    members = np.where(missing, members & ~(_ONE << at) | goes_left << at, members)
    return _Sets(
        starts_of(np.bincount(word[own], minlength=outline.n_words)),
        (BLOCK * column[node[own]]).astype(np.uint64),
        part.astype(np.uint32),
        members,
        keeps[own],
    )


def _by_words(
    arena: Arena, outline: _Outline, nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes word by word of the leaves on their left, and the bits that are not of these."""
    begin = outline.first_leaf[nodes]
    end = begin + outline.n_leaves[arena.left[nodes]]
    own, part = _spelled_out((end - 1) // _WORD - begin // _WORD + 1)
    part += begin[own] // _WORD
    low = np.maximum(begin[own] - _WORD * part, 0)
    high = np.minimum(end[own] - _WORD * part, _WORD)
    keeps = ~((1 << high) - (1 << low)).astype(np.uint32)
    word = outline.first[outline.tree[nodes[own]]] + part
    order = np.argsort(word, kind="stable")
    return nodes[own][order], word[order], keeps[order]


def _spelled_out(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For counts 2, 1, 3: 0 0 1 2 2 2 and 0 1 0 0 1 2."""
    own = np.repeat(np.arange(len(counts)), counts)
    return own, np.arange(len(own)) - starts_of(counts)[own]
