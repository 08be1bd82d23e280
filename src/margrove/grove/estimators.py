"""The estimators DecisionTreeClassifier and DecisionTreeRegressor."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_targets, check_training_labels, check_weights, moderate
from margrove.grove.criteria import CRITERIA, CriterionNames, without_friedman
from margrove.grove.decision_tree import (
    TREE_PARAMETERS,
    DecisionTree,
    TreeTraining,
)
from margrove.grove.growth_limits import number_of_features
from margrove.grove.serve import TreeArrays, by_output
from margrove.grove.table import (
    MEDIAN_WEIGHT_BITS,
    class_targets,
    class_weights_of_outputs,
    columns_of_labels,
    number_targets,
    power_of_two_near,
    read_table,
    samples_of,
    which_count,
)

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor"]


class DecisionTreeClassifier(ClassifierMixin, DecisionTree):
    """A decision tree for classes: ID3, C4.5 and CART on one engine.

    A drop-in replacement for `sklearn.tree.DecisionTreeClassifier`. Splits are exact in float64,
    ties go to the lowest feature and the lowest threshold, and neither the order of the rows nor
    the number of threads matters: without `max_features` and `splitter="random"` nothing is random.
    Strings, categories and missing values need no encoding.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "gain_ratio", "error"}, default="gini"
        How the impurity of a node is measured; see `margrove.grove.criteria.CRITERIA`.
    splitter : {"best", "random", "oblique"}, default="best"
        "random" draws one threshold for each feature and takes the best of those. "oblique" also
        tries one linear combination of all features, which a linear model finds for each node.
    split : {"binary", "multiway"}, default="binary"
        "multiway" gives a categorical feature one branch for each of its values and does not split
        by it again further down, as ID3 and C4.5 do. A row whose value is missing takes all
        branches, each with a share.
    max_depth : int or None, default=None
        Largest number of edges from the root to a leaf. Without it, nodes deeper than 500 levels
        are split into halves, and a warning says so.
    min_samples_split : int or float, default=2
        Smallest number of samples of a node that is split; a share of all samples if a float.
    min_samples_leaf : int or float, default=1
        Smallest number of samples of a leaf; a share of all samples if a float.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight that a leaf may have.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        How many features are drawn for each node and searched.
    random_state : int, RandomState, Generator or None, default=None
        Seed of random numbers, where any are drawn; up to 64 bits.
    max_leaf_nodes : int or None, default=None
        Grow best-first up to this number of leaves: the leaf whose split gains most comes first.
    min_impurity_decrease : float, default=0.0
        Smallest decrease of the impurity, weighted by the node's share of the weight, for which a
        node is split. At 0, splits that gain nothing are made too: the next ones may gain (XOR).
    class_weight : dict, list of dict, "balanced" or None, default=None
        Factors on the weights of the classes.
    ccp_alpha : float, default=0.0
        Cost of a leaf in cost-complexity pruning: branches that gain less than it are removed.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features in which the probability of the second class may only rise (1) or fall (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order: those with strings or categories, all of
        them, or a mask, numbers or names of columns. None refuses labels.
    oblique_learner : {"svm", "perceptron", "prototypes"}, default="svm"
        What finds the directions of oblique splits: a linear support vector machine, a perceptron,
        or the nearest of two prototypes.
    significance : float or None, default=None
        Make no split whose p-value is above this (chi-square test for classes, F-test for means).
    max_error : float or None, default=None
        Do not split a node whose training error is at most this.
    early_stopping : bool, default=False
        Make no split that does not lower the error on rows held out of the training.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out.
    max_bins : int or None, default=None
        Largest number of distinct values of a numeric column; neighbours are merged. None keeps
        all values.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores.
    max_time : float or None, default=None
        Seconds after which growing stops; the tree grown so far is kept.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt, or keep the tree grown so far.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    arrays_ : TreeArrays
        The tree; see `margrove.grove.serve.tree_arrays`.
    tree_ : TreeView
        The same in the arrays of scikit-learn's `tree_`.
    classes_ : ndarray, or list of them
        The classes, of each output.
    n_classes_ : int, or list of int
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has names.
    feature_importances_ : ndarray

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.96
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = TREE_PARAMETERS | {
        "criterion": [CriterionNames(for_classes=True)],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: Literal["best", "random", "oblique"] = "best",
        split: Literal["binary", "multiway"] = "binary",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        oblique_learner: Literal["svm", "perceptron", "prototypes"] = "svm",
        significance: float | None = None,
        max_error: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        max_bins: int | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.split = split
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.oblique_learner = oblique_learner
        self.significance = significance
        self.max_error = max_error
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.max_bins = max_bins
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Missing values are NaN.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            0 removes a row, 2 counts it twice.
        check_input : bool, default=True
            Ignored: input is always checked. It exists for compatibility with scikit-learn.

        Returns
        -------
        self
        """
        self._check_parameters()
        table = read_table(X, self, self.categorical_features)
        training, classes = self._training(table, y, sample_weight)
        single = len(classes) == 1
        counts = [len(labels) for labels in classes]

        def learnt(arrays: TreeArrays) -> dict[str, Any]:
            return {
                "arrays_": arrays,
                "classes_": classes[0] if single else classes,
                "n_classes_": np.intp(counts[0]) if single else counts,
                "n_outputs_": len(classes),
                "max_features_": number_of_features(self.max_features, table.X.shape[1]),
            }

        self._grow(training, X, y, learnt)
        return self

    def _training(
        self, table: Any, y: Any, sample_weight: Any
    ) -> tuple[TreeTraining, list[np.ndarray]]:
        n = table.X.shape[0]
        outputs = columns_of_labels(y)
        class_weights = class_weights_of_outputs(self.class_weight, len(outputs))
        found = [
            check_training_labels(labels, sample_weight, weights, n, min_classes=1)
            for labels, weights in zip(outputs, class_weights, strict=True)
        ]
        given = found[0].weight
        weight = given.copy()
        for labels in found:
            weight = moderate(weight * labels.factors[labels.codes])
        kept = which_count(given)
        codes = np.stack([labels.codes for labels in found], axis=1)[kept]
        samples = samples_of(given[kept], sample_weight)
        counts = [len(one.classes) for one in found]
        targets = class_targets(codes, counts, weight[kept], samples)
        training = self._training_of(table.of_rows(kept), targets)
        return training, [one.classes for one in found]

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """The shares of the classes in the leaf of each row; a list of them for several outputs."""
        shares = self._values(X)
        return shares if self.n_outputs_ == 1 else by_output(shares, self.n_classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the shares."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(shares) if self.n_outputs_ == 1 else [np.log(s) for s in shares]

    def predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        """The most frequent class in the leaf of each row; the first one if several are equal."""
        check_is_fitted(self, "arrays_")
        if not self.arrays_.is_binary:
            mixed: np.ndarray = self.classes_[np.argmax(self._values(X), axis=1)]
            return mixed
        leaves = self._leaves(X)
        if self.n_outputs_ == 1 and len(leaves) < len(self.arrays_):
            winners = np.argmax(np.take(self.arrays_.value, leaves, axis=0), axis=1)
            of_leaves: np.ndarray = self.classes_[winners]
            return of_leaves
        if self.n_outputs_ == 1:
            labels_of_nodes = self.classes_[np.argmax(self.arrays_.value, axis=1)]
            found: np.ndarray = np.take(labels_of_nodes, leaves)
            return found
        shares = by_output(np.take(self.arrays_.value, leaves, axis=0), self.n_classes_)
        return np.stack(
            [labels[np.argmax(s, axis=1)] for labels, s in zip(self.classes_, shares, strict=True)],
            axis=1,
        )

    def _class_counts(self) -> list[int]:
        return [int(self.n_classes_)] if self.n_outputs_ == 1 else list(self.n_classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    """A decision tree for numbers.

    A drop-in replacement for `sklearn.tree.DecisionTreeRegressor`; see `DecisionTreeClassifier` for
    the differences.

    Parameters
    ----------
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson", "gamma"}
        The error that splits reduce; default="squared_error", of which "friedman_mse" is a
        deprecated name. With "absolute_error" a leaf predicts the median of its targets, else their
        mean.
    splitter : {"best", "random", "oblique"}, default="best"
        "random" draws one threshold for each feature and takes the best of those. "oblique" also
        tries one linear combination of all features, which a linear model finds for each node.
    split : {"binary", "multiway"}, default="binary"
        "multiway" gives a categorical feature one branch for each of its values and does not split
        by it again further down, as ID3 and C4.5 do. A row whose value is missing takes all
        branches, each with a share.
    max_depth : int or None, default=None
        Largest number of edges from the root to a leaf. Without it, nodes deeper than 500 levels
        are split into halves, and a warning says so.
    min_samples_split : int or float, default=2
        Smallest number of samples of a node that is split; a share of all samples if a float.
    min_samples_leaf : int or float, default=1
        Smallest number of samples of a leaf; a share of all samples if a float.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight that a leaf may have.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        How many features are drawn for each node and searched.
    random_state : int, RandomState, Generator or None, default=None
        Seed of random numbers, where any are drawn; up to 64 bits.
    max_leaf_nodes : int or None, default=None
        Grow best-first up to this number of leaves: the leaf whose split gains most comes first.
    min_impurity_decrease : float, default=0.0
        Smallest decrease of the impurity, weighted by the node's share of the weight, for which a
        node is split.
    ccp_alpha : float, default=0.0
        Cost of a leaf in cost-complexity pruning: branches that gain less than it are removed.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features in which the prediction may only rise (1) or fall (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    oblique_learner : {"svm", "perceptron", "prototypes"}, default="svm"
        What finds the directions of oblique splits: a linear support vector machine, a perceptron,
        or the nearest of two prototypes.
    significance : float or None, default=None
        Make no split whose p-value is above this (chi-square test for classes, F-test for means).
    max_error : float or None, default=None
        Do not split a node whose training error is at most this.
    early_stopping : bool, default=False
        Make no split that does not lower the error on rows held out of the training.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out.
    max_bins : int or None, default=None
        Largest number of distinct values of a numeric column; neighbours are merged. None keeps
        all values.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores.
    max_time : float or None, default=None
        Seconds after which growing stops; the tree grown so far is kept.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt, or keep the tree grown so far.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    arrays_ : TreeArrays
        The tree; see `margrove.grove.serve.tree_arrays`.
    tree_ : TreeView
        The same in the arrays of scikit-learn's `tree_`.
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has names.
    feature_importances_ : ndarray

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [5.0, 5.0, 8.0, 8.0])
    >>> model.get_n_leaves(), model.predict([[1.2], [1.7]])
    (2, array([5., 8.]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = TREE_PARAMETERS | {
        "criterion": [CriterionNames(for_classes=False)],
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: Literal["best", "random", "oblique"] = "best",
        split: Literal["binary", "multiway"] = "binary",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        oblique_learner: Literal["svm", "perceptron", "prototypes"] = "svm",
        significance: float | None = None,
        max_error: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        max_bins: int | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.criterion = without_friedman(criterion)
        self.splitter = splitter
        self.split = split
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.oblique_learner = oblique_learner
        self.significance = significance
        self.max_error = max_error
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.max_bins = max_bins
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Missing values are NaN.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            0 removes a row, 2 counts it twice.
        check_input : bool, default=True
            Ignored: input is always checked. It exists for compatibility with scikit-learn.

        Returns
        -------
        self
        """
        self._check_parameters()
        table = read_table(X, self, self.categorical_features)
        training, scale = self._training(table, y, sample_weight)

        def learnt(arrays: TreeArrays) -> dict[str, Any]:
            return {
                "arrays_": arrays,
                "n_outputs_": len(training.targets.starts) - 1,
                "max_features_": number_of_features(self.max_features, table.X.shape[1]),
            }

        self._grow(training, X, y, learnt, scale)
        return self

    def _training(self, table: Any, y: Any, sample_weight: Any) -> tuple[TreeTraining, float]:
        n = table.X.shape[0]
        given = check_targets(y, n, multi_output=True)
        numbers = given[:, None] if given.ndim == 1 else given
        weight = moderate(check_weights(sample_weight, n))
        kept = which_count(weight)
        numbers, weight = numbers[kept], weight[kept]
        CRITERIA[self.criterion].check_targets(numbers)
        scale = power_of_two_near(numbers)
        is_median = CRITERIA[self.criterion].has_medians
        targets = number_targets(
            numbers / scale,
            weight,
            samples_of(weight, sample_weight),
            **({"bits": MEDIAN_WEIGHT_BITS} if is_median else {}),
        )
        return self._training_of(table.of_rows(kept), targets), scale

    def predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        """The mean (or median) of the targets in the leaf of each row."""
        value = self._values(X)
        return value[:, 0] if self.n_outputs_ == 1 else value
