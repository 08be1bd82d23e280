"""Learners fitted to bootstrap samples, and their losses on the rows that a sample leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from margrove._runtime import run_calls, spread, unwatched
from margrove.ensemble.bagging import seeded_clone
from margrove.ensemble.bootstrap.arguments import Sample
from margrove.ensemble.bootstrap.draws import label_codes
from margrove.ensemble.bootstrap.intervals import warn
from margrove.ensemble.bootstrap.losses import RowLoss, row_losses
from margrove.ensemble.bootstrap.resampling import CumulativeWeights, multiplicities, stream

__all__ = ["BootstrapFits", "LossTotals", "SpreadFits", "StratifiedDraws", "predictions_of"]

_WORK_OF_A_FIT = 1e6  # the cost of a fit is unknown before it runs: start with few


@dataclass(frozen=True)
class StratifiedDraws:
    """Bootstrap samples of the rows, drawn from each stratum separately."""

    seed: int
    strata: tuple[np.ndarray, ...]
    weights: tuple[CumulativeWeights, ...]

    @classmethod
    def of(cls, target: np.ndarray, seed: int, stratify: bool, estimator: Any) -> StratifiedDraws:
        strata = [np.arange(len(target))]
        if stratify:
            if not is_classifier(estimator):
                raise ValueError(
                    f"stratify=True keeps the sizes of classes, but {type(estimator).__name__} is "
                    "not a classifier. Use stratify=False."
                )
            codes = label_codes(target, len(target), "y")
            strata = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
        weights = tuple(CumulativeWeights(np.ones(len(rows))) for rows in strata)
        return cls(seed, tuple(strata), weights)

    def counts(self, number: int) -> np.ndarray:
        """How often each row is in sample `number`."""
        if len(self.strata) == 1:
            return multiplicities(self.weights[0], self.seed, number)
        counts = np.empty(sum(map(len, self.strata)), np.int32)
        for stratum, (rows, weights) in enumerate(zip(self.strata, self.weights, strict=True)):
            counts[rows] = multiplicities(weights, int(stream(self.seed, stratum)), number)
        return counts


class LossTotals(NamedTuple):
    """Sums over samples: losses float64 (n,) and times out of bag int64 (n,) of each row.

    `pending` holds the losses of samples that are done but not yet added, by number.
    """

    losses: np.ndarray
    times: np.ndarray
    by_resample: tuple[float, ...]
    pending: dict[int, tuple[np.ndarray, np.ndarray]]

    def added_up(self) -> LossTotals:
        """Add what is pending in the order of the samples, so threads do not change the sums."""
        losses, times, by_resample = self.losses.copy(), self.times.copy(), list(self.by_resample)
        for _, (rows, row_loss) in sorted(self.pending.items()):
            losses[rows] += row_loss
            times[rows] += 1
            by_resample.append(float(row_loss.mean()) if len(row_loss) else np.nan)
        return LossTotals(losses, times, tuple(by_resample), {})


class BootstrapFits:
    """The process that fits a learner to each sample and predicts the rows it leaves out.

    The name of the class appears in messages about interrupts and time limits.
    """

    unit = "resample"

    def __init__(
        self,
        estimator: Any,
        sample: Sample,
        target: np.ndarray,
        loss: RowLoss,
        draws: StratifiedDraws,
        n_resamples: int,
        n_threads: int,
    ) -> None:
        self.total: int | None = n_resamples
        self._estimator, self._sample, self._target = estimator, sample, target
        self._loss, self._draws, self._n_threads = loss, draws, n_threads
        self._next = 0
        self._end = n_resamples
        n_rows = len(target)
        self._totals = LossTotals(np.zeros(n_rows), np.zeros(n_rows, np.int64), (), {})
        self._single_classes: list[int] = []

    @property
    def totals(self) -> LossTotals:
        return self._totals.added_up()

    @property
    def rounds(self) -> int:
        return len(self._totals.by_resample) + len(self._totals.pending)

    @property
    def finished(self) -> bool:
        return self._next == self._end

    def advance(self, work: float) -> float:
        first = self._next
        count = min(self._end - first, max(self._n_threads, int(work / _WORK_OF_A_FIT)))
        with unwatched():  # single fits do not report progress
            run_calls(self._fit, [(first + k,) for k in range(count)], self._n_threads)
        self._totals = self._totals.added_up()
        self._next = first + count
        return count * _WORK_OF_A_FIT

    def losses_of(self, number: int) -> tuple[tuple[np.ndarray, np.ndarray], bool]:
        """(rows that sample `number` leaves out, their losses), and whether it had one class."""
        self._fit(number)
        return self._totals.pending.pop(number), bool(self._single_classes)

    def _fit(self, number: int) -> None:
        try:
            self._totals.pending[number] = self._out_of_bag_losses(number)
        except Exception as error:
            error.add_note(f"Resample {number} of bootstrap_error was being fitted.")
            raise

    def _out_of_bag_losses(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that the sample leaves out, and their losses."""
        counts = self._draws.counts(number)
        outside = np.flatnonzero(counts == 0)
        if not len(outside):
            return outside, np.empty(0)
        X, y = self._sample.take(np.repeat(np.arange(len(counts)), counts))
        unseen = self._sample.take(outside)[0]
        target = self._target[outside]
        learner = seeded_clone(self._estimator, int(stream(self._draws.seed, number + 1)))
        try:
            prediction = predictions_of(learner.fit(X, y), unseen, target)
        except ValueError:
            label = np.asarray(y)[0]
            if not is_classifier(learner) or np.any(np.asarray(y) != label):
                raise
            self._single_classes.append(number)
            prediction = np.full(len(outside), label)
        return outside, row_losses(self._loss, target, prediction, f"resample {number}")

    def warn_of_single_classes(self) -> None:
        if self._single_classes:
            warn(
                f"{len(self._single_classes)} of {self.rounds} resamples contained one class only, "
                f"to which {type(self._estimator).__name__} cannot be fitted; they predict this "
                "class. stratify=True keeps all classes in all resamples."
            )

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        by_resample = [error for error in self.totals.by_resample if not np.isnan(error)]
        return {"error": float(np.mean(by_resample))} if by_resample else {}


class SpreadFits(BootstrapFits):
    """The same process, whose samples are fitted by the workers of the active joblib backend."""

    def __init__(self, *given: Any, n_workers: int) -> None:
        super().__init__(*given)
        self._given, self._n_workers = given, n_workers
        self._results: Iterator[tuple[tuple[np.ndarray, np.ndarray], bool]] | None = None

    def advance(self, work: float) -> float:
        if self._results is None:
            calls = [(number,) for number in range(self._end)]
            self._results = spread(_fitted, self._given, calls, self._n_workers)
        self._totals.pending[self._next], had_one_class = next(self._results)
        if had_one_class:
            self._single_classes.append(self._next)
        self._totals = self._totals.added_up()
        self._next += 1
        return work


def _fitted(given: tuple[Any, ...], number: int) -> tuple[tuple[np.ndarray, np.ndarray], bool]:
    """`losses_of` one sample, computed in a worker process."""
    with unwatched():
        return BootstrapFits(*given).losses_of(number)


def predictions_of(learner: Any, X: Any, target: np.ndarray) -> np.ndarray:
    """The predictions of a learner, in the shape of the targets."""
    prediction = np.asarray(learner.predict(X))
    if prediction.shape != target.shape and prediction.size == target.size:
        return prediction.reshape(target.shape)  # a column of one output
    return prediction
