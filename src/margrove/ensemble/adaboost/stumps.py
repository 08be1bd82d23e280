"""Boosting of stumps: all rounds in one compiled loop.

The logarithms of the weights are exact. The kernels sum whole numbers,

    weight_i = count_i max(1, rint(exp(log_i - shift) scale)).

Sums of whole numbers are exact in any order, so histograms of the classes over the bins can be
updated by differences in every round without accumulating errors. Only the ratios of the weights
matter: if most rows were misclassified, the weights of the others are reduced instead. When the
weights have become too large or too small, `shift` and `scale` are computed again.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import run_tiles
from margrove.ensemble.adaboost.stump_kernels import (
    CHANCE,
    RUNNING,
    Rows,
    Search,
    Stumps,
    StumpSettings,
    fill_histogram,
    finish_round,
    reset_weights,
    run_rounds,
    search_group,
    take_better,
    update_histogram,
)
from margrove.ensemble.adaboost.stump_tables import StumpTable
from margrove.grove import CRITERIA

__all__ = ["StumpBooster"]


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

    labels, counts, logs of the first weights, and samples are arrays (n,), see `Rows`. `bonus` is
    log(K - 1) for SAMME, 0 for AdaBoost.M1.
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
        self._settings = StumpSettings(CRITERIA[criterion].code, bonus, chance, learning_rate, bits)
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
        self._scales = np.zeros(3)  # shift and scale of whole weights; sum of the stumps' weights
        self._n_changed = 0
        self.stumps = new_stumps(16, n_classes)
        self.rounds = 0
        self.outcome = RUNNING
        self._start_weights()

    @property
    def cost_of_round(self) -> float:
        """A rough number of elementary steps."""
        groups = self._table.groups
        cells = sum(len(group.bins) / 4 + group.orders.size for group in groups)
        return cells + sum(len(search.histogram) for search in self._searches) + self._table.n_rows

    def _start_weights(self) -> None:
        reset_weights(self._rows, self._scales, self._settings.bits)
        for group, search in zip(self._table.groups, self._searches, strict=True):
            fill_histogram(group, self._rows, self._settings.bits, search)

    def advance(self, n_rounds: int, *, replayed: bool = False) -> None:
        """Run rounds until boosting stops; with `replayed`, the stumps are already known."""
        last = self.rounds + n_rounds
        if len(self.stumps.feature) < last:
            larger = new_stumps(max(last, 2 * self.rounds), self.stumps.shares.shape[2])
            for old, new in zip(self.stumps, larger, strict=True):
                new[: self.rounds] = old[: self.rounds]
            self.stumps = larger
        columns, settings, rows = self._table.columns, self._settings, self._rows
        if len(self._searches) == 1:
            self.rounds, self._n_changed, self.outcome = run_rounds(
                self._table.groups[0], columns, rows, self._searches[0], self.stumps, settings,
                self._scales, self.rounds, last, self._n_changed, replayed,
            )  # fmt: skip
            return
        while self.rounds < last and self.outcome == RUNNING:
            self._one_round(replayed)

    def _one_round(self, replayed: bool) -> None:
        """One round with several groups of features, in parallel."""
        groups, searches, rows = self._table.groups, self._searches, self._rows

        def search(k: int) -> None:
            update_histogram(groups[k], rows, self._n_changed, searches[k])
            if not replayed:
                search_group(groups[k], rows, self._settings, searches[k])

        run_tiles(search, len(groups), self._n_threads)
        best = searches[0]
        if not replayed:
            for other in searches[1:]:
                if other.best[0] >= 0:
                    take_better(self._settings.criterion, other, best)
        restarted, self._n_changed, self.outcome = finish_round(
            self._table.columns, rows, best, self.stumps, self._settings, self._scales, self.rounds,
            replayed,
        )  # fmt: skip
        if restarted:
            run_tiles(
                lambda k: fill_histogram(groups[k], rows, self._settings.bits, searches[k]),
                len(groups),
                self._n_threads,
            )
        if self.outcome != CHANCE:
            self.rounds += 1

    def resume(self, stumps: Stumps, n_rounds: int) -> None:
        """Repeat the rounds of an earlier fit."""
        self.stumps = stumps.first(n_rounds)
        self.advance(n_rounds, replayed=True)

    def weights(self) -> np.ndarray:
        """The weights D, float64 (n,), with sum one."""
        logs = self._rows.starts + self._rows.missed
        weights = self._rows.counts * np.exp(logs - logs.max())
        total: np.ndarray = weights / weights.sum()
        return total
