"""Gradient boosting round by round: losses, what a round added, and one feature stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_targets, check_weights
from margrove.ensemble.gradient import GradientBoosted, require_constant_start, starts_from_model
from margrove.exceptions import InvalidDataError
from margrove.facts.machine_values import WeightedFeature
from margrove.facts.models.boosting_stages import checked_round
from margrove.facts.models.strongest import feature_names_of
from margrove.facts.models.trees import class_codes
from margrove.facts.plain_values import Plain, frozen
from margrove.grove import DecisionTreeRegressor
from margrove.grove.serve import LEAF, THRESHOLD, dense_rows

__all__ = [
    "GradientStages",
    "LossCurve",
    "RoundFacts",
    "gradient_stages",
    "loss_curve",
    "loss_of_scores",
    "require_gradient_boosting",
    "round_facts",
    "tree_of_round",
]

_STAGES = (1, 5, 20, 100)


def require_gradient_boosting(model: Any, function: str) -> None:
    """Raise unless the model is fitted gradient boosting of margrove."""
    if not isinstance(model, GradientBoosted):
        raise TypeError(
            f"{function} takes gradient boosting of margrove. Got {type(model).__name__} instead; "
            "of a pipeline, pass the last step, and X as it arrives there."
        )
    check_is_fitted(model, "_rounds")


@dataclass(frozen=True, kw_only=True, eq=False)
class LossCurve(Plain):
    """Mean losses after 0, 1, 2, ... rounds.

    Attributes
    ----------
    rounds : ndarray of int
    loss : str
        Its name.
    training : ndarray
    validation : ndarray or None
        Of the rows held out for early stopping, if `scoring` is the loss.
    score : ndarray or None
        Their score, if `scoring` is another score; higher is better.
    score_name : str
        "" if there is none.
    test : ndarray or None
        Of X and y.
    best_round : int or None
        The first round that is best on the validation rows, or else on X and y; None without both.
    """

    rounds: np.ndarray
    loss: str
    training: np.ndarray
    validation: np.ndarray | None
    score: np.ndarray | None
    score_name: str
    test: np.ndarray | None
    best_round: int | None


def loss_curve(model: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> LossCurve:
    """Losses of gradient boosting before the first round and after each.

    Parameters
    ----------
    model : fitted gradient boosting
    X, y, sample_weight : optional
        Rows that the model has not seen, and their targets.

    Returns
    -------
    LossCurve

    Examples
    --------
    >>> import margrove
    >>> X = [[float(i)] for i in range(100)]
    >>> model = margrove.HistGradientBoostingRegressor(learning_rate=0.5, max_iter=3)
    >>> found = margrove.facts.loss_curve(model.fit(X, [0.0] * 50 + [1.0] * 50))
    >>> found.training.tolist()
    [0.125, 0.03125, 0.0078125, 0.001953125]
    """
    require_gradient_boosting(model, "loss_curve")
    if (X is None) != (y is None):
        raise ValueError("X and y belong together. Pass both or none of them.")
    history = model.history_
    scoring = getattr(model, "scoring", "loss")
    scores = history.validation_score if len(history.validation_score) else None
    test = None if X is None else _losses(model, X, y, sample_weight)
    best = None
    if scores is not None:
        best = int(np.argmax(scores))
    elif test is not None:
        best = int(np.argmin(test))
    is_loss = scoring == "loss"
    return LossCurve(
        rounds=frozen(np.arange(len(history.training_loss))),
        loss=model._loss.name,
        training=frozen(history.training_loss),
        validation=frozen(-scores) if scores is not None and is_loss else None,
        score=frozen(scores) if not is_loss else None,
        score_name="" if scores is None or is_loss else _name_of_score(scoring),
        test=frozen(test),
        best_round=best,
    )


def _name_of_score(scoring: Any) -> str:
    if isinstance(scoring, str):
        return scoring
    return "score" if scoring is None else str(getattr(scoring, "__name__", "score"))


def _losses(model: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Mean losses of rows before the first round and after each."""
    rows = model._read(X)
    loss_of = loss_of_scores(model, y, rows.shape[0], sample_weight)
    raw = np.repeat(model._scores.start[:, None], rows.shape[0], axis=1)
    if starts_from_model(model):
        raw += model._raw(X) - model._scores.scores(rows)
    losses = [loss_of(raw)]
    for number in range(len(model)):
        model._scores.add(rows, raw, number, number + 1)
        losses.append(loss_of(raw))
    return np.array(losses)


def loss_of_scores(model: Any, y: Any, n: int, sample_weight: Any) -> Callable[[np.ndarray], float]:
    """A function from raw scores of n rows to their mean loss."""
    weight = None if sample_weight is None else check_weights(sample_weight, n)
    if hasattr(model, "classes_"):
        targets = class_codes(y, model.classes_, n).astype(np.float64)
    else:
        targets = model._loss.check_targets(check_targets(y, n))

    def loss_of(raw: np.ndarray) -> float:
        return float(model._loss.for_round(targets, raw, weight).value(targets, raw, weight))

    return loss_of


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundFacts(Plain):
    """Facts about one round of gradient boosting.

    Attributes
    ----------
    number : int
        From 1.
    loss_before, loss_after : float
        Of the training rows.
    validation_score : float or None
        After the round.
    gain : float
        Of all its splits.
    leaves, depth : tuple of int
        Of each of its trees.
    largest_step : float
        The largest change of a raw score by a leaf.
    features : tuple of WeightedFeature
        The features that its trees split by, with the gain of these splits; the largest first.
    """

    number: int
    loss_before: float
    loss_after: float
    validation_score: float | None
    gain: float
    leaves: tuple[int, ...]
    depth: tuple[int, ...]
    largest_step: float
    features: tuple[WeightedFeature, ...]


def round_facts(model: Any, number: int) -> RoundFacts:
    """Describe one round of gradient boosting.

    Parameters
    ----------
    model : fitted gradient boosting
    number : int
        Which round, from 1.

    Returns
    -------
    RoundFacts

    Examples
    --------
    >>> import margrove
    >>> X = [[float(i), 0.0] for i in range(100)]
    >>> model = margrove.HistGradientBoostingRegressor(max_iter=3)
    >>> found = margrove.facts.round_facts(model.fit(X, [0.0] * 50 + [1.0] * 50), 1)
    >>> found.leaves, found.depth, [feature.name for feature in found.features]
    ((2,), (1,), ['x0'])
    """
    require_gradient_boosting(model, "round_facts")
    number = checked_round(number, len(model), "number")
    history, d = model.history_, model.n_features_in_
    trees = [model.tree(number - 1, k) for k in range(model.n_trees_per_iteration_)]
    gains, n_splits = np.zeros(d), np.zeros(d)
    for tree in trees:
        inner = tree.kind != LEAF
        gains += np.bincount(tree.feature[inner], tree.decrease[inner], d)
        n_splits += np.bincount(tree.feature[inner], minlength=d)
    used = np.flatnonzero(n_splits)
    order = used[np.argsort(-gains[used], kind="stable")]
    names = feature_names_of(model, model.n_features_in_)
    scores = history.validation_score
    return RoundFacts(
        number=number,
        loss_before=float(history.training_loss[number - 1]),
        loss_after=float(history.training_loss[number]),
        validation_score=float(scores[number]) if len(scores) else None,
        gain=float(gains.sum()),
        leaves=tuple(tree.n_leaves for tree in trees),
        depth=tuple(int(tree.depth.max()) for tree in trees),
        largest_step=float(max(np.abs(tree.value[tree.kind == LEAF]).max() for tree in trees)),
        features=tuple(
            WeightedFeature(
                name=f"x{j}" if names is None else str(names[j]), index=j, weight=float(gains[j])
            )
            for j in order.tolist()
        ),
    )


def tree_of_round(model: Any, number: int, score: int = 0) -> DecisionTreeRegressor:
    """The tree of a round, from 1, as an estimator, which predicts what is added to a raw score."""
    require_gradient_boosting(model, "tree_of_round")
    number = checked_round(number, len(model), "number")
    n_scores = model.n_trees_per_iteration_
    if score not in range(n_scores):
        raise ValueError(f"score must be from 0 to {n_scores - 1}. Got {score!r}.")
    table = {
        name: getattr(model, name)
        for name in ("n_features_in_", "feature_names_in_", "categories_")
        if hasattr(model, name)
    }
    tree = DecisionTreeRegressor()
    tree._commit({"categories_": {}, "n_outputs_": 1} | table | {
        "arrays_": model.tree(number - 1, score)
    })  # fmt: skip
    return tree


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientStages(Plain):
    """Predictions over one feature after some numbers of rounds.

    Attributes
    ----------
    name : str
        Of the feature.
    rounds : tuple of int
    high : ndarray of shape (n_intervals,)
        Ends of intervals, low < x <= high, in which predictions are constant; ascending, the last
        one is infinite.
    predictions : ndarray of shape (n_stages, n_intervals)
    losses : ndarray of shape (n_stages,)
        Of the training rows.
    points, targets : ndarray of shape (n_samples,)
        Of X and y, rows with a finite value.
    """

    name: str
    rounds: tuple[int, ...]
    high: np.ndarray
    predictions: np.ndarray
    losses: np.ndarray
    points: np.ndarray
    targets: np.ndarray


def gradient_stages(
    model: Any, X: Any, y: Any, rounds: Sequence[int] | None = None
) -> GradientStages:
    """Predictions of a gradient boosted regressor over one feature, after some rounds.

    Parameters
    ----------
    model : fitted gradient boosting
        For numbers, with one feature that is a number.
    X, y : rows and their targets, usually those of `fit`
    rounds : sequence of int, optional
        Numbers of rounds; by default 1, 5, 20 and 100, if there are as many, and all rounds.

    Returns
    -------
    GradientStages

    Examples
    --------
    >>> import margrove
    >>> X, y = [[float(i)] for i in range(100)], [0.0] * 50 + [1.0] * 50
    >>> model = margrove.HistGradientBoostingRegressor(learning_rate=0.5, max_iter=2).fit(X, y)
    >>> found = margrove.facts.gradient_stages(model, X, y)
    >>> found.rounds, found.high.tolist(), found.predictions.tolist()
    ((1, 2), [49.5, inf], [[0.25, 0.75], [0.125, 0.875]])
    """
    require_gradient_boosting(model, "gradient_stages")
    require_constant_start(model, "gradient_stages")
    if hasattr(model, "classes_") or model.n_features_in_ != 1 or model.categories_:
        raise InvalidDataError(
            "gradient_stages takes a regressor with one feature, which is a number. This "
            f"{type(model).__name__} has {model.n_features_in_} feature(s)."
        )
    n_rounds = len(model)
    if rounds is None:
        rounds = [stage for stage in _STAGES if stage < n_rounds] + [n_rounds]
    chosen = tuple(checked_round(stage, n_rounds, "rounds") for stage in rounds)
    if not chosen:
        raise ValueError("rounds must contain at least one number of rounds. Got none.")
    points = dense_rows(model._read(X))[:, 0]
    targets = check_targets(y, len(points))
    trees = [model.tree(t) for t in range(max(chosen))]
    cuts = np.concatenate([tree.threshold[tree.kind == THRESHOLD] for tree in trees])
    high = np.append(np.unique(cuts[np.isfinite(cuts)]), np.inf)
    predictions = []
    for stage in chosen:
        raw = np.full((1, len(high)), model._scores.start[0])
        model._scores.add(high[:, None], raw, 0, stage)
        predictions.append(model._loss.link_inverse(raw))
    names, kept = feature_names_of(model, model.n_features_in_), np.isfinite(points)
    return GradientStages(
        name="x0" if names is None else str(names[0]),
        rounds=chosen,
        high=frozen(high),
        predictions=frozen(np.array(predictions)),
        losses=frozen(model.history_.training_loss[list(chosen)]),
        points=frozen(points[kept]),
        targets=frozen(targets[kept]),
    )
