"""Boosting, round by round: two processes for `slices.drive`, and the record that they leave.

`Boosting` runs any rule with any learner; `StumpBoosting` runs votes of stumps in compiled code.
Both give the same: members, and a `BoostingHistory`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from margrove._runtime import one_of, step_capacity
from margrove.ensemble.adaboost.algorithms import NO_BETTER, Rule, VotingRule
from margrove.ensemble.adaboost.member_states import members_like, stumps_like, values_of_members
from margrove.ensemble.adaboost.stumps import CHANCE, PERFECT, RUNNING, StumpBooster
from margrove.ensemble.adaboost.weak_learners import Learner

__all__ = ["Boosting", "BoostingHistory", "BoostingRound", "Outcome", "StumpBoosting", "Watched",
           "history_of"]  # fmt: skip

Outcome = Literal["complete", "perfect", "no better than chance", "early stopping", "interrupted"]
_OUTCOMES = get_args(Outcome)


@dataclass(frozen=True)
class BoostingRound:
    """An elementary step, for listeners: round `number` (from 1), its weighted error, the weight of
    its member (beta of the lectures is half of it), the training error so far."""

    number: int
    error: float
    weight: float
    training_error: float


@dataclass(frozen=True)
class BoostingHistory:
    """What happened in each of T rounds; arrays float64 (T,).

    error              eps, the weight of the rows that the round's member gets wrong
    beta               1/2 ln((1 - eps) / eps), times the learning rate; half of what scikit-learn
                       calls the weight of the member. NaN where members have none.
    normaliser         Z, by which the new weights were divided
    edge               gamma = 1/2 - eps
    training_error     of all members so far
    bound              the product of the Z so far, which the training error cannot exceed; NaN
                       where that does not apply: for logit, and of more than two classes for all
                       but M1
    edge_bound         exp(-2 sum gamma^2), which the bound cannot exceed with learning_rate=1; NaN
                       where it does not apply
    validation_error   None without rows to validate on
    outcome            why there are no more rounds: "complete" (n_estimators were asked for),
                       "perfect" (a member made no mistake), "no better than chance" (a member was
                       not, and was left out), "early stopping", "interrupted"
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
    """Work out what follows from errors and weights; Z too, where members vote."""
    beta, edge = np.full(len(error), np.nan), 0.5 - error
    applies = rule.n_classes <= 2
    is_greedy = False  # whether each round makes Z as small as it can be
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
    nothing = np.full(len(error), np.nan)
    return BoostingHistory(
        error=error,
        beta=beta,
        normaliser=normaliser,
        edge=edge,
        training_error=training_error,
        bound=bound if applies else nothing,
        edge_bound=np.exp(-2.0 * np.cumsum(edge**2)) if is_greedy else nothing,
        validation_error=validation_error,
        outcome=outcome,
    )


class Watched:
    """Rows that are only looked at: the error of all members so far on them, round by round."""

    def __init__(self, rule: Rule, rows: Any, labels: np.ndarray, weight: np.ndarray) -> None:
        self._rule, self.rows, self._labels = rule, rows, labels
        self._weight = weight / weight.sum()
        self._scores = self._scores_before = np.zeros((len(labels), rule.n_classes))
        self.errors: list[float] = []

    def look(self, answers: np.ndarray, t: int, weight: float) -> None:
        """At what member t says of the rows; once more, where an interrupt came in between."""
        before = self._scores if len(self.errors) == t else self._scores_before
        scores = before + self._rule.scores(answers, weight)
        wrong = np.argmax(scores, axis=1) != self._labels
        errors = [*self.errors[:t], float(self._weight[wrong].sum())]
        self._scores_before, self._scores, self.errors = before, scores, errors

    @property
    def best(self) -> int:
        """The number of rounds of the smallest error, the first of equals."""
        return int(np.argmin(self.errors)) + 1 if self.errors else 0

    def is_stale(self, patience: int | None) -> bool:
        """Whether there was no better round for so long; never, if nobody has set a limit."""
        return patience is not None and len(self.errors) - self.best >= patience


class Boosting:
    """Any rule with any learner."""

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
        watched: Watched | None = None,
        patience: int | None = None,
    ) -> None:
        self.total: int | None = n_rounds
        self.rule, self._learner, self.members = rule, learner, members
        self._weights = weights / weights.sum()
        self._logs = rule.start(weights)
        self._scores = np.zeros((len(weights), rule.n_classes))
        self._task: Any = None
        self.watched, self._patience = watched, patience
        self.outcome: Outcome | None = None
        self._records: tuple[tuple[float, float, float, float], ...] = ()
        self._given_rows = rows
        self._hear_again(members, 0)

    def _hear_again(self, members: Any, first: int) -> None:
        """What members of an earlier fit say, from the round `first` on."""
        for t in range(first, len(members)):
            task = self.rule.task(self._logs)
            self._conclude(members.answers(self._given_rows, t), task, members, t)
        self._n_told = len(members)

    def state(self) -> dict[str, Any]:
        return {"members": values_of_members(self.members, self._learner), "outcome": self.outcome}

    def restore(self, state: dict[str, Any]) -> None:
        """All else follows from the members."""
        n_features = int(self._given_rows.shape[1])
        members = members_like(self.members, state["members"], self._learner, n_features)
        self._hear_again(members, self.rounds)
        self.outcome = one_of(state["outcome"], [None, *_OUTCOMES], "outcome")

    @property
    def rounds(self) -> int:
        return len(self._records)

    @property
    def finished(self) -> bool:
        return self.outcome is not None or self.rounds >= (self.total or 0)

    def advance(self, work: float) -> float:
        """Let the learner go on; conclude the round when it is done."""
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
        found = rule.hear(answers, task)
        is_voting = isinstance(rule, VotingRule)
        if is_voting and found.error > 0.0 and found.error >= rule.chance - NO_BETTER:
            self.outcome = "no better than chance"
            return
        scores = self._scores + rule.scores(answers, found.weight)
        wrong = np.argmax(scores, axis=1) != rule.labels
        error = float(self._weights[wrong].sum())
        if self.watched is not None:
            self.watched.look(members.answers(self.watched.rows, t), t, found.weight)
        self._logs, self._scores = self._logs + _like(found.gains, self._logs), scores
        # The last step, and one: an interrupt finds the round done, or not begun.
        self.members, self._records = members, (
            *self._records, (found.error, found.weight, found.normaliser, error)
        )  # fmt: skip
        if is_voting and found.error <= 0.0:
            self.outcome = "perfect"
        elif self.watched is not None and self.watched.is_stale(self._patience):
            self.outcome = "early stopping"

    def read_steps(self) -> list[Any]:
        new = self._records[self._n_told :]
        first, self._n_told = self._n_told, len(self._records)
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
        """Of the members."""
        return np.array([record[1] for record in self._records])


class StumpBoosting:
    """Votes of stumps, by `StumpBooster`. `make(stumps)` gives the members; `n_values` says how
    many values each feature has."""

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
        watched: Watched | None = None,
        patience: int | None = None,
    ) -> None:
        self.total: int | None = n_rounds
        self.rule, self._booster, self._make = rule, booster, make
        self._n_values = n_values
        self._one_by_one = one_by_one or watched is not None or step_capacity() > 0
        self.watched, self._patience = watched, patience
        self.outcome: Outcome | None = None
        self._n_told = booster.rounds
        self._n_looked = 0
        self._take_stock()

    @property
    def rounds(self) -> int:
        return self._booster.rounds

    @property
    def finished(self) -> bool:
        return self.outcome is not None or self.rounds >= (self.total or 0)

    def state(self) -> dict[str, Any]:
        found = self._booster.stumps.part(self.rounds)
        return {"stumps": found._asdict(), "outcome": self.outcome}

    def restore(self, state: dict[str, Any]) -> None:
        """Go through the rounds once more."""
        found = stumps_like(state["stumps"], self._n_values, self.rule.n_classes)
        n_new = len(found.feature) - self.rounds
        if n_new > 0:
            self._booster.stumps = found
            self._booster.advance(n_new, replayed=True)
        self._take_stock()
        self._n_told = self.rounds
        self.outcome = one_of(state["outcome"], [None, *_OUTCOMES], "outcome")

    @property
    def members(self) -> Any:
        return self._make(self._booster.stumps.part(self.rounds))

    @property
    def weights(self) -> np.ndarray:
        """Of the stumps."""
        return self._booster.stumps.weight[: self.rounds].copy()

    def advance(self, work: float) -> float:
        cost = self._booster.cost_of_round
        wanted = 1 if self._one_by_one else max(1, int(work / cost))
        before = self.rounds
        self._booster.advance(min(wanted, (self.total or 0) - before))
        self._take_stock()
        return max(1, self.rounds - before) * cost

    def _take_stock(self) -> None:
        if self.watched is not None and self.rounds > self._n_looked:
            first = self._n_looked
            new = self._make(self._booster.stumps.part(self.rounds, first))
            for k in range(len(new)):
                answers = new.answers(self.watched.rows, k)
                self.watched.look(answers, first + k, float(new.found.weight[k]))
                self._n_looked = first + k + 1
        if self._booster.outcome != RUNNING:
            names: dict[int, Outcome] = {PERFECT: "perfect", CHANCE: "no better than chance"}
            self.outcome = names[self._booster.outcome]
        elif self.watched is not None and self.watched.is_stale(self._patience):
            self.outcome = "early stopping"

    def read_steps(self) -> list[Any]:
        stumps, first = self._booster.stumps, self._n_told
        self._n_told = self.rounds
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
        self._take_stock()  # which an interrupt may have cut short
        found = self._booster.stumps.part(self.rounds)
        return history_of(self.rule, found.error, found.weight, None, found.training_error,
                          _errors(self), _outcome(self))  # fmt: skip


def _like(gains: np.ndarray, logs: np.ndarray) -> np.ndarray:
    return gains.reshape(logs.shape)


def _errors(process: Boosting | StumpBoosting) -> np.ndarray | None:
    return None if process.watched is None else np.array(process.watched.errors[: process.rounds])


def _outcome(process: Boosting | StumpBoosting) -> Outcome:
    if process.outcome is not None:
        return process.outcome
    return "complete" if process.rounds >= (process.total or 0) else "interrupted"
