"""Trees of classic gradient boosting: exact ones, grown on rank codes, level by level.

A node is searched in a histogram. Where a feature has many codes, neighbours share a bin, and the
histogram alone tells nearly always that no split inside of a bin can be the best: with the sum s,
the weight w and the scatter V of the targets in a bin, and the weights A and C on its two sides, a
split inside it gains at most

    (sqrt(the larger gain of the splits before and after the bin) + sqrt(e))^2,
    e = V w W / max((A + w) (C + w), 4 A C)                             (W = A + w + C)

as the sum of a part of the bin, of weight u, differs by at most sqrt(V u (w - u) / w) from u s / w.
The few bins that might hold something better are read row by row, in the order of their values.
So the splits are those between all values, at the price of a histogram. Nodes of few rows need
none: their rows are sorted.

Sums are whole numbers and add up to the same in any order. Of two children, the rows of the smaller
one are counted, and the histogram of the other is what is left of their parent's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrove._jit import kernel
from margrove._threads import run_tiles
from margrove.ensemble.stump_tables import parts_of_equal_cost
from margrove.grove.binning import BinnedDataset
from margrove.grove.columns import code_of
from margrove.grove.packed import FEATURE_AT, MISSING_AT, PackedTree, cuts_of
from margrove.grove.scores import SQUARED, consider
from margrove.grove.targets import BITS_OF_SUMS, bits_of, whole_weights

__all__ = ["ExactTrees", "GrownTree"]

_BINS_OF_ROOT = 2.5  # times the root of the number of rows: bins of a feature of many codes
_FEWEST_BINS = 128
_RARE = 0.5  # share of other codes up to which the commonest is left out
_ENTRIES_OF_A_CORE = 1 << 20  # from which on several cores share a tree
_ENTRIES_AT_ONCE = 1 << 22  # that are counted without a look at the keyboard
_BYTES_OF_HISTOGRAMS = 1 << 27  # that wait for the children of their nodes
_FEW_ROWS = 32  # of a node, which are sorted rather than counted
_SPAN = 512  # nodes that are searched in one go
_EPSILON = float(np.finfo(np.float64).eps)
_LARGEST_EXPONENT = 1000  # of two, as a float64

# columns of `Nodes.whole`
(START, END, DEPTH, LEFT, FEATURE, CODE, NEXT_CODE, SUM, WEIGHT, PACKED, IS_OPEN, SLOT, INHERITS,
 N_COLUMNS) = range(14)  # fmt: skip
# places in `Nodes.state`
N_NODES, FIRST, LAST, N_FREE = range(4)
# places in `Room.best` after those of `scores.consider`
PACKED_LEFT, BESIDE = 6, 7


class FeatureGroup(NamedTuple):
    """Some neighbouring features; a core works on one group at a time.

    features    int64 (m,)  their numbers: the dense ones first
    first       int64 (m + 1,)  the cells (bins) of feature k are first[k] .. first[k + 1]
    last_code   int64 (cells,)  the highest code of each bin
    dense       uint16 (n, dense features)  bins
    starts      int64 (n + 1,)  entries[starts[i] : starts[i + 1]] are cells of row i
    entries     uint32
    omitted     int64 (m,)  the cell without entries, -1 for dense features
    inside      int64 (cells + 1,)  where the rows of a cell are in `members`: if it has many codes
    members     uint32  rows by rising code; the last of each code has the highest bit
    """

    features: np.ndarray
    first: np.ndarray
    last_code: np.ndarray
    dense: np.ndarray
    starts: np.ndarray
    entries: np.ndarray
    omitted: np.ndarray
    inside: np.ndarray
    members: np.ndarray


class Words(NamedTuple):
    """The rows in whole numbers.

    pairs     int64 (2 n,)  of each row the sum of its targets, and samples | squares << bits, where
              the squares are rounded up
    weight    int64 (n,), or empty: the samples are the weights
    """

    pairs: np.ndarray
    weight: np.ndarray


class Rules(NamedTuple):
    """When and how nodes are split.

    max_depth, min_split, min_leaf, min_weight    in whole numbers
    bits, mask    of samples in a word
    square        what a whole square is worth in squares of whole sums
    nothing       variance up to which a node is not split
    """

    max_depth: int
    min_split: int
    min_leaf: int
    min_weight: int
    bits: int
    mask: int
    square: float
    nothing: float


class Scale(NamedTuple):
    """What targets are multiplied by, in two steps, as one may be beyond floating point; what makes
    one of the largest, and the square of that a whole number."""

    first: float
    second: float
    share: float
    square: float


class Nodes(NamedTuple):
    """The nodes of a tree, level by level; children lie side by side.

    whole        int64 (nodes, 13)  see the names of the columns
    gain         float64 (nodes,)
    rows, spare  int32 (n,)  by nodes
    node_of      int32 (n,)  where each row is; -1: it takes no part
    free         int64  slots without a histogram
    state        int64 (4,)  nodes; the first of those to be searched next, and the one after the
                 last; how many slots are free
    """

    whole: np.ndarray
    gain: np.ndarray
    rows: np.ndarray
    spare: np.ndarray
    node_of: np.ndarray
    free: np.ndarray
    state: np.ndarray


class Room(NamedTuple):
    """What the search of a group of features needs.

    sums, weights    int64 (slots + 1, 2 cells), (slots + 1, cells or 0)  histograms; the last one
                     is for those that are not kept
    keys             int64  rows in their order
    best, best_score    int64 (nodes, 8), float64 (nodes,)  see `scores.consider`; then the packed
                     samples of the left, and the next code, -1 where the two codes beside the
                     split are not known
    """

    sums: np.ndarray
    weights: np.ndarray
    keys: np.ndarray
    best: np.ndarray
    best_score: np.ndarray


class Asked(NamedTuple):
    """A node that is searched.

    Sums are taken around `centre`, which is nearly its mean: so the gains tell the children apart
    and not the node from zero. What is left is `rest` in all, and `drift` a unit of weight; `slack`
    is how wrong a sum around the very mean may be in floating point.
    """

    node: int
    packed: int
    weight: int
    centre: int
    rest: int
    drift: float
    slack: float


class _Weights(NamedTuple):
    """Weights as given, in whole numbers of a unit, whether nothing was rounded, or is zero."""

    given: np.ndarray
    whole: np.ndarray
    unit: float
    is_counted: bool
    is_positive: bool


@dataclass(frozen=True)
class GrownTree:
    """A tree without values: N nodes level by level, children side by side.

    leaf_of_rows     int32 (n,)  the leaf of every row
    left             int64 (N,)  the left child; -1: a leaf
    features         int64 (N,)
    codes            int64 (N,)  the highest rank that goes left, of those in the node
    next_codes       int64 (N,)  the lowest one that goes right
    thresholds       float64 (N,)  halfway between their values
    n_node_samples   int64 (N,)
    weights          float64 (N,)
    impurity         float64 (N,)  the variance of the targets
    decrease         float64 (N,)  of weight times impurity
    """

    leaf_of_rows: np.ndarray
    left: np.ndarray
    features: np.ndarray
    codes: np.ndarray
    next_codes: np.ndarray
    thresholds: np.ndarray
    n_node_samples: np.ndarray
    weights: np.ndarray
    impurity: np.ndarray
    decrease: np.ndarray

    @property
    def n_nodes(self) -> int:
        return len(self.left)

    @property
    def is_leaf(self) -> np.ndarray:
        is_leaf: np.ndarray = self.left < 0
        return is_leaf

    def packed(self, values: np.ndarray) -> PackedTree:
        """The tree as ensembles keep it; what is not there goes with the larger part."""
        inner = np.flatnonzero(~self.is_leaf)
        left = self.left[inner]
        nodes = np.empty((self.n_nodes, 2), np.int64)
        nodes[:, 0] = np.asarray(values, np.float64).view(np.int64)
        nodes[:, 1] = np.arange(self.n_nodes)
        nodes[inner, 0] = self.thresholds[inner].view(np.int64)
        goes_left = self.n_node_samples[left] > self.n_node_samples[left + 1]
        nodes[inner, 1] = (
            left | (self.features[inner] << FEATURE_AT) | (goes_left.astype(np.int64) << MISSING_AT)
        )
        return PackedTree(
            nodes.ravel(),
            self.weights,
            np.empty((0, 1)),
            np.empty(0, np.uint32),
            self.n_node_samples,
            self.impurity,
            self.decrease,
        )


class ExactTrees:
    """Grows regression trees on one table of rank codes, as many at a time as there are callers.

    min_samples_split, min_samples_leaf count samples; min_weight_leaf is in units of the weights.
    """

    def __init__(
        self,
        data: BinnedDataset,
        *,
        max_depth: int,
        min_samples_split: int,
        min_samples_leaf: int,
        min_weight_leaf: float,
        n_threads: int,
    ) -> None:
        if data.has_missing.any() or data.categorical.any():
            raise ValueError("Exact gradient trees are for numbers without missing values.")
        self._limits = (max_depth, min_samples_split, min_samples_leaf, min_weight_leaf)
        self._codes, self._cuts = data.codes, cuts_of(data)
        self._n_rows, self._n_threads = data.n_rows, n_threads
        self._everyone = np.arange(data.n_rows, dtype=np.int32)
        self._groups = _read_groups(data, n_threads)
        entries = sum(group.dense.size + len(group.entries) for group in self._groups)
        self._is_small = len(self._groups) == 1 and entries <= _ENTRIES_AT_ONCE
        cells = sum(len(group.last_code) for group in self._groups)
        affordable = _BYTES_OF_HISTOGRAMS // (24 * max(cells, 1))
        self._n_slots = max(1, min(affordable, 2 ** min(max_depth - 1, 20)))
        self._benches: list[_Bench] = []
        self._weights = _Weights(np.empty(0), np.empty(0, np.int64), 1.0, True, True)

    def grow(
        self,
        gradient: np.ndarray,
        weight: np.ndarray | None = None,
        samples: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> GrownTree:
        """A tree for the negative gradients, float64 (n,).

        weight float64 (n,); samples int64 (n,): how many equal ones a row stands for; rows int32,
        rising: those that take part.
        """
        chosen = self._everyone if rows is None else rows
        weights = self._whole_weights(weight, samples)
        if weights is not None and not weights.is_positive:
            chosen = chosen[weights.whole[chosen] > 0]
        elif weights is None and samples is not None:
            chosen = chosen[samples[chosen] > 0]
        if not len(chosen):
            raise ValueError("No row takes part in the tree.")
        try:
            bench = self._benches.pop()
        except IndexError:  # other threads have them all
            bench = _Bench(self._n_rows, self._n_slots, self._groups)
        tree = self._grow(bench, np.ascontiguousarray(gradient), weights, samples, chosen)
        self._benches.append(bench)
        return tree

    def _whole_weights(
        self, weight: np.ndarray | None, samples: np.ndarray | None
    ) -> _Weights | None:
        """Weights of all samples of each row; nearly always those of the round before."""
        if weight is None:
            return None
        product = weight if samples is None else weight * samples
        known = self._weights
        if not np.array_equal(product, known.given):
            whole = np.zeros(len(product), np.int64)
            positive = product > 0.0
            whole[positive], unit, is_counted = whole_weights(product[positive])
            known = _Weights(product.copy(), whole, unit, is_counted, bool(positive.all()))
            self._weights = known
        return known

    def _grow(
        self,
        bench: _Bench,
        gradient: np.ndarray,
        weights: _Weights | None,
        samples: np.ndarray | None,
        chosen: np.ndarray,
    ) -> GrownTree:
        nothing = np.empty(0, np.int64)
        is_everyone = len(chosen) == self._n_rows
        n_samples = len(chosen) if samples is None else int(samples[chosen].sum())
        if n_samples >= 2**31:
            raise ValueError(f"{n_samples} samples are too many for one tree.")
        largest = float(np.abs(gradient if is_everyone else gradient[chosen]).max())
        if not np.isfinite(largest):
            raise ValueError("Gradients must be finite.")
        if weights is None:
            weights = _Weights(nothing, nothing, 1.0, is_counted=True, is_positive=True)
            total = n_samples
        else:
            total = int(weights.whole[chosen].sum())
        exponent, scale, rules = self._scales(largest, n_samples, total, weights.unit)
        words, nodes = Words(bench.pairs, weights.whole), bench.nodes
        if not is_everyone:
            nodes.node_of.fill(-1)
        plant(gradient, nothing if samples is None else samples, weights.is_counted, scale, rules,
              chosen, words, nodes)  # fmt: skip
        self._split_all(bench, words, rules)
        return self._finished(bench, words, rules, exponent, weights.unit)

    def _scales(
        self, largest: float, n_samples: int, total: int, unit: float
    ) -> tuple[int, Scale, Rules]:
        """The power of two that targets are scaled by, how that is done, and the rules."""
        max_depth, min_split, min_leaf, min_weight = self._limits
        bits, bits_of_weights = n_samples.bit_length(), total.bit_length()
        exponent = BITS_OF_SUMS - bits_of_weights - int(np.frexp(largest)[1])
        first = int(np.clip(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        factor, rest = float(np.ldexp(1.0, first)), float(np.ldexp(1.0, exponent - first))
        square = float(np.ldexp(1.0, BITS_OF_SUMS - bits - bits_of_weights))
        span = max(largest * factor * rest, 1.0)
        rules = Rules(
            max_depth,
            min_split,
            max(min_leaf, 1),
            int(np.ceil(min_weight / unit * (1.0 - 1e-12))),
            bits,
            (1 << bits) - 1,
            span * span / square,
            # scikit-learn's limit, and in proportion for targets that are all below one
            _EPSILON * min(span, factor) ** 2,
        )
        return exponent, Scale(factor, rest, 1.0 / span, square), rules

    def _split_all(self, bench: _Bench, words: Words, rules: Rules) -> None:
        groups, codes = self._groups, self._codes
        rooms = bench.rooms_for(len(words.weight) > 0)
        while bench.is_growing:
            nodes = bench.roomy_nodes()
            if self._is_small:
                grow_alone(groups[0], codes, words, rules, nodes, rooms[0])
                continue

            def search(k: int, nodes: Nodes = nodes) -> None:
                search_span(groups[k], codes, words, rules, nodes, rooms[k])

            run_tiles(search, len(groups), self._n_threads)
            for other in rooms[1:]:
                take_better(nodes, other, rooms[0])
            split_span(codes, words, rules, nodes, rooms[0])

    def _finished(
        self, bench: _Bench, words: Words, rules: Rules, exponent: int, unit: float
    ) -> GrownTree:
        nodes = bench.nodes
        n = int(nodes.state[N_NODES])
        threshold, error = np.empty(n), np.empty(n)
        finish(self._cuts, words, rules, nodes, threshold, error)
        if nodes.whole[0, END] < self._n_rows:
            walk_others(self._codes, self._cuts, nodes, threshold, np.empty(n, np.int64))
        whole = nodes.whole[:n]
        weight = whole[:, WEIGHT].astype(np.float64)
        return GrownTree(
            nodes.node_of.copy(),
            whole[:, LEFT].copy(),
            whole[:, FEATURE].copy(),
            whole[:, CODE].copy(),
            whole[:, NEXT_CODE].copy(),
            threshold,
            whole[:, PACKED] & rules.mask,
            weight * unit,
            _times_power(error / weight, -2 * exponent),
            _times_power(nodes.gain[:n] * unit, -2 * exponent),
        )


def _times_power(amounts: np.ndarray, exponent: int) -> np.ndarray:
    """amounts 2^exponent, as far as floating point goes."""
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(np.ldexp(amounts, exponent), np.finfo(np.float64).max)


class _Bench:
    """What one tree at a time needs."""

    def __init__(self, n_rows: int, n_slots: int, groups: list[FeatureGroup]) -> None:
        self._groups, self._n_slots = groups, n_slots
        self._rooms: dict[bool, list[Room]] = {}
        self.pairs = np.empty(2 * n_rows, np.int64)
        capacity = 64
        self.nodes = Nodes(
            np.empty((capacity, N_COLUMNS), np.int64),
            np.empty(capacity),
            np.empty(n_rows, np.int32),
            np.empty(n_rows, np.int32),
            np.empty(n_rows, np.int32),
            np.empty(n_slots, np.int64),
            np.zeros(4, np.int64),
        )

    @property
    def is_growing(self) -> bool:
        return bool(self.nodes.state[FIRST] < self.nodes.state[LAST])

    def roomy_nodes(self) -> Nodes:
        """The nodes, with room for the children of those whose turn it is."""
        nodes = self.nodes
        state = nodes.state
        needed = int(state[N_NODES] + 2 * (state[LAST] - state[FIRST]))
        if needed > len(nodes.whole):
            whole = np.empty((2 * needed, N_COLUMNS), np.int64)
            gain = np.empty(2 * needed)
            whole[: len(nodes.whole)], gain[: len(nodes.gain)] = nodes.whole, nodes.gain
            self.nodes = nodes._replace(whole=whole, gain=gain)
        return self.nodes

    def rooms_for(self, is_weighted: bool) -> list[Room]:
        if is_weighted not in self._rooms:
            self._rooms[is_weighted] = [
                _new_room(self._n_slots, group, is_weighted) for group in self._groups
            ]
        return self._rooms[is_weighted]


def _new_room(n_slots: int, group: FeatureGroup, is_weighted: bool) -> Room:
    cells = len(group.last_code)
    fullest = int(np.diff(group.inside).max(initial=0))
    return Room(
        np.empty((n_slots + 1, 2 * cells), np.int64),
        np.empty((n_slots + 1, cells if is_weighted else 0), np.int64),
        np.empty(max(fullest + 1, _FEW_ROWS), np.int64),
        np.empty((_SPAN, 8), np.int64),
        np.empty(_SPAN),
    )


def _read_groups(data: BinnedDataset, n_threads: int) -> list[FeatureGroup]:
    """Features that differ between rows, in groups of about equal cost."""
    n = data.n_rows
    features = np.flatnonzero(data.n_codes > 1)
    sizes = [np.bincount(data.column(int(j)), minlength=data.n_codes[j]) for j in features]
    rest = np.array([n - own.max() for own in sizes], np.int64)
    is_rare = rest <= _RARE * n
    cost = np.where(is_rare, rest, n)
    most = max(n_threads, int(cost.sum()) // (8 * _ENTRIES_AT_ONCE))
    parts = parts_of_equal_cost(cost, _ENTRIES_OF_A_CORE, most) or [np.empty(0, np.int64)]
    groups: list[FeatureGroup | None] = [None] * len(parts)

    def build(k: int) -> None:
        part = np.concatenate([parts[k][~is_rare[parts[k]]], parts[k][is_rare[parts[k]]]])
        n_dense = int((~is_rare[part]).sum())
        groups[k] = _group(data, features[part], [sizes[j] for j in part], n_dense)

    run_tiles(build, len(parts), n_threads)
    return [group for group in groups if group is not None]


def _group(
    data: BinnedDataset, features: np.ndarray, sizes: list[np.ndarray], n_dense: int
) -> FeatureGroup:
    n = data.n_rows
    most = max(_FEWEST_BINS, int(_BINS_OF_ROOT * n**0.5))
    bins = [_bins_of(own, most) for own in sizes]
    n_bins = np.array([own[-1] + 1 for own in bins], np.int64)
    first = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    last_codes = [np.append(np.flatnonzero(np.diff(own)), len(own) - 1) for own in bins]
    last_code = np.concatenate([np.empty(0, np.int64), *last_codes])
    dense = np.empty((n, n_dense), np.uint16)
    rows_and_cells = []
    omitted = np.full(len(features), -1, np.int64)
    members, inside = [], [np.zeros(1, np.int64)]
    for k, j in enumerate(features):
        column = data.column(int(j))
        own = bins[k][column]
        if k < n_dense:
            dense[:, k] = own
        else:
            commonest = int(bins[k][np.argmax(sizes[k])])
            omitted[k] = first[k] + commonest
            rows = np.flatnonzero(own != commonest)
            rows_and_cells.append((rows, first[k] + own[rows]))
        found, ends = _members(column, sizes[k], bins[k])
        members.append(found)
        inside.append(inside[-1][-1] + ends)
    rows, cells = (
        np.concatenate([np.empty(0, np.int64), *(pair[side] for pair in rows_and_cells)])
        for side in range(2)
    )
    order = np.argsort(rows, kind="stable")
    return FeatureGroup(
        features.astype(np.int64),
        first,
        last_code,
        dense,
        np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64),
        cells[order].astype(np.uint32),
        omitted,
        np.concatenate(inside),
        np.concatenate([np.empty(0, np.uint32), *members]),
    )


def _bins_of(sizes: np.ndarray, most: int) -> np.ndarray:
    """The bin of each code: as many rows in each as it takes to have few enough bins."""
    if len(sizes) <= 2 * most:
        return np.arange(len(sizes))
    low, high = 1, int(sizes.sum())
    bins = np.empty(len(sizes), np.int64)
    while low < high:
        middle = (low + high) // 2
        if _fill_bins(sizes, middle, bins) <= most:
            high = middle
        else:
            low = middle + 1
    _fill_bins(sizes, low, bins)
    return bins


@kernel
def _fill_bins(sizes, most, bins):
    """Neighbouring codes share a bin while it has `most` rows at most; how many bins there are."""
    number, filled = 0, 0
    for code in range(len(sizes)):
        if filled > 0 and filled + sizes[code] > most:
            number += 1
            filled = 0
        bins[code] = number
        filled += sizes[code]
    return number + 1


def _members(
    column: np.ndarray, sizes: np.ndarray, bins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of bins of several codes, and where those of each bin end."""
    is_shared = np.bincount(bins) > 1
    kept = np.where(is_shared[bins], sizes, 0)
    ends_of_codes = np.cumsum(kept)
    members = np.empty(int(kept.sum()), np.uint32)
    _write_members(column, is_shared[bins], ends_of_codes - kept, members)
    members[ends_of_codes[is_shared[bins]] - 1] |= np.uint32(0x80000000)
    ends: np.ndarray = ends_of_codes[np.append(np.flatnonzero(np.diff(bins)), len(bins) - 1)]
    return members, ends


@kernel
def _write_members(column, is_kept, places, members):
    for i in range(len(column)):
        code = np.int64(column[i])
        if is_kept[code]:
            members[places[code]] = np.uint32(i)
            places[code] += 1


@kernel(bare=True)
def plant(gradient, samples, is_counted, scale, rules, chosen, words, nodes):
    """Targets in whole numbers, and a root of the chosen rows."""
    is_weighted = len(words.weight) > 0
    target, weight, packed = np.int64(0), np.int64(0), np.int64(0)
    for p in range(len(chosen)):
        row = np.uint64(chosen[p])
        nodes.rows[p] = chosen[p]
        nodes.node_of[row] = 0
        copies = samples[row] if len(samples) else np.int64(1)
        mass = words.weight[row] if is_weighted else copies
        real = -gradient[row] * scale.first * scale.second
        if is_counted:
            whole = mass * np.int64(np.rint(real))
        else:
            whole = np.int64(np.rint(float(mass) * real))
        share = real * scale.share
        square = np.int64(np.ceil(float(mass) * (share * share * scale.square)))
        word = (square << rules.bits) + copies
        words.pairs[np.uint64(2) * row], words.pairs[np.uint64(2) * row + np.uint64(1)] = (
            whole,
            word,
        )
        target += whole
        weight += mass
        packed += word
    nodes.state[N_NODES], nodes.state[FIRST], nodes.state[LAST] = 1, 0, 1
    nodes.state[N_FREE] = len(nodes.free) - 1
    for slot in range(len(nodes.free) - 1):
        nodes.free[slot] = slot + 1
    root = np.int64(0)
    plant_child(rules, nodes, root, root, root, len(chosen), target, weight, packed)
    nodes.whole[root, SLOT] = 0


@kernel(bare=True)
def grow_alone(group, codes, words, rules, nodes, room):
    """Span after span, as long as there is room for all children."""
    state = nodes.state
    while state[FIRST] < state[LAST]:
        if state[N_NODES] + 2 * (state[LAST] - state[FIRST]) > len(nodes.whole):
            return
        search_nodes(group, codes, words, rules, nodes, room)
        split_nodes(codes, words, rules, nodes, room)


@kernel(bare=True)
def search_span(group, codes, words, rules, nodes, room):
    search_nodes(group, codes, words, rules, nodes, room)


@kernel(bare=True)
def split_span(codes, words, rules, nodes, room):
    split_nodes(codes, words, rules, nodes, room)


@kernel(inner=True)
def search_nodes(group, codes, words, rules, nodes, room):
    """The best splits of the nodes whose turn it is, by the features of a group."""
    first, last = nodes.state[FIRST], nodes.state[LAST]
    whole = nodes.whole
    for place in range(first, last):
        node, sibling = in_turn(whole, place)
        room.best[node - first, 0] = -1
        room.best_score[node - first] = -np.inf
        if is_rest(whole[node]):
            subtract(whole, room, sibling, node)
        elif is_large(whole[node]) or is_rest(whole[sibling]):
            count(group, words, nodes, room, node)
        if is_large(whole[node]):
            search(group, words, rules, nodes, room, node)
        elif whole[node, IS_OPEN]:
            search_few(group, codes, words, rules, nodes, room, node)


@kernel(inner=True)
def in_turn(whole, place):
    """A node and its sibling; of the two, the one of fewer rows comes first."""
    if place == 0:
        return place, place
    left = place - 1 + place % 2
    is_left_large = n_rows(whole[left]) > n_rows(whole[left + 1])
    node = place if not is_left_large else 2 * left + 1 - place
    return node, 2 * left + 1 - node


@kernel(inner=True)
def is_rest(node):
    """Whether the histogram of a node is what its sibling leaves of their parent's."""
    return is_large(node) and node[INHERITS]


@kernel(inner=True)
def n_rows(node):
    return node[END] - node[START]


@kernel(inner=True)
def is_large(node):
    """Whether a node is searched by its histogram."""
    return node[IS_OPEN] and n_rows(node) > _FEW_ROWS


@kernel(inner=True)
def count(group, words, nodes, room, node):
    """The histogram of a node, in its slot."""
    start, end, slot = nodes.whole[node, START], nodes.whole[node, END], nodes.whole[node, SLOT]
    sums, weights = room.sums[slot], room.weights[slot]
    for cell in range(len(sums)):
        sums[cell] = 0
    for cell in range(len(weights)):
        weights[cell] = 0
    count_pairs(group, nodes.rows, start, end, words.pairs, sums)
    if len(weights):
        count_weights(group, nodes.rows, start, end, words.weight, weights)
    fill_omitted(group, nodes.whole[node], sums, weights)


@kernel(inner=True)
def count_pairs(group, rows, start, end, pairs, sums):
    n_dense = group.dense.shape[1]
    has_entries = len(group.entries) > 0
    one, two = np.uint64(1), np.uint64(2)
    for p in range(start, end):
        row = np.uint64(rows[p])
        target, packed = pairs[two * row], pairs[two * row + one]
        for k in range(n_dense):
            at = two * (np.uint64(group.first[k]) + np.uint64(group.dense[row, k]))
            sums[at] += target
            sums[at + one] += packed
        if has_entries:
            for q in range(group.starts[row], group.starts[row + one]):
                at = two * np.uint64(group.entries[q])
                sums[at] += target
                sums[at + one] += packed


@kernel(inner=True)
def count_weights(group, rows, start, end, weight, weights):
    n_dense = group.dense.shape[1]
    for p in range(start, end):
        row = np.uint64(rows[p])
        own = weight[row]
        for k in range(n_dense):
            weights[np.uint64(group.first[k]) + np.uint64(group.dense[row, k])] += own
        for q in range(group.starts[row], group.starts[row + np.uint64(1)]):
            weights[np.uint64(group.entries[q])] += own


@kernel(inner=True)
def fill_omitted(group, node, sums, weights):
    """The commonest bins of sparse features: what the others leave of the node."""
    for k in range(group.dense.shape[1], len(group.features)):
        at = group.omitted[k]
        target, packed, weight = node[SUM], node[PACKED], node[WEIGHT]
        for cell in range(group.first[k], group.first[k + 1]):
            target -= sums[2 * cell]
            packed -= sums[2 * cell + 1]
        sums[2 * at], sums[2 * at + 1] = target, packed
        if len(weights):
            for cell in range(group.first[k], group.first[k + 1]):
                weight -= weights[cell]
            weights[at] = weight


@kernel(inner=True)
def subtract(whole, room, small, large):
    """What is left of the parent's histogram, in its place."""
    sums, other = room.sums[whole[large, SLOT]], room.sums[whole[small, SLOT]]
    for cell in range(len(sums)):
        sums[cell] -= other[cell]
    weights, lighter = room.weights[whole[large, SLOT]], room.weights[whole[small, SLOT]]
    for cell in range(len(weights)):
        weights[cell] -= lighter[cell]


@kernel(inner=True)
def search(group, words, rules, nodes, room, node):
    own = nodes.whole[node]
    place = node - nodes.state[FIRST]
    best, best_score = room.best[place], room.best_score[place:]
    asked = asked_of(own, node)
    sums, weights = room.sums[own[SLOT]], room.weights[own[SLOT]]
    for k in range(len(group.features)):
        read_bins(group, k, asked, rules, sums, weights, best, best_score)
    if len(group.members):
        for k in range(len(group.features)):
            if group.inside[group.first[k + 1]] > group.inside[group.first[k]]:
                look_inside(group, k, asked, rules, words, nodes, sums, weights, room, best,
                            best_score)  # fmt: skip


@kernel(inner=True)
def asked_of(own, node):
    centre = np.int64(np.rint(own[SUM] / own[WEIGHT]))
    rest = own[SUM] - centre * own[WEIGHT]
    drift, slack = rest / own[WEIGHT], 4e-16 * abs(rest)
    return Asked(node, own[PACKED], own[WEIGHT], centre, rest, drift, slack)


@kernel(inner=True)
def read_bins(group, k, asked, rules, sums, weights, best, best_score):
    """The splits between the bins of a feature."""
    mask, is_weighted = rules.mask, len(weights) > 0
    left, packed_left, weight_left = np.int64(0), np.int64(0), np.int64(0)
    first, end = group.first[k], group.first[k + 1]
    pairs = sums[2 * first : 2 * end]
    enough = to_beat(best, asked)
    for at in range(end - first - 1):
        left += pairs[2 * at]
        packed_left += pairs[2 * at + 1]
        weight_left = weight_left + weights[first + at] if is_weighted else packed_left & mask
        # An empty bin is as good as the one before it, which is no improvement.
        if may_beat(left, weight_left, asked, enough) and is_better(
            left, packed_left, weight_left, asked, rules, group.features[k],
            group.last_code[first + at], best, best_score,
        ):  # fmt: skip
            enough = to_beat(best, asked)
            cell, following = first + at, first + at + 1
            while sums[2 * following + 1] == 0:
                following += 1
            is_shared = is_many(group, cell) or is_many(group, following)
            best[BESIDE] = -1 if is_shared else group.last_code[following]


@kernel(inner=True)
def is_many(group, cell):
    """Whether a bin has several codes."""
    return group.inside[cell + 1] > group.inside[cell]


@kernel(inner=True)
def apart_of(left, weight_left, asked):
    """By how much the sum of a part differs from what its weight has by the mean of the node."""
    return abs(float(left - asked.centre * weight_left) - asked.drift * float(weight_left))


@kernel(inner=True)
def to_beat(best, asked):
    """The gain of the best split so far, a unit of weight, or a little less."""
    if best[0] < 0:
        return 0.0
    wa, wb = float(best[2]), float(best[4])
    apart = max(abs(float(best[1]) - asked.drift * wa) - asked.slack, 0.0)
    return apart * apart / (wa * wb) * (1.0 - 1e-12)


@kernel(inner=True)
def may_beat(left, weight_left, asked, enough):
    """Whether a split may gain more than `enough`, a unit of weight."""
    wa, slack = float(weight_left), asked.slack
    apart = apart_of(left, weight_left, asked) + slack
    return apart * apart > enough * (wa * (float(asked.weight) - wa)) + slack * slack


@kernel(inner=True)
def is_better(left, packed_left, weight_left, asked, rules, feature, code, best, best_score):
    """Whether a split is allowed and the best so far; then it is kept."""
    samples_left = packed_left & rules.mask
    samples_right = (asked.packed & rules.mask) - samples_left
    weight_right = asked.weight - weight_left
    if (
        min(samples_left, samples_right) < rules.min_leaf
        or min(weight_left, weight_right) < rules.min_weight
    ):
        return False
    own = left - asked.centre * weight_left
    other = asked.rest - own
    a, b, wa, wb = float(own), float(other), float(weight_left), float(weight_right)
    score = (a * a * wb + b * b * wa) / (wa * wb)
    if not consider(
        SQUARED, False, own, weight_left, other, weight_right, score, feature, code, best,
        best_score,
    ):  # fmt: skip
        return False
    best[PACKED_LEFT] = packed_left
    return True


@kernel(inner=True)
def look_inside(group, k, asked, rules, words, nodes, sums, weights, room, best, best_score):
    """The splits inside of bins that may be better than the best so far; see the module."""
    mask, is_weighted = rules.mask, len(weights) > 0
    weight = float(asked.weight)
    left, packed_left, weight_left = np.int64(0), np.int64(0), np.int64(0)
    first, end = group.first[k], group.first[k + 1]
    pairs, inside = sums[2 * first : 2 * end], group.inside[first : end + 1]
    enough = to_beat(best, asked) * (1.0 - 1e-9)
    for at in range(end - first):
        own, packed = pairs[2 * at], pairs[2 * at + 1]
        more = weights[first + at] if is_weighted else packed & mask
        if inside[at + 1] > inside[at] and packed & mask > 1:
            wa, w = float(weight_left), float(more)
            wc = weight - wa - w
            before = apart_of(left, weight_left, asked) + asked.slack
            after = apart_of(left + own, weight_left + more, asked) + asked.slack
            side = max(
                before * before / (wa * (w + wc)) if wa > 0.0 else 0.0,
                after * after / ((wa + w) * wc) if wc > 0.0 else 0.0,
            )
            sides = max((wa + w) * (wc + w), 4.0 * wa * wc)
            extra = scatter_at_most(own, more, packed, rules) / sides
            if (
                2.0 * (side + extra) >= enough
                and side + extra + 2.0 * np.sqrt(side * extra) >= enough
            ):
                read_inside(group, k, first + at, left, packed_left, weight_left, asked, rules,
                            words, nodes.node_of, room, best, best_score)  # fmt: skip
                enough = to_beat(best, asked) * (1.0 - 1e-9)
        left += own
        packed_left += packed
        weight_left += more


@kernel(inner=True)
def scatter_at_most(target, weight, packed, rules):
    """By the squares that were rounded up: of squares around the mean, times the weight."""
    squares = float(packed >> rules.bits) * rules.square * (1.0 + 1e-12)
    return max(squares * float(weight) - float(target) * float(target), 0.0)


@kernel(inner=True)
def read_inside(
    group, k, cell, left, packed_left, weight_left, asked, rules, words, node_of, room, best,
    best_score,
):  # fmt: skip
    """The splits between the codes of one bin."""
    low, top = np.uint32(0x7FFFFFFF), np.uint32(31)
    code = group.last_code[cell - 1] + 1 if cell > group.first[k] else np.int64(0)
    n = np.uint64(0)
    for at in range(group.inside[cell], group.inside[cell + 1]):
        entry = group.members[at]
        row = entry & low
        room.keys[n] = (code << 32) | np.int64(row)
        code += np.int64(entry >> top)
        n += np.uint64(node_of[np.uint64(row)] == asked.node)
    read_in_order(room.keys, np.int64(n), left, packed_left, weight_left, asked, rules, words,
                  group.features[k], best, best_score)  # fmt: skip


@kernel(inner=True)
def read_in_order(
    keys, n, left, packed_left, weight_left, asked, rules, words, feature, best, best_score
):
    """The splits between the codes of n rows: keys are code << 32 | row, rising."""
    mask, is_weighted = rules.mask, len(words.weight) > 0
    enough = to_beat(best, asked)
    for p in range(n - 1):
        row = np.uint64(keys[p] & 0xFFFFFFFF)
        left += words.pairs[np.uint64(2) * row]
        packed_left += words.pairs[np.uint64(2) * row + np.uint64(1)]
        weight_left = weight_left + words.weight[row] if is_weighted else packed_left & mask
        if (
            may_beat(left, weight_left, asked, enough)
            and keys[p] >> 32 != keys[p + 1] >> 32
            and is_better(
                left, packed_left, weight_left, asked, rules, feature, keys[p] >> 32, best,
                best_score,
            )
        ):  # fmt: skip
            enough = to_beat(best, asked)
            best[BESIDE] = keys[p + 1] >> 32


@kernel(inner=True)
def search_few(group, codes, words, rules, nodes, room, node):
    """The best split of a node of few rows, which are sorted by each feature."""
    own = nodes.whole[node]
    asked = asked_of(own, node)
    place = node - nodes.state[FIRST]
    start, n = own[START], own[END] - own[START]
    keys, nothing = room.keys, np.int64(0)
    for k in range(len(group.features)):
        feature = group.features[k]
        for p in range(n):
            row = np.int64(nodes.rows[start + p])
            key = (code_of(codes, feature, row) << 32) | row
            free = p
            while free > 0 and keys[free - 1] > key:
                keys[free] = keys[free - 1]
                free -= 1
            keys[free] = key
        if keys[0] >> 32 != keys[n - 1] >> 32:
            read_in_order(keys, n, nothing, nothing, nothing, asked, rules, words, feature,
                          room.best[place], room.best_score[place:])  # fmt: skip


@kernel(bare=True)
def take_better(nodes, other, room):
    """Of each node, the better of the best splits of two groups of features goes to `room`."""
    for place in range(nodes.state[LAST] - nodes.state[FIRST]):
        own = other.best[place]
        if own[0] >= 0 and consider(
            SQUARED, False, own[1], own[2], own[3], own[4], other.best_score[place], own[0],
            own[5], room.best[place], room.best_score[place:],
        ):  # fmt: skip
            room.best[place, PACKED_LEFT] = own[PACKED_LEFT]
            room.best[place, BESIDE] = own[BESIDE]


@kernel(inner=True)
def split_nodes(codes, words, rules, nodes, room):
    """Part the rows of the nodes that were searched."""
    first, last = nodes.state[FIRST], nodes.state[LAST]
    for node in range(first, last):
        if nodes.whole[node, IS_OPEN]:
            best = room.best[node - first]
            if best[0] >= 0 and is_worth_it(words, rules, nodes, node, best):
                split(codes, rules, nodes, node, best)
            else:
                give_back(nodes, nodes.whole[node, SLOT])
    nodes.state[FIRST] = last
    nodes.state[LAST] = min(nodes.state[N_NODES], last + _SPAN)


@kernel(inner=True)
def is_worth_it(words, rules, nodes, node, best):
    """Whether a split gains more than rounding; its gain is kept."""
    own = nodes.whole[node]
    asked = asked_of(own, node)
    wa, wb = float(best[2]), float(best[4])
    apart = abs(float(best[1]) - asked.drift * wa)
    gain = apart * apart * (wa + wb) / (wa * wb)
    nodes.gain[node] = gain
    # A whole number may be wrong by a half, of each sample.
    n_left = float(best[PACKED_LEFT] & rules.mask)
    n_right = float(own[PACKED] & rules.mask) - n_left
    rounding = 0.25 * (n_left * n_left / wa + n_right * n_right / wb)
    if gain <= rounding or apart <= 2.0 * asked.slack:
        return False
    nothing = rules.nothing * (wa + wb)
    return gain > nothing or scatter_of(words, rules, nodes, node) > nothing


@kernel(inner=True)
def scatter_of(words, rules, nodes, node):
    """The sum of squares around the mean; of whole numbers too, for the sake of their order."""
    mask, is_weighted = rules.mask, len(words.weight) > 0
    own = nodes.whole[node]
    mean = own[SUM] / own[WEIGHT]
    most = scatter_at_most(own[SUM], own[WEIGHT], own[PACKED], rules) / own[WEIGHT]
    if most == 0.0:
        return 0.0
    factor = 2.0 ** float(BITS_OF_SUMS - bits_of(most))
    total = np.int64(0)
    for p in range(own[START], own[END]):
        row = np.uint64(nodes.rows[p])
        at = np.uint64(2) * row
        packed = words.pairs[at + np.uint64(1)]
        weight = float(words.weight[row] if is_weighted else packed & mask)
        apart = float(words.pairs[at]) - weight * mean
        total += np.int64(np.rint(apart * apart / weight * factor))
    return float(total) / factor


@kernel(inner=True)
def split(codes, rules, nodes, node, best):
    """Part the rows of a node and make its children."""
    whole, state = nodes.whole, nodes.state
    feature, left = best[0], state[N_NODES]
    place = codes.place[feature]
    if codes.width[feature] == 0:
        middle, code, next_code = part(codes.narrow[place], best, nodes, node, left)
    elif codes.width[feature] == 1:
        middle, code, next_code = part(codes.medium[place], best, nodes, node, left)
    else:
        middle, code, next_code = part(codes.wide[place], best, nodes, node, left)
    own = whole[node]
    own[LEFT], own[FEATURE], own[CODE], own[NEXT_CODE] = left, feature, code, next_code
    state[N_NODES] += 2
    target = best[1] + asked_of(own, node).centre * best[2]
    depth = own[DEPTH] + 1
    plant_child(rules, nodes, depth, left, own[START], middle, target, best[2], best[PACKED_LEFT])
    plant_child(rules, nodes, depth, left + 1, middle, own[END], own[SUM] - target, best[4],
                own[PACKED] - best[PACKED_LEFT])  # fmt: skip
    is_left_large = 2 * (middle - own[START]) > own[END] - own[START]
    large = left if is_left_large else left + 1
    small = 2 * left + 1 - large
    if is_large(whole[large]):
        whole[large, SLOT] = own[SLOT]
        whole[large, INHERITS] = own[SLOT] < len(nodes.free)
    else:
        give_back(nodes, own[SLOT])
    if is_large(whole[small]) and state[N_FREE] > 0:
        state[N_FREE] -= 1
        whole[small, SLOT] = nodes.free[state[N_FREE]]


@kernel(inner=True)
def plant_child(rules, nodes, depth, node, start, end, target, weight, packed):
    """A node without children, and without a slot that is kept."""
    own = nodes.whole[node]
    own[START], own[END], own[DEPTH] = start, end, depth
    own[SUM], own[WEIGHT], own[PACKED] = target, weight, packed
    own[LEFT] = own[FEATURE] = own[CODE] = own[NEXT_CODE] = -1
    own[IS_OPEN] = is_open(own, rules)
    own[SLOT], own[INHERITS] = len(nodes.free), 0


@kernel(inner=True)
def is_open(node, rules):
    samples = node[PACKED] & rules.mask
    return (
        node[DEPTH] < rules.max_depth
        and samples >= max(rules.min_split, 2 * rules.min_leaf)
        and node[WEIGHT] >= 2 * rules.min_weight
    )


@kernel(inner=True)
def give_back(nodes, slot):
    if slot < len(nodes.free):
        nodes.free[nodes.state[N_FREE]] = slot
        nodes.state[N_FREE] += 1


@kernel(inner=True)
def part(column, best, nodes, node, left):
    """The rows that go left first; where the others begin, and the codes beside the split."""
    rows, spare, one = nodes.rows, nodes.spare, np.uint64(1)
    start, end, limit = nodes.whole[node, START], nodes.whole[node, END], best[5]
    at_left, at_right = np.uint64(start), np.uint64(0)
    for p in range(start, end):
        row = rows[p]
        is_right = np.uint64(np.int64(column[np.uint64(row)]) > limit)
        rows[at_left] = row
        spare[at_right] = row
        at_left += one - is_right
        at_right += is_right
        nodes.node_of[np.uint64(row)] = left + np.int64(is_right)
    middle = np.int64(at_left)
    for p in range(end - middle):
        rows[middle + p] = spare[p]
    if best[BESIDE] >= 0:
        return middle, limit, best[BESIDE]
    code, next_code = np.int64(-1), np.int64(1) << 32
    for p in range(start, middle):
        code = max(code, np.int64(column[np.uint64(rows[p])]))
    for p in range(middle, end):
        next_code = min(next_code, np.int64(column[np.uint64(rows[p])]))
    return middle, code, next_code


@kernel(bare=True)
def finish(cuts, words, rules, nodes, threshold, error):
    """Thresholds, and sums of squares around the means."""
    whole = nodes.whole
    for node in range(nodes.state[N_NODES] - 1, -1, -1):
        left = whole[node, LEFT]
        if left < 0:
            nodes.gain[node] = 0.0
            threshold[node] = np.nan
            error[node] = scatter_of(words, rules, nodes, node)
            continue
        first = cuts.first[whole[node, FEATURE]]
        below = cuts.lows[first + whole[node, CODE]]
        above = cuts.lows[first + whole[node, NEXT_CODE]]
        middle = 0.5 * below + 0.5 * above
        threshold[node] = middle if below <= middle < above else below
        error[node] = error[left] + error[left + 1] + nodes.gain[node]


@kernel(bare=True)
def walk_others(codes, cuts, nodes, threshold, limit):
    """Rows that take no part go where their values lead; limit: the highest code that goes left."""
    whole = nodes.whole
    for node in range(nodes.state[N_NODES]):
        if whole[node, LEFT] >= 0:
            first = cuts.first[whole[node, FEATURE]]
            low, high = whole[node, CODE], whole[node, NEXT_CODE]
            while high - low > 1:
                middle = (low + high) // 2
                if cuts.lows[first + middle] <= threshold[node]:
                    low = middle
                else:
                    high = middle
            limit[node] = low
    for i in range(len(nodes.node_of)):
        if nodes.node_of[i] < 0:
            node = np.int64(0)
            while whole[node, LEFT] >= 0:
                is_right = code_of(codes, whole[node, FEATURE], i) > limit[node]
                node = whole[node, LEFT] + np.int64(is_right)
            nodes.node_of[i] = node
