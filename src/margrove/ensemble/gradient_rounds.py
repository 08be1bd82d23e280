"""Gradient boosting, round by round: a process for `_slices.drive`.

A round takes the gradients of the loss at the scores so far, grows a tree for each score, and adds
what the leaves say to the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._threads import run_tiles
from margrove.ensemble import gradient_trees as trees
from margrove.ensemble.gradient_losses import GradientLoss
from margrove.ensemble.gradient_tables import GradientTable, read_gradient_table
from margrove.grove.binning import BinnedDataset
from margrove.grove.packed import PackedTree, cuts_of

__all__ = ["GradientRounds", "GradientSettings"]

_PACKED_BITS = 11
_WIDE_BITS = 40
_BITS_OF_SUMS = 61
_LOPSIDED = 64.0  # how much larger than the mean the largest gradient may be in a packed word
_CELLS_OF_A_CORE = 1 << 20  # from which on several cores share a tree


@dataclass(frozen=True)
class GradientSettings:
    """How trees are grown; the names are scikit-learn's."""

    learning_rate: float = 0.1
    max_leaf_nodes: int = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    min_hessian: float = 1e-3


@dataclass
class _Bench:
    """Room for one tree at a time."""

    leaves: trees.Leaves
    rooms: list[trees.Room]


class GradientRounds:
    """The rounds of boosting on one table of codes.

    y float64 (n,), weight float64 (n,) or None.
    """

    unit = "round"

    def __init__(
        self,
        data: BinnedDataset,
        n_categories: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None,
        loss: GradientLoss,
        settings: GradientSettings,
        n_rounds: int,
        *,
        n_threads: int = 1,
    ) -> None:
        self.total: int | None = n_rounds
        n, k = len(y), loss.n_scores
        self._data, self._n_categories, self._cuts = data, n_categories, cuts_of(data)
        self._y, self._weight, self._loss, self._settings = y, weight, loss, settings
        self._n_threads = n_threads
        self.start = loss.start(y, weight)
        self.raw = np.repeat(self.start[:, None], n, axis=1)
        self._gradient, self._hessian = np.empty((k, n)), np.empty((k, n))
        self._everyone = np.arange(n, dtype=np.int32)
        shares_tree = k == 1 and n_threads > 1 and n * data.n_features >= _CELLS_OF_A_CORE
        self._table: GradientTable = read_gradient_table(data, n_threads if shares_tree else 1)
        self._benches = [self._new_bench() for _ in range(min(n_threads, k))]
        self.trees: list[list[PackedTree]] = []
        self.losses: list[float] = [loss.value(y, self.raw, weight)]

    def _new_bench(self) -> _Bench:
        most = self._settings.max_leaf_nodes
        rooms = [trees.new_room(group.size, most) for group in self._table.groups]
        return _Bench(trees.new_leaves(self._table.n_rows, most), rooms)

    @property
    def rounds(self) -> int:
        return len(self.trees)

    @property
    def finished(self) -> bool:
        return self.rounds >= (self.total or 0)

    def figures(self) -> dict[str, float]:
        return {"loss": self.losses[-1]}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """One round."""
        loss, n, k = self._loss, len(self._y), self._loss.n_scores
        of_round = loss.for_round(self._y, self.raw, self._weight)
        of_round.gradients(self._y, self.raw, self._weight, self._gradient, self._hessian, 0, n)
        if loss.differs_from_mean:  # trees part the rows, leaves are renewed below
            self._hessian[:] = 1.0 if self._weight is None else self._weight
        raw = self.raw.copy()
        grown: list[Any] = [None] * k
        free = list(self._benches)

        def grow(score: int) -> None:
            bench = free.pop()
            grown[score] = self._tree(bench, of_round, score, raw[score])
            free.append(bench)

        run_tiles(grow, k, len(self._benches))
        self.raw, self.trees = raw, [*self.trees, grown]
        self.losses = [*self.losses, of_round.value(self._y, raw, self._weight)]
        return float(n * self._data.n_features * k)

    def _tree(self, bench: _Bench, loss: GradientLoss, score: int, raw: np.ndarray) -> PackedTree:
        """Grow a tree, and add what it says to the scores `raw`."""
        gradient, hessian = self._gradient[score], self._hessian[score]
        words, rules = self._words(gradient, hessian)
        leaves, settings = bench.leaves, self._settings
        trees.plant(leaves, self._everyone, words, rules.wide)
        groups, columns, n_codes = self._table.groups, self._table.columns, self._data.n_codes
        if len(groups) == 1:
            trees.grow(groups[0], columns, n_codes, words, rules, leaves, bench.rooms[0])
        else:
            trees.grow_together(
                groups, columns, n_codes, words, rules, leaves, bench.rooms, self._n_threads
            )
        g_scale, h_scale = (
            _power_for(own, _BITS_OF_SUMS - len(own).bit_length()) for own in (gradient, hessian)
        )
        trees.write_values(leaves, gradient, hessian, g_scale, h_scale,
                           settings.l2_regularization, settings.learning_rate)  # fmt: skip
        if loss.differs_from_mean:
            self._renew(leaves, loss, raw)
        trees.add_values(leaves, raw)
        return trees.packed(leaves, self._cuts, self._n_categories)

    def _words(
        self, gradient: np.ndarray, hessian: np.ndarray
    ) -> tuple[trees.Words, trees.GrowthRules]:
        """Gradients and hessians as whole numbers, and what these are worth."""
        n, settings, nothing = len(gradient), self._settings, np.empty(0, np.int64)
        sizes = np.abs(gradient)
        is_wide = bool(sizes.max(initial=0.0) > _LOPSIDED * sizes.mean())
        bits = min(_WIDE_BITS, _BITS_OF_SUMS - n.bit_length()) if is_wide else _PACKED_BITS
        g_scale, h_scale = _power_for(gradient, bits), _power_for(hessian, bits)
        if is_wide:
            whole = [
                np.rint(own * scale).astype(np.int64)
                for own, scale in ((gradient, g_scale), (hessian, h_scale))
            ]
            words = trees.Words(nothing, *whole)
        else:
            words = trees.Words(np.empty(n, np.int64), nothing, nothing)
            trees.pack_words(gradient, hessian, g_scale, h_scale, 0, n, words.packed)
        rules = trees.GrowthRules(
            settings.max_leaf_nodes,
            2**31 if settings.max_depth is None else settings.max_depth,
            settings.min_samples_leaf,
            settings.min_hessian,
            settings.l2_regularization,
            1.0 / g_scale,
            1.0 / h_scale,
            is_wide,
        )
        return words, rules

    def _renew(self, leaves: trees.Leaves, loss: GradientLoss, raw: np.ndarray) -> None:
        """Leaves say what fits the residuals of their rows best."""
        for node in range(int(leaves.state[trees.N_NODES])):
            own = leaves.whole[node]
            if own[trees.LEFT] < 0:
                rows = np.sort(leaves.rows[own[trees.START] : own[trees.END]])
                weight = None if self._weight is None else self._weight[rows]
                best = loss.leaf_value(self._y[rows] - raw[rows], weight)
                leaves.real[node, trees.VALUE] = self._settings.learning_rate * best


def _power_for(values: np.ndarray, bits: int) -> float:
    """The largest power of two that keeps products with the values within so many bits."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    return float(2.0 ** min(bits - int(np.frexp(largest)[1]), 1000))
