"""Estimator: AdaBoostClassifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_labels, check_weights
from margrove._runtime import run_tiles
from margrove.ensemble.adaboost.algorithms import ALGORITHMS, Rule, VotingRule, rule_of
from margrove.ensemble.adaboost.boosted_ensemble import BOOSTING_PARAMETERS
from margrove.ensemble.adaboost.classifier_training import OTHER_NAMES, ClassifierTraining
from margrove.ensemble.adaboost.members import (
    EstimatorMembers,
    StumpMembers,
    TreeMembers,
    rows_at_once,
)
from margrove.exceptions import InvalidDataError
from margrove.grove.read import shown
from margrove.grove.serve import TreeArrays, TreeSum, tree_sum

__all__ = ["AdaBoostClassifier"]

_COUNT = Interval(Integral, 1, None, closed="left")


class AdaBoostClassifier(ClassifierMixin, ClassifierTraining):
    """A sequence of weak classifiers, each trained with more weight on the mistakes before it.

    A drop-in for `sklearn.ensemble.AdaBoostClassifier`. Stumps and trees of this library are grown
    on one binned table for all rounds; the histograms of stumps are updated with the misclassified
    rows only. `history_` records each round.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The weak learner. None is a decision tree of depth one, a stump. Any scikit-learn estimator
        is possible; one without `sample_weight` gets samples drawn with the weights. "gentle" and
        "logit" need a regressor, "real" a classifier with `predict_proba`.
        `DecisionTreeClassifier(max_depth=1, criterion="error")` is the stump of the smallest
        weighted error.
    n_estimators : int, default=50
        Maximum number of rounds.
    learning_rate : float, default=1.0
        Factor on the weight of each member.
    algorithm : {"samme", "discrete", "m1", "real", "gentle", "logit"}, default="samme"
        For two classes the first three are the same, textbook AdaBoost. "discrete" supports two
        classes only. For more classes, "m1" needs members with an error below one half, and
        "samme" members better than random guessing. "real" uses the class probabilities of the
        members; "gentle" and "logit" fit numbers, for each class if there are more than two. See
        `margrove.ensemble.adaboost.algorithms`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the samples, and of the random states of the members.
    resample : bool, default=False
        Draw samples with the weights even if the estimator supports weights.
    early_stopping : bool or "cv", default=False
        True: stop when the error on validation rows has not improved for `n_iter_no_change` rounds,
        and keep the rounds up to the best. "cv": find the number of rounds by cross-validation
        first, then train on all rows.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping uses for validation, unless `fit` gets `X_val`.
    n_iter_no_change : int, default=20
        Rounds without improvement after which to stop.
    cv : int, splitter or iterable of splits, default=5
        Folds of the cross-validation of `early_stopping="cv"`.
    warm_start : bool, default=False
        Continue from the members of the last fit, with the same data.
    n_jobs : int or None, default=None
        Number of threads for stumps and trees of this library; None means all permitted cores.
    max_time : float or None, default=None
        Seconds after which boosting ends.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the rounds done so far with a warning.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    estimators_ : sequence of estimators
        The members. If a round has a member for each class, lists of these.
    estimator_ : estimator
        The estimator that was cloned.
    estimator_weights_ : ndarray of shape (n_members,)
        Scaled as in scikit-learn: twice the beta of the textbooks.
    estimator_errors_ : ndarray of shape (n_members,)
        The weighted errors.
    history_ : BoostingHistory
        For each round: error, beta, normaliser, edge, training error and its bound, validation
        error; and why boosting stopped.
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    categories_ : dict
        Labels of each categorical column, if trees of this library are grown on one table.
    feature_importances_ : ndarray of shape (n_features,)
        The weighted mean over the members, if they have feature importances.
    cv_errors_ : ndarray of shape (n_rounds,)
        With `early_stopping="cv"`: the mean error of the folds after each round.

    Examples
    --------
    >>> from margrove import AdaBoostClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=20).fit(X, y == 1)
    >>> bool(model.history_.training_error[-1] <= model.history_.bound[-1])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = BOOSTING_PARAMETERS | {
        "algorithm": [StrOptions(set(ALGORITHMS) | set(OTHER_NAMES))],
        "early_stopping": ["boolean", StrOptions({"cv"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [_COUNT],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        algorithm: str = "samme",
        random_state: Any = None,
        resample: bool = False,
        early_stopping: bool | Literal["cv"] = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        cv: Any = 5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.algorithm = algorithm
        self.random_state = random_state
        self.resample = resample
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.cv = cv
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    # -- prediction --

    def _rule(self) -> Rule:
        """The algorithm of the fit, for prediction."""
        return self._rule_for(np.empty(0, np.int64))

    def _codes(self, y: Any, n_rows: int) -> np.ndarray:
        labels = check_labels(y, n_rows)
        codes = labels.codes_among(self.classes_)
        if (codes < 0).any():
            unknown = labels.classes[labels.codes[np.argmax(codes < 0)]]
            raise InvalidDataError(
                f"y has {unknown!r}, which is not among the classes of the model, "
                f"{self.classes_.tolist()}."
            )
        return codes

    def _rule_for(self, labels: np.ndarray) -> Rule:
        """The algorithm of the fit, even if parameters have been changed since."""
        fitted = self._circumstances
        return rule_of(fitted["algorithm"], labels, self.n_classes_, fitted["learning_rate"])

    def _staged_scores(self, X: Any) -> Iterator[tuple[np.ndarray, float]]:
        """(scores of the classes (n, K), sum of the members' weights) after each round."""
        rows, rule, total = self._rows(X), self._rule(), 0.0
        scores = np.zeros((rows.shape[0], self.n_classes_))
        for t, weight in enumerate(self.estimator_weights_):
            scores = scores + rule.scores(self._members.answers(rows, t), float(weight))
            total += float(weight)
            yield scores, total

    def _scores(self, X: Any) -> tuple[np.ndarray, float]:
        """(scores, sum of the weights) after the last round."""
        rows, rule, weights = self._rows(X), self._rule(), self.estimator_weights_
        total, n = float(weights.sum()), rows.shape[0]
        if isinstance(self._members, StumpMembers):
            votes = self._members.votes(
                rows, weights, self.n_classes_, self._threads_to_predict(rows)
            )
            others = max(self.n_classes_ - 1.0, 1.0)
            return votes - (total - votes) / others, total
        scores = np.zeros((n, self.n_classes_))
        size = rows_at_once(rows.shape[1]) if isinstance(self._members, TreeMembers) else max(n, 1)

        def add_up(tile: int) -> None:
            chosen = slice(tile * size, (tile + 1) * size)
            for t, weight in enumerate(weights):
                answers = self._members.answers(rows[chosen], t)
                scores[chosen] += rule.scores(answers, float(weight))

        run_tiles(add_up, -(-n // size), self._threads_to_predict(rows))
        return scores, total

    def _decisions(self, scores: np.ndarray, total: float) -> np.ndarray:
        if isinstance(self._rule(), VotingRule):
            scores = scores / total
        elif self.n_classes_ == 2:
            scores = scores / 2.0
        return scores[:, 1] - scores[:, 0] if self.n_classes_ == 2 else scores

    def _tree_sum(self, function: str) -> TreeSum:
        """The decision function as a sum of trees; see `TreeSum`."""
        check_is_fitted(self, "estimator_weights_")
        return tree_sum(
            self,
            self._summands(function),
            function,
            is_single=self.n_classes_ <= 2,
            answer=self.decision_function,
        )

    def _summands(self, function: str) -> Iterator[TreeArrays]:
        """The trees of all rounds, with what their nodes add to the decision function as values."""
        members, rule = self._members, self._rule()
        if isinstance(members, EstimatorMembers):
            raise ValueError(
                f"{function} takes an AdaBoostClassifier of stumps or trees that were grown on one "
                f"table, but this one has members of type {shown(type(self.estimator_).__name__)} "
                "that were fitted one by one. Use resample=False and a decision tree of margrove "
                "without class_weight, early_stopping, split='multiway' or splitter='oblique'; or "
                "pass single members."
            )
        total = float(self.estimator_weights_.sum())
        for t, weight in enumerate(self.estimator_weights_.tolist()):
            trees = [member.arrays_ for member in members.estimators(t)]
            for k, tree in enumerate(trees):
                if rule.answers == "labels":
                    answers = np.argmax(tree.value, axis=1)
                elif rule.answers == "shares":
                    answers = tree.value
                else:
                    answers = np.zeros((len(tree), len(trees)))
                    answers[:, k] = tree.value[:, 0]
                added = self._decisions(rule.scores(answers, weight), total)
                yield replace(tree, value=np.ascontiguousarray(added.reshape(len(tree), -1)))

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        labels: np.ndarray = self.classes_[np.argmax(scores, axis=1)]
        return labels

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of each class, or of the second of two classes.

        For voting members it is scaled as in scikit-learn; for others it is the sum F.
        """
        return self._decisions(*self._scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest score; the first of equal ones."""
        return self._labels(self._scores(X)[0])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_samples, n_classes).

        For voting members this is the softmax of scikit-learn; for others the estimate of their
        loss.
        """
        scores, total = self._scores(X)
        return self._rule().probabilities(scores, total)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """`decision_function` after each round."""
        for scores, total in self._staged_scores(X):
            yield self._decisions(scores, total)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict` after each round."""
        for scores, _ in self._staged_scores(X):
            yield self._labels(scores)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """`predict_proba` after each round."""
        for scores, total in self._staged_scores(X):
            yield self._rule().probabilities(scores, total)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """The accuracy after each round."""
        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def margins(self, X: Any, y: Any, n_rounds: int | None = None) -> np.ndarray:
        """The margin of each row after `n_rounds`: positive if it is right, negative if wrong.

        For voting members: the share of votes for the right class minus that of the best other
        class, from -1 to 1. For others: half the difference of these scores.
        """
        if n_rounds is not None and not 1 <= n_rounds <= len(self):
            raise ValueError(f"n_rounds must be in 1 .. {len(self)}. Got {n_rounds} instead.")
        stages = self._staged_scores(X)
        scores, total = next(stages)
        for _ in range(1, n_rounds or len(self)):
            scores, total = next(stages)
        codes = self._codes(y, len(scores))
        all_rows = np.arange(len(scores))
        right = scores[all_rows, codes]
        others = scores.copy()
        others[all_rows, codes] = -np.inf
        difference = right - others.max(axis=1) if self.n_classes_ > 1 else right
        if not isinstance(self._rule(), VotingRule):
            return 0.5 * difference
        margins: np.ndarray = difference / total * max(self.n_classes_ - 1.0, 1.0) / self.n_classes_
        return margins

    def staged_weights(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[np.ndarray]:
        """The weights D of the training rows before each round, and after the last.

        X, y and sample_weight are those of the fit. The weights (n_samples,) have sum one. If a
        round has a member for each class, they are (n_samples, n_classes), and each column has.
        """
        rows = self._rows(X)
        codes = self._codes(y, rows.shape[0])
        weight = check_weights(sample_weight, rows.shape[0])
        rule = self._rule_for(codes)
        logs = rule.start(weight)
        for t in range(len(self)):
            task = rule.task(logs)
            yield task.weights[0] if len(task.weights) == 1 else task.weights.T
            gains = rule.round_of(self._members.answers(rows, t), task).gains
            logs = logs + gains.reshape(logs.shape)
        task = rule.task(logs)
        yield task.weights[0] if len(task.weights) == 1 else task.weights.T
