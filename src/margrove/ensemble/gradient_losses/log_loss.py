"""The log loss: one raw score for two classes, the log of the odds; more classes have one each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from margrove._jit import kernel
from margrove.ensemble.gradient_losses.gradient_loss import GradientLoss
from margrove.ensemble.gradient_losses.row_statistics import class_shares
from margrove.ensemble.gradient_losses.two_classes import TwoClassLoss

__all__ = ["LogLoss", "MulticlassLogLoss"]

_LEAST_SHARE = np.finfo(np.float64).eps
_HARDLY_ANY = -37.0  # below, 1 + exp(raw) is 1


@dataclass(frozen=True)
class LogLoss(TwoClassLoss):
    """log(1 + exp(raw)) - y raw"""

    name = "log_loss"

    def with_classes(self, n_classes: int) -> GradientLoss:
        return MulticlassLogLoss(n_classes) if n_classes > 2 else self

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, gradient, hessian, start, end)


@dataclass(frozen=True)
class MulticlassLogLoss(GradientLoss):
    """log(sum_k exp(raw_k)) - raw_y; of the second derivatives the diagonal."""

    n_classes: int = 3

    name = "log_loss"
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
            "Number the classes, for example with sklearn.preprocessing.LabelEncoder",
        )
        return targets

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        shares = class_shares(y, weight, self.n_classes)
        logs = np.log(np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE))
        centred: np.ndarray = logs - logs.mean()
        return centred

    def write_losses(self, y, raw, start, end, losses) -> None:
        _class_losses(y, raw, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _class_derivatives(y, raw, gradient, hessian, start, end)

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(softmax(raw, axis=0).T)


@kernel
def _losses(y, raw, start, end, losses):
    for i in range(start, end):
        score = raw[0, i]
        if score > 0.0:
            losses[i - start] = math.log1p(math.exp(-score)) + (1.0 - y[i]) * score
        else:
            losses[i - start] = math.log1p(math.exp(score)) - y[i] * score


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    for i in range(start, end):
        if raw[0, i] > _HARDLY_ANY:
            odds = math.exp(-raw[0, i])
            gradient[0, i] = ((1.0 - y[i]) - y[i] * odds) / (1.0 + odds)
            hessian[0, i] = odds / ((1.0 + odds) * (1.0 + odds))
        else:
            share = math.exp(raw[0, i])
            gradient[0, i] = share - y[i]
            hessian[0, i] = share


@kernel
def _class_losses(y, raw, start, end, losses):
    for i in range(start, end):
        largest = raw[0, i]
        for k in range(1, len(raw)):
            largest = max(largest, raw[k, i])
        total = 0.0
        for k in range(len(raw)):
            total += math.exp(raw[k, i] - largest)
        losses[i - start] = math.log(total) + (largest - raw[int(y[i]), i])


@kernel
def _class_derivatives(y, raw, gradient, hessian, start, end):
    for i in range(start, end):
        largest = raw[0, i]
        for k in range(1, len(raw)):
            largest = max(largest, raw[k, i])
        total = 0.0
        for k in range(len(raw)):
            gradient[k, i] = math.exp(raw[k, i] - largest)
            total += gradient[k, i]
        for k in range(len(raw)):
            share = gradient[k, i] / total
            gradient[k, i] = share
            hessian[k, i] = share * (1.0 - share)
        gradient[int(y[i]), i] -= 1.0
