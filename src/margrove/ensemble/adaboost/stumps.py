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

from margrove._runtime import pool_words
from margrove.ensemble.adaboost.stump_kernels import (
    RUNNING,
    Rows,
    Stumps,
    StumpSettings,
    reset_weights,
    run_rounds,
)
from margrove.ensemble.adaboost.stump_search import new_search
from margrove.ensemble.adaboost.stump_tables import StumpTable, tiles_of_rows
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
        n_threads = table.threads_for(n_threads)
        n_tiles, n_sums = tiles_of_rows(n), -(-n_classes // 8) * 8
        shares, share_of = _shares_of(counts, logs)
        self._table, self._n_threads = table, n_threads
        self._rows = Rows(
            labels.astype(np.int32),
            counts.astype(np.int64, copy=False),
            samples.astype(np.int64, copy=False),
            logs.astype(np.float64, copy=False),
            np.zeros(n),
            np.empty(n, np.int64),
            shares,
            share_of,
            np.zeros((n if many else 0, n_classes)),
            np.zeros(n if many else 0, np.int32),
            np.empty(n, np.bool_),
            np.zeros(len(shares), np.bool_),
            np.empty(n, np.int32),
            np.empty(n, np.int64),
            np.zeros((n_tiles, 2), np.int64),
            np.zeros((n_tiles, 8), np.int64),
            np.zeros((n_tiles, n_sums), np.int64),
            np.zeros(n_tiles),
            np.zeros(n_classes, np.int64),
        )
        bits = int(n_classes - 1).bit_length()
        self._settings = StumpSettings(CRITERIA[criterion].code, bonus, chance, learning_rate, bits)
        n_parts = table.parts_of_rows(int(table.features.first[-1]) * n_classes, n_threads)
        self._search = new_search(table.features, n_classes, n_parts, n_threads)
        self._scales = np.zeros(3)  # shift and scale of whole weights; sum of the stumps' weights
        self.stumps = new_stumps(16, n_classes)
        self.rounds = 0
        self.outcome = RUNNING
        reset_weights(
            pool_words(n_threads), n_threads, self._rows, self._search, self._scales, bits
        )

    @property
    def cost_of_round(self) -> float:
        """A rough number of elementary steps."""
        features = self._table.features
        cells = len(features.by_column) * self._table.n_rows + len(features.bins)
        n_bins = self._search.histograms.shape[1]
        return cells / 4 + features.orders.size + n_bins + self._table.n_rows

    def advance(self, n_rounds: int, *, replayed: bool = False) -> None:
        """Run rounds until boosting stops; with `replayed`, the stumps are already known."""
        last = self.rounds + n_rounds
        if len(self.stumps.feature) < last:
            larger = new_stumps(max(last, 2 * self.rounds), self.stumps.shares.shape[2])
            for old, new in zip(self.stumps, larger, strict=True):
                new[: self.rounds] = old[: self.rounds]
            self.stumps = larger
        self.rounds, self.outcome = run_rounds(
            pool_words(self._n_threads), self._n_threads, self._table.features,
            self._table.columns, self._rows, self._search, self.stumps, self._settings,
            self._scales, self.rounds, last, replayed,
        )  # fmt: skip

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


def _shares_of(counts: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares of the rows; if all are equal, instead the sums of 0, 1, 2, ... of them."""
    n = len(counts)
    if (logs == logs[0]).all() and (counts == counts[0]).all():
        weight = float(counts[0])
        share = weight / (weight * n)
        sums = np.zeros(n + 1)
        np.cumsum(np.full(n, share), out=sums[1:])
        return np.empty(0), sums
    weights = counts * np.exp(logs - logs.max())
    return weights / weights.sum(), np.empty(0)
