"""SHAP values: what each feature of a row adds to the answer of trees, forests and boosted trees.

Shapley's value of feature j, of the features known in any order, is what knowing it changes, on
average over the orders (Lundberg and Lee 2017). What is said when only features S are known is

    path-dependent    what the trees say if questions about other features are answered as the
                      training rows did, each branch with its share (Lundberg et al. 2020)
    interventional    the mean answer over background rows, whose features S are replaced
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
    ABREAST,
    QuadratureRule,
    Ways,
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
_STEPS_AT_ONCE = 2e8  # of a tile, some tenths of a second
_MOST_ROWS = 256
_ARGUMENTS: dict[str, list[Any]] = {"check": ["boolean"], "n_jobs": [Integral, None]}
_SHOWN = 10  # features in a repr


@dataclass(frozen=True, eq=False, repr=False)
class ShapValues:
    """What each feature adds to each answer.

    values          float64 (n, d) where the model gives one number a row, else (n, d, outputs):
                    classes, those of several outputs one after the other, or targets
    base            float64 (outputs,)  the answer when nothing is known; the values of a row add up
                    to its answer less this
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
    """What each feature of each row adds to the model's answer: exact Shapley values.

    Parameters
    ----------
    model : fitted decision tree, random forest, extremely randomised trees, AdaBoostClassifier or \
            gradient boosting
        Explained are shares of classes (`predict_proba`), numbers (`predict`), the
        `decision_function` of AdaBoost, or the raw scores of gradient boosting: its
        `decision_function`, and numbers before the link of the loss, such as their logarithms.
    X : array-like, sparse matrix or dataframe of shape (n, n_features)
        The rows to explain, as for `predict`. Missing values count like others.
    background : array-like, sparse matrix or dataframe of shape (m, n_features), optional
        Rows that stand for a feature's values when it is not known (interventional values). By
        default the trees' own training rows do, branch by branch (path-dependent values).
    check : bool, default=True
        Compare the sums of the values with the model's own answers.
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
    answers = summed.answers(X)
    off = np.abs(base + values.sum(axis=1) - answers).max()
    allowed = _TOLERANCE * max(summed.scale, float(np.abs(answers).max()))
    if not off <= allowed:
        raise InexactExplanationError(type(summed.model).__name__, float(off), allowed)


def _refuse_shared_row(summed: TreeSum, row: int, what: str) -> None:
    raise InvalidDataError(
        f"Row {row} of {what} has a missing value that this {type(summed.model).__name__} sends "
        "down several branches with their shares (C4.5), which shap_values does not take. Fill "
        "in missing values, or use split='binary'."
    )


# -- path-dependent --


@dataclass(frozen=True)
class _Paths:
    """A tree, and what its ways have in common for all rows."""

    tree: TreeArrays
    questions: Questions
    ways: Ways
    rule: QuadratureRule
    base: np.ndarray
    n_points: int


def _paths(tree: TreeArrays, n_features: int) -> _Paths:
    share, depth = shares_of_branches(tree), tree.depth
    position = np.zeros(len(tree), np.int64)
    counts = tree.n_children.astype(np.int64)
    position[tree.children] = np.arange(len(tree.children)) - np.repeat(tree.first_child, counts)
    above, passing, arriving, most = paths_of(tree.parent, tree.feature, depth, share, n_features)
    n_points = max(1, -(-int(most) // 2))
    is_leaf = tree.n_children == 0
    base = arriving[is_leaf] @ tree.value[is_leaf]
    ways = Ways(tree.parent, depth, position, above, passing)
    return _Paths(tree, questions_of(tree), ways, _rule(n_points), base, n_points)


@functools.lru_cache(64)
def _rule(n_points: int) -> QuadratureRule:
    """Gauss and Legendre's, for integrals from 0 to 1."""
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return quadrature_rule(0.5 * (points + 1.0), 0.5 * weights)


def _path_values(summed: TreeSum, rows: Any, values: np.ndarray, n_threads: int) -> np.ndarray:
    n, d, width, n_turns = *values.shape[:2], summed.width, summed.n_turns
    paths = [_paths(tree, d) for tree in summed.trees]
    steps = sum(len(own.tree) * own.n_points * (width + 2) for own in paths)
    size = _rows_at_once(steps)

    def explain(tile: int) -> None:
        part = slice(tile * size, min((tile + 1) * size, n))
        own = dense_rows(rows, part)
        count = len(own)
        own = np.concatenate([own, np.repeat(own[-1:], -count % ABREAST, axis=0)])
        phi = np.zeros((n_turns, len(own) // ABREAST, d, width, ABREAST))
        for k, path in enumerate(paths):
            shared = add_path_values(
                own, path.questions, path.ways, path.tree.value, path.rule, phi[k % n_turns]
            )
            if shared >= 0:
                _refuse_shared_row(summed, part.start + min(shared, count - 1), "X")
        found = phi.transpose(0, 1, 4, 2, 3).reshape(n_turns, len(own), d, width)
        values[part] = summed.joined(found[:, :count])

    run_tiles(explain, -(-n // size), n_threads)
    bases = np.zeros((n_turns, width))
    for k, path in enumerate(paths):
        bases[k % n_turns] += path.base
    return summed.start + summed.joined(bases)


def _rows_at_once(steps: float) -> int:
    wanted = int(_STEPS_AT_ONCE / max(steps, 1.0))
    return max(ABREAST, min(_MOST_ROWS, wanted // ABREAST * ABREAST))


# -- interventional --


def _interventional_values(
    summed: TreeSum, rows: Any, background: Any, values: np.ndarray, n_threads: int
) -> np.ndarray:
    n, d, width, n_turns = *values.shape[:2], summed.width, summed.n_turns
    given = summed.rows(background)
    m = given.shape[0]
    if not m:
        raise InvalidDataError("The background of shap_values has no rows. Give at least one.")
    require_memory(8.0 * m * d, f"A background of {m} rows", "Use fewer.")
    others = dense_rows(given, slice(None))
    most = [int(min(tree.depth.max(), d)) for tree in summed.trees]
    weight_of = _weights_of_sets(max(most))
    deep = [int(tree.depth.max()) + 1 for tree in summed.trees]
    size = _rows_at_once(m * width * sum(8.0 * own for own in deep))

    def explain(tile: int) -> None:
        part = slice(tile * size, min((tile + 1) * size, n))
        own = dense_rows(rows, part)
        phi = np.zeros((n_turns, len(own), d, width))
        for k, (tree, n_levels) in enumerate(zip(summed.trees, deep, strict=True)):
            shared = add_interventional_values(
                own, others, questions_of(tree), tree.value, n_levels, weight_of, phi[k % n_turns]
            )
            if shared >= len(own):
                _refuse_shared_row(summed, shared - len(own), "the background")
            if shared >= 0:
                _refuse_shared_row(summed, part.start + shared, "X")
        values[part] = summed.joined(phi) / m

    run_tiles(explain, -(-n // size), n_threads)
    mean: np.ndarray = summed.answers(background).mean(axis=0)
    return mean


def _weights_of_sets(most: int) -> np.ndarray:
    """a! b! / (a + b + 1)! for a, b <= most."""
    require_memory(
        24.0 * most**2, f"Weights of all sets of {most} features on a way", "Use max_depth."
    )
    counts = np.arange(most + 1.0) + 1.0
    found: np.ndarray = beta(counts[:, None], counts[None, :])
    return found
