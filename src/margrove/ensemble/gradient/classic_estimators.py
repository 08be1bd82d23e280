"""Estimators: GradientBoostingClassifier, GradientBoostingRegressor."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from margrove.ensemble.gradient.boosted_trees import (
    BoostedClassifier,
    BoostedRegressor,
    require_same_classes,
)
from margrove.ensemble.gradient.classic_boosting import CLASSIC_PARAMETERS, ClassicBoosting
from margrove.ensemble.gradient.losses import (
    GradientLoss,
    LogLinkLoss,
    class_loss_of,
    gradient_loss_of,
    regression_loss_of,
)
from margrove.ensemble.gradient.training_data import GradientData, class_data, number_data
from margrove.grove.table import TreeTable

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]

_LEAST_SHARE = np.finfo(np.float32).eps


class GradientBoostingRegressor(BoostedRegressor, ClassicBoosting):
    """Gradient boosting of small regression trees with exact splits.

    A drop-in for `sklearn.ensemble.GradientBoostingRegressor`. Trees are grown level by level on
    columns that are ranked once. Neither the order of the rows nor the number of threads changes
    the result.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile"} or GradientLoss, \
            default="squared_error"
        The loss to minimise.
    learning_rate : float, default=0.1
        Factor on the values of each tree.
    n_estimators : int, default=100
        Maximum number of rounds.
    subsample : float, default=1.0
        The share of rows that the trees of a round are grown on, drawn without replacement.
    criterion : {"friedman_mse", "squared_error", "deprecated"}, default="deprecated"
        It has no effect. Deprecated by scikit-learn 1.9.
    min_samples_split : int or float, default=2
        Minimum number of samples in a node that is split; a float is a share of all samples.
    min_samples_leaf : int or float, default=1
        Minimum number of samples in a leaf; a float is a share of all samples.
    min_weight_fraction_leaf : float, default=0.0
        Minimum share of the total weight in a leaf.
    max_depth : int or None, default=3
        Maximum number of edges from the root to a leaf.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of the impurity by a split.
    init : estimator, "zero" or None, default=None
        The model that boosting starts from; None is the best constant.
    random_state : int, RandomState, Generator or None, default=None
        Seed of subsamples, of validation rows and of random features.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Number of features that are searched for each split.
    alpha : float, default=0.9
        The quantile of loss="quantile"; for loss="huber", the quantile of the absolute errors above
        which the loss is linear.
    verbose : int, default=0
        Print a table of the rounds on standard output, as in scikit-learn: 1 prints fewer lines as
        rounds go on, 2 prints all.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves of a tree; trees then grow best-first, the largest gain first.
    warm_start : bool, default=False
        Continue from the rounds of the last fit, with the same data.
    validation_fraction : float, default=0.1
        With `n_iter_no_change`: the share of rows that are used for validation.
    n_iter_no_change : int or None, default=None
        Stop after this number of rounds without a lower validation loss.
    tol : float, default=1e-4
        Minimum decrease of the validation loss that counts as lower.
    ccp_alpha : float, default=0.0
        Complexity parameter of minimal cost-complexity pruning.
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the rounds done so far with a warning.

    Attributes
    ----------
    n_estimators_ : int
        The number of rounds.
    estimators_ : ndarray of DecisionTreeRegressor of shape (n_rounds, n_trees)
        The trees, created on access.
    init_ : estimator or "zero"
        The model that boosting started from.
    train_score_ : ndarray of shape (n_rounds,)
        The loss after each round, on the rows that its trees were grown on.
    oob_scores_ : ndarray of shape (n_rounds,)
        With subsample < 1: the loss after each round on the rows that its trees were not grown on;
        0 for rounds of a warm start without such rows.
    oob_improvement_ : ndarray of shape (n_rounds,)
        The decrease of that loss from the round before.
    oob_score_ : float
        The last of `oob_scores_`.
    history_ : GradientHistory
        For each round: training loss, validation score, leaves; and why boosting ended.
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the total impurity decrease.
    max_features_ : int
        Number of features that are searched for each split.
    n_outputs_ : int
        Always 1.
    categories_ : dict
        Always empty: see `HistGradientBoostingRegressor` for categories.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.

    Examples
    --------
    >>> from margrove import GradientBoostingRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0]
    >>> model = GradientBoostingRegressor(learning_rate=1.0, n_estimators=1).fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CLASSIC_PARAMETERS | {
        "loss": [str, GradientLoss],
        "init": [StrOptions({"zero"}), None, HasMethods(["fit", "predict"])],
        "alpha": [Interval(Real, 0.0, 1.0, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: str | GradientLoss = "squared_error",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        alpha: float = 0.9,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.alpha = alpha
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return number_data(table, y, sample_weight, self._loss_of_name())

    def _loss_of_name(self) -> GradientLoss:
        if self.loss in ("huber", "quantile"):
            name = "quantile" if self.loss == "quantile" else "alpha"
            parameters: dict[str, Any] = {name: self.alpha}
            return gradient_loss_of(self.loss, **parameters)
        return regression_loss_of(self.loss)

    def _loss_for(self, data: GradientData) -> GradientLoss:
        return self._loss_of_name()

    def _raw_of_init(self, init: Any, X: Any, loss: GradientLoss) -> np.ndarray:
        try:
            raw = np.asarray(init.predict(X), dtype=np.float64).reshape(1, -1)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"init={type(init).__name__} must predict a number for each row: {error}"
            ) from error
        if isinstance(loss, LogLinkLoss):
            with np.errstate(divide="ignore", invalid="ignore"):
                raw = np.log(raw)  # NaN for values that are not positive, which raises an error
        return np.ascontiguousarray(raw)

    def _dummy(self, data: GradientData) -> Any:
        weight, y = data.training_rows.total_weight, data.y * data.scale
        if self.loss in ("absolute_error", "huber"):
            model = DummyRegressor(strategy="quantile", quantile=0.5)
        elif self.loss == "quantile":
            model = DummyRegressor(strategy="quantile", quantile=self.alpha)
        else:
            model = DummyRegressor(strategy="mean")
        return model.fit(np.zeros((len(y), 1)), y, sample_weight=weight)


class GradientBoostingClassifier(BoostedClassifier, ClassicBoosting):
    """Gradient boosting of small trees with exact splits, for classification.

    A drop-in for `sklearn.ensemble.GradientBoostingClassifier`. Trees are grown level by level on
    columns that are ranked once. Neither the order of the rows nor the number of threads changes
    the result.
    With more than two classes, every round has a tree for each class.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or GradientLoss, default="log_loss"
        The loss to minimise; "exponential" is AdaBoost's loss, for two classes.
    learning_rate : float, default=0.1
        Factor on the values of each tree.
    n_estimators : int, default=100
        Maximum number of rounds.
    subsample : float, default=1.0
        The share of rows that the trees of a round are grown on, drawn without replacement.
    criterion : {"friedman_mse", "squared_error", "deprecated"}, default="deprecated"
        It has no effect. Deprecated by scikit-learn 1.9.
    min_samples_split : int or float, default=2
        Minimum number of samples in a node that is split; a float is a share of all samples.
    min_samples_leaf : int or float, default=1
        Minimum number of samples in a leaf; a float is a share of all samples.
    min_weight_fraction_leaf : float, default=0.0
        Minimum share of the total weight in a leaf.
    max_depth : int or None, default=3
        Maximum number of edges from the root to a leaf.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of the impurity by a split.
    init : estimator, "zero" or None, default=None
        The model that boosting starts from; None is the best constant.
    random_state : int, RandomState, Generator or None, default=None
        Seed of subsamples, of validation rows and of random features.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Number of features that are searched for each split.
    verbose : int, default=0
        Print a table of the rounds on standard output, as in scikit-learn: 1 prints fewer lines as
        rounds go on, 2 prints all.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves of a tree; trees then grow best-first, the largest gain first.
    warm_start : bool, default=False
        Continue from the rounds of the last fit, with the same data.
    validation_fraction : float, default=0.1
        With `n_iter_no_change`: the share of rows that are used for validation.
    n_iter_no_change : int or None, default=None
        Stop after this number of rounds without a lower validation loss.
    tol : float, default=1e-4
        Minimum decrease of the validation loss that counts as lower.
    ccp_alpha : float, default=0.0
        Complexity parameter of minimal cost-complexity pruning.
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the rounds done so far with a warning.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_classes_ : int
        The number of classes.
    n_estimators_ : int
        The number of rounds.
    estimators_ : ndarray of DecisionTreeRegressor of shape (n_rounds, n_trees)
        The trees, created on access.
    init_ : estimator or "zero"
        The model that boosting started from.
    train_score_ : ndarray of shape (n_rounds,)
        The loss after each round, on the rows that its trees were grown on.
    oob_scores_ : ndarray of shape (n_rounds,)
        With subsample < 1: the loss after each round on the rows that its trees were not grown on;
        0 for rounds of a warm start without such rows.
    oob_improvement_ : ndarray of shape (n_rounds,)
        The decrease of that loss from the round before.
    oob_score_ : float
        The last of `oob_scores_`.
    history_ : GradientHistory
        For each round: training loss, validation score, leaves; and why boosting ended.
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the total impurity decrease.
    max_features_ : int
        Number of features that are searched for each split.
    n_outputs_ : int
        Always 1.
    categories_ : dict
        Always empty: see `HistGradientBoostingClassifier` for categories.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.

    Examples
    --------
    >>> from margrove import GradientBoostingClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
    >>> GradientBoostingClassifier(n_estimators=5).fit(X, y).predict([[0.5], [2.5]]).tolist()
    ['low', 'high']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CLASSIC_PARAMETERS | {
        "loss": [str, GradientLoss],
        "init": [StrOptions({"zero"}), None, HasMethods(["fit", "predict_proba"])],
    }

    def __init__(
        self,
        *,
        loss: str | GradientLoss = "log_loss",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return class_data(table, y, sample_weight, None)

    def _loss_for(self, data: GradientData) -> GradientLoss:
        return class_loss_of(self.loss, len(data.labels))

    def apply(self, X: Any) -> np.ndarray:
        """The leaf of each row in each tree.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_rounds, n_trees)
            Numbers of nodes, as in `tree`; n_trees is 1 for two classes.
        """
        leaves = super().apply(X)
        return leaves.reshape(len(leaves), -1, self.n_trees_per_iteration_)

    def _require_same_kind(self, data: GradientData) -> None:
        super()._require_same_kind(data)
        if self._continues():
            require_same_classes(self.classes_, data)

    def _raw_of_init(self, init: Any, X: Any, loss: GradientLoss) -> np.ndarray:
        shares = np.clip(np.asarray(init.predict_proba(X)), _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        if shares.shape != (X.shape[0], max(2, loss.n_scores)):
            return np.full(shares.shape[::-1], np.nan)
        logs = np.log(shares)
        raw = (logs - logs.mean(axis=1)[:, None]).T
        if loss.n_scores == 1:
            raw = (0.5 if loss.name == "exponential" else 1.0) * (logs[:, 1] - logs[:, 0])
        return np.ascontiguousarray(np.atleast_2d(raw))

    def _dummy(self, data: GradientData) -> Any:
        classes = data.classes if data.classes is not None else np.empty(0)
        weight = data.training_rows.total_weight
        y = classes[data.y.astype(np.int64)]
        return DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y, sample_weight=weight)
