"""The rounds of AdaBoost.R2 (Drucker, 1997): a process for `slices.drive`, and its history.

A member with the absolute error e_i on row i, at most E, has the losses and the average loss

    L_i = e_i / E,   (e_i / E)^2   or   1 - exp(-e_i / E)            L = sum D_i L_i

With beta = L / (1 - L) and the learning rate r, the weight of the member is r ln(1 / beta). The
smaller the loss of a row, the smaller its new weight:

    D_i <- D_i beta^(r (1 - L_i)) / Z

The process keeps the logarithms of D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from margrove._runtime import MisfitError, one_of
from margrove.ensemble.adaboost.algorithms import normalised_weights, normaliser_of
from margrove.ensemble.adaboost.members import members_like, values_of_members
from margrove.ensemble.adaboost.rounds import BoostingRound
from margrove.ensemble.adaboost.weak_learners import Learner
from margrove.ensemble.adaboost.weighted_medians import StagedMedians
from margrove.exceptions import InvalidDataError

__all__ = ["LOSSES", "R2Boosting", "R2History"]

LOSSES = ("linear", "square", "exponential")
_TOO_LARGE = 0.5
_LARGEST_WEIGHT = 1e300  # of a member, so that sums stay finite
_LEAST_WEIGHT = np.finfo(float).tiny  # of a row, so that its weight can grow again
_CELLS_OF_RECORD = 1 << 25
_FEW_ROWS = 1024

Outcome = Literal["complete", "perfect", "loss too large", "interrupted"]


@dataclass(frozen=True)
class R2History:
    """The record of each of T rounds; arrays float64 (T,).

    average_loss     L, the weighted mean loss of the member
    beta             L / (1 - L): the smaller, the larger the weight of the member
    normaliser       Z, by which the new weights were divided; 1 if they did not change
    training_error   the mean absolute error of all members so far; with very many rows, on a
                     subset of them (2^25 predictions of `n_estimators` members)
    outcome          why boosting stopped: "complete" (n_estimators rounds), "perfect" (a member
                     without error), "loss too large" (the average loss of a member was not below
                     one half; it was left out unless it was the first), "interrupted"
    """

    average_loss: np.ndarray
    beta: np.ndarray
    normaliser: np.ndarray
    training_error: np.ndarray
    outcome: Outcome

    def __len__(self) -> int:
        return len(self.average_loss)


class R2Boosting:
    """The process of the rounds.

    y        float64 (n,); it is divided by `scale`, a power of two, so that sums do not overflow
    weight   float64 (n,), > 0
    rows     X for the predictions of members of an earlier fit

    With very many rows, training errors are recorded for the first ones only, so the order of the
    rows must be random with respect to y.
    """

    unit = "round"

    def __init__(
        self,
        learner: Learner,
        members: Any,
        rows: Any,
        y: np.ndarray,
        weight: np.ndarray,
        n_rounds: int,
        *,
        loss: str,
        learning_rate: float,
        scale: float = 1.0,
    ) -> None:
        self.total: int | None = n_rounds
        self._learner, self.members = learner, members.first(0)
        self._y, self._scaled, self._scale = y, y / scale, scale
        self._loss, self._learning_rate = loss, learning_rate
        self._logs = np.log(weight)
        self._n_recorded = min(len(y), max(_FEW_ROWS, _CELLS_OF_RECORD // n_rounds))
        self._sample_weight = weight[: self._n_recorded] / weight[: self._n_recorded].sum()
        self._medians = StagedMedians(self._n_recorded)
        self._task: np.ndarray | None = None
        self.outcome: Outcome | None = None
        self.too_large = float("nan")  # the average loss that ended boosting
        self._records: tuple[tuple[float, float, float, float], ...] = ()
        self._X = rows
        self._replay(members, 0)

    def _replay(self, members: Any, first: int) -> None:
        """Repeat the rounds of existing members, from round `first`."""
        for t in range(first, len(members)):
            if self.outcome is None:
                answers = members.answers(self._X, t)
                self._conclude(answers, self._weights(), members.first(t + 1))
        self._n_reported = len(members)

    def state(self) -> dict[str, Any]:
        members = values_of_members(self.members, self._learner)
        return {"members": members, "outcome": self.outcome, "too_large": self.too_large}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the members; everything else follows from them."""
        n_features = int(self._X.shape[1])
        members = members_like(self.members, state["members"], self._learner, n_features)
        self._replay(members, self.rounds)
        self.outcome = one_of(state["outcome"], [None, *get_args(Outcome)], "outcome")
        self.too_large = state["too_large"]
        if not isinstance(self.too_large, float):
            raise MisfitError("too_large is not a number")

    @property
    def rounds(self) -> int:
        return len(self._records)

    @property
    def finished(self) -> bool:
        return self.outcome is not None or self.rounds >= (self.total or 0)

    def advance(self, work: float) -> float:
        """Advance the learner; when it is finished, conclude the round."""
        if self._task is None:
            weights = self._weights()
            self._learner.begin(self.rounds, weights[None], self._y[None])
            self._task = weights
        done = self._learner.advance(work)
        if self._learner.finished:
            members = self._learner.add_to(self.members)
            self._conclude(self._learner.answers(), self._task, members)
            self._task = None
        return done

    def _weights(self) -> np.ndarray:
        """The weights D, float64 (n,)."""
        return np.maximum(normalised_weights(self._logs), _LEAST_WEIGHT)

    def _conclude(self, answers: np.ndarray, weights: np.ndarray, members: Any) -> None:
        answers = answers[:, 0] / self._scale
        losses = self._losses(answers)
        average = min(float((weights * losses).sum()), 1.0)
        is_perfect, is_weak = average <= 0.0, average >= _TOO_LARGE
        if is_weak and self.rounds:
            self.too_large, self.outcome = average, "loss too large"
            return
        weight, gains = self._weight_of(average), np.zeros(len(losses))
        if not is_perfect and not is_weak:
            gains = weight * (losses - 1.0)
        training = self._training_error(answers, weight)
        self._logs = self._logs + (gains - gains.max())
        normaliser = normaliser_of(weights, gains)
        # A single last step: after an interrupt the round is either done or not begun.
        self.members, self._records = members, (
            *self._records, (average, weight, normaliser, training)
        )  # fmt: skip
        if is_perfect:
            self.outcome = "perfect"
        elif is_weak:
            self.too_large, self.outcome = average, "loss too large"

    def _losses(self, answers: np.ndarray) -> np.ndarray:
        """The losses L_i (n,); all zero if there are no errors."""
        errors = np.abs(answers - self._scaled)
        largest = float(errors.max())
        if not math.isfinite(largest):
            raise InvalidDataError(
                "A member's predictions for the training rows are NaN or infinite. Check the "
                "predictions of the estimator, or use another estimator."
            )
        if largest > 0.0:
            errors = errors / largest
        if self._loss == "square":
            return errors**2
        return -np.expm1(-errors) if self._loss == "exponential" else errors

    def _weight_of(self, average: float) -> float:
        """The weight of a member: 1 without errors, when it is the last; 0 if it is too weak."""
        if average <= 0.0:
            return 1.0
        if average >= _TOO_LARGE:
            return 0.0
        odds = math.log1p(-average) - math.log(average)
        return min(self._learning_rate * odds, _LARGEST_WEIGHT)

    def _training_error(self, answers: np.ndarray, weight: float) -> float:
        recorded = slice(self._n_recorded)
        medians = self._medians.add(self.rounds, answers[recorded], weight)
        errors = np.abs(medians - self._scaled[recorded])
        return float((self._sample_weight * errors).sum()) * self._scale

    def read_steps(self) -> list[Any]:
        first, self._n_reported = self._n_reported, len(self._records)
        return [
            BoostingRound(first + k + 1, loss, weight, training)
            for k, (loss, weight, _, training) in enumerate(self._records[first:])
        ]

    def figures(self) -> dict[str, float]:
        if not self._records:
            return {}
        loss, _, _, training = self._records[-1]
        return {"average loss": loss, "training error": training}

    def history(self) -> R2History:
        loss, _, normaliser, training = np.array(self._records).reshape(-1, 4).T.copy()
        with np.errstate(divide="ignore"):
            beta = loss / (1.0 - loss)
        is_complete = self.rounds >= (self.total or 0)
        outcome = self.outcome or ("complete" if is_complete else "interrupted")
        return R2History(loss, beta, normaliser, training, outcome)

    @property
    def weights(self) -> np.ndarray:
        """The weights of the members, (T,)."""
        return np.array([record[1] for record in self._records])
