"""The rounds of the classifier: two processes for `slices.drive`, and their history.

`Boosting` runs any algorithm with any learner; `StumpBoosting` runs voting stumps in compiled code.
Both give members and a `BoostingHistory`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from margrove._runtime import one_of, step_capacity
from margrove.ensemble.adaboost.algorithms import NO_BETTER, Rule, VotingRule
from margrove.ensemble.adaboost.members import members_like, stumps_like, values_of_members
from margrove.ensemble.adaboost.stump_kernels import CHANCE, PERFECT, RUNNING
from margrove.ensemble.adaboost.stumps import StumpBooster
from margrove.ensemble.adaboost.weak_learners import Learner

__all__ = ["Boosting", "BoostingHistory", "BoostingRound", "Outcome", "StumpBoosting",
           "ValidationErrors", "history_of"]  # fmt: skip

Outcome = Literal["complete", "perfect", "no better than chance", "early stopping", "interrupted"]
_OUTCOMES = get_args(Outcome)


@dataclass(frozen=True)
class BoostingRound:
    """A step for callbacks: round `number` (from 1), its weighted error, the weight of its member
    (twice the beta of the lectures), and the training error so far."""

    number: int
    error: float
    weight: float
    training_error: float


@dataclass(frozen=True)
class BoostingHistory:
    """The record of each of T rounds; arrays float64 (T,).

    error              eps, the total weight of the rows that the member gets wrong
    beta               1/2 ln((1 - eps) / eps), times the learning rate; half the weight of the
                       member in scikit-learn. NaN if members have no weights.
    normaliser         Z, by which the new weights were divided
    edge               gamma = 1/2 - eps
    training_error     the training error of all members so far
    bound              the product of the Z so far, an upper bound of the training error; NaN if
                       that does not hold: for logit, and with more than two classes for all
                       algorithms except M1
    edge_bound         exp(-2 sum gamma^2), an upper bound of `bound` with learning_rate=1; NaN if
                       it does not hold
    validation_error   the error on validation rows; None if there are none
    outcome            why boosting stopped: "complete" (n_estimators rounds), "perfect" (a member
                       without error), "no better than chance" (the next member, which was left
                       out), "early stopping", "interrupted"
    """

    error: np.ndarray
    beta: np.ndarray
    normaliser: np.ndarray
    edge: np.ndarray
    training_error: np.ndarray
    bound: np.ndarray
    edge_bound: np.ndarray
    validation_error: np.ndarray | None
    outcome: Outcome

    def __len__(self) -> int:
        return len(self.error)


def history_of(
    rule: Rule,
    error: np.ndarray,
    weight: np.ndarray,
    normaliser: np.ndarray | None,
    training_error: np.ndarray,
    validation_error: np.ndarray | None,
    outcome: Outcome,
) -> BoostingHistory:
    """The history from errors and weights; for voting members Z is computed from them."""
    beta, edge = np.full(len(error), np.nan), 0.5 - error
    applies = rule.n_classes <= 2
    is_greedy = False  # whether each round minimises Z
    if isinstance(rule, VotingRule):
        beta = 0.5 * weight
        with np.errstate(over="ignore"):
            normaliser = (1.0 - error) * np.exp(-beta) + error * np.exp(beta)
        applies = rule.bonus == 0.0
        is_greedy = applies and rule.learning_rate == 1.0
    if normaliser is None:
        normaliser = np.full(len(error), np.nan)
    with np.errstate(over="ignore"):
        bound = np.cumprod(normaliser)
    undefined = np.full(len(error), np.nan)
    return BoostingHistory(
        error=error,
        beta=beta,
        normaliser=normaliser,
        edge=edge,
        training_error=training_error,
        bound=bound if applies else undefined,
        edge_bound=np.exp(-2.0 * np.cumsum(edge**2)) if is_greedy else undefined,
        validation_error=validation_error,
        outcome=outcome,
    )


class ValidationErrors:
    """The error on validation rows after each round."""

    def __init__(self, rule: Rule, rows: Any, labels: np.ndarray, weight: np.ndarray) -> None:
        self._rule, self.rows, self._labels = rule, rows, labels
        self._weight = weight / weight.sum()
        self._scores = self._scores_before = np.zeros((len(labels), rule.n_classes))
        self.errors: list[float] = []

    def add(self, answers: np.ndarray, t: int, weight: float) -> None:
        """Add the answers of member t; it may be added again if an interrupt came in between."""
        before = self._scores if len(self.errors) == t else self._scores_before
        scores = before + self._rule.scores(answers, weight)
        wrong = np.argmax(scores, axis=1) != self._labels
        errors = [*self.errors[:t], float(self._weight[wrong].sum())]
        self._scores_before, self._scores, self.errors = before, scores, errors

    @property
    def best(self) -> int:
        """The number of rounds with the smallest error; the first of equal ones."""
        return int(np.argmin(self.errors)) + 1 if self.errors else 0

    def is_stale(self, n_iter_no_change: int | None) -> bool:
        """Whether the last rounds did not improve the error; never without a limit."""
        return n_iter_no_change is not None and len(self.errors) - self.best >= n_iter_no_change


class Boosting:
    """The process for any algorithm with any learner.

    weights   float64 (n,), > 0, of the first round
    rows      X for the predictions of members of an earlier fit
    """

    unit = "round"
    limit = "n_estimators"

    def __init__(
        self,
        rule: Rule,
        learner: Learner,
        members: Any,
        weights: np.ndarray,
        rows: Any,
        n_rounds: int,
        *,
        validation: ValidationErrors | None = None,
        n_iter_no_change: int | None = None,
    ) -> None:
        self.total: int | None = n_rounds
        self.rule, self._learner, self.members = rule, learner, members
        self._weights = weights / weights.sum()
        self._logs = rule.start(weights)
        self._scores = np.zeros((len(weights), rule.n_classes))
        self._task: Any = None
        self.validation, self._n_iter_no_change = validation, n_iter_no_change
        self.outcome: Outcome | None = None
        self._records: tuple[tuple[float, float, float, float], ...] = ()
        self._X = rows
        self._replay(members, 0)

    def _replay(self, members: Any, first: int) -> None:
        """Repeat the rounds of existing members, from round `first`."""
        for t in range(first, len(members)):
            task = self.rule.task(self._logs)
            self._conclude(members.answers(self._X, t), task, members, t)
        self._n_reported = len(members)

    def state(self) -> dict[str, Any]:
        return {"members": values_of_members(self.members, self._learner), "outcome": self.outcome}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the members; everything else follows from them."""
        n_features = int(self._X.shape[1])
        members = members_like(self.members, state["members"], self._learner, n_features)
        self._replay(members, self.rounds)
        self.outcome = one_of(state["outcome"], [None, *_OUTCOMES], "outcome")

    @property
    def rounds(self) -> int:
        return len(self._records)

    @property
    def finished(self) -> bool:
        return self.outcome is not None or self.rounds >= (self.total or 0)

    def advance(self, work: float) -> float:
        """Advance the learner; when it is finished, conclude the round."""
        if self._task is None:
            task = self.rule.task(self._logs)
            self._learner.begin(self.rounds, task.weights, task.targets)
            self._task = task
        done = self._learner.advance(work)
        if self._learner.finished:
            answers = self._learner.answers()
            members = self._learner.add_to(self.members)
            self._conclude(answers, self._task, members, len(members) - 1)
            self._task = None
        return done

    def _conclude(self, answers: np.ndarray, task: Any, members: Any, t: int) -> None:
        rule = self.rule
        found = rule.round_of(answers, task)
        is_voting = isinstance(rule, VotingRule)
        if is_voting and found.error > 0.0 and found.error >= rule.chance - NO_BETTER:
            self.outcome = "no better than chance"
            return
        scores = self._scores + rule.scores(answers, found.weight)
        wrong = np.argmax(scores, axis=1) != rule.labels
        error = float(self._weights[wrong].sum())
        if self.validation is not None:
            self.validation.add(members.answers(self.validation.rows, t), t, found.weight)
        self._logs, self._scores = self._logs + found.gains.reshape(self._logs.shape), scores
        # A single last step: after an interrupt the round is either done or not begun.
        self.members, self._records = members, (
            *self._records, (found.error, found.weight, found.normaliser, error)
        )  # fmt: skip
        if is_voting and found.error <= 0.0:
            self.outcome = "perfect"
        elif self.validation is not None and self.validation.is_stale(self._n_iter_no_change):
            self.outcome = "early stopping"

    def read_steps(self) -> list[Any]:
        new = self._records[self._n_reported :]
        first, self._n_reported = self._n_reported, len(self._records)
        return [
            BoostingRound(first + k + 1, error, weight, training)
            for k, (error, weight, _, training) in enumerate(new)
        ]

    def figures(self) -> dict[str, float]:
        if not self._records:
            return {}
        error, _, _, training = self._records[-1]
        return {"error of the round": error, "training error": training}

    def history(self) -> BoostingHistory:
        error, weight, normaliser, training = np.array(self._records).reshape(-1, 4).T.copy()
        return history_of(self.rule, error, weight, normaliser, training, _errors(self),
                          _outcome(self))  # fmt: skip

    @property
    def weights(self) -> np.ndarray:
        """The weights of the members, (T,)."""
        return np.array([record[1] for record in self._records])


class StumpBoosting:
    """The process for voting stumps, by `StumpBooster`. `make(stumps)` gives the members;
    `n_values` is the number of different values of each feature."""

    unit = "round"
    limit = "n_estimators"

    def __init__(
        self,
        rule: VotingRule,
        booster: StumpBooster,
        make: Any,
        n_rounds: int,
        n_values: list[int],
        *,
        one_by_one: bool,
        validation: ValidationErrors | None = None,
        n_iter_no_change: int | None = None,
    ) -> None:
        self.total: int | None = n_rounds
        self.rule, self._booster, self._make = rule, booster, make
        self._n_values = n_values
        self._one_by_one = one_by_one or validation is not None or step_capacity() > 0
        self.validation, self._n_iter_no_change = validation, n_iter_no_change
        self.outcome: Outcome | None = None
        self._n_reported = booster.rounds
        self._n_validated = 0
        self._update_outcome()

    @property
    def rounds(self) -> int:
        return self._booster.rounds

    @property
    def finished(self) -> bool:
        return self.outcome is not None or self.rounds >= (self.total or 0)

    def state(self) -> dict[str, Any]:
        found = self._booster.stumps.first(self.rounds)
        return {"stumps": found._asdict(), "outcome": self.outcome}

    def restore(self, state: dict[str, Any]) -> None:
        """Repeat the rounds of the stumps in `state`."""
        found = stumps_like(state["stumps"], self._n_values, self.rule.n_classes)
        n_new = len(found.feature) - self.rounds
        if n_new > 0:
            self._booster.stumps = found
            self._booster.advance(n_new, replayed=True)
        self._update_outcome()
        self._n_reported = self.rounds
        self.outcome = one_of(state["outcome"], [None, *_OUTCOMES], "outcome")

    @property
    def members(self) -> Any:
        return self._make(self._booster.stumps.first(self.rounds))

    @property
    def weights(self) -> np.ndarray:
        """The weights of the stumps, (T,)."""
        return self._booster.stumps.weight[: self.rounds].copy()

    def advance(self, work: float) -> float:
        cost = self._booster.cost_of_round
        wanted = 1 if self._one_by_one else max(1, int(work / cost))
        before = self.rounds
        self._booster.advance(min(wanted, (self.total or 0) - before))
        self._update_outcome()
        return max(1, self.rounds - before) * cost

    def _update_outcome(self) -> None:
        if self.validation is not None and self.rounds > self._n_validated:
            first = self._n_validated
            new = self._make(self._booster.stumps.first(self.rounds, first))
            for k in range(len(new)):
                answers = new.answers(self.validation.rows, k)
                self.validation.add(answers, first + k, float(new.found.weight[k]))
                self._n_validated = first + k + 1
        if self._booster.outcome != RUNNING:
            names: dict[int, Outcome] = {PERFECT: "perfect", CHANCE: "no better than chance"}
            self.outcome = names[self._booster.outcome]
        elif self.validation is not None and self.validation.is_stale(self._n_iter_no_change):
            self.outcome = "early stopping"

    def read_steps(self) -> list[Any]:
        stumps, first = self._booster.stumps, self._n_reported
        self._n_reported = self.rounds
        return [
            BoostingRound(
                t + 1, float(stumps.error[t]), float(stumps.weight[t]),
                float(stumps.training_error[t]),
            )
            for t in range(first, self.rounds)
        ]  # fmt: skip

    def figures(self) -> dict[str, float]:
        if not self.rounds:
            return {}
        stumps, t = self._booster.stumps, self.rounds - 1
        return {
            "error of the round": float(stumps.error[t]),
            "training error": float(stumps.training_error[t]),
        }

    def history(self) -> BoostingHistory:
        self._update_outcome()  # an interrupt may have stopped it before its end
        found = self._booster.stumps.first(self.rounds)
        return history_of(self.rule, found.error, found.weight, None, found.training_error,
                          _errors(self), _outcome(self))  # fmt: skip


def _errors(process: Boosting | StumpBoosting) -> np.ndarray | None:
    return (
        None
        if process.validation is None
        else np.array(process.validation.errors[: process.rounds])
    )


def _outcome(process: Boosting | StumpBoosting) -> Outcome:
    if process.outcome is not None:
        return process.outcome
    return "complete" if process.rounds >= (process.total or 0) else "interrupted"
