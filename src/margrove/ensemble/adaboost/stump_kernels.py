"""The compiled functions of boosted stumps; see `stumps`.

A round is five regions: tiles of features and changed rows add changes to histograms, tiles of bins
add up these histograms and search them, tiles of rows add the votes of the stump and change their
weights.
All sums that decide anything are sums of whole numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, share_tiles
from margrove.ensemble.adaboost.algorithms import LARGEST_WEIGHT, NO_BETTER
from margrove.ensemble.adaboost.stump_search import add_up_bins, find_best, search_bins
from margrove.ensemble.adaboost.stump_tables import rows_of_tile, write_sides

__all__ = ["CHANCE", "PERFECT", "RUNNING", "Rows", "StumpSettings", "Stumps", "reset_weights",
           "run_rounds"]  # fmt: skip

RUNNING, PERFECT, CHANCE = range(3)
_BITS = 50  # of the sum of all weights after a reset
_MOST_BITS = 61  # upper limit, together with the bits of a label
_FEWEST_BITS = 42  # lower limit
_DOUBT = 1e-6  # of a sum of weights near a power of two: larger than any rounding error
_N_WRONG, _N_LEFT, _MORE_WRONG, _N_MISTAKEN = range(4)  # counts of a tile of rows


class Rows(NamedTuple):
    """The state of the rows, of which each tile has its own segment of the changes.

    labels     int32 (n,)
    counts     int64 (n,)  multiplicity of each row
    samples    int64 (n,)  the number of samples that each row represents
    starts     float64 (n,)  logarithms of the first weights
    missed     float64 (n,)  sum of the weights of stumps that got the row wrong, which is added
    packed     int64 (n,)  whole weights (see the module), with the label in the lowest bits
    shares     float64 (n,)  shares of the total weight before the first round; empty if all are
               equal
    share_of   float64 (n + 1,)  the share of k rows, if all have equal shares; else empty
    votes      float64 (n, K)  for each class; empty for two classes, where `missed` is enough
    leading    int32 (n,)  the class with most votes; empty for two classes
    on_left    bool (n,)  whether the row is on the left of the current stump
    mistaken   bool (n,)  whether all stumps so far get the row wrong; empty if shares are equal
    changed    int32 (n,)  the rows whose weights change
    change     int64 (n,)  the changes of their whole weights, with the label in the lowest bits
    spans      int64 (tiles, 2)  where the changes of each tile begin and end
    figures    int64 (tiles, 8)  counts of each tile
    sums       int64 (tiles, K or more)  changes of the classes in each tile
    logs       float64 (tiles,)  scratch
    totals     int64 (K,)  whole weights of the classes
    """

    labels: np.ndarray
    counts: np.ndarray
    samples: np.ndarray
    starts: np.ndarray
    missed: np.ndarray
    packed: np.ndarray
    shares: np.ndarray
    share_of: np.ndarray
    votes: np.ndarray
    leading: np.ndarray
    on_left: np.ndarray
    mistaken: np.ndarray
    changed: np.ndarray
    change: np.ndarray
    spans: np.ndarray
    figures: np.ndarray
    sums: np.ndarray
    logs: np.ndarray
    totals: np.ndarray


class Stumps(NamedTuple):
    """The stumps of T rounds.

    feature    int32 (T,)  -1 for a leaf, if no feature has two different values
    code       int64 (T,)  the largest code on the left
    classes    int32 (T, 2)  predictions on the left and on the right
    shares     float64 (T, 2, K)  shares of the total weight by side and class
    n_left     int64 (T,)  number of samples on the left
    error      float64 (T,)  weighted error
    weight     float64 (T,)  weight of the stump
    training_error   float64 (T,)  training error of all stumps so far
    """

    feature: np.ndarray
    code: np.ndarray
    classes: np.ndarray
    shares: np.ndarray
    n_left: np.ndarray
    error: np.ndarray
    weight: np.ndarray
    training_error: np.ndarray

    def first(self, end: int, begin: int = 0) -> Stumps:
        """A copy of the stumps of rounds begin .. end - 1."""
        return Stumps._make(array[begin:end].copy() for array in self)


class StumpSettings(NamedTuple):
    """criterion: code of the criterion; bonus: log(K - 1) for SAMME, otherwise 0; chance: the error
    at which a stump is useless; bits: number of bits of a label."""

    criterion: int
    bonus: float
    chance: float
    learning_rate: float
    bits: int


# -- whole weights --


@kernel(bare=True)
def reset_weights(words, n_threads, rows, search, scales, bits):
    """Compute shift, scale and whole weights again, such that their sum has _BITS bits.

    All rows count as changed, and the histograms are empty.
    """
    n_tiles = len(rows.spans)
    share_tiles(words, n_tiles, n_threads, _find_largest, (rows,))
    largest = -np.inf
    for tile in range(n_tiles):
        largest = max(largest, rows.logs[tile])
    scales[0] = largest
    share_tiles(words, n_tiles, n_threads, _add_weights, (rows, largest))
    total = 0.0
    for tile in range(n_tiles):
        total += rows.logs[tile]
    fraction, exponent = math.frexp(total)
    if fraction < 0.5 + _DOUBT or fraction > 1.0 - _DOUBT:
        exponent = math.frexp(_sum_of_weights(rows, 0, len(rows.labels), largest))[1]
    scales[1] = 2.0 ** (_BITS - exponent)
    share_tiles(words, n_tiles, n_threads, _pack_weights, (rows, scales, bits))
    for c in range(len(rows.totals)):
        rows.totals[c] = 0
    _add_sums(rows)
    share_tiles(words, len(search.chunks.begin), n_threads, _empty_bins, (search,))


@kernel(inner=True)
def _find_largest(tile, rows):
    begin, end = rows_of_tile(tile, len(rows.labels))
    largest = -np.inf
    for i in range(begin, end):
        largest = max(largest, rows.starts[i] + rows.missed[i])
    rows.logs[tile] = largest


@kernel(inner=True)
def _add_weights(tile, rows, largest):
    begin, end = rows_of_tile(tile, len(rows.labels))
    rows.logs[tile] = _sum_of_weights(rows, begin, end, largest)


@kernel(inner=True)
def _sum_of_weights(rows, begin, end, largest):
    total = 0.0
    for i in range(begin, end):
        total += rows.counts[i] * math.exp(rows.starts[i] + rows.missed[i] - largest)
    return total


@kernel(inner=True)
def _pack_weights(tile, rows, scales, bits):
    begin, end = rows_of_tile(tile, len(rows.labels))
    sums = rows.sums[tile]
    for c in range(len(rows.totals)):
        sums[c] = 0
    for i in range(begin, end):
        weight = _units_of_row(rows, i, scales)
        rows.packed[i] = (weight << bits) | rows.labels[i]
        rows.changed[i], rows.change[i] = i, rows.packed[i]
        sums[rows.labels[i]] += weight
    rows.spans[tile, 0], rows.spans[tile, 1] = begin, end


@kernel(inner=True)
def _units_of_row(rows, i, scales):
    share = math.exp(rows.starts[i] + rows.missed[i] - scales[0])
    return rows.counts[i] * np.int64(max(1.0, np.rint(share * scales[1])))


@kernel(inner=True)
def _add_sums(rows):
    """Add the changes of the classes in all tiles to the totals."""
    for tile in range(len(rows.sums)):
        for c in range(len(rows.totals)):
            rows.totals[c] += rows.sums[tile, c]


@kernel(inner=True)
def _empty_bins(tile, search):
    chunks, n_classes = search.chunks, search.n_classes
    for cell in range(chunks.begin[tile] * n_classes, chunks.end[tile] * n_classes):
        for part in range(len(search.histograms)):
            search.histograms[part, cell] = 0


# -- histograms --


@kernel(inner=True)
def _update_histograms(tile, features, columns, rows, stumps, last, bits, search):
    """Add the changes of some tiles of rows to the histogram of a feature, or of a group.

    The first tile adds up the training error of the last round, if it is not known yet.
    """
    if tile == 0:
        _add_up_mistakes(rows, stumps, last)
        return
    n_groups = len(features.starts)
    n_tiles, n_parts, n_classes = len(rows.spans), len(search.histograms), search.n_classes
    unit, part = divmod(tile - 1, n_parts)  # first the groups, which take longer
    first, end = part * n_tiles // n_parts, (part + 1) * n_tiles // n_parts
    histogram = search.histograms[part]
    if unit < n_groups:
        _add_entries(features.starts[unit], features.bins, rows, first, end, bits, n_classes,
                     histogram)  # fmt: skip
        return
    feature, dense = features.by_column[unit - n_groups], columns.dense
    place = dense.place[feature]
    base = features.first[feature]
    cells = histogram[base * n_classes :]
    if dense.width[feature] == 0:
        _add_codes(dense.narrow[place], rows, first, end, bits, n_classes, cells)
    elif dense.width[feature] == 1:
        _add_codes(dense.medium[place], rows, first, end, bits, n_classes, cells)
    else:
        _add_codes(dense.wide[place], rows, first, end, bits, n_classes, cells)


@kernel(inner=True)
def _add_codes(codes, rows, first, end, bits, n_classes, cells):
    mask, width = np.int64((1 << bits) - 1), np.uint64(n_classes)
    for tile in range(first, end):
        for k in range(rows.spans[tile, 0], rows.spans[tile, 1]):
            change = rows.change[k]
            code = np.uint64(codes[np.uint64(rows.changed[k])])
            cells[code * width + np.uint64(change & mask)] += change >> bits


@kernel(inner=True)
def _add_entries(starts, bins, rows, first, end, bits, n_classes, histogram):
    mask, width = np.int64((1 << bits) - 1), np.uint64(n_classes)
    for tile in range(first, end):
        for k in range(rows.spans[tile, 0], rows.spans[tile, 1]):
            i = np.uint64(rows.changed[k])
            label, change = np.uint64(rows.change[k] & mask), rows.change[k] >> bits
            for p in range(starts[i], starts[i + np.uint64(1)]):
                histogram[np.uint64(bins[p]) * width + label] += change


@kernel(inner=True)
def _add_up_mistakes(rows, stumps, t):
    """The training error after round t: shares are added in the order of the rows."""
    if t < 0 or len(rows.mistaken) == 0:
        return
    error = 0.0
    for i in range(len(rows.mistaken)):
        error += rows.shares[i] if rows.mistaken[i] else 0.0
    stumps.training_error[t] = error


# -- rounds --


@kernel(inner=True)
def _finish_round(words, n_threads, columns, rows, search, stumps, settings, scales, t, replayed):
    """Compute the weight of the stump and update the weights of the rows.

    Returns RUNNING, PERFECT or CHANCE.
    """
    n_tiles = len(rows.spans)
    total = np.int64(0)
    for c in range(len(rows.totals)):
        total += rows.totals[c]
    if not replayed and not _weigh_stump(rows, search, stumps, settings, t, total):
        for tile in range(n_tiles):
            rows.spans[tile, 1] = rows.spans[tile, 0]
        return CHANCE
    weight, error = stumps.weight[t], stumps.error[t]
    outcome = PERFECT if error == 0.0 else RUNNING
    scales[2] += weight
    share_tiles(words, n_tiles, n_threads, _add_votes, (columns, rows, stumps, scales[2], t))
    shrinks = _count_rows(rows, stumps, t)
    growth = 1.0 + math.exp(min(weight, 700.0)) * error
    if shrinks:
        scales[0] += weight
        growth = error
    largest = 2.0 ** float(_MOST_BITS - settings.bits)
    if not 2.0**_FEWEST_BITS < float(total) * growth < largest:
        reset_weights(words, n_threads, rows, search, scales, settings.bits)
        return outcome
    share_tiles(words, n_tiles, n_threads, _change_weights, (rows, shrinks, scales, settings.bits))
    _add_sums(rows)
    return outcome


@kernel(inner=True)
def _weigh_stump(rows, search, stumps, settings, t, total):
    """Describe the stump of round t; returns whether it is better than chance."""
    left = search.left[-1]
    _describe(rows, search.best[-1], left, stumps, t, total)
    wrong = total - left[stumps.classes[t, 0]]
    if stumps.feature[t] >= 0:
        right = stumps.classes[t, 1]
        wrong -= rows.totals[right] - left[right]
    error = float(wrong) / float(total)
    if wrong > 0 and error >= settings.chance - NO_BETTER:
        return False
    stumps.error[t] = error
    stumps.weight[t] = 1.0
    if wrong > 0:
        odds = math.log((1.0 - error) / error)
        stumps.weight[t] = min(settings.learning_rate * (odds + settings.bonus), LARGEST_WEIGHT)
    return True


@kernel(inner=True)
def _describe(rows, best, in_left, stumps, t, total):
    """Record the stump: its split, and its predictions and shares on both sides."""
    n_classes = len(rows.totals)
    stumps.feature[t] = best[0]
    stumps.code[t] = best[5]
    first, second = 0, 0
    for c in range(n_classes):
        if stumps.feature[t] < 0:
            in_left[c] = rows.totals[c]
        left, right = in_left[c], rows.totals[c] - in_left[c]
        stumps.shares[t, 0, c] = float(left) / float(total)
        stumps.shares[t, 1, c] = float(right) / float(total)
        if left > in_left[first]:
            first = c
        if right > rows.totals[second] - in_left[second]:
            second = c
    stumps.classes[t, 0] = first
    stumps.classes[t, 1] = second if stumps.feature[t] >= 0 else first


@kernel(inner=True)
def _add_votes(tile, columns, rows, stumps, total_weight, t):
    """Add the stump's prediction to `missed` and `votes` of the rows of a tile.

    Wrong rows are listed from the front of the tile's segment, right ones from the back.
    """
    begin, end = rows_of_tile(tile, len(rows.labels))
    if stumps.feature[t] >= 0:
        write_sides(columns, stumps.feature[t], stumps.code[t], begin, end, rows.on_left)
    else:
        for i in range(begin, end):
            rows.on_left[i] = True
    left, right, weight = stumps.classes[t, 0], stumps.classes[t, 1], stumps.weight[t]
    half = 0.5 * total_weight
    many, equal = len(rows.leading) > 0, len(rows.mistaken) == 0
    first_right, next_wrong = end, begin
    n_left, more_wrong, n_mistaken = np.int64(0), np.int64(0), np.int64(0)
    for i in range(begin, end):
        label, is_left = rows.labels[i], rows.on_left[i]
        predicted = left if is_left else right
        n_left += rows.samples[i] if is_left else 0
        is_wrong = predicted != label
        rows.changed[next_wrong if is_wrong else first_right - 1] = i
        next_wrong += np.int64(is_wrong)
        first_right -= np.int64(not is_wrong)
        more_wrong += rows.counts[i] if is_wrong else -rows.counts[i]
        rows.missed[i] += weight if is_wrong else 0.0
        if many:
            mistaken = _vote(rows.votes[i], rows.leading, i, predicted, weight) != label
        else:
            mistaken = rows.missed[i] > half or (rows.missed[i] == half and label == 1)
        n_mistaken += np.int64(mistaken)
        if not equal:
            rows.mistaken[i] = mistaken
    figures = rows.figures[tile]
    figures[_N_WRONG], figures[_N_LEFT] = next_wrong - begin, n_left
    figures[_MORE_WRONG], figures[_N_MISTAKEN] = more_wrong, n_mistaken


@kernel(inner=True)
def _vote(votes, leading, i, predicted, weight):
    """The class with most votes, after a vote; the first of equal ones."""
    votes[predicted] += weight
    best = leading[i]
    if votes[predicted] > votes[best] or (votes[predicted] == votes[best] and predicted < best):
        leading[i] = predicted
        return predicted
    return best


@kernel(inner=True)
def _count_rows(rows, stumps, t):
    """Add up the counts of the tiles; returns whether the weights of the right rows shrink."""
    n_left, more_wrong, n_mistaken = np.int64(0), np.int64(0), np.int64(0)
    for tile in range(len(rows.figures)):
        n_left += rows.figures[tile, _N_LEFT]
        more_wrong += rows.figures[tile, _MORE_WRONG]
        n_mistaken += rows.figures[tile, _N_MISTAKEN]
    stumps.n_left[t] = n_left
    if len(rows.share_of):
        stumps.training_error[t] = rows.share_of[n_mistaken]
    return more_wrong > 0


@kernel(inner=True)
def _change_weights(tile, rows, shrinks, scales, bits):
    """Update the whole weights of the wrong rows of a tile, or of its right rows."""
    begin, end = rows_of_tile(tile, len(rows.labels))
    middle = begin + rows.figures[tile, _N_WRONG]
    first, last = (middle, end) if shrinks else (begin, middle)
    sums = rows.sums[tile]
    for c in range(len(rows.totals)):
        sums[c] = 0
    for k in range(first, last):
        i = rows.changed[k]
        new, label = _units_of_row(rows, i, scales), rows.labels[i]
        change = new - (rows.packed[i] >> bits)
        rows.change[k] = (change << bits) | label
        rows.packed[i] = (new << bits) | label
        sums[label] += change
    rows.spans[tile, 0], rows.spans[tile, 1] = first, last


@kernel(bare=True)
def run_rounds(
    words, n_threads, features, columns, rows, search, stumps, settings, scales, t, last, replayed
):
    """Run rounds t .. last - 1, unless boosting stops before; returns where and why."""
    outcome, bits, summed = RUNNING, settings.bits, -1
    n_tiles = 1 + len(search.histograms) * (len(features.by_column) + len(features.starts))
    n_chunks = len(search.chunks.begin)
    while t < last and outcome == RUNNING:
        share_tiles(words, n_tiles, n_threads, _update_histograms,
                    (features, columns, rows, stumps, summed, bits, search))  # fmt: skip
        summed = -1
        share_tiles(words, n_chunks, n_threads, add_up_bins, (search,))
        if not replayed:
            share_tiles(
                words, n_chunks, n_threads, search_bins,
                (features, rows.packed, rows.totals, bits, settings.criterion, search),
            )  # fmt: skip
            find_best(settings.criterion, search)
        outcome = _finish_round(words, n_threads, columns, rows, search, stumps, settings, scales,
                                t, replayed)  # fmt: skip
        if outcome != CHANCE:
            summed = t
            t += 1
    _add_up_mistakes(rows, stumps, summed)
    return t, outcome
