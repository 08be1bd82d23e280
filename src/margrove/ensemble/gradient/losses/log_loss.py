"""The log loss: two classes have one raw score, the log of the odds; more have one each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.exponentials import exp_of, log_from_one, log_of_one_plus
from margrove.ensemble.gradient.losses.gradient_loss import (
    LONGEST_LOG_STEP,
    GradientLoss,
    times_weights,
)
from margrove.ensemble.gradient.losses.registry import registered_loss
from margrove.ensemble.gradient.losses.row_statistics import class_shares
from margrove.ensemble.gradient.losses.two_classes import TwoClassLoss

__all__ = ["LogLoss", "MulticlassLogLoss", "write_rows_of_classes", "write_rows_of_two_classes"]

_LEAST_SHARE = np.finfo(np.float64).eps


@registered_loss
@dataclass(frozen=True)
class LogLoss(TwoClassLoss):
    """log(1 + exp(raw)) - y raw"""

    name = "log_loss"
    summary = "classes; predicts probabilities"
    scoring = "neg_log_loss"
    is_usual = True
    reported_factor = 2.0  # scikit-learn reports twice this loss
    longest_step = LONGEST_LOG_STEP

    def with_classes(self, n_classes: int) -> GradientLoss:
        return MulticlassLogLoss(n_classes) if n_classes > 2 else self

    def write_rows(self, *shares_and_arrays) -> None:
        write_rows_of_two_classes(*shares_and_arrays)


@registered_loss
@dataclass(frozen=True)
class MulticlassLogLoss(GradientLoss):
    """log(sum_k exp(raw_k)) - raw_y; the second derivatives are the diagonal of the Hessian."""

    n_classes: int = field(default=3, metadata={"least": 2})

    name = "log_loss"
    summary = "classes; predicts probabilities"
    scoring = "neg_log_loss"
    longest_step = LONGEST_LOG_STEP
    for_classes = True

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2. Got {self.n_classes!r} instead.")

    @property
    def n_scores(self) -> int:
        return self.n_classes

    def with_classes(self, n_classes: int) -> GradientLoss:
        return LogLoss().with_classes(n_classes)

    def check_targets(self, y: Any) -> np.ndarray:
        targets = super().check_targets(y)
        known = (targets >= 0.0) & (targets < self.n_classes) & (targets == np.floor(targets))
        self._refuse(
            targets,
            ~known,
            f"the classes 0 .. {self.n_classes - 1}",
            "Encode the classes, for example with sklearn.preprocessing.LabelEncoder",
        )
        return targets

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        shares = class_shares(y, weight, self.n_classes)
        logs = np.log(np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE))
        centred: np.ndarray = logs - logs.mean()
        return centred

    def write_rows(self, *shares_and_arrays) -> None:
        write_rows_of_classes(*shares_and_arrays)

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(softmax(raw, axis=0).T)


@kernel
def _odds(raw, start, end, odds):
    """The odds of the less likely class."""
    score = raw[0, start:end]
    for i in range(len(score)):
        odds[i] = exp_of(-abs(score[i]))


@kernel
def _odds_to_losses(y, raw, start, end, odds):
    target, score = y[start:end], raw[0, start:end]
    for i in range(len(target)):
        is_likely = (score[i] > 0.0) == (target[i] > 0.0)
        odds[i] = log_of_one_plus(odds[i]) + (0.0 if is_likely else abs(score[i]))


@kernel
def _derivatives(y, raw, gradient, hessian, start, end, odds):
    target, score = y[start:end], raw[0, start:end]
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(target)):
        larger = 1.0 / (1.0 + odds[i])
        smaller = odds[i] * larger
        of_others = smaller if (score[i] > 0.0) == (target[i] > 0.0) else larger
        first[i] = -of_others if target[i] > 0.0 else of_others
        second[i] = smaller * larger


@kernel
def _write_largest(raw, start, end, largest):
    """The largest score of each row; class by class, because rows are contiguous in memory."""
    largest[:] = -math.inf
    for k in range(len(raw)):
        scores = raw[k, start:end]
        for i in range(len(scores)):
            largest[i] = max(largest[i], scores[i])


@kernel
def _totals(raw, start, end, largest, totals):
    """The sums of exponentials, scaled such that the largest is 1."""
    totals[:] = 0.0
    for k in range(len(raw)):
        scores = raw[k, start:end]
        for i in range(len(scores)):
            totals[i] += exp_of(scores[i] - largest[i])


@kernel
def _totals_to_losses(y, raw, start, largest, totals):
    for i in range(len(totals)):
        totals[i] = log_from_one(totals[i])
    for i in range(len(totals)):
        totals[i] += largest[i] - raw[int(y[start + i]), start + i]


@kernel
def _class_derivatives(y, raw, gradient, hessian, start, end, largest, totals):
    totals[:] = 0.0
    for k in range(len(raw)):
        scores, first = raw[k, start:end], gradient[k, start:end]
        for i in range(len(scores)):
            first[i] = exp_of(scores[i] - largest[i])
            totals[i] += first[i]
    for k in range(len(raw)):
        first, second = gradient[k, start:end], hessian[k, start:end]
        for i in range(len(first)):
            share = first[i] / totals[i]
            first[i] = share
            second[i] = share * (1.0 - share)
    for i in range(start, end):
        gradient[int(y[i]), i] -= 1.0


@region
def write_rows_of_two_classes(share, begin, step, y, raw, weight, gradient, hessian, losses):
    """Two loops, one for the exponential and one for the logarithm, are faster than one."""
    start = begin + share * step
    end = min(start + step, len(y))
    odds = losses[start:end] if len(losses) else np.empty(end - start)
    _odds(raw, start, end, odds)
    if gradient.size:
        _derivatives(y, raw, gradient, hessian, start, end, odds)
        times_weights(weight[start:end], gradient, hessian, start, end)
    if len(losses):
        _odds_to_losses(y, raw, start, end, odds)


@region
def write_rows_of_classes(share, begin, step, y, raw, weight, gradient, hessian, losses):
    start = begin + share * step
    end = min(start + step, len(y))
    totals = losses[start:end] if len(losses) else np.empty(end - start)
    largest = np.empty(end - start)
    _write_largest(raw, start, end, largest)
    if gradient.size:
        _class_derivatives(y, raw, gradient, hessian, start, end, largest, totals)
        times_weights(weight[start:end], gradient, hessian, start, end)
    else:
        _totals(raw, start, end, largest, totals)
    if len(losses):
        _totals_to_losses(y, raw, start, largest, totals)
