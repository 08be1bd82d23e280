"""AdaBoost.R2 (Drucker, 1997), round by round: a process for `slices.drive`, and its record.

A member that errs by e_i on row i, and by E at most, has the losses and the average loss

    L_i = e_i / E,   (e_i / E)^2   or   1 - exp(-e_i / E)            L = sum D_i L_i

and, with beta = L / (1 - L) and the learning rate r, counts r ln(1 / beta). Rows become the lighter
the better it knew them:

    D_i <- D_i beta^(r (1 - L_i)) / Z

What is kept are the logarithms of D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from margrove._runtime import MisfitError, one_of
from margrove.ensemble.adaboost.algorithms import normalised_weights, normaliser_of
from margrove.ensemble.adaboost.member_states import members_like, values_of_members
from margrove.ensemble.adaboost.rounds import BoostingRound
from margrove.ensemble.adaboost.weak_learners import Learner
from margrove.ensemble.adaboost.weighted_medians import StagedMedians
from margrove.exceptions import InvalidDataError

__all__ = ["LOSSES", "R2Boosting", "R2History"]

LOSSES = ("linear", "square", "exponential")
_TOO_LARGE = 0.5
_LARGEST_WEIGHT = 1e300  # of a member, so that sums stay finite
_LEAST_WEIGHT = np.finfo(float).tiny  # of a row, which may come back
_CELLS_OF_RECORD = 1 << 25
_FEW_ROWS = 1024

Outcome = Literal["complete", "perfect", "loss too large", "interrupted"]


@dataclass(frozen=True)
class R2History:
    """What happened in each of T rounds; arrays float64 (T,).

    average_loss     L, of the round's member, by the weights D
    beta             L / (1 - L): the smaller, the more the member counts
    normaliser       Z, by which the new weights were divided; 1 where they stayed as they were
    training_error   the mean absolute error of all members so far; of very many rows, on those that
                     make 2^25 answers of `n_estimators` members
    outcome          why there are no more rounds: "complete" (n_estimators were asked for),
                     "perfect" (a member made no mistake), "loss too large" (the average loss of
                     a member was not below one half; it was left out unless it was the first),
                     "interrupted"
    """

    average_loss: np.ndarray
    beta: np.ndarray
    normaliser: np.ndarray
    training_error: np.ndarray
    outcome: Outcome

    def __len__(self) -> int:
        return len(self.average_loss)


class R2Boosting:
    """The rounds.

    y        float64 (n,); scale, a power of two, brings it to where sums are safe
    weight   float64 (n,), > 0
    rows     X as `members` take it, to hear again what members of an earlier fit say

    The first rows are those whose errors are recorded, if there are too many; the order must not
    mean anything.
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
        self._learner, self.members = learner, members.part(0)
        self._y, self._scaled, self._scale = y, y / scale, scale
        self._loss, self._learning_rate = loss, learning_rate
        self._logs = np.log(weight)
        self._n_looked_at = min(len(y), max(_FEW_ROWS, _CELLS_OF_RECORD // n_rounds))
        self._given = weight[: self._n_looked_at] / weight[: self._n_looked_at].sum()
        self._medians = StagedMedians(self._n_looked_at)
        self._task: np.ndarray | None = None
        self.outcome: Outcome | None = None
        self.too_large = float("nan")  # the loss that ended it
        self._records: tuple[tuple[float, float, float, float], ...] = ()
        self._given_rows = rows
        self._hear_again(members, 0)

    def _hear_again(self, members: Any, first: int) -> None:
        """What members of an earlier fit say, from the round `first` on."""
        for t in range(first, len(members)):
            if self.outcome is None:
                answers = members.answers(self._given_rows, t)
                self._conclude(answers, self._weights(), members.part(t + 1))
        self._n_told = len(members)

    def state(self) -> dict[str, Any]:
        members = values_of_members(self.members, self._learner)
        return {"members": members, "outcome": self.outcome, "too_large": self.too_large}

    def restore(self, state: dict[str, Any]) -> None:
        """All else follows from the members."""
        n_features = int(self._given_rows.shape[1])
        members = members_like(self.members, state["members"], self._learner, n_features)
        self._hear_again(members, self.rounds)
        self.outcome = one_of(state["outcome"], [None, *get_args(Outcome)], "outcome")
        self.too_large = state["too_large"]
        if not isinstance(self.too_large, float):
            raise MisfitError("too_large is no number")

    @property
    def rounds(self) -> int:
        return len(self._records)

    @property
    def finished(self) -> bool:
        return self.outcome is not None or self.rounds >= (self.total or 0)

    def advance(self, work: float) -> float:
        """Let the learner go on; conclude the round when it is done."""
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
        """D, float64 (n,)."""
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
        # The last step, and one: an interrupt finds the round done, or not begun.
        self.members, self._records = members, (
            *self._records, (average, weight, normaliser, training)
        )  # fmt: skip
        if is_perfect:
            self.outcome = "perfect"
        elif is_weak:
            self.too_large, self.outcome = average, "loss too large"

    def _losses(self, answers: np.ndarray) -> np.ndarray:
        """L_i; all zero if no row is in error."""
        errors = np.abs(answers - self._scaled)
        largest = float(errors.max())
        if not math.isfinite(largest):
            raise InvalidDataError(
                "A member's predictions for the training rows are NaN or infinite. Look at what "
                "the estimator makes of X, or use another."
            )
        if largest > 0.0:
            errors = errors / largest
        if self._loss == "square":
            return errors**2
        return -np.expm1(-errors) if self._loss == "exponential" else errors

    def _weight_of(self, average: float) -> float:
        """Of a member without errors, 1: it is the last. Of a weak one that is alone, 0."""
        if average <= 0.0:
            return 1.0
        if average >= _TOO_LARGE:
            return 0.0
        odds = math.log1p(-average) - math.log(average)
        return min(self._learning_rate * odds, _LARGEST_WEIGHT)

    def _training_error(self, answers: np.ndarray, weight: float) -> float:
        some = slice(self._n_looked_at)
        medians = self._medians.add(self.rounds, answers[some], weight)
        errors = np.abs(medians - self._scaled[some])
        return float((self._given * errors).sum()) * self._scale

    def read_steps(self) -> list[Any]:
        first, self._n_told = self._n_told, len(self._records)
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
        """Of the members."""
        return np.array([record[1] for record in self._records])
