"""The compiled functions of boosted stumps; see `stumps`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.adaboost.algorithms import LARGEST_WEIGHT, NO_BETTER
from margrove.ensemble.adaboost.stump_tables import write_sides
from margrove.grove.grow.search import GINI, ROUNDING_OF_SQUARES, consider, is_far, score_of_classes

__all__ = ["CHANCE", "PERFECT", "RUNNING", "Rows", "Search", "StumpSettings", "Stumps",
           "fill_histogram", "finish_round", "reset_weights", "run_rounds", "search_group",
           "take_better", "update_histogram"]  # fmt: skip

RUNNING, PERFECT, CHANCE = range(3)
_BITS = 50  # of the sum of all weights after a reset
_MOST_BITS = 61  # upper limit, together with the bits of a label
_FEWEST_BITS = 42  # lower limit


class Rows(NamedTuple):
    """The state of the rows.

    labels     int32 (n,)
    counts     int64 (n,)  multiplicity of each row
    samples    int64 (n,)  the number of samples that each row represents
    starts     float64 (n,)  logarithms of the first weights
    missed     float64 (n,)  sum of the weights of stumps that got the row wrong, which is added
    packed     int64 (n,)  whole weights (see the module), with the label in the lowest bits
    shares     float64 (n,)  shares of the total weight before the first round
    votes      float64 (n, K)  for each class; empty for two classes, where `missed` is enough
    leading    int32 (n,)  the class with most votes; empty for two classes
    on_left    bool (n,)  whether the row is on the left of the current stump
    changed    int32 (n,)  the rows whose weights change
    change     int64 (n,)  the changes of their whole weights
    totals     int64 (K,)  whole weights of the classes
    """

    labels: np.ndarray
    counts: np.ndarray
    samples: np.ndarray
    starts: np.ndarray
    missed: np.ndarray
    packed: np.ndarray
    shares: np.ndarray
    votes: np.ndarray
    leading: np.ndarray
    on_left: np.ndarray
    changed: np.ndarray
    change: np.ndarray
    totals: np.ndarray


class Search(NamedTuple):
    """The histogram of a group of features, and the best stump found there.

    histogram   int64 (bins * K,)
    left        int64 (K,)  classes on the left of the best stump
    sums, rest  int64 (K,)  scratch
    best        int64 (7,), score float64 (1,): see `consider`
    """

    histogram: np.ndarray
    left: np.ndarray
    sums: np.ndarray
    rest: np.ndarray
    best: np.ndarray
    score: np.ndarray


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


@kernel(bare=True)
def reset_weights(rows, scales, bits):
    """Compute shift, scale and whole weights again, such that their sum has _BITS bits."""
    largest, total = -np.inf, 0.0
    for i in range(len(rows.labels)):
        largest = max(largest, rows.starts[i] + rows.missed[i])
    for i in range(len(rows.labels)):
        total += rows.counts[i] * math.exp(rows.starts[i] + rows.missed[i] - largest)
    scales[0] = largest
    scales[1] = 2.0 ** (_BITS - math.frexp(total)[1])
    for c in range(len(rows.totals)):
        rows.totals[c] = 0
    for i in range(len(rows.labels)):
        weight = _units_of_row(rows, i, scales)
        rows.packed[i] = (weight << bits) | rows.labels[i]
        rows.totals[rows.labels[i]] += weight


@kernel(inner=True)
def _units_of_row(rows, i, scales):
    share = math.exp(rows.starts[i] + rows.missed[i] - scales[0])
    return rows.counts[i] * np.int64(max(1.0, np.rint(share * scales[1])))


@kernel(bare=True)
def fill_histogram(group, rows, bits, search):
    """Compute the histogram from all rows."""
    histogram, n_classes = search.histogram, len(rows.totals)
    for b in range(len(histogram)):
        histogram[b] = 0
    for i in range(len(rows.labels)):
        label, weight = np.uint64(rows.labels[i]), rows.packed[i] >> bits
        for p in range(group.starts[i], group.starts[i + 1]):
            histogram[np.uint64(group.bins[p]) * np.uint64(n_classes) + label] += weight


@kernel(bare=True)
def update_histogram(group, rows, n_changed, search):
    """Add the changes of the weights in the last round to the histogram."""
    histogram, n_classes = search.histogram, len(rows.totals)
    for k in range(n_changed):
        i = rows.changed[k]
        label, change = np.uint64(rows.labels[i]), rows.change[k]
        for p in range(group.starts[i], group.starts[i + 1]):
            histogram[np.uint64(group.bins[p]) * np.uint64(n_classes) + label] += change


@kernel(bare=True)
def search_group(group, rows, settings, search):
    """Find the best stump of a group of features."""
    search.best[0] = -1
    search.score[0] = -np.inf
    for k in range(len(group.features)):
        if group.place[k] >= 0:
            _read_in_order(group, k, rows, settings, search)
        else:
            _read_bins(group, k, rows, settings, search)


@kernel(inner=True)
def _read_bins(group, k, rows, settings, search):
    histogram, left, rest = search.histogram, search.sums, search.rest
    n_classes = len(left)
    begin, end, omitted = group.first[k], group.first[k + 1], group.omitted[k]
    total = np.int64(0)
    for c in range(n_classes):
        left[c] = 0
        rest[c] = rows.totals[c]
        total += rows.totals[c]
    if omitted >= 0:
        for b in range(begin, end):
            if b != begin + omitted:
                for c in range(n_classes):
                    rest[c] -= histogram[b * n_classes + c]
    weight_left = np.int64(0)
    for code in range(end - begin - 1):
        row = (begin + code) * n_classes
        for c in range(n_classes):
            weight = rest[c] if code == omitted else histogram[row + c]
            left[c] += weight
            weight_left += weight
        _consider_split(settings.criterion, left, rows.totals, weight_left, total,
                        group.features[k], code, search)  # fmt: skip


@kernel(inner=True)
def _read_in_order(group, k, rows, settings, search):
    """Search row by row in sorted order. Floating point sums of squares show that most splits are
    far worse than the best; only the others are scored exactly."""
    left = search.sums
    n_classes, bits = len(left), settings.bits
    mask = np.int64((1 << bits) - 1)
    order, feature = group.orders[group.place[k]], group.features[k]
    total, weight_left = np.int64(0), np.int64(0)
    squares_left, squares_right = 0.0, 0.0
    for c in range(n_classes):
        left[c] = 0
        total += rows.totals[c]
        squares_right += float(rows.totals[c]) * float(rows.totals[c])
    slack = ROUNDING_OF_SQUARES * squares_right * float(len(order))
    low, last = np.uint32(0x7FFFFFFF), np.uint32(31)
    code = 0
    is_gini = settings.criterion == GINI
    for at in range(len(order) - 1):
        entry = order[at]
        packed = rows.packed[np.uint64(entry & low)]
        weight, label = packed >> bits, np.uint64(packed & mask)
        before = left[label]
        left[label] = before + weight
        weight_left += weight
        if is_gini:
            real = float(weight)
            squares_left += real * (2.0 * float(before) + real)
            squares_right -= real * (2.0 * float(rows.totals[label] - before) - real)
        if entry >> last:
            if (
                not is_gini
                or search.best[0] < 0
                or not is_far(squares_left, squares_right, slack, weight_left,
                              total - weight_left, search.score[0])
            ):  # fmt: skip
                _consider_split(settings.criterion, left, rows.totals, weight_left, total, feature,
                                code, search)  # fmt: skip
            code += 1


@kernel(inner=True)
def _consider_split(criterion, left, totals, weight_left, total, feature, code, search):
    """Keep the split if it is better than the best."""
    weight_right = total - weight_left
    score, exact = score_of_classes(criterion, left, totals, weight_left, weight_right)
    if (search.best[0] < 0 or score >= search.score[0]) and consider(
        criterion, False, np.int64(exact), weight_left, np.int64(0), weight_right, score, feature,
        code, search.best, search.score,
    ):  # fmt: skip
        _keep(left, search.left)


@kernel(inner=True)
def _keep(sums, kept):
    for c in range(len(sums)):
        kept[c] = sums[c]


@kernel(bare=True)
def take_better(criterion, other, best):
    """Replace the stump in `best` if that of `other` is better."""
    if consider(
        criterion, False, other.best[1], other.best[2], other.best[3], other.best[4],
        other.score[0], other.best[0], other.best[5], best.best, best.score,
    ):  # fmt: skip
        _keep(other.left, best.left)


@kernel(bare=True)
def finish_round(columns, rows, search, stumps, settings, scales, t, replayed):
    """Compute the weight of the stump and update the weights of the rows.

    Returns whether whole weights were computed again, otherwise how many rows changed, and RUNNING,
    PERFECT or CHANCE.
    """
    total = np.int64(0)
    for c in range(len(rows.totals)):
        total += rows.totals[c]
    if not replayed:
        _describe(rows, search, stumps, t, total)
        wrong = total - search.left[stumps.classes[t, 0]]
        if stumps.feature[t] >= 0:
            right = stumps.classes[t, 1]
            wrong -= rows.totals[right] - search.left[right]
        error = float(wrong) / float(total)
        if wrong > 0 and error >= settings.chance - NO_BETTER:
            return False, 0, CHANCE
        stumps.error[t] = error
        stumps.weight[t] = 1.0
        if wrong > 0:
            odds = math.log((1.0 - error) / error)
            stumps.weight[t] = min(settings.learning_rate * (odds + settings.bonus), LARGEST_WEIGHT)
    outcome = PERFECT if stumps.error[t] == 0.0 else RUNNING
    if stumps.feature[t] >= 0:
        write_sides(columns, stumps.feature[t], stumps.code[t], rows.on_left)
    else:
        for i in range(len(rows.labels)):
            rows.on_left[i] = True
    n_changed, shrinks = _update_rows(rows, stumps, t, scales)
    weight, error = stumps.weight[t], stumps.error[t]
    growth = 1.0 + math.exp(min(weight, 700.0)) * error
    if shrinks:
        scales[0] += weight
        growth = error
    largest = 2.0 ** float(_MOST_BITS - settings.bits)
    if not 2.0**_FEWEST_BITS < float(total) * growth < largest:
        reset_weights(rows, scales, settings.bits)
        return True, 0, outcome
    _change_weights(rows, n_changed, scales, settings.bits)
    return False, n_changed, outcome


@kernel(inner=True)
def _change_weights(rows, n_changed, scales, bits):
    """Update the whole weights of the changed rows."""
    for k in range(n_changed):
        i = rows.changed[k]
        new = _units_of_row(rows, i, scales)
        rows.change[k] = new - (rows.packed[i] >> bits)
        rows.packed[i] = (new << bits) | rows.labels[i]
        rows.totals[rows.labels[i]] += rows.change[k]


@kernel(inner=True)
def _describe(rows, search, stumps, t, total):
    """Record the stump: its split, and its predictions and shares on both sides."""
    n_classes = len(rows.totals)
    stumps.feature[t] = search.best[0]
    stumps.code[t] = search.best[5]
    first, second = 0, 0
    for c in range(n_classes):
        if stumps.feature[t] < 0:
            search.left[c] = rows.totals[c]
        left, right = search.left[c], rows.totals[c] - search.left[c]
        stumps.shares[t, 0, c] = float(left) / float(total)
        stumps.shares[t, 1, c] = float(right) / float(total)
        if left > search.left[first]:
            first = c
        if right > rows.totals[second] - search.left[second]:
            second = c
    stumps.classes[t, 0] = first
    stumps.classes[t, 1] = second if stumps.feature[t] >= 0 else first


@kernel(inner=True)
def _update_rows(rows, stumps, t, scales):
    """Add the stump's prediction to `missed` and `votes` of each row.

    The smaller set of right or wrong rows is listed in `changed`. Returns its size, and whether it
    is the set of right rows.
    """
    left, right, weight = stumps.classes[t, 0], stumps.classes[t, 1], stumps.weight[t]
    scales[2] += weight
    half = 0.5 * scales[2]
    n, many = len(rows.labels), len(rows.leading) > 0
    n_wrong, n_left, error = 0, 0, 0.0
    more_wrong = np.int64(0)
    for i in range(n):
        predicted, label = right, rows.labels[i]
        if rows.on_left[i]:
            predicted = left
            n_left += rows.samples[i]
        is_wrong = predicted != label
        # Wrong rows are listed from the front, right ones from the back.
        rows.changed[n_wrong if is_wrong else n - 1 - (i - n_wrong)] = i
        n_wrong += is_wrong
        more_wrong += rows.counts[i] if is_wrong else -rows.counts[i]
        rows.missed[i] += weight if is_wrong else 0.0
        if many:
            votes, leading = rows.votes[i], rows.leading[i]
            votes[predicted] += weight
            if votes[predicted] > votes[leading] or (
                votes[predicted] == votes[leading] and predicted < leading
            ):
                rows.leading[i] = predicted
            if rows.leading[i] != label:
                error += rows.shares[i]
        elif rows.missed[i] > half or (rows.missed[i] == half and label == 1):
            error += rows.shares[i]
    stumps.n_left[t] = n_left
    stumps.training_error[t] = error
    if more_wrong <= 0:
        return n_wrong, False
    for k in range(n - n_wrong):
        rows.changed[k] = rows.changed[n_wrong + k]
    return n - n_wrong, True


@kernel(bare=True)
def run_rounds(
    group, columns, rows, search, stumps, settings, scales, t, last, n_changed, replayed
):
    """Run rounds t .. last - 1, unless boosting stops before."""
    outcome = RUNNING
    while t < last and outcome == RUNNING:
        update_histogram(group, rows, n_changed, search)
        if not replayed:
            search_group(group, rows, settings, search)
        restarted, n_changed, outcome = finish_round(columns, rows, search, stumps, settings,
                                                     scales, t, replayed)  # fmt: skip
        if restarted:
            fill_histogram(group, rows, settings.bits, search)
        if outcome != CHANCE:
            t += 1
    return t, n_changed, outcome
