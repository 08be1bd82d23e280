"""Pruning of estimators: which nodes of a grown tree become leaves.

Grow a large tree, then prune it: a split that gains nothing may have splits below it that gain much
(XOR), which early stopping never finds.

    method             what is minimised                                       needs
    cost_complexity    impurity of the leaves + ccp_alpha * number of leaves   ccp_alpha
    reduced_error      error on rows that the tree was not grown on            X, y
    pessimistic        an upper confidence limit of the error                  confidence
    mdl                bits that encode the tree, and the classes given the tree
    nodes              chosen nodes become leaves                              nodes
    simplify           splits whose leaves all predict the same

The methods are functions of `TreeArrays`, in `cost_complexity` and `pruning_rules`. Here are
`prune` and `cross_validated_alpha`, for estimators.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from margrove._data import check_weights, count_rows, seed_of
from margrove.grove.prune.bottom_up import ROUNDING
from margrove.grove.prune.cost_complexity import (
    cost_complexity_path,
    last_within,
    leaves_along,
    losses_along,
    prune_by_cost_complexity,
)
from margrove.grove.prune.held_out_losses import fitted_arrays, validation_losses
from margrove.grove.prune.pruning_rules import (
    minimum_description_length,
    needs_classes,
    pessimistic,
    prune_nodes,
    reduced_error,
    simplify,
)
from margrove.grove.serve import TreeArrays

__all__ = ["CrossValidatedAlpha", "cross_validated_alpha", "prune"]


def prune(
    model: Any,
    method: Literal[
        "cost_complexity", "reduced_error", "pessimistic", "mdl", "nodes", "simplify"
    ] = "cost_complexity",
    **options: Any,
) -> Any:
    """A copy of a fitted decision tree in which some nodes have become leaves.

    Parameters
    ----------
    model : fitted decision tree
        It is not changed.
    method : str, default="cost_complexity"
        "cost_complexity"
            The tree with the least impurity + ccp_alpha * leaves. `ccp_alpha` is needed;
            `cross_validated_alpha` finds a good one.
        "reduced_error"
            Greedily remove what improves predictions for held-out rows. `X` and `y` are needed,
            `sample_weight` is optional.
        "pessimistic"
            Compare upper confidence limits of the error, as C4.5 does. `confidence` is 0.25 by
            default.
        "mdl"
            The shortest description of tree and classes.
        "nodes"
            The nodes in `nodes`, a list of node numbers, become leaves.
        "simplify"
            Remove splits that change no prediction.
    **options
        As named above.

    Returns
    -------
    fitted decision tree of the same class

    Examples
    --------
    >>> import margrove
    >>> from margrove.grove.prune.pruning import prune
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> model = margrove.DecisionTreeClassifier().fit(X[::2], y[::2])
    >>> model.get_n_leaves(), prune(model, ccp_alpha=0.05).get_n_leaves()
    (6, 3)
    >>> prune(model, "reduced_error", X=X[1::2], y=y[1::2]).get_n_leaves()
    4
    """
    tree = fitted_arrays(model)
    if not isinstance(method, str) or method not in _METHODS:
        known = ", ".join(repr(name) for name in _METHODS)
        raise ValueError(f"method must be one of {known}. Got {method!a}.")
    _require_options(method, options)
    return model._with_arrays(_METHODS[method](model, tree, **options))


def _by_cost_complexity(model: Any, tree: TreeArrays, *, ccp_alpha: float) -> TreeArrays:
    return prune_by_cost_complexity(tree, ccp_alpha)


def _by_reduced_error(
    model: Any, tree: TreeArrays, *, X: Any, y: Any, sample_weight: Any = None
) -> TreeArrays:
    return reduced_error(tree, validation_losses(model, X, y, sample_weight)).tree


def _by_confidence(
    model: Any, tree: TreeArrays, *, confidence: float = 0.25, tolerance: float = 0.1
) -> TreeArrays:
    _require_classifier(model, "pessimistic")
    return pessimistic(tree, confidence, tolerance=tolerance)


def _by_description_length(model: Any, tree: TreeArrays) -> TreeArrays:
    _require_classifier(model, "mdl")
    return minimum_description_length(tree, int(model.n_classes_), int(model.n_features_in_))


def _by_choice(model: Any, tree: TreeArrays, *, nodes: Any) -> TreeArrays:
    return prune_nodes(tree, nodes)


def _by_predictions(model: Any, tree: TreeArrays) -> TreeArrays:
    return simplify(tree, is_class=is_classifier(model), n_classes=model._class_counts())


_METHODS: dict[str, Callable[..., TreeArrays]] = {
    "cost_complexity": _by_cost_complexity,
    "reduced_error": _by_reduced_error,
    "pessimistic": _by_confidence,
    "mdl": _by_description_length,
    "nodes": _by_choice,
    "simplify": _by_predictions,
}


def _require_options(method: str, options: dict[str, Any]) -> None:
    parameters = list(inspect.signature(_METHODS[method]).parameters.values())[2:]
    known = [parameter.name for parameter in parameters]
    unknown = [name for name in options if name not in known]
    takes = f"it takes {', '.join(known)}" if known else "it takes no options"
    if unknown:
        raise ValueError(f"method={method!r} has no option {unknown[0]!a}: {takes}.")
    needed = [p.name for p in parameters if p.default is p.empty and p.name not in options]
    if needed:
        raise ValueError(f"method={method!r} needs {' and '.join(needed)}: {takes}.")


def _require_classifier(model: Any, method: str) -> None:
    if not is_classifier(model) or model.n_outputs_ > 1:
        raise needs_classes(method)


# -- cross-validation ----------------------------------------------------------------------------


@dataclass(frozen=True)
class CrossValidatedAlpha:
    """Errors of the pruned trees of a path on held-out rows, and the alpha to use.

    alphas             float64 (k,)  between those at which the tree changes
    mean_errors        float64 (k,)  share of misclassified rows, or mean squared error
    standard_errors    float64 (k,)  of the mean errors, from the differences between folds
    n_leaves           int64 (k,)  of the tree grown on all rows and pruned with alphas
    best               int  place of the smallest mean error; if tied, the last: the smallest tree
    chosen             int  place of the alpha that `rule` chooses
    ccp_alpha          float  alphas[chosen]
    rule               str
    """

    alphas: np.ndarray
    mean_errors: np.ndarray
    standard_errors: np.ndarray
    n_leaves: np.ndarray
    best: int
    chosen: int
    rule: str

    @property
    def ccp_alpha(self) -> float:
        return float(self.alphas[self.chosen])


def cross_validated_alpha(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    rule: Literal["one_standard_error", "best"] = "one_standard_error",
    sample_weight: Any = None,
    random_state: Any = None,
) -> CrossValidatedAlpha:
    """Choose `ccp_alpha` by cross-validation (Breiman et al. 1984, section 3.4).

    The tree of all rows changes at alpha_1 < ... < alpha_K. Between two of them it is the same, so
    only their geometric mean sqrt(alpha_k alpha_k+1) is tried, and 10 alpha_K for alphas above the
    last. One tree is grown for each fold, on the rows of the other folds, and its path gives the
    errors of all alphas at once: nothing is refitted.

    Parameters
    ----------
    estimator : decision tree
        Cloned; its `ccp_alpha` is set to 0.
    X, y : training data
    cv : int, splitter or iterable of (train, test), default=5
        A number of shuffled folds, stratified for classes, or the folds.
    rule : {"one_standard_error", "best"}, default="one_standard_error"
        "best" is the alpha with the smallest mean error. "one_standard_error" is the greatest alpha
        whose error is at most one standard error above the smallest: a smaller tree that is not
        measurably worse.
    sample_weight : array of shape (n,), optional
        For growing and for the errors.
    random_state : int, Generator or RandomState, optional
        Of the shuffled folds. The estimator has its own.

    Returns
    -------
    CrossValidatedAlpha
        For `estimator.set_params(ccp_alpha=found.ccp_alpha)` or `prune(model, ccp_alpha=...)`.

    Examples
    --------
    >>> import margrove
    >>> from margrove.grove.prune.pruning import cross_validated_alpha
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> tree = margrove.DecisionTreeClassifier()
    >>> found = cross_validated_alpha(tree, X, y, random_state=0)
    >>> found.n_leaves, int(found.n_leaves[found.chosen])
    (array([9, 7, 5, 4, 3, 2, 1]), 3)
    >>> tree.set_params(ccp_alpha=found.ccp_alpha).fit(X, y).get_n_leaves()
    3
    """
    if rule not in ("one_standard_error", "best"):
        raise ValueError(f"rule must be 'one_standard_error' or 'best'. Got {rule!a}.")
    estimator = _unpruned(estimator)
    weight = None if sample_weight is None else check_weights(sample_weight, count_rows(X))
    full_tree = _fitted(estimator, X, y, weight, np.arange(count_rows(X)))
    alphas = _between(cost_complexity_path(full_tree).ccp_alphas)
    losses, weights = [], []
    for train, test in _folds(estimator, X, y, cv, random_state):
        held_out = np.ones(len(test)) if weight is None else weight[test]
        if not held_out.any():  # a row of weight 0 does not count
            continue
        model = clone(estimator)
        tree = _fitted(model, X, y, weight, train)
        weights.append(held_out.sum())
        of_nodes = validation_losses(model, _rows_of(X, test), _rows_of(y, test), held_out)
        losses.append(losses_along(tree, of_nodes, alphas))
    if not losses:
        raise ValueError("cv holds out no row of positive weight. Use a number, such as cv=5.")
    errors, spread = _averaged(np.array(losses), np.array(weights))
    best = last_within(errors, errors.min())
    limit = errors[best] + (spread[best] if rule == "one_standard_error" else 0.0)
    return CrossValidatedAlpha(
        alphas=alphas,
        mean_errors=errors,
        standard_errors=spread,
        n_leaves=leaves_along(full_tree, alphas),
        best=best,
        chosen=last_within(errors, limit),
        rule=rule,
    )


def _unpruned(estimator: Any) -> Any:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ValueError(
            "estimator must be one of this library's decision trees, such as "
            f"DecisionTreeClassifier(). Got {type(estimator).__name__}."
        )
    estimator = clone(estimator)
    if "ccp_alpha" in estimator.get_params(deep=False):
        estimator.set_params(ccp_alpha=0.0)
    return estimator


def _fitted(model: Any, X: Any, y: Any, weight: np.ndarray | None, rows: np.ndarray) -> TreeArrays:
    given = {} if weight is None else {"sample_weight": weight[rows]}
    model.fit(_rows_of(X, rows), _rows_of(y, rows), **given)
    return fitted_arrays(model, "estimator")


def _rows_of(X: Any, rows: np.ndarray) -> Any:
    return X if len(rows) == count_rows(X) and _is_all(rows) else _safe_indexing(X, rows)


def _is_all(rows: np.ndarray) -> bool:
    return bool(np.array_equal(rows, np.arange(len(rows))))


def _folds(estimator: Any, X: Any, y: Any, cv: Any, random_state: Any) -> list[tuple[Any, Any]]:
    is_count = (
        isinstance(cv, Integral) and not isinstance(cv, bool) and 2 <= int(cv) <= count_rows(X)
    )
    if isinstance(cv, (Real, str)) and not is_count:
        raise ValueError(
            f"cv must be a number of folds from 2 to the {count_rows(X)} rows of X, a splitter, or "
            f"pairs of train and test rows. Got {cv!r}."
        )
    from sklearn.model_selection import check_cv

    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    if is_count:
        splitter = type(splitter)(int(cv), shuffle=True, random_state=seed_of(random_state))
    rows = np.arange(count_rows(X))  # folds may be masks
    return [(rows[train], rows[test]) for train, test in splitter.split(np.zeros(len(rows)), y)]


def _between(ccp_alphas: np.ndarray) -> np.ndarray:
    """An alpha for each tree of a path, from those at which the tree changes."""
    distinct = ccp_alphas[np.append(True, np.diff(ccp_alphas) > ROUNDING * ccp_alphas[1:])]
    above = np.append(distinct[1:], 100.0 * distinct[-1])
    return np.sqrt(distinct) * np.sqrt(above)


def _averaged(losses: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean error and its standard error, from losses (folds, alphas) and the folds' weights.

    With equal weights, the standard error is the standard deviation of the folds' errors divided by
    sqrt(folds).
    """
    mean = losses.sum(axis=0) / weights.sum()
    n = len(weights)
    if n < 2:
        return mean, np.zeros_like(mean)
    share = (weights / weights.sum())[:, None]
    away = share * (losses / weights[:, None] - mean)
    return mean, np.sqrt((away**2).sum(axis=0) * n / (n - 1))
