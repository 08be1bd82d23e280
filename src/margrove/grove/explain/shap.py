"""SHAP values: what each feature of a row adds to the prediction of trees and sums of trees.

Let features become known one after the other. The Shapley value of feature j is the change of the
prediction when j becomes known, averaged over all orders of the features (Lundberg and Lee 2017).
The prediction if only the features S are known is

    path-dependent    the trees' prediction if the splits by other features send a share of the row
                      down each branch, as large as that of the training rows (Lundberg et al. 2020)
    interventional    the mean prediction for background rows whose features S are replaced
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import beta
from sklearn.utils._param_validation import validate_parameter_constraints

from margrove._runtime import require_memory, resolve_n_jobs
from margrove.exceptions import InexactExplanationError, InvalidDataError
from margrove.grove.explain.shap_kernels import (
    GROUPS_OF_A_TILE,
    ROWS_AT_ONCE,
    Paths,
    QuadratureRule,
    add_interventional_values,
    add_path_values,
    paths_of,
    quadrature_rule,
)
from margrove.grove.serve import (
    Questions,
    TreeArrays,
    TreeSum,
    dense_blocks,
    dense_rows,
    questions_of,
    shares_of_branches,
    tree_sum_of,
)

__all__ = ["ShapValues", "shap_values"]

_TOLERANCE = 1e-9
_MOST_STEPS, _MOST_CELLS = 3e7, 1 << 18  # of a thread in a region: 50 ms, and a cache
_PAIRS_OF_A_TILE = 32  # of a row and a row of the background
_ARGUMENTS: dict[str, list[Any]] = {"check": ["boolean"], "n_jobs": [Integral, None]}
_SHOWN = 10  # features in a repr


@dataclass(frozen=True, eq=False, repr=False)
class ShapValues:
    """What each feature adds to each prediction.

    values          float64 (n, d) if the model predicts one number for a row, else (n, d, outputs);
                    outputs are classes, those of several targets one after the other, or targets
    base            float64 (outputs,)  the prediction if nothing is known; the values of a row sum
                    to its prediction minus this
    feature_names   x0, x1 and so on where X had no names
    """

    values: np.ndarray
    base: np.ndarray
    feature_names: tuple[str, ...]

    @property
    def importances(self) -> np.ndarray:
        """The mean size of each feature's values, (d,) or (d, outputs)."""
        sizes: np.ndarray = np.abs(self.values).mean(axis=0)
        return sizes

    def __repr__(self) -> str:
        sizes = self.importances.reshape(len(self.feature_names), -1).sum(axis=1)
        order = np.argsort(-sizes, kind="stable")
        shown = [f"{self.feature_names[j]} {sizes[j]:.3g}" for j in order[:_SHOWN]]
        more = f", and {len(order) - _SHOWN} more" if len(order) > _SHOWN else ""
        return f"ShapValues({len(self.values)} rows, mean sizes: {', '.join(shown)}{more})"


def shap_values(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    check: bool = True,
    n_jobs: int | None = None,
) -> ShapValues:
    """Exact Shapley values: what each feature of each row adds to the model's prediction.

    Parameters
    ----------
    model : fitted decision tree, random forest, extremely randomised trees, AdaBoostClassifier or \
            gradient boosting
        Explained are class shares (`predict_proba`), numbers (`predict`), the `decision_function`
        of AdaBoost, or the raw scores of gradient boosting, which are its `decision_function`, or
        numbers before the inverse link of the loss, such as logarithms.
    X : array-like, sparse matrix or dataframe of shape (n, n_features)
        The rows to explain, as for `predict`. Missing values are values like others.
    background : array-like, sparse matrix or dataframe of shape (m, n_features), optional
        Rows that provide the values of features that are not known (interventional values). By
        default the shares of the training rows in the branches are used (path-dependent values).
    check : bool, default=True
        Compare the sums of the values with the model's own predictions.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. Results do not depend on it.

    Returns
    -------
    ShapValues

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0, 7], [0, 8], [1, 7], [1, 8]], [1.0, 1.0, 2.0, 4.0]
    >>> model = margrove.DecisionTreeRegressor().fit(X, y)
    >>> found = margrove.shap_values(model, [[1, 8]])
    >>> found.base.tolist(), found.values.tolist()  # 2 + 1.25 + 0.75 = 4
    ([2.0], [[1.25, 0.75]])
    """
    given = {"check": check, "n_jobs": n_jobs}
    validate_parameter_constraints(_ARGUMENTS, given, "shap_values")
    n_threads = resolve_n_jobs(n_jobs, unset="all")
    summed = tree_sum_of(model, "shap_values")
    rows = summed.rows(X)
    n, d, n_outputs = rows.shape[0], rows.shape[1], summed.n_outputs
    require_memory(
        8.0 * n * d * n_outputs,
        f"SHAP values of {n} rows, {d} features and {n_outputs} output(s)",
        "Explain fewer rows at a time.",
    )
    values = np.zeros((n, d, n_outputs))
    if background is None:
        base = _path_values(summed, rows, values, n_threads)
    else:
        base = _interventional_values(summed, rows, background, values, n_threads)
    if check and n:
        _require_sums(summed, X, base, values)
    return ShapValues(summed.shaped(values), base, summed.feature_names)


def _require_sums(summed: TreeSum, X: Any, base: np.ndarray, values: np.ndarray) -> None:
    """Raise unless base and values of each row sum to the model's prediction."""
    answers = summed.answers(X)
    off = np.abs(base + values.sum(axis=1) - answers).max()
    allowed = _TOLERANCE * max(summed.scale, float(np.abs(answers).max()))
    if not off <= allowed:
        raise InexactExplanationError(type(summed.model).__name__, float(off), allowed)


def _rows_at_once(values: np.ndarray, steps: float, n_threads: int) -> int:
    """How many rows a region of one tree takes; a row takes `steps` in the largest tree."""
    of_steps = max(int(_MOST_STEPS / max(steps, 1.0)), ROWS_AT_ONCE * GROUPS_OF_A_TILE)
    of_thread = min(of_steps, _MOST_CELLS // max(values[:1].size, 1))
    return n_threads * max(of_thread // ROWS_AT_ONCE, 1) * ROWS_AT_ONCE


def _refuse_shared(summed: TreeSum, shared: np.ndarray, begin: int, n: int) -> None:
    """Raise if a row takes several branches: begin + row of X, or row - n of the background."""
    found = shared[shared >= 0]
    if not len(found):
        return
    row = int(found[0])
    where = f"{begin + row} of X" if row < n else f"{row - n} of the background"
    raise InvalidDataError(
        f"Row {where} has a missing value that this {type(summed.model).__name__} sends "
        "down several branches with their shares (C4.5), which shap_values does not support. Fill "
        "in missing values, or use split='binary'."
    )


# -- path-dependent --


@dataclass(frozen=True)
class _PreparedTree:
    """A tree with what is the same for all rows.

    base       float64 (outputs,)  the prediction if nothing is known
    n_points   of the quadrature rule
    """

    tree: TreeArrays
    questions: Questions
    paths: Paths
    rule: QuadratureRule
    base: np.ndarray
    n_points: int


def _prepared(tree: TreeArrays, n_features: int) -> _PreparedTree:
    share, depth = shares_of_branches(tree), tree.depth
    position = np.zeros(len(tree), np.int64)
    counts = tree.n_children.astype(np.int64)
    position[tree.children] = np.arange(len(tree.children)) - np.repeat(tree.first_child, counts)
    above, passing, arriving, most = paths_of(tree.parent, tree.feature, depth, share, n_features)
    n_points = max(1, -(-int(most) // 2))
    is_leaf = tree.n_children == 0
    base = arriving[is_leaf] @ tree.value[is_leaf]
    paths = Paths(tree.parent, depth, position, above, passing)
    return _PreparedTree(tree, questions_of(tree), paths, _rule(n_points), base, n_points)


@functools.lru_cache(64)
def _rule(n_points: int) -> QuadratureRule:
    """Gauss-Legendre quadrature for integrals from 0 to 1."""
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return quadrature_rule(0.5 * (points + 1.0), 0.5 * weights)


def _path_values(summed: TreeSum, rows: Any, values: np.ndarray, n_threads: int) -> np.ndarray:
    """Write path-dependent values (n, d, outputs); returns the base (outputs,)."""
    width, per_round = summed.width, summed.trees_per_round
    prepared = [_prepared(tree, values.shape[1]) for tree in summed.trees]
    steps = max(len(one.tree) * one.n_points * (width + 2) for one in prepared)
    at_once = _rows_at_once(values, steps, n_threads)
    for begin, X in dense_blocks(rows, at_once, n_threads):
        n_groups = -(-len(X) // ROWS_AT_ONCE)
        n_tiles = -(-n_groups // GROUPS_OF_A_TILE)
        phi = np.zeros((n_groups, *values.shape[1:], ROWS_AT_ONCE))
        shared = np.full(n_tiles, -1, np.int64)
        for k, one in enumerate(prepared):
            add_path_values(n_tiles, n_threads, X, one.questions, one.paths, one.tree.value,
                            one.rule, k % per_round * width, phi, shared)  # fmt: skip
        _refuse_shared(summed, shared, begin, len(X))
        found = phi.transpose(0, 3, 1, 2).reshape(-1, *values.shape[1:])
        values[begin : begin + len(X)] = found[: len(X)]
    bases = np.zeros((per_round, width))
    for k, one in enumerate(prepared):
        bases[k % per_round] += one.base
    return summed.start + summed.joined(bases)


# -- interventional --


def _interventional_values(
    summed: TreeSum, rows: Any, background: Any, values: np.ndarray, n_threads: int
) -> np.ndarray:
    """Write interventional values (n, d, outputs); returns the base (outputs,)."""
    d, width, given = values.shape[1], summed.width, summed.rows(background)
    m = given.shape[0]
    if not m:
        raise InvalidDataError("The background of shap_values has no rows. Give at least one.")
    require_memory(8.0 * m * d, f"A background of {m} rows", "Use fewer.")
    others, trees = dense_rows(given, n_threads), summed.trees
    levels = [int(tree.depth.max()) + 1 for tree in trees]
    weight_of = _weights_of_sets(min(max(levels) - 1, d))
    questions = [questions_of(tree) for tree in trees]
    size = max(1, _PAIRS_OF_A_TILE // m)
    at_once = _rows_at_once(values, 8.0 * m * width * max(levels), n_threads)
    for begin, X in dense_blocks(rows, at_once, n_threads):
        n_tiles = -(-len(X) // size)
        shared = np.full(n_tiles, -1, np.int64)
        for k, tree in enumerate(trees):
            add_interventional_values(
                n_tiles, n_threads, size, X, others, questions[k], tree.value, levels[k], weight_of,
                k % summed.trees_per_round * width, values[begin : begin + len(X)], shared,
            )  # fmt: skip
        _refuse_shared(summed, shared, begin, len(X))
    values /= m
    mean: np.ndarray = summed.answers(background).mean(axis=0)
    return mean


def _weights_of_sets(most: int) -> np.ndarray:
    """a! b! / (a + b + 1)! for a, b <= most."""
    require_memory(
        24.0 * most**2, f"Weights of all sets of {most} features on a path", "Use max_depth."
    )
    counts = np.arange(most + 1.0) + 1.0
    found: np.ndarray = beta(counts[:, None], counts[None, :])
    return found
