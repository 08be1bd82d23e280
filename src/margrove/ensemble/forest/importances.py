"""Importances of the features of a forest, measured on the out-of-bag rows of its trees.

Permutation importance (Breiman 2001, section 10): for tree k with out-of-bag rows O_k

    rise_k(j)  =  mean over O_k of  loss with the values of feature j permuted among O_k
                                    - loss without permutation

Impurity importance, out of bag (Li, Wang, Basu, Kumbier and Yu 2019, equation 7): with v(t) the
feature that node t splits by, mu(t) its value and t -> c the steps on the path of row x_i

    gain_k(j)  =  mean over O_k of  f_kj(x_i) . y_i,       f_kj(x) = sum of mu(c) - mu(t), v(t) = j

Over the rows that the tree was grown on, the same mean is the usual decrease of impurity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy import stats
from sklearn.utils._param_validation import Interval

from margrove._data import seed_of
from margrove._runtime import RANDOM_STATE, require_memory, resolve_n_jobs, run_tiles
from margrove.ensemble.bootstrap import check_arguments, stream
from margrove.ensemble.forest.evaluation_data import (
    TrainingRows,
    predictions_of_leaves,
    require_forest,
    squares_of_targets,
)
from margrove.ensemble.forest.forest import Forest
from margrove.ensemble.forest.importance_kernels import add_gains, rises_of_features, words_of
from margrove.grove.serve import PackedTree, leaves_of_some, values_of_nodes

__all__ = ["OobImportances", "oob_importances", "oob_impurity_importances"]

_PERMUTATIONS = 0x5851F42D  # separates the random numbers of permutations and samples
_SHOWN = 10  # features in a repr
_LEVEL: dict[str, list[Any]] = {
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "n_jobs": [Integral, None],
}
_ARGUMENTS: dict[str, list[Any]] = {
    "n_repeats": [Interval(Integral, 1, None, closed="left")],
    **_LEVEL,
    **RANDOM_STATE,
}


@dataclass(frozen=True, eq=False, repr=False)
class OobImportances:
    """Importances of features, measured on the out-of-bag rows of each tree.

    Attributes
    ----------
    measure : {"permutation", "impurity"}
    feature_names : list of str
    mean : ndarray of shape (n_features,)
        The mean over the trees.
    standard_error : ndarray of shape (n_features,)
        Of the mean, from the variance between trees; NaN for a single tree. It describes how much
        another set of trees, grown on the same data, would differ.
    low, high : ndarray of shape (n_features,)
        Student's t interval around the mean, at `confidence_level`.
    confidence_level : float
    by_tree : ndarray of shape (n_trees, n_features)
        The importances for each tree. NaN for a tree that has seen all rows; the mean is over the
        other trees.
    tree_errors : ndarray of shape (n_trees,)
        The out-of-bag error of each tree: its misclassified share, or mean squared error.
    """

    measure: Literal["permutation", "impurity"]
    feature_names: list[str]
    mean: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence_level: float
    by_tree: np.ndarray
    tree_errors: np.ndarray

    @property
    def ranking(self) -> list[str]:
        """The names of the features, the most important first; equal ones in column order."""
        return [self.feature_names[j] for j in np.argsort(-self.mean, kind="stable")]

    def __repr__(self) -> str:
        order = np.argsort(-self.mean, kind="stable")
        shown = [f"{self.feature_names[j]} {self.mean[j]:.3g}" for j in order[:_SHOWN]]
        more = f", and {len(order) - _SHOWN} more" if len(order) > _SHOWN else ""
        return (
            f"OobImportances({self.measure}, {len(self.by_tree)} trees: {', '.join(shown)}{more})"
        )

    def __str__(self) -> str:
        width = max([7, *map(len, self.feature_names)])
        level = f"{100 * self.confidence_level:g} %"
        lines = [f"{'feature':{width}}  {'importance':>10}  {'std. error':>10}  {level} interval"]
        for j in np.argsort(-self.mean, kind="stable"):
            lines.append(
                f"{self.feature_names[j]:{width}}  {self.mean[j]:10.4g}  "
                f"{self.standard_error[j]:10.2g}  {self.low[j]:.4g} .. {self.high[j]:.4g}"
            )
        return "\n".join(lines)


def oob_importances(
    forest: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_repeats: int = 1,
    confidence_level: float = 0.95,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> OobImportances:
    """How much the error of a forest's trees increases when the values of a feature are permuted.

    Each tree is evaluated on its out-of-bag rows, so no test set is needed (Breiman 2001). The
    error is the misclassified share, or the mean squared error. A feature that is correlated with
    others has a low importance because these can replace it, and permuting it makes combinations
    of values that may not exist in the data.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees, with bootstrap=True
    X, y : the table and targets that the forest was trained on, rows in the same order
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the errors; by default those of the training.
    n_repeats : int, default=1
        Number of permutations for each tree and feature, which are averaged. More trees reduce the
        noise more than more repeats.
    confidence_level : float, default=0.95
        Of the intervals.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the permutations. A permutation depends only on it, the tree and the feature.
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. Results do not depend on it.

    Returns
    -------
    OobImportances

    Examples
    --------
    >>> from margrove import RandomForestClassifier
    >>> from margrove.datasets import load_iris
    >>> from margrove import oob_importances
    >>> iris = load_iris()
    >>> forest = RandomForestClassifier(random_state=0).fit(iris.data, iris.target)
    >>> found = oob_importances(forest, iris.data, iris.target, random_state=0)
    >>> sorted(found.ranking[:2])  # petal length and width
    ['x2', 'x3']
    >>> found.by_tree.shape
    (100, 4)
    """
    given = {"n_repeats": n_repeats, "confidence_level": confidence_level, "n_jobs": n_jobs}
    check_arguments(_ARGUMENTS, given | {"random_state": random_state}, "oob_importances")
    require_forest(forest, "oob_importances")
    training = TrainingRows(forest, X, y, sample_weight, "oob_importances")
    seed = seed_of(random_state) ^ _PERMUTATIONS

    def rises(k: int, tree: PackedTree, by_feature: np.ndarray) -> float:
        key = stream(seed, k)
        return _rises(forest, training, k, tree, key, int(n_repeats), by_feature)

    n_threads = resolve_n_jobs(n_jobs, unset="all")
    return _over_trees("permutation", forest, training, rises, confidence_level, n_threads)


def _rises(
    forest: Forest,
    training: TrainingRows,
    k: int,
    tree: PackedTree,
    key: np.uint64,
    n_repeats: int,
    by_feature: np.ndarray,
) -> float:
    left_out = training.left_out(k)
    places = np.flatnonzero(left_out)
    counts = left_out[places]
    require_memory(
        32.0 * float(counts.sum(dtype=np.int64)),
        "Permuting the out-of-bag rows, each repeated as often as its weight,",
        "Divide the weights by a common factor, and fit again.",
    )
    targets = training.targets.of(places)
    return float(
        rises_of_features(
            training.table_rows(tree, places),
            words_of(tree, forest.kind_),
            np.repeat(np.arange(len(places)), counts),
            key,
            n_repeats,
            _table_of_predictions(forest, tree, targets.scale),
            targets.values,
            training.unit_weight[places],
            targets.is_class,
            by_feature,
        )
    )


def _table_of_predictions(forest: Forest, tree: PackedTree, scale: float) -> np.ndarray:
    """The prediction of each leaf, float64 (n_nodes, n_outputs); 0 for other nodes."""
    leaves = np.flatnonzero(tree.is_leaf)
    table = np.zeros((len(tree), forest.n_outputs_))
    table[leaves] = predictions_of_leaves(tree, forest.kind_, leaves) / scale
    return table


def oob_impurity_importances(
    forest: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    centred: bool = True,
    confidence_level: float = 0.95,
    n_jobs: int | None = None,
) -> OobImportances:
    """The impurity decrease by the splits of each feature, measured on out-of-bag rows.

    `feature_importances_` sums up the gains of splits on the rows that they were chosen for. So a
    noise feature with many different values looks important, because some split of it always
    gains. Here the values of the nodes come from training, and the targets from the out-of-bag
    rows (MDI-oob, Li et al. 2019): the mean gain of a noise feature is 0. The unit is the Gini
    impurity for classification and the variance for regression, for every criterion.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees, with bootstrap=True
    X, y : the table and targets that the forest was trained on, rows in the same order
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows; by default those of the training.
    centred : bool, default=True
        Subtract the mean from the targets (0 and 1 for each class). On the rows that a tree was
        grown on this changes nothing; on other rows it reduces noise, and adding a constant to the
        targets does not change the result. False is the published formula.
    confidence_level : float, default=0.95
        Of the intervals.
    n_jobs : int or None, default=None
        Number of threads; None means all permitted cores. Results do not depend on it.

    Returns
    -------
    OobImportances

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import RandomForestClassifier
    >>> from margrove import oob_impurity_importances
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 2, 300), rng.normal(size=300)])  # a coin, and noise
    >>> y = np.where(rng.uniform(size=300) < 0.7, X[:, 0], 1 - X[:, 0])
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> bool(forest.feature_importances_[1] > 0.5)
    True
    >>> found = oob_impurity_importances(forest, X, y)
    >>> bool(found.mean[0] > 3 * abs(found.mean[1]))
    True
    """
    given = {"confidence_level": confidence_level, "n_jobs": n_jobs, "centred": centred}
    constraints = {**_LEVEL, "centred": ["boolean"]}
    check_arguments(constraints, given, "oob_impurity_importances")
    require_forest(forest, "oob_impurity_importances")
    training = TrainingRows(forest, X, y, sample_weight, "oob_impurity_importances")
    centre = _centre(forest, training) if centred else np.zeros(forest.kind_.n_values)

    def gains(k: int, tree: PackedTree, by_feature: np.ndarray) -> float:
        return _gains(forest, training, tree, training.left_out(k), centre, by_feature)

    n_threads = resolve_n_jobs(n_jobs, unset="all")
    return _over_trees("impurity", forest, training, gains, confidence_level, n_threads)


def _centre(forest: Forest, training: TrainingRows) -> np.ndarray:
    """The weighted mean of the targets, (n_values,); of classes, their shares."""
    amount, targets = training.unit_weight * training.n_units, training.targets
    if not targets.is_class:
        return np.asarray(np.average(targets.numbers, axis=0, weights=amount))
    sums = np.zeros(forest.kind_.n_values)
    for labels in targets.labels.T:
        sums += np.bincount(labels, weights=amount, minlength=len(sums))
    return sums / amount.sum()


def _gains(
    forest: Forest,
    training: TrainingRows,
    tree: PackedTree,
    counts: np.ndarray,
    centre: np.ndarray,
    by_feature: np.ndarray,
) -> float:
    """Add the mean gains on rows with the given counts to `by_feature`; returns the tree's error.

    counts are units (m,). NaN if no row counts.
    """
    places = np.flatnonzero(counts)
    amount = counts[places] * training.unit_weight[places]
    total = float(amount.sum())
    if not total > 0.0:
        return float("nan")
    targets = training.targets.of(places)
    values = values_of_nodes(tree, forest.kind_) / targets.scale
    shift = (values * centre).sum(axis=1) if targets.is_class else np.zeros(len(tree))
    add_gains(
        training.table_rows(tree, places),
        words_of(tree, forest.kind_),
        amount / total,
        values,
        shift,
        targets.labels,
        targets.numbers if targets.is_class else targets.numbers - centre,
        by_feature,
    )
    return _error(forest, training, tree, places, amount / total)


def _error(
    forest: Forest, training: TrainingRows, tree: PackedTree, places: np.ndarray, share: np.ndarray
) -> float:
    rows, targets = training.sampled.rows[places], training.targets.of(places)
    leaves = np.empty(training.sampled.n_rows, np.int32)
    leaves_of_some(tree, training.X, rows, forest.kind_, leaves)
    predicted = predictions_of_leaves(tree, forest.kind_, leaves[rows]) / targets.scale
    wrong = predicted != targets.values if targets.is_class else (predicted - targets.values) ** 2
    return float((wrong.mean(axis=1) * share).sum())


def _over_trees(
    measure: Literal["permutation", "impurity"],
    forest: Forest,
    training: TrainingRows,
    measure_tree: Callable[[int, PackedTree, np.ndarray], float],
    confidence_level: float,
    n_threads: int,
) -> OobImportances:
    """Importances of all trees and their mean.

    `measure_tree(k, tree, by_feature)` adds the importances to zeros (d,) and returns the error.
    """
    trees, d = forest.trees_, forest.n_features_in_
    require_memory(
        16.0 * len(trees) * d, "The importances of all trees and features", "Use fewer features."
    )
    by_tree, errors = np.zeros((len(trees), d)), np.empty(len(trees))

    def one(k: int) -> None:
        errors[k] = measure_tree(k, trees[k], by_tree[k])
        if np.isnan(errors[k]):
            by_tree[k] = np.nan

    run_tiles(one, len(trees), n_threads)
    known = by_tree[~np.isnan(errors)]
    if not len(known):
        raise ValueError(
            f"Each of the {len(trees)} trees has seen all rows of positive weight, so there are "
            "no out-of-bag rows. Use more trees."
        )
    mean = known.mean(axis=0)
    spread = np.full(d, np.nan)
    if len(known) > 1:
        spread = known.std(axis=0, ddof=1) / np.sqrt(len(known))
    margin = stats.t.ppf((1.0 + confidence_level) / 2.0, max(len(known) - 1, 1)) * spread
    scale = training.targets.scale
    figures = (mean, spread, mean - margin, mean + margin, by_tree, errors)
    mean, spread, low, high, by_tree, errors = (squares_of_targets(f, scale) for f in figures)
    names = getattr(forest, "feature_names_in_", [f"x{j}" for j in range(d)])
    return OobImportances(
        measure,
        [str(name) for name in names],
        mean,
        spread,
        low,
        high,
        float(confidence_level),
        by_tree,
        errors,
    )
