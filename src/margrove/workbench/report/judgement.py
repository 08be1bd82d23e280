"""How good a model is on rows, compared with a baseline.

A share of n rows has Wilson's interval. For regression, R² has a bootstrap interval over the rows,
with a fixed seed, so that the same report has the same figures.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from margrove.facts import (
    ConfusionMatrix,
    PrecisionRecallCurves,
    ResidualFacts,
    RocCurves,
    WorstMistakes,
    class_scores,
    confusion,
    precision_recall_curves,
    residual_facts,
    roc_curves,
    worst_mistakes,
)
from margrove.select.calibrate import Reliability, reliability_of, wilson_interval
from margrove.workbench.report.subject import Subject

__all__ = [
    "CachedPredictions",
    "ClassJudgement",
    "NumberJudgement",
    "judgement_of",
    "r2_interval",
]

_LEVEL = 0.95
_RESAMPLES = 500
_MAX_RESAMPLED = 20_000  # rows; of more, evenly spread ones are resampled
_MISTAKES = 10


def r2_interval(truth: np.ndarray, predictions: np.ndarray) -> tuple[float, float] | None:
    """The 95 % interval of R² from resamples of the rows; None for few or equal targets."""
    n = len(truth)
    if n < 10 or np.ptp(truth) == 0.0:
        return None
    rows = np.unique(np.linspace(0, n - 1, min(n, _MAX_RESAMPLED)).round().astype(int))
    truth, squares = truth[rows], (predictions[rows] - truth[rows]) ** 2
    generator = np.random.default_rng(0)
    found = np.empty(_RESAMPLES)
    for k in range(_RESAMPLES):
        drawn = generator.integers(0, len(rows), len(rows))
        spread = truth[drawn].var() * len(rows)
        found[k] = 1.0 - squares[drawn].sum() / spread if spread > 0.0 else np.nan
    tail = 0.5 * (1.0 - _LEVEL)
    low, high = np.nanquantile(found, [tail, 1.0 - tail])
    return float(low), float(high)


class CachedPredictions:
    """A model whose predictions for certain rows are computed once; otherwise the model itself."""

    def __init__(self, model: Any, rows: Any) -> None:
        self._model, self._rows = model, rows
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._model, name)
        if name not in ("predict", "predict_proba", "decision_function"):
            return method

        def answer(X: Any) -> Any:
            if X is not self._rows:
                return method(X)
            if name not in self._answers:
                self._answers[name] = method(X)
            return self._answers[name]

        return answer


@dataclass(frozen=True)
class _Judgement:
    """The predictions of a model for the judged rows; figures are computed when they are used."""

    subject: Subject

    @cached_property
    def model(self) -> CachedPredictions:
        return CachedPredictions(self.subject.model, self.subject.judged_rows)

    @cached_property
    def worst(self) -> WorstMistakes:
        subject = self.subject
        return worst_mistakes(self.model, subject.judged_rows, subject.judged_targets, _MISTAKES)


@dataclass(frozen=True)
class ClassJudgement(_Judgement):
    """How good a classifier is."""

    @cached_property
    def confusion(self) -> ConfusionMatrix:
        subject = self.subject
        return confusion(self.model, subject.judged_rows, subject.judged_targets)

    @property
    def n_rows(self) -> int:
        return int(self.confusion.total)

    @property
    def accuracy(self) -> float:
        return self.confusion.accuracy

    @property
    def interval(self) -> tuple[float, float]:
        total = self.confusion.total
        return wilson_interval(float(np.trace(self.confusion.counts)) / total, total)

    @cached_property
    def baseline(self) -> tuple[str, float]:
        """The most frequent class of the training rows, and its accuracy on the judged rows."""
        answers = np.asarray(self.subject.y).ravel().tolist()
        label = str(Counter(answers).most_common(1)[0][0])
        if label not in self.confusion.classes:
            return label, 0.0
        support = self.confusion.support[self.confusion.classes.index(label)]
        return label, float(support / self.confusion.total)

    @cached_property
    def has_scores(self) -> bool:
        subject = self.subject
        return class_scores(self.model, subject.judged_rows) is not None

    @cached_property
    def roc(self) -> RocCurves | None:
        subject = self.subject
        return (
            roc_curves(self.model, subject.judged_rows, subject.judged_targets)
            if self.has_scores
            else None
        )

    @cached_property
    def precision_recall(self) -> PrecisionRecallCurves | None:
        subject = self.subject
        if not self.has_scores:
            return None
        return precision_recall_curves(self.model, subject.judged_rows, subject.judged_targets)

    @property
    def why_no_reliability(self) -> str:
        """Why probabilities cannot be judged, and the way out; "" if they can."""
        subject = self.subject
        if not hasattr(subject.model, "predict_proba"):
            return (
                f"{subject.estimator} gives scores but no probabilities. They can be computed from "
                "the scores of held-out rows: with `margrove report --calibrate`, or "
                "`margrove.calibrate` in Python."
            )
        if len(self.confusion.classes) > len(subject.model.classes_):
            return (
                "Some rows have classes that the model does not know, so they have no probability."
            )
        return ""

    @cached_property
    def reliability(self) -> Reliability | None:
        """The reliability of the probabilities; None if `why_no_reliability` gives a reason."""
        subject = self.subject
        if self.why_no_reliability:
            return None
        probabilities = self.model.predict_proba(subject.judged_rows)
        return reliability_of(probabilities, subject.judged_targets, classes=subject.model.classes_)


@dataclass(frozen=True)
class NumberJudgement(_Judgement):
    """How good a regressor is."""

    @cached_property
    def residuals(self) -> ResidualFacts:
        subject = self.subject
        return residual_facts(self.model, subject.judged_rows, subject.judged_targets)

    @property
    def n_rows(self) -> int:
        return len(self.residuals.truth)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        return r2_interval(self.residuals.truth, self.residuals.predictions)

    @cached_property
    def baseline_error(self) -> float:
        """The root mean squared error of always predicting the mean of the training rows."""
        mean = float(np.mean(np.asarray(self.subject.y, dtype=np.float64)))
        return float(np.sqrt(np.mean((self.residuals.truth - mean) ** 2)))


def judgement_of(subject: Subject) -> Any:
    """The judgement of a model; None without targets, or with more than one output."""
    if subject.judged_targets is None:
        return None
    if np.ndim(np.asarray(subject.judged_targets)) > 1 and np.shape(subject.judged_targets)[1] > 1:
        return None
    if subject.task == "classification":
        return ClassJudgement(subject)
    return NumberJudgement(subject) if subject.task == "regression" else None
