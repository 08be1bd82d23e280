"""Facts about AdaBoost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove.ensemble.adaboost import AdaBoostClassifier, StumpMembers, TreeMembers
from margrove.facts.machine_values import WeightedFeature
from margrove.facts.models.strongest import strongest_of
from margrove.facts.plain_values import frozen, in_words
from margrove.facts.values import FactsWithoutSupport, Given, estimator_fields
from margrove.grove.serve import TreeArrays

__all__ = ["BoostingFacts", "boosting_facts", "require_boosting"]

_STRONGEST = 10  # features that facts name
_WHY_IT_STOPPED = {
    "complete": "all rounds were made",
    "perfect": "a member made no mistake",
    "no better than chance": "the next member was no better than chance, and was left out",
    "early stopping": "held-out rows did not improve any more; the rounds up to the best are kept",
    "interrupted": "it was interrupted",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostingFacts(FactsWithoutSupport):
    """Facts about AdaBoostClassifier.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; values that are not numbers or strings as text.
    algorithm : str
        As margrove names it: "real" for scikit-learn's "SAMME.R".
    learner : str
        The class of the members.
    learner_parameters : dict
    n_rounds : int
        Rounds that are kept.
    n_rounds_run : int
        All rounds; more than are kept after early stopping.
    n_members : int
        One for each round, or one for each class and round.
    outcome : str
        Why boosting stopped, as in `history_`.
    outcome_in_words : str
    errors : ndarray of shape (n_rounds,)
        The weighted error eps of each round.
    betas : ndarray of shape (n_rounds,) or None
        The weight of each member; None if the algorithm has no such weights.
    training_error : float
        After the last round that is kept, as all that follows.
    bound, edge_bound : float or None
        Upper bounds of the training error: the product of the normalisers Z, and
        exp(-2 sum gamma^2). None if they do not apply.
    validation_error : float or None
    n_nodes : int or None
        Of all trees; None for members that are not trees of margrove.
    importances : ndarray of shape (n_features,) or None
        Mean decrease of the impurity by each feature, weighted by the members' weights, as shares
        of 1; None if members have none.
    strongest : tuple of WeightedFeature
        The ten most important features, the most important first; none of importance 0.
    least_margin, median_margin : float or None
        The smallest and the median margin of X and y, if they were given.
    """

    algorithm: str
    learner: str
    learner_parameters: dict[str, Any]
    n_rounds: int
    n_rounds_run: int
    n_members: int
    outcome: str
    outcome_in_words: str
    errors: np.ndarray
    betas: np.ndarray | None
    training_error: float
    bound: float | None
    edge_bound: float | None
    validation_error: float | None
    n_nodes: int | None
    importances: np.ndarray | None
    strongest: tuple[WeightedFeature, ...]
    least_margin: float | None
    median_margin: float | None


def require_boosting(model: Any, function: str) -> None:
    """Raise unless the model is a fitted AdaBoostClassifier."""
    if not isinstance(model, AdaBoostClassifier):
        raise TypeError(
            f"{function} takes an AdaBoostClassifier of margrove. Got {type(model).__name__} "
            "instead; of a pipeline, pass the last step, and X as it arrives there."
        )
    check_is_fitted(model, "estimator_weights_")


def boosting_facts(model: Any, given: Given) -> BoostingFacts:
    history, n_rounds = model.history_, len(model)
    learner, betas = model.estimator_, history.beta[:n_rounds]
    parameters = learner.get_params(deep=False)
    validation = history.validation_error
    importances = getattr(model, "feature_importances_", None)  # only if members have them
    names = getattr(model, "feature_names_in_", None)
    X, y, _ = given
    margins = None if X is None or y is None else model.margins(X, y)
    return BoostingFacts(
        **estimator_fields(model),
        algorithm=model._circumstances["algorithm"],
        learner=type(learner).__name__,
        learner_parameters={name: in_words(value) for name, value in parameters.items()},
        n_rounds=n_rounds,
        n_rounds_run=len(history),
        n_members=n_rounds * len(model._members.estimators(0)),
        outcome=history.outcome,
        outcome_in_words=_WHY_IT_STOPPED[history.outcome],
        errors=frozen(history.error[:n_rounds]),
        betas=None if np.isnan(betas).any() else frozen(betas),
        training_error=float(history.training_error[n_rounds - 1]),
        bound=_known(history.bound[n_rounds - 1]),
        edge_bound=_known(history.edge_bound[n_rounds - 1]),
        validation_error=None if validation is None else float(validation[n_rounds - 1]),
        n_nodes=_n_nodes(model._members),
        importances=frozen(importances),
        strongest=()
        if importances is None
        else strongest_of(importances[None, :], names, _STRONGEST),
        least_margin=None if margins is None else float(margins.min()),
        median_margin=None if margins is None else float(np.median(margins)),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _n_nodes(members: Any) -> int | None:
    if isinstance(members, StumpMembers):
        return int(np.where(members.found.feature < 0, 1, 3).sum())
    if isinstance(members, TreeMembers):
        return members.n_nodes
    estimators = [one for t in range(len(members)) for one in members.estimators(t)]
    trees = [getattr(one, "arrays_", None) for one in estimators]
    sizes = [len(tree) for tree in trees if isinstance(tree, TreeArrays)]
    return sum(sizes) if len(sizes) == len(trees) else None
