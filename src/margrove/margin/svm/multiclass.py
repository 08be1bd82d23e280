"""Many classes out of binary machines: one against one, or one against the rest.

One-vs-one follows scikit-learn and LIBSVM to the letter: pairs (0, 1), (0, 2), ..., (1, 2), ...;
a positive decision value votes for the first class of a pair; the class with most votes wins, the
first of them where several have as many. Two classes are one machine whose positive side is the
second class.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function

__all__ = [
    "machine_coefs",
    "pair_decisions",
    "pairs_of",
    "per_class_decisions",
    "votes_of",
]


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_classes), 2))


def machine_coefs(
    dual_coef: np.ndarray, support: np.ndarray, codes: np.ndarray, n_classes: int, n_rows: int
) -> Iterator[np.ndarray]:
    """Each machine's coefficients of all rows; codes are those of the support vectors."""
    if n_classes == 2 or len(dual_coef) == n_classes:
        for own in dual_coef:
            coef = np.zeros(n_rows)
            coef[support] = own
            yield coef
        return
    for i, j in pairs_of(n_classes):
        coef = np.zeros(n_rows)
        coef[support[codes == i]] = dual_coef[j - 1, codes == i]
        coef[support[codes == j]] = dual_coef[i, codes == j]
        yield coef


def pair_decisions(sums: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Decision values (n, n_pairs) from sums over each class's vectors.

    sums: (n_classes, n, n_classes - 1), in LIBSVM's layout of pairs.
    """
    values = [sums[i][:, j - 1] + sums[j][:, i] for i, j in pairs_of(len(sums))]
    return np.column_stack(values) + intercept


def votes_of(decisions: np.ndarray, n_classes: int) -> np.ndarray:
    """How many pairs each class wins (n, n_classes)."""
    votes = np.zeros((len(decisions), n_classes), dtype=np.int64)
    for number, (i, j) in enumerate(pairs_of(n_classes)):
        first_wins = decisions[:, number] > 0
        votes[:, i] += first_wins
        votes[:, j] += ~first_wins
    return votes


def per_class_decisions(decisions: np.ndarray, n_classes: int) -> np.ndarray:
    """scikit-learn's one-vs-rest view of pairwise decision values (n, n_classes)."""
    return np.asarray(_ovr_decision_function(decisions < 0, -decisions, n_classes))
