"""The algorithms of the AdaBoost family: what a round makes of a member's answers.

All of them keep the logarithms of the weights D of the rows, and differ in what a member answers
and in what follows from it, for y in -1, +1 and a row's answer h or f:

    samme, m1, discrete   labels. eps is the weight of the wrong ones, and a member counts

                              beta = 1/2 ln((1 - eps) / eps),     D <- D exp(-beta y h) / Z

                          With more classes y h is +1 for a right answer and -1 for a wrong one
                          (M1), and SAMME adds 1/2 ln(K - 1) to beta, so that better than guessing
                          among the K classes is good enough.
    real                  shares p of the classes: f = 1/2 ln(p / (1 - p)), D <- D exp(-y f) / Z
    gentle                numbers, the least squares fit f of y under D; D <- D exp(-y f) / Z
    logit                 numbers, the least squares fit f of the working response of logistic
                          regression, a Newton step; the scores gain f / 2

The weight of a member is what scikit-learn's AdaBoostClassifier calls so: 2 beta.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

__all__ = ["ALGORITHMS", "GentleRule", "LogitRule", "RealRule", "Round", "Rule", "VotingRule",
           "normalised_weights", "normaliser_of", "rule_of"]  # fmt: skip

Answers = Literal["labels", "shares", "numbers"]
ALGORITHMS = ("discrete", "samme", "m1", "real", "gentle", "logit")

NO_BETTER = 1e-10  # an edge over chance that rounding could have made
LARGEST_WEIGHT = 1e290  # which sums of many stay finite with
_LARGEST_RATE = 1e280
_LEAST_WEIGHT = 1e-290  # a row that nobody has got wrong is still there
_LEAST_SHARE = np.finfo(float).eps
_LARGEST_RESPONSE = 4.0  # of logistic regression where it is sure of what is wrong
_LEAST_SPREAD = 1e-10


@dataclass(frozen=True)
class Round:
    """What came of a round: the weighted error, the weight of the member, what is added to the
    logarithms of the weights (n,) or (n, machines), and Z, the sum of the new weights."""

    error: float
    weight: float
    gains: np.ndarray
    normaliser: float


@dataclass(frozen=True)
class Task:
    """What the learner is given: weights that sum to one and, for numbers, targets; (machines, n)
    each."""

    weights: np.ndarray
    targets: np.ndarray | None


class Rule(ABC):
    """An algorithm for K classes, whose codes are `labels`.

    answers      what it asks of a member
    n_machines   how many members a round has: K for numbers of more than two classes
    chance       the error from which on a member is of no use
    """

    answers: Answers = "labels"
    chance = 1.0

    def __init__(self, labels: np.ndarray, n_classes: int, learning_rate: float) -> None:
        self.labels, self.n_classes = labels, n_classes
        self.learning_rate = min(learning_rate, _LARGEST_RATE)
        self.n_machines = 1

    @abstractmethod
    def start(self, weights: np.ndarray) -> np.ndarray:
        """The logarithms of the weights of a first round."""

    @abstractmethod
    def task(self, logs: np.ndarray) -> Task: ...

    @abstractmethod
    def hear(self, answers: np.ndarray, task: Task) -> Round:
        """What a member said of the training rows, and what is to be made of it."""

    @abstractmethod
    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        """What a member adds to the scores of the classes, (n, K)."""

    def probabilities(self, scores: np.ndarray, total: float) -> np.ndarray:
        """From scores of which the members weigh `total` in all.

        Of two classes with scores -F and F that is 1 / (1 + exp(-2 F)), which both the exponential
        and the logistic loss estimate.
        """
        return _softmax(scores)


class VotingRule(Rule):
    """Labels are voted for: discrete AdaBoost, M1, SAMME."""

    def __init__(
        self, labels: np.ndarray, n_classes: int, learning_rate: float, *, samme: bool
    ) -> None:
        super().__init__(labels, n_classes, learning_rate)
        self.bonus = math.log(n_classes - 1.0) if samme and n_classes > 2 else 0.0
        self.chance = 1.0 - 1.0 / n_classes if samme and n_classes > 1 else 0.5

    def start(self, weights: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(weights)

    def task(self, logs: np.ndarray) -> Task:
        return Task(normalised_weights(logs)[None], None)

    def hear(self, answers: np.ndarray, task: Task) -> Round:
        wrong = answers != self.labels
        error = float(task.weights[0][wrong].sum())
        weight = self.weight_of(error)
        beta = 0.5 * weight
        normaliser = (1.0 - error) * math.exp(-beta) + error * math.exp(min(beta, 700.0))
        return Round(error, weight, np.where(wrong, weight, 0.0), normaliser)

    def weight_of(self, error: float) -> float:
        """Of a member without errors, 1: it is the last."""
        if error <= 0.0:
            return 1.0
        odds = math.log((1.0 - error) / error)
        return min(self.learning_rate * (odds + self.bonus), LARGEST_WEIGHT)

    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        others = -1.0 / (self.n_classes - 1.0) if self.n_classes > 1 else 0.0
        found = np.full((len(answers), self.n_classes), weight * others)
        found[np.arange(len(answers)), answers] = weight
        return found

    def probabilities(self, scores: np.ndarray, total: float) -> np.ndarray:
        """As scikit-learn's: the softmax of the shares of the votes."""
        if self.n_classes == 1:
            return np.ones((len(scores), 1))
        if self.n_classes == 2:
            half = 0.5 * (scores[:, 1] - scores[:, 0]) / total
            return _softmax(np.stack([-half, half], axis=1))
        return _softmax(scores / total / (self.n_classes - 1.0))


class _Additive(Rule):
    """Members add to a score of each class, or to one score for two classes."""

    def start(self, weights: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        return logs if self.n_machines == 1 else np.repeat(logs[:, None], self.n_machines, axis=1)

    @property
    def signs(self) -> np.ndarray:
        """+1 and -1, (n, machines): of the second class, or of each."""
        if self.n_machines == 1:
            return np.where(self.labels == self.n_classes - 1, 1.0, -1.0)[:, None]
        return np.where(self.labels[:, None] == np.arange(self.n_classes), 1.0, -1.0)

    def _expand(self, found: np.ndarray) -> np.ndarray:
        """One score of two classes as a score of each."""
        return np.concatenate([-found, found], axis=1) if self.n_classes == 2 else found


class RealRule(_Additive):
    """Members answer with the shares of the classes."""

    answers: Answers = "shares"

    def task(self, logs: np.ndarray) -> Task:
        return Task(normalised_weights(logs)[None], None)

    def hear(self, answers: np.ndarray, task: Task) -> Round:
        n = len(self.labels)
        scores = self.scores(answers, 1.0)
        own = scores[np.arange(n), self.labels]
        # y'f / K with y = 1 for the class and -1 / (K - 1) for the others; for two classes y f.
        gains = _bounded(-own / max(self.n_classes - 1.0, 1.0))
        wrong = np.argmax(answers, axis=1) != self.labels
        error = float(task.weights[0][wrong].sum())
        return Round(error, 1.0, gains, normaliser_of(task.weights[0], gains))

    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        logs = np.log(np.maximum(answers, _LEAST_SHARE))
        factor = min(weight * self.learning_rate * (self.n_classes - 1.0), LARGEST_WEIGHT)
        if self.n_classes == 2:
            half = 0.5 * factor * (logs[:, 1] - logs[:, 0])
            return np.stack([-half, half], axis=1)
        found: np.ndarray = factor * (logs - logs.mean(axis=1, keepdims=True))
        return found

    def probabilities(self, scores: np.ndarray, total: float) -> np.ndarray:
        """Of a single member, its own shares."""
        return _softmax(scores / max(self.n_classes - 1.0, 1.0))


class GentleRule(_Additive):
    """Members answer with the least squares fit of +1 and -1, for each class if there are more."""

    answers: Answers = "numbers"

    def __init__(self, labels: np.ndarray, n_classes: int, learning_rate: float) -> None:
        super().__init__(labels, n_classes, learning_rate)
        self.n_machines = n_classes if n_classes > 2 else 1

    def task(self, logs: np.ndarray) -> Task:
        logs = logs.reshape(len(self.labels), -1)
        weights = np.stack([normalised_weights(own) for own in logs.T])
        return Task(weights, self.signs.T)

    def hear(self, answers: np.ndarray, task: Task) -> Round:
        signs = self.signs
        gains = _bounded(-self.learning_rate * signs * answers)
        wrong = np.where(answers > 0, 1.0, -1.0) != signs
        error = float(np.mean([w[m].sum() for w, m in zip(task.weights, wrong.T, strict=True)]))
        after = [normaliser_of(w, g) for w, g in zip(task.weights, gains.T, strict=True)]
        flat = gains[:, 0] if self.n_machines == 1 else gains
        return Round(error, 1.0, flat, float(np.mean(after)))

    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        return self._expand(_bounded(weight * self.learning_rate * answers))


class LogitRule(_Additive):
    """Members answer with Newton steps of logistic regression.

    What it keeps in place of logarithms of weights are the scores, (n, machines).
    """

    answers: Answers = "numbers"

    def __init__(self, labels: np.ndarray, n_classes: int, learning_rate: float) -> None:
        super().__init__(labels, n_classes, learning_rate)
        self.n_machines = n_classes if n_classes > 2 else 1
        self._given = np.ones(len(labels))

    def start(self, weights: np.ndarray) -> np.ndarray:
        self._given = weights / weights.sum()
        return np.zeros((len(self.labels), self.n_machines))

    def task(self, logs: np.ndarray) -> Task:
        shares = expit(2.0 * logs) if self.n_machines == 1 else _softmax(logs)
        is_own = self.signs > 0
        spread = np.maximum(shares * (1.0 - shares), _LEAST_SPREAD)
        response = np.where(is_own, 1.0 / np.maximum(shares, _LEAST_SPREAD),
                            -1.0 / np.maximum(1.0 - shares, _LEAST_SPREAD))  # fmt: skip
        response = np.clip(response, -_LARGEST_RESPONSE, _LARGEST_RESPONSE)
        weights = self._given[:, None] * spread
        return Task((weights / weights.sum(axis=0)).T, response.T)

    def hear(self, answers: np.ndarray, task: Task) -> Round:
        wrong = np.where(answers > 0, 1.0, -1.0) != self.signs
        error = float(np.mean([w[m].sum() for w, m in zip(task.weights, wrong.T, strict=True)]))
        return Round(error, 1.0, self._steps(answers), float("nan"))

    def _steps(self, answers: np.ndarray) -> np.ndarray:
        if self.n_machines == 1:
            return _bounded(0.5 * self.learning_rate * answers)
        share = (self.n_classes - 1.0) / self.n_classes
        centred = answers - answers.mean(axis=1, keepdims=True)
        return _bounded(self.learning_rate * share * centred)

    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        return self._expand(weight * self._steps(answers))


def rule_of(algorithm: str, labels: np.ndarray, n_classes: int, learning_rate: float) -> Rule:
    """The rule of one of the `ALGORITHMS`."""
    if algorithm in ("discrete", "samme", "m1"):
        return VotingRule(labels, n_classes, learning_rate, samme=algorithm == "samme")
    kinds: dict[str, type[RealRule | GentleRule | LogitRule]] = {
        "real": RealRule, "gentle": GentleRule, "logit": LogitRule,
    }  # fmt: skip
    return kinds[algorithm](labels, n_classes, learning_rate)


def _bounded(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.clip(values, -LARGEST_WEIGHT, LARGEST_WEIGHT)


def normalised_weights(logs: np.ndarray) -> np.ndarray:
    """Weights float64 (n,) that sum to one, from their logarithms."""
    weights = np.maximum(np.exp(logs - logs.max()), _LEAST_WEIGHT)
    found: np.ndarray = weights / weights.sum()
    return found


def normaliser_of(weights: np.ndarray, gains: np.ndarray) -> float:
    """Z: what weights that sum to one sum to afterwards."""
    largest = float(gains.max())
    return float((weights * np.exp(gains - largest)).sum() * math.exp(min(largest, 700.0)))


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return found
