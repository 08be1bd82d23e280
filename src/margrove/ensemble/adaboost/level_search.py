"""The best splits of all nodes of a level, in histograms and sorted orders; see `level_trees`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, region
from margrove.ensemble.adaboost.stump_tables import StumpTable, rows_of_tile, tiles_of_rows
from margrove.grove.grow.search import GINI, ROUNDING_OF_SQUARES, consider, is_far, score_of_classes

__all__ = ["NEXT_CODE", "Level", "LevelSearch", "find_best_splits", "new_level_search"]

NEXT_CODE = 6  # the column of `best` after those of `consider`
_CELLS_OF_A_CHUNK = 2048


class Level(NamedTuple):
    """The nodes first .. first + m - 1 of a tree, which form a level.

    is_open    bool (m,)  whether the node may be split
    totals     int64 (m, K)  weights of the classes in each node
    weights    int64 (m,)  their sums
    """

    first: int
    is_open: np.ndarray
    totals: np.ndarray
    weights: np.ndarray


class OpenRows(NamedTuple):
    """The rows of open nodes; each tile of rows has its own segment.

    row, base, weight   int32, int64, int64 (n,)  base: the cell of the row's node and label
    spans               int64 (tiles, 2)  where each segment begins and ends
    """

    row: np.ndarray
    base: np.ndarray
    weight: np.ndarray
    spans: np.ndarray


class LevelSearch(NamedTuple):
    """Buffers for the search of chunks of features, for the largest number m of nodes in a level.

    features     int64 (chunks, 2)  the first feature of each chunk, and the end
    histograms   int64 (parts, nodes * bins * K)  of parts of the rows; all are added to the first
    rows         see `OpenRows`
    left         int64 (chunks, m, K)  running sums of the classes on the left
    weight_left  int64 (chunks, m)  their sums
    squares      float64 (chunks, m, 3)  sums of squares of the left and the right, and their error
                 bound
    last_code    int64 (chunks, m)  the last code seen in each node
    best, score  int64 (chunks + 1, m, 7), float64 (chunks + 1, m)  see `consider`; the last column
                 is the next code, the last row is the best of all chunks
    best_left    int64 (chunks + 1, m, K)  classes on the left of the best split
    """

    features: np.ndarray
    histograms: np.ndarray
    rows: OpenRows
    left: np.ndarray
    weight_left: np.ndarray
    squares: np.ndarray
    last_code: np.ndarray
    best: np.ndarray
    score: np.ndarray
    best_left: np.ndarray


class BestSplits(NamedTuple):
    """The best split of each node so far: see `best`, `score` and `best_left` of `LevelSearch`."""

    split: np.ndarray
    score: np.ndarray
    left: np.ndarray


def new_level_search(table: StumpTable, widest: int, n_classes: int, n_threads: int) -> LevelSearch:
    n, m, k = table.n_rows, widest, n_classes
    chunks = _chunks_of(table, n_classes, n_threads)
    n_chunks, n_cells = len(chunks), m * int(table.features.first[-1]) * k
    n_parts = table.parts_of_rows(n_cells, n_threads)
    rows = OpenRows(
        np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64),
        np.zeros((tiles_of_rows(n), 2), np.int64),
    )  # fmt: skip
    return LevelSearch(
        chunks,
        np.empty((n_parts, n_cells), np.int64),
        rows,
        np.empty((n_chunks, m, k), np.int64),
        np.empty((n_chunks, m), np.int64),
        np.empty((n_chunks, m, 3)),
        np.empty((n_chunks, m), np.int64),
        np.empty((n_chunks + 1, m, 7), np.int64),
        np.empty((n_chunks + 1, m)),
        np.empty((n_chunks + 1, m, k), np.int64),
    )


def _chunks_of(table: StumpTable, n_classes: int, n_threads: int) -> np.ndarray:
    """Chunks of features, int64 (chunks, 2): enough bins, or some sorted orders.

    The best split of a sorted order saves the work on most splits of the next ones in its chunk. So
    there are no more chunks of orders than threads.
    """
    first, place = table.features.first, table.features.place
    most_orders = max(1, -(-len(table.features.orders) // n_threads))
    ends, begin = [], 0
    for j in range(len(place)):
        n_cells = (first[j + 1] - first[begin]) * n_classes
        n_orders = np.count_nonzero(place[begin : j + 1] >= 0)
        if n_orders >= most_orders or n_cells >= _CELLS_OF_A_CHUNK or j == len(place) - 1:
            ends.append(j + 1)
            begin = j + 1
    return np.array([[0, *ends[:-1]], ends], np.int64).T.copy()


def find_best_splits(
    table: StumpTable,
    level: Level,
    packed: np.ndarray,
    bits: int,
    node_of: np.ndarray,
    criterion: int,
    search: LevelSearch,
    n_threads: int,
) -> None:
    """Find the best split of each open node: the last rows of `best` and its companions.

    packed: int64 (n,) whole weights of rows with their labels in the lowest `bits`
    """
    features, n_chunks = table.features, len(search.features)
    if search.histograms.shape[1]:
        n_units = len(features.by_column) + len(features.starts)
        n_tiles = len(search.rows.spans)
        _list_rows(n_tiles, n_threads, features, packed, bits, node_of, level, search)
        _empty_chunk(n_chunks, n_threads, features, level, search)
        _fill(
            n_units * len(search.histograms), n_threads, features, table.columns,
            level.totals.shape[1], search,
        )  # fmt: skip
    _search_chunk(n_chunks, n_threads, features, packed, bits, node_of, level, criterion, search)
    _find_best(1, 1, criterion, len(level.weights), search)


@region(bare=True)
def _list_rows(tile, features, packed, bits, node_of, level, search):
    begin, end = rows_of_tile(tile, len(node_of))
    n_classes, n_bins, rows = level.totals.shape[1], features.first[-1], search.rows
    mask, at = np.int64((1 << bits) - 1), begin
    for i in range(begin, end):
        node = node_of[i] - level.first
        if node >= 0 and level.is_open[node]:
            rows.row[at], rows.weight[at] = i, packed[i] >> bits
            rows.base[at] = node * n_bins * n_classes + (packed[i] & mask)
            at += 1
    rows.spans[tile, 0], rows.spans[tile, 1] = begin, at


@region(bare=True)
def _empty_chunk(chunk, features, level, search):
    n_classes, n_bins = level.totals.shape[1], features.first[-1]
    begin = features.first[search.features[chunk, 0]]
    end = features.first[search.features[chunk, 1]]
    for part in range(len(search.histograms)):
        for node in range(len(level.weights)):
            base = node * n_bins
            for cell in range((base + begin) * n_classes, (base + end) * n_classes):
                search.histograms[part, cell] = 0


@region(bare=True)
def _fill(tile, features, columns, n_classes, search):
    """Add some tiles of rows to the histograms of a feature, or of a group of listed features."""
    n_groups, n_tiles = len(features.starts), len(search.rows.spans)
    n_parts = len(search.histograms)
    unit, part = divmod(tile, n_parts)  # first the groups, which take longer
    begin, end = part * n_tiles // n_parts, (part + 1) * n_tiles // n_parts
    histogram = search.histograms[part]
    if unit < n_groups:
        _add_entries(features.starts[unit], features.bins, search.rows, begin, end, n_classes,
                     histogram)  # fmt: skip
        return
    feature, dense = features.by_column[unit - n_groups], columns.dense
    place = dense.place[feature]
    cells = histogram[features.first[feature] * n_classes :]
    if dense.width[feature] == 0:
        _add_codes(dense.narrow[place], search.rows, begin, end, n_classes, cells)
    elif dense.width[feature] == 1:
        _add_codes(dense.medium[place], search.rows, begin, end, n_classes, cells)
    else:
        _add_codes(dense.wide[place], search.rows, begin, end, n_classes, cells)


@kernel(inner=True)
def _add_codes(codes, rows, begin, end, n_classes, cells):
    width = np.uint64(n_classes)
    for tile in range(begin, end):
        for k in range(rows.spans[tile, 0], rows.spans[tile, 1]):
            code = np.uint64(codes[np.uint64(rows.row[k])])
            cells[np.uint64(rows.base[k]) + code * width] += rows.weight[k]


@kernel(inner=True)
def _add_entries(starts, bins, rows, begin, end, n_classes, histogram):
    width = np.uint64(n_classes)
    for tile in range(begin, end):
        for k in range(rows.spans[tile, 0], rows.spans[tile, 1]):
            i, base, weight = np.uint64(rows.row[k]), np.uint64(rows.base[k]), rows.weight[k]
            for p in range(starts[i], starts[i + np.uint64(1)]):
                histogram[base + np.uint64(bins[p]) * width] += weight


@region(bare=True)
def _search_chunk(chunk, features, packed, bits, node_of, level, criterion, search):
    """Find the best split of each open node by the features of a chunk."""
    m = len(level.weights)
    best = BestSplits(search.best[chunk], search.score[chunk], search.best_left[chunk])
    for node in range(m):
        best.split[node, 0] = -1
        best.score[node] = -np.inf
    begin, end = search.features[chunk, 0], search.features[chunk, 1]
    _add_up_parts(features, begin, end, level, search)
    for feature in range(begin, end):
        if features.place[feature] >= 0:
            order = features.orders[features.place[feature]]
            _read_in_order(chunk, order, feature, packed, bits, node_of, level, criterion, search,
                           best)  # fmt: skip
            continue
        for node in range(m):
            if level.is_open[node]:
                _fill_omitted(features, feature, node, level, search.histograms[0])
                _read_bins(features, feature, node, level, criterion, search.left[chunk, node],
                           search.histograms[0], best)  # fmt: skip


@kernel(inner=True)
def _add_up_parts(features, begin, end, level, search):
    n_classes, n_bins, total = level.totals.shape[1], features.first[-1], search.histograms[0]
    for part in range(1, len(search.histograms)):
        other = search.histograms[part]
        for node in range(len(level.weights)):
            base = node * n_bins
            first, last = base + features.first[begin], base + features.first[end]
            for cell in range(first * n_classes, last * n_classes):
                total[cell] += other[cell]


@kernel(inner=True)
def _fill_omitted(features, feature, node, level, histogram):
    """Fill the omitted bin of a feature: the total of the node minus the other bins."""
    if features.omitted[feature] < 0:
        return
    n_classes, n_bins = level.totals.shape[1], features.first[-1]
    begin, end = features.first[feature], features.first[feature + 1]
    base = node * n_bins * n_classes
    at = base + (begin + features.omitted[feature]) * n_classes
    for c in range(n_classes):
        rest = level.totals[node, c]
        for b in range(begin, end):
            rest -= histogram[base + b * n_classes + c]
        histogram[at + c] = rest


@kernel(inner=True)
def _read_bins(features, feature, node, level, criterion, left, histogram, best):
    n_classes, n_bins = level.totals.shape[1], features.first[-1]
    begin, end = features.first[feature], features.first[feature + 1]
    weight_left, last = np.int64(0), np.int64(-1)
    for c in range(n_classes):
        left[c] = 0
    for code in range(end - begin):
        row = (node * n_bins + begin + code) * n_classes
        weight = np.int64(0)
        for c in range(n_classes):
            weight += histogram[row + c]
        if weight == 0:  # no row of the node has this code
            continue
        if last >= 0:
            _consider_split(criterion, left, weight_left, level, node, feature, last,
                            np.int64(code), best)  # fmt: skip
        for c in range(n_classes):
            left[c] += histogram[row + c]
        weight_left += weight
        last = np.int64(code)


@kernel(inner=True)
def _read_in_order(
    chunk, order, feature, packed, bits, node_of, level, criterion, search, best
):  # fmt: skip
    m, n_classes = level.totals.shape
    mask = np.int64((1 << bits) - 1)
    low, last = np.uint32(0x7FFFFFFF), np.uint32(31)
    is_gini = criterion == GINI
    squares, left = search.squares[chunk], search.left[chunk]
    last_code, weight_left = search.last_code[chunk], search.weight_left[chunk]
    for node in range(m):
        weight_left[node] = 0
        last_code[node] = -1
        squares[node, 0] = squares[node, 1] = 0.0
        for c in range(n_classes):
            left[node, c] = 0
            squares[node, 1] += float(level.totals[node, c]) * float(level.totals[node, c])
        squares[node, 2] = ROUNDING_OF_SQUARES * squares[node, 1] * float(len(order))
    code = np.int64(0)
    for at in range(len(order)):
        entry = order[at]
        row = np.uint64(entry & low)
        this_code = code
        code += np.int64(entry >> last)
        node = node_of[row] - level.first
        if node < 0 or not level.is_open[node]:
            continue
        weight, label = packed[row] >> bits, packed[row] & mask
        before = left[node, label]
        if last_code[node] != this_code:
            if before > 0 or weight_left[node] > 0:
                on_left = weight_left[node]
                if (
                    not is_gini
                    or best.split[node, 0] < 0
                    or not is_far(squares[node, 0], squares[node, 1], squares[node, 2], on_left,
                                  level.weights[node] - on_left, best.score[node])
                ):  # fmt: skip
                    _consider_split(criterion, left[node], on_left, level, node, feature,
                                    last_code[node], this_code, best)  # fmt: skip
            last_code[node] = this_code
        left[node, label] = before + weight
        weight_left[node] += weight
        if is_gini:
            real = float(weight)
            squares[node, 0] += real * (2.0 * float(before) + real)
            squares[node, 1] -= real * (2.0 * float(level.totals[node, label] - before) - real)


@kernel(inner=True)
def _consider_split(criterion, left, weight_left, level, node, feature, code, next_code, best):
    """Keep the split if it is better than the best of the node."""
    totals, split = level.totals[node], best.split[node]
    weight_right = level.weights[node] - weight_left
    score, exact = score_of_classes(criterion, left, totals, weight_left, weight_right)
    if split[0] >= 0 and score < best.score[node]:
        return
    if consider(
        criterion, False, np.int64(exact), weight_left, np.int64(0), weight_right, score, feature,
        code, split, best.score[node:],
    ):  # fmt: skip
        split[NEXT_CODE] = next_code
        for c in range(len(left)):
            best.left[node, c] = left[c]


@region(bare=True)
def _find_best(tile, criterion, m, search):
    """For each node, keep the best split of all chunks, in their order."""
    for node in range(m):
        best, score = search.best[-1, node], search.score[-1, node:]
        best[0], score[0] = -1, -np.inf
        for chunk in range(len(search.features)):
            split = search.best[chunk, node]
            if split[0] >= 0 and consider(
                criterion, False, split[1], split[2], split[3], split[4],
                search.score[chunk, node], split[0], split[5], best, score,
            ):  # fmt: skip
                best[NEXT_CODE] = split[NEXT_CODE]
                for c in range(search.best_left.shape[2]):
                    search.best_left[-1, node, c] = search.best_left[chunk, node, c]
