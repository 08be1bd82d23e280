"""Estimators: HistGradientBoostingClassifier, HistGradientBoostingRegressor."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import check_labels, check_targets
from margrove.ensemble.gradient.boosted_trees import (
    BoostedClassifier,
    BoostedRegressor,
    require_same_classes,
)
from margrove.ensemble.gradient.hist_boosting import HIST_PARAMETERS, HistBoosting
from margrove.ensemble.gradient.losses import (
    GradientLoss,
    class_loss_of,
    gradient_loss_of,
    regression_loss_of,
)
from margrove.ensemble.gradient.training_data import GradientData, class_data, number_data
from margrove.grove.table import TreeTable

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]


class HistGradientBoostingRegressor(BoostedRegressor, HistBoosting):
    """Gradient boosting of regression trees on binned features.

    A drop-in for `sklearn.ensemble.HistGradientBoostingRegressor`, comparable to LightGBM and
    XGBoost. It supports missing values, categories and sparse matrices. Gradients are summed as
    whole numbers, so neither the order of the rows nor the number of threads changes the result.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", \
            "tweedie"} or GradientLoss, default="squared_error"
        The loss to minimise. Your own loss can be registered with
        `margrove.register_gradient_loss`, or created with `GradientLoss.of_functions`.
    quantile : float or None, default=None
        The quantile for loss="quantile".
    learning_rate : float, default=0.1
        Factor on the values of each tree.
    max_iter : int, default=100
        Maximum number of rounds.
    max_leaf_nodes : int or None, default=31
        Maximum number of leaves of a tree.
    max_depth : int or None, default=None
        Maximum number of edges from the root to a leaf.
    min_samples_leaf : int, default=20
        Minimum number of samples in a leaf.
    l2_regularization : float, default=0.0
        Added to the hessian of a leaf, which makes its value smaller.
    max_features : float, default=1.0
        The share of the features that are searched for the split of a node, drawn at random.
    max_bins : int, default=255
        Maximum number of bins of a feature. If a feature has more different values, bins have about
        equal weight. Bins are computed from all rows.
    categorical_features : array-like, "from_dtype", "all" or None, default="from_dtype"
        Columns whose values are categories: a mask, numbers or names. "from_dtype" means the
        columns of a dataframe that contain labels. If there are more categories than `max_bins`,
        rare ones share a bin. Negative numbers in such columns are missing.
    monotonic_cst : array-like of int, dict or None, default=None
        1, 0 or -1 for each feature: predictions may only increase (1) or decrease (-1) with it.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of sets of int or None, default=None
        Sets of features that may occur together on a path.
    warm_start : bool, default=False
        Continue from the rounds of the last fit, with the same data.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when the validation score does not improve; "auto" does so with more than
        10,000 samples, or with X_val.
    scoring : str, callable or None, default="loss"
        The validation score.
    validation_fraction : float, int, splitter or None, default=0.1
        The share, or number, of rows used for validation. With a splitter, such as
        `ShuffleSplit` or `TimeSeriesSplit`, they are its first test set. None scores the training
        set.
    n_iter_no_change : int, default=10
        Rounds without a better score after which boosting stops.
    tol : float, default=1e-7
        Minimum increase of the score that counts as better.
    verbose : int, default=0
        Show a progress bar.
    random_state : int, RandomState, Generator or None, default=None
        Seed of validation rows, of subsamples and of random features.
    subsample : float, default=1.0
        The share of rows that the trees of a round are grown on, drawn without replacement.
    growth : {"leaf", "level"}, default="leaf"
        Which leaf is split next: the one with the largest gain, or the oldest.
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the rounds done so far with a warning.

    Attributes
    ----------
    n_iter_ : int
        The number of rounds.
    n_trees_per_iteration_ : int
        The number of trees in a round: one, or with more than two classes one for each class.
    history_ : GradientHistory
        For each round: training loss, validation score, leaves; and why boosting ended.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        With early stopping, the negative training losses and the validation scores; else empty.
    do_early_stopping_ : bool
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the gain of all splits. See also `importances`.
    is_categorical_ : ndarray of bool of shape (n_features,) or None
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.

    Examples
    --------
    >>> from margrove import HistGradientBoostingRegressor
    >>> X = [[float(i)] for i in range(100)]
    >>> y = [0.0] * 50 + [1.0] * 50
    >>> model = HistGradientBoostingRegressor(learning_rate=1.0, max_iter=3).fit(X, y)
    >>> model.predict([[10.0], [90.0]])
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = HIST_PARAMETERS | {
        "loss": [str, GradientLoss],
        "quantile": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        loss: str | GradientLoss = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        subsample: float = 1.0,
        growth: Literal["leaf", "level"] = "leaf",
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.subsample = subsample
        self.growth = growth
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return number_data(table, y, sample_weight, self._loss_of_name())

    def _loss_of_name(self) -> GradientLoss:
        if self.loss == "quantile":
            if self.quantile is None:
                raise ValueError(
                    "loss='quantile' needs the parameter quantile, for example quantile=0.9. "
                    "Got None."
                )
            return gradient_loss_of("quantile", quantile=float(self.quantile))
        return regression_loss_of(self.loss)

    def _loss_for(self, given: GradientData) -> GradientLoss:
        return self._loss_of_name()

    def _targets_like_fitted(self, y: Any, n: int, given: GradientData) -> np.ndarray:
        return self._loss_of_name().check_targets(check_targets(y, n)) / given.scale


class HistGradientBoostingClassifier(BoostedClassifier, HistBoosting):
    """Gradient boosting of classification trees on binned features.

    A drop-in for `sklearn.ensemble.HistGradientBoostingClassifier`, comparable to LightGBM and
    XGBoost. It supports missing values, categories and sparse matrices. Gradients are summed as
    whole numbers, so neither the order of the rows nor the number of threads changes the result.
    With more than two classes, every round has a tree for each class.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or GradientLoss, default="log_loss"
        The loss to minimise; "exponential", AdaBoost's loss, is for two classes. Your own loss can
        be registered with `margrove.register_gradient_loss`, or created with
        `GradientLoss.of_functions`.
    learning_rate : float, default=0.1
        Factor on the values of each tree.
    max_iter : int, default=100
        Maximum number of rounds.
    max_leaf_nodes : int or None, default=31
        Maximum number of leaves of a tree.
    max_depth : int or None, default=None
        Maximum number of edges from the root to a leaf.
    min_samples_leaf : int, default=20
        Minimum number of samples in a leaf.
    l2_regularization : float, default=0.0
        Added to the hessian of a leaf, which makes its value smaller.
    max_features : float, default=1.0
        The share of the features that are searched for the split of a node, drawn at random.
    max_bins : int, default=255
        Maximum number of bins of a feature. If a feature has more different values, bins have about
        equal weight. Bins are computed from all rows.
    categorical_features : array-like, "from_dtype", "all" or None, default="from_dtype"
        Columns whose values are categories: a mask, numbers or names. "from_dtype" means the
        columns of a dataframe that contain labels. If there are more categories than `max_bins`,
        rare ones share a bin. Negative numbers in such columns are missing.
    monotonic_cst : array-like of int, dict or None, default=None
        1, 0 or -1 for each feature: predictions may only increase (1) or decrease (-1) with it.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of sets of int or None, default=None
        Sets of features that may occur together on a path.
    warm_start : bool, default=False
        Continue from the rounds of the last fit, with the same data.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when the validation score does not improve; "auto" does so with more than
        10,000 samples, or with X_val.
    scoring : str, callable or None, default="loss"
        The validation score.
    validation_fraction : float, int, splitter or None, default=0.1
        The share, or number, of rows used for validation. With a splitter, such as
        `ShuffleSplit` or `TimeSeriesSplit`, they are its first test set. None scores the training
        set.
    n_iter_no_change : int, default=10
        Rounds without a better score after which boosting stops.
    tol : float, default=1e-7
        Minimum increase of the score that counts as better.
    verbose : int, default=0
        Show a progress bar.
    random_state : int, RandomState, Generator or None, default=None
        Seed of validation rows, of subsamples and of random features.
    subsample : float, default=1.0
        The share of rows that the trees of a round are grown on, drawn without replacement.
    growth : {"leaf", "level"}, default="leaf"
        Which leaf is split next: the one with the largest gain, or the oldest.
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the rounds done so far with a warning.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class. They do not change numbers of samples:
        `min_samples_leaf` counts rows by their `sample_weight` only.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        The number of rounds.
    n_trees_per_iteration_ : int
        The number of trees in a round: one, or with more than two classes one for each class.
    history_ : GradientHistory
        For each round: training loss, validation score, leaves; and why boosting ended.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        With early stopping, the negative training losses and the validation scores; else empty.
    do_early_stopping_ : bool
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the gain of all splits. See also `importances`.
    is_categorical_ : ndarray of bool of shape (n_features,) or None
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.

    Examples
    --------
    >>> from margrove import HistGradientBoostingClassifier
    >>> X = [[float(i)] for i in range(100)]
    >>> y = ["low"] * 50 + ["high"] * 50
    >>> model = HistGradientBoostingClassifier(max_iter=10).fit(X, y)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['low', 'high']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = HIST_PARAMETERS | {
        "loss": [str, GradientLoss],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        loss: str | GradientLoss = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        subsample: float = 1.0,
        growth: Literal["leaf", "level"] = "leaf",
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        class_weight: Any = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.subsample = subsample
        self.growth = growth
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.class_weight = class_weight

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return class_data(table, y, sample_weight, self.class_weight, min_classes=1)

    def _loss_for(self, given: GradientData) -> GradientLoss:
        return class_loss_of(self.loss, len(given.labels))

    def _require_same_kind(self, given: GradientData) -> None:
        super()._require_same_kind(given)
        if self._continues():
            require_same_classes(self.classes_, given)

    def _targets_like_fitted(self, y: Any, n: int, given: GradientData) -> np.ndarray:
        labels, classes = check_labels(y, n), given.labels
        codes = labels.codes_among(classes)
        if np.any(codes < 0):
            unknown = sorted(set(labels.classes.tolist()) - set(classes.tolist()), key=str)
            raise ValueError(
                f"y_val has the class {unknown[0]!r}, which y does not have. Drop these rows."
            )
        return codes.astype(np.float64)
