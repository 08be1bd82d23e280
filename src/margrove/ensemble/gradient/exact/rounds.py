"""The rounds of classic gradient boosting: a process for `slices.drive`.

A round grows a regression tree for the negative gradients of each score. Then it gives the leaves
the values that minimise the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from margrove._data import read_only
from margrove._runtime import MisfitError, numbers_of, one_of, region, require_memory, run_tiles
from margrove.ensemble.gradient.early_stopping import Monitor
from margrove.ensemble.gradient.hist import LARGEST_VALUE
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.ensemble.gradient.round_states import restore_rounds, state_of_rounds
from margrove.ensemble.gradient.training_data import TrainingRows
from margrove.grove.serve import Kind, PackedTree, TreeArrays, TreeForm, packed_of

__all__ = ["ExactRounds", "Grower", "RefittedTree"]

_LEAST_HESSIAN = 1e-150
_BITS_OF_SUMS = 61
_ROWS_OF_A_TILE = 1 << 15
_MANY_ROWS = 1 << 17  # of which all threads grow one tree after the other


class GrownStructure(Protocol):
    """A tree without leaf values, with the leaf of every row, int32 (n,)."""

    @property
    def leaf_of_rows(self) -> np.ndarray: ...

    @property
    def n_nodes(self) -> int: ...

    def packed(self, values: np.ndarray) -> PackedTree: ...


class Grower(Protocol):
    """A function that grows a tree for negative gradients; `number` is the number of the tree."""

    def __call__(
        self, gradient: np.ndarray, rows: np.ndarray | None, number: int
    ) -> GrownStructure: ...


@dataclass(frozen=True)
class RefittedTree:
    """A fitted decision tree whose leaves get other values."""

    arrays: TreeArrays
    leaf_of_rows: np.ndarray
    kind: Kind

    @property
    def n_nodes(self) -> int:
        return len(self.arrays)

    def packed(self, values: np.ndarray) -> PackedTree:
        return packed_of(replace(self.arrays, value=values[:, None]), self.kind)


class ExactRounds:
    """The process of the rounds.

    `raw` float64 (n_scores, n) are the raw scores at the start, to which the rounds add. `draw(t)`
    gives the rows that the trees of round t are grown on, ascending, or None for all.
    """

    unit = "round"
    limit = "n_estimators"

    def __init__(
        self,
        grower: Grower,
        rows: TrainingRows,
        raw: np.ndarray,
        loss: GradientLoss,
        learning_rate: float,
        n_rounds: int,
        *,
        first_round: int = 0,
        draw: Callable[[int], np.ndarray | None] = lambda number: None,
        monitor: Monitor | None = None,
        losses: Sequence[float] = (),
        form: TreeForm | None = None,
        n_threads: int = 1,
    ) -> None:
        self.total: int | None = n_rounds
        self.monitor, self.loss = monitor, loss
        self._grower, self._rows, self.raw, self._rate = grower, rows, raw, learning_rate
        self._weight = rows.total_weight
        self.first, self._draw, self._form = first_round, draw, form
        self.after_round: Callable[[int], bool] = lambda number: False
        self._n_threads = n_threads
        require_memory(
            24.0 * raw.size, "The gradients of all classes", "Use fewer classes, or fewer rows."
        )
        self._gradient, self._hessian = np.empty_like(raw), np.empty_like(raw)
        if monitor is not None and not monitor.scores:
            monitor.add([], None, raw, self._loss_of_round())
        self.trees: list[list[PackedTree]] = []
        # before the first round, and after each on the rows that its trees were grown on
        self.losses = list(losses) or [self._loss_of(self._loss_of_round(), None)]
        self.oob_losses: list[tuple[float, float]] = []  # on the other rows, before and after
        self.was_stopped = False

    @property
    def rounds(self) -> int:
        return len(self.trees)

    @property
    def finished(self) -> bool:
        return self.rounds >= (self.total or 0) or self.was_stopped or self.stopped_early

    @property
    def stopped_early(self) -> bool:
        return self.rounds > 0 and self.monitor is not None and self.monitor.says_stop

    def figures(self) -> dict[str, float]:
        return {"loss": self.losses[-1]}

    def all_losses(self) -> np.ndarray:
        """The losses before the first round and after each complete round."""
        return np.array(self.losses[: self.first + self.rounds + 1])

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Run one round."""
        number = self.first + self.rounds
        n, k = len(self._rows.y), len(self.raw)
        drawn = self._draw(number)
        loss = self._loss_of_round()
        self._derive(loss)
        others = None if drawn is None else np.setdiff1d(np.arange(n), drawn, assume_unique=True)
        before = None if others is None else self._loss_of(loss, others)
        raw = self.raw.copy()
        grown: list[Any] = [None] * k

        def grow(score: int) -> None:
            tree = self._grower(self._gradient[score], drawn, number * k + score)
            values = self._values(tree, loss, score, drawn)
            if n <= _ROWS_OF_A_TILE:
                raw[score] += values[tree.leaf_of_rows]
            else:
                _add_values(-(-n // _ROWS_OF_A_TILE), self._n_threads, tree.leaf_of_rows, values,
                            raw[score])  # fmt: skip
            grown[score] = tree.packed(values)

        run_tiles(grow, k, 1 if k < self._n_threads and n >= _MANY_ROWS else self._n_threads)
        self.raw = raw
        self.losses.append(self._loss_of(loss, drawn))
        if others is not None and before is not None:
            after = self._loss_of(loss, others)
            self.oob_losses.append((before, after) if len(others) else (np.nan, np.nan))
        if self.monitor is not None:
            self.monitor.add(grown, self.losses[-1], raw, loss)
        self.trees.append(grown)
        self.was_stopped = self.after_round(number)
        return float(n * k)

    def state(self) -> dict[str, Any]:
        return state_of_rounds(self, self.raw) | {
            "oob_losses": [[float(loss) for loss in pair] for pair in self.oob_losses],
            "was_stopped": bool(self.was_stopped),
        }

    def restore(self, state: dict[str, Any]) -> None:
        pairs = [numbers_of(pair, "oob_losses") for pair in state["oob_losses"]]
        if any(len(pair) != 2 for pair in pairs):
            raise MisfitError("oob_losses are not pairs")
        was_stopped = one_of(state["was_stopped"], [True, False], "was_stopped")
        restore_rounds(self, state, self._form)
        self.oob_losses = [(before, after) for before, after in pairs]
        self.was_stopped = was_stopped

    def _loss_of_round(self) -> GradientLoss:
        return self.loss.for_round(self._rows.y, self.raw, self._weight)

    def _derive(self, loss: GradientLoss) -> None:
        """Write gradients without weights, because trees multiply by the weights."""
        loss.derive(
            self._rows.y, self.raw, None, self._gradient, self._hessian, n_threads=self._n_threads
        )

    def _loss_of(self, loss: GradientLoss, rows: np.ndarray | None) -> float:
        if rows is None:
            return loss.value(self._rows.y, self.raw, self._weight, n_threads=self._n_threads)
        weight = None if self._weight is None else self._weight[rows]
        raw = np.ascontiguousarray(self.raw[:, rows])
        return loss.value(self._rows.y[rows], raw, weight, n_threads=self._n_threads)

    def _values(
        self, tree: GrownStructure, loss: GradientLoss, score: int, drawn: np.ndarray | None
    ) -> np.ndarray:
        """The value of each node, float64 (n_nodes,); 0 for nodes that are not leaves."""
        rows = np.arange(len(self._rows.y), dtype=np.int32) if drawn is None else drawn
        if loss.differs_from_mean:
            best = self._best_values(tree, loss, score, rows)
        else:
            best = self._newton_steps(tree, score, rows)
            if len(self.raw) > 1:
                best *= (len(self.raw) - 1) / len(self.raw)
        with np.errstate(over="ignore"):
            values: np.ndarray = np.clip(self._rate * best, -LARGEST_VALUE, LARGEST_VALUE)
        return values

    def _best_values(
        self, tree: GrownStructure, loss: GradientLoss, score: int, rows: np.ndarray
    ) -> np.ndarray:
        order = rows[np.argsort(tree.leaf_of_rows[rows], kind="stable")]
        leaves, starts = np.unique(tree.leaf_of_rows[order], return_index=True)
        values = np.zeros(tree.n_nodes)
        residual = self._rows.y - self.raw[score]
        values[leaves] = loss.leaf_values(
            residual, self._weight, order, np.append(starts, len(order))
        )
        return values

    def _newton_steps(self, tree: GrownStructure, score: int, rows: np.ndarray) -> np.ndarray:
        gradient, hessian = self._gradient[score], self._hessian[score]
        weight = np.ones(0) if self._rows.weight is None else self._rows.weight
        copies = np.ones(0, np.int64) if self._rows.copies is None else self._rows.copies
        samples = len(rows) if self._rows.copies is None else int(copies.sum())
        scales = np.array(
            [_power_for(derivative, weight, _BITS_OF_SUMS - samples.bit_length())
             for derivative in (gradient, hessian)]
        )  # fmt: skip
        size = max(_ROWS_OF_A_TILE, 8 * tree.n_nodes)
        n_tiles = -(-len(rows) // size)
        sums = np.zeros((n_tiles, tree.n_nodes, 2), np.int64)
        _add_up(n_tiles, self._n_threads, size, tree.leaf_of_rows, rows, gradient, hessian,
                read_only(weight), read_only(copies), scales, sums)  # fmt: skip
        total = sums[0] if n_tiles == 1 else sums.sum(axis=0)
        g, h = (total / scales).T
        steps: np.ndarray = np.where(h > _LEAST_HESSIAN, -g / np.maximum(h, _LEAST_HESSIAN), 0.0)
        return steps


def _power_for(values: np.ndarray, weight: np.ndarray, bits: int) -> float:
    """The largest power of two whose product with values and weights has at most `bits` bits."""
    heaviest = float(weight.max()) if len(weight) else 1.0
    largest = float(np.abs(values).max(initial=0.0)) * heaviest
    if largest == 0.0:
        return 1.0
    return float(2.0 ** min(bits - int(np.frexp(largest)[1]), 1000))


@region(bare=True)
def _add_values(tile, leaf_of_rows, values, raw):
    """Add the values of the leaves to the scores of a tile of rows."""
    begin = tile * _ROWS_OF_A_TILE
    for i in range(begin, min(begin + _ROWS_OF_A_TILE, len(raw))):
        raw[i] += values[leaf_of_rows[i]]


@region(bare=True)
def _add_up(tile, size, leaf_of_rows, rows, gradient, hessian, weight, copies, scales, sums):
    """Sum gradients and hessians of each leaf as integers, so the order does not matter."""
    for p in range(tile * size, min((tile + 1) * size, len(rows))):
        row = rows[p]
        row_weight = weight[row] if len(weight) else 1.0
        times = copies[row] if len(copies) else np.int64(1)
        leaf = leaf_of_rows[row]
        sums[tile, leaf, 0] += times * np.int64(np.rint(gradient[row] * row_weight * scales[0]))
        sums[tile, leaf, 1] += times * np.int64(np.rint(hessian[row] * row_weight * scales[1]))
