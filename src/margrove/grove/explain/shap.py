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

from margrove._runtime import require_memory, resolve_n_jobs, run_tiles
from margrove.exceptions import InexactExplanationError, InvalidDataError
from margrove.grove.explain.shap_kernels import (
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
    dense_rows,
    questions_of,
    shares_of_branches,
    tree_sum_of,
)

__all__ = ["ShapValues", "shap_values"]

_TOLERANCE = 1e-9
_STEPS_OF_A_TILE = 2e8  # some tenths of a second
_MOST_ROWS = 256
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


def _refuse_shared_row(summed: TreeSum, row: int, what: str) -> None:
    raise InvalidDataError(
        f"Row {row} of {what} has a missing value that this {type(summed.model).__name__} sends "
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
    n, d, width, per_round = *values.shape[:2], summed.width, summed.trees_per_round
    prepared = [_prepared(tree, d) for tree in summed.trees]
    steps = sum(len(one.tree) * one.n_points * (width + 2) for one in prepared)
    size = _rows_of_a_tile(steps)

    def explain(tile: int) -> None:
        block = slice(tile * size, min((tile + 1) * size, n))
        X = dense_rows(rows, block)
        count = len(X)
        X = np.concatenate([X, np.repeat(X[-1:], -count % ROWS_AT_ONCE, axis=0)])
        phi = np.zeros((per_round, len(X) // ROWS_AT_ONCE, d, width, ROWS_AT_ONCE))
        for k, one in enumerate(prepared):
            shared = add_path_values(
                X, one.questions, one.paths, one.tree.value, one.rule, phi[k % per_round]
            )
            if shared >= 0:
                _refuse_shared_row(summed, block.start + min(shared, count - 1), "X")
        found = phi.transpose(0, 1, 4, 2, 3).reshape(per_round, len(X), d, width)
        values[block] = summed.joined(found[:, :count])

    run_tiles(explain, -(-n // size), n_threads)
    bases = np.zeros((per_round, width))
    for k, one in enumerate(prepared):
        bases[k % per_round] += one.base
    return summed.start + summed.joined(bases)


def _rows_of_a_tile(steps: float) -> int:
    wanted = int(_STEPS_OF_A_TILE / max(steps, 1.0))
    return max(ROWS_AT_ONCE, min(_MOST_ROWS, wanted // ROWS_AT_ONCE * ROWS_AT_ONCE))


# -- interventional --


def _interventional_values(
    summed: TreeSum, rows: Any, background: Any, values: np.ndarray, n_threads: int
) -> np.ndarray:
    """Write interventional values (n, d, outputs); returns the base (outputs,)."""
    n, d, width, per_round = *values.shape[:2], summed.width, summed.trees_per_round
    given = summed.rows(background)
    m = given.shape[0]
    if not m:
        raise InvalidDataError("The background of shap_values has no rows. Give at least one.")
    require_memory(8.0 * m * d, f"A background of {m} rows", "Use fewer.")
    others = dense_rows(given, slice(None))
    most = [int(min(tree.depth.max(), d)) for tree in summed.trees]
    weight_of = _weights_of_sets(max(most))
    levels = [int(tree.depth.max()) + 1 for tree in summed.trees]
    size = _rows_of_a_tile(m * width * sum(8.0 * n_levels for n_levels in levels))

    def explain(tile: int) -> None:
        block = slice(tile * size, min((tile + 1) * size, n))
        X = dense_rows(rows, block)
        phi = np.zeros((per_round, len(X), d, width))
        for k, (tree, n_levels) in enumerate(zip(summed.trees, levels, strict=True)):
            shared = add_interventional_values(
                X, others, questions_of(tree), tree.value, n_levels, weight_of, phi[k % per_round]
            )
            if shared >= len(X):
                _refuse_shared_row(summed, shared - len(X), "the background")
            if shared >= 0:
                _refuse_shared_row(summed, block.start + shared, "X")
        values[block] = summed.joined(phi) / m

    run_tiles(explain, -(-n // size), n_threads)
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
