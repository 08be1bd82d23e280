"""Rows and a linear machine: distances from its plane, slacks, and multipliers.

distance of x     y f(x) / ||w||, to the projection  x - f(x) w / ||w||^2
slack             xi = max(0, 1 - y f(x)), from the margin of the row's own class
KKT               alpha = 0:  y f(x) >= 1;   0 < alpha < C:  y f(x) = 1;   alpha = C:  <= 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import data_frame
from margrove.exceptions import InvalidDataError
from margrove.facts import Plain, describe, frozen, outline
from margrove.margin import LOSSES
from margrove.margin.svm import certificate
from margrove.teaching.facts.planes import PlaneRows, plane_rows

__all__ = ["MultiplierFacts", "PlaneDistances", "multiplier_facts", "plane_distances"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PlaneDistances(Plain):
    """Rows of two features and the line of a linear machine.

    Attributes
    ----------
    rows : PlaneRows
    weights : ndarray of shape (2,)
    intercept : float
    values : ndarray of shape (n_samples,)
        y f(x).
    distances : ndarray
        y f(x) / ||w||, negative on the wrong side.
    projections : ndarray of shape (n_samples, 2)
        The nearest points of the line.
    slacks : ndarray
        xi = max(0, 1 - y f(x)).
    margin_feet : ndarray of shape (n_samples, 2)
        The nearest points of the margin of the row's class, where y f = 1.
    """

    rows: PlaneRows
    weights: np.ndarray
    intercept: float
    values: np.ndarray
    distances: np.ndarray
    projections: np.ndarray
    slacks: np.ndarray
    margin_feet: np.ndarray

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each row."""
        classes = np.array(self.rows.classes, dtype=object)
        return data_frame(
            {
                "class": classes[self.rows.codes],
                "x": self.rows.points[:, 0],
                "y": self.rows.points[:, 1],
                "margin": self.values,
                "distance": self.distances,
                "projection_x": self.projections[:, 0],
                "projection_y": self.projections[:, 1],
                "slack": self.slacks,
            }
        )


def plane_distances(model: Any, X: Any, y: Any) -> PlaneDistances:
    """Distances of rows of two features from the line of a linear machine, and from its margins.

    Parameters
    ----------
    model : fitted linear classifier of two classes
        With `coef_` and `intercept_`, under scikit-learn's API.
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)

    Returns
    -------
    PlaneDistances

    Examples
    --------
    >>> import margrove
    >>> from margrove.teaching.facts.distances import plane_distances
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [-1, -1, 1]
    >>> model = margrove.SVC(kernel="linear", C=100).fit(X, y)
    >>> plane_distances(model, X, y).distances.round(3).tolist()
    [1.0, 1.0, 1.0]
    """
    rows = plane_rows(X, y, "Distances from a line")
    w, b = _line(model)
    if tuple(str(label) for label in model.classes_.tolist()) != rows.classes:
        raise InvalidDataError(
            f"y has the classes {', '.join(rows.classes)}, but the model was fitted to "
            f"{', '.join(str(label) for label in model.classes_.tolist())}. Pass rows of the same "
            "classes."
        )
    f = rows.points @ w + b
    length = float(np.linalg.norm(w))
    if length == 0.0:
        raise InvalidDataError("All weights of the model are zero, so it has no line.")
    return PlaneDistances(
        rows=rows,
        weights=frozen(w),
        intercept=b,
        values=frozen(rows.signs * f),
        distances=frozen(rows.signs * f / length),
        projections=frozen(rows.points - (f / length**2)[:, None] * w),
        slacks=frozen(LOSSES["hinge"]().value(rows.signs * f)),
        margin_feet=frozen(rows.points - ((f - rows.signs) / length**2)[:, None] * w),
    )


def _line(model: Any) -> tuple[np.ndarray, float]:
    found = outline(model)
    coef = getattr(model, "coef_", None)
    if coef is None or found.classes is None:
        raise TypeError(
            "model must be a linear classifier, such as LinearSVC or SVC(kernel='linear'). Got "
            f"{found.estimator}."
        )
    if found.n_features != 2 or len(found.classes) != 2:
        raise InvalidDataError(
            "model must have two features and two classes. Got "
            f"{found.n_features} features and {len(found.classes)} classes."
        )
    weights = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef)
    return np.ravel(weights).astype(np.float64), float(np.ravel(model.intercept_)[0])


# -- multipliers ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class MultiplierFacts(Plain):
    """The multiplier of each row beside its margin.

    Attributes
    ----------
    margins : ndarray of shape (n_samples,)
        y f(x).
    alphas : ndarray of shape (n_samples,)
    C : float
    kinds : tuple of str
        Of each row: "not a support vector", or the kind of support vector that it is.
    """

    margins: np.ndarray
    alphas: np.ndarray
    C: float
    kinds: tuple[str, ...]

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each row."""
        return data_frame({"margin": self.margins, "alpha": self.alphas, "kind": self.kinds})


def multiplier_facts(model: Any, X: Any, y: Any) -> MultiplierFacts:
    """The multipliers of the training rows of a machine of two classes.

    Parameters
    ----------
    model : SVC of two classes
    X, y
        The training data.

    Returns
    -------
    MultiplierFacts

    Examples
    --------
    >>> import margrove
    >>> from margrove.teaching.facts.distances import multiplier_facts
    >>> X, y = [[0.0], [1.0], [3.0]], [-1, -1, 1]
    >>> found = multiplier_facts(margrove.SVC(kernel="linear", C=10).fit(X, y), X, y)
    >>> found.kinds
    ('not a support vector', 'on the margin', 'on the margin')
    """
    found = certificate(model, X, y)
    facts = describe(model, X, y)
    if len(found.machines) != 1 or facts.task != "classification":
        raise InvalidDataError(
            f"model must be a classifier of two classes. Got {facts.estimator} with "
            f"{len(found.machines)} machines."
        )
    machine = found.machines[0]
    kinds = np.full(len(machine.rows), "not a support vector", dtype=object)
    for kind in facts.machines[0].kinds:
        kinds[np.isin(machine.rows, kind.rows)] = kind.name
    signs = np.where(np.asarray(y)[machine.rows] == np.asarray(model.classes_)[1], 1.0, -1.0)
    return MultiplierFacts(
        margins=frozen(signs * machine.decision),
        alphas=frozen(np.abs(machine.alpha)),
        C=float(getattr(model, "C", np.nan)),
        kinds=tuple(kinds.tolist()),
    )
