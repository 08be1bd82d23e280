"""Trees: the children of a split by each feature, and regions leaf by leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove._data import check_labels, count_rows, data_frame
from margrove.exceptions import InvalidDataError
from margrove.facts import Plain, frozen, require_whole
from margrove.facts.models import TreeRegions, tree_regions
from margrove.grove import CRITERIA, DecisionTreeClassifier
from margrove.teaching.facts.planes import PlaneRows, plane_rows

__all__ = ["SplitChildren", "TreeGrowth", "split_children", "tree_growth"]

_MOST_VALUES = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitChildren(Plain):
    """The children of a split with a branch for each value of a feature.

    Attributes
    ----------
    feature : str
    values : tuple of str
        One for each child.
    classes : tuple of str
    counts : ndarray of int of shape (n_values, n_classes)
    impurities : ndarray of shape (n_values,)
        Of the children.
    before : float
        The impurity of all rows.
    after : float
        The mean impurity of the children, weighted by their rows; for the criterion "entropy" this
        is the conditional entropy.
    criterion : str
    """

    feature: str
    values: tuple[str, ...]
    classes: tuple[str, ...]
    counts: np.ndarray
    impurities: np.ndarray
    before: float
    after: float
    criterion: str

    @property
    def gain(self) -> float:
        """The decrease of the impurity by the split."""
        return self.before - self.after


def split_children(
    X: Any, y: Any, features: Any = None, *, criterion: str = "entropy"
) -> tuple[SplitChildren, ...]:
    """The children of a split by each of some categorical features.

    Parameters
    ----------
    X : dataframe or array-like of shape (n_samples, n_features)
        Categories.
    y : array-like of shape (n_samples,)
        Classes.
    features : sequence of str or int, optional
        By default all of them.
    criterion : {"entropy", "gini", "error"}, default="entropy"

    Returns
    -------
    tuple of SplitChildren

    Examples
    --------
    >>> from margrove.datasets import load_restaurant
    >>> from margrove.teaching.facts.splits import split_children
    >>> X, y = load_restaurant(return_X_y=True, as_frame=True)
    >>> [round(children.after, 2) for children in split_children(X, y, ["Pat", "Type"])]
    [0.46, 1.0]
    """
    known = CRITERIA.get(criterion) if isinstance(criterion, str) else None
    if known is None or known.of_shares is None:
        names = [name for name, one in CRITERIA.items() if one.of_shares is not None]
        raise ValueError(f"criterion must be one of {', '.join(names)}. Got {criterion!r}.")
    columns = _columns(X)
    labels = check_labels(y, count_rows(X))
    classes = tuple(str(label) for label in labels.classes.tolist())
    of_root = np.bincount(labels.codes, minlength=len(classes))
    found = []
    for feature in _chosen(features, list(columns)):
        values, places = np.unique(columns[feature], return_inverse=True)
        if len(values) > _MOST_VALUES:
            raise InvalidDataError(
                f"{feature!r} has {len(values)} values, too many for a branch each. For numbers, "
                "use plot.gain_against_threshold."
            )
        counts = np.zeros((len(values), len(classes)), dtype=np.int64)
        np.add.at(counts, (places.ravel(), labels.codes), 1)
        sizes = counts.sum(axis=1)
        impurities = np.asarray(known.of_shares(counts / sizes[:, None]))
        found.append(
            SplitChildren(
                feature=str(feature),
                values=tuple(str(value) for value in values.tolist()),
                classes=classes,
                counts=frozen(counts),
                impurities=frozen(impurities),
                before=float(known.of_shares(of_root / of_root.sum())),
                after=float(impurities @ sizes / sizes.sum()),
                criterion=criterion,
            )
        )
    return tuple(found)


def _columns(X: Any) -> dict[Any, np.ndarray]:
    """The columns as text, by name, or by number if there are no names."""
    if hasattr(X, "columns"):
        return {str(name): _texts(np.asarray(X[name])) for name in X.columns}
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        raise InvalidDataError(f"X must be a table. Got shape {table.shape}.")
    return {k: _texts(table[:, k]) for k in range(table.shape[1])}


def _texts(values: np.ndarray) -> np.ndarray:
    return np.array([str(value) for value in values.tolist()])


def _chosen(features: Any, known: list[Any]) -> list[Any]:
    if features is None:
        return known
    chosen = [features] if isinstance(features, (str, int)) else list(features)
    for feature in chosen:
        if feature not in known:
            raise ValueError(f"features has {feature!r}, but the columns are {known}.")
    if not chosen:
        raise ValueError("features must name one column or more. Got none.")
    return chosen


# -- growth --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeGrowth(Plain):
    """Trees with more and more leaves, grown best-first.

    Attributes
    ----------
    rows : PlaneRows
    models : tuple of DecisionTreeClassifier
        Fitted.
    regions : tuple of TreeRegions
    errors : ndarray
        Shares of the rows that are misclassified.
    """

    rows: PlaneRows
    models: tuple[DecisionTreeClassifier, ...]
    regions: tuple[TreeRegions, ...]
    errors: np.ndarray

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each region of each tree."""
        leaves = [(region, k) for region in self.regions for k in range(len(region.leaves))]
        columns: dict[str, Any] = {"leaves": [len(region.leaves) for region, _ in leaves]}
        for axis, name in enumerate("xy"):
            columns[f"low_{name}"] = [region.low[k, axis] for region, k in leaves]
            columns[f"high_{name}"] = [region.high[k, axis] for region, k in leaves]
        columns["prediction"] = [region.classes[int(region.values[k])] for region, k in leaves]
        return data_frame(columns)


def tree_growth(X: Any, y: Any, leaves: Sequence[int] = (2, 3, 4, 5, 6)) -> TreeGrowth:
    """Trees of two features with more and more leaves, grown best-first.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
    leaves : sequence of int, default=(2, 3, 4, 5, 6)
        The largest number of leaves of each tree.

    Returns
    -------
    TreeGrowth

    Examples
    --------
    >>> from margrove.datasets import load_iris_ratios
    >>> from margrove.teaching.facts.splits import tree_growth
    >>> found = tree_growth(*load_iris_ratios(return_X_y=True), leaves=(2, 3))
    >>> [len(region.leaves) for region in found.regions]
    [2, 3]
    """
    rows = plane_rows(X, y, "tree_growth", most_classes=None)
    if isinstance(leaves, (str, bytes)) or not hasattr(leaves, "__iter__"):
        raise ValueError(f"leaves must be a list of numbers of leaves. Got {leaves!r}.")
    sizes = [require_whole("leaves", size, 2) for size in leaves]
    if not sizes:
        raise ValueError("leaves must have one number or more. Got none.")
    models = [
        DecisionTreeClassifier(max_leaf_nodes=size).fit(rows.points, rows.codes) for size in sizes
    ]
    return TreeGrowth(
        rows=rows,
        models=tuple(models),
        regions=tuple(_named(tree_regions(model), rows) for model in models),
        errors=frozen(np.array([1.0 - model.score(rows.points, rows.codes) for model in models])),
    )


def _named(found: TreeRegions, rows: PlaneRows) -> TreeRegions:
    """The regions with the names of the classes and features instead of numbers."""
    return replace(found, classes=rows.classes, names=rows.names)
