"""Trees with exact splits for classic gradient boosting, grown on rank codes level by level.

Sums are integers, so their order does not matter. The histogram of the smaller of two children is
counted; that of the other is the difference to their parent. `split_search` searches a node,
`growth` splits nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrove._runtime import fields_of, pool_words, records, run_tiles, words_of
from margrove.ensemble.gradient.exact.growth import (
    find_limits,
    finish,
    grow_alone,
    make_root,
    search_span,
    split_span,
    start_tree,
    take_better,
    walk_others,
)
from margrove.ensemble.gradient.exact.nodes import (
    FEW_ROWS,
    NODE,
    SPAN,
    SPLIT,
    STATE,
    TILE_ROWS,
    ExactTree,
    Rules,
    Scale,
    Words,
    Workspace,
)
from margrove.ensemble.gradient.exact.tables import ENTRIES_AT_ONCE, FeatureGroup, read_groups
from margrove.grove.serve import FEATURE_AT, MISSING_AT, PackedTree, cuts_of
from margrove.grove.table import BITS_OF_SUMS, BinnedDataset, whole_weights

__all__ = ["ExactTrees", "GrownTree"]

_BYTES_OF_HISTOGRAMS = 1 << 27  # limit for histograms that are kept for children
_EPSILON = float(np.finfo(np.float64).eps)
_LARGEST_EXPONENT = 1000  # of a power of two in float64


@dataclass(frozen=True)
class GrownTree:
    """A tree without leaf values: N nodes by levels, siblings have consecutive numbers.

    leaf_of_rows     int32 (n,)  the leaf of every row
    left             int64 (N,)  the left child; -1 for a leaf
    features         int64 (N,)
    codes            int64 (N,)  the highest code in the node that goes left
    next_codes       int64 (N,)  the lowest code that goes right
    thresholds       float64 (N,)  the midpoint of their values
    n_node_samples   int64 (N,)
    weights          float64 (N,)
    impurity         float64 (N,)  the variance of the targets
    decrease         float64 (N,)  decrease of weight times impurity
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
        """The packed tree with leaf values, float64 (N,); missing values go to the larger child."""
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
    """Grows regression trees on one table of rank codes; several threads may call `grow`.

    min_samples_split and min_samples_leaf are numbers of samples, min_weight_leaf is a weight.
    of_classes: gradients are differences of probabilities, so their absolute size is meaningful.
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
        of_classes: bool = False,
    ) -> None:
        if data.has_missing.any() or data.categorical.any():
            raise ValueError("Exact gradient trees are for numbers without missing values.")
        self._limits = (max_depth, min_samples_split, min_samples_leaf, min_weight_leaf)
        self._of_classes = of_classes
        self._codes, self._cuts = data.codes, cuts_of(data)
        self._n_rows, self._n_threads = data.n_rows, n_threads
        self._all_rows = np.arange(data.n_rows, dtype=np.int32)
        self._groups = read_groups(data, n_threads)
        entries = sum(group.dense.size + len(group.entries) for group in self._groups)
        self._is_small = len(self._groups) == 1 and entries <= ENTRIES_AT_ONCE
        cells = sum(len(group.last_code) for group in self._groups)
        affordable = _BYTES_OF_HISTOGRAMS // (24 * max(cells, 1))
        self._n_slots = max(1, min(affordable, 2 ** min(max_depth - 1, 20)))
        self._buffers: list[_TreeBuffers] = []
        self._weights = _Weights(np.empty(0), np.empty(0, np.int64), 1.0, True, True)

    def grow(
        self,
        gradient: np.ndarray,
        weight: np.ndarray | None = None,
        samples: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> GrownTree:
        """Grow a tree for the negative gradients, float64 (n,).

        weight float64 (n,); samples int64 (n,): the number of samples that each row represents;
        rows int32, ascending: the rows that the tree is grown on.
        """
        chosen = self._all_rows if rows is None else rows
        weights = self._whole_weights(weight, samples)
        if weights is not None and not weights.is_positive:
            chosen = chosen[weights.units[chosen] > 0]
        elif weights is None and samples is not None:
            chosen = chosen[samples[chosen] > 0]
        if not len(chosen):
            raise ValueError("There are no rows of positive weight to grow the tree on.")
        try:
            buffers = self._buffers.pop()
        except IndexError:  # other threads use all of them
            buffers = _TreeBuffers(self._n_rows, self._n_slots, self._groups)
        tree = self._grow(buffers, np.ascontiguousarray(gradient), weights, samples, chosen)
        self._buffers.append(buffers)
        return tree

    def _whole_weights(
        self, weight: np.ndarray | None, samples: np.ndarray | None
    ) -> _Weights | None:
        """The weights of the rows as integers; usually they are those of the round before."""
        if weight is None:
            return None
        product = weight if samples is None else weight * samples
        known = self._weights
        if not np.array_equal(product, known.given):
            units = np.zeros(len(product), np.int64)
            positive = product > 0.0
            units[positive], unit, is_counted = whole_weights(product[positive])
            known = _Weights(product.copy(), units, unit, is_counted, bool(positive.all()))
            self._weights = known
        return known

    def _grow(
        self,
        buffers: _TreeBuffers,
        gradient: np.ndarray,
        weights: _Weights | None,
        samples: np.ndarray | None,
        chosen: np.ndarray,
    ) -> GrownTree:
        empty = np.empty(0, np.int64)
        has_all_rows = len(chosen) == self._n_rows
        n_samples = len(chosen) if samples is None else int(samples[chosen].sum())
        if n_samples >= 2**31:
            raise ValueError(f"A tree has at most 2^31 - 1 samples. Got {n_samples}.")
        largest = float(np.abs(gradient if has_all_rows else gradient[chosen]).max())
        if not np.isfinite(largest):
            raise ValueError("Gradients must be finite.")
        if weights is None:
            weights = _Weights(empty, empty, 1.0, is_counted=True, is_positive=True)
            total = n_samples
        else:
            total = int(weights.units[chosen].sum())
        exponent, scale, rules = self._scales(largest, n_samples, total, weights.unit)
        words, tree = Words(buffers.pairs, weights.units), buffers.tree
        if not has_all_rows:
            tree.node_of.fill(-1)
        make_root(-(-len(chosen) // TILE_ROWS), self._n_threads, gradient,
                  empty if samples is None else samples, weights.is_counted, scale, rules, chosen,
                  words, tree)  # fmt: skip
        if len(chosen) > TILE_ROWS:  # else a single tile has done it
            start_tree(len(chosen), rules, tree)
        self._split_all(buffers, words, rules)
        return self._finished(buffers, words, rules, exponent, weights.unit)

    def _scales(
        self, largest: float, n_samples: int, total: int, unit: float
    ) -> tuple[int, Scale, Rules]:
        """The exponent of the power of two that targets are multiplied by, the factors, and the
        rules."""
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
            # the limit of scikit-learn; proportional to the targets if all are below one
            _EPSILON * (factor if self._of_classes else min(span, factor)) ** 2,
        )
        return exponent, Scale(factor, rest, 1.0 / span, square), rules

    def _split_all(self, buffers: _TreeBuffers, words: Words, rules: Rules) -> None:
        groups, codes, pool = self._groups, self._codes, pool_words(self._n_threads)
        spaces = buffers.spaces_for(len(words.weight) > 0)
        while buffers.is_growing:
            tree = buffers.tree_with_capacity()
            if self._is_small:
                grow_alone(pool, groups[0], codes, words, rules, tree, spaces[0])
                continue

            def search(k: int, tree: ExactTree = tree) -> None:
                search_span(groups[k], codes, words, rules, tree, spaces[k])

            run_tiles(search, len(groups), self._n_threads)
            for other in spaces[1:]:
                take_better(tree, other, spaces[0])
            split_span(pool, self._n_threads, codes, words, rules, tree, spaces[0])

    def _finished(
        self, buffers: _TreeBuffers, words: Words, rules: Rules, exponent: int, unit: float
    ) -> GrownTree:
        tree = buffers.tree
        n = int(buffers.state["n_nodes"])
        threshold, error = np.empty(n), np.empty(n)
        finish(pool_words(self._n_threads), self._n_threads, self._cuts, words, rules, tree,
               threshold, error)  # fmt: skip
        nodes = fields_of(tree.nodes)[:n]
        if nodes["end"][0] < self._n_rows:
            limit = np.empty(n, np.int64)
            find_limits(self._cuts, tree, threshold, limit)
            n_tiles = -(-self._n_rows // TILE_ROWS)
            walk_others(n_tiles, self._n_threads, self._codes, tree, limit)
        weight = nodes["weight"].astype(np.float64)
        return GrownTree(
            tree.node_of.copy(),
            nodes["left"].copy(),
            nodes["feature"].copy(),
            nodes["code"].copy(),
            nodes["next_code"].copy(),
            threshold,
            nodes["packed"] & rules.mask,
            weight * unit,
            _times_power(error / weight, -2 * exponent),
            _times_power(nodes["gain"] * unit, -2 * exponent),
        )


class _Weights(NamedTuple):
    """The given weights, the same in integer units, the size of a unit, whether they are exact, and
    whether all are positive."""

    given: np.ndarray
    units: np.ndarray
    unit: float
    is_counted: bool
    is_positive: bool


def _times_power(amounts: np.ndarray, exponent: int) -> np.ndarray:
    """amounts * 2^exponent, clipped at the largest float64."""
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(np.ldexp(amounts, exponent), np.finfo(np.float64).max)


class _TreeBuffers:
    """The memory for growing one tree."""

    def __init__(self, n_rows: int, n_slots: int, groups: list[FeatureGroup]) -> None:
        self._groups, self._n_slots = groups, n_slots
        self._spaces: dict[bool, list[Workspace]] = {}
        self.pairs = np.empty(2 * n_rows, np.int64)
        self.tree = ExactTree(
            nodes=records(64, NODE),
            rows=np.empty(n_rows, np.int32),
            spare=np.empty(n_rows, np.int32),
            node_of=np.empty(n_rows, np.int32),
            free=np.empty(n_slots, np.int64),
            state=records(1, STATE),
            sums=np.empty((-(-n_rows // TILE_ROWS), 8), np.int64),
        )

    @property
    def state(self) -> np.void:
        """The counters of the tree, by name."""
        counters: np.void = fields_of(self.tree.state)[0]
        return counters

    @property
    def is_growing(self) -> bool:
        state = self.state
        return bool(state["first"] < state["last"])

    def tree_with_capacity(self) -> ExactTree:
        """The tree, after enlarging its arrays for the children of the next nodes if necessary."""
        nodes, state = self.tree.nodes, self.state
        needed = int(state["n_nodes"] + 2 * (state["last"] - state["first"]))
        if needed > len(nodes):
            larger = records(2 * needed, NODE)
            words_of(larger)[: len(nodes)] = words_of(nodes)
            self.tree = self.tree._replace(nodes=larger)
        return self.tree

    def spaces_for(self, is_weighted: bool) -> list[Workspace]:
        if is_weighted not in self._spaces:
            self._spaces[is_weighted] = [
                _new_workspace(self._n_slots, group, is_weighted) for group in self._groups
            ]
        return self._spaces[is_weighted]


def _new_workspace(n_slots: int, group: FeatureGroup, is_weighted: bool) -> Workspace:
    cells = len(group.last_code)
    fullest = int(np.diff(group.inside).max(initial=0))
    return Workspace(
        sums=np.empty((n_slots + 1, 2 * cells), np.int64),
        weights=np.empty((n_slots + 1, cells if is_weighted else 0), np.int64),
        keys=np.empty(max(fullest + 1, FEW_ROWS), np.int64),
        best=records(SPAN, SPLIT),
    )
