"""The parameter `scoring` of the histogram estimators: a score from the raw scores of rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from margrove._runtime import ALONE, Collective
from margrove.ensemble.gradient.early_stopping import HeldOut
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.ensemble.gradient.pieced_rows import PiecedRows
from margrove.ensemble.gradient.training_data import GradientData

__all__ = ["scorer_of", "uses_rows"]


def uses_rows(scoring: Any) -> bool:
    """Whether it may use X: a function of the user. Scorers of scikit-learn use predictions."""
    return callable(scoring) and not hasattr(scoring, "_score_func")


def scorer_of(
    model: Any,
    given: GradientData,
    rows: HeldOut,
    loss: GradientLoss,
    collective: Collective = ALONE,
) -> Callable[[np.ndarray], float]:
    """A function that computes the scoring of `model` on the rows, from their raw scores.

    The first member of a collective gathers the rows of all of them, and scores them.
    """
    if rows.numbers is None or not isinstance(given.X, PiecedRows):
        return _local_scorer(model, given, rows, loss)
    X = np.empty((len(rows.y), 0))
    if uses_rows(model.scoring):
        X = rows.X[: len(rows.y)]
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    parts = collective.gather((X, rows.y, rows.weight, rows.numbers))
    every_X, every_y, weights, numbers = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(numbers), kind="stable")

    def joined(values: Sequence[np.ndarray], axis: int = 0) -> np.ndarray:
        return np.take(np.concatenate(values, axis=axis), order, axis=axis)

    score_all: Any = None
    if collective.rank == 0:
        weight = None if rows.weight is None else joined(weights)
        score_all = _local_scorer(
            model, given, HeldOut(joined(every_X), joined(every_y), weight), loss
        )

    def score(raw: np.ndarray) -> float:
        raws = collective.gather(raw)
        found = score_all(joined(raws, axis=1)) if collective.rank == 0 else None
        return float(collective.gather(found)[0])

    return score


def _local_scorer(
    model: Any, given: GradientData, rows: HeldOut, loss: GradientLoss
) -> Callable[[np.ndarray], float]:
    current = copy.copy(model)
    current.__dict__ = model.get_params(deep=False)
    scorer = check_scoring(current, model.scoring)
    targets = rows.y * given.scale if given.classes is None else rows.y.astype(np.int64)
    y = targets if given.classes is None else given.classes[targets]

    def score(raw: np.ndarray) -> float:
        known = {"_loss": loss, "_rounds": [], "_known_raw": raw * given.scale}
        if given.classes is not None:
            known["classes_"] = given.classes
        current.__dict__ = model.get_params(deep=False) | given.table.attributes | known
        weights = {} if rows.weight is None else {"sample_weight": rows.weight}
        value = float(scorer(current, rows.X, y, **weights))
        if np.isnan(value):
            raise ValueError(
                f"scoring={model.scoring!r} returned NaN, so early stopping is not possible. "
                "Use another scoring, or early_stopping=False."
            )
        return value

    return score
