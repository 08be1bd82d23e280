"""Predictions of single members of bagging or a forest, and their vote; and bootstrap values.

bagged_boundaries     predictions over a grid of two features
member_votes          predictions for one row
bootstrap_histogram   a statistic of bootstrap samples
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_table, data_frame
from margrove.ensemble.bootstrap import BootstrapResult
from margrove.exceptions import InvalidDataError
from margrove.facts import Plain, frozen, require_whole
from margrove.teaching.facts.planes import PlaneRows, grid_over, plane_rows

__all__ = [
    "BaggedBoundaries",
    "BootstrapHistogram",
    "MemberVotes",
    "bagged_boundaries",
    "bootstrap_histogram",
    "member_votes",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class BaggedBoundaries(Plain):
    """Predictions of members and their vote over a grid.

    Attributes
    ----------
    rows : PlaneRows
    x, y : ndarray
        Coordinates of the grid.
    members : ndarray of int of shape (n_members, len(y), len(x))
        The class that each predicts, by its place in `classes` of the rows.
    vote : ndarray of int of shape (len(y), len(x))
        Of all members, also those that are not shown.
    n_members : int
        The number of all members.
    """

    rows: PlaneRows
    x: np.ndarray
    y: np.ndarray
    members: np.ndarray
    vote: np.ndarray
    n_members: int

    @property
    def agreement(self) -> np.ndarray:
        """The share of the members shown that agree with the vote, (len(y), len(x))."""
        return np.asarray((self.members == self.vote).mean(axis=0))

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each point of the grid."""
        classes = np.array(self.rows.classes, dtype=object)
        return data_frame(
            {
                "x": np.tile(self.x, len(self.y)),
                "y": np.repeat(self.y, len(self.x)),
                "vote": classes[self.vote.ravel()],
                "agreement": self.agreement.ravel(),
            }
        )


def bagged_boundaries(
    model: Any, X: Any, y: Any, *, n_members: int = 10, resolution: int = 200
) -> BaggedBoundaries:
    """The predictions of members of bagging or a forest over two features, and their vote.

    Parameters
    ----------
    model : fitted BaggingClassifier or forest of classifiers, of two features
    X, y : rows and their classes
    n_members : int, default=10
        Largest number of members.
    resolution : int, default=200
        Points of the grid along each axis.

    Returns
    -------
    BaggedBoundaries

    Examples
    --------
    >>> import margrove
    >>> from margrove.teaching.facts.bagging import bagged_boundaries
    >>> X, y = margrove.datasets.make_moons(100, return_X_y=True)
    >>> bag = margrove.BaggingClassifier(n_estimators=25, random_state=0).fit(X, y)
    >>> found = bagged_boundaries(bag, X, y, resolution=30)
    >>> found.members.shape, bool((found.agreement < 1).any())
    ((10, 30, 30), True)
    """
    rows = plane_rows(X, y, "bagged_boundaries", most_classes=None)
    known = _classes_of(model)
    if tuple(str(label) for label in known.tolist()) != rows.classes:
        raise InvalidDataError(
            f"y has the classes {', '.join(rows.classes)}, but the model was fitted to "
            f"{', '.join(str(label) for label in known.tolist())}. Pass rows of the same classes."
        )
    x, y_, grid = grid_over(rows.points, resolution)
    shape = (len(y_), len(x))
    most = require_whole("n_members", n_members, 1)
    predicted = [codes.reshape(shape) for codes in _predictions(model, grid, most)]
    return BaggedBoundaries(
        rows=rows,
        x=frozen(x),
        y=frozen(y_),
        members=frozen(np.stack(predicted)),
        vote=frozen(np.searchsorted(known, _quietly(model.predict, grid)).reshape(shape)),
        n_members=len(model.estimators_),
    )


def _classes_of(model: Any) -> np.ndarray:
    check_is_fitted(model)
    if not hasattr(model, "classes_") or not hasattr(model, "estimators_"):
        raise TypeError(
            "model must be bagging or a forest of classifiers, such as BaggingClassifier or "
            f"RandomForestClassifier. Got {type(model).__name__}."
        )
    return np.asarray(model.classes_)


def _quietly(method: Any, rows: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(method(rows))


def _members(model: Any, most: int | None) -> Iterator[tuple[Any, Any]]:
    """Each member, and the columns that it was fitted to."""
    columns = getattr(model, "estimators_features_", None)
    for k, member in enumerate(model.estimators_):
        if most is not None and k >= most:
            return
        yield member, slice(None) if columns is None else columns[k]


def _places(member: Any, n_classes: int) -> np.ndarray:
    """The places of a member's classes among those of the model; its sample may lack some."""
    if len(member.classes_) == n_classes:
        return np.arange(n_classes)
    return np.asarray(member.classes_, dtype=np.int64)  # members of bagging are fitted to codes


def _predictions(model: Any, rows: np.ndarray, most: int) -> Iterator[np.ndarray]:
    for member, columns in _members(model, most):
        labels = _quietly(member.predict, rows[:, columns])
        places = np.searchsorted(member.classes_, labels)
        yield _places(member, len(model.classes_))[places]


# -- one row -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberVotes(Plain):
    """The prediction of each member for one row.

    Attributes
    ----------
    label : str
        The class of the probabilities.
    probabilities : ndarray of shape (n_members,)
    says_so : ndarray of bool of shape (n_members,)
        Whether the member predicts this class.
    """

    label: str
    probabilities: np.ndarray
    says_so: np.ndarray

    @property
    def average(self) -> float:
        """The mean of the probabilities."""
        return float(self.probabilities.mean())

    @property
    def share(self) -> float:
        """The share of the votes."""
        return float(self.says_so.mean())

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each member."""
        return data_frame(
            {
                "member": np.arange(len(self.probabilities)),
                "probability": self.probabilities,
                "says_so": self.says_so,
            }
        )


def member_votes(model: Any, row: Any, *, label: Any = None) -> MemberVotes:
    """The probability of a class for one row, by each member of bagging or a forest.

    Parameters
    ----------
    model : fitted BaggingClassifier or forest of classifiers
        Its members must have predict_proba.
    row : array-like of shape (n_features,)
        Numbers.
    label : optional
        The class; by default the one that the model predicts.

    Returns
    -------
    MemberVotes

    Examples
    --------
    >>> import margrove
    >>> from margrove.teaching.facts.bagging import member_votes
    >>> X, y = margrove.datasets.make_moons(100, return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(20, max_depth=3, random_state=0).fit(X, y)
    >>> found = member_votes(forest, X[0], label=1)
    >>> bool(abs(found.average - forest.predict_proba(X[:1])[0, 1]) < 1e-9)
    True
    """
    known = _classes_of(model)
    rows = np.asarray(check_table([np.ravel(np.asarray(row))], model).X)
    if rows.shape[1] != model.n_features_in_:
        raise InvalidDataError(
            f"row must have {model.n_features_in_} values, one for each feature. Got "
            f"{rows.shape[1]}."
        )
    wanted = _quietly(model.predict, rows)[0] if label is None else label
    if wanted not in known.tolist():
        raise ValueError(f"label must be one of {known.tolist()}. Got {label!r}.")
    code = known.tolist().index(wanted)
    probabilities, says_so = [], []
    for member, columns in _members(model, None):
        if not hasattr(member, "predict_proba"):
            raise TypeError(
                f"Members of model must have predict_proba. Got {type(member).__name__}."
            )
        shares = np.zeros(len(known))
        found = _quietly(member.predict_proba, rows[:, columns])[0]
        shares[_places(member, len(known))] = found
        probabilities.append(shares[code])
        says_so.append(int(np.argmax(shares)) == code)
    return MemberVotes(
        label=str(wanted),
        probabilities=frozen(np.array(probabilities)),
        says_so=frozen(np.array(says_so)),
    )


# -- the bootstrap -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class BootstrapHistogram(Plain):
    """How often the statistic of a bootstrap sample is between two edges.

    Attributes
    ----------
    counts : ndarray of int of shape (n_bins,)
    edges : ndarray of shape (n_bins + 1,)
    estimate, mean, standard_error, low, high : float
        Of the bootstrap.
    confidence_level : float
    n_resamples : int
    """

    counts: np.ndarray
    edges: np.ndarray
    estimate: float
    mean: float
    standard_error: float
    low: float
    high: float
    confidence_level: float
    n_resamples: int

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each bar."""
        return data_frame({"low": self.edges[:-1], "high": self.edges[1:], "count": self.counts})


def bootstrap_histogram(result: Any, *, bins: int | str = "auto") -> BootstrapHistogram:
    """The histogram of a statistic over bootstrap samples.

    Parameters
    ----------
    result : BootstrapResult
        The result of `margrove.bootstrap` for a statistic that is one number.
    bins : int or str, default="auto"
        As in `numpy.histogram_bin_edges`.

    Returns
    -------
    BootstrapHistogram

    Examples
    --------
    >>> import numpy as np
    >>> import margrove
    >>> from margrove.teaching.facts.bagging import bootstrap_histogram
    >>> result = margrove.bootstrap([3, 1, 4, 1, 5, 9, 2, 6], np.median, random_state=0)
    >>> found = bootstrap_histogram(result, bins=10)
    >>> found.estimate, int(found.counts.sum())
    (3.5, 1000)
    """
    if not isinstance(result, BootstrapResult):
        raise TypeError(f"result must be the result of margrove.bootstrap. Got {result!r}.")
    if np.ndim(result.estimate) != 0:
        raise InvalidDataError(
            f"The statistic of result has shape {np.shape(result.estimate)}, but a histogram shows "
            "one number. Bootstrap one of them."
        )
    counts, edges = np.histogram(result.resamples, bins=bins)
    return BootstrapHistogram(
        counts=frozen(counts),
        edges=frozen(edges),
        estimate=float(result.estimate),
        mean=float(result.mean),
        standard_error=float(result.standard_error),
        low=float(result.low),
        high=float(result.high),
        confidence_level=float(result.confidence_level),
        n_resamples=len(result.resamples),
    )
