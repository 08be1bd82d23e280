"""How good a model is on rows, beside what could be had for nothing.

A share of n rows has Wilson's interval; of numbers, R² has a bootstrap interval of the rows, with
a fixed seed, so that the same report has the same figures.
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
    "ClassJudgement",
    "NumberJudgement",
    "RememberedAnswers",
    "judgement_of",
    "r2_interval",
]

_LEVEL = 0.95
_RESAMPLES = 500
_MOST_RESAMPLED = 20_000  # rows; of more, an interval of so many evenly spread is wide enough
_MISTAKES = 10


def r2_interval(truth: np.ndarray, predictions: np.ndarray) -> tuple[float, float] | None:
    """Quantiles of R² over resamples of the rows; None where it cannot be told."""
    n = len(truth)
    if n < 10 or np.ptp(truth) == 0.0:
        return None
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_RESAMPLED)).round().astype(int))
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


class RememberedAnswers:
    """A model that is asked once only what it says of certain rows: all else is its own."""

    def __init__(self, model: Any, rows: Any) -> None:
        self._model, self._rows = model, rows
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._model, name)
        if name not in ("predict", "predict_proba", "decision_function"):
            return own

        def answer(X: Any) -> Any:
            if X is not self._rows:
                return own(X)
            if name not in self._answers:
                self._answers[name] = own(X)
            return self._answers[name]

        return answer


@dataclass(frozen=True)
class ClassJudgement:
    """Of a classifier; figures are computed when asked for."""

    subject: Subject

    @cached_property
    def model(self) -> RememberedAnswers:
        return RememberedAnswers(self.subject.model, self.subject.judged_rows)

    @cached_property
    def confusion(self) -> ConfusionMatrix:
        own = self.subject
        return confusion(self.model, own.judged_rows, own.judged_answers)

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
    def usual(self) -> tuple[str, float]:
        """The commonest class of the training rows, and how often it is right on these."""
        answers = np.asarray(self.subject.y).ravel().tolist()
        label = str(Counter(answers).most_common(1)[0][0])
        if label not in self.confusion.classes:
            return label, 0.0
        support = self.confusion.support[self.confusion.classes.index(label)]
        return label, float(support / self.confusion.total)

    @cached_property
    def has_scores(self) -> bool:
        own = self.subject
        return class_scores(self.model, own.judged_rows) is not None

    @cached_property
    def roc(self) -> RocCurves | None:
        own = self.subject
        return (
            roc_curves(self.model, own.judged_rows, own.judged_answers) if self.has_scores else None
        )

    @cached_property
    def precision_recall(self) -> PrecisionRecallCurves | None:
        own = self.subject
        if not self.has_scores:
            return None
        return precision_recall_curves(self.model, own.judged_rows, own.judged_answers)

    @property
    def why_no_reliability(self) -> str:
        """Why probabilities cannot be judged, and the way out; "" where they can."""
        own = self.subject
        if not hasattr(own.model, "predict_proba"):
            return (
                f"{own.estimator} gives scores but no probabilities, so there are none that could "
                "come true or not. They can be learnt from the scores of rows held out: by "
                "`margrove report --calibrate`, or `margrove.calibrate` in Python."
            )
        if len(self.confusion.classes) > len(own.model.classes_):
            return "Some rows have classes that the model does not know, and no probability."
        return ""

    @cached_property
    def reliability(self) -> Reliability | None:
        """None where `why_no_reliability` says so."""
        own = self.subject
        if self.why_no_reliability:
            return None
        chances = self.model.predict_proba(own.judged_rows)
        return reliability_of(chances, own.judged_answers, classes=own.model.classes_)

    @cached_property
    def worst(self) -> WorstMistakes:
        own = self.subject
        return worst_mistakes(self.model, own.judged_rows, own.judged_answers, _MISTAKES)


@dataclass(frozen=True)
class NumberJudgement:
    """Of a model of numbers."""

    subject: Subject

    @cached_property
    def model(self) -> RememberedAnswers:
        return RememberedAnswers(self.subject.model, self.subject.judged_rows)

    @cached_property
    def residuals(self) -> ResidualFacts:
        own = self.subject
        return residual_facts(self.model, own.judged_rows, own.judged_answers)

    @property
    def n_rows(self) -> int:
        return len(self.residuals.truth)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        return r2_interval(self.residuals.truth, self.residuals.predictions)

    @cached_property
    def usual_error(self) -> float:
        """Root mean squared error of saying the mean of the training rows to all."""
        mean = float(np.mean(np.asarray(self.subject.y, dtype=np.float64)))
        return float(np.sqrt(np.mean((self.residuals.truth - mean) ** 2)))

    @cached_property
    def worst(self) -> WorstMistakes:
        own = self.subject
        return worst_mistakes(self.model, own.judged_rows, own.judged_answers, _MISTAKES)


def judgement_of(subject: Subject) -> Any:
    """None where there is nothing to judge by, or more than one output."""
    if subject.judged_answers is None:
        return None
    if np.ndim(np.asarray(subject.judged_answers)) > 1 and np.shape(subject.judged_answers)[1] > 1:
        return None
    if subject.task == "classification":
        return ClassJudgement(subject)
    return NumberJudgement(subject) if subject.task == "regression" else None
