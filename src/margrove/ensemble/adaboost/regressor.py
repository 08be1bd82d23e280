"""Estimator: AdaBoostRegressor."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils._tags import get_tags

from margrove._data import canonical_form, check_targets, check_weights, moderate
from margrove._runtime import run_tiles
from margrove.ensemble.adaboost.boosted_ensemble import BOOSTING_PARAMETERS, Boosted
from margrove.ensemble.adaboost.members import (
    EstimatorMembers,
    Members,
    TreeMembers,
    rows_at_once,
)
from margrove.ensemble.adaboost.r2_rounds import LOSSES, R2Boosting
from margrove.ensemble.adaboost.training_data import BoostingRows, is_plain_tree, read_rows
from margrove.ensemble.adaboost.weak_learners import AnyLearner, TreeLearner
from margrove.ensemble.adaboost.weighted_medians import StagedMedians, weighted_medians
from margrove.ensemble.bagging import with_nan_as_number
from margrove.ensemble.bootstrap import CumulativeWeights
from margrove.exceptions import ConvergenceWarning, InvalidDataError
from margrove.grove import CRITERIA, DecisionTreeRegressor
from margrove.grove.table import power_of_two_near, samples_of

__all__ = ["AdaBoostRegressor"]

_MOST_DRAWS = 2**31 - 1


@dataclass(frozen=True)
class _TrainingData:
    """A checked training set in canonical form: equal rows with equal y are merged.

    samples   int64 (n,)  the number of samples that each row represents
    n_draws   the size of samples that are drawn with the weights
    """

    rows: BoostingRows
    y: np.ndarray
    weight: np.ndarray
    samples: np.ndarray
    n_draws: int


class AdaBoostRegressor(RegressorMixin, Boosted):
    """A sequence of weak regressors, each trained with more weight on rows with large errors.

    A drop-in for `sklearn.ensemble.AdaBoostRegressor`: AdaBoost.R2 of Drucker (1997), which
    predicts the weighted median of the members. Trees of this library are grown on one binned table
    for all rounds. Neither the order of the rows nor the number of threads changes the result.
    `history_` records each round.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The weak learner. None is a `DecisionTreeRegressor(max_depth=3)`. Any scikit-learn regressor
        is possible.
    n_estimators : int, default=50
        Maximum number of rounds.
    learning_rate : float, default=1.0
        Factor on the weight of each member.
    loss : {"linear", "square", "exponential"}, default="linear"
        The loss of a member on a row, where e is the absolute error divided by the largest error:
        e, e^2, or 1 - exp(-e).
    random_state : int, RandomState, Generator or None, default=None
        Seed of the samples, and of the random states of the members.
    resample : bool, default=True
        Draw a sample with the weights for each member. False passes the weights to the members, if
        the estimator supports them.
    warm_start : bool, default=False
        Continue from the members of the last fit, with the same data.
    n_jobs : int or None, default=None
        Number of threads for trees of this library; None means all permitted cores.
    max_time : float or None, default=None
        Seconds after which boosting ends.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the rounds done so far with a warning.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    estimators_ : sequence of estimators
        The members.
    estimator_ : estimator
        The estimator that was cloned.
    estimator_weights_ : ndarray of shape (n_members,)
        ln(1 / beta), times the learning rate. It is 1 for a member without errors, and 0 for a
        first member whose average loss is not below one half; boosting stops after both.
    estimator_errors_ : ndarray of shape (n_members,)
        The average losses.
    history_ : R2History
        For each round: average loss, beta, normaliser and training error; and why boosting stopped.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    categories_ : dict
        Labels of each categorical column, if trees of this library are grown on one table.
    feature_importances_ : ndarray of shape (n_features,)
        The weighted mean over the members, if they have feature importances.

    Examples
    --------
    >>> from margrove import AdaBoostRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [5.0, 5.0, 8.0, 8.0]
    >>> model = AdaBoostRegressor(random_state=0, resample=False).fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array([5., 8.])
    >>> model.history_.outcome
    'perfect'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = BOOSTING_PARAMETERS | {
        "loss": [StrOptions(set(LOSSES))],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: Literal["linear", "square", "exponential"] = "linear",
        random_state: Any = None,
        resample: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.loss = loss
        self.random_state = random_state
        self.resample = resample
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    # -- training --

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the members, round by round.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Any X that the estimator accepts.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the first round. A weight of 0 removes a row, a weight of 2 is the same
            as two copies of the row.

        Returns
        -------
        self
        """
        self._check_parameters()
        base = self._base()
        self._check_regressor(base)
        training = self._read(X, y, sample_weight, base)
        seed = self._seed()
        process = self._process(base, training, seed)

        def fitted() -> dict[str, Any]:
            return self._attributes(process, base, training, seed)

        self._run(process, X, y, fitted, {"sample_weight": sample_weight})
        self._warn_of(process, base)
        self._commit(fitted())
        return self

    def _base(self) -> Any:
        return DecisionTreeRegressor(max_depth=3) if self.estimator is None else self.estimator

    def _check_regressor(self, base: Any) -> None:
        self._check_base(base)
        if get_tags(base).estimator_type == "classifier":
            raise ValueError(
                f"AdaBoostRegressor needs a regressor, but estimator={type(base).__name__} is a "
                "classifier. Use AdaBoostClassifier, or another estimator."
            )

    def _read(self, X: Any, y: Any, sample_weight: Any, base: Any) -> _TrainingData:
        rows = read_rows(X, self, base, as_table=is_plain_tree(base))
        n = rows.X.shape[0]
        numbers = check_targets(y, n)
        weight = moderate(check_weights(sample_weight, n))
        content = with_nan_as_number(rows.mixed.numbers(weight))
        form = canonical_form(content, numbers, weight)
        kept = form.group_of >= 0
        samples = np.zeros(len(form.rows), np.int64)
        np.add.at(samples, form.group_of[kept], samples_of(weight[kept], sample_weight))
        if is_plain_tree(base):
            CRITERIA[base.criterion].check_targets(numbers[form.rows])
        n_draws = CumulativeWeights(form.weight, int(kept.sum())).n_draws
        if self._resamples(base) and n_draws > _MOST_DRAWS:
            raise InvalidDataError(
                f"sample_weight is whole and sums to {n_draws}, so each sample would have as many "
                "draws. Divide the weights by a number, or use resample=False."
            )
        return _TrainingData(
            rows.of_rows(form.rows), numbers[form.rows] + 0.0, form.weight, samples, n_draws
        )

    def _process(self, base: Any, training: _TrainingData, seed: int) -> R2Boosting:
        scale = power_of_two_near(training.y)
        learner, members = self._learner(base, training, scale, seed)
        return R2Boosting(
            learner,
            self._earlier(members, training) or members,
            training.rows.X,
            training.y,
            training.weight,
            self.n_estimators,
            loss=self.loss,
            learning_rate=self.learning_rate,
            scale=scale,
        )

    def _learner(
        self, base: Any, training: _TrainingData, scale: float, seed: int
    ) -> tuple[AnyLearner | TreeLearner, Members]:
        X, table, resamples = training.rows.X, training.rows.table, self._resamples(base)
        if table is None:
            any_learner = AnyLearner(
                base, training.rows.mixed.for_members, training.y, "numbers", None,
                resample=resamples, order=np.arange(len(training.y)), n_draws=training.n_draws,
                samples=training.samples, seed=seed,
            )  # fmt: skip
            return any_learner, EstimatorMembers("numbers", None)
        learner = TreeLearner(
            base, table, None, 0, training.samples, "numbers",
            seed=seed, n_threads=self._threads(X),
            n_draws=training.n_draws if resamples else None, scale=scale,
        )  # fmt: skip
        self._refuse_infinity(list(learner.extremes), table)
        known = self._attributes_of_trees(base, training.rows)
        return learner, TreeMembers("numbers", learner.kind, clone(base), known)

    def _earlier(self, members: Members, training: _TrainingData) -> Any:
        """The members that a warm start continues from; raises if new ones would be different."""
        earlier = self._members_so_far()
        if earlier is None:
            return None
        is_same = type(earlier) is type(members)
        if is_same and isinstance(members, TreeMembers):
            same_labels = np.array_equal(earlier.kind.n_categories, members.kind.n_categories)
            is_same = same_labels and earlier.kind.criterion == members.kind.criterion
        if not is_same or self.n_features_in_ != training.rows.X.shape[1]:
            raise ValueError(
                "warm_start=True needs the data and the estimator of the last fit, which had "
                f"{self.n_features_in_} features and estimator={self.estimator_!r}. Use "
                "warm_start=False to start again."
            )
        return earlier

    def _attributes(
        self, process: R2Boosting, base: Any, training: _TrainingData, seed: int
    ) -> dict[str, Any]:
        history = process.history()
        return training.rows.attributes | {
            "estimator_": base,
            "_members": process.members,
            "estimator_weights_": process.weights,
            "estimator_errors_": history.average_loss,
            "history_": history,
            "_seed_of_fit": seed,
        }

    def _warn_of(self, process: R2Boosting, base: Any) -> None:
        if process.outcome != "loss too large":
            return
        name, loss = type(base).__name__, process.too_large
        if process.history().average_loss[-1] == loss:
            when = f"in the first round: the average loss of its {name} is {loss:.3g}"
            then = "It is kept because there is no other member."
        else:
            when = (
                f"after {process.rounds} rounds: the average loss of the next {name} is {loss:.3g}"
            )
            then = "It was left out."
        warnings.warn(
            f"AdaBoostRegressor stopped {when}, which is not below 0.5. {then}",
            ConvergenceWarning,
            stacklevel=3,
        )

    # -- prediction --

    def predict(self, X: Any) -> np.ndarray:
        """The weighted median of the predictions of the members."""
        rows = self._rows(X)
        n, medians = rows.shape[0], np.empty(rows.shape[0])
        is_tree = isinstance(self._members, TreeMembers)
        size = rows_at_once(max(rows.shape[1], len(self))) if is_tree else max(n, 1)

        def predict(tile: int) -> None:
            chosen = slice(tile * size, (tile + 1) * size)
            answers = [self._members.answers(rows[chosen], t) for t in range(len(self))]
            medians[chosen] = weighted_medians(
                np.concatenate(answers, axis=1), self.estimator_weights_
            )

        run_tiles(predict, -(-n // size), self._threads_to_predict(rows))
        return medians

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict` after each round."""
        rows = self._rows(X)
        medians = StagedMedians(rows.shape[0], self._threads_to_predict(rows))
        for t, weight in enumerate(self.estimator_weights_):
            yield medians.add(t, self._members.answers(rows, t)[:, 0], float(weight))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """R^2 after each round."""
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = get_tags(self._base()).target_tags.positive_only
        return tags
