"""Many classes by binary machines: one-vs-one, or one-vs-rest.

One-vs-one follows scikit-learn and LIBSVM exactly: pairs (0, 1), (0, 2), ..., (1, 2), ...; a
positive decision value is a vote for the first class of a pair; the class with most votes wins, and
the first one in a tie. Two classes are one machine whose positive side is the second class.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function

from margrove._runtime import kernel

__all__ = [
    "has_ties",
    "machine_coefs",
    "pair_decisions",
    "pairs_of",
    "per_class_decisions",
    "proved_largest",
    "votes_of",
]

_ROUNDING = 1e-15  # relative, of adding an intercept in two ways


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """All pairs (i, j) of classes with i < j, in LIBSVM's order."""
    return list(combinations(range(n_classes), 2))


def machine_coefs(
    dual_coef: np.ndarray, support: np.ndarray, codes: np.ndarray, n_classes: int, n_rows: int
) -> Iterator[np.ndarray]:
    """The coefficients of all rows, for each machine; `codes` are the classes of the support."""
    if n_classes == 2 or len(dual_coef) == n_classes:
        for of_support in dual_coef:
            coef = np.zeros(n_rows)
            coef[support] = of_support
            yield coef
        return
    for i, j in pairs_of(n_classes):
        coef = np.zeros(n_rows)
        coef[support[codes == i]] = dual_coef[j - 1, codes == i]
        coef[support[codes == j]] = dual_coef[i, codes == j]
        yield coef


def pair_decisions(sums: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Decision values (n, n_pairs) from the sums over the support vectors of each class.

    sums: (n_classes, n, n_classes - 1), in LIBSVM's layout of pairs.
    """
    n_classes, n_rows, _ = sums.shape
    values = np.empty((n_rows, n_classes * (n_classes - 1) // 2))
    _add_pairs(sums, np.ascontiguousarray(intercept, dtype=np.float64), values)
    return values


@kernel(bare=True)
def _add_pairs(sums, intercept, values):
    number = 0
    for i in range(len(sums)):
        for j in range(i + 1, len(sums)):
            for row in range(len(values)):
                values[row, number] = sums[i, row, j - 1] + sums[j, row, i] + intercept[number]
            number += 1


def votes_of(decisions: np.ndarray, n_classes: int) -> np.ndarray:
    """The number of votes of each class, int64 (n, n_classes)."""
    votes = np.zeros((len(decisions), n_classes), dtype=np.int64)
    _add_votes(np.ascontiguousarray(decisions, dtype=np.float64), votes)
    return votes


@kernel(bare=True)
def _add_votes(decisions, votes):
    for row in range(len(votes)):
        number = 0
        for i in range(votes.shape[1]):
            for j in range(i + 1, votes.shape[1]):
                votes[row, i if decisions[row, number] > 0.0 else j] += 1
                number += 1


def per_class_decisions(decisions: np.ndarray, n_classes: int) -> np.ndarray:
    """One-vs-rest values (n, n_classes) from pairwise decision values, as in scikit-learn."""
    return np.asarray(_ovr_decision_function(decisions < 0, -decisions, n_classes))


def has_ties(votes: np.ndarray) -> bool:
    """Whether several classes have the most votes in a row."""
    return bool(((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1).any())


def proved_largest(values: np.ndarray, bounds: np.ndarray) -> np.ndarray | None:
    """The column of the largest value of each row (n, K); None if the bounds leave a doubt."""
    bounds = bounds + _ROUNDING * np.abs(values)
    columns, rows = np.asarray(values.argmax(axis=1)), np.arange(len(values))
    others = values + bounds
    others[rows, columns] = -np.inf
    is_proved = (values - bounds)[rows, columns] > others.max(axis=1)
    return columns if is_proved.all() else None
