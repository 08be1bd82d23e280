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
from margrove.ensemble.bagging.answers import shares_of
from margrove.ensemble.bagging.bagged_ensemble import (
    BAGGING_PARAMETERS,
    Bagging,
    BagTargets,
    has_method,
)
from margrove.ensemble.bagging.votes import LogTally, Tally, onto_all_classes

__all__ = ["BaggingClassifier", "BaggingRegressor"]


class BaggingClassifier(ClassifierMixin, Bagging):
    """Classifiers fitted on bootstrap samples, and their average or vote.

    A drop-in for `sklearn.ensemble.BaggingClassifier`. What the k-th estimator is fitted on depends
    on the seed, on k and on the content of the data alone: neither the order of the rows, nor the
    number of workers, nor whether it was added by a warm start. A row of weight 2 is a row that is
    there twice. An estimator of another library that takes `sample_weight` gets all rows as they
    are, and how often each was drawn as its weight; others get the rows of their samples.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is fitted; None is a `DecisionTreeClassifier`.
    n_estimators : int, default=10
        How many.
    max_samples : int, float or None, default=1.0
        Size of each sample; a float is a share of the rows, or of the sum of `sample_weight` if all
        weights are whole. None is all.
    max_features : int or float, default=1.0
        How many columns each estimator is given; a float is a share of them.
    bootstrap : bool, default=True
        Draw rows with replacement.
    bootstrap_features : bool, default=False
        Draw columns with replacement.
    oob_score : bool or callable, default=False
        Predict each row by the estimators that have not seen it, and compute the accuracy of that,
        or what a callable(y_true, y_pred) gives.
    warm_start : bool, default=False
        Keep the estimators of the last fit and add to them.
    n_jobs : int or None, default=None
        How many estimators are fitted or asked at once, by threads unless a
        `joblib.parallel_config` says otherwise. None is one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of what is drawn, and of the estimators' own random states.
    voting : {"soft", "hard"}, default="soft"
        "soft" averages probabilities, or counts votes if the estimator has none. "hard" counts
        votes.
    max_time : float or None, default=None
        Seconds after which no more estimators are fitted.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    estimator_ : estimator
        What the estimators are copies of.
    estimators_ : list of estimators
        They know the classes by their numbers, as scikit-learn's do.
    estimators_samples_ : list of ndarray
        The rows that each was fitted on.
    estimators_features_ : list of ndarray
        The columns that each was fitted on.
    classes_ : ndarray of shape (n_classes,)
        Those without any weight too: as in a sample that has missed a class, their share is 0.
    n_classes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.
    oob_score_ : float
        With `oob_score`: over the rows that some estimator has not seen, by weight.
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
        """The class of the highest average probability, or of the most votes; of equals the first.

        `params` are routed to `predict_proba` of the estimators, or to `predict` for votes.
        """
        _raise_for_params(params, self, "predict")
        winners = np.argmax(self._shares(X, self._routed("predict", params)), axis=1)
        found: np.ndarray = self.classes_[winners]
        return found

    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """The average of the probabilities, or the shares of the votes.

        `params` are routed to `predict_proba` of the estimators, or to `predict` for votes.
        """
        _raise_for_params(params, self, "predict_proba")
        return self._shares(X, self._routed("predict_proba", params))

    def predict_log_proba(self, X: Any, **params: Any) -> np.ndarray:
        """The logarithms of the probabilities.

        `params` are routed to `predict_log_proba` of the estimators if it is there to be averaged.
        """
        _raise_for_params(params, self, "predict_log_proba")
        rows = self._rows(X)
        routed = self._routed("predict_log_proba", params)
        if self.voting == "hard" or not hasattr(self.estimators_[0], "predict_log_proba"):
            with np.errstate(divide="ignore"):
                return np.log(self._shares(rows, routed))
        tally = LogTally()
        answers = self._answers(rows, "predict_log_proba", routed.predict_log_proba)
        for estimator, logarithms in zip(self.estimators_, answers, strict=True):
            tally.add(
                onto_all_classes(logarithms, estimator.classes_, self.n_classes_, unknown=-np.inf)
            )
        return tally.mean()

    @available_if(has_method("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """The average of the decision functions; of a class, by the estimators that know it.

        `params` are routed to `decision_function` of the estimators.
        """
        _raise_for_params(params, self, "decision_function")
        rows = self._rows(X)
        routed = self._routed("decision_function", params)
        answers = self._answers(rows, "decision_function", routed.decision_function)
        total: Any = 0.0
        counts: Any = 0
        for estimator, values in zip(self.estimators_, answers, strict=True):
            known = np.isin(np.arange(self.n_classes_), estimator.classes_)
            if known.all():
                total, counts = total + values, counts + 1
            elif self.n_classes_ > 2:  # who knows one class of two has nothing to decide
                columns = _by_class(values, estimator)
                total = total + onto_all_classes(columns, estimator.classes_, self.n_classes_)
                counts = counts + known
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(counts > 0, total / counts, -np.inf)

    def _shares(self, X: Any, routed: Any) -> np.ndarray:
        rows = self._rows(X)
        tally = Tally(rows.shape[0])
        method = self._method(self.estimators_[0])
        answers = self._answers(rows, method, routed.get(method, {}))
        for estimator, answer in zip(self.estimators_, answers, strict=True):
            tally.add(shares_of(answer, estimator, method, self.n_classes_))
        return tally.mean()

    def _method(self, member: Any) -> str:
        is_soft = self.voting == "soft" and hasattr(member, "predict_proba")
        return "predict_proba" if is_soft else "predict"

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from margrove.grove import DecisionTreeClassifier

        return DecisionTreeClassifier()

    def _targets(self, y: Any, sample_weight: Any, n_rows: int) -> BagTargets:
        weight = moderate(check_weights(sample_weight, n_rows))
        labels = check_labels(y, n_rows)
        return BagTargets(labels.codes, weight, labels.classes)

    def _learnt(self, targets: BagTargets) -> dict[str, Any]:
        assert targets.classes is not None
        return {"classes_": targets.classes, "n_classes_": len(targets.classes)}

    def _oob_attributes(
        self, figures: np.ndarray, targets: BagTargets, scored: np.ndarray
    ) -> dict[str, Any]:
        assert targets.classes is not None
        truth = targets.classes[targets.values[scored]]
        found = targets.classes[np.argmax(figures[scored], axis=1)]
        score = self._oob_score_of(truth, found, targets.weight[scored], accuracy_score)
        return {"oob_decision_function_": figures, "oob_score_": score}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base()).classifier_tags
        if base is not None:
            tags.classifier_tags.multi_class = base.multi_class
        return tags


class BaggingRegressor(RegressorMixin, Bagging):
    """Regressors fitted on bootstrap samples, and their average.

    A drop-in for `sklearn.ensemble.BaggingRegressor`; see `BaggingClassifier` for what is
    different.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is fitted; None is a `DecisionTreeRegressor`.
    n_estimators : int, default=10
        How many.
    max_samples : int, float or None, default=1.0
        Size of each sample; a float is a share of the rows, or of the sum of `sample_weight` if all
        weights are whole. None is all.
    max_features : int or float, default=1.0
        How many columns each estimator is given; a float is a share of them.
    bootstrap : bool, default=True
        Draw rows with replacement.
    bootstrap_features : bool, default=False
        Draw columns with replacement.
    oob_score : bool or callable, default=False
        Predict each row by the estimators that have not seen it, and compute the R^2 of that, or
        what a callable(y_true, y_pred) gives.
    warm_start : bool, default=False
        Keep the estimators of the last fit and add to them.
    n_jobs : int or None, default=None
        How many estimators are fitted or asked at once, by threads unless a
        `joblib.parallel_config` says otherwise. None is one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of what is drawn, and of the estimators' own random states.
    max_time : float or None, default=None
        Seconds after which no more estimators are fitted.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    estimator_ : estimator
        What the estimators are copies of.
    estimators_ : list of estimators
    estimators_samples_ : list of ndarray
        The rows that each was fitted on.
    estimators_features_ : list of ndarray
        The columns that each was fitted on.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.
    oob_score_ : float
        With `oob_score`: over the rows that some estimator has not seen, by weight.
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
        tally = Tally(rows.shape[0])
        for answer in self._answers(rows, "predict", routed.predict):
            tally.add(answer)
        return tally.mean()

    def _method(self, member: Any) -> str:
        return "predict"

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from margrove.grove import DecisionTreeRegressor

        return DecisionTreeRegressor()

    def _targets(self, y: Any, sample_weight: Any, n_rows: int) -> BagTargets:
        numbers = check_targets(y, n_rows, multi_output=True)
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        return BagTargets(numbers, moderate(check_weights(sample_weight, n_rows)), None)

    def _learnt(self, targets: BagTargets) -> dict[str, Any]:
        return {}

    def _oob_attributes(
        self, figures: np.ndarray, targets: BagTargets, scored: np.ndarray
    ) -> dict[str, Any]:
        truth, found = targets.values[scored], figures[scored]
        score = self._oob_score_of(truth, found, targets.weight[scored], r2_score)
        return {"oob_prediction_": figures, "oob_score_": score}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base()).target_tags
        tags.target_tags.multi_output = base.multi_output
        tags.target_tags.positive_only = base.positive_only
        return tags


def _by_class(values: np.ndarray, estimator: Any) -> np.ndarray:
    """Decisions with a column for each class that the estimator knows."""
    n_known = len(estimator.classes_)
    if n_known == 2 and values.ndim == 1:
        return np.stack([-values, values], axis=1)
    if values.shape[1:] != (n_known,):
        raise ValueError(
            f"{type(estimator).__name__} has not seen all classes in its sample and its decision "
            f"function has {values.shape[1:]} columns for {n_known} classes. Use "
            "decision_function_shape='ovr', or predict."
        )
    return values
