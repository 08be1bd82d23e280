"""Random forests and extremely randomised trees."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_targets, check_training_labels, check_weights, moderate
from margrove._runtime.threads import resolve_n_jobs
from margrove.ensemble.forest.forest import FOREST_PARAMETERS, Forest
from margrove.ensemble.forest.intervals import Residuals, jackknife_variance, keep_leaf_samples
from margrove.ensemble.forest.out_of_bag import OutOfBag
from margrove.ensemble.forest.training_data import ForestTraining, Sampler
from margrove.grove.criteria import CriterionNames, without_friedman
from margrove.grove.decision_tree import DecisionTree
from margrove.grove.estimators import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.serve.class_shares import by_output
from margrove.grove.serve.packed_trees import Kind, PackedTree
from margrove.grove.table.encoding import TreeTable
from margrove.grove.table.given_targets import (
    MEDIAN_WEIGHT_BITS,
    check_range,
    class_weights_of_outputs,
    columns_of_labels,
    power_of_two_near,
    samples_of,
    which_count,
)
from margrove.grove.table.targets import class_targets, number_targets

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]


class _ForestOfClasses(ClassifierMixin, Forest):
    """A forest that votes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = FOREST_PARAMETERS | {
        "criterion": [CriterionNames(for_classes=True)],
        "class_weight": [StrOptions({"balanced", "balanced_subsample"}), dict, list, None],
        "voting": [StrOptions({"soft", "hard"})],
    }

    def _training(
        self, table: TreeTable, y: Any, sample_weight: Any, seed: int
    ) -> tuple[ForestTraining, dict[str, Any]]:
        n = table.X.shape[0]
        outputs = columns_of_labels(y)
        self._check_scored(outputs)
        by_tree = self.class_weight == "balanced_subsample" and self.bootstrap
        wish = "balanced" if self.class_weight == "balanced_subsample" else self.class_weight
        wishes = class_weights_of_outputs(None if by_tree else wish, len(outputs))
        found = [
            check_training_labels(own, sample_weight, weights, n, min_classes=1)
            for own, weights in zip(outputs, wishes, strict=True)
        ]
        given = found[0].weight
        kept = which_count(given)
        table, weight = table.of_rows(kept), given[kept]
        codes = np.stack([labels.codes for labels in found], axis=1)[kept]
        factors = np.ones(len(weight))
        for labels, own in zip(found, codes.T, strict=True):
            factors = moderate(factors * labels.factors[own])
        target = codes[:, 0] if len(outputs) == 1 else codes
        order, line, places = self._ordered(table, target, weight)
        data = self._coded(table, order, weight)
        classes = [labels.classes for labels in found]
        counts = [len(own) for own in classes]
        samples = samples_of(line, sample_weight)
        targets = class_targets(codes[order], counts, moderate(line * factors[order]), samples)
        single = len(classes) == 1
        training = ForestTraining(
            table,
            order,
            data,
            targets,
            self._sampled(seed, order, line, kept, places, n),
            None if np.all(factors == 1.0) else factors[order],
            by_tree,
        )
        return training, {
            "classes_": classes[0] if single else classes,
            "n_classes_": counts[0] if single else counts,
            "n_outputs_": len(classes),
        }

    def _check_scored(self, outputs: list[Any]) -> None:
        """Refuse an accuracy of labels for which `score` has none."""
        if not self.oob_score or callable(self.oob_score) or len(outputs) == 1:
            return
        kind = type_of_target(np.stack(outputs, axis=1))
        if kind != "multilabel-indicator":
            raise ValueError(
                f"The type of target cannot be used to compute OOB estimates. Got {kind} while "
                "only binary, multiclass and multilabel-indicator have an accuracy. Give "
                "oob_score a function of y and the predictions."
            )

    def _tree_class(self) -> type[DecisionTree]:
        return DecisionTreeClassifier

    def _is_hard(self) -> bool:
        return bool(self.voting == "hard")

    def _is_for_classes(self) -> bool:
        return True

    def _signature(self) -> dict[str, Any]:
        classes = [self.classes_] if self.n_outputs_ == 1 else self.classes_
        return super()._signature() | {"classes_": [list(own) for own in classes]}

    def _scored_out_of_bag(
        self, predictions: np.ndarray, training: ForestTraining, learnt: dict[str, Any], y: Any
    ) -> dict[str, Any]:
        shares = _by_output(predictions, learnt)
        single = learnt["n_outputs_"] == 1
        classes = [learnt["classes_"]] if single else learnt["classes_"]
        known = ~np.isnan(predictions[:, 0])
        winners = np.stack(
            [
                own[np.argmax(np.nan_to_num(share), axis=1)]
                for own, share in zip(classes, shares, strict=True)
            ],
            axis=1,
        )[known]
        attributes: dict[str, Any] = {
            "oob_decision_function_": shares[0] if single else np.stack(_padded(shares), axis=2)
        }
        if not self.oob_score or not known.any():
            return attributes
        truth = np.stack([np.asarray(own).ravel() for own in columns_of_labels(y)], axis=1)[known]
        if callable(self.oob_score):
            given = (truth[:, 0], winners[:, 0]) if single else (truth, winners)
            attributes["oob_score_"] = self.oob_score(*given)
        else:
            is_right = (truth == winners).all(axis=1)  # the accuracy of `score`
            weight = _weights_of_rows(training)[known]
            attributes["oob_score_"] = float(np.average(is_right, weights=weight))
        return attributes

    def predict_proba(self, X: Any) -> Any:
        """The mean of the trees' shares of the classes, or the shares of their votes."""
        shares = self._means(X)
        return shares if self.n_outputs_ == 1 else _by_output(shares, dict(vars(self)))

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the shares."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(shares) if self.n_outputs_ == 1 else [np.log(own) for own in shares]

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest share; of equally large ones the first."""
        shares = self.predict_proba(X)
        if self.n_outputs_ == 1:
            found: np.ndarray = self.classes_[np.argmax(shares, axis=1)]
            return found
        return np.stack(
            [own[np.argmax(s, axis=1)] for own, s in zip(self.classes_, shares, strict=True)],
            axis=1,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class _ForestOfNumbers(RegressorMixin, Forest):
    """A forest that averages."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = FOREST_PARAMETERS | {
        "criterion": [CriterionNames(for_classes=False)],
        "keep_samples": ["boolean"],
    }

    def _training(
        self, table: TreeTable, y: Any, sample_weight: Any, seed: int
    ) -> tuple[ForestTraining, dict[str, Any]]:
        n = table.X.shape[0]
        given = check_targets(y, n, multi_output=True)
        numbers = given[:, None] if given.ndim == 1 else given
        weight = moderate(check_weights(sample_weight, n))
        kept = which_count(weight)
        table, numbers, weight = table.of_rows(kept), numbers[kept], weight[kept]
        check_range(self.criterion, numbers)
        scale = power_of_two_near(numbers)
        target = numbers[:, 0] if numbers.shape[1] == 1 else numbers
        order, line, places = self._ordered(table, target, weight)
        data = self._coded(table, order, weight)
        is_median = self.criterion == "absolute_error"
        targets = number_targets(
            numbers[order] / scale,
            line,
            samples_of(line, sample_weight),
            **({"bits": MEDIAN_WEIGHT_BITS} if is_median else {}),
        )
        training = ForestTraining(
            table,
            order,
            data,
            targets,
            self._sampled(seed, order, line, kept, places, n),
            None,
            False,
            scale,
        )
        return training, {"n_outputs_": numbers.shape[1]}

    def _tree_class(self) -> type[DecisionTree]:
        return DecisionTreeRegressor

    def _scored_out_of_bag(
        self, predictions: np.ndarray, training: ForestTraining, learnt: dict[str, Any], y: Any
    ) -> dict[str, Any]:
        known = ~np.isnan(predictions[:, 0])
        single = learnt["n_outputs_"] == 1
        attributes: dict[str, Any] = {
            "oob_prediction_": predictions[:, 0] if single else predictions
        }
        if not self.oob_score or known.sum() < 2:
            return attributes
        truth = np.asarray(y, dtype=np.float64).reshape(len(predictions), -1)[known]
        found = predictions[known]
        if callable(self.oob_score):
            given = (truth[:, 0], found[:, 0]) if single else (truth, found)
            attributes["oob_score_"] = self.oob_score(*given)
        else:
            weight, scale = _weights_of_rows(training)[known], training.scale
            attributes["oob_score_"] = float(
                r2_score(truth / scale, found / scale, sample_weight=weight)
            )
        return attributes

    def _residuals(self, out_of_bag: OutOfBag, training: ForestTraining) -> dict[str, Any]:
        if len(training.targets.starts) > 2:
            return {}
        known = out_of_bag.counts > 0
        errors = training.targets.raw * training.scale - out_of_bag.predictions()[:, 0]
        times = training.targets.samples[known]  # a row of weight 2 has two residuals
        spreads = out_of_bag.spreads()[:, 0]
        return {
            "residuals_": Residuals.of(
                np.repeat(errors[known], times), np.repeat(spreads[known], times)
            )
        }

    def _leaf_samples(
        self, training: ForestTraining, sampler: Sampler, trees: list[PackedTree], kind: Kind
    ) -> dict[str, Any]:
        if not self.keep_samples:
            return {}
        if kind.n_outputs > 1:
            raise ValueError("keep_samples=True takes one output. Fit one forest for each.")
        return {
            "leaf_samples_": keep_leaf_samples(
                trees,
                kind,
                training.table.X,
                training.order,
                training.targets.raw * training.scale,
                lambda number: sampler.weights(number)[0],
                resolve_n_jobs(self.n_jobs, unset="all"),
            )
        }

    def predict(self, X: Any) -> np.ndarray:
        """The mean of what the trees say."""
        means = self._means(X)
        return means[:, 0] if self.n_outputs_ == 1 else means

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of y for each row, from the training targets in its leaves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        quantiles : float or array-like of them, default=(0.05, 0.5, 0.95)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles), or (n_samples,) for one quantile
        """
        check_is_fitted(self, "trees_")
        wanted = np.asarray(quantiles, dtype=np.float64)
        if wanted.ndim > 1 or not np.all((wanted >= 0.0) & (wanted <= 1.0)):
            raise ValueError(f"quantiles must be between 0 and 1. Got {quantiles!r}.")
        if not hasattr(self, "leaf_samples_"):
            raise ValueError(
                "predict_quantiles needs the training rows of each leaf. Fit with "
                "keep_samples=True."
            )
        found = self.leaf_samples_.quantiles(self._leaves(X), np.atleast_1d(wanted))
        return found[:, 0] if wanted.ndim == 0 else found

    def predict_variance(self, X: Any) -> np.ndarray:
        """How much the prediction of each row would vary with the training set.

        The infinitesimal jackknife, with the noise of a finite number of trees taken off. This is
        not the spread of y: see `predict_interval` for that.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "trees_")
        sampled = getattr(self, "sampled_", None)
        if sampled is None or sampled.n_draws is None:
            raise ValueError(
                "predict_variance needs the bootstrap samples of the trees. Fit with "
                "bootstrap=True, and ask the forest itself, not a part or a sum of forests."
            )
        if self.n_outputs_ > 1:
            raise ValueError("predict_variance takes one output. Fit one forest for each.")
        values = self._values_of_trees(X)[:, :, 0]
        n_threads = resolve_n_jobs(self.n_jobs, unset="all")
        return jackknife_variance(sampled, len(self.trees_), values, n_threads)

    def predict_interval(
        self, X: Any, confidence: float = 0.9, *, method: Literal["conformal", "local"] = "local"
    ) -> np.ndarray:
        """Bounds between which y lies, for a new row, with the given confidence.

        Conformal intervals from out-of-bag residuals: "conformal" ones are equally wide everywhere,
        "local" ones are as wide as the trees disagree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        confidence : float, default=0.9
        method : {"conformal", "local"}, default="local"

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        check_is_fitted(self, "trees_")
        if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must be between 0 and 1. Got {confidence!r}.")
        if method not in ("conformal", "local"):
            raise ValueError(f"method must be 'conformal' or 'local'. Got {method!r}.")
        if not hasattr(self, "residuals_"):
            raise ValueError(
                "predict_interval needs out-of-bag residuals of one output. Fit with "
                "oob_score=True and bootstrap=True."
            )
        low, high = self.residuals_.bounds(float(confidence), local=method == "local")
        bounds = np.array([low, high])
        if method == "conformal":
            return np.asarray(self.predict(X)[:, None] + bounds)
        values = self._values_of_trees(X)[:, :, 0]
        spread = np.maximum(values.std(axis=1), self.residuals_.least_spread)
        return np.asarray(values.mean(axis=1)[:, None] + spread[:, None] * bounds)


class RandomForestClassifier(_ForestOfClasses):
    """A random forest for classes: trees of bootstrap samples that look at a few features a split.

    A drop-in for `sklearn.ensemble.RandomForestClassifier`. In addition it takes labels and missing
    values as they are, gives out-of-bag curves, and is a value: forests can be added, sliced and
    looked into. A weight k is exactly a row that is there k times, the order of the rows does not
    matter, and neither does n_jobs.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        What a split lowers.
    max_depth : int or None, default=None
        Most edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Fewest samples that a node to be split may have; a share of all samples if a float.
    min_samples_leaf : int or float, default=1
        Fewest samples of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the whole weight that a leaf may have.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        How many features, newly drawn for each node, are looked at.
    max_leaf_nodes : int or None, default=None
        Grow best-first, the leaf whose split gains most at a time, to so many leaves.
    min_impurity_decrease : float, default=0.0
        Least decrease of the impurity, weighted by the node's share, that is worth a split.
    bootstrap : bool, default=True
        Whether each tree is grown of a sample that is drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to work out `oob_score_` and the other out-of-bag figures; a function of y and the
        predictions instead of the accuracy. Of several labels, all of a row must be right.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all that is drawn. Tree k depends on the seed and k only.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Factors on the weights of the classes; "balanced_subsample" works them out for each tree.
    ccp_alpha : float, default=0.0
        Price of a leaf: each tree is pruned to the subtree whose branches are all worth it.
    max_samples : int, float or None, default=None
        How many rows are drawn for each tree; a share of them, or a multiple, if a float.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only rise (1) or fall (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Most different values of a numeric column; neighbours are merged. None keeps all.
    voting : {"soft", "hard"}, default="soft"
        Average the trees' probabilities, or count their votes.
    max_time : float or None, default=None
        Seconds after which the forest ends with the trees it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: nothing has happened, or the trees so far are kept.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common.
    sampled_ : SampledRows
        Which rows were drawn for each tree, as a recipe.
    estimators_ : sequence of DecisionTreeClassifier
        The same as estimators, made when asked for. `random_state` of each is what it was grown
        with: a clone that is fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown of.
    classes_ : ndarray, or list of them
    n_classes_ : int, or list of int
    oob_decision_function_ : ndarray
        With oob_score: for each row the mean of the trees that have not seen it.
    oob_score_ : float
    oob_curve_ : ndarray
        The out-of-bag error after each tree.
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.
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


class RandomForestRegressor(_ForestOfNumbers):
    """A random forest for numbers: the mean of trees that were grown of bootstrap samples.

    A drop-in for `sklearn.ensemble.RandomForestRegressor`; see `RandomForestClassifier` for what is
    different. It also has prediction intervals: `predict_interval`, `predict_quantiles` and
    `predict_variance`.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson", "gamma"}
        What a split lowers; default="squared_error", of which "friedman_mse" is a deprecated name.
    max_depth : int or None, default=None
        Most edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Fewest samples that a node to be split may have; a share of all samples if a float.
    min_samples_leaf : int or float, default=1
        Fewest samples of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the whole weight that a leaf may have.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        How many features, newly drawn for each node, are looked at.
    max_leaf_nodes : int or None, default=None
        Grow best-first, the leaf whose split gains most at a time, to so many leaves.
    min_impurity_decrease : float, default=0.0
        Least decrease of the impurity, weighted by the node's share, that is worth a split.
    bootstrap : bool, default=True
        Whether each tree is grown of a sample that is drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to work out `oob_score_` and the other out-of-bag figures; a function of y and the
        predictions instead of R^2.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all that is drawn. Tree k depends on the seed and k only.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    ccp_alpha : float, default=0.0
        Price of a leaf: each tree is pruned to the subtree whose branches are all worth it.
    max_samples : int, float or None, default=None
        How many rows are drawn for each tree; a share of them, or a multiple, if a float.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only rise (1) or fall (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Most different values of a numeric column; neighbours are merged. None keeps all.
    keep_samples : bool, default=False
        Keep which training rows are in each leaf, for `predict_quantiles`.
    max_time : float or None, default=None
        Seconds after which the forest ends with the trees it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: nothing has happened, or the trees so far are kept.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common.
    sampled_ : SampledRows
        Which rows were drawn for each tree, as a recipe.
    estimators_ : sequence of DecisionTreeRegressor
        The same as estimators, made when asked for. `random_state` of each is what it was grown
        with: a clone that is fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown of.
    oob_prediction_ : ndarray
        With oob_score: for each row the mean of the trees that have not seen it.
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
        Where X has names.
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


class ExtraTreesClassifier(_ForestOfClasses):
    """Extremely randomised trees for classes: thresholds are drawn, the best of a few is taken.

    A drop-in for `sklearn.ensemble.ExtraTreesClassifier`; see `RandomForestClassifier` for what is
    different.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        What a split lowers.
    max_depth : int or None, default=None
        Most edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Fewest samples that a node to be split may have; a share of all samples if a float.
    min_samples_leaf : int or float, default=1
        Fewest samples of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the whole weight that a leaf may have.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        How many features, newly drawn for each node, are looked at.
    max_leaf_nodes : int or None, default=None
        Grow best-first, the leaf whose split gains most at a time, to so many leaves.
    min_impurity_decrease : float, default=0.0
        Least decrease of the impurity, weighted by the node's share, that is worth a split.
    bootstrap : bool, default=False
        Whether each tree is grown of a sample that is drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to work out `oob_score_` and the other out-of-bag figures; a function of y and the
        predictions instead of the accuracy. Of several labels, all of a row must be right.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all that is drawn. Tree k depends on the seed and k only.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Factors on the weights of the classes; "balanced_subsample" works them out for each tree.
    ccp_alpha : float, default=0.0
        Price of a leaf: each tree is pruned to the subtree whose branches are all worth it.
    max_samples : int, float or None, default=None
        How many rows are drawn for each tree; a share of them, or a multiple, if a float.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only rise (1) or fall (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Most different values of a numeric column; neighbours are merged. None keeps all.
    voting : {"soft", "hard"}, default="soft"
        Average the trees' probabilities, or count their votes.
    max_time : float or None, default=None
        Seconds after which the forest ends with the trees it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: nothing has happened, or the trees so far are kept.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common.
    sampled_ : SampledRows
        Which rows were drawn for each tree, as a recipe.
    estimators_ : sequence of DecisionTreeClassifier
        The same as estimators, made when asked for. `random_state` of each is what it was grown
        with: a clone that is fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown of.
    classes_ : ndarray, or list of them
    n_classes_ : int, or list of int
    oob_decision_function_ : ndarray
        With oob_score: for each row the mean of the trees that have not seen it.
    oob_score_ : float
    oob_curve_ : ndarray
        The out-of-bag error after each tree.
    n_outputs_ : int
    max_features_ : int
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.
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


class ExtraTreesRegressor(_ForestOfNumbers):
    """Extremely randomised trees for numbers: thresholds are drawn, the best of them is taken.

    A drop-in for `sklearn.ensemble.ExtraTreesRegressor`; see `RandomForestRegressor` for what is
    different.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        The number of trees; "auto" grows them until the out-of-bag error is flat.
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson", "gamma"}
        What a split lowers; default="squared_error", of which "friedman_mse" is a deprecated name.
    max_depth : int or None, default=None
        Most edges from the root to a leaf.
    min_samples_split : int or float, default=2
        Fewest samples that a node to be split may have; a share of all samples if a float.
    min_samples_leaf : int or float, default=1
        Fewest samples of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the whole weight that a leaf may have.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        How many features, newly drawn for each node, are looked at.
    max_leaf_nodes : int or None, default=None
        Grow best-first, the leaf whose split gains most at a time, to so many leaves.
    min_impurity_decrease : float, default=0.0
        Least decrease of the impurity, weighted by the node's share, that is worth a split.
    bootstrap : bool, default=False
        Whether each tree is grown of a sample that is drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to work out `oob_score_` and the other out-of-bag figures; a function of y and the
        predictions instead of R^2.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all that is drawn. Tree k depends on the seed and k only.
    verbose : int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Add trees to those of the last fit, up to n_estimators.
    ccp_alpha : float, default=0.0
        Price of a leaf: each tree is pruned to the subtree whose branches are all worth it.
    max_samples : int, float or None, default=None
        How many rows are drawn for each tree; a share of them, or a multiple, if a float.
    monotonic_cst : array-like of {-1, 0, 1}, dict of names or None, default=None
        Features with which the prediction may only rise (1) or fall (-1).
    categorical_features : "from_dtype", "all", array-like or None, default="from_dtype"
        Columns whose values are labels without an order.
    max_bins : int or None, default=None
        Most different values of a numeric column; neighbours are merged. None keeps all.
    keep_samples : bool, default=False
        Keep which training rows are in each leaf, for `predict_quantiles`.
    max_time : float or None, default=None
        Seconds after which the forest ends with the trees it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: nothing has happened, or the trees so far are kept.

    Attributes
    ----------
    trees_ : list of PackedTree
        The trees, 20 bytes a node.
    kind_ : Kind
        What the trees have in common.
    sampled_ : SampledRows
        Which rows were drawn for each tree, as a recipe.
    estimators_ : sequence of DecisionTreeRegressor
        The same as estimators, made when asked for. `random_state` of each is what it was grown
        with: a clone that is fitted to the rows of its sample is the same tree.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown of.
    oob_prediction_ : ndarray
        With oob_score: for each row the mean of the trees that have not seen it.
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
        Where X has names.
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


def _by_output(shares: np.ndarray, learnt: dict[str, Any]) -> list[np.ndarray]:
    sizes = [learnt["n_classes_"]] if learnt["n_outputs_"] == 1 else learnt["n_classes_"]
    return by_output(shares, sizes)


def _padded(shares: list[np.ndarray]) -> list[np.ndarray]:
    """As many columns for each output."""
    most = max(own.shape[1] for own in shares)
    return [np.pad(own, ((0, 0), (0, most - own.shape[1]))) for own in shares]


def _weights_of_rows(training: ForestTraining) -> np.ndarray:
    """What each row of the table counts, as far as out-of-bag figures go."""
    sampled = training.sampled
    places = sampled.places
    weight = np.ones(len(sampled.rows)) if sampled.weight is None else sampled.weight
    sharing = np.bincount(places[places >= 0], minlength=len(weight))
    found: np.ndarray = np.where(places >= 0, (weight / np.maximum(sharing, 1))[places], 0.0)
    return found
