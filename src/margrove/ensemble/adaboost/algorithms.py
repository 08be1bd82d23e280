"""The algorithms of the AdaBoost family: how a round updates the weights of members and rows.

All of them keep the logarithms of the weights D of the rows. They differ in the *answers* of a
member, which are its predictions for rows, and in the update. For y in -1, +1 and the answer h or f
for a row:

    samme, m1, discrete   labels. eps is the total weight of the wrong rows, and the member has

                              beta = 1/2 ln((1 - eps) / eps),     D <- D exp(-beta y h) / Z

                          With more classes y h is +1 for a right answer and -1 for a wrong one
                          (M1). SAMME adds 1/2 ln(K - 1) to beta, so a member only needs to be
                          better than random guessing among the K classes.
    real                  class probabilities p: f = 1/2 ln(p / (1 - p)), D <- D exp(-y f) / Z
    gentle                numbers, the least squares fit f of y with weights D; D <- D exp(-y f) / Z
    logit                 numbers, the least squares fit f of the working response of logistic
                          regression, a Newton step; f / 2 is added to the scores

The weight of a member is 2 beta, as in scikit-learn's AdaBoostClassifier.
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

NO_BETTER = 1e-10  # an edge over chance this small may be rounding error
LARGEST_WEIGHT = 1e290  # sums of many such weights are still finite
_LARGEST_RATE = 1e280
_LEAST_WEIGHT = 1e-290  # keeps rows that are always right in the data
_LEAST_SHARE = np.finfo(float).eps
_LARGEST_RESPONSE = 4.0  # limit of the working response, which is large for confident mistakes
_LEAST_SPREAD = 1e-10


@dataclass(frozen=True)
class Round:
    """The result of a round.

    error        the weighted error of the member
    weight       the weight of the member
    gains        what is added to the logarithms of the weights, (n,) or (n, n_machines)
    normaliser   Z, the sum of the new weights
    """

    error: float
    weight: float
    gains: np.ndarray
    normaliser: float


@dataclass(frozen=True)
class Task:
    """The input of the learner: weights with sum one and, for regression, targets; both have shape
    (n_machines, n)."""

    weights: np.ndarray
    targets: np.ndarray | None


class Rule(ABC):
    """An algorithm for K classes; `labels` int64 (n,) are the codes of the training rows.

    answers      the kind of predictions that it needs from members
    n_machines   the number of members in a round: K if members fit numbers for K > 2 classes
    chance       the error of random guessing, at which a member is useless
    """

    answers: Answers = "labels"
    chance = 1.0

    def __init__(self, labels: np.ndarray, n_classes: int, learning_rate: float) -> None:
        self.labels, self.n_classes = labels, n_classes
        self.learning_rate = min(learning_rate, _LARGEST_RATE)
        self.n_machines = 1

    @abstractmethod
    def start(self, weights: np.ndarray) -> np.ndarray:
        """The logarithms of the weights in the first round."""

    @abstractmethod
    def task(self, logs: np.ndarray) -> Task:
        """The weights and targets of the next round."""

    @abstractmethod
    def round_of(self, answers: np.ndarray, task: Task) -> Round:
        """The result of a round from the answers of its members for the training rows."""

    @abstractmethod
    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        """The contribution of a member to the scores of the classes, (n, K)."""

    def probabilities(self, scores: np.ndarray, total: float) -> np.ndarray:
        """Class probabilities from scores; `total` is the sum of the weights of the members.

        For two classes with scores -F and F this is 1 / (1 + exp(-2 F)), the estimate of both the
        exponential and the logistic loss.
        """
        return _softmax(scores)


class VotingRule(Rule):
    """Members vote for labels: discrete AdaBoost, M1, SAMME."""

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

    def round_of(self, answers: np.ndarray, task: Task) -> Round:
        wrong = answers != self.labels
        error = float(task.weights[0][wrong].sum())
        weight = self.weight_of(error)
        beta = 0.5 * weight
        normaliser = (1.0 - error) * math.exp(-beta) + error * math.exp(min(beta, 700.0))
        return Round(error, weight, np.where(wrong, weight, 0.0), normaliser)

    def weight_of(self, error: float) -> float:
        """The weight of a member with this error. It is 1 without errors: no member follows."""
        if error <= 0.0:
            return 1.0
        odds = math.log((1.0 - error) / error)
        return min(self.learning_rate * (odds + self.bonus), LARGEST_WEIGHT)

    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        others = -1.0 / (self.n_classes - 1.0) if self.n_classes > 1 else 0.0
        scores = np.full((len(answers), self.n_classes), weight * others)
        scores[np.arange(len(answers)), answers] = weight
        return scores

    def probabilities(self, scores: np.ndarray, total: float) -> np.ndarray:
        """The softmax of the shares of the votes, as in scikit-learn."""
        if self.n_classes == 1:
            return np.ones((len(scores), 1))
        if self.n_classes == 2:
            half = 0.5 * (scores[:, 1] - scores[:, 0]) / total
            return _softmax(np.stack([-half, half], axis=1))
        return _softmax(scores / total / (self.n_classes - 1.0))


class _Additive(Rule):
    """Members add numbers to a score for each class, or to one score for two classes."""

    def start(self, weights: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        return logs if self.n_machines == 1 else np.repeat(logs[:, None], self.n_machines, axis=1)

    @property
    def signs(self) -> np.ndarray:
        """The labels as +1 and -1, (n, n_machines): for the second class, or for each class."""
        if self.n_machines == 1:
            return np.where(self.labels == self.n_classes - 1, 1.0, -1.0)[:, None]
        return np.where(self.labels[:, None] == np.arange(self.n_classes), 1.0, -1.0)

    def _expand(self, scores: np.ndarray) -> np.ndarray:
        """The single score of two classes as a score for each class."""
        return np.concatenate([-scores, scores], axis=1) if self.n_classes == 2 else scores


class RealRule(_Additive):
    """Members predict class probabilities."""

    answers: Answers = "shares"

    def task(self, logs: np.ndarray) -> Task:
        return Task(normalised_weights(logs)[None], None)

    def round_of(self, answers: np.ndarray, task: Task) -> Round:
        n = len(self.labels)
        scores = self.scores(answers, 1.0)
        score_of_label = scores[np.arange(n), self.labels]
        # y'f / K with y = 1 for the class and -1 / (K - 1) for the others; for two classes y f.
        gains = _bounded(-score_of_label / max(self.n_classes - 1.0, 1.0))
        wrong = np.argmax(answers, axis=1) != self.labels
        error = float(task.weights[0][wrong].sum())
        return Round(error, 1.0, gains, normaliser_of(task.weights[0], gains))

    def scores(self, answers: np.ndarray, weight: float) -> np.ndarray:
        logs = np.log(np.maximum(answers, _LEAST_SHARE))
        factor = min(weight * self.learning_rate * (self.n_classes - 1.0), LARGEST_WEIGHT)
        if self.n_classes == 2:
            half = 0.5 * factor * (logs[:, 1] - logs[:, 0])
            return np.stack([-half, half], axis=1)
        centred: np.ndarray = factor * (logs - logs.mean(axis=1, keepdims=True))
        return centred

    def probabilities(self, scores: np.ndarray, total: float) -> np.ndarray:
        """For a single member these are its own probabilities."""
        return _softmax(scores / max(self.n_classes - 1.0, 1.0))


class GentleRule(_Additive):
    """Members are least squares fits of +1 and -1; one for each class of more than two."""

    answers: Answers = "numbers"

    def __init__(self, labels: np.ndarray, n_classes: int, learning_rate: float) -> None:
        super().__init__(labels, n_classes, learning_rate)
        self.n_machines = n_classes if n_classes > 2 else 1

    def task(self, logs: np.ndarray) -> Task:
        logs = logs.reshape(len(self.labels), -1)
        weights = np.stack([normalised_weights(column) for column in logs.T])
        return Task(weights, self.signs.T)

    def round_of(self, answers: np.ndarray, task: Task) -> Round:
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
    """Members are Newton steps of logistic regression.

    It keeps the scores, (n, n_machines), instead of the logarithms of the weights.
    """

    answers: Answers = "numbers"

    def __init__(self, labels: np.ndarray, n_classes: int, learning_rate: float) -> None:
        super().__init__(labels, n_classes, learning_rate)
        self.n_machines = n_classes if n_classes > 2 else 1
        self._sample_weight = np.ones(len(labels))

    def start(self, weights: np.ndarray) -> np.ndarray:
        self._sample_weight = weights / weights.sum()
        return np.zeros((len(self.labels), self.n_machines))

    def task(self, logs: np.ndarray) -> Task:
        shares = expit(2.0 * logs) if self.n_machines == 1 else _softmax(logs)
        is_positive = self.signs > 0
        spread = np.maximum(shares * (1.0 - shares), _LEAST_SPREAD)
        response = np.where(is_positive, 1.0 / np.maximum(shares, _LEAST_SPREAD),
                            -1.0 / np.maximum(1.0 - shares, _LEAST_SPREAD))  # fmt: skip
        response = np.clip(response, -_LARGEST_RESPONSE, _LARGEST_RESPONSE)
        weights = self._sample_weight[:, None] * spread
        return Task((weights / weights.sum(axis=0)).T, response.T)

    def round_of(self, answers: np.ndarray, task: Task) -> Round:
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
    """Weights float64 (n,) with sum one, from their logarithms."""
    weights = np.maximum(np.exp(logs - logs.max()), _LEAST_WEIGHT)
    normalised: np.ndarray = weights / weights.sum()
    return normalised


def normaliser_of(weights: np.ndarray, gains: np.ndarray) -> float:
    """Z: the sum of weights * exp(gains), where the weights have sum one."""
    largest = float(gains.max())
    return float((weights * np.exp(gains - largest)).sum() * math.exp(min(largest, 700.0)))


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return shares
