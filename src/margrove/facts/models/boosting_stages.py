"""AdaBoost round by round: the data behind its pictures.

boosting_errors        errors and their bounds after each round
margin_distributions   the sorted margins of rows after some numbers of rounds
boosting_sketches      rounds over two features: the weights of the rows, and predictions on a grid
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import zero_one_loss

from margrove._data import check_weights
from margrove.ensemble.adaboost import StumpMembers, VotingRule
from margrove.exceptions import InvalidDataError
from margrove.facts.models.boosting import require_boosting
from margrove.facts.models.strongest import feature_names_of
from margrove.facts.models.trees import class_codes
from margrove.facts.plain_values import Plain, frozen, require_whole

__all__ = [
    "BoostingErrors",
    "BoostingSketches",
    "MarginDistribution",
    "RoundSketch",
    "boosting_errors",
    "boosting_sketches",
    "checked_round",
    "margin_distributions",
]

_STAGES = (5, 100, 1000)  # those of the lectures
_PADDING = 0.08  # beside the data, as a share of their range


# -- errors --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostingErrors(Plain):
    """Shares misclassified after 1, 2, ... rounds, and their bounds.

    Attributes
    ----------
    rounds : ndarray of int
        All rounds that were run.
    n_kept : int
        Rounds that are kept; fewer than all after early stopping.
    training : ndarray
    validation : ndarray or None
        Of the validation rows of `fit`.
    test : ndarray of shape (n_kept,) or None
        Of X and y.
    bound : ndarray or None
        The product of the normalisers Z so far; None if it does not bound the training error.
    edge_bound : ndarray or None
        exp(-2 sum gamma^2), likewise.
    """

    rounds: np.ndarray
    n_kept: int
    training: np.ndarray
    validation: np.ndarray | None
    test: np.ndarray | None
    bound: np.ndarray | None
    edge_bound: np.ndarray | None


def boosting_errors(model: Any, X: Any = None, y: Any = None) -> BoostingErrors:
    """Errors of a boosted model after each round, and the bound on the training error.

    Parameters
    ----------
    model : fitted AdaBoostClassifier
    X, y : optional
        Rows that the model has not seen, and their classes.

    Returns
    -------
    BoostingErrors

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    >>> model = margrove.AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> found = margrove.facts.boosting_errors(model)
    >>> found.training.round(2).tolist(), found.bound.round(2).tolist()
    ([0.3, 0.3, 0.0], [0.92, 0.75, 0.52])
    """
    require_boosting(model, "boosting_errors")
    if (X is None) != (y is None):
        raise ValueError("X and y belong together. Pass both or none of them.")
    history = model.history_
    test = None
    if X is not None:
        test = np.array([zero_one_loss(y, found) for found in model.staged_predict(X)])
    return BoostingErrors(
        rounds=frozen(np.arange(1, len(history) + 1)),
        n_kept=len(model),
        training=frozen(history.training_error),
        validation=frozen(history.validation_error),
        test=frozen(test),
        bound=_known(history.bound),
        edge_bound=_known(history.edge_bound),
    )


def _known(values: np.ndarray) -> np.ndarray | None:
    return None if np.isnan(values).any() else frozen(values)


# -- margins -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginDistribution(Plain):
    """The margins of rows after some number of rounds.

    Attributes
    ----------
    n_rounds : int
    margins : ndarray
        Ascending.
    shares : ndarray
        Of the rows whose margin is at most that.
    is_bounded : bool
        Whether margins are shares of votes, from -1 to 1.
    """

    n_rounds: int
    margins: np.ndarray
    shares: np.ndarray
    is_bounded: bool


def margin_distributions(
    model: Any, X: Any, y: Any, stages: Sequence[int] | None = None
) -> tuple[MarginDistribution, ...]:
    """Margins of rows after some numbers of rounds.

    Parameters
    ----------
    model : fitted AdaBoostClassifier
    X, y : rows and their classes
    stages : sequence of int, optional
        Numbers of rounds; by default 5, 100 and 1000, if there are as many, and all rounds.

    Returns
    -------
    tuple of MarginDistribution

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    >>> model = margrove.AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> one, three = margrove.facts.margin_distributions(model, X, y, [1, 3])
    >>> float(one.margins.min()), bool(three.margins.min() > 0)
    (-1.0, True)
    """
    require_boosting(model, "margin_distributions")
    if stages is None:
        stages = sorted({stage for stage in _STAGES if stage < len(model)} | {len(model)})
    is_bounded = isinstance(model._rule(), VotingRule)
    found = []
    for stage in stages:
        margins = np.sort(model.margins(X, y, n_rounds=checked_round(stage, len(model), "stages")))
        shares = np.arange(1, len(margins) + 1) / len(margins)
        found.append(
            MarginDistribution(
                n_rounds=int(stage),
                margins=frozen(margins),
                shares=frozen(shares),
                is_bounded=is_bounded,
            )
        )
    return tuple(found)


def checked_round(number: Any, most: int, name: str) -> int:
    """The number as an int; a ValueError that names the argument if it is not from 1 to `most`."""
    is_whole = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_whole or not 1 <= int(number) <= most:
        raise ValueError(f"{name} must be numbers of rounds, from 1 to {most}. Got {number!r}.")
    return int(number)


# -- rounds over two features --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundSketch(Plain):
    """A round, or all of them together.

    Attributes
    ----------
    number : int or None
        From 1; None for all rounds together.
    error : float
        The weighted error of the round; for all rounds together, the training error.
    beta : float or None
        The weight of its member, if it has one.
    weights : ndarray of shape (n_samples,)
        D before the round, which sum to one; for all rounds together, those after the last.
    is_wrong : ndarray of bool
        Rows that are misclassified.
    said : ndarray of int of shape (n_y, n_x)
        The predicted class of each cell, as its place in `classes`.
    feature : int or None
        The feature of the stump, if the member of the round is one, and its `threshold`.
    threshold : float or None
    """

    number: int | None
    error: float
    beta: float | None
    weights: np.ndarray
    is_wrong: np.ndarray
    said: np.ndarray
    feature: int | None
    threshold: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostingSketches(Plain):
    """Rounds over the plane of two features.

    Attributes
    ----------
    points : ndarray of shape (n_samples, 2)
    codes : ndarray of int
        The classes of the rows, by their places in `classes`.
    classes : tuple of str
    names : tuple of str
        Of the two features.
    x_edges, y_edges : ndarray
        Of the cells; for stumps their thresholds, for other members a grid.
    rounds : tuple of RoundSketch
        The chosen rounds; the last entry is all rounds together.
    """

    points: np.ndarray
    codes: np.ndarray
    classes: tuple[str, ...]
    names: tuple[str, ...]
    x_edges: np.ndarray
    y_edges: np.ndarray
    rounds: tuple[RoundSketch, ...]


def boosting_sketches(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    rounds: Sequence[int] | None = None,
    resolution: int = 200,
) -> BoostingSketches:
    """Weights and predictions of each round of boosting, over two features.

    Parameters
    ----------
    model : fitted AdaBoostClassifier
        With two features, both numbers.
    X, y, sample_weight
        The training data.
    rounds : sequence of int, optional
        Which rounds, from 1; by default the first three.
    resolution : int, default=200
        Cells along each axis, if members are not stumps.

    Returns
    -------
    BoostingSketches

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    >>> stump = margrove.DecisionTreeClassifier(max_depth=1, criterion="error")
    >>> model = margrove.AdaBoostClassifier(stump, n_estimators=3).fit(X, y)
    >>> found = margrove.facts.boosting_sketches(model, X, y)
    >>> [(one.threshold, int(one.is_wrong.sum())) for one in found.rounds]
    [(2.5, 3), (7.5, 3), (6.0, 3), (None, 0)]
    """
    require_boosting(model, "boosting_sketches")
    resolution = require_whole("resolution", resolution, 2, " of cells")
    points = _points(model, X)
    codes = class_codes(y, model.classes_, len(points))
    weight = check_weights(sample_weight, len(points))
    chosen = range(1, min(len(model), 3) + 1) if rounds is None else rounds
    numbers = [checked_round(number, len(model), "rounds") for number in chosen]
    edges = _edges(model, points, resolution)
    x, y_ = ((of_axis[1:] + of_axis[:-1]) / 2.0 for of_axis in edges)
    cells = np.column_stack([np.tile(x, len(y_)), np.repeat(y_, len(x))])
    shape = (len(y_), len(x))
    stages = list(model.staged_weights(X, y, sample_weight))
    sketches = []
    for number in numbers:
        t = number - 1
        of_cells, of_rows = (_predicted(model, rows, t) for rows in (cells, points))
        feature, threshold = _stump_split(model._members, t)
        beta = float(model.history_.beta[t])
        sketches.append(
            RoundSketch(
                number=number,
                error=float(model.history_.error[t]),
                beta=None if np.isnan(beta) else beta,
                weights=frozen(_of_rows(stages[t])),
                is_wrong=frozen(of_rows != codes),
                said=frozen(of_cells.reshape(shape)),
                feature=feature,
                threshold=threshold,
            )
        )
    of_cells, of_rows = (_predicted(model, rows, None) for rows in (cells, points))
    sketches.append(
        RoundSketch(
            number=None,
            error=float(weight[of_rows != codes].sum() / weight.sum()),
            beta=None,
            weights=frozen(_of_rows(stages[-1])),
            is_wrong=frozen(of_rows != codes),
            said=frozen(of_cells.reshape(shape)),
            feature=None,
            threshold=None,
        )
    )
    names = feature_names_of(model, 2)
    return BoostingSketches(
        points=frozen(points),
        codes=frozen(codes),
        classes=tuple(str(label) for label in model.classes_.tolist()),
        names=("x0", "x1") if names is None else tuple(str(name) for name in names),
        x_edges=frozen(edges[0]),
        y_edges=frozen(edges[1]),
        rounds=tuple(sketches),
    )


def _points(model: Any, X: Any) -> np.ndarray:
    if model.n_features_in_ != 2:
        raise InvalidDataError(
            f"Rounds are drawn over two features, but the model has {model.n_features_in_}. Fit it "
            "to two columns."
        )
    rows = model._rows(X)
    points = np.asarray(rows.toarray() if sp.issparse(rows) else rows)
    has_labels = any(len(labels) for labels in getattr(model, "categories_", {}).values())
    if has_labels or points.dtype.kind not in "biuf" or not np.isfinite(points).all():
        raise InvalidDataError(
            "Rounds are drawn over two features that are finite numbers in all rows. Got X with "
            "labels, missing values or infinity."
        )
    return points.astype(np.float64)


def _edges(model: Any, points: np.ndarray, resolution: int) -> list[np.ndarray]:
    """The edges of cells in which every stump predicts the same; of a grid for other members."""
    members, edges = model._members, []
    for j in range(2):
        low, high = float(points[:, j].min()), float(points[:, j].max())
        padding = _PADDING * (high - low) or max(1.0, abs(low)) * 0.5
        ends = low - padding, high + padding
        if isinstance(members, StumpMembers):
            thresholds = members.thresholds[members.found.feature == j]
            edges.append(np.unique([*ends, *thresholds]))
        else:
            edges.append(np.linspace(*ends, resolution + 1))
    return edges


def _predicted(model: Any, rows: np.ndarray, t: int | None) -> np.ndarray:
    """The class that round t, or all rounds together, predicts for each row."""
    rule = model._rule()
    if t is None:
        scores = model._scores(rows)[0]
    else:
        scores = rule.scores(model._members.answers(rows, t), 1.0)
    found: np.ndarray = np.argmax(scores, axis=1)
    return found


def _of_rows(weights: np.ndarray) -> np.ndarray:
    """The weight of each row; the mean if it has one for each class."""
    return weights if weights.ndim == 1 else weights.mean(axis=1)


def _stump_split(members: Any, t: int) -> tuple[int | None, float | None]:
    """Feature and threshold of round t; None for members that are not stumps."""
    if not isinstance(members, StumpMembers) or members.found.feature[t] < 0:
        return None, None
    return int(members.found.feature[t]), float(members.thresholds[t])
