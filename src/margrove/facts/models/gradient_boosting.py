"""Facts about gradient boosting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.facts.machine_values import WeightedFeature
from margrove.facts.models.forests import MemberSizes, depth_of, sizes_of
from margrove.facts.models.gradient_stages import loss_of_scores
from margrove.facts.models.strongest import feature_names_of, strongest_of
from margrove.facts.plain_values import frozen
from margrove.facts.values import FactsWithoutSupport, Given, estimator_fields

__all__ = ["GradientFacts", "gradient_facts"]

_STRONGEST = 10  # features that facts name

_WHY_IT_STOPPED = {
    "finished": "all rounds were made",
    "stopped early": "the validation score did not improve any more; all rounds are kept",
    "max_time": "max_time was reached",
    "interrupt": "it was interrupted",
    "callback": "a callback stopped it",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientFacts(FactsWithoutSupport):
    """Facts about gradient boosting.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; values that are not numbers or strings as text.
    loss : str
        Its name.
    n_rounds : int
    n_trees : int
        One for each round, or with more than two classes, one for each class and round.
    leaves, depth : MemberSizes
        Of the trees.
    n_bytes : int
        The memory of the arrays of the trees.
    start : ndarray of shape (n_scores,)
        The raw scores before the first round.
    loss_at_start, loss_at_end : float
        Of the training rows.
    best_round : int or None
        The number of rounds after which the validation score was best; None without validation.
    validation_score : float or None
        After the last round.
    outcome : str
        Why boosting stopped, as in `history_`.
    outcome_in_words : str
    importances : ndarray of shape (n_features,)
        The gain of the splits by each feature, as shares of 1.
    strongest : tuple of WeightedFeature
        The ten most important features, the most important first; none of importance 0.
    loss_of_rows : float or None
        Of X and y, if they were given.
    """

    loss: str
    n_rounds: int
    n_trees: int
    leaves: MemberSizes
    depth: MemberSizes
    n_bytes: int
    start: np.ndarray
    loss_at_start: float
    loss_at_end: float
    best_round: int | None
    validation_score: float | None
    outcome: str
    outcome_in_words: str
    importances: np.ndarray
    strongest: tuple[WeightedFeature, ...]
    loss_of_rows: float | None


def gradient_facts(model: Any, given: Given) -> GradientFacts:
    history, trees, importances = model.history_, list(model._trees()), model.importances("gain")
    scores = history.validation_score
    X, y, sample_weight = given
    loss_of_rows = None
    if X is not None and y is not None:
        raw = model._raw(X)
        loss_of_rows = loss_of_scores(model, y, raw.shape[1], sample_weight)(raw)
    return GradientFacts(
        **estimator_fields(model),
        loss=model._loss.name,
        n_rounds=len(model),
        n_trees=len(trees),
        leaves=sizes_of([tree.n_leaves for tree in trees]),
        depth=sizes_of([depth_of(tree) for tree in trees]),
        n_bytes=sum(tree.nbytes for tree in trees),
        start=frozen(model._scores.start),
        loss_at_start=float(history.training_loss[0]),
        loss_at_end=float(history.training_loss[-1]),
        best_round=int(np.argmax(scores)) if len(scores) else None,
        validation_score=float(scores[-1]) if len(scores) else None,
        outcome=history.outcome,
        outcome_in_words=_WHY_IT_STOPPED.get(history.outcome, history.outcome),
        importances=frozen(importances),
        strongest=strongest_of(
            importances[None, :], feature_names_of(model, model.n_features_in_), _STRONGEST
        ),
        loss_of_rows=loss_of_rows,
    )
