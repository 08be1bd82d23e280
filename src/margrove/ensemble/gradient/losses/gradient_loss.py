"""Base class of the losses: values and derivatives with respect to the raw scores, for each row.

Conventions: targets are float64 (n,), for classes their codes 0, 1, ...; raw scores and derivatives
are C-contiguous float64 (n_scores, n). Losses are defined as in scikit-learn: with the same factors
1/2, and without terms that do not depend on the scores.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from margrove._data import read_only
from margrove._runtime import ALONE, Collective, copy_at, kernel, region
from margrove.ensemble.gradient.losses.exact_means import mean_of_rows
from margrove.exceptions import InvalidDataError

__all__ = [
    "LARGEST_EXPONENT",
    "LONGEST_LOG_STEP",
    "GradientLoss",
    "bounded",
    "require_open_interval",
    "rows_of_share",
    "times_weights",
]

LONGEST_LOG_STEP = 16.0  # for raw scores that are logarithms
LARGEST = 1e302  # limit of a derivative: a million of them still have a finite sum
LARGEST_EXPONENT = 695.0  # its exponential is just below LARGEST

_SCORES_OF_A_SHARE = 8192  # of a thread: there are enough shares for many threads
_ROWS_AT_ONCE = 1 << 16  # of a thread, between two checks for an interrupt
_LEAST_ROWS = 64  # of a share


class GradientLoss(ABC):
    """A loss. Subclasses are frozen dataclasses whose fields are the parameters.

    A subclass has two static methods, which are compiled:

    row_loss(y, raw)          the loss of a row with the raw score `raw`
    row_derivatives(y, raw)   its first and second derivative with respect to `raw`

    If they need fields of the loss, both take these as further arguments, by name. A loss with
    several scores overrides `write_rows` instead. Its other attributes:

    name       the value of the parameter `loss`
    summary    a line for menus and the documentation: for which targets, and what it predicts
    scoring    the scikit-learn score by which the number of rounds is tuned
    is_usual   whether it is the default of its task
    reported_factor   the factor by which scikit-learn's classic boosting reports this loss
    """

    name: str
    summary = ""
    scoring = "neg_mean_squared_error"
    is_usual = False
    reported_factor = 1.0

    row_loss: ClassVar[Callable[..., float]]
    row_derivatives: ClassVar[Callable[..., tuple[float, float]]]
    region_of_rows: ClassVar[Any]
    _fields_of_rows: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = [name for name in ("row_loss", "row_derivatives") if name in vars(cls)]
        if own:
            cls.region_of_rows = staticmethod(_region_of(cls, place=getattr(cls, own[0])))
            cls._fields_of_rows = tuple(inspect.signature(cls.row_loss).parameters)[2:]

    @property
    def for_classes(self) -> bool:
        """Whether targets are codes of classes."""
        return False

    @property
    def n_scores(self) -> int:
        """The number of raw scores of a row, which is also the number of trees in a round."""
        return 1

    @property
    def degree(self) -> int:
        """The power by which losses scale with the targets, if scores scale with them; else 0."""
        return 0

    @property
    def longest_step(self) -> float:
        """Longer Newton steps are damped, because second derivatives change with the scores.

        For logarithms of odds, a step of 16 changes odds of 1 : 1 to ten million : 1.
        """
        return math.inf

    @property
    def is_constant_hessian(self) -> bool:
        """Whether every second derivative is taken as 1, before weights."""
        return False

    @property
    def differs_from_mean(self) -> bool:
        """Whether `leaf_value` gives the values of leaves, because a Newton step is not suitable.

        Trees are then grown as for the squared error, with weights as second derivatives.
        """
        return False

    @staticmethod
    def of_functions(
        value: Callable[[float, float], float],
        gradient: Callable[[float, float], float],
        hessian: Callable[[float, float], float],
        *,
        link_inverse: Callable[[float], float] | None = None,
        start: Callable[[np.ndarray, np.ndarray], float] | None = None,
        leaf_value: Callable[[np.ndarray, np.ndarray], float] | None = None,
        for_classes: bool = False,
        name: str = "own",
        summary: str = "",
    ) -> GradientLoss:
        """A loss made of your functions; see `register_gradient_loss` for their meaning."""
        from margrove.ensemble.gradient.losses.custom import CustomLoss, CustomTwoClassLoss

        kind = CustomTwoClassLoss if for_classes else CustomLoss
        return kind(name, value, gradient, hessian, link_inverse, start, leaf_value, summary)

    def with_classes(self, n_classes: int) -> GradientLoss:
        """The loss for this number of classes."""
        if self.for_classes and n_classes > 2:
            raise InvalidDataError(
                f"loss={self.name!r} is only suitable for a binary classification problem: it is "
                f"for two classes, but y has {n_classes}. Use loss='log_loss', or one classifier "
                "for each class."
            )
        return self

    def for_round(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        collective: Collective = ALONE,
    ) -> GradientLoss:
        """The loss of the round that begins with these scores; most losses never change."""
        return self

    def check_targets(self, y: Any) -> np.ndarray:
        """Targets as float64 (n,); raises an error that names the first invalid row."""
        targets = np.ascontiguousarray(y, dtype=np.float64)
        if targets.ndim != 1:
            raise InvalidDataError(
                f"y has shape {targets.shape}, but loss={self.name!r} requires one target for each "
                "row. Fit one model for each column."
            )
        self._refuse(targets, ~np.isfinite(targets), "finite numbers", "Drop these rows")
        return targets

    @abstractmethod
    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The raw scores before the first round, (n_scores,), independent of the order of rows."""

    def derive(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        gradient: np.ndarray,
        hessian: np.ndarray,
        losses: np.ndarray | None = None,
        *,
        n_threads: int = 1,
    ) -> None:
        """Write first and second derivatives of all rows, times their weights.

        With a buffer `losses`, float64 (n,), write also the losses, without weights.
        """
        y, raw, weight = read_only(y), read_only(raw), _weight_or_empty(weight)
        row_losses = np.empty(0) if losses is None else losses
        for shares in self._batches(len(y), n_threads):
            self.write_rows(*shares, y, raw, weight, gradient, hessian, row_losses)

    def value(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        *,
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> float:
        """The weighted mean of the losses; rows of weight 0 do not count."""
        y, raw = read_only(y), read_only(raw)
        losses, nothing = np.empty(len(y)), np.empty((0, 0))
        for shares in self._batches(len(y), n_threads):
            self.write_rows(*shares, y, raw, _weight_or_empty(weight), nothing, nothing, losses)
        return mean_of_rows(losses, weight, n_threads=n_threads, collective=collective)

    def write_rows(
        self,
        n_shares: int,
        n_threads: int,
        first: int,
        step: int,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        losses: np.ndarray,
    ) -> None:
        """Write derivatives, times weights, and losses of some rows, `step` rows at a time.

        Without weights, `weight` is empty. Both `gradient` and `hessian` are empty if only losses
        are wanted, and `losses` is empty if only derivatives are.
        """
        fields = tuple(float(getattr(self, name)) for name in self._fields_of_rows)
        self.region_of_rows(
            n_shares, n_threads, first, step, y, raw, weight, gradient, hessian, losses, fields
        )

    def _batches(self, n_rows: int, n_threads: int) -> Iterator[tuple[int, int, int, int]]:
        """(number of shares, number of threads, first row, rows of a share) of one region each, so
        that an interrupt is seen between two regions."""
        step = rows_of_share(self.n_scores)
        n_shares = max(1, _ROWS_AT_ONCE * n_threads // step)
        for first in range(0, n_rows, n_shares * step):
            yield min(n_shares, -(-(n_rows - first) // step)), n_threads, first, step

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        """Predictions (n,), or probabilities of the classes (n, n_classes)."""
        return raw[0].copy()

    def leaf_value(self, residuals: np.ndarray, weights: np.ndarray | None) -> float:
        """The best value of a leaf from the residuals y - raw of its rows."""
        raise NotImplementedError

    def leaf_values(
        self,
        residual: np.ndarray,
        weight: np.ndarray | None,
        rows: np.ndarray,
        starts: np.ndarray,
        *,
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> np.ndarray:
        """`leaf_value` of each leaf k, whose rows are rows[starts[k] : starts[k + 1]].

        residual and weight, float64 (n,), are those of all rows; rows int32, starts int64. A leaf
        may have rows of several members: by default these are gathered.
        """
        leaves = [rows[starts[k] : starts[k + 1]] for k in range(len(starts) - 1)]
        own = [(residual[chosen], None if weight is None else weight[chosen]) for chosen in leaves]
        values = np.empty(len(leaves))
        for k, parts in enumerate(zip(*collective.gather(own), strict=True)):
            residuals, weights = zip(*parts, strict=True)
            values[k] = self.leaf_value(
                np.concatenate(residuals), None if weight is None else np.concatenate(weights)
            )
        return values

    def _refuse(self, y: np.ndarray, bad: np.ndarray, required: str, way_out: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidDataError(
                f"y is {float(y[row])!r} in row {row} ({np.count_nonzero(bad)} such rows), but "
                f"loss={self.name!r} requires {required}. {way_out}."
            )


def require_open_interval(name: str, given: float, low: float, high: float) -> None:
    if not low < given < high:
        raise ValueError(
            f"{name} must be between {low:g} and {high:g}, both excluded. Got {given!r} instead."
        )


def _weight_or_empty(weight: np.ndarray | None) -> np.ndarray:
    return read_only(np.empty(0) if weight is None else weight)


def rows_of_share(n_scores: int) -> int:
    """How many rows are derived at a time, so that buffers stay in the cache."""
    return max(_SCORES_OF_A_SHARE // n_scores, _LEAST_ROWS)


@kernel
def bounded(derivative):
    return min(max(derivative, -LARGEST), LARGEST)


@kernel
def times_weights(weight, gradient, hessian, start, end):
    for k in range(len(gradient)):
        first, second = gradient[k, start:end], hessian[k, start:end]
        for i in range(len(weight)):
            first[i] = bounded(first[i] * weight[i])
            second[i] = bounded(second[i] * weight[i])


def _region_of(loss: type[GradientLoss], place: Callable[..., Any]) -> Any:
    """The region `_write_rows` with the functions of this loss, one of which is `place`."""
    functions = {
        "row_loss": kernel(loss.row_loss, scalar=True),
        "row_derivatives": kernel(loss.row_derivatives, scalar=True),
    }
    return region(copy_at(place, f"write_rows_of_{loss.__name__}", _write_rows, functions))


def _write_rows(share, begin, step, y, raw, weight, gradient, hessian, losses, fields):
    start = begin + share * step
    end = min(start + step, len(y))
    target, score = y[start:end], raw[0, start:end]
    own = losses[start:end] if len(losses) else np.empty(len(target))
    if not gradient.size:
        for i in range(len(target)):
            own[i] = row_loss(target[i], score[i], *fields)  # noqa: F821
        return
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(target)):  # in one loop, what both compute is computed once
        y_i, raw_i = target[i], score[i]
        loss = row_loss(y_i, raw_i, *fields)  # noqa: F821
        first[i], second[i] = row_derivatives(y_i, raw_i, *fields)  # noqa: F821
        own[i] = loss
    times_weights(weight[start:end], gradient, hessian, start, end)
