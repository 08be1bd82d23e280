"""Random forests and extremely randomised trees."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from margrove.ensemble.forest.forest_classifier import ForestClassifier
from margrove.ensemble.forest.forest_regressor import ForestRegressor
from margrove.grove import without_friedman

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]


class RandomForestClassifier(ForestClassifier):
    """A random forest for classification: trees on bootstrap samples, few features for each split.

    A drop-in for `sklearn.ensemble.RandomForestClassifier`. In addition it supports labels and
    missing values in X and out-of-bag curves, and forests can be added and sliced. A row of weight
    k is exactly the same as k copies of it. Neither the order of the rows nor n_jobs changes the
    result.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        The impurity that splits decrease.
    max_depth : int or None, default=None
        Maximum number of edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Minimum number of samples in a node that is split; a float is a share of all samples.
    min_samples_leaf : int or float, default=1
        Minimum number of samples in a leaf; a float is a share of all samples.
    min_weight_fraction_leaf : float, default=0.0
        Minimum share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Number of features that are searched for the split of a node, drawn again for each node.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; trees then grow best-first, the largest gain first.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of the impurity by a split, weighted by the node's share of the samples.
    bootstrap : bool, default=True
        Whether each tree is grown on a sample drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to compute `oob_score_` and the other out-of-bag attributes. The score is the
        accuracy (with several outputs, all labels of a row must be right), or a
        callable(y_true, y_pred).
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all random numbers. Tree k depends only on the seed and k.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Factors on the weights of the classes; "balanced_subsample" computes them for each tree.
    ccp_alpha : float, default=0.0
        Complexity parameter of minimal cost-complexity pruning, applied to each tree.
    max_samples : int, float or None, default=None
        Number of rows that are drawn for each tree; a float is a share, or multiple, of all rows.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only increase (1) or decrease (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Maximum number of bins of a numeric column. None keeps all different values.
    voting : {"soft", "hard"}, default="soft"
        Average the trees' probabilities, or count their votes.
    max_time : float or None, default=None
        Seconds after which no more trees are grown.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the trees grown so far with a warning.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common: criterion, classes, outputs, categories.
    sampled_ : SampledRows
        The seed and the rows, from which the sample of each tree can be drawn again.
    estimators_ : sequence of DecisionTreeClassifier
        The trees as estimators, created on access. A clone of one of them, with its
        `random_state`, fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown on.
    classes_ : ndarray, or list of them
    n_classes_ : int, or list of int
    oob_decision_function_ : ndarray
        With oob_score: the mean prediction for each row of the trees that have not seen it.
    oob_score_ : float
    oob_curve_ : ndarray
        The out-of-bag error after each tree.
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    feature_importances_ : ndarray

    Examples
    --------
    >>> from margrove import RandomForestClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=50, random_state=0).fit(X, y)
    >>> forest.predict(X[:2])
    array([0, 0])
    >>> len(forest), len(forest[:10]), len(forest[:10] + forest[10:])
    (50, 10, 50)
    """

    def __init__(
        self,
        n_estimators: Any = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int | None = None,
        voting: Literal["soft", "hard"] = "soft",
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.voting = voting
        self.max_time = max_time
        self.on_interrupt = on_interrupt


class RandomForestRegressor(ForestRegressor):
    """A random forest for regression: the mean of trees that are grown on bootstrap samples.

    A drop-in for `sklearn.ensemble.RandomForestRegressor`; see `RandomForestClassifier` for the
    differences. It also has prediction intervals: `predict_interval`, `predict_quantiles` and
    `predict_variance`.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson", "gamma"}
        The impurity that splits decrease; default="squared_error". "friedman_mse" is a deprecated
        name of "squared_error".
    max_depth : int or None, default=None
        Maximum number of edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Minimum number of samples in a node that is split; a float is a share of all samples.
    min_samples_leaf : int or float, default=1
        Minimum number of samples in a leaf; a float is a share of all samples.
    min_weight_fraction_leaf : float, default=0.0
        Minimum share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Number of features that are searched for the split of a node, drawn again for each node.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; trees then grow best-first, the largest gain first.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of the impurity by a split, weighted by the node's share of the samples.
    bootstrap : bool, default=True
        Whether each tree is grown on a sample drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to compute `oob_score_` and the other out-of-bag attributes. The score is R^2, or a
        callable(y_true, y_pred).
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all random numbers. Tree k depends only on the seed and k.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    ccp_alpha : float, default=0.0
        Complexity parameter of minimal cost-complexity pruning, applied to each tree.
    max_samples : int, float or None, default=None
        Number of rows that are drawn for each tree; a float is a share, or multiple, of all rows.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only increase (1) or decrease (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Maximum number of bins of a numeric column. None keeps all different values.
    keep_samples : bool, default=False
        Keep which training rows are in each leaf, for `predict_quantiles`.
    max_time : float or None, default=None
        Seconds after which no more trees are grown.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the trees grown so far with a warning.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common: criterion, classes, outputs, categories.
    sampled_ : SampledRows
        The seed and the rows, from which the sample of each tree can be drawn again.
    estimators_ : sequence of DecisionTreeRegressor
        The trees as estimators, created on access. A clone of one of them, with its
        `random_state`, fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown on.
    oob_prediction_ : ndarray
        With oob_score: the mean prediction for each row of the trees that have not seen it.
    residuals_ : Residuals
        With oob_score: the errors of these predictions, sorted.
    leaf_samples_ : LeafSamples
        With keep_samples: the training targets in each leaf.
    oob_score_ : float
    oob_curve_ : ndarray
        The out-of-bag error after each tree.
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    feature_importances_ : ndarray

    Examples
    --------
    >>> from margrove import RandomForestRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [5.0, 5.0, 8.0, 8.0]
    >>> forest = RandomForestRegressor(n_estimators=50, random_state=0).fit(X, y)
    >>> bool(5.0 <= forest.predict([[0.0]])[0] < 6.0)
    True
    """

    def __init__(
        self,
        n_estimators: Any = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int | None = None,
        keep_samples: bool = False,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = without_friedman(criterion)
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.keep_samples = keep_samples
        self.max_time = max_time
        self.on_interrupt = on_interrupt


class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomised trees for classification: splits are the best of random thresholds.

    A drop-in for `sklearn.ensemble.ExtraTreesClassifier`; see `RandomForestClassifier` for the
    differences.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        The impurity that splits decrease.
    max_depth : int or None, default=None
        Maximum number of edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Minimum number of samples in a node that is split; a float is a share of all samples.
    min_samples_leaf : int or float, default=1
        Minimum number of samples in a leaf; a float is a share of all samples.
    min_weight_fraction_leaf : float, default=0.0
        Minimum share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Number of features that are searched for the split of a node, drawn again for each node.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; trees then grow best-first, the largest gain first.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of the impurity by a split, weighted by the node's share of the samples.
    bootstrap : bool, default=False
        Whether each tree is grown on a sample drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to compute `oob_score_` and the other out-of-bag attributes. The score is the
        accuracy (with several outputs, all labels of a row must be right), or a
        callable(y_true, y_pred).
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all random numbers. Tree k depends only on the seed and k.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Factors on the weights of the classes; "balanced_subsample" computes them for each tree.
    ccp_alpha : float, default=0.0
        Complexity parameter of minimal cost-complexity pruning, applied to each tree.
    max_samples : int, float or None, default=None
        Number of rows that are drawn for each tree; a float is a share, or multiple, of all rows.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only increase (1) or decrease (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Maximum number of bins of a numeric column. None keeps all different values.
    voting : {"soft", "hard"}, default="soft"
        Average the trees' probabilities, or count their votes.
    max_time : float or None, default=None
        Seconds after which no more trees are grown.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the trees grown so far with a warning.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common: criterion, classes, outputs, categories.
    sampled_ : SampledRows
        The seed and the rows, from which the sample of each tree can be drawn again.
    estimators_ : sequence of DecisionTreeClassifier
        The trees as estimators, created on access. A clone of one of them, with its
        `random_state`, fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown on.
    classes_ : ndarray, or list of them
    n_classes_ : int, or list of int
    oob_decision_function_ : ndarray
        With oob_score: the mean prediction for each row of the trees that have not seen it.
    oob_score_ : float
    oob_curve_ : ndarray
        The out-of-bag error after each tree.
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    feature_importances_ : ndarray

    Examples
    --------
    >>> from margrove import ExtraTreesClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = ExtraTreesClassifier(n_estimators=50, random_state=0).fit(X, y)
    >>> forest.predict(X[:2])
    array([0, 0])
    >>> len(forest), len(forest[:10]), len(forest[:10] + forest[10:])
    (50, 10, 50)
    """

    _splitter: ClassVar[str] = "random"

    def __init__(
        self,
        n_estimators: Any = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int | None = None,
        voting: Literal["soft", "hard"] = "soft",
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.voting = voting
        self.max_time = max_time
        self.on_interrupt = on_interrupt


class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomised trees for regression: splits are the best of random thresholds.

    A drop-in for `sklearn.ensemble.ExtraTreesRegressor`; see `RandomForestRegressor` for the
    differences.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson", "gamma"}
        The impurity that splits decrease; default="squared_error". "friedman_mse" is a deprecated
        name of "squared_error".
    max_depth : int or None, default=None
        Maximum number of edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Minimum number of samples in a node that is split; a float is a share of all samples.
    min_samples_leaf : int or float, default=1
        Minimum number of samples in a leaf; a float is a share of all samples.
    min_weight_fraction_leaf : float, default=0.0
        Minimum share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Number of features that are searched for the split of a node, drawn again for each node.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; trees then grow best-first, the largest gain first.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of the impurity by a split, weighted by the node's share of the samples.
    bootstrap : bool, default=False
        Whether each tree is grown on a sample drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to compute `oob_score_` and the other out-of-bag attributes. The score is R^2, or a
        callable(y_true, y_pred).
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all random numbers. Tree k depends only on the seed and k.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    ccp_alpha : float, default=0.0
        Complexity parameter of minimal cost-complexity pruning, applied to each tree.
    max_samples : int, float or None, default=None
        Number of rows that are drawn for each tree; a float is a share, or multiple, of all rows.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only increase (1) or decrease (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Maximum number of bins of a numeric column. None keeps all different values.
    keep_samples : bool, default=False
        Keep which training rows are in each leaf, for `predict_quantiles`.
    max_time : float or None, default=None
        Seconds after which no more trees are grown.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the trees grown so far with a warning.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common: criterion, classes, outputs, categories.
    sampled_ : SampledRows
        The seed and the rows, from which the sample of each tree can be drawn again.
    estimators_ : sequence of DecisionTreeRegressor
        The trees as estimators, created on access. A clone of one of them, with its
        `random_state`, fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown on.
    oob_prediction_ : ndarray
        With oob_score: the mean prediction for each row of the trees that have not seen it.
    residuals_ : Residuals
        With oob_score: the errors of these predictions, sorted.
    leaf_samples_ : LeafSamples
        With keep_samples: the training targets in each leaf.
    oob_score_ : float
    oob_curve_ : ndarray
        The out-of-bag error after each tree.
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has column names.
    feature_importances_ : ndarray

    Examples
    --------
    >>> from margrove import ExtraTreesRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [5.0, 5.0, 8.0, 8.0]
    >>> forest = ExtraTreesRegressor(n_estimators=50, random_state=0).fit(X, y)
    >>> bool(5.0 <= forest.predict([[0.0]])[0] < 6.0)
    True
    """

    _splitter: ClassVar[str] = "random"

    def __init__(
        self,
        n_estimators: Any = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int | None = None,
        keep_samples: bool = False,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = without_friedman(criterion)
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.keep_samples = keep_samples
        self.max_time = max_time
        self.on_interrupt = on_interrupt
