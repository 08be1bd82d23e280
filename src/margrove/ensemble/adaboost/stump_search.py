"""The search for the best stump in the histograms of all features, and in sorted orders.

Bins are searched in chunks: some features, or a part of the bins of one feature. The sums of the
chunks before it tell a chunk what is on the left of its first bin.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.adaboost.stump_tables import FeatureTable
from margrove.grove.grow.search import GINI, ROUNDING_OF_SQUARES, consider, is_far, score_of_classes

__all__ = ["Chunks", "Search", "add_up_bins", "find_best", "new_search", "search_bins"]

_CELLS_OF_A_CHUNK = 2048
_ROWS_OF_A_BIN = 16  # in sorted order they take as long as a bin
_LINE = 8  # int64 or float64 numbers of a cache line


class Chunks(NamedTuple):
    """Chunks of bins, in the order of the features; arrays int64 (n_chunks,).

    feature, end_feature   the features of the chunk
    begin, end             its bins
    head                   the first chunk of its feature if it is a part of a feature, else -1
    """

    feature: np.ndarray
    end_feature: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    head: np.ndarray


class Search(NamedTuple):
    """Histograms, and the best stump of each chunk and, in the last row, of all chunks.

    Rows are at least a cache line long; the first K numbers of a row of classes are used.

    n_classes    K
    histograms   int64 (parts, bins * K)  each part of the rows adds to its own; `add_up_bins` adds
                 all to the first
    chunks       see `Chunks`
    inside       int64 (chunks, K or more)  classes in the bins of a chunk
    sums, rest   int64 (chunks, K or more)  scratch
    left         int64 (chunks + 1, K or more)  classes on the left of the best stump
    best         int64 (chunks + 1, 8), score float64 (chunks + 1, 8): see `consider`
    """

    n_classes: int
    histograms: np.ndarray
    chunks: Chunks
    inside: np.ndarray
    sums: np.ndarray
    rest: np.ndarray
    left: np.ndarray
    best: np.ndarray
    score: np.ndarray


def new_search(features: FeatureTable, n_classes: int, n_parts: int, n_threads: int) -> Search:
    """Buffers for the search; the histograms are empty."""
    chunks = _chunks_of(features, max(1, _CELLS_OF_A_CHUNK // n_classes), n_threads)
    n_chunks, width = len(chunks.begin), -(-n_classes // _LINE) * _LINE
    return Search(
        n_classes,
        np.zeros((n_parts, int(features.first[-1]) * n_classes), np.int64),
        chunks,
        np.zeros((n_chunks, width), np.int64),
        np.zeros((n_chunks, width), np.int64),
        np.zeros((n_chunks, width), np.int64),
        np.zeros((n_chunks + 1, width), np.int64),
        np.full((n_chunks + 1, _LINE), -1, np.int64),
        np.zeros((n_chunks + 1, _LINE)),
    )


def _chunks_of(features: FeatureTable, size: int, n_threads: int) -> Chunks:
    """Chunks of about `size` bins; so many rows in sorted order count as a bin.

    The best split of a sorted order saves the work on most splits of the next ones in its chunk. So
    there are no more chunks of orders than threads.
    """
    found: list[tuple[int, int, int, int, int]] = []
    first, is_ordered = features.first.tolist(), (features.place >= 0).tolist()
    orders_of_a_chunk = -(-features.orders.shape[0] // n_threads) or 1
    cost_of_order = min(features.orders.shape[1] // _ROWS_OF_A_BIN, -(-size // orders_of_a_chunk))
    begin, cost, d = 0, 0, len(is_ordered)
    for j in range(d):
        n_bins = first[j + 1] - first[j]
        if n_bins > size:
            if begin < j:
                found.append((begin, j, first[begin], first[j], -1))
            n_parts = -(-n_bins // size)
            ends = [first[j] + k * n_bins // n_parts for k in range(n_parts + 1)]
            head = len(found)
            found += [(j, j + 1, a, b, head) for a, b in itertools.pairwise(ends)]
            begin, cost = j + 1, 0
            continue
        cost += cost_of_order if is_ordered[j] else n_bins
        if cost >= size or j == d - 1:
            found.append((begin, j + 1, first[begin], first[j + 1], -1))
            begin, cost = j + 1, 0
    columns = np.array(found, np.int64).reshape(-1, 5).T.copy()
    return Chunks(*columns)


@kernel(inner=True)
def add_up_bins(chunk, search):
    """Add the histograms of all parts to the first one, and count the classes in the chunk."""
    chunks, n_classes, histograms = search.chunks, search.n_classes, search.histograms
    begin, end = chunks.begin[chunk], chunks.end[chunk]
    total = histograms[0]
    for part in range(1, len(histograms)):
        other = histograms[part]
        for cell in range(begin * n_classes, end * n_classes):
            total[cell] += other[cell]
            other[cell] = 0
    if chunks.head[chunk] >= 0:
        inside = search.inside[chunk]
        for c in range(n_classes):
            inside[c] = 0
        for b in range(begin, end):
            for c in range(n_classes):
                inside[c] += total[b * n_classes + c]


@kernel(inner=True)
def search_bins(chunk, features, packed, totals, bits, criterion, search):
    """Find the best stump of a chunk."""
    chunks, n_classes = search.chunks, search.n_classes
    best, score, kept = search.best[chunk], search.score[chunk], search.left[chunk]
    left, rest = search.sums[chunk, :n_classes], search.rest[chunk]
    best[0], score[0] = -1, -np.inf
    for feature in range(chunks.feature[chunk], chunks.end_feature[chunk]):
        if features.place[feature] >= 0:
            order = features.orders[features.place[feature]]
            _read_in_order(order, feature, packed, bits, criterion, left, totals, best, score, kept)
        else:
            _read_bins(chunk, feature, features, criterion, left, rest, totals, search, best, score,
                       kept)  # fmt: skip


@kernel(inner=True)
def _read_bins(chunk, feature, features, criterion, left, rest, totals, search, best, score, kept):
    chunks, n_classes, histogram = search.chunks, search.n_classes, search.histograms[0]
    first, omitted = features.first[feature], features.omitted[feature]
    end_of_feature = features.first[feature + 1]
    begin = max(first, chunks.begin[chunk])
    end = min(end_of_feature - 1, chunks.end[chunk])  # the last bin is never on the left
    total = np.int64(0)
    for c in range(n_classes):
        left[c] = 0
        rest[c] = totals[c]
        total += totals[c]
    head = chunks.head[chunk]
    if omitted >= 0 and head < 0:
        for b in range(first, end_of_feature):
            for c in range(n_classes):
                rest[c] -= histogram[b * n_classes + c]
    elif omitted >= 0:
        at = head
        while at < len(chunks.head) and chunks.head[at] == head:
            for c in range(n_classes):
                rest[c] -= search.inside[at, c]
            at += 1
    if head >= 0:
        for at in range(head, chunk):
            for c in range(n_classes):
                left[c] += search.inside[at, c]
        if omitted >= 0 and first + omitted < begin:
            for c in range(n_classes):
                left[c] += rest[c]
    weight_left = np.int64(0)
    for c in range(n_classes):
        weight_left += left[c]
    for b in range(begin, end):
        row, is_omitted = b * n_classes, b - first == omitted
        for c in range(n_classes):
            weight = rest[c] if is_omitted else histogram[row + c]
            left[c] += weight
            weight_left += weight
        _consider_split(criterion, left, totals, weight_left, total, feature, b - first, best,
                        score, kept)  # fmt: skip


@kernel(inner=True)
def _read_in_order(order, feature, packed, bits, criterion, left, totals, best, score, kept):
    """Search row by row in sorted order. Floating point sums of squares show that most splits are
    far worse than the best; only the others are scored exactly."""
    n_classes = len(left)
    mask = np.int64((1 << bits) - 1)
    total, weight_left = np.int64(0), np.int64(0)
    squares_left, squares_right = 0.0, 0.0
    for c in range(n_classes):
        left[c] = 0
        total += totals[c]
        squares_right += float(totals[c]) * float(totals[c])
    slack = ROUNDING_OF_SQUARES * squares_right * float(len(order))
    low, last = np.uint32(0x7FFFFFFF), np.uint32(31)
    code = 0
    is_gini = criterion == GINI
    for at in range(len(order) - 1):
        entry = order[at]
        both = packed[np.uint64(entry & low)]
        weight, label = both >> bits, np.uint64(both & mask)
        before = left[label]
        left[label] = before + weight
        weight_left += weight
        if is_gini:
            real = float(weight)
            squares_left += real * (2.0 * float(before) + real)
            squares_right -= real * (2.0 * float(totals[label] - before) - real)
        if entry >> last:
            if (
                not is_gini
                or best[0] < 0
                or not is_far(squares_left, squares_right, slack, weight_left,
                              total - weight_left, score[0])
            ):  # fmt: skip
                _consider_split(criterion, left, totals, weight_left, total, feature, code, best,
                                score, kept)  # fmt: skip
            code += 1


@kernel(inner=True)
def _consider_split(
    criterion, left, totals, weight_left, total, feature, code, best, best_score, kept
):
    """Keep the split if it is better than the best."""
    weight_right = total - weight_left
    score, exact = score_of_classes(criterion, left, totals, weight_left, weight_right)
    if (best[0] < 0 or score >= best_score[0]) and consider(
        criterion, False, np.int64(exact), weight_left, np.int64(0), weight_right, score, feature,
        code, best, best_score,
    ):  # fmt: skip
        for c in range(len(left)):
            kept[c] = left[c]


@kernel(inner=True)
def find_best(criterion, search):
    """Keep the best stump of all chunks, in their order."""
    best, score = search.best[-1], search.score[-1]
    best[0], score[0] = -1, -np.inf
    for chunk in range(len(search.chunks.begin)):
        other = search.best[chunk]
        if other[0] >= 0 and consider(
            criterion, False, other[1], other[2], other[3], other[4], search.score[chunk, 0],
            other[0], other[5], best, score,
        ):  # fmt: skip
            for c in range(search.n_classes):
                search.left[-1, c] = search.left[chunk, c]
