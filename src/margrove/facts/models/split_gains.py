"""The gain of each threshold of each feature, if all rows are split there.

The rows are sorted by a column, and the impurity of the first 1, 2, ... of them is computed in one
pass, once from each end.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappush, heappushpop
from numbers import Integral
from typing import Any

import numpy as np

from margrove._data import check_labels, check_targets
from margrove.facts.plain_values import Plain, frozen
from margrove.grove import CRITERIA, Criterion, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.read import TreeNames, names_of, shown

__all__ = ["GainCurve", "GainCurves", "gain_curves"]

_ROUNDING = 1e-12  # relative differences below this may be rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class GainCurve(Plain):
    """The gain of each threshold of one feature.

    Attributes
    ----------
    feature : str
    index : int
        Its column.
    thresholds : ndarray
        Halfway between neighbouring values, ascending.
    decreases : ndarray
        Of the impurity, by splitting there; NaN if a split is not allowed. Rows without a value go
        to the side where the decrease is larger.
    decrease_of_missing : float or None
        By splitting rows with a value from rows without, if there are both.
    """

    feature: str
    index: int
    thresholds: np.ndarray
    decreases: np.ndarray
    decrease_of_missing: float | None

    @property
    def best(self) -> int | None:
        """The place of the largest decrease; if tied, the first; None without any threshold."""
        if not len(self.decreases) or np.isnan(self.decreases).all():
            return None
        largest = np.nanmax(self.decreases)
        return int(np.argmax(self.decreases >= largest - _ROUNDING * abs(largest)))


@dataclass(frozen=True, kw_only=True, eq=False)
class GainCurves(Plain):
    """A curve for each feature, the criterion, and the impurity before any split."""

    criterion: str
    impurity: float
    curves: tuple[GainCurve, ...]

    @property
    def best(self) -> GainCurve | None:
        """The curve with the largest decrease; if tied, the first."""
        found: GainCurve | None = None
        largest = -math.inf
        for curve in self.curves:
            place = curve.best
            decrease = -math.inf if place is None else float(curve.decreases[place])
            if found is None or decrease > largest + _ROUNDING * abs(largest):
                found, largest = (curve, decrease) if place is not None else (found, largest)
        return found


def gain_curves(X: Any, y: Any, *, criterion: str = "gini", feature: Any = None) -> GainCurves:
    """How much a split of all rows at each threshold of each feature lowers the impurity.

    Parameters
    ----------
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        Missing values are NaN.
    y : array-like of shape (n_samples,)
    criterion : str, default="gini"
        One of `margrove.grove.criteria.CRITERIA`; criteria for regression take y as numbers.
        "gain_ratio" chooses thresholds by entropy, so decreases are those of entropy.
    feature : int, str or list of them, optional
        Which columns; by default all that are numbers.

    Returns
    -------
    GainCurves

    Examples
    --------
    >>> from margrove.facts import gain_curves
    >>> (curve,) = gain_curves([[1.0], [2.0], [4.0], [5.0]], list("aabb")).curves
    >>> curve.thresholds, curve.decreases.round(3)
    (array([1.5, 3. , 4.5]), array([0.167, 0.5  , 0.167]))
    """
    if not isinstance(criterion, str) or criterion not in CRITERIA:
        known = ", ".join(repr(name) for name in CRITERIA)
        raise ValueError(f"criterion must be one of {known}. Got {criterion!a}.")
    is_class = CRITERIA[criterion].for_classes
    estimator: Any = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    stump = estimator(criterion=criterion, max_depth=1).fit(X, y)  # it checks X and y
    if stump.n_outputs_ > 1:
        raise ValueError(f"y must be one column. Got {stump.n_outputs_} columns.")
    names = names_of(stump)
    rows = np.asarray(stump._rows(X), dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `fit` has warned already
        targets = check_labels(y, len(rows)).codes if is_class else check_targets(y, len(rows))
    cost = _cost_of_starts(criterion, np.ravel(targets))
    return GainCurves(
        criterion=criterion,
        impurity=float(stump.arrays_.impurity[0]),
        curves=tuple(
            _gain_curve(rows[:, column], cost, names.features[column], column)
            for column in _numeric_columns(feature, names)
        ),
    )


def _numeric_columns(feature: Any, names: TreeNames) -> list[int]:
    d = len(names.features)
    if feature is None:
        found = [column for column in range(d) if column not in names.categories]
        if not found:
            raise ValueError(
                "All columns of X are categories, which have no thresholds. Pass a column of "
                "numbers."
            )
        return found
    is_list = isinstance(feature, (list, tuple, np.ndarray))
    columns = [_column(one, names) for one in (feature if is_list else [feature])]
    for column in columns:
        if column in names.categories:
            raise ValueError(
                f"Column {shown(names.features[column])} has categories, which have no thresholds. "
                "Let feature be a column of numbers."
            )
    return columns


def _column(feature: Any, names: TreeNames) -> int:
    d = len(names.features)
    if isinstance(feature, str) and feature in names.features:
        return names.features.index(feature)
    is_number = isinstance(feature, Integral) and not isinstance(feature, bool)
    if is_number and 0 <= int(feature) < d:
        return int(feature)
    known = ", ".join(shown(name) for name in names.features[:10]) + (", ..." if d > 10 else "")
    raise ValueError(
        f"feature must be numbers from 0 to {d - 1} or names of columns: {known}. Got {feature!a}."
    )


_CostOfStarts = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _cost_of_starts(criterion: str, targets: np.ndarray) -> _CostOfStarts:
    """A function (rows in an order, lengths): weight times impurity of the first `length` rows.

    Terms that all splits of the same rows share are left out.
    """
    if CRITERIA[criterion].impurity is not None:
        return _custom_cost_of_starts(CRITERIA[criterion], targets)
    of_shares = CRITERIA[criterion].of_shares
    if of_shares is not None:
        n_classes = int(targets.max()) + 1

        def of_classes(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
            counts = [np.cumsum(targets[rows] == k)[ends - 1] for k in range(n_classes)]
            return ends * of_shares(np.stack(counts, axis=1) / ends[:, None])

        return of_classes
    if CRITERIA[criterion].has_medians:
        return lambda rows, ends: _distances_from_medians(targets[rows])[ends - 1]
    centre = targets.mean() if criterion in ("squared_error", "friedman_mse") else 0.0

    def of_numbers(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
        total = np.cumsum(targets[rows] - centre)[ends - 1]
        if criterion == "gamma":
            return np.asarray(ends * np.log(total / ends))
        if criterion == "poisson":  # a leaf that predicts zero is not allowed
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(total > 0.0, -total * np.log(total / ends), np.nan)
        return np.asarray(-(total**2) / ends)

    return of_numbers


def _custom_cost_of_starts(criterion: Criterion, targets: np.ndarray) -> _CostOfStarts:
    """`_cost_of_starts` for a registered criterion, which is a function of sums and weight."""
    impurity = criterion.impurity_of
    sums = np.column_stack([targets, targets**2])
    if criterion.for_classes:
        sums = np.eye(int(targets.max()) + 1)[targets]

    def of_sums(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
        totals = np.cumsum(sums[rows], axis=0)[ends - 1]
        weights = ends.astype(np.float64).tolist()
        pairs = zip(totals, weights, strict=True)
        return np.array([weight * impurity(total, weight) for total, weight in pairs])

    return of_sums


def _distances_from_medians(y: np.ndarray) -> np.ndarray:
    """The sum of the distances of y[0] .. y[k] from their median, for each k.

    The lower half is a heap with its largest value on top, the upper half one with its smallest.
    """
    lower: list[float] = []
    upper: list[float] = []
    below = above = 0.0
    found = np.empty(len(y))
    for k, value in enumerate(y.tolist()):
        if len(lower) > len(upper):
            moved = -heappushpop(lower, -value)
            heappush(upper, moved)
            below, above = below + value - moved, above + moved
        else:
            moved = heappushpop(upper, value)
            heappush(lower, -moved)
            below, above = below + moved, above + value - moved
        found[k] = above - below - (len(upper) - len(lower)) * -lower[0]
    return found


def _gain_curve(values: np.ndarray, cost: _CostOfStarts, name: str, index: int) -> GainCurve:
    is_known = ~np.isnan(values)
    missing = np.flatnonzero(~is_known)
    order = np.flatnonzero(is_known)
    order = order[np.argsort(values[order], kind="stable")]
    ordered, n = values[order], len(values)
    ends = np.flatnonzero(ordered[:-1] < ordered[1:]) + 1
    nothing = np.empty(0, np.int64)
    of_all = cost(np.concatenate([order, missing]), np.array([n]))[0]

    def decreases(left: np.ndarray, right: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The decreases at each end; rows `left` go to the left and rows `right` to the right."""
        of_left = cost(np.concatenate([left, order]), len(left) + ends)
        of_right = cost(np.concatenate([right, order[::-1]]), len(right) + len(order) - ends)
        rounding = _ROUNDING * (abs(of_all) + np.abs(of_left) + np.abs(of_right))
        found = of_all - of_left - of_right
        return np.where(np.abs(found) <= rounding, 0.0, found) / n

    found = decreases(nothing, missing, ends)
    of_missing = None
    if len(missing) and len(order):
        found = np.fmax(found, decreases(missing, nothing, ends))
        of_missing = float(decreases(nothing, missing, np.array([len(order)]))[0])
    return GainCurve(
        feature=shown(name),
        index=index,
        thresholds=frozen(_halfway(ordered[ends - 1], ordered[ends])),
        decreases=frozen(found),
        decrease_of_missing=of_missing,
    )


def _halfway(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Thresholds as trees set them: the lower value if the middle would round to the upper."""
    middle = 0.5 * below + 0.5 * above
    return np.where((below <= middle) & (middle < above), middle, below)
