"""Boosting of stumps: all rounds in one compiled loop.

The logarithms of the weights are what is true. Their image in whole numbers,

    weight_i = count_i max(1, rint(exp(log_i - shift) scale)),

is what is summed: sums of whole numbers are exact in any order, so that the histograms of the
classes over the bins can be brought up to date by differences, for as many rounds as one likes,
without drifting. Only the proportions of the weights matter: where most rows were misclassified,
the others shrink instead. When the weights have grown too large, or shrunk too much, they start
again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, run_tiles
from margrove.ensemble.adaboost.algorithms import LARGEST_WEIGHT, NO_BETTER
from margrove.ensemble.adaboost.stump_tables import StumpTable, write_sides
from margrove.grove import CRITERIA
from margrove.grove.grow.search import GINI, ROUNDING_OF_SQUARES, consider, is_far, score_of_classes

__all__ = ["CHANCE", "PERFECT", "RUNNING", "StumpBooster", "Stumps"]

RUNNING, PERFECT, CHANCE = range(3)
_BITS = 50  # of all weights at the start
_MOST_BITS = 61  # that they may grow to, with their labels
_FEWEST_BITS = 42  # that they may shrink to


class Rows(NamedTuple):
    """What boosting knows of the rows.

    labels     int32 (n,)
    counts     int64 (n,)  how often each is there
    samples    int64 (n,)  how many samples it stands for
    starts     float64 (n,)  logarithms of the weights at the start
    missed     float64 (n,)  weights of the stumps that got the row wrong: what it has gained
    packed     int64 (n,)  the image of the weights, see the module, each with its label in the
               lowest bits
    shares     float64 (n,)  of the whole weight, at the start
    votes      float64 (n, K)  for each class; empty for two classes, where the logarithms tell
    leading    int32 (n,)  the class that is ahead; empty for two
    on_left    bool (n,)  of the stump at hand
    changed    int32 (n,)  the rows whose weights change
    change     int64 (n,)  by how much
    totals     int64 (K,)  weights of the classes
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
    best        int64 (7,), score float64 (1,): see `scores.consider`
    """

    histogram: np.ndarray
    left: np.ndarray
    sums: np.ndarray
    rest: np.ndarray
    best: np.ndarray
    score: np.ndarray


class Stumps(NamedTuple):
    """What has been found, round by round.

    feature    int32 (T,)  -1: a leaf, no feature has two values
    code       int64 (T,)  the largest on the left
    classes    int32 (T, 2)  what is said on the left and on the right
    shares     float64 (T, 2, K)  of all weights
    n_left     int64 (T,)  samples
    error      float64 (T,)  weighted
    weight     float64 (T,)  of the stump
    training_error   float64 (T,)  of all stumps so far
    """

    feature: np.ndarray
    code: np.ndarray
    classes: np.ndarray
    shares: np.ndarray
    n_left: np.ndarray
    error: np.ndarray
    weight: np.ndarray
    training_error: np.ndarray

    def part(self, end: int, begin: int = 0) -> Stumps:
        """Some of them, as a copy."""
        return Stumps._make(own[begin:end].copy() for own in self)


class Plan(NamedTuple):
    """criterion: code of `scores`; bonus: log(K - 1) of SAMME, or 0; chance: the error at which a
    stump is of no use; bits: of a label."""

    criterion: int
    bonus: float
    chance: float
    learning_rate: float
    bits: int


def new_stumps(capacity: int, n_classes: int) -> Stumps:
    return Stumps(
        np.full(capacity, -1, np.int32),
        np.zeros(capacity, np.int64),
        np.zeros((capacity, 2), np.int32),
        np.zeros((capacity, 2, n_classes)),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
    )


class StumpBooster:
    """Boosts stumps on a table, some rounds at a time.

    labels are codes of n_classes classes; counts, how often each row is there, logs, of the weights
    at the start, and samples, how many each row stands for. `bonus` is log(K - 1) for SAMME, 0 for
    AdaBoost.M1.
    """

    def __init__(
        self,
        table: StumpTable,
        labels: np.ndarray,
        n_classes: int,
        counts: np.ndarray,
        logs: np.ndarray,
        samples: np.ndarray,
        *,
        criterion: str,
        bonus: float,
        chance: float,
        learning_rate: float,
        n_threads: int = 1,
    ) -> None:
        n, many = table.n_rows, n_classes > 2
        weights = counts * np.exp(logs - logs.max())
        self._table, self._n_threads = table, n_threads
        self._rows = Rows(
            labels.astype(np.int32),
            counts.astype(np.int64),
            samples.astype(np.int64),
            np.array(logs, dtype=np.float64),
            np.zeros(n),
            np.empty(n, np.int64),
            weights / weights.sum(),
            np.zeros((n if many else 0, n_classes)),
            np.zeros(n if many else 0, np.int32),
            np.empty(n, np.bool_),
            np.empty(n, np.int32),
            np.empty(n, np.int64),
            np.zeros(n_classes, np.int64),
        )
        bits = int(n_classes - 1).bit_length()
        self._plan = Plan(CRITERIA[criterion].code, bonus, chance, learning_rate, bits)
        self._searches = [
            Search(
                np.zeros(int(group.first[-1]) * n_classes, np.int64),
                np.empty(n_classes, np.int64),
                np.empty(n_classes, np.int64),
                np.empty(n_classes, np.int64),
                np.empty(7, np.int64),
                np.empty(1),
            )
            for group in table.groups
        ]
        self._scales = np.zeros(3)  # shift and scale of the image; the weight of all stumps so far
        self._n_changed = 0
        self.stumps = new_stumps(16, n_classes)
        self.rounds = 0
        self.outcome = RUNNING
        self._start_weights()

    @property
    def cost_of_round(self) -> float:
        """Elementary steps, roughly."""
        groups = self._table.groups
        cells = sum(len(group.bins) / 4 + group.orders.size for group in groups)
        return cells + sum(len(search.histogram) for search in self._searches) + self._table.n_rows

    def _start_weights(self) -> None:
        _weigh(self._rows, self._scales, self._plan.bits)
        for group, search in zip(self._table.groups, self._searches, strict=True):
            _fill(group, self._rows, self._plan.bits, search)

    def advance(self, n_rounds: int, *, replayed: bool = False) -> None:
        """Some rounds more, or until boosting stops; `replayed` ones have been found before."""
        last = self.rounds + n_rounds
        if len(self.stumps.feature) < last:
            room = new_stumps(max(last, 2 * self.rounds), self.stumps.shares.shape[2])
            for old, new in zip(self.stumps, room, strict=True):
                new[: self.rounds] = old[: self.rounds]
            self.stumps = room
        columns, plan, rows = self._table.columns, self._plan, self._rows
        if len(self._searches) == 1:
            self.rounds, self._n_changed, self.outcome = _run(
                self._table.groups[0], columns, rows, self._searches[0], self.stumps, plan,
                self._scales, self.rounds, last, self._n_changed, replayed,
            )  # fmt: skip
            return
        while self.rounds < last and self.outcome == RUNNING:
            self._one_round(replayed)

    def _one_round(self, replayed: bool) -> None:
        """The same on several cores."""
        groups, searches, rows = self._table.groups, self._searches, self._rows

        def search(k: int) -> None:
            _update(groups[k], rows, self._n_changed, searches[k])
            if not replayed:
                _search(groups[k], rows, self._plan, searches[k])

        run_tiles(search, len(groups), self._n_threads)
        best = searches[0]
        if not replayed:
            for other in searches[1:]:
                if other.best[0] >= 0:
                    _take_better(self._plan.criterion, other, best)
        restarted, self._n_changed, self.outcome = _finish(
            self._table.columns, rows, best, self.stumps, self._plan, self._scales, self.rounds,
            replayed,
        )  # fmt: skip
        if restarted:
            run_tiles(
                lambda k: _fill(groups[k], rows, self._plan.bits, searches[k]),
                len(groups),
                self._n_threads,
            )
        if self.outcome != CHANCE:
            self.rounds += 1

    def resume(self, stumps: Stumps, n_rounds: int) -> None:
        """Go through rounds that an earlier fit has found."""
        self.stumps = stumps.part(n_rounds)
        self.advance(n_rounds, replayed=True)

    def weights(self) -> np.ndarray:
        """D: they sum to one."""
        logs = self._rows.starts + self._rows.missed
        weights = self._rows.counts * np.exp(logs - logs.max())
        total: np.ndarray = weights / weights.sum()
        return total


@kernel(bare=True)
def _weigh(rows, scales, bits):
    """Start the image anew, so that all weights take up so many bits."""
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
        weight = _image(rows, i, scales)
        rows.packed[i] = (weight << bits) | rows.labels[i]
        rows.totals[rows.labels[i]] += weight


@kernel(inner=True)
def _image(rows, i, scales):
    share = math.exp(rows.starts[i] + rows.missed[i] - scales[0])
    return rows.counts[i] * np.int64(max(1.0, np.rint(share * scales[1])))


@kernel(bare=True)
def _fill(group, rows, bits, search):
    """The histogram from the beginning."""
    histogram, n_classes = search.histogram, len(rows.totals)
    for b in range(len(histogram)):
        histogram[b] = 0
    for i in range(len(rows.labels)):
        label, weight = np.uint64(rows.labels[i]), rows.packed[i] >> bits
        for p in range(group.starts[i], group.starts[i + 1]):
            histogram[np.uint64(group.bins[p]) * np.uint64(n_classes) + label] += weight


@kernel(bare=True)
def _update(group, rows, n_changed, search):
    """What the rows have gained, or lost, in the last round."""
    histogram, n_classes = search.histogram, len(rows.totals)
    for k in range(n_changed):
        i = rows.changed[k]
        label, change = np.uint64(rows.labels[i]), rows.change[k]
        for p in range(group.starts[i], group.starts[i + 1]):
            histogram[np.uint64(group.bins[p]) * np.uint64(n_classes) + label] += change


@kernel(bare=True)
def _search(group, rows, plan, search):
    """The best stump of a group of features."""
    search.best[0] = -1
    search.score[0] = -np.inf
    for k in range(len(group.features)):
        if group.place[k] >= 0:
            _read_in_order(group, k, rows, plan, search)
        else:
            _read_bins(group, k, rows, plan, search)


@kernel(inner=True)
def _read_bins(group, k, rows, plan, search):
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
            own = rest[c] if code == omitted else histogram[row + c]
            left[c] += own
            weight_left += own
        _weigh_up(plan.criterion, left, rows.totals, weight_left, total, group.features[k], code,
                  search)  # fmt: skip


@kernel(inner=True)
def _read_in_order(group, k, rows, plan, search):
    """Row by row. Most places are far from the best, which sums of squares that are kept up to date
    in floating point tell; the others are weighed exactly."""
    left = search.sums
    n_classes, bits = len(left), plan.bits
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
    is_gini = plan.criterion == GINI
    for at in range(len(order) - 1):
        entry = order[at]
        own = rows.packed[np.uint64(entry & low)]
        weight, label = own >> bits, np.uint64(own & mask)
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
                _weigh_up(plan.criterion, left, rows.totals, weight_left, total, feature, code,
                          search)  # fmt: skip
            code += 1


@kernel(inner=True)
def _weigh_up(criterion, left, totals, weight_left, total, feature, code, search):
    """Keep the split if it is better than the best."""
    weight_right = total - weight_left
    score, whole = score_of_classes(criterion, left, totals, weight_left, weight_right)
    if (search.best[0] < 0 or score >= search.score[0]) and consider(
        criterion, False, np.int64(whole), weight_left, np.int64(0), weight_right, score, feature,
        code, search.best, search.score,
    ):  # fmt: skip
        _keep(left, search.left)


@kernel(inner=True)
def _keep(sums, kept):
    for c in range(len(sums)):
        kept[c] = sums[c]


@kernel(bare=True)
def _take_better(criterion, other, best):
    """The better of the best stumps of two groups goes to `best`."""
    if consider(
        criterion, False, other.best[1], other.best[2], other.best[3], other.best[4],
        other.score[0], other.best[0], other.best[5], best.best, best.score,
    ):  # fmt: skip
        _keep(other.left, best.left)


@kernel(bare=True)
def _finish(columns, rows, search, stumps, plan, scales, t, replayed):
    """Weigh the stump, ask all rows, and change the weights of those that it gets wrong.

    Returns whether the image of the weights was started anew, how many rows changed otherwise, and
    how boosting goes on.
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
        if wrong > 0 and error >= plan.chance - NO_BETTER:
            return False, 0, CHANCE
        stumps.error[t] = error
        stumps.weight[t] = 1.0
        if wrong > 0:
            odds = math.log((1.0 - error) / error)
            stumps.weight[t] = min(plan.learning_rate * (odds + plan.bonus), LARGEST_WEIGHT)
    outcome = PERFECT if stumps.error[t] == 0.0 else RUNNING
    if stumps.feature[t] >= 0:
        write_sides(columns, stumps.feature[t], stumps.code[t], rows.on_left)
    else:
        for i in range(len(rows.labels)):
            rows.on_left[i] = True
    n_changed, shrinks = _ask(rows, stumps, t, scales)
    weight, error = stumps.weight[t], stumps.error[t]
    growth = 1.0 + math.exp(min(weight, 700.0)) * error
    if shrinks:
        scales[0] += weight
        growth = error
    largest = 2.0 ** float(_MOST_BITS - plan.bits)
    if not 2.0**_FEWEST_BITS < float(total) * growth < largest:
        _weigh(rows, scales, plan.bits)
        return True, 0, outcome
    _change(rows, n_changed, scales, plan.bits)
    return False, n_changed, outcome


@kernel(inner=True)
def _change(rows, n_changed, scales, bits):
    """Bring the image of the weights up to date."""
    for k in range(n_changed):
        i = rows.changed[k]
        new = _image(rows, i, scales)
        rows.change[k] = new - (rows.packed[i] >> bits)
        rows.packed[i] = (new << bits) | rows.labels[i]
        rows.totals[rows.labels[i]] += rows.change[k]


@kernel(inner=True)
def _describe(rows, search, stumps, t, total):
    """Write down the stump: where it parts the rows, and what it says there."""
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
def _ask(rows, stumps, t, scales):
    """What the stump says of each row.

    Of right and wrong rows, the fewer are listed as `changed`; returns how many, and whether those
    are the right ones.
    """
    left, right, weight = stumps.classes[t, 0], stumps.classes[t, 1], stumps.weight[t]
    scales[2] += weight
    half = 0.5 * scales[2]
    n, many = len(rows.labels), len(rows.leading) > 0
    n_wrong, n_left, error = 0, 0, 0.0
    more_wrong = np.int64(0)
    for i in range(n):
        said, label = right, rows.labels[i]
        if rows.on_left[i]:
            said = left
            n_left += rows.samples[i]
        is_wrong = said != label
        # Wrong rows from the front, right ones from the back.
        rows.changed[n_wrong if is_wrong else n - 1 - (i - n_wrong)] = i
        n_wrong += is_wrong
        more_wrong += rows.counts[i] if is_wrong else -rows.counts[i]
        rows.missed[i] += weight if is_wrong else 0.0
        if many:
            votes, leading = rows.votes[i], rows.leading[i]
            votes[said] += weight
            if votes[said] > votes[leading] or (votes[said] == votes[leading] and said < leading):
                rows.leading[i] = said
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
def _run(group, columns, rows, search, stumps, plan, scales, t, last, n_changed, replayed):
    """Rounds t .. last - 1, unless boosting stops before."""
    outcome = RUNNING
    while t < last and outcome == RUNNING:
        _update(group, rows, n_changed, search)
        if not replayed:
            _search(group, rows, plan, search)
        restarted, n_changed, outcome = _finish(columns, rows, search, stumps, plan, scales, t,
                                              replayed)  # fmt: skip
        if restarted:
            _fill(group, rows, plan.bits, search)
        if outcome != CHANCE:
            t += 1
    return t, n_changed, outcome
