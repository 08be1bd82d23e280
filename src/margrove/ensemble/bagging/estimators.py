"""Estimators: BaggingClassifier, BaggingRegressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils._tags import get_tags
from sklearn.utils.metadata_routing import _raise_for_params
from sklearn.utils.metaestimators import available_if

from margrove._data import check_labels, check_targets, check_weights, moderate
from margrove.ensemble.bagging.bagged_ensemble import (
    BAGGING_PARAMETERS,
    Bagging,
    BaggingTargets,
    has_method,
)
from margrove.ensemble.bagging.predictions import (
    LogRunningMean,
    RunningMean,
    onto_all_classes,
    shares_of,
)

__all__ = ["BaggingClassifier", "BaggingRegressor"]


class BaggingClassifier(ClassifierMixin, Bagging):
    """Classifiers fitted on bootstrap samples; they predict by averaging or voting.

    A drop-in for `sklearn.ensemble.BaggingClassifier`. The sample of the k-th estimator depends
    only on the seed, on k and on the content of the data: not on the order of the rows, the number
    of workers, or a warm start. A row of weight 2 is the same as two copies of the row. An
    estimator of another library that supports `sample_weight` gets all rows, with the number of
    times that each was drawn as its weight; others get the rows of their samples.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The estimator to fit; None is a `DecisionTreeClassifier`.
    n_estimators : int, default=10
        The number of estimators.
    max_samples : int, float or None, default=1.0
        Size of each sample; a float is a share of the rows, or of the sum of `sample_weight` if all
        weights are whole numbers. None is all.
    max_features : int or float, default=1.0
        Number of columns for each estimator; a float is a share of all columns.
    bootstrap : bool, default=True
        Draw rows with replacement.
    bootstrap_features : bool, default=False
        Draw columns with replacement.
    oob_score : bool or callable, default=False
        Predict each row by the estimators that have not seen it, and compute the accuracy of these
        predictions, or the score by a callable(y_true, y_pred).
    warm_start : bool, default=False
        Keep the estimators of the last fit and add to them.
    n_jobs : int or None, default=None
        How many estimators fit or predict at the same time, in threads unless a
        `joblib.parallel_config` selects another backend. None is one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the samples, and of the random states of the estimators.
    voting : {"soft", "hard"}, default="soft"
        "soft" averages probabilities, or counts votes if the estimator has none. "hard" counts
        votes.
    max_time : float or None, default=None
        Seconds after which no more estimators are fitted.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the estimators fitted so far with a warning.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that was cloned.
    estimators_ : list of estimators
        Their classes are the codes 0, 1, ... of the labels, as in scikit-learn.
    estimators_samples_ : list of ndarray
        The rows that each was fitted on.
    estimators_features_ : list of ndarray
        The columns that each was fitted on.
    classes_ : ndarray of shape (n_classes,)
        Includes classes whose rows all have weight 0; their predicted share is 0.
    n_classes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    oob_score_ : float
        With `oob_score`: weighted, over the rows that some estimator has not seen.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        With `oob_score`: averages or shares of votes; NaN for rows that all estimators have seen.

    Examples
    --------
    >>> from margrove.datasets import load_iris
    >>> from margrove.ensemble.bagging.estimators import BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BaggingClassifier(n_estimators=50, oob_score=True, random_state=0).fit(X, y)
    >>> bool(model.oob_score_ > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = BAGGING_PARAMETERS | {
        "voting": [StrOptions({"soft", "hard"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float | None = 1.0,
        max_features: float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool | Callable[..., float] = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        voting: Literal["soft", "hard"] = "soft",
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.voting = voting
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """The class with the highest mean probability, or with most votes; the first of equals.

        `params` are routed to `predict_proba` of the estimators, or to `predict` for votes.
        """
        _raise_for_params(params, self, "predict")
        winners = np.argmax(self._shares(X, self._routed("predict", params)), axis=1)
        labels: np.ndarray = self.classes_[winners]
        return labels

    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """The average of the probabilities, or the shares of the votes.

        `params` are routed to `predict_proba` of the estimators, or to `predict` for votes.
        """
        _raise_for_params(params, self, "predict_proba")
        return self._shares(X, self._routed("predict_proba", params))

    def predict_log_proba(self, X: Any, **params: Any) -> np.ndarray:
        """The logarithms of the probabilities.

        `params` are routed to `predict_log_proba` of the estimators, if they have it.
        """
        _raise_for_params(params, self, "predict_log_proba")
        rows = self._rows(X)
        routed = self._routed("predict_log_proba", params)
        if self.voting == "hard" or not hasattr(self.estimators_[0], "predict_log_proba"):
            with np.errstate(divide="ignore"):
                return np.log(self._shares(rows, routed))
        mean = LogRunningMean()
        predictions = self._predictions(rows, "predict_log_proba", routed.predict_log_proba)
        for estimator, logarithms in zip(self.estimators_, predictions, strict=True):
            mean.add(
                onto_all_classes(logarithms, estimator.classes_, self.n_classes_, unknown=-np.inf)
            )
        return mean.mean()

    @available_if(has_method("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """The mean of the decision functions; for each class, over the estimators that know it.

        `params` are routed to `decision_function` of the estimators.
        """
        _raise_for_params(params, self, "decision_function")
        rows = self._rows(X)
        routed = self._routed("decision_function", params)
        predictions = self._predictions(rows, "decision_function", routed.decision_function)
        total: Any = 0.0
        counts: Any = 0
        for estimator, values in zip(self.estimators_, predictions, strict=True):
            known = np.isin(np.arange(self.n_classes_), estimator.classes_)
            if known.all():
                total, counts = total + values, counts + 1
            elif self.n_classes_ > 2:  # of two classes, an estimator of one has no decision
                columns = _by_class(values, estimator)
                total = total + onto_all_classes(columns, estimator.classes_, self.n_classes_)
                counts = counts + known
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(counts > 0, total / counts, -np.inf)

    def _shares(self, X: Any, routed: Any) -> np.ndarray:
        rows = self._rows(X)
        method = self._method(self.estimators_[0])
        if method == "predict_proba" and not routed.get(method):
            of_trees = self._mean_of_trees(rows, self.n_classes_)
            if of_trees is not None:
                return of_trees
        mean = RunningMean(rows.shape[0])
        predictions = self._predictions(rows, method, routed.get(method, {}))
        for estimator, prediction in zip(self.estimators_, predictions, strict=True):
            mean.add(shares_of(prediction, estimator, method, self.n_classes_))
        return mean.mean()

    def _method(self, member: Any) -> str:
        is_soft = self.voting == "soft" and hasattr(member, "predict_proba")
        return "predict_proba" if is_soft else "predict"

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from margrove.grove import DecisionTreeClassifier

        return DecisionTreeClassifier()

    def _targets(self, y: Any, sample_weight: Any, n_rows: int) -> BaggingTargets:
        weight = moderate(check_weights(sample_weight, n_rows))
        labels = check_labels(y, n_rows)
        return BaggingTargets(labels.codes, weight, labels.classes)

    def _learnt(self, targets: BaggingTargets) -> dict[str, Any]:
        assert targets.classes is not None
        return {"classes_": targets.classes, "n_classes_": len(targets.classes)}

    def _oob_attributes(
        self, predictions: np.ndarray, targets: BaggingTargets, scored: np.ndarray
    ) -> dict[str, Any]:
        assert targets.classes is not None
        truth = targets.classes[targets.values[scored]]
        predicted = targets.classes[np.argmax(predictions[scored], axis=1)]
        score = self._oob_score_of(truth, predicted, targets.weight[scored], accuracy_score)
        return {"oob_decision_function_": predictions, "oob_score_": score}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base()).classifier_tags
        if base is not None:
            tags.classifier_tags.multi_class = base.multi_class
        return tags


class BaggingRegressor(RegressorMixin, Bagging):
    """Regressors fitted on bootstrap samples; they predict by averaging.

    A drop-in for `sklearn.ensemble.BaggingRegressor`; see `BaggingClassifier` for the differences.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The estimator to fit; None is a `DecisionTreeRegressor`.
    n_estimators : int, default=10
        The number of estimators.
    max_samples : int, float or None, default=1.0
        Size of each sample; a float is a share of the rows, or of the sum of `sample_weight` if all
        weights are whole numbers. None is all.
    max_features : int or float, default=1.0
        Number of columns for each estimator; a float is a share of all columns.
    bootstrap : bool, default=True
        Draw rows with replacement.
    bootstrap_features : bool, default=False
        Draw columns with replacement.
    oob_score : bool or callable, default=False
        Predict each row by the estimators that have not seen it, and compute the R^2 of these
        predictions, or the score by a callable(y_true, y_pred).
    warm_start : bool, default=False
        Keep the estimators of the last fit and add to them.
    n_jobs : int or None, default=None
        How many estimators fit or predict at the same time, in threads unless a
        `joblib.parallel_config` selects another backend. None is one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the samples, and of the random states of the estimators.
    max_time : float or None, default=None
        Seconds after which no more estimators are fitted.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the estimators fitted so far with a warning.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that was cloned.
    estimators_ : list of estimators
    estimators_samples_ : list of ndarray
        The rows that each was fitted on.
    estimators_features_ : list of ndarray
        The columns that each was fitted on.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    oob_score_ : float
        With `oob_score`: weighted, over the rows that some estimator has not seen.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        With `oob_score`: averages; NaN for rows that all estimators have seen.

    Examples
    --------
    >>> from margrove.ensemble.bagging.estimators import BaggingRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [5.0, 5.0, 8.0, 8.0]
    >>> model = BaggingRegressor(n_estimators=20, bootstrap=False, random_state=0).fit(X, y)
    >>> model.predict([[1.2], [1.7]])
    array([5., 8.])
    """

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float | None = 1.0,
        max_features: float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool | Callable[..., float] = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """The average of the estimators' predictions.

        `params` are routed to `predict` of the estimators.
        """
        _raise_for_params(params, self, "predict")
        rows = self._rows(X)
        routed = self._routed("predict", params)
        of_trees = None if routed.predict else self._mean_of_trees(rows, None)
        if of_trees is not None:
            return of_trees
        mean = RunningMean(rows.shape[0])
        for prediction in self._predictions(rows, "predict", routed.predict):
            mean.add(prediction)
        return mean.mean()

    def _method(self, member: Any) -> str:
        return "predict"

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from margrove.grove import DecisionTreeRegressor

        return DecisionTreeRegressor()

    def _targets(self, y: Any, sample_weight: Any, n_rows: int) -> BaggingTargets:
        numbers = check_targets(y, n_rows, multi_output=True)
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        return BaggingTargets(numbers, moderate(check_weights(sample_weight, n_rows)), None)

    def _learnt(self, targets: BaggingTargets) -> dict[str, Any]:
        return {}

    def _oob_attributes(
        self, predictions: np.ndarray, targets: BaggingTargets, scored: np.ndarray
    ) -> dict[str, Any]:
        truth, predicted = targets.values[scored], predictions[scored]
        score = self._oob_score_of(truth, predicted, targets.weight[scored], r2_score)
        return {"oob_prediction_": predictions, "oob_score_": score}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base()).target_tags
        tags.target_tags.multi_output = base.multi_output
        tags.target_tags.positive_only = base.positive_only
        return tags


def _by_class(values: np.ndarray, estimator: Any) -> np.ndarray:
    """Decision values with a column for each class of the estimator, (n, k)."""
    n_known = len(estimator.classes_)
    if n_known == 2 and values.ndim == 1:
        return np.stack([-values, values], axis=1)
    if values.shape[1:] != (n_known,):
        raise ValueError(
            f"The sample of a {type(estimator).__name__} does not contain all classes, and its "
            f"decision function has {values.shape[1:]} columns for {n_known} classes. Use "
            "decision_function_shape='ovr', or predict."
        )
    return values
