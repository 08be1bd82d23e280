"""What one member of an ensemble says of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.ensemble.bagging.members import Member, columns_of
from margrove.ensemble.bagging.samples import RowSamples
from margrove.ensemble.bagging.votes import onto_all_classes, votes

__all__ = ["answer_left_out", "answer_of", "shares_of"]


def answer_of(
    estimator: Any, columns: np.ndarray, X: Any, method: str, params: dict[str, Any]
) -> np.ndarray:
    """What an estimator, fitted on some columns, says of the rows of X."""
    return np.asarray(getattr(estimator, method)(columns_of(X, columns), **params))


def answer_left_out(
    member: Member,
    X: Any,
    samples: RowSamples,
    number: int,
    method: str,
    n_classes: int | None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows that are not in a member's sample, and what it says of them."""
    rows = samples.out_of_bag(number, X.shape[0])
    if not len(rows):
        return None
    answer = answer_of(member.estimator, member.columns, X[rows], method, {})
    if n_classes is not None:
        answer = shares_of(answer, member.estimator, method, n_classes)
    return rows, answer


def shares_of(answer: np.ndarray, estimator: Any, method: str, n_classes: int) -> np.ndarray:
    """An answer of a classifier as shares of all classes."""
    if method == "predict":
        return votes(answer, n_classes)
    return onto_all_classes(answer, estimator.classes_, n_classes)
