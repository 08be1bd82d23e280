"""Diagnostics of a forest: out-of-bag error by trees, rows in a plane, prediction intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import eigh

from margrove._data import check_targets
from margrove.ensemble.bagging import Bagging
from margrove.ensemble.forest import proximities, require_forest
from margrove.facts.models.forests import error_name
from margrove.facts.models.trees import codes_or_targets
from margrove.facts.plain_values import Plain, frozen

__all__ = [
    "IntervalCoverage",
    "OutOfBagCurve",
    "ProximityPlane",
    "interval_coverage",
    "out_of_bag_curve",
    "proximity_plane",
]

_MOST_POINTS = 5_000  # of a plane: scaling takes time that grows as the cube of the rows


@dataclass(frozen=True, kw_only=True, eq=False)
class OutOfBagCurve(Plain):
    """The out-of-bag error of the first 1, 2, ... trees.

    Attributes
    ----------
    n_trees : ndarray of int
    errors : ndarray
        NaN until the first row was left out of a sample.
    error_name : str
    """

    n_trees: np.ndarray
    errors: np.ndarray
    error_name: str


def out_of_bag_curve(forest: Any) -> OutOfBagCurve:
    """The out-of-bag error of a forest against its number of trees.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees
        With `oob_score=True` or `n_estimators="auto"`.

    Returns
    -------
    OutOfBagCurve

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(30, oob_score=True, random_state=0).fit(X, y)
    >>> curve = margrove.facts.out_of_bag_curve(forest)
    >>> int(curve.n_trees[-1]), curve.error_name
    (30, 'share misclassified')
    """
    if isinstance(forest, Bagging):
        raise TypeError(
            f"{type(forest).__name__} has an out-of-bag score, but no curve. For bagged trees, use "
            "a random forest with max_features=None and oob_score=True."
        )
    require_forest(forest, "out_of_bag_curve")
    errors = getattr(forest, "oob_curve_", None)
    if errors is None:
        drawing = "" if forest.bootstrap else "bootstrap=True and "
        raise ValueError(
            f"This {type(forest).__name__} has no out-of-bag curve. Fit it with {drawing}"
            "oob_score=True. Slices and sums of forests have no curve; use the fitted forest."
        )
    return OutOfBagCurve(
        n_trees=frozen(np.arange(1, len(errors) + 1)),
        errors=frozen(errors),
        error_name=error_name(forest),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ProximityPlane(Plain):
    """Rows as points whose squared distances are about 2 (1 - proximity).

    Attributes
    ----------
    points : ndarray of shape (n_samples, 2)
    shares : tuple of two float
        The share of each axis in the sum of all squared distances.
    codes : ndarray of int or None
        Places of the rows' classes in `classes`.
    targets : ndarray or None
        Of a regression.
    classes : tuple of str
        Labels; () for a regression.
    """

    points: np.ndarray
    shares: tuple[float, float]
    codes: np.ndarray | None
    targets: np.ndarray | None
    classes: tuple[str, ...]


def proximity_plane(forest: Any, X: Any, y: Any = None) -> ProximityPlane:
    """Rows as points in a plane; near each other if the trees put them into the same leaves.

    Proximities are inner products (of indicators of leaves), so classical scaling of them is exact
    except for the axes that it leaves out: no distance is negative, and all shares sum to 1.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        At most 5,000 rows.
    y : array-like of shape (n_samples,), optional
        Classes or targets of the rows.

    Returns
    -------
    ProximityPlane

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(30, random_state=0).fit(X, y)
    >>> plane = margrove.facts.proximity_plane(forest, X, y)
    >>> plane.points.shape, sum(plane.shares) > 0.5
    ((150, 2), True)
    """
    require_forest(forest, "proximity_plane")
    n = forest._rows(X).shape[0]
    if n > _MOST_POINTS:
        raise ValueError(
            f"A plane of {n} rows takes too long, the limit is {_MOST_POINTS}. Use some of them: "
            f"X[::{-(-n // _MOST_POINTS)}]."
        )
    codes, targets = codes_or_targets(forest, y, n)
    products = proximities(forest, X)
    centred = products - products.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    points, shares = _largest_axes(centred)
    classes: Sequence[Any] = ()
    if hasattr(forest, "classes_"):
        first = forest.classes_[0] if isinstance(forest.classes_, list) else forest.classes_
        classes = first.tolist()
    return ProximityPlane(
        points=frozen(points),
        shares=shares,
        codes=frozen(codes),
        targets=frozen(targets),
        classes=tuple(str(label) for label in classes),
    )


def _largest_axes(products: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Points in the plane with about these inner products, and the share of each axis.

    The sign of an axis is arbitrary: its largest coordinate is positive.
    """
    n = len(products)
    points, shares = np.zeros((n, 2)), [0.0, 0.0]
    lengths, axes = eigh(products, subset_by_index=[max(0, n - 2), n - 1])
    total = float(np.trace(products))
    for k, (length, axis) in enumerate(zip(lengths[::-1], axes.T[::-1], strict=True)):
        if length > n * np.finfo(float).eps * max(total, 1.0):
            sign = np.sign(axis[np.argmax(np.abs(axis))])
            points[:, k] = sign * np.sqrt(length) * axis
            shares[k] = float(length) / total
    return points, (shares[0], shares[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalCoverage(Plain):
    """Prediction intervals of rows, sorted by their predictions.

    Attributes
    ----------
    rows : ndarray of int
        The rows of X in this order; those with equal predictions in the order of X.
    predictions, low, high : ndarray
    truth : ndarray or None
    is_inside : ndarray of bool or None
        Whether the truth lies in the interval.
    asked : float
        The requested coverage.
    found : float or None
        The share of rows inside their intervals.
    """

    rows: np.ndarray
    predictions: np.ndarray
    low: np.ndarray
    high: np.ndarray
    truth: np.ndarray | None
    is_inside: np.ndarray | None
    asked: float
    found: float | None


def interval_coverage(
    forest: Any, X: Any, y: Any = None, *, coverage: float = 0.9, method: str = "local"
) -> IntervalCoverage:
    """Prediction intervals of a forest regressor, and how many targets lie in them.

    Parameters
    ----------
    forest : fitted RandomForestRegressor or ExtraTreesRegressor
        With `oob_score=True`.
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        Rows that the forest has not seen: training rows are predicted too well.
    y : array-like of shape (n_samples,), optional
        Their targets.
    coverage : float, default=0.9
        The share of new rows whose targets should lie in their intervals.
    method : {"local", "conformal"}, default="local"
        As in `predict_interval`.

    Returns
    -------
    IntervalCoverage

    Examples
    --------
    >>> import numpy as np
    >>> import margrove
    >>> x = np.linspace(0.0, 6.0, 200)[:, None]
    >>> y = np.sin(x[:, 0])
    >>> forest = margrove.RandomForestRegressor(30, oob_score=True, random_state=0)
    >>> forest = forest.fit(x[::2], y[::2])
    >>> found = margrove.facts.interval_coverage(forest, x[1::2], y[1::2], coverage=0.8)
    >>> found.found > 0.7, bool(np.all(np.diff(found.predictions) >= 0))
    (True, True)
    """
    require_forest(forest, "interval_coverage")
    if not hasattr(forest, "predict_interval"):
        raise TypeError(
            f"interval_coverage takes a regressor, and this {type(forest).__name__} predicts "
            "classes. Use its predict_proba."
        )
    if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be between 0 and 1. Got {coverage!r}.")
    bounds = forest.predict_interval(X, float(coverage), method=method)
    predictions = forest.predict(X)
    truth = None if y is None else check_targets(y, len(predictions))
    rows = np.argsort(predictions, kind="stable")
    low, high = bounds[rows].T
    is_inside = None
    if truth is not None:
        truth = truth[rows]
        is_inside = (low <= truth) & (truth <= high)
    return IntervalCoverage(
        rows=frozen(rows),
        predictions=frozen(predictions[rows]),
        low=frozen(low),
        high=frozen(high),
        truth=frozen(truth),
        is_inside=frozen(is_inside),
        asked=float(coverage),
        found=None if is_inside is None else float(is_inside.mean()),
    )
