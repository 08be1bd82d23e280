"""The statistics of a comparison: scores with intervals, and a test of each pair."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from margrove.ensemble.bootstrap import ConfidenceInterval
from margrove.select.compare.fits import Comparing, ComparisonSetup
from margrove.select.compare.resampled_tests import (
    bootstrap_test,
    corrected_interval,
    corrected_t_test,
    holm,
    percentile_interval,
    resample_folds,
    resample_rows,
)
from margrove.select.compare.result import Comparison, FailedModel, ModelScore, Pair

__all__ = ["ScoreStatistics"]


@dataclass(frozen=True)
class ScoreStatistics:
    """Makes a `Comparison` from the scores of all models in all folds."""

    setup: ComparisonSetup
    process: Comparing
    folds: list[int]
    test: Literal["corrected_t", "bootstrap"]
    confidence_level: float
    n_resamples: int
    seed: int

    def comparison(self, names: list[str], failed: tuple[FailedModel, ...]) -> Comparison:
        scores = self.process.scores(names, self.folds)
        means = scores.mean(axis=0)
        ranked = sorted(range(len(names)), key=lambda k: (-means[k], names[k]))
        names, scores = [names[k] for k in ranked], scores[:, ranked]
        resamples = None if self.test == "corrected_t" else self._resamples(names, scores)
        scoring = self.setup.scoring
        return Comparison(
            models=tuple(self._model(k, names, scores, resamples) for k in range(len(names))),
            pairs=self._pairs(names, scores, resamples),
            failed=failed,
            scoring=scoring.name,
            test_used=self._test_name,
            confidence_level=self.confidence_level,
            n_folds=len(self.folds),
            n_rows=len(self.setup.examples),
            blend_weights=self._blend_weights(),
            in_points=scoring.is_share,
        )

    @property
    def _test_name(self) -> Any:
        if self.test == "corrected_t":
            return self.test
        return "bootstrap_rows" if self.setup.wants_rows else "bootstrap_folds"

    @property
    def _overlap(self) -> float:
        """The number of test rows per training row, averaged over the folds."""
        splits = [self.setup.splits[fold] for fold in self.folds]
        return float(np.mean([len(split.test) / len(split.train) for split in splits]))

    def _model(
        self, k: int, names: list[str], scores: np.ndarray, resamples: np.ndarray | None
    ) -> ModelScore:
        if resamples is None:
            interval = corrected_interval(scores[:, k], self._overlap, self.confidence_level)
        else:
            interval = percentile_interval(resamples[:, k], self.confidence_level)
        scoring = self.setup.scoring
        return ModelScore(
            names[k], float(scores[:, k].mean()), _clipped(interval, scoring.low, scoring.high),
            scores[:, k],
            *self.process.seconds(names[k], self.folds),
            self.process.stopped_early(names[k], self.folds),
        )  # fmt: skip

    def _pairs(
        self, names: list[str], scores: np.ndarray, resamples: np.ndarray | None
    ) -> tuple[Pair, ...]:
        places = list(combinations(range(len(names)), 2))
        level = self.confidence_level
        if resamples is None:
            tests = [
                corrected_t_test(scores[:, i], scores[:, j], self._overlap, level)
                for i, j in places
            ]
        else:
            tests = [
                bootstrap_test(
                    float(np.mean(scores[:, i] - scores[:, j])),
                    resamples[:, i], resamples[:, j], level,
                )
                for i, j in places
            ]  # fmt: skip
        adjusted = holm([test.p for test in tests])
        span = self.setup.scoring.high - self.setup.scoring.low
        return tuple(
            Pair(
                names[i], names[j], test.mean, _clipped(test.interval, -span, span), test.p, p,
                p < 1.0 - level,
            )
            for (i, j), test, p in zip(places, tests, adjusted, strict=True)
        )  # fmt: skip

    def _resamples(self, names: list[str], scores: np.ndarray) -> np.ndarray:
        """Scores of all models on the same resamples, (n_resamples, n_models)."""
        if not self.setup.wants_rows:
            return resample_folds(scores, self._overlap, self.n_resamples, self.seed)
        examples = self.setup.examples
        sums, weights = np.zeros((len(examples), len(names))), np.zeros(len(examples))
        for fold in self.folds:  # folds have equal weights, as in the mean of their scores
            tested = self.setup.splits[fold].test
            weight = np.ones(len(tested)) if examples.weight is None else examples.weight[tested]
            shares = weight / weight.sum() / len(self.folds)
            weights[tested] += shares
            for k, name in enumerate(names):
                sums[tested, k] += shares * self.process.rows(name, fold)
        seen = weights > 0.0
        groups = None if examples.groups is None else examples.groups[seen]
        return resample_rows(sums[seen], weights[seen], groups, self.n_resamples, self.seed)

    def _blend_weights(self) -> dict[str, float]:
        by_fold = [
            self.process.weights[fold] for fold in self.folds if fold in self.process.weights
        ]
        names = sorted({name for weights in by_fold for name in weights})
        means = {
            name: float(np.mean([weights.get(name, 0.0) for weights in by_fold])) for name in names
        }
        return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))


def _clipped(interval: ConfidenceInterval, low: float, high: float) -> ConfidenceInterval:
    """An interval within the range of the score."""
    return ConfidenceInterval(*(float(np.clip(end, low, high)) for end in interval))
